//! How often a trial is run.

use crate::checked::{OutOfRange, check_when_read, within};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How often a trial is run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", remote = "Self")]
pub enum Repeats {
    /// So many times.
    Times(u32),
    /// Until the confidence interval of the mean is narrow enough, within bounds.
    Until {
        /// Confidence in percent, as in 95.
        confidence_percent: f64,
        /// Half the interval's width as a share of the mean, as in 0.025.
        within: f64,
        /// At least so many times (no fewer than 5, unless `at_most` is).
        at_least: u32,
        /// At most so many times.
        at_most: u32,
    },
}

impl Repeats {
    /// No trial is run more often.
    const MOST: u32 = 1_000_000;

    fn check(&self) -> Result<(), OutOfRange> {
        match *self {
            Self::Times(times) => within("repeats", times, 1..=Self::MOST),
            Self::Until { confidence_percent, within: share, at_least, at_most } => {
                if !(50.0..100.0).contains(&confidence_percent) {
                    let message = format!("a confidence of {confidence_percent} %: choose 50 to below 100");
                    return Err(OutOfRange(message));
                }
                if !(share > 0.0 && share.is_finite()) {
                    return Err(OutOfRange(format!("an interval within {share} of the mean: choose a share above 0")));
                }
                within("repeats", at_least, 1..=Self::MOST)?;
                within("repeats", at_most, 1..=Self::MOST)
            }
        }
    }
}

check_when_read!(Repeats);
