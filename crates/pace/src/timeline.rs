//! When a load begins, is measured and ends.

use linerate_units::Nanos;

/// The trial's times by this host's clock, nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeline {
    /// Load begins.
    pub start: u64,
    /// The warm-up ends.
    pub warm_until: u64,
    /// The window opens.
    pub open: u64,
    /// The window closes.
    pub close: u64,
}

impl Timeline {
    /// Where `now` is, in words.
    pub fn describe(&self, now: u64) -> String {
        if now < self.open {
            format!("{} before the window opened", Nanos::new(self.open - now))
        } else {
            format!("{} into the window of {}", Nanos::new(now - self.open), Nanos::new(self.close - self.open))
        }
    }
}
