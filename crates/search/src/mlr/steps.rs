//! Where to try next between a load that is good and one that is bad.
//!
//! Distances are relative to the load, so halving an interval takes its geometric middle. Whole frames per second only:
//! the same trials give the same loads everywhere.

use linerate_units::{FrameRate, Ratio};

/// How much further each step of a run reaches than the one before.
const REACH: u32 = 4;

/// The course of a search: which way it goes, and how often the last trials said the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Course {
    /// Everything since the start was bad; so often after the first guess.
    Down(u32),
    /// The first guess was good, and so often everything after it.
    Up(u32),
    /// There was good and bad: only halving is left.
    Between,
}

impl Course {
    /// Where a search starts: nothing guessed yet.
    pub(super) const START: Self = Self::Down(0);

    /// The course after one more load turned out `good` or bad.
    pub(super) fn after(self, good: bool) -> Self {
        match (self, good) {
            (Self::Down(0), true) => Self::Up(0),
            (Self::Down(steps), false) => Self::Down(steps + 1),
            (Self::Up(steps), true) => Self::Up(steps + 1),
            (Self::Down(_), true) | (Self::Up(_), false) | (Self::Between, _) => Self::Between,
        }
    }
}

/// An interval between a load that is good and a load that is bad, either of which may still be unknown.
#[derive(Debug, Clone, Copy)]
pub(super) struct Interval {
    /// The lowest load that may be tried.
    pub minimum: FrameRate,
    /// The highest.
    pub maximum: FrameRate,
    /// The highest load known as good, below `bad`.
    pub good: Option<FrameRate>,
    /// The lowest load known as bad.
    pub bad: Option<FrameRate>,
    /// How narrow the interval has to become, as a share of `bad`.
    pub width: Ratio,
}

impl Interval {
    /// Whether there is nothing left to find: narrow enough, the highest load is good, or the lowest is bad.
    pub(super) fn is_narrow(&self) -> bool {
        match (self.good, self.bad) {
            (Some(good), Some(bad)) => self.near(good.get(), bad.get()),
            (Some(good), None) => good >= self.maximum,
            (None, Some(bad)) => bad <= self.minimum,
            (None, None) => false,
        }
    }

    /// A load inside the interval, worth a trial. `hint` is what the device forwarded at the bad load: it is believed
    /// at first, and tested just above and below; but each step that goes on in the same direction reaches further, so
    /// that a device that forwards next to nothing under overload, or loses a little at any load, takes only some trials
    /// more. An interval that is narrow has no such load; the answer then is one of its ends.
    pub(super) fn propose(&self, course: Course, hint: Option<FrameRate>) -> FrameRate {
        let (min, max) = (self.minimum.get(), self.maximum.get());
        let load = match (self.good, self.bad) {
            (None, None) => max,
            (Some(good), None) => {
                let good = good.get();
                let load = match course {
                    Course::Down(0) => self.above(good, 0),
                    Course::Up(steps) => self.above(good, steps),
                    Course::Down(_) | Course::Between => middle(good, max),
                };
                if self.near(load, max) { max } else { load }
            }
            (None, Some(bad)) => {
                let bad = bad.get();
                let load = match course {
                    Course::Down(steps) => self.below(bad, steps).min(hint.map_or(bad, FrameRate::get)),
                    Course::Up(_) | Course::Between => middle(min, bad),
                };
                if self.near(min, load) { min } else { load }
            }
            (Some(good), Some(bad)) => {
                let (good, bad) = (good.get(), bad.get());
                let middle = middle(good, bad);
                let load = match course {
                    Course::Down(0) => hint.map_or(middle, FrameRate::get),
                    Course::Down(steps) => self.below(bad, steps).max(middle),
                    Course::Up(steps) => self.above(good, steps).min(middle),
                    Course::Between => middle,
                };
                let (lowest, highest) = (self.above(good, 0), self.below(bad, 0));
                if lowest < highest { load.clamp(lowest, highest) } else { middle }
            }
        };
        FrameRate::per_second(load.clamp(min, max))
    }

    /// Whether a load lies strictly between the ends, so that a trial there would tell something new.
    pub(super) fn contains(&self, load: FrameRate) -> bool {
        self.good.is_none_or(|good| good < load) && self.bad.is_none_or(|bad| load < bad)
    }

