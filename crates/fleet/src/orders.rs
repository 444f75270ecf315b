//! Orders on their way from the scheduler to a controller, and what became of them.

use linerate_model::{Headline, HeadlineVerdict, RecordId};
use linerate_schedule::Order;
use serde::{Deserialize, Serialize};

/// An order as published.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PublishedOrder {
    /// The order.
    pub order: Order,
    /// Name of the record that the trial makes.
    pub record: RecordId,
    /// Fence of the scheduler's term.
    pub fence: u64,
}

/// What became of an order. The last of each pair and mesh are kept.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PairEnd {
    /// The order.
    pub order: Order,
    /// Its end.
    pub outcome: OrderOutcome,
    /// Record of the trial, if it was begun.
    #[serde(default)]
    pub record: Option<RecordId>,
    /// Main figure.
    #[serde(default)]
    pub headline: Option<Headline>,
    /// What limited it.
    #[serde(default)]
    pub verdict: Option<HeadlineVerdict>,
    /// Payload that the trial moved, in bytes.
    #[serde(default)]
    pub bytes: u64,
}

/// End of an order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OrderOutcome {
    /// The trial was measured.
    Measured,
    /// The trial failed.
    Failed {
        /// Cause.
        reason: String,
    },
    /// The trial was not begun.
    Missed {
        /// Cause.
        reason: String,
    },
}
