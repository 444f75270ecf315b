//! Counts of a path, and whether it kept up.

use super::collision_domain::HubPortCounts;
use linerate_model::{HostName, Message, message};
use linerate_units::{Nanos, Ratio};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Delay after which a frame that leaves is late, nanoseconds.
pub(crate) const LATE: u64 = 100_000;
/// Share of frames that may be late: the delay holds at the 99th percentile.
const LATE_SHARE: Ratio = Ratio::new(1, 100);
/// Fewer late frames are no share of anything.
const LATE_FRAMES: u64 = 10;

/// Counts of a path in the direction of one host.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirectionCounts {
    /// Frames that came for the host.
    pub arrived: u64,
    /// Frames that left to it, copies included.
    pub sent: u64,
    /// Lost as planted.
    pub lost: u64,
    /// Dropped because the queue was full.
    pub queue_full: u64,
    /// Dropped because their packets are larger than the MTU.
    pub too_large: u64,
    /// Left with one byte changed.
    pub corrupted: u64,
    /// Left twice.
    pub duplicated: u64,
    /// Frames that left after later ones.
    pub reordered: u64,
    /// Left with the mark "congestion experienced".
    pub marked: u64,
    /// Left too long after they were due: see [`PathCounts::late_after`].
    pub late: u64,
    /// Dropped because this program had no more memory for frames, or the kernel did not take them.
    pub unplanned: u64,
}

/// Counts of a path so far.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathCounts {
    /// By the host to which frames go.
    pub to: BTreeMap<HostName, DirectionCounts>,
    /// By the host at the port of a hub; empty for a path.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub from: BTreeMap<HostName, HubPortCounts>,
    /// Frames of any direction that came while the path had no room to receive them.
    pub missed: u64,
    /// The longest that a frame left after it was due.
    pub latest: Nanos,
    /// Delay after which a frame that leaves is late.
    pub late_after: Nanos,
}

impl DirectionCounts {
    fn since(self, earlier: &Self) -> Self {
        Self {
            arrived: self.arrived - earlier.arrived,
            sent: self.sent - earlier.sent,
            lost: self.lost - earlier.lost,
            queue_full: self.queue_full - earlier.queue_full,
            too_large: self.too_large - earlier.too_large,
            corrupted: self.corrupted - earlier.corrupted,
            duplicated: self.duplicated - earlier.duplicated,
            reordered: self.reordered - earlier.reordered,
            marked: self.marked - earlier.marked,
            late: self.late - earlier.late,
            unplanned: self.unplanned - earlier.unplanned,
        }
    }
}

impl PathCounts {
    /// Returns the counts since `earlier`; the longest delay is that of all its time.
    pub fn since(mut self, earlier: &Self) -> Self {
        for (host, counts) in &mut self.to {
            *counts = counts.since(&earlier.to.get(host).copied().unwrap_or_default());
        }
        for (host, counts) in &mut self.from {
            *counts = counts.since(&earlier.from.get(host).copied().unwrap_or_default());
        }
        self.missed -= earlier.missed;
        self
    }

    /// Returns a warning if the path did not do what was planted.
    pub fn warning(&self) -> Option<Message> {
        let sum = |of: fn(&DirectionCounts) -> u64| self.to.values().map(of).sum::<u64>();
        let (sent, late) = (sum(|counts| counts.sent), sum(|counts| counts.late));
        let unplanned = sum(|counts| counts.unplanned) + self.missed;
        let often = late > LATE_FRAMES && Ratio::new(late, sent) > LATE_SHARE;
        let late = often.then(|| {
            message!(
                "bench-late",
                "{late} of {sent} frames left more than {late_after} late, up to {latest}",
                late,
                sent,
                late_after = self.late_after,
                latest = self.latest
            )
        });
        let lost = (unplanned > 0).then(|| {
            message!("bench-lost", "{frames} frames were lost outside the planted limits", frames = unplanned)
        });
        let problems = both(late.into_iter().chain(lost))?;
        Some(message!(
            "bench-path",
            "the path did not keep up: {problems}; do not rely on this result, give the machine less to do",
            problems
        ))
    }
}

/// Joins several problems to one text. Returns `None` if there are no problems.
pub(crate) fn both(problems: impl Iterator<Item = Message>) -> Option<Message> {
    problems.reduce(|first, further| message!("bench-and", "{first}, and {further}", first, further))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(sent: u64, late: u64, unplanned: u64, missed: u64) -> PathCounts {
        let to = DirectionCounts { sent, late, unplanned, ..DirectionCounts::default() };
        PathCounts {
            to: [(HostName::from("b"), to)].into(),
            missed,
            latest: Nanos::from_millis(3),
            late_after: Nanos::new(LATE),
            ..PathCounts::default()
        }
    }

    #[test]
    fn a_path_that_kept_up_says_nothing() {
        assert_eq!(PathCounts::default().warning(), None);
        assert_eq!(counts(1_000, 10, 0, 0).warning(), None);
        assert_eq!(counts(5, 2, 0, 0).warning(), None, "too few to judge");
    }

    #[test]
    fn a_path_that_did_not_keep_up_says_how() {
        let late = counts(1_000, 11, 0, 0).warning().expect("late");
        assert!(late.contains("11 of 1000 frames left more than 100 us late, up to 3 ms"), "{late}");
        for lost in [counts(1_000, 0, 2, 0), counts(1_000, 0, 1, 1)] {
            let lost = lost.warning().expect("lost");
            assert!(lost.contains("2 frames were lost") && !lost.contains("late"), "{lost}");
        }
    }

    #[test]
    fn counts_are_those_since_an_earlier_look() {
        let since = counts(1_000, 11, 3, 5).since(&counts(900, 10, 3, 4));
        assert_eq!(since, counts(100, 1, 0, 1));
    }
}
