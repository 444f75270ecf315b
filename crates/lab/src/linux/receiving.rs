//! Placement of an interface's receiving: on the last core, in kernel threads of its own, or in soft interrupts.
//!
//! Otherwise a frame is received on the core that sends it: a device would take the tester's time and push back instead
//! of dropping.

use linerate_sys::Error;
use linerate_sys::namespace::NetNamespace;
use linerate_sys::thread::go_first;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, CpuSet, sched_setaffinity, unshare};
use nix::unistd::Pid;
use std::fs;
use std::io;
use std::path::Path;
use std::thread::available_parallelism;

/// Folder of the settings of a namespace's interfaces.
const INTERFACES: &str = "/sys/class/net";

/// The number of the last core of the machine.
pub(crate) fn last_core() -> u32 {
    available_parallelism().map_or(0, |cores| cores.get() as u32 - 1)
}

/// Gives each of the `interfaces` of `owner` a kernel thread for what it receives, and keeps those threads on the last
/// core, `first` among all that run there. Where the kernel does not let this user do so, frames go on being received
/// where they come from.
pub(crate) fn move_to_last_core(owner: &NetNamespace, interfaces: &[String], first: bool) -> Result<(), Error> {
    let core = last_core();
    if core == 0 {
        return Ok(());
    }
    // A refusal is an answer too; only a namespace that cannot be entered is an error.
    let threads = owner.enter(|| {
        enter_own_sys()?;
        interfaces.iter().try_for_each(|interface| write(&format!("{INTERFACES}/{interface}/threaded"), "1"))
    })?;
    if threads.is_ok() {
        pin(interfaces, core as usize, first);
    }
    Ok(())
}

/// Has the last core do the soft interrupts of all that an interface of `owner` receives, by receive packet steering
/// (RPS, Documentation/networking/scaling.rst).
///
/// # Errors
/// Names the setting, which root of the machine may write only.
pub(crate) fn steer_to_last_core(owner: &NetNamespace, interface: &str) -> Result<(), Error> {
    let cores = mask(last_core());
    owner.enter(|| {
        enter_own_sys()?;
        let folder = format!("{INTERFACES}/{interface}/queues");
        let queues = fs::read_dir(&folder).map_err(|error| Error::new("read", &folder, error))?;
        let names = queues.flatten().filter_map(|queue| queue.file_name().into_string().ok());
        names
            .filter(|name| name.starts_with("rx-"))
            .try_for_each(|name| write(&format!("{folder}/{name}/rps_cpus"), &cores))
    })?
}

/// Gives the calling thread, which is to end soon, a /sys of its own namespace's interfaces: any other shows those of
/// the namespace it was mounted in. Nobody else sees it.
fn enter_own_sys() -> Result<(), Error> {
    let failed = |call: &'static str, object: &'static str| move |error| Error::new(call, object, error);
    unshare(CloneFlags::CLONE_NEWNS).map_err(failed("unshare(CLONE_NEWNS)", "a thread"))?;
    let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
    mount(None::<&str>, "/", None::<&str>, private, None::<&str>).map_err(failed("mount(MS_PRIVATE)", "/"))?;
    mount(Some("sysfs"), "/sys", Some("sysfs"), MsFlags::empty(), None::<&str>).map_err(failed("mount", "/sys"))
}

fn write(file: &str, value: &str) -> Result<(), Error> {
    fs::write(Path::new(file), value).map_err(|error| match error.kind() {
        io::ErrorKind::PermissionDenied => {
            Error::new("write", file, io::Error::new(error.kind(), "only root may set it; run as root"))
        }
        _ => Error::new("write", file, error),
    })
}

/// Returns the set of one core as the kernel writes it: 32 cores a group, in hexadecimal, the highest group first.
fn mask(core: u32) -> String {
    format!("{:x}{}", 1u32 << (core % 32), ",00000000".repeat(core as usize / 32))
}

/// Keeps the threads of those interfaces on `core`. The kernel calls them `napi/INTERFACE-NUMBER`; a device of the same
/// port names in another lab would want the same.
fn pin(interfaces: &[String], core: usize, first: bool) {
    let mut cores = CpuSet::new();
    if cores.set(core).is_err() {
        return;
    }
    let prefixes: Vec<_> = interfaces.iter().map(|interface| format!("napi/{interface}-")).collect();
    for pid in processes() {
        let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        if prefixes.iter().any(|prefix| name.starts_with(prefix)) {
            // One that ended meanwhile was another lab's.
            let _ = sched_setaffinity(Pid::from_raw(pid), &cores);
            if first {
                // A port's queue holds 256 frames: a thread that waits a millisecond for its core loses what no device
                // would.
                let _ = go_first(pid.unsigned_abs());
            }
        }
    }
}

fn processes() -> impl Iterator<Item = i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_core_is_a_bit_of_its_group() {
        assert_eq!([0, 1, 31].map(mask), ["1", "2", "80000000"]);
        assert_eq!([32, 65].map(mask), ["1,00000000", "2,00000000,00000000"]);
    }
}
