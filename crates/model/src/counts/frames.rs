//! Raw frames as they were counted: by one host, and joined over all hosts.
//!
//! Each host sends the streams that leave by its own ports and counts what arrives at them. Each reads its own clock: of a
//! stream between two hosts the times of sending are the sender's, those of arrival the receiver's, and no latency is known.

use crate::{FrameEngine, Histogram};
use linerate_units::Nanos;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a trial with raw frames counted, all hosts together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FrameCounts {
    /// The engine that was used; never `auto`. Packet sockets where one of several hosts had to use them.
    pub engine: FrameEngine,
    /// Each stream, in the task's order.
    pub streams: Vec<FrameStreamCounts>,
}

/// What became of one stream.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FrameStreamCounts {
    /// Frames that were due; without a rate, those that were sent.
    pub intended: u64,
    /// Frames given to the port.
    pub sent: u64,
    /// From the first to the last frame sent.
    pub send_time: Nanos,
    /// For how long in all the sender was held up, beyond what it made up for at once: what was due later left so much later.
    #[serde(default)]
    pub held_up: Nanos,
    /// Time for which PAUSE frames stopped the sending port.
    #[serde(default, skip_serializing_if = "Nanos::is_zero")]
    pub paused: Nanos,
    /// Frames that arrived at the port they were meant for, duplicates left out. Those that were read from its socket, if
    /// the task counts there.
    pub received: u64,
    /// Frames within the receiving host. `None` if the task counts frames at the port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to_socket: Option<ToSocket>,
    /// Further copies.
    pub duplicates: u64,
    /// Frames that arrived after one with a higher number (RFC 4737 section 3.3).
    pub reordered: u64,
    /// Copies that arrived at other ports of the trial.
    pub flooded: u64,
    /// The same by port, in the order of the ports. Empty if nothing flooded, or if the agent did not count each port.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flooded_at: Vec<PortFlood>,
    /// Arrivals at the further ports of the stream, in its order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub copies: Vec<PortArrivals>,
    /// From the first frame sent to the sending of the last frame before which numbers were missing; to that of the last
    /// frame of all, if it did not arrive. None if the frames that arrived had no gap between them.
    #[serde(default)]
    pub last_gap: Option<Nanos>,
    /// Bytes of the frames sent, FCS counted.
    #[serde(default)]
    pub sent_bytes: u64,
    /// Bytes of the frames received, FCS counted, duplicates left out.
    #[serde(default)]
    pub received_bytes: u64,
    /// The frames carry no signature: `received` is all that the receiving port's own counter rose by, whoever sent it, and
    /// duplicates, order and latency are not known.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_port_counters: bool,
    /// From the first to the last frame received.
    pub receive_time: Nanos,
    /// From the moment a frame is given to the sending port to the moment the receiving port has it, nanoseconds.
    pub latency: Histogram,
}

impl FrameStreamCounts {
    /// Frames that were due and did not arrive. What was never sent counts as lost (RFC 9971 section 4.5.3: the tester's own
    /// shortfall must be looked at before this is believed).
    pub fn lost(&self) -> u64 {
        self.intended.max(self.sent).saturating_sub(self.received_by_all())
    }

    /// Adds the counts of a stream that was sent next to this one, from and to the same ports. Times are the longer ones.
    pub fn add(&mut self, other: &Self) {
        self.intended += other.intended;
        self.sent += other.sent;
        self.send_time = self.send_time.max(other.send_time);
        self.held_up = self.held_up.max(other.held_up);
        self.paused = self.paused.max(other.paused);
        self.received += other.received;
        if let (Some(to_socket), Some(other)) = (&mut self.to_socket, other.to_socket) {
            to_socket.at_port += other.at_port;
            to_socket.dropped = to_socket.dropped.zip(other.dropped).map(|(one, other)| one + other);
        }
        self.duplicates += other.duplicates;
        self.reordered += other.reordered;
        self.flooded += other.flooded;
        self.last_gap = self.last_gap.max(other.last_gap);
        self.sent_bytes += other.sent_bytes;
        self.received_bytes += other.received_bytes;
        self.by_port_counters |= other.by_port_counters;
        self.receive_time = self.receive_time.max(other.receive_time);
        self.latency.merge(&other.latency);
    }

