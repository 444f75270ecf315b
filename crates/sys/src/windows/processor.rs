//! Times of the cores.

use super::status::check_nt;
use crate::Error;
use crate::core_time::CoreTime;
use linerate_units::Nanos;
use std::mem;
use std::ptr;
use windows_sys::Wdk::System::SystemInformation::{NtQuerySystemInformation, SystemProcessorPerformanceInformation};

/// Cores of a processor group at most.
const MAX_CORES: usize = 64;
/// Unit of the system's times, nanoseconds.
const TICK_NS: u64 = 100;

/// SYSTEM_PROCESSOR_PERFORMANCE_INFORMATION of winternl.h. Its reserved fields are documented by the Windows driver kit.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
struct Performance {
    idle: i64,
    /// With idle time, deferred procedure calls and interrupts.
    kernel: i64,
    user: i64,
    deferred: i64,
    interrupt: i64,
    interrupts: u32,
}

/// Reads the times of the cores in the processor group of the calling thread, in the order of their numbers.
///
/// # Errors
/// The call fails.
pub fn core_times() -> Result<Vec<CoreTime>, Error> {
    let mut cores = [Performance::default(); MAX_CORES];
    let mut bytes = 0;
    // SAFETY: the system writes at most `size_of_val(&cores)` bytes into the live array, whose elements are made of integers, and the
    // number of bytes into a live integer.
    let status = unsafe {
        NtQuerySystemInformation(
            SystemProcessorPerformanceInformation,
            ptr::from_mut(&mut cores).cast(),
            mem::size_of_val(&cores) as u32,
            &raw mut bytes,
        )
    };
    check_nt("NtQuerySystemInformation", status)?;
    let count = bytes as usize / mem::size_of::<Performance>();
    Ok(cores.iter().take(count).map(Performance::time).collect())
}

impl Performance {
    fn time(&self) -> CoreTime {
        let time = |ticks: i64| u64::try_from(ticks).unwrap_or(0).saturating_mul(TICK_NS);
        let Self { idle, kernel, user, deferred, interrupt, .. } = *self;
        let others = time(idle) + time(deferred) + time(interrupt);
        CoreTime {
            user: Nanos::new(time(user)),
            kernel: Nanos::new(time(kernel).saturating_sub(others)),
            deferred: Nanos::new(time(deferred)),
            interrupt: Nanos::new(time(interrupt)),
            idle: Nanos::new(time(idle)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    #[test]
    fn kernel_time_is_without_idle_time_and_interrupts() {
        let counts = Performance { idle: 500, kernel: 800, user: 20, deferred: 30, interrupt: 70, interrupts: 9 };
        let core = counts.time();
        assert_eq!([core.kernel, core.deferred, core.interrupt].map(Nanos::get), [20_000, 3_000, 7_000]);
    }

    #[test]
    fn time_passes_on_every_core() {
        let before = core_times().expect("the times");
        assert!(!before.is_empty());
        let all = |core: &CoreTime| core.user.get() + core.kernel.get() + core.idle.get();
        let has_passed = || {
            let after = core_times().expect("the times");
            after.iter().zip(&before).all(|(after, before)| all(after) > all(before))
        };
        let began = Instant::now();
        while !has_passed() {
            assert!(began.elapsed() < Duration::from_secs(60), "no time passes on a core");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}
