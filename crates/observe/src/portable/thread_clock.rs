//! CPU time of threads. How long a thread waited for a core is not known.

use linerate_sys::cpu_time;
use linerate_units::Nanos;

/// Returns the CPU time so far of a thread of this process. `None` if it has ended.
pub(crate) fn cpu_of(tid: i32) -> Option<Nanos> {
    cpu_time::of_thread(tid)
}

/// Returns the CPU time so far of this process.
pub(crate) fn process_cpu() -> Option<Nanos> {
    cpu_time::of_process().map(|time| time.user + time.system)
}

/// Returns `None`: how long a thread waited for a core is not known.
pub(crate) fn waited(_: i32) -> Option<Nanos> {
    None
}
