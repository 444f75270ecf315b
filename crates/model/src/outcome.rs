//! What a run found beside the results of its trials.

use crate::{CurveFound, DeviceFound, Ladder};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What was found, by the goal of the run. Like the results it follows from the trials alone.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Outcome {
    /// Nothing beside the results.
    #[default]
    Sweep,
    /// Response time against load.
    Curve(CurveFound),
    /// What a device can carry.
    Device(Box<DeviceFound>),
    /// What each layer of a path delivers.
    Ladder(Ladder),
}
