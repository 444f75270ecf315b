//! A trial with raw frames as one of several hosts sees it: the contract between the runner and the agents.
//!
//! Each host sends the streams that leave by its own ports and counts what arrives at them. No host sends before the ports of
//! all hosts count, and none stops counting before all have sent. Each reads its own clock: of a stream between two hosts
//! the times of sending are the sender's, those of arrival the receiver's, and no latency is known.

use crate::{Caveat, FrameEngine, FrameStreamResult, FrameTrial, Histogram, Observation};
use linerate_units::Nanos;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What one host is to do of a trial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FrameHalf {
    /// The whole trial.
    pub trial: FrameTrial,
    /// Indices of the ports that are this host's.
    pub ports: Vec<u16>,
    /// The number in the trial's frames that tells them from others; the same on all hosts.
    pub tag: u16,
}

/// What one host counted of a trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FrameHalfResult {
    /// The means that was used; never `auto`.
    pub engine: FrameEngine,
    /// When sending began, nanoseconds since 1970.
    pub started_unix_ns: u64,
    /// Each stream of the trial, in its order.
    pub streams: Vec<StreamHalf>,
    /// What the host saw.
    pub observation: Observation,
    /// Doubts.
    pub caveats: Vec<Caveat>,
}

/// What one host knows of a stream.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StreamHalf {
    /// What was sent, if it left by a port of this host.
    pub sent: Option<FramesSent>,
    /// What arrived, if it was meant for a port of this host.
    pub arrived: Option<FramesArrived>,
    /// Copies that arrived at ports of this host that they were not meant for.
    pub flooded: u64,
}

/// What a host sent of a stream.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FramesSent {
    /// Frames that were due; without a rate, those that were sent.
    pub intended: u64,
    /// Frames given to the port.
    pub sent: u64,
    /// Bytes of them, FCS counted.
    pub bytes: u64,
    /// When the first was, nanoseconds of the sender's clock.
    pub first: u64,
    /// From the first to the last frame.
    pub time: Nanos,
    /// For how long in all the sender was held up.
    pub held_up: Nanos,
}

/// What arrived of a stream at a host.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FramesArrived {
    /// Frames that arrived, duplicates left out.
    pub received: u64,
    /// Bytes of them, FCS counted.
    pub bytes: u64,
    /// Further copies.
    pub duplicates: u64,
    /// Frames that arrived after one with a higher number.
    pub reordered: u64,
    /// One above the highest number that arrived.
    pub expected: u64,
    /// When the last frame was sent before which numbers were missing, nanoseconds of the sender's clock.
    pub last_gap: Option<u64>,
    /// The frames carry no signature, and `received` is what the port's own counter rose by.
    pub by_port_counters: bool,
    /// From the first to the last frame.
    pub time: Nanos,
    /// Latencies, where one clock timed both ends.
    pub latency: Histogram,
}

impl FrameStreamResult {
    /// What became of a stream, from what its two ends counted.
    pub fn joined(sent: FramesSent, arrived: FramesArrived, flooded: u64) -> Self {
        let last_gap = match arrived.expected < sent.sent {
            true => Some(sent.time),
            false => arrived.last_gap.map(|moment| Nanos::new(moment.saturating_sub(sent.first))),
        };
        Self {
            intended: sent.intended,
            sent: sent.sent,
            send_time: sent.time,
            held_up: sent.held_up,
            received: arrived.received,
            duplicates: arrived.duplicates,
            reordered: arrived.reordered,
            flooded,
            last_gap,
            sent_bytes: sent.bytes,
            received_bytes: arrived.bytes,
            by_port_counters: arrived.by_port_counters,
            receive_time: arrived.time,
            latency: arrived.latency,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_gap_is_told_by_the_senders_clock() {
        let sent = FramesSent { sent: 100, first: 5_000, time: Nanos::new(990), ..FramesSent::default() };
        let gap = |expected, last_gap| {
            let arrived = FramesArrived { expected, last_gap, ..FramesArrived::default() };
            FrameStreamResult::joined(sent.clone(), arrived, 0).last_gap
        };
        assert_eq!(gap(100, None), None);
        assert_eq!(gap(100, Some(5_300)), Some(Nanos::new(300)), "since the first frame was sent");
        assert_eq!(gap(99, Some(5_300)), Some(Nanos::new(990)), "the last frame itself is missing");
    }
}
