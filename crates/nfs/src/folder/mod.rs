//! A folder of an NFS version 3 server, for whoever reads or writes trees: by path, with no mount and no kernel client.
//!
//! Any number of threads may use it at once; each call takes an idle connection, or makes one. Bulk reads and writes
//! have several calls under way (`reading`, `draft`). Errors are [`io::Error`]s with the call and the server's status
//! in their text (RFC 1813 section 2.6). The kind [`io::ErrorKind::NotConnected`] means that the server is lost. The
//! time of a symbolic link is set, but a server that ignores it is not in error.

mod connection;
mod draft;
mod listing;
mod reading;

pub use draft::NfsDraft;
pub use listing::{NfsFound, NfsListing};
pub use reading::NfsReading;

use crate::answers::{Answer, Attributes};
use crate::calls::{Ask, Handle, Settings, handle};
use crate::identity::CallerIdentity;
use crate::{mount, status};
use connection::{Connection, ConnectionPool, Failure};
use linerate_model::{NfsServer, SessionKey, Transport};
use linerate_oncrpc::RpcError;
use linerate_oncrpc::client::Caller;
use linerate_oncrpc::message::Credential;
use nfs3_types::nfs3::{ftype3, nfsstat3};
use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Handles of folders that are remembered.
const FOLDERS_KEPT: usize = 4_096;
const NOENT: u32 = nfsstat3::NFS3ERR_NOENT as u32;
/// Bytes of one READ or WRITE at the most: several under way fill a network, and none holds up the others for long.
const PIECE: u32 = 256 << 10;
/// READs or WRITEs of one file under way.
const UNDER_WAY: usize = 8;

/// Predicate that returns whether the user of the folder was stopped. Calls are answered or given up soon after, which
/// leaves time to tidy up.
pub type Stopped = Box<dyn Fn() -> bool + Send + Sync>;

/// Attributes of a file, directory or link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NfsAttributes {
    /// Kind of the object.
    pub kind: NfsKind,
    /// Permission bits.
    pub mode: u32,
    /// Bytes of a file.
    pub size: u64,
    /// When its content was changed, nanoseconds since 1970.
    pub modified: i64,
    /// When anything of it was changed, likewise.
    pub changed: i64,
}

/// Kinds of objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NfsKind {
    /// A file.
    File,
    /// A directory.
    Folder,
    /// A symbolic link.
    Link,
    /// Anything else.
    Other,
}

impl From<Attributes> for NfsAttributes {
    fn from(known: Attributes) -> Self {
        const FILE: u32 = ftype3::NF3REG as u32;
        const FOLDER: u32 = ftype3::NF3DIR as u32;
        const LINK: u32 = ftype3::NF3LNK as u32;
        let kind = match known.kind {
            FILE => NfsKind::File,
            FOLDER => NfsKind::Folder,
            LINK => NfsKind::Link,
            _ => NfsKind::Other,
        };
        let nanos = |(seconds, nanos): (u32, u32)| i64::from(seconds) * 1_000_000_000 + i64::from(nanos);
        let Attributes { mode, size, modified, changed, .. } = known;
        Self { kind, mode: mode & 0o7777, size, modified: nanos(modified), changed: nanos(changed) }
    }
}

/// A moment as an `nfstime3`, which knows none before 1970 and after 2106 (RFC 1813 section 2.6): the nearest that it
/// knows.
fn time(nanos: i64) -> (u32, u32) {
    let seconds = nanos.div_euclid(1_000_000_000).clamp(0, u32::MAX.into());
    (seconds as u32, if nanos < 0 { 0 } else { nanos.rem_euclid(1_000_000_000) as u32 })
}

/// The folder.
#[derive(Clone)]
pub struct NfsFolder {
    server: Arc<Server>,
    root: Handle,
    /// Handles of folders below it, by path.
    folders: Arc<Mutex<HashMap<Vec<u8>, Handle>>>,
}

