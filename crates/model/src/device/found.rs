//! What tests of a device beyond its steady rates find: search goals, bursts, recovery, echo.

use super::FrameTesterLimit;
use crate::{Caveat, DeviceLoad, Firmness, Limit, Verdict};
use linerate_units::{FrameRate, Nanos, Ratio};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// A goal of a search for throughput, by the names that RFC 9971 and its examples go by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SearchGoal {
    /// One trial of 60 s without loss (RFC 2544).
    Rfc2544,
    /// Two trials of 60 s, one of which may lose (ETSI TST009).
    Tst009,
    /// The no-drop rate of the CSIT project: 21 trials of 1 s, half of which may lose.
    Ndr,
    /// Its partial-drop rate: the same with 0.5 % of loss allowed.
    Pdr,
}

impl SearchGoal {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Rfc2544, Self::Tst009, Self::Ndr, Self::Pdr];

    /// What users call it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rfc2544 => "rfc2544",
            Self::Tst009 => "tst009",
            Self::Ndr => "ndr",
            Self::Pdr => "pdr",
        }
    }
}

/// What a search found for one goal (RFC 9971, goal result).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GoalBounds {
    /// The goal.
    pub name: SearchGoal,
    /// Length of its full-length trials.
    pub final_time: Nanos,
    /// So long are the trials at a load together when they are enough.
    pub duration_sum: Nanos,
    /// Loss that a trial may have.
    pub loss: Ratio,
    /// Share of the trials that may lose more.
    pub exceed: Ratio,
    /// The relevant lower bound; none if the device misses the goal even at the lowest rate tried.
    pub lower: Option<FrameRate>,
    /// The relevant upper bound by trials that the tester offered; none if no load is known to miss the goal.
    pub upper: Option<FrameRate>,
    /// The relevant lower bound less the loss there: what is forwarded.
    pub conditional_throughput: Option<FrameRate>,
    /// The loss at the relevant lower bound.
    pub loss_at_lower: Option<Ratio>,
}

/// The longest burst that came back whole at one frame size (RFC 2544 section 26.4), and the buffer that follows from it
/// (RFC 9004).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BackToBack {
    /// The frames, FCS counted.
    pub frame_bytes: u32,
    /// The throughput found before, frames per second; all directions together like all that follows.
    pub throughput_frames_per_s: f64,
    /// Frames per second within the bursts: sent by time of sending.
    pub burst_frames_per_s: Option<f64>,
    /// The maximum frame rate: what the lines carry at this size; none where their rate is unknown.
    pub line_frames_per_s: Option<f64>,
    /// The lengths found; none where the test does not apply or did not end.
    pub frames: Option<BurstLengths>,
    /// Whether the tester sent the bursts that decided whole and without a pause.
    pub firmness: Firmness,
    /// The buffer; none where the throughput is not below the rate of the bursts.
    pub buffer: Option<BufferTime>,
    /// What limited it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// Doubts, and why something was not measured.
    pub caveats: Vec<Caveat>,
}

/// Lengths of bursts, frames.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BurstLengths {
    /// Their mean.
    pub mean: f64,
    /// The shortest.
    pub min: u64,
    /// The longest.
    pub max: u64,
    /// Standard deviation of the sample; zero with one value.
    pub deviation: f64,
    /// Each search's.
    pub values: Vec<u64>,
}

/// The buffer in front of a device's bottleneck (RFC 9004 section 5.4).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BufferTime {
    /// Mean burst by the frame rate it was sent at, nanoseconds.
    pub implied_ns: f64,
    /// Less what the device forwarded meanwhile, nanoseconds.
    pub corrected_ns: f64,
    /// The frames that were in the buffer: the corrected time at the bursts' rate.
    pub frames: f64,
}

/// Recovery from overload at one frame size (RFC 2544 section 26.5).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Recovery {
    /// The frames, FCS counted.
    pub frame_bytes: u32,
    /// The throughput found before, frames per second; all directions together like all that follows.
    pub throughput_frames_per_s: f64,
    /// Frames per second offered in the overload: 110 % of the throughput, or what the tester reaches.
    pub overload_frames_per_s: f64,
    /// Whether the tester offered both loads in every run, over a throughput that is firm.
    pub firmness: Firmness,
    /// Frames lost in the overload, all runs together.
    pub overload_lost: u64,
    /// Frames per second offered afterwards: 50 % of the throughput.
    pub reduced_frames_per_s: f64,
    /// From the fall of the load to the last loss, nanoseconds, each run's; a run that lost frames until its end is missing.
    pub values_ns: Vec<u64>,
    /// Their mean; none without any.
    pub mean_ns: Option<f64>,
    /// Runs that lost frames until their end.
    pub unrecovered: u32,
    /// What limited it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// Doubts, and why it was not measured.
    pub caveats: Vec<Caveat>,
}

/// The highest rate of echo requests that were all answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EchoRate {
    /// The frames, FCS counted.
    pub frame_bytes: u32,
    /// Who answers.
    pub target: IpAddr,
    /// Answers per second without loss; zero if requests were lost at every rate tried. What is not firm is a lower bound.
    pub answers_per_s: f64,
    /// Whether it is firm: the tester asked at this rate, and at the lowest one at which requests went unanswered.
    pub firmness: Firmness,
    /// The lowest rate at which requests went unanswered in a trial that the tester offered; none if there was no such trial.
    pub lost_at_requests_per_s: Option<f64>,
    /// What the tester reaches without the device; none if it was not calibrated.
    pub tester_limit: Option<FrameTesterLimit>,
    /// Trials this took.
    pub trials: u32,
    /// Length of the trial that decided.
    pub trial_time: Nanos,
    /// The device's own load in the trial that decided. `None` if it was not asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_load: Option<DeviceLoad>,
    /// What limited it, in one word: the verdict's.
    pub limit: Limit,
    /// What limited it, and why.
    pub verdict: Verdict,
    /// Doubts.
    pub caveats: Vec<Caveat>,
}
