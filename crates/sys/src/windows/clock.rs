//! Monotonic time and precise waits.

use crate::cpu_time;
use linerate_units::Nanos;
use std::hint;
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use windows_sys::Win32::System::Performance::{QueryPerformanceCounter, QueryPerformanceFrequency};

const SECOND_NS: u64 = 1_000_000_000;

/// Last part of a wait, which [`sleep_until`] spins. High-resolution waitable timers have steps of about 0.5 ms.
const SPIN_TAIL_NS: u64 = 600_000;

/// Time by QueryPerformanceCounter, nanoseconds. It ticks with 10 MHz on Windows 10 and later, so that a step is 100 ns.
#[inline]
pub fn now() -> u64 {
    let mut ticks = 0;
    // SAFETY: the call writes one i64, which outlives it. It does not fail on Windows XP and later.
    unsafe { QueryPerformanceCounter(&raw mut ticks) };
    let ticks = ticks.cast_unsigned();
    let frequency = frequency();
    ticks / frequency * SECOND_NS + ticks % frequency * SECOND_NS / frequency
}

/// Ticks of QueryPerformanceCounter per second, fixed at boot.
fn frequency() -> u64 {
    static FREQUENCY: OnceLock<u64> = OnceLock::new();
    *FREQUENCY.get_or_init(|| {
        let mut frequency = 0;
        // SAFETY: the call writes one i64, which outlives it. It does not fail on Windows XP and later.
        unsafe { QueryPerformanceFrequency(&raw mut frequency) };
        frequency.cast_unsigned().max(1)
    })
}

/// Time since 1970, nanoseconds (GetSystemTimePreciseAsFileTime, by the standard library). It may step: use [`now`] for durations.
pub fn unix_now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
}

/// Converts `at` on [`now`]'s clock to nanoseconds since 1970.
pub fn unix_at(at: u64) -> u64 {
    unix_now().wrapping_add(at).wrapping_sub(now())
}

/// Largest error of the wall clock against UTC, in nanoseconds. Always `None`: Windows has no estimate of it that programs can read.
pub fn utc_error() -> Option<u64> {
    None
}

/// CPU time of the calling thread so far, nanoseconds (GetThreadTimes). Windows counts it in timer ticks, which last up to 15.6 ms.
pub fn thread_cpu() -> u64 {
    cpu_time::of_caller().map_or(0, Nanos::get)
}

/// Waits until `at` on [`now`]'s clock; returns at once if that is past. The standard library sleeps by a high-resolution waitable
/// timer where Windows has them (Windows 10 1803), and by Sleep elsewhere. The last 0.6 ms are spun.
pub fn sleep_until(at: u64) {
    loop {
        match at.saturating_sub(now()) {
            0 => return,
            left if left > SPIN_TAIL_NS => thread::sleep(Duration::from_nanos(left - SPIN_TAIL_NS)),
            _ => return spin_until(at),
        }
    }
}

/// Waits until `at` without giving up the core; for the last microseconds before a deadline.
pub fn spin_until(at: u64) {
    while now() < at {
        hint::spin_loop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moment_has_the_same_date_before_and_after_it() {
        let at = now();
        for moment in [at + 600_000_000_000, at.saturating_sub(1_000_000)] {
            let off = unix_at(moment).wrapping_sub(unix_now()).wrapping_sub(moment.wrapping_sub(now())).cast_signed();
            assert!(off.abs() < 60_000_000_000, "{off} ns off");
        }
    }

    #[test]
    fn waits_end_at_or_after_their_time() {
        let at = now() + 5_000_000;
        sleep_until(at - 500_000);
        spin_until(at);
        assert!(now() >= at);
        sleep_until(at - 4_000_000);
        spin_until(at - 4_000_000);
    }

    #[test]
    fn busy_thread_uses_processor_time() {
        let (before, until) = (thread_cpu(), now() + 60_000_000_000);
        while thread_cpu() == before && now() < until {}
        assert!(thread_cpu() > before);
    }
}
