//! When a load begins, is measured and ends.

use linerate_model::{Warmup, Window};
use linerate_units::Nanos;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A load's times by this host's clock, nanoseconds of [`linerate_sys::clock::now`]. Clones share the opening of the window: where the
/// warm-up ends when the load is steady, it is set while the load runs.
#[derive(Debug, Clone)]
pub struct Timeline {
    start: u64,
    measure: u64,
    /// How much later than ordered the window opens.
    later: u64,
    open: Arc<AtomicU64>,
}

/// The opening that is not known yet: beyond any clock, and far enough from the largest number that times can be added to it.
const OPEN_LATER: u64 = u64::MAX / 4;

impl Timeline {
    /// Returns the times of a load that begins at `start`.
    pub fn new(start: u64, window: Window) -> Self {
        let (open, later) = match window.warmup {
            Warmup::Fixed(warmup) => (start + warmup.get(), 0),
            Warmup::Steady { then, .. } => (OPEN_LATER, then.get()),
        };
        Self { start, measure: window.measure.get(), later, open: Arc::new(AtomicU64::new(open)) }
    }

    /// When the load begins.
    #[inline]
    pub fn start(&self) -> u64 {
        self.start
    }

    /// When the window opens; beyond any clock while that is not known.
    #[inline]
    pub fn open(&self) -> u64 {
        self.open.load(Ordering::Acquire)
    }

    /// When the window closes; beyond any clock while that is not known.
    #[inline]
    pub fn close(&self) -> u64 {
        self.open().saturating_add(self.measure)
    }

    /// The window's length.
    pub fn measure(&self) -> Nanos {
        Nanos::new(self.measure)
    }

    /// Whether it is known when the window opens.
    pub fn is_set(&self) -> bool {
        self.open() != OPEN_LATER
    }

    /// Opens the window at `at`. Returns false if that had been set before.
    pub fn set_open(&self, at: u64) -> bool {
        let at = at.saturating_add(self.later).min(OPEN_LATER - 1);
        self.open.compare_exchange(OPEN_LATER, at, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Returns whether `at` lies within the window.
    #[inline]
    pub fn in_window(&self, at: u64) -> bool {
        let open = self.open();
        at >= open && at - open < self.measure
    }

    /// Says where `now` is, in words.
    pub fn describe(&self, now: u64) -> String {
        let open = self.open();
        if !self.is_set() {
            format!("{} into the warm-up", Nanos::new(now.saturating_sub(self.start)))
        } else if now < open {
            format!("{} before the window opened", Nanos::new(open - now))
        } else {
            format!("{} into the window of {}", Nanos::new(now - open), self.measure())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fixed_warm_up_opens_the_window_by_itself() {
        let window = Window { warmup: Warmup::Fixed(Nanos::new(100)), measure: Nanos::new(1_000) };
        let timeline = Timeline::new(50, window);
        assert_eq!((timeline.start(), timeline.open(), timeline.close()), (50, 150, 1_150));
        assert!(!timeline.set_open(7) && timeline.open() == 150, "it is set once");
        assert_eq!([149, 150, 1_149, 1_150].map(|at| timeline.in_window(at)), [false, true, true, false]);
    }

    #[test]
    fn clones_hear_when_the_window_opens() {
        let warmup = Warmup::STEADY.and(Nanos::new(30));
        let timeline = Timeline::new(50, Window { warmup, measure: Nanos::new(1_000) });
        let seen = timeline.clone();
        assert!(!seen.is_set() && !seen.in_window(1 << 60) && seen.close() > 1 << 61);
        assert_eq!(seen.describe(60), "10 ns into the warm-up");
        assert!(timeline.set_open(500));
        assert_eq!((seen.open(), seen.close()), (530, 1_530));
        assert_eq!(seen.describe(540), "10 ns into the window of 1 us");
    }
}