    /// Returns the number of frames that all receivers of the stream received, by the receiver with the fewest.
    pub fn received_by_all(&self) -> u64 {
        self.copies.iter().map(|copy| copy.arrived.received).fold(self.received, u64::min)
    }

    /// Returns the most frames that can have arrived at a wrong port only. Frames that flood arrive at their own port too.
    pub fn misforwarded(&self) -> u64 {
        self.flooded.min(self.sent.saturating_sub(self.received))
    }

    /// Returns the copies that flooded to a port, or `None` if they were not counted by port.
    pub fn flooded_at(&self, port: u16) -> Option<u64> {
        if self.flooded > 0 && self.flooded_at.is_empty() {
            return None;
        }
        Some(self.flooded_at.iter().filter(|flood| flood.port == port).map(|flood| flood.frames).sum())
    }
}

/// What one host counted of a trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FramePartCounts {
    /// The engine that was used; never `auto`.
    pub engine: FrameEngine,
    /// Each stream of the task, in its order.
    pub streams: Vec<FrameStreamPart>,
}

/// What one host knows of a stream.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FrameStreamPart {
    /// What was sent, if it left by a port of this host.
    pub sent: Option<FramesSent>,
    /// What arrived, if it was meant for a port of this host.
    pub arrived: Option<FramesArrived>,
    /// Copies that arrived at ports of this host that they were not meant for.
    pub flooded: u64,
    /// The same by port.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flooded_at: Vec<PortFlood>,
    /// Arrivals at the further ports of the stream that are at this host.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub copies: Vec<PortArrivals>,
}

/// Arrivals of a stream at one of its further ports.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PortArrivals {
    /// Index of the port.
    pub port: u16,
    /// The frames.
    pub arrived: FramesArrived,
}

/// Frames of a stream on their way through the receiving host to its socket.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToSocket {
    /// Frames that arrived at the port.
    pub at_port: u64,
    /// Datagrams that the socket dropped because its buffer was full, those of other streams to it included. `None` if the
    /// kernel does not report them.
    pub dropped: Option<u64>,
}

/// Copies of a stream that flooded to a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PortFlood {
    /// Index of the port.
    pub port: u16,
    /// The copies.
    pub frames: u64,
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
    /// Time for which PAUSE frames stopped the port.
    #[serde(default, skip_serializing_if = "Nanos::is_zero")]
    pub paused: Nanos,
}

/// What arrived of a stream at a host.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FramesArrived {
    /// Frames that arrived, duplicates left out.
    pub received: u64,
    /// Frames within the receiving host, if `received` counts those that were read from a socket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to_socket: Option<ToSocket>,
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

impl FrameStreamCounts {
    /// What became of a stream, from what its two ends counted.
    pub fn joined(sent: FramesSent, arrived: FramesArrived, copies: Vec<PortArrivals>, flooded: u64) -> Self {
        let last_gap = match arrived.expected < sent.sent {
            true => Some(sent.time),
            false => arrived.last_gap.map(|moment| Nanos::new(moment.saturating_sub(sent.first))),
        };
        Self {
            intended: sent.intended,
            sent: sent.sent,
            send_time: sent.time,
            held_up: sent.held_up,
            paused: sent.paused,
            received: arrived.received,
            to_socket: arrived.to_socket,
            duplicates: arrived.duplicates,
            reordered: arrived.reordered,
            flooded,
            flooded_at: Vec::new(),
            copies,
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
            FrameStreamCounts::joined(sent.clone(), arrived, Vec::new(), 0).last_gap
        };
        assert_eq!(gap(100, None), None);
        assert_eq!(gap(100, Some(5_300)), Some(Nanos::new(300)), "since the first frame was sent");
        assert_eq!(gap(99, Some(5_300)), Some(Nanos::new(990)), "the last frame itself is missing");
    }
}
