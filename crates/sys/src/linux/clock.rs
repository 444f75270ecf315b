//! Monotonic time and precise waits.

use nix::errno::Errno;
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, ClockNanosleepFlags, clock_gettime, clock_nanosleep};
use std::hint;
use std::mem;
use std::time::{SystemTime, UNIX_EPOCH};

/// Now by CLOCK_MONOTONIC, nanoseconds. About 20 ns a call.
#[inline]
pub fn now() -> u64 {
    nanos(clock_gettime(ClockId::CLOCK_MONOTONIC).expect("every Linux has CLOCK_MONOTONIC"))
}

/// Now since 1970, nanoseconds: to say when, never for how long.
pub fn unix_now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
}

/// When `at` on [`now`]'s clock is or was, nanoseconds since 1970.
pub fn unix_at(at: u64) -> u64 {
    unix_now().wrapping_add(at).wrapping_sub(now())
}

/// Largest error of CLOCK_REALTIME against UTC as the kernel estimates it, in nanoseconds (`maxerror` of adjtimex(2)). Returns `None` if no
/// program synchronises the clock.
pub fn utc_error() -> Option<u64> {
    // SAFETY: `timex` is made of integers, for which all zeroes is a value.
    let mut state: libc::timex = unsafe { mem::zeroed() };
    // SAFETY: without `modes` the kernel only writes, within the live structure.
    let clock = unsafe { libc::adjtimex(&raw mut state) };
    let is_synchronised = clock >= 0 && clock != libc::TIME_ERROR;
    is_synchronised.then(|| u64::try_from(state.maxerror).unwrap_or(0) * 1_000)
}

/// CPU time of the calling thread so far, nanoseconds.
pub fn thread_cpu() -> u64 {
    nanos(clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).expect("every Linux has CLOCK_THREAD_CPUTIME_ID"))
}

/// Sleeps until `at` on [`now`]'s clock; returns at once if that is past.
pub fn sleep_until(at: u64) {
    let until = TimeSpec::new((at / 1_000_000_000) as i64, (at % 1_000_000_000) as i64);
    while clock_nanosleep(ClockId::CLOCK_MONOTONIC, ClockNanosleepFlags::TIMER_ABSTIME, &until) == Err(Errno::EINTR) {}
}

/// Waits until `at` without giving up the core; for the last microseconds before a deadline.
pub fn spin_until(at: u64) {
    while now() < at {
        hint::spin_loop();
    }
}

fn nanos(time: TimeSpec) -> u64 {
    time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_has_the_same_date_before_and_after_it() {
        let at = now();
        for moment in [at + 600_000_000_000, at - 1_000_000] {
            let off = unix_at(moment).wrapping_sub(unix_now()).wrapping_sub(moment.wrapping_sub(now())).cast_signed();
            // The test may be held up between two looks at the clocks. A date of the wrong moment is ten minutes off.
            assert!(off.abs() < 60_000_000_000, "{off} ns off");
        }
    }

    #[test]
    fn waits_end_at_or_after_their_time() {
        let at = now() + 2_000_000;
        sleep_until(at - 500_000);
        spin_until(at);
        assert!(now() >= at);
        // What is past is not waited for.
        sleep_until(at - 1_000_000_000);
        spin_until(at - 1_000_000_000);
    }
}
