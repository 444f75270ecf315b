//! Threads by the system's number, so that another thread can read what they cost.

use crate::clock;
pub use crate::engine_thread::EngineThread;
use linerate_units::Nanos;

/// Returns the calling thread's number.
#[cfg(target_os = "freebsd")]
pub fn current_tid() -> i32 {
    // SAFETY: the call takes nothing, and does not fail.
    unsafe { libc::pthread_getthreadid_np() }
}

/// Returns the calling thread's name in Mach, which is valid within this process.
#[cfg(target_os = "macos")]
pub fn current_tid() -> i32 {
    // SAFETY: the calls take nothing but the calling thread, and do not fail.
    unsafe { libc::pthread_mach_thread_np(libc::pthread_self()) }.cast_signed()
}

/// CPU cost of a thread since it began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ThreadCost {
    /// Time on a core.
    pub cpu: Nanos,
    /// Time ready to run and without a core. Always zero: the system does not count it.
    pub queued: Nanos,
}

impl ThreadCost {
    /// Reads the cost of the calling thread.
    pub fn of_caller() -> Self {
        Self { cpu: Nanos::new(clock::thread_cpu()), queued: Nanos::default() }
    }
}

/// Does nothing: timers have no precision that a thread could set.
pub fn sharpen_timers() {}
