//! What this process takes of the processors, as ends of a test tell each other.

use linerate_sys::clock;
use std::fs;

/// Ticks of /proc in a second: Linux tells user programs so many whatever it counts in itself.
const TICKS_PER_S: f64 = 100.0;

/// The processor time of this process at one moment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CpuTime {
    at: u64,
    user_s: f64,
    system_s: f64,
}

/// Percent of one core, on average of a time.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct CpuUse {
    pub(crate) user: f64,
    pub(crate) system: f64,
}

impl CpuTime {
    /// What was taken until now; nothing where /proc does not tell.
    pub(crate) fn now() -> Self {
        let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
        let (user_s, system_s) = times(&stat).unwrap_or_default();
        Self { at: clock::now(), user_s, system_s }
    }

    /// What was taken since `before`.
    pub(crate) fn since(self, before: Self) -> CpuUse {
        let seconds = (self.at.saturating_sub(before.at).max(1)) as f64 / 1e9;
        let percent = |after: f64, before: f64| (after - before).max(0.0) / seconds * 100.0;
        CpuUse { user: percent(self.user_s, before.user_s), system: percent(self.system_s, before.system_s) }
    }
}

/// Seconds in user programs and in the kernel: fields 14 and 15 of proc_pid_stat(5). The second field, a name in parentheses, may hold
/// anything.
fn times(stat: &str) -> Option<(f64, f64)> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace().skip(11);
    let mut seconds = || Some(fields.next()?.parse::<u64>().ok()? as f64 / TICKS_PER_S);
    Some((seconds()?, seconds()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_behind_any_name() {
        let stat = "7 (a) b c) S 1 2 3 4 5 6 7 8 9 10 250 50 0 0 20 0 1";
        assert_eq!(times(stat), Some((2.5, 0.5)));
        assert_eq!(times("7 (a"), None);
        let before = CpuTime { at: 0, user_s: 1.0, system_s: 1.0 };
        let after = CpuTime { at: 2_000_000_000, user_s: 2.0, system_s: 1.5 };
        assert_eq!(after.since(before), CpuUse { user: 50.0, system: 25.0 });
    }
}
