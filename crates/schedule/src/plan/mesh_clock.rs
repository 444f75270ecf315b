//! The clock of a mesh: it runs within the mesh's hours only.

use super::order::Moment;
use crate::file::{DAY_S, Hours};

/// Time of a mesh in milliseconds, and the period of its rounds.
///
/// Due times are even on this clock, so that no slot is due outside the hours, and hours do not make a pair miss its turn.
/// A period longer than the hours of a day is shortened in proportion: `every = "24h"` is once a night.
#[derive(Debug, Clone)]
pub(super) struct MeshClock {
    hours: Hours,
    period_ms: u64,
}

impl MeshClock {
    pub(super) fn new(hours: Hours, every_ms: u64) -> Self {
        let hours_ms = hours.seconds() * 1000;
        let day_ms = DAY_S * 1000;
        let period_ms = if every_ms <= hours_ms {
            every_ms
        } else if every_ms <= day_ms {
            hours_ms
        } else {
            (u128::from(every_ms) * u128::from(hours_ms) / u128::from(day_ms)) as u64
        };
        Self { hours, period_ms: period_ms.max(1) }
    }

    /// Returns the time in which each pair has its turn.
    pub(super) fn period_ms(&self) -> u64 {
        self.period_ms
    }

    /// Returns the time of the mesh at a moment. Outside the hours it does not advance.
    pub(super) fn at(&self, now: Moment) -> u64 {
        let local = self.local_s(now);
        let second = local % DAY_S;
        let today: u64 = self.hours.spans().iter().map(|(begin, end)| second.clamp(*begin, *end) - begin).sum();
        (local / DAY_S * self.hours.seconds() + today) * 1000
    }

    /// Returns the Unix time, in seconds, of a time of the mesh.
    pub(super) fn unix_s(&self, mesh_ms: u64, utc_offset_s: i32) -> u64 {
        let seconds = mesh_ms / 1000;
        let mut rest = seconds % self.hours.seconds();
        let mut second = 0;
        for (begin, end) in self.hours.spans() {
            if rest < end - begin {
                second = begin + rest;
                break;
            }
            rest -= end - begin;
        }
        let local = seconds / self.hours.seconds() * DAY_S + second;
        if self.is_all_day() { local } else { local.saturating_add_signed(-i64::from(utc_offset_s)) }
    }

    /// Returns whether a moment is within the hours.
    pub(super) fn is_open(&self, now: Moment) -> bool {
        self.hours.contains(self.local_s(now) % DAY_S)
    }

    /// Returns the Unix time at which the hours begin, `now` if they have begun.
    pub(super) fn opens(&self, now: Moment) -> u64 {
        if self.is_open(now) {
            return now.unix_s;
        }
        self.unix_s(self.at(now), now.utc_offset_s).max(now.unix_s)
    }

    /// Returns the seconds until the hours end, counted from a moment within them. `None` if they do not end.
    pub(super) fn left_s(&self, at: Moment) -> Option<u64> {
        if self.is_all_day() {
            return None;
        }
        let second = self.local_s(at) % DAY_S;
        let spans = self.hours.spans();
        let end = spans.iter().find(|(begin, end)| (*begin..*end).contains(&second)).map(|span| span.1)?;
        let after_midnight = if end == DAY_S && spans[0].0 == 0 { spans[0].1 } else { 0 };
        Some(end + after_midnight - second)
    }

    fn is_all_day(&self) -> bool {
        self.hours.seconds() == DAY_S
    }

    /// Returns local time in seconds. The whole day needs no local time, so that daylight saving moves no slot.
    fn local_s(&self, now: Moment) -> u64 {
        if self.is_all_day() { now.unix_s } else { now.local_s() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn due_times_are_within_hours(begin in 0u64..1440, length in 1u64..1440, mesh_s in 0u64..10_000_000_000, offset in -720i32..720) {
            let end = (begin + length) % 1440;
            let text = format!("{:02}:{:02}-{:02}:{:02}", begin / 60, begin % 60, end / 60, end % 60);
            let clock = MeshClock::new(text.parse().expect("hours"), 1000);
            let unix_s = clock.unix_s(mesh_s * 1000, offset * 60);
            let moment = Moment { unix_s, utc_offset_s: offset * 60 };
            prop_assume!(unix_s > DAY_S);
            prop_assert!(clock.is_open(moment));
            prop_assert_eq!(clock.at(moment), mesh_s * 1000);
            prop_assert_eq!(clock.opens(moment), unix_s);
        }
    }

    #[test]
    fn a_long_period_is_once_a_night() {
        let night: Hours = "20:00-06:00".parse().expect("hours");
        let period = |hours: u64| MeshClock::new(night.clone(), hours * 3_600_000).period_ms() / 3_600_000;
        assert_eq!([6, 10, 12, 24, 48].map(period), [6, 10, 10, 10, 20]);
    }
}