/// State that all folders of one mount share. Dropping it unmounts.
struct Server {
    connections: ConnectionPool,
    mounting: SocketAddr,
    export: String,
    /// Bytes of one READ, and of one WRITE.
    read: u32,
    write: u32,
    /// The steps in which it keeps times, nanoseconds.
    time_step: u64,
    /// Whether the server lacks READDIRPLUS.
    lists_names_only: AtomicBool,
}

impl Drop for Server {
    fn drop(&mut self) {
        if !self.connections.is_lost()
            && let Ok((mut caller, credential)) = self.connections.dial(self.mounting)
        {
            // It only keeps a list for people.
            let _ = mount::unmount(&mut caller, &credential, &self.export);
        }
    }
}

impl NfsFolder {
    /// Finds the server's ports, mounts the export, and goes down to the folder in it. What is missing of it is an
    /// error; with `make`, the last part of the path is made.
    pub fn connect(server: &NfsServer, make: bool, stopped: Stopped) -> Result<Self, RpcError> {
        let identity = CallerIdentity::User(Credential::sys("linerate", server.uid, server.gid));
        let dial = |address| connection::dial(address, true);
        let (nfs, mounting) = mount::ports(server, Transport::Tcp, &dial)?;
        let connections = ConnectionPool::new(nfs, identity, true, stopped);
        Self::mounted(connections, mounting, &server.export, make)
    }

    /// The folder that an agent serves to those that show `key`.
    pub fn of_agent(address: SocketAddr, key: &SessionKey, stopped: Stopped) -> Result<Self, RpcError> {
        let identity = CallerIdentity::KeyHolder(*key);
        Self::mounted(ConnectionPool::new(address, identity, false, stopped), address, "/", false)
    }

    fn mounted(connections: ConnectionPool, mounting: SocketAddr, path: &str, make: bool) -> Result<Self, RpcError> {
        let (mut caller, credential) = connections.dial(mounting)?;
        let (export, below, root) = find_export(&mut caller, &credential, path)?;
        let mut server = Server {
            connections,
            mounting,
            export,
            read: PIECE,
            write: PIECE,
            time_step: 1,
            lists_names_only: AtomicBool::new(false),
        };
        let failed = |what: String, error: io::Error| RpcError::Refused {
            server: server.connections.address,
            what,
            reason: error.to_string(),
        };
        let limits = server.connections.one("FSINFO", &Ask::Fsinfo(&root), |answer| match answer {
            Answer::Limits { read, write, time_step } => Ok((read, write, time_step)),
            other => Err(other.into()),
        });
        let (read, write, time_step) = limits.map_err(|error| failed("telling its limits".to_owned(), error))?;
        (server.read, server.write) = (read.clamp(1, PIECE), write.clamp(1, PIECE));
        server.time_step = time_step.clamp(1, 1_000_000_000);
        let top = Self { server: Arc::new(server), root, folders: Arc::default() };
        let found = match (make, below.rsplit_once('/').unwrap_or(("", &below))) {
            _ if below.is_empty() => return Ok(top),
            (true, (above, _)) => top.folder(above.as_bytes(), false).and_then(|_| top.folder(below.as_bytes(), true)),
            (false, _) => top.folder(below.as_bytes(), false),
        };
        match found {
            Ok(root) => Ok(top.rooted(root)),
            Err(error) => Err(RpcError::Refused {
                server: top.server.connections.address,
                what: format!("`{path}`"),
                reason: match (make, error.kind()) {
                    (true, io::ErrorKind::NotFound) => format!("{error}; make the folder that it is to be in"),
                    _ => error.to_string(),
                },
            }),
        }
    }

    fn rooted(&self, root: Handle) -> Self {
        Self { server: Arc::clone(&self.server), root, folders: Arc::default() }
    }

    /// The folder called `name` in it, which is made if it is missing.
    pub fn below(&self, name: &str) -> io::Result<Self> {
        Ok(self.rooted(self.folder(name.as_bytes(), true)?))
    }

