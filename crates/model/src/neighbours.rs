//! How many neighbours a router holds, and what becomes of more.

use crate::{Caveat, Firmness, Latency, Limit, Verdict};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The table in which a router keeps its neighbours' Ethernet addresses: by ARP (RFC 826) or neighbour discovery (RFC 4861).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NeighbourTable {
    /// The frames, FCS counted.
    pub frame_bytes: u32,
    /// The most hosts behind one port that were all reached, every frame of theirs; zero if one alone was not.
    pub held: u32,
    /// Whether that is firm: the tester asked for all hosts of the probe that decided. If not, the router may hold more.
    pub firmness: Firmness,
    /// The fewest of which some were not reached though the tester asked for all; none if there was no such number.
    pub lost_at: Option<u32>,
    /// The most hosts that were tried.
    pub neighbours_tried: u32,
    /// As many hosts as the test was allowed, all of them held: the router may hold more. None if some were not held.
    pub bound: Option<u32>,
    /// Frames a second by which the router was shown the hosts, at the most.
    pub learn_frames_per_s: f64,
    /// Frames a second by which they were looked for, and later overloaded.
    pub frames_per_s: f64,
    /// Latency of every frame to the hosts that were held; none if none were.
    pub latency_ns: Option<Latency>,
    /// What happens with more hosts than are held, from few more to many.
    pub past: Vec<PastNeighbours>,
    /// What limited the number.
    pub limit: Limit,
    /// Trials this took.
    pub trials: u32,
    /// What limited it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// Doubts.
    pub caveats: Vec<Caveat>,
}

/// More hosts than a router holds, all of them addressed, and then the held ones alone again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PastNeighbours {
    /// How many hosts were addressed, those that were held among them.
    pub hosts: u32,
    /// Frames sent to them.
    pub sent: u64,
    /// Frames that arrived.
    pub received: u64,
    /// Whether the tester offered the loads of the trial.
    pub firmness: Firmness,
    /// Share of the frames sent that did not arrive, 0 to 1.
    pub loss_ratio: f64,
    /// Copies that arrived at the third port; none without one.
    pub flooded: Option<u64>,
    /// Latency of the frames that arrived; none if none did.
    pub latency_ns: Option<Latency>,
    /// Latency of the frames to the held hosts alone just before; none if none arrived.
    pub held_latency_ns: Option<Latency>,
    /// Frames to the held hosts that were lost after the others had fallen silent.
    pub recovery_lost: u64,
    /// Nanoseconds from then to the last of these losses, zero without any; none if frames were lost until the end.
    pub recovery_ns: Option<u64>,
}
