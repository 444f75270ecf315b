//! Monotonic time and precise waits.

#[cfg(target_os = "linux")]
use libc::adjtimex as adjust;
#[cfg(not(target_os = "linux"))]
use libc::ntp_adjtime as adjust;
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_gettime};
use std::hint;
use std::mem;
use std::time::{SystemTime, UNIX_EPOCH};

/// The clock of [`now`]. CLOCK_MONOTONIC of macOS has steps of 1 us, and CLOCK_UPTIME_RAW is what its timers go by.
#[cfg(target_os = "macos")]
const MONOTONIC: ClockId = ClockId::from_raw(libc::CLOCK_UPTIME_RAW);
/// The clock of [`now`].
#[cfg(not(target_os = "macos"))]
const MONOTONIC: ClockId = ClockId::CLOCK_MONOTONIC;

/// Now by CLOCK_MONOTONIC (CLOCK_UPTIME_RAW on macOS), nanoseconds. About 20 ns a call.
#[inline]
pub fn now() -> u64 {
    nanos(clock_gettime(MONOTONIC).expect("every system has a monotonic clock"))
}

/// Now since 1970, nanoseconds: to say when, never for how long.
pub fn unix_now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
}

/// When `at` on [`now`]'s clock is or was, nanoseconds since 1970.
pub fn unix_at(at: u64) -> u64 {
    unix_now().wrapping_add(at).wrapping_sub(now())
}

/// Largest error of CLOCK_REALTIME against UTC as the kernel estimates it, in nanoseconds (`maxerror` of adjtimex(2), ntp_adjtime(2)). Returns `None` if no
/// program synchronises the clock.
pub fn utc_error() -> Option<u64> {
    // SAFETY: `timex` is made of integers, for which all zeroes is a value.
    let mut state: libc::timex = unsafe { mem::zeroed() };
    // SAFETY: without `modes` the kernel only writes, within the live structure.
    let clock = unsafe { adjust(&raw mut state) };
    let is_synchronised = clock >= 0 && clock != libc::TIME_ERROR;
    is_synchronised.then(|| u64::try_from(state.maxerror).unwrap_or(0) * 1_000)
}

/// CPU time of the calling thread so far, nanoseconds.
pub fn thread_cpu() -> u64 {
    nanos(clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).expect("every system has CLOCK_THREAD_CPUTIME_ID"))
}

/// Sleeps until `at` on [`now`]'s clock; returns at once if that is past.
#[cfg(not(target_os = "macos"))]
pub fn sleep_until(at: u64) {
    use nix::time::{ClockNanosleepFlags, clock_nanosleep};
    let until = TimeSpec::new((at / 1_000_000_000) as i64, (at % 1_000_000_000) as i64);
    while clock_nanosleep(MONOTONIC, ClockNanosleepFlags::TIMER_ABSTIME, &until) == Err(nix::errno::Errno::EINTR) {}
}

/// Sleeps until `at` on [`now`]'s clock; returns at once if that is past. macOS may wake a sleeper late, to join wake-ups.
#[cfg(target_os = "macos")]
pub fn sleep_until(at: u64) {
    loop {
        match at.saturating_sub(now()) {
            0 => return,
            left => std::thread::sleep(std::time::Duration::from_nanos(left)),
        }
    }
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
