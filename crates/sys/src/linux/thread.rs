//! Threads by the kernel's number, so that another thread can read what they cost.

pub use crate::engine_thread::EngineThread;
use crate::{Error, HeldFile, clock};
use linerate_units::Nanos;
use std::fs;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The calling thread's number.
pub fn current_tid() -> i32 {
    nix::unistd::gettid().as_raw()
}

/// What a thread has cost so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ThreadCost {
    /// Time on a core.
    pub cpu: Nanos,
    /// Time ready to run and without a core; zero where the kernel does not count it (CONFIG_SCHED_INFO).
    pub queued: Nanos,
}

impl ThreadCost {
    /// That of the calling thread.
    pub fn of_caller() -> Self {
        let counts = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
        Self { cpu: Nanos::new(clock::thread_cpu()), queued: queued(&counts).unwrap_or_default() }
    }
}

/// How long a thread had no core, by its `schedstat` (Documentation/scheduler/sched-stats.rst): the second of three numbers,
/// in nanoseconds.
pub fn queued(counts: &str) -> Option<Nanos> {
    counts.split_ascii_whitespace().nth(1)?.parse().ok().map(Nanos::new)
}

/// Lets the calling thread's sleeps end as exactly as the hardware's timers can; by default the kernel may add 50 us to
/// join wake-ups. Best effort: a kernel that refuses only costs precision.
pub fn sharpen_timers() {
    let _ = nix::sys::prctl::set_timerslack(1);
}

/// The calling thread.
pub const SELF: u32 = 0;

/// Puts a thread, by its id, before all others of ordinary scheduling on its core (nice -20). It is for threads that sleep most of
/// the time; one that keeps a core busy takes [`SessionFirst`]. Needs privilege.
pub fn go_first(thread: u32) -> Result<(), Error> {
    order_thread(thread, -20)
}

/// Gives a thread, by its id, a nice value.
fn order_thread(thread: u32, nice: i32) -> Result<(), Error> {
    // SAFETY: the call takes three numbers.
    if unsafe { libc::setpriority(libc::PRIO_PROCESS, thread, nice) } != 0 {
        return Err(Error::last("setpriority", format!("thread {thread}")));
    }
    Ok(())
}

/// Puts the calling thread before all of ordinary scheduling on its core, also before those of other sessions and control
/// groups (SCHED_FIFO, sched(7)). It must sleep now and then, or others get no more than the kernel keeps for them. Needs
/// privilege.
pub fn go_before_all() -> Result<(), Error> {
    // SAFETY: sched_param is plain data for which all zeros is valid.
    let mut wish: libc::sched_param = unsafe { std::mem::zeroed() };
    wish.sched_priority = 1;
    // SAFETY: the kernel reads one sched_param, which outlives the call.
    if unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, &raw const wish) } != 0 {
        return Err(Error::last("sched_setscheduler(SCHED_FIFO)", "the calling thread"));
    }
    Ok(())
}

/// Where a session is put before others.
static AUTOGROUP: HeldFile = HeldFile::new("/proc/self/autogroup");

/// Opens what [`SessionFirst`] writes: for a process that soon may open it no more.
pub fn hold_session_order() {
    AUTOGROUP.hold();
}

/// The nice value of a thread that keeps a core busy, and of its session: it has nine times the time of another that wants the core
/// too (`sched_prio_to_weight` in kernel/sched/core.c), which waited for up to 88 ms. With -20 that was up to 724 ms (Linux 6.18),
/// also for threads of the kernel that may run on no other core.
const BUSY: i32 = -10;

/// Puts a thread that keeps a core busy before others, and its process's session too for as long as this is held. Sessions count where
/// the kernel shares its cores between them first (autogroups, sched(7)); there the order of threads only counts within one. The session
/// keeps its order unless the process leads it: what others run in it would go first too.
#[derive(Debug)]
pub struct SessionFirst(());

/// The number of [`SessionFirst`] that are held.
static SESSION_FIRST: Mutex<u32> = Mutex::new(0);

impl SessionFirst {
    /// Puts the calling thread and its session first. Needs privilege.
    pub fn new() -> Result<Self, Error> {
        order_thread(SELF, BUSY)?;
        let mut count = session_first();
        if *count == 0 {
            order_session(&BUSY.to_string())?;
        }
        *count += 1;
        Ok(Self(()))
    }
}

impl Drop for SessionFirst {
    fn drop(&mut self) {
        let mut count = session_first();
        *count -= 1;
        if *count == 0 {
            // What could be put first can be put back.
            let _ = order_session("0");
        }
    }
}

fn session_first() -> MutexGuard<'static, u32> {
    SESSION_FIRST.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Gives this process's session a nice value, if the process leads it.
fn order_session(nice: &str) -> Result<(), Error> {
    let leads = nix::unistd::getsid(None).is_ok_and(|session| session == nix::unistd::getpid());
    if !leads {
        return Ok(());
    }
    AUTOGROUP.write(nice.as_bytes()).map_err(|error| Error::new("write", AUTOGROUP.path(), error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_for_a_core_is_the_second_number() {
        assert_eq!(queued("22108 17 3\n"), Some(Nanos::new(17)));
        assert_eq!(queued("22108"), None);
        assert_eq!(queued(""), None);
    }
}
