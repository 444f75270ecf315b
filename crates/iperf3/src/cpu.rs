//! CPU use of this process, which the ends of a test report to each other.

use linerate_sys::clock;
use linerate_sys::cpu_time::{ProcessTime, of_process};
use linerate_units::Nanos;

/// CPU time of this process at one moment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CpuTime {
    at: u64,
    time: ProcessTime,
}

/// Mean use of one core, in percent.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct CpuUse {
    pub(crate) user: f64,
    pub(crate) system: f64,
}

impl CpuTime {
    /// Reads the CPU time until now; zero if the system does not report it.
    pub(crate) fn now() -> Self {
        Self { at: clock::now(), time: of_process().unwrap_or_default() }
    }

    /// Returns the CPU use since `before`.
    pub(crate) fn since(self, before: Self) -> CpuUse {
        let elapsed = self.at.saturating_sub(before.at).max(1) as f64;
        let percent = |now: Nanos, then: Nanos| now.get().saturating_sub(then.get()) as f64 / elapsed * 100.0;
        CpuUse {
            user: percent(self.time.user, before.time.user),
            system: percent(self.time.system, before.time.system),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn use_is_the_share_of_one_core() {
        let at = |at, user_ms: u64, system_ms: u64| {
            let [user, system] = [user_ms, system_ms].map(|ms| Nanos::new(ms * 1_000_000));
            CpuTime { at, time: ProcessTime { user, system } }
        };
        let (before, after) = (at(0, 1_000, 1_000), at(2_000_000_000, 2_000, 1_500));
        assert_eq!(after.since(before), CpuUse { user: 50.0, system: 25.0 });
    }
}
