//! What plain generating counted, and what an address table held.

use crate::{Caveat, Firmness, FrameEngine, FrameMix, Latency, ToSocket, Verdict};
use linerate_units::Nanos;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One stream of plain generating and receiving.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FrameFlow {
    /// The sending port.
    pub from: String,
    /// The receiving port.
    pub to: String,
    /// The frames, FCS counted; of a mix the largest.
    pub frame_bytes: u32,
    /// The sizes, where they are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mix: Option<FrameMix>,
    /// The means that was used; never `auto`.
    pub engine: FrameEngine,
    /// Frames that were due; without a rate, those that were sent.
    pub intended: u64,
    /// Frames given to the sending port.
    pub sent: u64,
    /// Whether all that was due was sent, and at the rate asked for; other figures are those of a lower load.
    pub firmness: Firmness,
    /// Frames that arrived, duplicates left out.
    pub received: u64,
    /// Frames within the receiving host, if `received` counts those that were read from a socket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to_socket: Option<ToSocket>,
    /// Frames sent that did not arrive.
    pub lost: u64,
    /// Further copies.
    pub duplicates: u64,
    /// Frames that arrived after one with a higher number.
    pub reordered: u64,
    /// Copies that arrived at other ports.
    pub flooded: u64,
    /// What was sent, from the first frame to the last; none of fewer than two frames.
    pub offered: Option<FlowRate>,
    /// What arrived, likewise.
    pub arrived: Option<FlowRate>,
    /// Bytes of the frames sent, FCS counted.
    pub sent_bytes: u64,
    /// Bytes of the frames received, FCS counted.
    pub received_bytes: u64,
    /// From port to port, nanoseconds; none where no frame was timed.
    pub latency_ns: Option<Latency>,
    /// `received` is all that the receiving port's own counter rose by, whoever sent it: the frames carry no signature.
    pub by_port_counters: bool,
    /// What limited it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// Doubts.
    pub caveats: Vec<Caveat>,
}

/// A rate, by layer.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FlowRate {
    /// Frames per second.
    pub frames_per_s: f64,
    /// Bits per second of frames, FCS counted, preamble and gap not.
    pub frame_bits_per_s: f64,
    /// Bits per second that they take on the line: with preamble and gap.
    pub wire_bits_per_s: f64,
    /// From the first to the last frame.
    pub time: Nanos,
}

/// How many addresses a switch keeps, and how fast it learns them (RFC 2889 sections 5.7 and 5.8).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AddressTable {
    /// The frames, FCS counted.
    pub frame_bytes: u32,
    /// The most addresses that were learned from one port, and none of them flooded.
    pub learned: u32,
    /// Whether that is firm: the tester showed and asked for all addresses of the trial that decided. If not, the table may
    /// hold more.
    pub firmness: Firmness,
    /// Addresses of the tester's own ports, which the device knew besides.
    pub own: u32,
    /// Both together: what the table holds.
    pub capacity: u32,
    /// The fewest addresses of which some flooded; none if all that were tried were kept: the table is no smaller than
    /// `capacity`, and may be larger.
    pub flooded_at: Option<u32>,
    /// Addresses shown to the device a second.
    pub learn_frames_per_s: f64,
    /// How fast it learns; none if that was not measured.
    pub learning: Option<LearningRate>,
    /// Trials this took.
    pub trials: u32,
    /// Iterations of both searches, in the order in which they ran.
    #[serde(default)]
    pub iterations: Vec<AddressIteration>,
    /// What limited it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// Doubts.
    pub caveats: Vec<Caveat>,
}

/// One iteration of an address test (RFC 2889 sections 5.7 and 5.8): addresses were shown at the learning port, then the test
/// port sent a frame to each.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AddressIteration {
    /// Number of addresses.
    pub addresses: u32,
    /// Rate at which they were shown, in frames per second.
    pub learn_frames_per_s: f64,
    /// Learning frames sent.
    pub shown: u64,
    /// Load of the test frames, in frames per second.
    pub test_frames_per_s: f64,
    /// Test frames sent.
    pub sent: u64,
    /// Test frames received at the learning port, where their addresses are.
    pub received: u64,
    /// Test frames that flooded, all ports together.
    pub flooded: u64,
    /// Test frames that flooded to the test port. `None` if the agent did not count each port.
    pub flooded_to_test: Option<u64>,
    /// Test frames that flooded to the learning port: none, because all of them are for it.
    pub flooded_to_learning: Option<u64>,
    /// Test frames that flooded to the monitoring port.
    pub flooded_to_monitoring: Option<u64>,
    /// Whether the tester showed and asked for all addresses.
    pub firmness: Firmness,
}

/// The highest rate at which every new address is learned (RFC 2889 section 5.8).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LearningRate {
    /// New addresses in each trial.
    pub addresses: u32,
    /// Addresses a second, none of which flooded; zero if some flooded at every rate.
    pub frames_per_s: f64,
    /// Whether that is firm: the tester reached this rate, and the one at which some flooded.
    pub firmness: Firmness,
    /// The lowest rate that the tester reached at which some flooded.
    pub flooded_at_frames_per_s: Option<f64>,
}
