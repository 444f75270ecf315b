//! Due times of an open loop's requests.

use crate::pace::Pace;
use linerate_model::{Arrivals, Offered};
use linerate_units::{FrameRate, OpRate};
use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};

/// Time after the window in which an open loop still sends requests that were due within it. Requests that a stall of
/// this host delayed at the window's end are late, not left out. The server waits longer.
const LATE_NS: u64 = 50_000_000;

/// Number of random arrivals in a block, which takes exactly its time at the rate: a Poisson process of a known count.
/// Within a block it is as irregular as any Poisson process (arrivals are uniform), while a window of thousands of
/// arrivals meets the rate.
const BLOCK: usize = 1_000;

/// Due times of one flow, one after another.
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
    /// Returns the start of a load at `rate` from `start_ns` on under a rate limit, when the rate has earned the first
    /// request.
    pub fn earned_start(rate: OpRate, start_ns: u64) -> u64 {
        start_ns.saturating_add(1_000_000_000_u64.div_ceil(rate.get().max(1)))
    }

    /// Creates the share of flow `flow` of `flows`, which take turns, in `rate` from `start_ns` on. `seed` is for
    /// random arrivals.
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

    /// Returns the due time of the next request.
    #[inline]
    pub fn due(&self) -> u64 {
        self.due
    }

    /// Returns whether more requests are to be sent at `now` in a window that closes at `close`.
    #[inline]
    pub fn goes_on(&self, now: u64, close: u64) -> bool {
        self.due < close && now < close + LATE_NS
    }

    /// Advances to the next request.
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

    /// Returns the number of remaining requests that are due in `from..until`. It is computed, because there may be
    /// billions. For random arrivals that were never drawn, it is the mean.
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
    /// Begin of the next block.
    block_ns: f64,
    /// Remaining arrivals of the current block, the latest first.
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

    /// Draws a block. Given their count, the arrivals of a Poisson process are uniform over the time.
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
    fn remaining_requests_are_computed() {
        for (from, until) in [(5, 1_000_000_005), (300_000_000, 1_000_000_000), (300_000_001, 1_000_000_001)] {
            for (arrivals, tolerance) in [(Arrivals::Even, 0), (Arrivals::Poisson, 1_000)] {
                for steps in [0, 1, 5_000, 20_000] {
                    let mut schedule = schedule(arrivals, 1);
                    (0..steps).for_each(|_| schedule.advance());
                    let counted = schedule.left_within(from, until);
                    let mut walked = 0;
                    while schedule.due() < until {
                        walked += u64::from(schedule.due() >= from);
                        schedule.advance();
                    }
                    assert!(counted.abs_diff(walked) <= tolerance, "{arrivals:?} {steps}: {counted}, {walked}");
                }
            }
        }
    }

    #[test]
    fn requests_delayed_at_the_end_are_sent_shortly_after_the_window() {
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
    fn even_and_random_arrivals_keep_the_rate() {
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
