//! When a load begins, is measured and ends.

use crate::Stop;
use linerate_model::{Warmup, Window};
use linerate_units::Nanos;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A load's times by this host's clock, nanoseconds of [`linerate_sys::clock::now`]. Clones share the edges of the window: where the
/// warm-up ends when the load is steady, the opening is set while the load runs, and where the load ends by itself, so is the close.
#[derive(Debug, Clone)]
pub struct Timeline {
    start: u64,
    measure: u64,
    /// How much later than ordered the window opens.
    later: u64,
    edges: Arc<Edges>,
}

#[derive(Debug)]
struct Edges {
    open: AtomicU64,
    /// When the load ended by itself; beyond any clock while it has not.
    end: AtomicU64,
    /// Who waits for that.
    ended: Stop<()>,
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
        let edges = Edges { open: AtomicU64::new(open), end: AtomicU64::new(u64::MAX), ended: Stop::default() };
        Self { start, measure: window.measure.get(), later, edges: Arc::new(edges) }
    }

    /// When the load begins.
    #[inline]
    pub fn start(&self) -> u64 {
        self.start
    }

    /// When the window opens; beyond any clock while that is not known.
    #[inline]
    pub fn open(&self) -> u64 {
        self.edges.open.load(Ordering::Acquire)
    }

    /// When the window closes; beyond any clock while that is not known.
    #[inline]
    pub fn close(&self) -> u64 {
        self.open().saturating_add(self.measure).min(self.edges.end.load(Ordering::Acquire))
    }

    /// The window's length; the longest where the load may end by itself.
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
        self.edges.open.compare_exchange(OPEN_LATER, at, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Closes the window at `at`: the load has ended by itself. Changes nothing if it closes before that.
    pub fn set_close(&self, at: u64) {
        self.edges.end.fetch_min(at, Ordering::AcqRel);
        self.edges.ended.set(());
    }

    /// Runs `wake` when the window is closed before its length; at once if it is already.
    pub fn on_close(&self, wake: impl FnOnce() + Send + 'static) {
        self.edges.ended.on_stop(wake);
    }

    /// Returns whether `at` lies within the window.
    #[inline]
    pub fn in_window(&self, at: u64) -> bool {
        (self.open()..self.close()).contains(&at)
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
    fn a_load_that_ends_by_itself_closes_the_window_for_all_clones() {
        let timeline = Timeline::new(50, Window { warmup: Warmup::default(), measure: Nanos::new(1_000) });
        let (seen, woken) = (timeline.clone(), Arc::new(AtomicU64::new(0)));
        let wake = || {
            let woken = Arc::clone(&woken);
            move || {
                woken.fetch_add(1, Ordering::Relaxed);
            }
        };
        timeline.on_close(wake());
        assert_eq!((seen.close(), woken.load(Ordering::Relaxed)), (1_050, 0));
        seen.set_close(300);
        timeline.set_close(400);
        timeline.on_close(wake());
        assert_eq!((timeline.close(), seen.measure(), woken.load(Ordering::Relaxed)), (300, Nanos::new(1_000), 2));
        assert_eq!([49, 50, 299, 300].map(|at| timeline.in_window(at)), [false, true, true, false]);
        let late = Timeline::new(50, Window { warmup: Warmup::default(), measure: Nanos::new(1_000) });
        late.set_close(2_000);
        assert_eq!(late.close(), 1_050, "its length ended it before");
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
