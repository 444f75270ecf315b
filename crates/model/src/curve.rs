//! Response time against load: how a curve is to be drawn, and what was found of an NFS server.

use crate::checked::{OutOfRange, check_when_read, within};
use crate::named;
use crate::{Firmness, NfsClass, Repeats, Trial, Window};
use linerate_units::{Nanos, Ratio};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A curve to measure. Its loads are chosen one after the other, and stand in the trials.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self")]
pub struct CurvePlan {
    /// The trial whose operations are offered at one load after the other. It is a closed loop itself, and its rate is the
    /// scale of the loads.
    pub cell: Trial,
    /// How often the cell and each load are run.
    pub repeats: Repeats,
    /// Length of each load's measured window.
    pub time: Nanos,
    /// The mean response time that a load may have and still count for the peak.
    pub response_cap: Nanos,
    /// Steps from the lowest load to the probe's rate.
    pub steps: u32,
    /// Share of the operations that were due and may stay undone, or fail.
    pub shortfall: Ratio,
    /// Search resolution for the peak, as a share of the load.
    pub width: Ratio,
}

impl CurvePlan {
    fn check(&self) -> Result<(), OutOfRange> {
        within("of measured window", self.time, Nanos::default()..=Window::LONGEST)?;
        within("steps of a curve", self.steps, 1..=1_000)
    }
}

check_when_read!(CurvePlan);

/// Response time against load, as it was found.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CurveFound {
    /// The entry of `results` that stands for the server: the peak's, or the cell's where no load was held. None before the
    /// cell was measured.
    pub result: Option<String>,
    /// Each load that was offered, the lowest first.
    pub curve: Vec<CurvePoint>,
    /// The highest load that was held, below the lowest that was not; none if no load was held.
    pub peak: Option<CurvePeak>,
}

impl CurveFound {
    /// Returns whether the result of that name is firm: the peak may be a lower bound.
    pub fn firmness_of(&self, result: &str) -> Firmness {
        let peak = self.peak.as_ref().filter(|peak| peak.result == result);
        peak.map_or(Firmness::Firm, |peak| peak.firmness)
    }
}

/// One load, and what came of it. Of several runs the one in the middle by its mean response time, of two the better.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CurvePoint {
    /// The entry of `results` that holds all its runs.
    pub result: String,
    /// Operations per second that were asked for.
    pub intended_ops: f64,
    /// Operations per second that came due in the window: as asked for, and as chance had it.
    pub offered_ops: f64,
    /// Operations per second that were completed.
    pub achieved_ops: f64,
    /// Mean response time from when an operation was due, milliseconds.
    pub mean_ms: f64,
    /// Half of all were answered within this, milliseconds.
    pub p50_ms: f64,
    /// 99 %, milliseconds.
    pub p99_ms: f64,
    /// Operations that failed, or were due and not sent.
    pub undone: u64,
    /// Share of the operations that came due that were sent, 0 to 1.
    pub sent_share: f64,
    /// Each class on its own.
    pub classes: BTreeMap<NfsClass, ClassPoint>,
    /// Why the load was not held; none if it was.
    pub missed: Option<CurveMiss>,
    /// How often it was offered.
    pub runs: u32,
}

/// One class of operations at one load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClassPoint {
    /// Operations per second that were completed.
    pub achieved_ops: f64,
    /// Mean response time, milliseconds.
    pub mean_ms: f64,
    /// 99 % were answered within this, milliseconds.
    pub p99_ms: f64,
}

named! {
    /// Why a load was not held.
    pub enum CurveMiss as "missed" {
        /// Nothing was answered at all.
        Silence = "silence", "nothing was answered";
        /// More operations were left undone than the plan allows.
        Throughput = "throughput", "operations were left undone";
        /// More operations failed than the plan allows.
        Errors = "errors", "operations failed";
        /// The mean response time was past the cap.
        ResponseTime = "response_time", "the mean response time was past the cap";
    }
}

/// The highest load that was held.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CurvePeak {
    /// The entry of `results`.
    pub result: String,
    /// Operations per second that came due.
    pub offered_ops: f64,
    /// Operations per second that were completed.
    pub achieved_ops: f64,
    /// Whether it is firm. It is a lower bound where operations of the next load were not sent, and it was not the server that
    /// kept them from it: those sent were answered within the cap, or the client's processor was at its limit.
    pub firmness: Firmness,
    /// Mean response time, milliseconds.
    pub mean_ms: f64,
    /// What it had to stay within, milliseconds.
    pub response_cap_ms: f64,
    /// The lowest load that was not held, operations per second as asked for; none if the run ended before one was found.
    pub missed_at_ops: Option<f64>,
    /// Why not.
    pub missed: Option<CurveMiss>,
}
