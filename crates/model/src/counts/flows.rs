//! What the ends of a path count: of streams, transactions, RPC and NFS.

use crate::network_counters::is_zero;
use crate::{Histogram, Loss, NfsOperation, OperationCounts, Service};
use linerate_units::Nanos;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::ops::AddAssign;

/// Both ends of one path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PathCounts {
    /// The client's end.
    pub client: EndCounts,
    /// The server's end; of a server that runs no agent, what it told of itself.
    pub server: EndCounts,
    /// What became of the datagrams from client to server (UDP streams).
    pub forward_loss: Option<Loss>,
    /// What became of the datagrams from server to client (UDP streams).
    pub backward_loss: Option<Loss>,
}

/// One end's counts.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EndCounts {
    /// The path's index in the trial.
    pub path: u16,
    /// The interface that carried the data here, where it could be told.
    pub interface: Option<String>,
    /// What this end sent; none if it only received.
    pub sent: Option<Sent>,
    /// What this end received; none if it only sent.
    pub received: Option<Received>,
    /// Transactions this end asked for; none at the answering end and in streams.
    pub transactions: Option<Transactions>,
    /// NFS: the same by operation; empty otherwise.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub operations: BTreeMap<NfsOperation, OperationCounts>,
    /// RPC and NFS: what the server that this end runs says of it; none otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<Service>,
    /// Each flow on its own.
    pub flows: Vec<FlowCounts>,
    /// NFS: why a flow ended before its time, as when the server went away. What it had counted until then is kept, and what
    /// was due later counts as not sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broken: Option<String>,
    /// What a server that runs no agent told of this end, in its own form. Then it counted this end, over its own window, and
    /// nobody saw its host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told: Option<Value>,
}

/// What one end handed to its kernel within the measured window.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Sent {
    /// Length of the window by this end's clock.
    pub window: Nanos,
    /// Payload bytes handed over.
    pub payload_bytes: u64,
    /// Messages handed over; UDP: datagrams.
    pub messages: u64,
    /// UDP: datagrams that were due at the offered rate but were never handed over; zero without a rate.
    pub not_sent: u64,
    /// UDP: datagrams the kernel refused (ENOBUFS and the like). They are part of neither `messages` nor `not_sent`.
    pub refused: u64,
    /// UDP: IP fragments that each datagram left in; zero where it fitted into one packet.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub fragments: u64,
    /// The means of sending, as in `sendfile` or `sendmmsg + UDP_SEGMENT`.
    pub io_method: String,
}

/// What one end took from its kernel.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Received {
    /// Length of the window by this end's clock. Rates are taken over it. UDP: from the first datagram that was sent within the
    /// sender's window on.
    pub window: Nanos,
    /// Payload bytes that arrived within the window.
    pub payload_bytes: u64,
    /// Messages that arrived within the window, whenever they were sent; UDP: datagrams, duplicates left out.
    pub messages: u64,
    /// UDP: datagrams sent within the sender's window that arrived at all, stragglers counted, duplicates left out. Loss is
    /// what the sender's `messages` exceeds this by.
    pub arrived: u64,
    /// UDP: further copies of such datagrams.
    pub duplicates: u64,
    /// UDP: such datagrams that arrived after one with a higher sequence number (RFC 4737 section 3.3).
    pub reordered: u64,
    /// UDP: what the kernel dropped for want of room in these sockets' buffers (SO_RXQ_OVFL), from the last datagram before the
    /// first of these to the first one after them. Counted in datagrams, or in runs of joined datagrams where `joined` is set. `None` if
    /// the receiver's operating system does not count them.
    pub socket_drops: Option<u64>,
    /// UDP: buffers in which the kernel delivered joined datagrams (UDP_GRO); zero if none were joined.
    pub joined: u64,
    /// UDP: mean deviation of transit times, RFC 3550 section 6.4.1; none for TCP.
    pub jitter: Option<Nanos>,
    /// UDP with a DSCP: that of the datagrams as they arrived, in all phases. `None` if no DSCP was set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dscp: Option<ReceivedDscp>,
    /// The means of receiving, as in `recv` or `recvmmsg + UDP_GRO`.
    pub io_method: String,
}

/// DSCP of received datagrams.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReceivedDscp {
    /// Datagrams with the DSCP that the sender set.
    pub kept: u64,
    /// Datagrams with another DSCP.
    pub changed: u64,
    /// DSCP of the last of these.
    pub changed_to: Option<u8>,
}

