//! Results of the tests of RFC 2889 other than those of address tables.

use crate::{Caveat, DeviceLoad, Firmness, FrameTesterLimit, Message, Verdict};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Forwarding rates of one frame size between many ports (RFC 2889 sections 5.1 to 5.4).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Forwarding {
    /// Frame size in bytes, with FCS.
    pub frame_bytes: u32,
    /// Throughput in frames per second, all streams together. `None` if it was not found.
    pub throughput_frames_per_s: Option<f64>,
    /// Maximum offered load (MOL) that the lines allow, in frames per second. `None` if their rate is unknown.
    pub maximum_load_frames_per_s: Option<f64>,
    /// Forwarding rate at the maximum offered load (FRMOL, RFC 2285 section 3.6.2). `None` if the tester did not offer
    /// that load.
    pub at_maximum_load_frames_per_s: Option<f64>,
    /// Maximum forwarding rate (MFR, RFC 2285 section 3.6.3).
    pub maximum_frames_per_s: f64,
    /// Offered load at the maximum forwarding rate, in frames per second.
    pub maximum_at_frames_per_s: f64,
    /// Firmness of the maximum forwarding rate.
    pub firmness: Firmness,
    /// Loads from the highest down.
    pub points: Vec<ForwardingPoint>,
    /// Limit of the highest load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// Caveats of the trials.
    pub caveats: Vec<Caveat>,
}

/// Forwarding rate at one load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ForwardingPoint {
    /// Intended load (Iload) in frames per second, all ports together.
    pub intended_frames_per_s: f64,
    /// Offered load (Oload) in frames per second.
    pub offered_frames_per_s: f64,
    /// Forwarding rate (FR) in frames per second: frames that arrived at their own port.
    pub forwarded_frames_per_s: f64,
    /// Whether the tester offered the intended load.
    pub firmness: Firmness,
    /// Number of frames sent.
    pub sent: u64,
    /// Number of frames received at their own port.
    pub received: u64,
    /// Flood count: frames received at other ports.
    pub flooded: u64,
    /// Most frames that can have arrived at a wrong port only.
    pub misforwarded: u64,
    /// The device's own load. `None` if it was not asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_load: Option<DeviceLoad>,
}

/// Presence of a property of the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Presence {
    /// The device shows it.
    Present,
    /// The device does not show it.
    Absent,
    /// The trials do not decide it.
    CannotTell,
}

/// Congestion control at one frame size (RFC 2889 section 5.5).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Congestion {
    /// Frame size in bytes, with FCS.
    pub frame_bytes: u32,
    /// Head-of-line blocking: frames for the uncongested port are lost or wait.
    pub head_of_line: Presence,
    /// Back pressure: the device slows its senders down instead of losing frames.
    pub back_pressure: Presence,
    /// Groups of four ports.
    pub groups: Vec<CongestionGroup>,
    /// Whether the tester offered the loads.
    pub firmness: Firmness,
    /// The device's own load. `None` if it was not asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_load: Option<DeviceLoad>,
    /// Limit of the loads, with the findings in words.
    pub verdict: Verdict,
    /// Caveats of the trial.
    pub caveats: Vec<Caveat>,
}

/// One group of ports of a congestion test: two senders, an uncongested and a congested receiver.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CongestionGroup {
    /// Name of the uncongested port, which half of the first sender's frames are for.
    pub uncongested: String,
    /// Name of the congested port, which all other frames are for.
    pub congested: String,
    /// Frames that were due for the uncongested port.
    pub uncongested_intended: u64,
    /// Frames sent to the uncongested port.
    pub uncongested_sent: u64,
    /// Frames received at the uncongested port.
    pub uncongested_received: u64,
    /// Frames that were due for the congested port.
    pub congested_intended: u64,
    /// Frames sent to the congested port.
    pub congested_sent: u64,
    /// Frames received at the congested port.
    pub congested_received: u64,
    /// Forwarding rate at the uncongested port in frames per second.
    pub uncongested_frames_per_s: f64,
    /// Forwarding rate at the congested port in frames per second.
    pub congested_frames_per_s: f64,
    /// Time for which PAUSE frames of the device stopped the senders, as a share of the trial.
    pub paused_share: f64,
}

