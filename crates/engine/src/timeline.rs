//! Times of a load: begin, measured window and end.

use crate::Stop;
use linerate_model::{Warmup, Window};
use linerate_units::Nanos;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Times of a load by this host's clock, nanoseconds of [`linerate_sys::clock::now`].
///
/// Clones share the edges of the window. If the warm-up ends when the load is steady, the opening is set while the load
/// runs. If the load ends by itself, so is the close.
#[derive(Debug, Clone)]
pub struct Timeline {
    start: u64,
    measure: u64,
    /// Delay of the opening after its order.
    later: u64,
    edges: Arc<Edges>,
}

#[derive(Debug)]
struct Edges {
    open: AtomicU64,
    /// Time when the load ended by itself; beyond any clock before that.
    end: AtomicU64,
    /// Threads that wait for this end.
    ended: Stop<()>,
}

/// Opening that is not known yet: beyond any clock, and far enough from the largest number for additions.
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

    /// Returns the begin of the load.
    #[inline]
    pub fn start(&self) -> u64 {
        self.start
    }

    /// Returns the opening of the window; beyond any clock while it is not known.
    #[inline]
    pub fn open(&self) -> u64 {
        self.edges.open.load(Ordering::Acquire)
    }

    /// Returns the close of the window; beyond any clock while it is not known.
    #[inline]
    pub fn close(&self) -> u64 {
        self.open().saturating_add(self.measure).min(self.edges.end.load(Ordering::Acquire))
    }

    /// Returns the length of the window, or its longest length if the load may end by itself.
    pub fn measure(&self) -> Nanos {
        Nanos::new(self.measure)
    }

    /// Returns whether the opening of the window is known.
    pub fn is_set(&self) -> bool {
        self.open() != OPEN_LATER
    }

    /// Opens the window at `at`. Returns false if the opening was set before.
    pub fn set_open(&self, at: u64) -> bool {
        let at = at.saturating_add(self.later).min(OPEN_LATER - 1);
        self.edges.open.compare_exchange(OPEN_LATER, at, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Closes the window at `at`, because the load has ended by itself. An earlier close stays.
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

    /// Describes `now` in relation to the window.
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
    fn fixed_warm_up_opens_the_window_by_itself() {
        let window = Window { warmup: Warmup::Fixed(Nanos::new(100)), measure: Nanos::new(1_000) };
        let timeline = Timeline::new(50, window);
        assert_eq!((timeline.start(), timeline.open(), timeline.close()), (50, 150, 1_150));
        assert!(!timeline.set_open(7) && timeline.open() == 150, "it is set once");
        assert_eq!([149, 150, 1_149, 1_150].map(|at| timeline.in_window(at)), [false, true, true, false]);
    }

    #[test]
    fn load_that_ends_by_itself_closes_the_window_for_all_clones() {
        let timeline = Timeline::new(50, Window { warmup: Warmup::default(), measure: Nanos::new(1_000) });
        let clone = timeline.clone();
        let wakes = Arc::new(AtomicU64::new(0));
        let [early, after_close] = [0, 1].map(|_| {
            let wakes = Arc::clone(&wakes);
            move || {
                wakes.fetch_add(1, Ordering::Relaxed);
            }
        });
        timeline.on_close(early);
        assert_eq!((clone.close(), wakes.load(Ordering::Relaxed)), (1_050, 0));
        clone.set_close(300);
        timeline.set_close(400);
        timeline.on_close(after_close);
        assert_eq!((timeline.close(), clone.measure(), wakes.load(Ordering::Relaxed)), (300, Nanos::new(1_000), 2));
        assert_eq!([49, 50, 299, 300].map(|at| timeline.in_window(at)), [false, true, true, false]);
        let late = Timeline::new(50, Window { warmup: Warmup::default(), measure: Nanos::new(1_000) });
        late.set_close(2_000);
        assert_eq!(late.close(), 1_050, "its length ended it before");
    }

    #[test]
    fn clones_share_the_opening_of_the_window() {
        let warmup = Warmup::STEADY.and(Nanos::new(30));
        let timeline = Timeline::new(50, Window { warmup, measure: Nanos::new(1_000) });
        let clone = timeline.clone();
        assert!(!clone.is_set() && !clone.in_window(1 << 60) && clone.close() > 1 << 61);
        assert_eq!(clone.describe(60), "10 ns into the warm-up");
        assert!(timeline.set_open(500));
        assert_eq!((clone.open(), clone.close()), (530, 1_530));
        assert_eq!(clone.describe(540), "10 ns into the window of 1 us");
    }
}
