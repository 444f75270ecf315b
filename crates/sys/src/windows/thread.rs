//! Threads by the system's number, so that another thread can read what they cost.

use crate::clock;
pub use crate::engine_thread::EngineThread;
use linerate_units::Nanos;
use std::sync::Once;
use windows_sys::Win32::Media::timeBeginPeriod;
use windows_sys::Win32::System::Threading::GetCurrentThreadId;

/// Returns the calling thread's number.
pub fn current_tid() -> i32 {
    // SAFETY: the call takes nothing, and does not fail.
    unsafe { GetCurrentThreadId() }.cast_signed()
}

/// CPU cost of a thread since it began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ThreadCost {
    /// Time on a core.
    pub cpu: Nanos,
    /// Time ready to run and without a core. Always zero: Windows does not count it.
    pub queued: Nanos,
}

impl ThreadCost {
    /// Reads the cost of the calling thread.
    pub fn of_caller() -> Self {
        Self { cpu: Nanos::new(clock::thread_cpu()), queued: Nanos::default() }
    }
}

/// Lets waits of this process end at steps of 1 ms instead of 15.6 ms (timeBeginPeriod), until it ends. Best effort: a system that
/// refuses only costs precision.
pub fn sharpen_timers() {
    static SHARPEN: Once = Once::new();
    // SAFETY: the call takes a number.
    SHARPEN.call_once(|| _ = unsafe { timeBeginPeriod(1) });
}