    /// Whether two loads are no further apart than the width, or than whole numbers allow.
    fn near(&self, low: u64, high: u64) -> bool {
        let apart = high.saturating_sub(low);
        apart <= 1 || u128::from(apart) * u128::from(self.width.of) <= u128::from(self.width.part) * u128::from(high)
    }

    /// The width, times the reach of this many steps, above a load. The plain width is a little less than allowed, since
    /// it is a share of the lower load.
    fn above(&self, load: u64, steps: u32) -> u64 {
        load.saturating_add(self.reach(load, steps))
    }

    /// The same below a load.
    fn below(&self, load: u64, steps: u32) -> u64 {
        load.saturating_sub(self.reach(load, steps))
    }

    fn reach(&self, load: u64, steps: u32) -> u64 {
        let times = u64::from(REACH).saturating_pow(steps);
        let widths = u128::from(load) * u128::from(self.width.part) / u128::from(self.width.of);
        u64::try_from(widths.saturating_mul(u128::from(times))).unwrap_or(u64::MAX).max(1)
    }
}

/// The geometric middle, strictly between where a whole number is.
fn middle(low: u64, high: u64) -> u64 {
    let root = (u128::from(low) * u128::from(high)).isqrt() as u64;
    root.max(low + 1).min(high.saturating_sub(1).max(low + 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn interval(good: impl Into<Option<u64>>, bad: impl Into<Option<u64>>) -> Interval {
        let rate = FrameRate::per_second;
        let (good, bad) = (good.into().map(rate), bad.into().map(rate));
        Interval { minimum: rate(100), maximum: rate(1_000_000), good, bad, width: Ratio::new(1, 100) }
    }

    fn propose(interval: Interval, course: Course, hint: impl Into<Option<u64>>) -> u64 {
        interval.propose(course, hint.into().map(FrameRate::per_second)).get()
    }

    #[test]
    fn believes_the_forwarding_rate_then_steps_further_each_time() {
        let bad = interval(None, 1_000_000);
        assert_eq!(propose(interval(None, None), Course::START, None), 1_000_000);
        assert_eq!(propose(bad, Course::Down(0), 400_000), 400_000);
        assert_eq!(propose(bad, Course::Down(0), 999_999), 990_000);
        assert_eq!(propose(bad, Course::Down(2), 999_999), 840_000);
        assert_eq!(propose(bad, Course::Down(9), None), 100);
        let both = interval(400_000, 1_000_000);
        assert_eq!(propose(both, Course::Up(0), 0), 404_000);
        assert_eq!(propose(both, Course::Up(2), 0), 464_000);
        assert_eq!(propose(both, Course::Up(3), 0), 632_455, "no further than the geometric middle");
        assert_eq!(propose(both, Course::Between, 0), 632_455);
        assert_eq!(propose(interval(999_000, None), Course::Up(0), None), 1_000_000);
    }

    #[test]
    fn is_narrow_by_width_by_whole_numbers_and_at_the_ends() {
        assert!(interval(990_000, 1_000_000).is_narrow());
        assert!(!interval(989_999, 1_000_000).is_narrow());
        assert!(interval(10, 11).is_narrow(), "no whole number lies between");
        assert!(interval(1_000_000, None).is_narrow());
        assert!(interval(None, 100).is_narrow());
        assert!(!interval(None, 101).is_narrow());
        assert!(!interval(None, None).is_narrow());
    }

    proptest! {
        #[test]
        fn what_it_proposes_is_new_and_inside(
            good in proptest::option::of(100u64..=1_000_000),
            bad in proptest::option::of(100u64..=1_000_000),
            hint in proptest::option::of(0u64..=2_000_000),
            steps in 0u32..100,
            way in 0u8..3,
        ) {
            prop_assume!(good.is_none_or(|good| bad.is_none_or(|bad| good < bad)));
            let interval = interval(good, bad);
            let course = [Course::Down(steps), Course::Up(steps), Course::Between][usize::from(way)];
            if !interval.is_narrow() {
                let load = propose(interval, course, hint);
                prop_assert!((100..=1_000_000).contains(&load));
                prop_assert!(interval.contains(FrameRate::per_second(load)), "{load}");
            }
        }
    }
}