/// Forward pressure at one frame size (RFC 2889 section 5.6).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ForwardPressure {
    /// Frame size in bytes, with FCS.
    pub frame_bytes: u32,
    /// Number of ports that sent. Two ports overload the receiver where one cannot shorten its gaps.
    pub senders: u32,
    /// Highest frame rate that the medium allows.
    pub line_frames_per_s: f64,
    /// Frames per second that were offered.
    pub offered_frames_per_s: f64,
    /// Frames per second that the device forwarded, by the clock of the receiver.
    pub forwarded_frames_per_s: f64,
    /// Whether the device forwards more than the medium allows.
    pub presence: Presence,
    /// The device's own load in the longer trial. `None` if it was not asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_load: Option<DeviceLoad>,
    /// Tester limit. `None` if it was not calibrated.
    pub tester_limit: Option<FrameTesterLimit>,
    /// Limit of the load, with the finding in words.
    pub verdict: Verdict,
    /// Caveats of the trial.
    pub caveats: Vec<Caveat>,
}

/// Errored frames (RFC 2889 section 5.9).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FrameFault {
    /// Longer than 1518 bytes, or 1522 with a VLAN tag.
    Oversize,
    /// Shorter than 64 bytes.
    Undersize,
    /// Wrong FCS.
    Crc,
    /// Wrong FCS and a number of bits that is no multiple of 8.
    Alignment,
    /// Right FCS and up to seven bits more.
    DribbleBits,
}

impl FrameFault {
    /// All kinds in the order of the RFC.
    pub const ALL: [Self; 5] = [Self::Oversize, Self::Undersize, Self::Crc, Self::Alignment, Self::DribbleBits];
    /// Returns the name of the kind, as in the RFC.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Oversize => "oversize",
            Self::Undersize => "undersize",
            Self::Crc => "CRC error",
            Self::Alignment => "alignment error",
            Self::DribbleBits => "dribble bits",
        }
    }

    /// Kinds that ordinary ports may be able to send.
    pub const SENDABLE: [Self; 3] = [Self::Oversize, Self::Undersize, Self::Crc];
}

/// Result of a device with frames of one kind of error.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FaultResult {
    /// Kind of error.
    pub fault: FrameFault,
    /// Number of frames sent.
    pub sent: u64,
    /// Number of frames that the device forwarded.
    pub received: u64,
    /// Share of such frames that arrived over a cable. `None` if that was not measured.
    pub cable_share: Option<f64>,
    /// Pass or fail.
    pub outcome: FaultOutcome,
}

/// Pass or fail of one kind of error.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum FaultOutcome {
    /// The device did with the frames as the RFC asks.
    Pass,
    /// The device did otherwise.
    Fail,
    /// The ports cannot send or receive such frames, or nobody knows whether they can.
    NotTestable {
        /// Reason and remedy.
        why: Message,
    },
}

/// Forwarding of broadcasts at one frame size (RFC 2889 section 5.10).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Broadcast {
    /// Frame size in bytes, with FCS.
    pub frame_bytes: u32,
    /// Highest rate at which every port received every frame, in frames per second. A lower bound if it is not firm.
    pub frames_per_s: f64,
    /// Firmness of the rate.
    pub firmness: Firmness,
    /// Each receiving port.
    pub ports: Vec<BroadcastPort>,
    /// The device's own load at that rate. `None` if it was not asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_load: Option<DeviceLoad>,
    /// Caveats of the latency trial.
    pub caveats: Vec<Caveat>,
}

/// Broadcasts at one receiving port.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BroadcastPort {
    /// Name of the port.
    pub port: String,
    /// Frames received in the trial that decided the rate.
    pub received: u64,
    /// Latency of a single frame in nanoseconds. `None` if it did not arrive, or if sender and receiver have two clocks.
    pub latency_ns: Option<u64>,
}
