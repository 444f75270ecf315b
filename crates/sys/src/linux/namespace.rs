//! Network, user and mount namespaces.
//!
//! A network namespace made here has no name: it lives as long as a descriptor, a process or a thread holds it, so that
//! nothing stays behind when all of them are gone. namespaces(7).

use crate::Error;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, setns, unshare};
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::thread;

/// A network namespace, held by a descriptor.
#[derive(Debug)]
pub struct NetNamespace(OwnedFd);

/// A user namespace, held by a descriptor.
#[derive(Debug)]
pub struct UserNamespace(OwnedFd);

/// A mount namespace, held by a descriptor.
#[derive(Debug)]
pub struct MountNamespace(OwnedFd);

impl NetNamespace {
    /// Makes an empty one, owned by the caller's user namespace.
    pub fn new() -> Result<Self, Error> {
        on_a_thread(|| {
            unshare(CloneFlags::CLONE_NEWNET)
                .map_err(|error| Error::new("unshare(CLONE_NEWNET)", "a thread", error))?;
            open("/proc/thread-self/ns/net").map(|file| Self(file.into()))
        })
    }

    /// The one that process `pid` is in.
    pub fn of_process(pid: u32) -> Result<Self, Error> {
        open(&format!("/proc/{pid}/ns/net")).map(|file| Self(file.into()))
    }

    /// Runs `work` on a thread of its own inside this namespace. Sockets that it opens stay in it.
    pub fn enter<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, Error> {
        on_a_thread(|| {
            setns(&self.0, CloneFlags::CLONE_NEWNET)
                .map_err(|error| Error::new("setns(CLONE_NEWNET)", "a thread", error))?;
            Ok(work())
        })
    }
}

impl AsFd for NetNamespace {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl UserNamespace {
    /// The one that process `pid` is in; none if it is the caller's own, which cannot be entered again.
    pub fn of_process(pid: u32) -> Result<Option<Self>, Error> {
        let identity = |file: &File| file.metadata().map(|metadata| (metadata.dev(), metadata.ino()));
        let path = format!("/proc/{pid}/ns/user");
        let (own, other) = (open("/proc/self/ns/user")?, open(&path)?);
        let same = identity(&own).and_then(|own| Ok(own == identity(&other)?));
        match same.map_err(|error| Error::new("fstat", path, error))? {
            true => Ok(None),
            false => Ok(Some(Self(other.into()))),
        }
    }
}

impl AsFd for UserNamespace {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl MountNamespace {
    /// The one that process `pid` is in.
    pub fn of_process(pid: u32) -> Result<Self, Error> {
        open(&format!("/proc/{pid}/ns/mnt")).map(|file| Self(file.into()))
    }
}

impl AsFd for MountNamespace {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Moves the calling thread, and those it starts from then on, into a mount namespace of its own: what is mounted there is
/// seen nowhere else, and goes when the last process in it does.
pub fn enter_mount_namespace() -> Result<(), Error> {
    unshare(CloneFlags::CLONE_NEWNS).map_err(|error| Error::new("unshare(CLONE_NEWNS)", "a thread", error))?;
    // mount_namespaces(7): a copy still shares what is mounted later, both ways, until it is told not to.
    let slave = MsFlags::MS_REC | MsFlags::MS_SLAVE;
    mount(None::<&str>, "/", None::<&str>, slave, None::<&str>)
        .map_err(|error| Error::new("mount(MS_SLAVE)", "/", error))
}

/// Moves the whole process into a new user namespace in which its user is root. It must have one thread only.
pub fn enter_user_namespace() -> Result<(), Error> {
    let (user, group) = (nix::unistd::geteuid(), nix::unistd::getegid());
    unshare(CloneFlags::CLONE_NEWUSER)
        .map_err(|error| Error::new("unshare(CLONE_NEWUSER)", format!("the process of user {user}"), error))?;
    // user_namespaces(7): who is not root outside may map its own group only after it has given up setgroups(2).
    for (file, text) in [
        ("/proc/self/setgroups", String::from("deny")),
        ("/proc/self/uid_map", format!("0 {user} 1")),
        ("/proc/self/gid_map", format!("0 {group} 1")),
    ] {
        fs::write(file, text).map_err(|error| Error::new("write", file, error))?;
    }
    Ok(())
}

/// The process may make and set up network namespaces: it has CAP_NET_ADMIN and CAP_SYS_ADMIN.
pub fn may_make_networks() -> Result<bool, Error> {
    const NET_ADMIN: u32 = 12;
    const SYS_ADMIN: u32 = 21;
    let file = "/proc/self/status";
    let status = fs::read_to_string(file).map_err(|error| Error::new("read", file, error))?;
    let effective = status
        .lines()
        .find_map(|line| u64::from_str_radix(line.strip_prefix("CapEff:")?.trim(), 16).ok())
        .ok_or_else(|| Error::new("read", file, io::Error::other("it has no CapEff")))?;
    Ok([NET_ADMIN, SYS_ADMIN].iter().all(|bit| effective >> bit & 1 == 1))
}

/// Writes a setting of the calling thread's network namespace, as in `ipv4/ip_forward`; false if this kernel has none.
pub fn set_network_setting(name: &str, value: &str) -> Result<bool, Error> {
    let file = format!("/proc/sys/net/{name}");
    match fs::write(&file, value) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(Error::new("write", file, error)),
    }
}

/// Reads a setting of the calling thread's network namespace, as in `ipv4/tcp_rmem`.
pub fn network_setting(name: &str) -> Result<String, Error> {
    let file = format!("/proc/sys/net/{name}");
    fs::read_to_string(&file).map_err(|error| Error::new("read", file, error))
}

fn open(path: &str) -> Result<File, Error> {
    File::open(path).map_err(|error| Error::new("open", path, error))
}

/// Runs `work` on a thread that ends afterwards and takes the namespace it moved to with it.
fn on_a_thread<T: Send>(work: impl FnOnce() -> Result<T, Error> + Send) -> Result<T, Error> {
    thread::scope(|scope| {
        let thread = thread::Builder::new()
            .name(String::from("namespace"))
            .spawn_scoped(scope, work)
            .map_err(|error| Error::new("pthread_create", "namespace", error))?;
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// The user on whose behalf the process acts, as its own user namespace numbers it.
pub fn effective_user() -> u32 {
    nix::unistd::geteuid().as_raw()
}