    /// The steps in which the server keeps times, nanoseconds.
    pub fn time_step(&self) -> u64 {
        self.server.time_step
    }

    /// The entries of the folder at `path`.
    pub fn list(&self, path: &[u8]) -> io::Result<NfsListing> {
        Ok(NfsListing::new(self.clone(), self.folder(path, false)?))
    }

    /// Returns the attributes at `path`; no link is followed.
    pub fn attributes(&self, path: &[u8]) -> io::Result<NfsAttributes> {
        self.look_up(path).map(|(_, known)| known)
    }

    /// Returns the target of the symbolic link at `path`.
    pub fn read_link(&self, path: &[u8]) -> io::Result<Vec<u8>> {
        let (link, _) = self.look_up(path)?;
        self.server.connections.one("READLINK", &Ask::Readlink(&link), |answer| match answer {
            Answer::Path(target) => Ok(target.to_vec()),
            other => Err(other.into()),
        })
    }

    /// Opens the file at `path` for reading, and says what is known of it.
    pub fn open(&self, path: &[u8]) -> io::Result<(NfsReading, NfsAttributes)> {
        let (file, known) = self.look_up(path)?;
        Ok((NfsReading::new(self.clone(), file, known.size), known))
    }

    /// Makes the folder at `path`, unless it is there, and those on the way to it.
    pub fn make_folder(&self, path: &[u8]) -> io::Result<()> {
        self.folder(path, true).map(drop)
    }

    /// Makes the file that will be called `name`, in the folder at `path`, under the name `temporary`. Folders are made
    /// as needed.
    pub fn create(&self, path: &[u8], name: &[u8], temporary: &str) -> io::Result<NfsDraft> {
        let folder = self.folder(path, true)?;
        let made = self.first("CREATE", &Ask::Create(&folder, temporary.as_bytes()), &folder, temporary)?;
        Ok(NfsDraft::new(self.clone(), made, folder, temporary.to_owned(), name.to_vec()))
    }

    /// Makes a symbolic link called `name` in the folder at `path`, first under the name `temporary`.
    pub fn make_link(&self, path: &[u8], name: &[u8], temporary: &str, target: &[u8], modified: i64) -> io::Result<()> {
        let folder = self.folder(path, true)?;
        let first = temporary.as_bytes();
        let ask = Ask::Symlink { directory: &folder, name: first, to: target };
        let made = self.first("SYMLINK", &ask, &folder, temporary)?;
        match self.set(&made, Settings { modified: Some(time(modified)), ..Settings::default() }) {
            Err(error) if error.kind() == io::ErrorKind::NotConnected => Err(error),
            _ => self.rename(&folder, first, name).inspect_err(|_| self.remove_in(&folder, first)),
        }
    }

    /// Gives the folder at `path` its permissions and time of change.
    pub fn settle_folder(&self, path: &[u8], mode: u32, modified: i64) -> io::Result<()> {
        let folder = self.folder(path, false)?;
        self.set(&folder, Settings { mode: Some(mode), size: None, modified: Some(time(modified)) })
    }

    /// Removes the file or link at `path`.
    pub fn remove(&self, path: &[u8]) -> io::Result<()> {
        let (above, name) = split(path);
        let folder = self.folder(above, false)?;
        self.done("REMOVE", &Ask::Remove(&folder, name))
    }

    /// Removes what was not finished, as well as can be: a connection may have just broken.
    fn remove_in(&self, folder: &Handle, name: &[u8]) {
        let ask = Ask::Remove(folder, name);
        // What cannot be removed keeps its temporary name.
        let _ = self.done("REMOVE", &ask).or_else(|error| match error.kind() {
            io::ErrorKind::NotConnected => self.server.connections.anew("REMOVE", &ask, done),
            _ => Err(error),
        });
    }

    fn rename(&self, directory: &Handle, from: &[u8], to: &[u8]) -> io::Result<()> {
        self.done("RENAME", &Ask::Rename { directory, from, to })
    }

