//! A verdict put to the test: the same measurement with one thing changed.

use crate::Limit;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a cell of a plan is to test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Counterproof {
    /// The cell whose verdict it tests.
    pub of: String,
    /// The one thing changed, as in `4 flows instead of 1`.
    pub change: String,
    /// What comes out if the verdict is right.
    pub expects: Expects,
    /// What the limit is if the contrary comes out, where that is known.
    pub otherwise: Option<Limit>,
}

/// What comes out of a changed measurement if a verdict is right.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Expects {
    /// The result rises.
    Rise,
    /// The result stays as it is.
    Same,
    /// The share of datagrams lost, or of segments retransmitted, stays as it is.
    LossStays,
    /// The loss goes.
    LossGoes,
}

/// What a counterproof came to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Proof {
    /// The result that was measured for it, by name; the record of the calibration, where it had been measured before.
    pub by: String,
    /// The figure before: payload bit/s, transactions or frames per second, or the share of datagrams or segments lost.
    pub before: f64,
    /// The same figure with the one thing changed.
    pub after: f64,
    /// Whether it came out as the verdict had it; none if neither that nor the contrary.
    pub held: Option<bool>,
}
