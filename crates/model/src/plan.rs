//! What a run is asked: fixed once the run has begun. What a method chooses as it goes stands in the trials.

use crate::{CurvePlan, DevicePlan, LadderPlan, RecordId, Summary, Trial};
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
}

impl Plan {
    /// A plan for `goal`; verdicts are not tested, and the tester's limits are not known.
    pub fn of(goal: Goal) -> Self {
        Self { goal, prove: false, calibrated: Vec::new() }
    }

    /// A plan that measures each of `cells`.
    pub fn sweep(cells: Vec<Trial>, repeats: Repeats) -> Self {
        Self::of(Goal::Sweep(SweepPlan { cells, repeats }))
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
pub struct SweepPlan {
    /// One trial for each thing to measure; the names differ.
    pub cells: Vec<Trial>,
    /// How often each is run.
    pub repeats: Repeats,
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
        /// At least so many times (no fewer than 5, unless `at_most` is).
        at_least: u32,
        /// At most so many times.
        at_most: u32,
    },
}

/// A tester limit: what the hosts reached in one trial of a calibration, with the device bypassed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Calibrated {
    /// The calibration's record.
    pub record: RecordId,
    /// What it was measured with.
    pub subject: CalibratedSubject,
    /// What was reached, in the unit of the result's main figure (frames: frames per second).
    pub reached: Summary,
}

/// What a tester limit was measured with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CalibratedSubject {
    /// A result of this name.
    Result(String),
    /// Frames of so many bytes, FCS counted.
    FrameBytes(u32),
}