    fn set(&self, object: &Handle, settings: Settings) -> io::Result<()> {
        self.done("SETATTR", &Ask::Set(object, settings))
    }

    fn done(&self, call: &str, ask: &Ask<'_>) -> io::Result<()> {
        self.server.connections.one(call, ask, done)
    }

    /// Looks up the handle and attributes at `path`.
    fn look_up(&self, path: &[u8]) -> io::Result<(Handle, NfsAttributes)> {
        if path.is_empty() {
            return Ok((self.root.clone(), self.now(&self.root)?));
        }
        let (above, name) = split(path);
        let folder = self.folder(above, false)?;
        self.found("LOOKUP", &Ask::Lookup(&folder, name))?.ok_or_else(|| status_error("LOOKUP", NOENT))
    }

    /// The attributes of what has a handle.
    fn now(&self, object: &Handle) -> io::Result<NfsAttributes> {
        self.server.connections.one("GETATTR", &Ask::Getattr(object), |answer| match answer {
            Answer::Attributes(known) => Ok(known.into()),
            other => Err(other.into()),
        })
    }

    /// Returns the handle and attributes that `ask` finds, or `None` if there is no such name.
    fn found(&self, call: &str, ask: &Ask<'_>) -> io::Result<Option<(Handle, NfsAttributes)>> {
        let found = self.server.connections.one(call, ask, |answer| match answer {
            Answer::Handle(given, known) => Ok(given.map(|given| (handle(given), known))),
            Answer::Failed(NOENT) => Ok(None),
            other => Err(other.into()),
        })?;
        found
            .map(|(handle, known)| {
                let known = known.map_or_else(|| self.now(&handle), |known| Ok(known.into()))?;
                Ok((handle, known))
            })
            .transpose()
    }

    /// Creates an object in `folder` by `ask`, and returns its handle. A handle that the server does not send is looked
    /// up.
    fn made(&self, call: &str, ask: &Ask<'_>, folder: &Handle, name: &[u8]) -> io::Result<(Handle, NfsAttributes)> {
        let made = self.server.connections.one(call, ask, |answer| match answer {
            Answer::Handle(given, known) => Ok(given.zip(known).map(|(given, known)| (handle(given), known.into()))),
            other => Err(other.into()),
        })?;
        match made {
            Some(made) => Ok(made),
            None => self.found("LOOKUP", &Ask::Lookup(folder, name))?.ok_or_else(|| status_error("LOOKUP", NOENT)),
        }
    }

    /// Creates an object under a temporary name. After a broken connection it may exist all the same.
    fn first(&self, call: &str, ask: &Ask<'_>, folder: &Handle, temporary: &str) -> io::Result<Handle> {
        let made = self.made(call, ask, folder, temporary.as_bytes()).map(|(made, _)| made);
        made.inspect_err(|error| {
            if error.kind() == io::ErrorKind::NotConnected {
                self.remove_in(folder, temporary.as_bytes());
            }
        })
    }

    /// The handle of the folder at `path`; those that are missing are made if `make`.
    fn folder(&self, path: &[u8], make: bool) -> io::Result<Handle> {
        if path.is_empty() {
            return Ok(self.root.clone());
        }
        if let Some(known) = self.known().get(path) {
            return Ok(known.clone());
        }
        let (above, name) = split(path);
        let parent = self.folder(above, make)?;
        let found = match self.found("LOOKUP", &Ask::Lookup(&parent, name))? {
            None if make => self.make_one(&parent, name)?,
            None => return Err(status_error("LOOKUP", NOENT)),
            Some(found) => found,
        };
        if found.1.kind != NfsKind::Folder {
            return Err(io::Error::new(io::ErrorKind::NotADirectory, "a part of its path is no folder on the server"));
        }
        let mut known = self.known();
        if known.len() >= FOLDERS_KEPT {
            known.clear();
        }
        known.insert(path.to_vec(), found.0.clone());
        Ok(found.0)
    }

