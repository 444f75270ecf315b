//! Threads of engines.

use crate::clock;
use linerate_units::Nanos;
use windows_sys::Win32::Media::timeBeginPeriod;
use windows_sys::Win32::System::Threading::GetCurrentThreadId;

/// A thread that does a trial's work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineThread {
    /// Its name, as in `send 0`.
    pub name: String,
    /// Its number in the system.
    pub tid: i32,
    /// It sends data (or asks, in transactions); otherwise it receives (or answers).
    pub sends: bool,
}

/// The calling thread's number.
pub fn current_tid() -> i32 {
    // SAFETY: the function has no requirements.
    unsafe { GetCurrentThreadId() }.cast_signed()
}

/// What a thread has cost so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ThreadCost {
    /// Time on a core.
    pub cpu: Nanos,
    /// Time ready to run and without a core; zero, as the system does not count it.
    pub queued: Nanos,
}

impl ThreadCost {
    /// That of the calling thread.
    pub fn of_caller() -> Self {
        Self { cpu: Nanos::new(clock::thread_cpu()), queued: Nanos::default() }
    }
}

/// Lets the process's waits end within a millisecond; by default they may take up to 15.6 ms longer. Best effort.
pub fn sharpen_timers() {
    // SAFETY: the function takes any number of milliseconds.
    unsafe { timeBeginPeriod(1) };
}
