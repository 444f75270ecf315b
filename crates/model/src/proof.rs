//! A verdict put to the test: the same measurement with one thing changed.

use crate::{Interval, Limit, Message};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The test that a trial belongs to. A test is measured in pairs of trials, one after the other: the measurement as it was, then
/// the same with one thing changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Counterproof {
    /// The cell whose verdict it tests.
    pub of: String,
    /// The one thing changed, as in `4 flows instead of 1`.
    pub change: Message,
    /// Which trial of a pair it is.
    pub part: PairPart,
    /// What comes out if the verdict is right.
    pub expects: Expects,
    /// What the limit is if the contrary comes out, where that is known.
    pub otherwise: Option<Limit>,
    /// What the contrary shows, as in `a limit of packets, not of bits`; none where it speaks against the limit and shows no more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contrary: Option<Message>,
    /// The expected outcome only rules the contrary out. It does not support the limit.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub only_excludes: bool,
}

impl Counterproof {
    /// Whether both trials belong to one test, whichever of a pair they are.
    pub fn is_of(&self, other: &Self) -> bool {
        (&self.of, &self.change) == (&other.of, &other.change)
    }
}

/// A trial's place in a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PairPart {
    /// The measurement as it was.
    Unchanged,
    /// The same with the one thing changed.
    Changed,
}

/// What comes out of a changed measurement if a verdict is right.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Expects {
    /// The result rises.
    Rise,
    /// The result falls.
    Fall,
    /// The result stays as it is.
    Same,
    /// The rate stays as it is, counted with all headers and gaps of the packets: payload differs with their size.
    SameOnWire,
    /// The share of datagrams lost, or of segments retransmitted, stays as it is.
    LossStays,
    /// The loss goes.
    LossGoes,
    /// The verdict on the changed measurement is this limit.
    Names(Limit),
}

/// What a counterproof came to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Proof {
    /// The result that was measured for it, by name; the record of the calibration, where it had been measured before.
    pub by: String,
    /// The figure of the unchanged measurement: payload bit/s, transactions or frames per second (median), or the share of
    /// datagrams or segments lost (of all pairs together).
    pub before: f64,
    /// The same figure with the one thing changed.
    pub after: f64,
    /// Pairs of an unchanged and a changed trial; zero where a calibration had been measured before.
    pub pairs: u32,
    /// The interval of the ratio of the changed figure to the unchanged one, by a paired t test of their logarithms; none of
    /// shares lost, of fewer than two pairs, and of a calibration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio: Option<Interval>,
    /// Whether it came out as the verdict had it; none if neither that nor the contrary.
    pub held: Option<bool>,
}
