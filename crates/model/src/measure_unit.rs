//! Units of measured values.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The unit of values as they are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum MeasureUnit {
    /// Bits per second.
    #[serde(rename = "bit/s")]
    BitsPerS,
    /// Frames, packets or operations per second.
    #[serde(rename = "/s")]
    PerS,
    /// Nanoseconds: latency. Less is better.
    #[serde(rename = "ns")]
    Nanos,
    /// How many times as much one is as another: a ratio that was published instead of its parts.
    #[serde(rename = "times")]
    Times,
    /// A share from 0 to 1: of what was sent the part that was lost, of a processor or a stage the time that it was busy. Less is
    /// better.
    #[serde(rename = "share")]
    Share,
    /// How many frames, addresses or neighbours a device holds. More is better.
    #[serde(rename = "count")]
    Count,
    /// Nanoseconds that a buffer lasts. More is better.
    #[serde(rename = "ns held")]
    NanosHeld,
}

impl MeasureUnit {
    /// Whether it is a rate, of which a medium carries so much and no more.
    pub fn is_rate(self) -> bool {
        matches!(self, Self::BitsPerS | Self::PerS)
    }

    /// Whether more of it is better; of all else less is. What is not firm of such a figure is a lower bound.
    pub fn more_is_better(self) -> bool {
        self.is_rate() || matches!(self, Self::Count | Self::NanosHeld)
    }
}
