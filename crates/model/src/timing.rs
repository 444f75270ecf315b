//! How long a load runs.

use crate::checked::{OutOfRange, check_when_read, within};
use linerate_units::Nanos;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How long a load runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Timing {
    /// For a warm-up and a measured window.
    Window(Window),
    /// Until the task has done what it is to do: all frames sent, all files copied.
    UntilDone,
}

impl Timing {
    /// A warm-up of fixed length and a measured window.
    pub const fn of(warmup: Nanos, measure: Nanos) -> Self {
        Self::Window(Window { warmup: Warmup::Fixed(warmup), measure })
    }

    /// A warm-up that ends when the load is steady, and a measured window.
    pub const fn when_steady(measure: Nanos) -> Self {
        Self::Window(Window { warmup: Warmup::STEADY, measure })
    }

    /// The window; none where the task ends by itself.
    pub fn window(self) -> Option<Window> {
        match self {
            Self::Window(window) => Some(window),
            Self::UntilDone => None,
        }
    }
}

/// Warm-up and measured window of a load.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self")]
pub struct Window {
    /// Warm-up, excluded from results.
    pub warmup: Warmup,
    /// The measured window.
    pub measure: Nanos,
}

impl Window {
    /// No load runs longer: a year and a day, so that sums of times stay far within 64 bits.
    pub(crate) const LONGEST: Nanos = Nanos::from_secs(366 * 86_400);

    fn check(&self) -> Result<(), OutOfRange> {
        within("of warm-up and window", self.longest(), Nanos::default()..=Self::LONGEST)
    }

    /// How long warm-up and window take at the most.
    pub fn longest(self) -> Nanos {
        self.warmup.longest() + self.measure
    }
}

check_when_read!(Window);

/// When a warm-up ends. One of fixed length is kept as a number, nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Warmup {
    /// After this time.
    Fixed(Nanos),
    /// When the load is steady.
    Steady {
        /// After this time in any case.
        at_most: Nanos,
        /// So much later, as for requests beside a load whose window has opened.
        #[serde(default, skip_serializing_if = "Nanos::is_zero")]
        then: Nanos,
    },
}

impl Warmup {
    /// Ends when the load is steady, after 10 s in any case.
    pub const STEADY: Self = Self::Steady { at_most: Nanos::from_secs(10), then: Nanos::new(0) };

    /// Its length at the most.
    pub fn longest(self) -> Nanos {
        match self {
            Self::Fixed(time) => time,
            Self::Steady { at_most, then } => at_most + then,
        }
    }

    /// The same, and `more` beyond it.
    pub fn and(self, more: Nanos) -> Self {
        match self {
            Self::Fixed(time) => Self::Fixed(time + more),
            Self::Steady { at_most, then } => Self::Steady { at_most, then: then + more },
        }
    }
}

impl Default for Warmup {
    fn default() -> Self {
        Self::Fixed(Nanos::default())
    }
}