    fn make_one(&self, parent: &Handle, name: &[u8]) -> io::Result<(Handle, NfsAttributes)> {
        match self.made("MKDIR", &Ask::Mkdir(parent, name), parent, name) {
            // Another thread may have made it.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                self.found("LOOKUP", &Ask::Lookup(parent, name))?.ok_or(error)
            }
            made => made,
        }
    }

    fn known(&self) -> MutexGuard<'_, HashMap<Vec<u8>, Handle>> {
        self.folders.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn connection(&self) -> io::Result<Connection> {
        self.server.connections.take()
    }
}

fn done(answer: Answer<'_>) -> Result<(), Failure> {
    match answer {
        Answer::Done => Ok(()),
        other => Err(other.into()),
    }
}

/// Mounts the part of `path` that is exported, at its longest: gives that part, what is below it, and its handle.
fn find_export(caller: &mut Caller, credential: &Credential, path: &str) -> Result<(String, String, Handle), RpcError> {
    let mut refused = None;
    let mut export = path.trim_end_matches('/');
    loop {
        let requested = if export.is_empty() { "/" } else { export };
        match mount::mount(caller, credential, requested) {
            Ok(handle) => {
                let below = path[export.len()..].trim_matches('/');
                return Ok((requested.to_owned(), below.to_owned(), handle));
            }
            Err(error @ RpcError::Refused { .. }) if !export.is_empty() => {
                // Of several refusals, the one for the requested export counts.
                refused.get_or_insert(error);
                export = export.rsplit_once('/').map_or("", |(above, _)| above);
            }
            Err(error) => return Err(refused.unwrap_or(error)),
        }
    }
}

/// The folder that `path` is in, and its last name.
fn split(path: &[u8]) -> (&[u8], &[u8]) {
    let cut = path.iter().rposition(|byte| *byte == b'/');
    cut.map_or((&[][..], path), |cut| (&path[..cut], &path[cut + 1..]))
}

/// The server answered `call` with `status`.
fn status_error(call: &str, status: u32) -> io::Error {
    use nfsstat3 as S;
    const KINDS: [(nfsstat3, io::ErrorKind, &str); 10] = [
        (S::NFS3ERR_NOENT, io::ErrorKind::NotFound, "no such file or folder"),
        (S::NFS3ERR_EXIST, io::ErrorKind::AlreadyExists, "there is one of that name"),
        (
            S::NFS3ERR_PERM,
            io::ErrorKind::PermissionDenied,
            "not permitted; use another user (--uid), or see the export's options",
        ),
        (
            S::NFS3ERR_ACCES,
            io::ErrorKind::PermissionDenied,
            "permission denied; use another user (--uid), or see the export's options",
        ),
        (S::NFS3ERR_ROFS, io::ErrorKind::ReadOnlyFilesystem, "the export is read-only"),
        (S::NFS3ERR_NOSPC, io::ErrorKind::StorageFull, "No space left on the server"),
        (S::NFS3ERR_DQUOT, io::ErrorKind::QuotaExceeded, "over quota"),
        (S::NFS3ERR_NAMETOOLONG, io::ErrorKind::InvalidFilename, "the name is too long for the server"),
        (S::NFS3ERR_ISDIR, io::ErrorKind::IsADirectory, "it is a folder"),
        (S::NFS3ERR_STALE, io::ErrorKind::StaleNetworkFileHandle, "it was removed meanwhile"),
    ];
    let name = status::name(status);
    match KINDS.into_iter().find(|(known, ..)| *known as u32 == status) {
        Some((_, kind, meaning)) => {
            io::Error::new(kind, format!("the NFS server answers {call} with {name}: {meaning}"))
        }
        None => io::Error::other(format!("the NFS server answers {call} with {name}")),
    }
}

impl From<Answer<'_>> for Failure {
    fn from(answer: Answer<'_>) -> Self {
        match answer {
            Answer::Failed(status) => Self::Status(status),
            _ => Self::Unfit,
        }
    }
}
