//! What is kept of a run.

use crate::{
    Caveat, CopyOutcome, CopyPlan, CopyTest, CopyTrial, CurvePlan, DeviceOutcome, DevicePlan, Findings,
    FrameTrialResult, Host, Ladder, LadderPlan, Measurement, NfsOutcome, StudyRun, TrialResult, TrialSpec,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The format's name and version. Fields may be added within a version; none changes its meaning.
pub const SCHEMA: &str = "linerate.record/1";

/// Names a record: the time it began and a random tail, as in `20261121T093000-4f2a`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct RecordId(pub String);

impl fmt::Display for RecordId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// What is asked: the cells to measure, and how often each.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Plan {
    /// One trial for each thing to measure; the names differ.
    pub cells: Vec<TrialSpec>,
    /// How often each is run.
    pub repeats: Repeats,
    /// A test of a device with raw frames, which has no cells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<DevicePlan>,
    /// The ladder that is to be drawn from the cells' results; none for other runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ladder: Option<LadderPlan>,
    /// The curve that is to be drawn with one of the cells; none for other runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub curve: Option<CurvePlan>,
    /// A folder tree to copy, which has no cells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copy: Option<CopyPlan>,
}

impl Plan {
    /// Cells to measure, and nothing besides.
    pub fn of(cells: Vec<TrialSpec>, repeats: Repeats) -> Self {
        Self { cells, repeats, device: None, ladder: None, curve: None, copy: None }
    }
}

/// How often a trial is run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Repeats {
    /// So many times.
    Times(u32),
    /// Until the confidence interval of the mean is narrow enough, within bounds.
    Until {
        /// Confidence in percent, as in 95.
        confidence_percent: f64,
        /// Half the interval's width as a share of the mean, as in 0.025.
        within: f64,
        /// At least so many times (no fewer than 3).
        at_least: u32,
        /// At most so many times.
        at_most: u32,
    },
}

/// A run: what was asked, of whom, every trial, and what they amount to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Record {
    /// [`SCHEMA`].
    pub schema: String,
    /// The record's own name.
    pub id: RecordId,
    /// Version of the program that wrote it.
    pub version: String,
    /// The command as typed, secrets left out.
    pub command: Vec<String>,
    /// The run of a study that it is; none for what is no part of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub study: Option<StudyRun>,
    /// When it began, nanoseconds since 1970.
    pub started_unix_ns: u64,
    /// What was asked.
    pub plan: Plan,
    /// The hosts that took part.
    pub hosts: Vec<Host>,
    /// What was found, one entry for each cell measured at least once, in the plan's order.
    pub results: Vec<Measurement>,
    /// Every trial, in the order they ran.
    pub trials: Vec<TrialResult>,
    /// What was found of a device, a server or a copy; none for other runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Findings>,
    /// Every trial with raw frames, in the order they ran.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub frame_trials: Vec<FrameTrialResult>,
    /// Every copy, in the order they ran.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub copy_trials: Vec<CopyTrial>,
    /// Copies that put the verdict of those to the test; none where that was not done.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub copy_tests: Vec<CopyTest>,
    /// The path layer by layer; none for other runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ladder: Option<Ladder>,
    /// Doubts about the run as a whole.
    pub caveats: Vec<Caveat>,
}

impl Record {
    /// A record of `plan` in which nothing has happened yet: no command, time or hosts either.
    pub fn new(id: RecordId, plan: Plan) -> Self {
        Self {
            schema: SCHEMA.to_owned(),
            id,
            version: String::new(),
            command: Vec::new(),
            study: None,
            started_unix_ns: 0,
            plan,
            hosts: Vec::new(),
            results: Vec::new(),
            trials: Vec::new(),
            outcome: None,
            frame_trials: Vec::new(),
            copy_trials: Vec::new(),
            copy_tests: Vec::new(),
            ladder: None,
            caveats: Vec::new(),
        }
    }

    /// What was asked and found of a device; none for other runs.
    pub fn device(&self) -> Option<(&DevicePlan, &DeviceOutcome)> {
        Some((self.plan.device.as_ref()?, &self.outcome.as_ref()?.device))
    }

    /// What was found of an NFS server; none for other runs.
    pub fn nfs(&self) -> Option<&NfsOutcome> {
        self.outcome.as_ref()?.nfs.as_ref()
    }

    /// What was asked and found of a copy; none for other runs.
    pub fn copy(&self) -> Option<(&CopyPlan, &CopyOutcome)> {
        Some((self.plan.copy.as_ref()?, self.outcome.as_ref()?.copy.as_ref()?))
    }
}
