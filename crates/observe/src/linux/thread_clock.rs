//! CPU clocks of threads: exact to the moment, running or not. How long a thread waited for a core is the scheduler's count (`schedstat`,
//! Documentation/scheduler/sched-stats.rst).

use linerate_sys::thread::queued;
use linerate_units::Nanos;
use nix::time::{ClockId, clock_gettime};
use std::fs;

/// Returns the CPU time so far of a thread of this process. `None` if it has ended.
pub(crate) fn cpu_of(tid: i32) -> Option<Nanos> {
    time(cpu_clock(tid))
}

/// Returns the CPU time so far of this process.
pub(crate) fn process_cpu() -> Option<Nanos> {
    time(ClockId::CLOCK_PROCESS_CPUTIME_ID)
}

/// Returns the time that a thread waited for a core so far. `None` if it has ended, or the kernel does not count it.
pub(crate) fn waited(tid: i32) -> Option<Nanos> {
    let counts = fs::read_to_string(format!("/proc/self/task/{tid}/schedstat")).ok()?;
    queued(&counts)
}

/// The CPU clock of a thread of this process: MAKE_THREAD_CPUCLOCK(tid, CPUCLOCK_SCHED) of linux/posix-timers_types.h.
fn cpu_clock(tid: i32) -> ClockId {
    const PER_THREAD: i32 = 4;
    const SCHED: i32 = 2;
    ClockId::from_raw((!tid << 3) | PER_THREAD | SCHED)
}

fn time(clock: ClockId) -> Option<Nanos> {
    let time = clock_gettime(clock).ok()?;
    Some(Nanos::new(time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64))
}
