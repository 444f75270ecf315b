//! Two records held against each other.

use crate::{Interval, MeasureUnit, RecordId, Summary};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// What two records of the same measurements differ by.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// The record that is compared with.
    pub before: RecordId,
    /// The record that is compared.
    pub after: RecordId,
    /// A difference of this share of the figure before does not matter.
    pub tolerance: f64,
    /// Confidence of every statement together, percent.
    pub confidence_percent: f64,
    /// Each figure that both records have.
    pub figures: Vec<ComparedFigure>,
    /// What only one of the records has, or was measured differently, in words.
    pub remarks: Vec<String>,
}

impl Comparison {
    /// Something became worse.
    pub fn is_worse(&self) -> bool {
        self.figures.iter().any(|figure| figure.change == Change::Worse)
    }
}

/// One figure of one result in both records.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ComparedFigure {
    /// The result, by its name in both records.
    pub name: String,
    /// What is compared.
    pub quantity: Quantity,
    /// The runs before.
    pub before: Summary,
    /// The runs after.
    pub after: Summary,
    /// The mean after less the mean before, as a share of the mean before; none where that was zero.
    pub difference: Option<f64>,
    /// The interval that holds this share with the comparison's confidence; none where too few runs tell of their spread.
    pub interval: Option<Interval>,
    /// How probable a difference at least as large is if nothing changed (Welch's t test, corrected by Holm for the number of
    /// figures); none where too few runs tell of their spread.
    pub p: Option<f64>,
    /// What it amounts to.
    pub change: Change,
}

/// A figure that repeats of a measurement have each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// Payload at the receivers, bit/s.
    PayloadBps,
    /// Transactions, calls or operations per second, where they were not asked for at a rate.
    PerSecond,
    /// Raw frames received per second.
    FramesPerS,
    /// Half of all requests were answered within this, nanoseconds.
    LatencyP50Ns,
    /// 99 % of all requests were answered within this, nanoseconds.
    LatencyP99Ns,
    /// Share of the datagrams that were lost.
    LossRatio,
}

impl Quantity {
    /// The unit of its values.
    pub fn unit(self) -> MeasureUnit {
        match self {
            Self::PayloadBps => MeasureUnit::BitsPerS,
            Self::PerSecond | Self::FramesPerS => MeasureUnit::PerS,
            Self::LatencyP50Ns | Self::LatencyP99Ns => MeasureUnit::Nanos,
            Self::LossRatio => MeasureUnit::Share,
        }
    }

    /// More of it is better.
    pub fn more_is_better(self) -> bool {
        matches!(self, Self::PayloadBps | Self::PerSecond | Self::FramesPerS)
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::PayloadBps => "payload",
            Self::PerSecond => "per second",
            Self::FramesPerS => "frames per second",
            Self::LatencyP50Ns => "p50",
            Self::LatencyP99Ns => "p99",
            Self::LossRatio => "lost",
        })
    }
}

/// What a difference amounts to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// Better, by more than the tolerance and more than chance.
    Better,
    /// Worse, by more than the tolerance and more than chance.
    Worse,
    /// The same within the tolerance, as surely as was asked.
    Same,
    /// The runs are too few or too far apart to tell.
    Unclear,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Better => "better",
            Self::Worse => "WORSE",
            Self::Same => "same",
            Self::Unclear => "unclear",
        })
    }
}