impl ReceivedDscp {
    /// Counts `datagrams` that arrived with `dscp` and were sent with `sent`.
    #[inline]
    pub fn count(&mut self, datagrams: u64, dscp: u8, sent: u8) {
        if dscp == sent {
            self.kept += datagrams;
        } else {
            self.changed += datagrams;
            self.changed_to = Some(dscp);
        }
    }
}

/// Adds the counts of another flow of the same end. The window stays that of `self`.
impl AddAssign<&Self> for Sent {
    fn add_assign(&mut self, other: &Self) {
        self.payload_bytes += other.payload_bytes;
        self.messages += other.messages;
        self.not_sent += other.not_sent;
        self.refused += other.refused;
    }
}

/// Adds the counts of another flow of the same end. The window and the jitter stay those of `self`.
impl AddAssign<&Self> for Received {
    fn add_assign(&mut self, other: &Self) {
        self.payload_bytes += other.payload_bytes;
        self.messages += other.messages;
        self.arrived += other.arrived;
        self.duplicates += other.duplicates;
        self.reordered += other.reordered;
        self.socket_drops = self.socket_drops.zip(other.socket_drops).map(|(own, others)| own + others);
        self.joined += other.joined;
        if let Some(other) = other.dscp {
            let dscp = self.dscp.get_or_insert_default();
            dscp.kept += other.kept;
            dscp.changed += other.changed;
            dscp.changed_to = other.changed_to.or(dscp.changed_to);
        }
    }
}

/// Adds the counts of another flow of the same end. The window stays that of `self`.
impl AddAssign<&Self> for Transactions {
    fn add_assign(&mut self, other: &Self) {
        self.completed += other.completed;
        self.failed += other.failed;
        self.retransmitted += other.retransmitted;
        self.not_sent += other.not_sent;
        self.latency.merge(&other.latency);
    }
}

/// Transactions one end asked for within the measured window.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Transactions {
    /// Length of the window by this end's clock.
    pub window: Nanos,
    /// Requests answered within the window.
    pub completed: u64,
    /// Requests never answered (UDP), connections that failed, and calls that the server refused.
    pub failed: u64,
    /// RPC and NFS over UDP: requests sent again because no reply came in time.
    #[serde(default)]
    pub retransmitted: u64,
    /// Open loop: requests that were due in the window but could not be sent before its end.
    pub not_sent: u64,
    /// Time from the request (open loop: from when it was due) to the last byte of its response, nanoseconds.
    pub latency: Histogram,
}

/// One connection or socket.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FlowCounts {
    /// Payload bytes sent in the window.
    pub sent_bytes: u64,
    /// Payload bytes received in the window.
    pub received_bytes: u64,
    /// TCP's own account; none for UDP.
    pub tcp: Option<TcpFlow>,
}

/// TCP_INFO of one connection: counts over the measured window, states at its end.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TcpFlow {
    /// Congestion control in force.
    pub congestion: String,
    /// Segments retransmitted.
    pub retransmits: u64,
    /// Retransmission timeouts: nothing was acknowledged for so long that TCP began anew. Zero also where the kernel does not
    /// count them (before Linux 6.7).
    #[serde(default)]
    pub timeouts: u64,
    /// Retransmissions in a row, at the window's end, that nothing has acknowledged (`tcpi_retransmits`).
    #[serde(default)]
    pub unanswered: u64,
    /// Segments that the receiver reported as duplicates (D-SACK, RFC 2883): sent again in vain, or doubled on the path.
    #[serde(default)]
    pub dsacks: u64,
    /// Times that acknowledgements showed segments to have overtaken one another. Zero also where the kernel does not count them (before
    /// Linux 4.19).
    #[serde(default)]
    pub reorderings: u64,
    /// Data segments sent.
    pub segments_out: u64,
    /// Data segments received.
    pub segments_in: u64,
    /// Time with data to send.
    pub busy: Nanos,
    /// Of it, time stalled by the receiver's window.
    pub receive_window_limited: Nanos,
    /// Of it, time stalled by this end's send buffer.
    pub send_buffer_limited: Nanos,
    /// Smoothed round-trip time.
    pub rtt: Nanos,
    /// Smallest round-trip time seen.
    pub min_rtt: Nanos,
    /// Recent delivery rate, payload bits per second.
    pub delivery_rate_bps: u64,
    /// Congestion window, segments.
    pub congestion_window: u32,
    /// The peer's advertised window, bytes.
    pub peer_window: u32,
    /// Segment payload in force, bytes.
    pub mss: u32,
}
