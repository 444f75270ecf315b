//! Threads by the kernel's number, so that another thread can read what they cost.

use crate::Error;

/// An engine thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineThread {
    /// Its name, as in `send 0`.
    pub name: String,
    /// The kernel's thread number.
    pub tid: i32,
    /// It sends data (or asks, in transactions); otherwise it receives (or answers).
    pub sends: bool,
}

/// The calling thread's number.
pub fn current_tid() -> i32 {
    nix::unistd::gettid().as_raw()
}

/// Lets the calling thread's sleeps end as exactly as the hardware's timers can; by default the kernel may add 50 us to
/// join wake-ups. Best effort: a kernel that refuses only costs precision.
pub fn sharpen_timers() {
    let _ = nix::sys::prctl::set_timerslack(1);
}

/// Puts the calling thread before all others of ordinary scheduling on its core (nice -20). Needs privilege.
pub fn go_first() -> Result<(), Error> {
    // SAFETY: the call takes three numbers; on Linux, 0 is the calling thread.
    if unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, -20) } != 0 {
        return Err(Error::last("setpriority", "the calling thread"));
    }
    Ok(())
}
