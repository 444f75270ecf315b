//! What a run is asked: fixed once the run has begun. What a method chooses as it goes stands in the trials.

use crate::checked::{OutOfRange, check_when_read};
use crate::trial::check_names;
use crate::{Calibrated, Calibration, CurvePlan, DevicePlan, DeviceTest, LadderPlan, RecordId, Repeats, Trial};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a run is asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Plan {
    /// What is to be found out.
    pub goal: Goal,
    /// Test each verdict: measure again with one thing changed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub prove: bool,
    /// What the tester reached without the device, from an earlier run; empty where that is not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calibrated: Vec<Calibrated>,
    /// How the run bypasses the device, if it is a calibration: later runs are compared with what it reaches. None for other
    /// runs, and for device tests, which have a test of their own for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calibration: Option<Calibration>,
    /// Tuning of the cells. `None` if they are as asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tuning: Option<Tuning>,
}

/// Tuning: a search for the fastest way to send, receive and place threads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Tuning {
    /// The cells are the candidates of a later run. The first of each trial is as asked.
    Candidates,
    /// This tuning chose how the cells send, receive and place their threads.
    ChosenBy(RecordId),
}

impl Plan {
    /// A plan for `goal`; verdicts are not tested, and the tester's limits are not known.
    pub fn of(goal: Goal) -> Self {
        Self { goal, prove: false, calibrated: Vec::new(), calibration: None, tuning: None }
    }

    /// A plan that measures each of `cells`.
    pub fn sweep(cells: Vec<Trial>, repeats: Repeats) -> Self {
        Self::of(Goal::Sweep(SweepPlan { cells, repeats }))
    }

    /// Whether it measures the tester limit, which other runs are compared with.
    pub fn is_calibration(&self) -> bool {
        self.calibration.is_some() || self.device().is_some_and(|plan| plan.test == DeviceTest::Calibrate)
    }

    /// The trials that are known before the run begins; none for a device test, which chooses its own.
    pub fn cells(&self) -> &[Trial] {
        match &self.goal {
            Goal::Sweep(plan) => &plan.cells,
            Goal::Curve(plan) => std::slice::from_ref(&plan.cell),
            Goal::Ladder(plan) => &plan.cells,
            Goal::Device(_) => &[],
        }
    }

    /// How often each cell is run; a device test decides by itself.
    pub fn repeats(&self) -> Option<Repeats> {
        match &self.goal {
            Goal::Sweep(plan) => Some(plan.repeats),
            Goal::Curve(plan) => Some(plan.repeats),
            Goal::Ladder(plan) => Some(plan.repeats),
            Goal::Device(_) => None,
        }
    }

    /// The device test that is asked for; none for other goals.
    pub fn device(&self) -> Option<&DevicePlan> {
        match &self.goal {
            Goal::Device(plan) => Some(plan),
            _ => None,
        }
    }

    /// The curve that is asked for; none for other goals.
    pub fn curve(&self) -> Option<&CurvePlan> {
        match &self.goal {
            Goal::Curve(plan) => Some(plan),
            _ => None,
        }
    }

    /// The ladder that is asked for; none for other goals.
    pub fn ladder(&self) -> Option<&LadderPlan> {
        match &self.goal {
            Goal::Ladder(plan) => Some(plan),
            _ => None,
        }
    }
}

/// What is to be found out. Each goal has one method.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Goal {
    /// What each of several trials comes to.
    Sweep(SweepPlan),
    /// Response time against load, and the highest load a server holds.
    Curve(CurvePlan),
    /// What a device can carry.
    Device(DevicePlan),
    /// What each layer of one path delivers.
    Ladder(LadderPlan),
}

/// Trials to measure, and how often each.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self")]
pub struct SweepPlan {
    /// One trial for each thing to measure; the names differ.
    pub cells: Vec<Trial>,
    /// How often each is run.
    pub repeats: Repeats,
}

impl SweepPlan {
    fn check(&self) -> Result<(), OutOfRange> {
        check_names(&self.cells)
    }
}

check_when_read!(SweepPlan);
