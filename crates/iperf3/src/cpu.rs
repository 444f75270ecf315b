//! CPU use of this process, which the ends of a test report to each other.

use linerate_sys::clock;
use std::fs;

/// Ticks of /proc per second, the same on all Linux hosts.
const TICKS_PER_S: f64 = 100.0;

/// CPU time of this process at one moment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CpuTime {
    at: u64,
    user_s: f64,
    system_s: f64,
}

/// Mean use of one core, in percent.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct CpuUse {
    pub(crate) user: f64,
    pub(crate) system: f64,
}

impl CpuTime {
    /// Reads the CPU time until now; zero if /proc cannot be read.
    pub(crate) fn now() -> Self {
        let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
        let (user_s, system_s) = times(&stat).unwrap_or_default();
        Self { at: clock::now(), user_s, system_s }
    }

    /// Returns the CPU use since `before`.
    pub(crate) fn since(self, before: Self) -> CpuUse {
        let seconds = (self.at.saturating_sub(before.at).max(1)) as f64 / 1e9;
        CpuUse {
            user: (self.user_s - before.user_s).max(0.0) / seconds * 100.0,
            system: (self.system_s - before.system_s).max(0.0) / seconds * 100.0,
        }
    }
}

/// Returns the seconds in user programs and in the kernel: fields 14 and 15 of proc_pid_stat(5).
///
/// The second field, a name in parentheses, may contain any characters.
fn times(stat: &str) -> Option<(f64, f64)> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some((user as f64 / TICKS_PER_S, system as f64 / TICKS_PER_S))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_after_any_name() {
        let stat = "7 (a) b c) S 1 2 3 4 5 6 7 8 9 10 250 50 0 0 20 0 1";
        assert_eq!(times(stat), Some((2.5, 0.5)));
        assert_eq!(times("7 (a"), None);
        let before = CpuTime { at: 0, user_s: 1.0, system_s: 1.0 };
        let after = CpuTime { at: 2_000_000_000, user_s: 2.0, system_s: 1.5 };
        assert_eq!(after.since(before), CpuUse { user: 50.0, system: 25.0 });
    }
}
