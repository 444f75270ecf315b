//! Which cores threads run on.

use crate::Error;

/// Keeps the calling thread on core `cpu`.
///
/// # Errors
/// This host has no such core.
#[cfg(target_os = "freebsd")]
pub fn pin(cpu: u32) -> Result<(), Error> {
    use nix::sched::CpuSet;
    let object = || format!("core {cpu}");
    let mut set = CpuSet::new();
    set.set(cpu as usize).map_err(|errno| Error::new("CPU_SET", object(), errno))?;
    // SAFETY: `CpuSet` is a `cpuset_t`, as nix itself relies on; the kernel reads its size. The thread -1 is the calling one.
    let result = unsafe {
        libc::cpuset_setaffinity(
            libc::CPU_LEVEL_WHICH,
            libc::CPU_WHICH_TID,
            -1,
            size_of::<CpuSet>(),
            std::ptr::from_ref(&set).cast(),
        )
    };
    if result == 0 { Ok(()) } else { Err(Error::last("cpuset_setaffinity", object())) }
}

/// Fails: macOS has no way to keep a thread on a core.
///
/// # Errors
/// Always, with `Unsupported`.
#[cfg(target_os = "macos")]
pub fn pin(cpu: u32) -> Result<(), Error> {
    Err(Error::new("pinning a thread", format!("core {cpu}"), std::io::ErrorKind::Unsupported))
}

/// Returns the cores that the calling thread may use, at least one.
#[cfg(target_os = "freebsd")]
pub fn allowed() -> Vec<u32> {
    use nix::sched::{CpuSet, sched_getaffinity};
    use nix::unistd::Pid;
    let set = sched_getaffinity(Pid::from_raw(0)).unwrap_or_default();
    let is_set = |core: &usize| set.is_set(*core).unwrap_or(false);
    let cores: Vec<u32> = (0..CpuSet::count()).filter(is_set).map(|core| core as u32).collect();
    if cores.is_empty() { vec![0] } else { cores }
}

/// Returns the cores that the calling thread may use: all, from number 0 on.
#[cfg(target_os = "macos")]
pub fn allowed() -> Vec<u32> {
    let count = std::thread::available_parallelism().map_or(1, |count| count.get() as u32);
    (0..count).collect()
}
