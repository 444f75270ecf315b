//! When an open loop's requests are due.

use crate::pace::Pace;
use linerate_model::{Arrivals, Offered};
use linerate_units::{FrameRate, OpRate};
use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};

/// So long after the window an open loop still sends what was due within it: requests that a pause of this host held up at
/// the window's end are late, not left out. The answering end waits longer.
const LATE_NS: u64 = 50_000_000;

/// So many random arrivals come in exactly the time that so many take at the rate: a Poisson process of a known count, which within
/// is as irregular as one of any count (its arrivals are uniform), while a window of thousands meets the rate asked for.
const BLOCK: usize = 1_000;

/// The due times of one flow, one after another.
#[derive(Debug)]
pub struct Schedule {
    due: u64,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Even { pace: Pace, index: u64 },
    Poisson(Random),
}

impl Schedule {
    /// When the requests of a load at `rate` that begins at `start_ns` may begin under a limit of rate: not before the first was earned.
    pub fn earned_start(rate: OpRate, start_ns: u64) -> u64 {
        start_ns.saturating_add(1_000_000_000_u64.div_ceil(rate.get().max(1)))
    }

    /// The share of flow `flow` of `flows`, which take turns, in `rate` from `start_ns` on. `seed` makes the random arrivals.
    pub fn new(rate: OpRate, arrivals: Arrivals, start_ns: u64, (flow, flows): (u16, u16), seed: u64) -> Self {
        let rate = rate.get().max(1);
        let kind = match arrivals {
            Arrivals::Even => {
                let offered = Offered::MessagesPerS(FrameRate::per_second(rate));
                Kind::Even { pace: Pace::new(offered, 1, start_ns, flow, flows), index: 0 }
            }
            Arrivals::Poisson => Kind::Poisson(Random {
                mean_ns: 1e9 * f64::from(flows) / rate as f64,
                block_ns: start_ns as f64,
                block: Vec::new(),
                random: SmallRng::seed_from_u64(seed),
            }),
        };
        let mut schedule = Self { due: start_ns, kind };
        match &schedule.kind {
            Kind::Even { pace, .. } => schedule.due = pace.due(0),
            Kind::Poisson(_) => schedule.advance(),
        }
        schedule
    }

    /// When the next request is due.
    #[inline]
    pub fn due(&self) -> u64 {
        self.due
    }

    /// Whether there is more to send at `now` in a window that closes at `close`.
    #[inline]
    pub fn goes_on(&self, now: u64, close: u64) -> bool {
        self.due < close && now < close + LATE_NS
    }

    /// Goes on to the one after.
    #[inline]
    pub fn advance(&mut self) {
        self.due = match &mut self.kind {
            Kind::Even { pace, index } => {
                *index += 1;
                pace.due(*index)
            }
            Kind::Poisson(random) => random.next(),
        };
    }

    /// How many of the requests still held are due in `from..until`. Counted by arithmetic, for they may be billions; of
    /// random arrivals that were never drawn, the mean counts.
    pub fn left_within(&self, from: u64, until: u64) -> u64 {
        match &self.kind {
            Kind::Even { pace, index } => {
                let before = pace.due_by(from.saturating_sub(1));
                pace.due_by(until.saturating_sub(1)).saturating_sub(before.max(*index))
            }
            Kind::Poisson(_) if self.due >= until => 0,
            Kind::Poisson(random) => {
                let after = ((until - self.due.max(from)) as f64 / random.mean_ns).round() as u64;
                u64::from(self.due >= from) + after
            }
        }
    }
}

/// Random arrivals.
#[derive(Debug)]
struct Random {
    mean_ns: f64,
    /// When the block that is drawn next begins.
    block_ns: f64,
    /// What is left of the block drawn last, the latest first.
    block: Vec<u64>,
    random: SmallRng,
}

impl Random {
    #[inline]
    fn next(&mut self) -> u64 {
        if self.block.is_empty() {
            self.draw();
        }
        self.block.pop().expect("a block holds arrivals")
    }

    /// Given their count, the arrivals of a Poisson process are uniform over the time.
    fn draw(&mut self) {
        let length = self.mean_ns * BLOCK as f64;
        let Self { block_ns, block, random, .. } = self;
        block.extend((0..BLOCK).map(|_| (*block_ns + random.random::<f64>() * length) as u64));
        block.sort_unstable_by(|left, right| right.cmp(left));
        *block_ns += length;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule(arrivals: Arrivals, flow: u16) -> Schedule {
        Schedule::new(OpRate::per_second(20_000), arrivals, 5, (flow, 2), 7)
    }

    #[test]
    fn what_is_left_is_counted_without_being_drawn() {
        for (from, until) in [(5, 1_000_000_005), (300_000_000, 1_000_000_000), (300_000_001, 1_000_000_001)] {
            for (arrivals, tolerance) in [(Arrivals::Even, 0), (Arrivals::Poisson, 1_000)] {
                for taken in [0, 1, 5_000, 20_000] {
                    let mut schedule = schedule(arrivals, 1);
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
    fn what_a_pause_held_up_at_the_end_is_sent_for_a_moment_after_the_window() {
        let close = 1_000_000_000;
        let mut schedule = schedule(Arrivals::Even, 0);
        assert!(schedule.due() < close);
        for (now, goes_on) in [
            (close - 1, true),
            (close, true),
            (close + LATE_NS - 1, true),
            (close + LATE_NS, false),
            (2 * close, false),
        ] {
            assert_eq!(schedule.goes_on(now, close), goes_on, "{now}");
        }
        while schedule.due() < close {
            schedule.advance();
        }
        assert!(!schedule.goes_on(close - 1, close), "the next is due after the window");
    }

    #[test]
    fn both_kinds_keep_the_rate() {
        for (arrivals, tolerance) in [(Arrivals::Even, 0), (Arrivals::Poisson, 1)] {
            let mut schedule = schedule(arrivals, 0);
            let mut gaps = Vec::new();
            while schedule.due() < 10_000_000_000 {
                let before = schedule.due();
                schedule.advance();
                gaps.push((schedule.due() - before) as f64);
            }
            // Half of 20,000 a second for 10 s: a hundred whole blocks.
            assert!(gaps.len().abs_diff(100_000) <= tolerance, "{arrivals:?}: {}", gaps.len());
            let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
            let spread = (gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64).sqrt();
            // Exponential gaps spread as wide as their mean.
            let expected = if arrivals == Arrivals::Even { 0.0 } else { mean };
            assert!((spread - expected).abs() < mean * 0.05, "{arrivals:?}: {spread} around {mean}");
        }
    }
}
