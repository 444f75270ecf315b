//! Where an interface's receiving is done: in kernel threads of its own, on the last core.
//!
//! Otherwise a frame is received on the core that sends it: a device would take the tester's time and push back instead of
//! dropping.

use linerate_sys::namespace::NetNamespace;
use linerate_sys::thread::go_first;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, CpuSet, sched_setaffinity, unshare};
use nix::unistd::Pid;
use std::fs;
use std::io;
use std::thread::available_parallelism;

/// Gives each of the `interfaces` of `owner` a kernel thread for what it receives, and keeps those threads on the last core,
/// `first` among all that run there. Where the kernel does not let this user do so, frames go on being received where they
/// come from.
pub(crate) fn move_to_last_core(
    owner: &NetNamespace,
    interfaces: &[String],
    first: bool,
) -> Result<(), linerate_sys::Error> {
    let cores = available_parallelism().map_or(1, usize::from);
    if cores < 2 {
        return Ok(());
    }
    // A refusal is an answer too; only a namespace that cannot be entered is an error.
    if owner.enter(|| have_threads(interfaces))?.is_ok() {
        pin(interfaces, cores - 1, first);
    }
    Ok(())
}

/// Writes the settings, on a thread that ends afterwards. /sys shows the interfaces of the namespace it was mounted in, so
/// this thread mounts one of its own, which nobody else sees.
fn have_threads(interfaces: &[String]) -> io::Result<()> {
    unshare(CloneFlags::CLONE_NEWNS)?;
    mount(None::<&str>, "/", None::<&str>, MsFlags::MS_REC | MsFlags::MS_PRIVATE, None::<&str>)?;
    mount(Some("sysfs"), "/sys", Some("sysfs"), MsFlags::empty(), None::<&str>)?;
    for interface in interfaces {
        fs::write(format!("/sys/class/net/{interface}/threaded"), "1")?;
    }
    Ok(())
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
                // A port's queue holds 256 frames: a thread that waits a millisecond for its core loses what no device would.
                let _ = go_first(pid.unsigned_abs());
            }
        }
    }
}

fn processes() -> impl Iterator<Item = i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}
