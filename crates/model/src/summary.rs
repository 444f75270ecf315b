//! Several runs of one thing as one figure with its spread.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Median and spread of the runs of one quantity; the field's name gives the unit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Summary {
    /// The middle run; of an even number of runs the mean of the middle two.
    pub median: f64,
    /// The lowest run.
    pub low: f64,
    /// The highest run.
    pub high: f64,
    /// How many runs.
    pub runs: u32,
    /// Each run, in the order they were made.
    pub values: Vec<f64>,
    /// Confidence interval of the mean; none with fewer than two runs.
    pub interval: Option<Interval>,
}

/// A confidence interval of the mean (Student's t).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Interval {
    /// Confidence in percent.
    pub percent: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Interval {
    /// Half the interval's width as a share of its middle; infinite around zero.
    pub fn relative_half_width(&self) -> f64 {
        let middle = (self.low + self.high) / 2.0;
        if middle == 0.0 { f64::INFINITY } else { ((self.high - self.low) / 2.0 / middle).abs() }
    }
}

impl Summary {
    /// The spread of the runs as a share of their median: (high - low) / median; zero for a median of zero.
    pub fn spread(&self) -> f64 {
        if self.median == 0.0 { 0.0 } else { (self.high - self.low) / self.median }
    }
}
