//! The CPU quota of this process's control group, and how often it was used up.
//!
//! Version 2 keeps it in `cpu.max` and `cpu.stat` (Documentation/admin-guide/cgroup-v2.rst), version 1 in
//! `cpu.cfs_quota_us`, `cpu.cfs_period_us` and `cpu.stat` of the hierarchy that has the cpu controller
//! (Documentation/scheduler/sched-bwc.rst). Every group above holds too: the tightest counts.

use crate::growth::growth;
use linerate_model::CpuQuota;
use linerate_sys::cgroup;
use std::fs;
use std::path::{Path, PathBuf};

/// The groups with a quota that this process is under.
pub(crate) struct Quotas(Vec<PathBuf>);

/// Number of times that each quota was used up.
#[derive(Debug, Clone, Default)]
pub(crate) struct QuotaCounts(Vec<Option<CpuQuota>>);

impl Quotas {
    pub(crate) fn open() -> Self {
        Self(cgroup::groups("cpu").into_iter().filter(|group| cores(group).is_some()).collect())
    }

    pub(crate) fn read(&self) -> QuotaCounts {
        QuotaCounts(self.0.iter().map(|group| counts(group)).collect())
    }
}

impl QuotaCounts {
    /// Returns the difference from `before` of the group that was throttled most. `None` without a quota.
    pub(crate) fn since(&self, before: &Self) -> Option<CpuQuota> {
        let both = self.0.iter().zip(&before.0).filter_map(|(now, then)| Some((now.as_ref()?, then.as_ref()?)));
        let passed = both.map(|(now, then)| CpuQuota {
            cores: now.cores,
            periods: growth(then.periods, now.periods),
            throttled: growth(then.throttled, now.throttled),
        });
        passed.max_by_key(|quota| quota.throttled)
    }
}

/// Cores' worth of time that a group allows; none if it sets no limit.
fn cores(group: &Path) -> Option<f64> {
    let number = |name: &str| fs::read_to_string(group.join(name)).ok()?.trim().parse::<f64>().ok();
    let (quota, period) = match fs::read_to_string(group.join("cpu.max")) {
        Ok(text) => {
            let (quota, period) = text.trim().split_once(' ')?;
            (quota.parse().ok()?, period.parse().ok()?)
        }
        Err(_) => (number("cpu.cfs_quota_us")?, number("cpu.cfs_period_us")?),
    };
    (quota > 0.0 && period > 0.0).then(|| quota / period)
}

fn counts(group: &Path) -> Option<CpuQuota> {
    let text = fs::read_to_string(group.join("cpu.stat")).ok()?;
    let count = |name| text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
    Some(CpuQuota { cores: cores(group)?, periods: count("nr_periods ")?, throttled: count("nr_throttled ")? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_either_version_writes() {
        let group = tempfile::tempdir().expect("a directory");
        let write = |name: &str, text: &str| fs::write(group.path().join(name), text).expect(name);
        assert_eq!(counts(group.path()), None);
        write("cpu.stat", "nr_periods 20\nnr_throttled 12\nthrottled_time 7\n");
        write("cpu.cfs_period_us", "100000\n");
        write("cpu.cfs_quota_us", "-1\n");
        assert_eq!(counts(group.path()), None);
        write("cpu.cfs_quota_us", "20000\n");
        let found = counts(group.path()).expect("version 1");
        assert_eq!(found, CpuQuota { cores: 0.2, periods: 20, throttled: 12 });
        write("cpu.max", "max 100000\n");
        assert_eq!(counts(group.path()), None);
        write("cpu.max", "150000 100000\n");
        assert_eq!(counts(group.path()).expect("version 2").cores, 1.5);
        let later = QuotaCounts(vec![None, Some(CpuQuota { periods: 30, throttled: 22, ..found })]);
        let passed = later.since(&QuotaCounts(vec![None, Some(found)])).expect("a quota");
        assert_eq!((passed.periods, passed.throttled), (10, 10));
    }
}
