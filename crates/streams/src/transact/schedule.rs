//! When an open loop's requests are due.

use super::LATE_NS;
use crate::pace::Pace;
use linerate_model::{Arrivals, Offered, TransactSpec};
use linerate_units::FrameRate;
use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};

/// The due times of one flow, one after another.
pub(crate) struct Schedule {
    due: u64,
    kind: Kind,
}

enum Kind {
    Even { pace: Pace, index: u64 },
    Poisson { mean_ns: f64, at_ns: f64, start_ns: u64, random: SmallRng },
}

impl Schedule {
    /// The share of flow `flow` from `start_ns` on; none for a closed loop.
    pub(crate) fn new(spec: &TransactSpec, start_ns: u64, flow: u16) -> Option<Self> {
        let rate = spec.rate?.get().max(1);
        let kind = match spec.arrivals {
            Arrivals::Even => {
                let offered = Offered::MessagesPerS(FrameRate::per_second(rate));
                Kind::Even { pace: Pace::new(offered, 1, start_ns, flow, spec.flows), index: 0 }
            }
            Arrivals::Poisson => Kind::Poisson {
                mean_ns: 1e9 * f64::from(spec.flows) / rate as f64,
                at_ns: 0.0,
                start_ns,
                random: SmallRng::seed_from_u64(rand::random()),
            },
        };
        let mut schedule = Self { due: start_ns, kind };
        match &schedule.kind {
            Kind::Even { pace, .. } => schedule.due = pace.due(0),
            Kind::Poisson { .. } => schedule.advance(),
        }
        Some(schedule)
    }

    /// When the next request is due.
    #[inline]
    pub(crate) fn due(&self) -> u64 {
        self.due
    }

    /// Whether there is more to send at `now` in a window that closes at `close`.
    #[inline]
    pub(crate) fn goes_on(&self, now: u64, close: u64) -> bool {
        self.due < close && now < close + LATE_NS
    }

    /// Goes on to the one after.
    #[inline]
    pub(crate) fn advance(&mut self) {
        self.due = match &mut self.kind {
            Kind::Even { pace, index } => {
                *index += 1;
                pace.due(*index)
            }
            Kind::Poisson { mean_ns, at_ns, start_ns, random } => {
                // The inverse of the exponential distribution; 1 - u is never 0.
                *at_ns -= (1.0 - random.random::<f64>()).ln() * *mean_ns;
                *start_ns + *at_ns as u64
            }
        };
    }

    /// How many of the requests still held are due in `from..until`. Counted by arithmetic, for they may be billions; of
    /// random arrivals that were never drawn, the mean counts.
    pub(crate) fn left_within(&self, from: u64, until: u64) -> u64 {
        match &self.kind {
            Kind::Even { pace, index } => {
                let before = pace.due_by(from.saturating_sub(1));
                pace.due_by(until.saturating_sub(1)).saturating_sub(before.max(*index))
            }
            Kind::Poisson { .. } if self.due >= until => 0,
            Kind::Poisson { mean_ns, .. } => {
                let after = ((until - self.due.max(from)) as f64 / mean_ns).round() as u64;
                u64::from(self.due >= from) + after
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_model::Transport;
    use linerate_units::OpRate;

    fn spec(arrivals: Arrivals) -> TransactSpec {
        let rate = Some(OpRate::per_second(20_000));
        TransactSpec { flows: 2, rate, arrivals, ..TransactSpec::plain(Transport::Tcp) }
    }

    #[test]
    fn what_is_left_is_counted_without_being_drawn() {
        for (from, until) in [(5, 1_000_000_005), (300_000_000, 1_000_000_000), (300_000_001, 1_000_000_001)] {
            for (arrivals, tolerance) in [(Arrivals::Even, 0), (Arrivals::Poisson, 1_000)] {
                for taken in [0, 1, 5_000, 20_000] {
                    let mut schedule = Schedule::new(&spec(arrivals), 5, 1).expect("an open loop");
                    (0..taken).for_each(|_| schedule.advance());
                    let counted = schedule.left_within(from, until);
                    let mut walked = 0;
                    while schedule.due() < until {
                        walked += u64::from(schedule.due() >= from);
                        schedule.advance();
                    }
                    assert!(counted.abs_diff(walked) <= tolerance, "{arrivals:?} {taken}: {counted}, {walked}");
                }
            }
        }
    }

    #[test]
    fn both_kinds_keep_the_rate() {
        for (arrivals, tolerance) in [(Arrivals::Even, 0), (Arrivals::Poisson, 3_000)] {
            let mut schedule = Schedule::new(&spec(arrivals), 5, 0).expect("an open loop");
            let mut gaps = Vec::new();
            while schedule.due() < 10_000_000_000 {
                let before = schedule.due();
                schedule.advance();
                gaps.push((schedule.due() - before) as f64);
            }
            // Half of 20,000 a second for 10 s; ten standard deviations of a Poisson count.
            assert!(gaps.len().abs_diff(100_000) <= tolerance, "{arrivals:?}: {}", gaps.len());
            let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
            let spread = (gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64).sqrt();
            // Exponential gaps spread as wide as their mean.
            let expected = if arrivals == Arrivals::Even { 0.0 } else { mean };
            assert!((spread - expected).abs() < mean * 0.05, "{arrivals:?}: {spread} around {mean}");
        }
    }
}
