//! A trial as one agent sees it: the contract between the runner and the agents.
//!
//! A trial is prepared on every host (listeners open their ports), then connected (openers reach them), started on all
//! at once, and finished. A host may hold several ends of one trial: a sink of three sources listens three times.

use crate::{Histogram, NfsOperation, Observation, OperationCounts, Service, Timing, Workload};
use linerate_units::Nanos;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};

/// Names one trial on every agent that takes part.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct TrialId(pub String);

impl fmt::Display for TrialId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// The secret that every data connection and datagram of one trial carries; 16 random bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct TrialKey(pub [u8; 16]);

/// What one agent is to do in a trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HalfSpec {
    /// The trial.
    pub id: TrialId,
    /// Its secret.
    pub key: TrialKey,
    /// What each path does.
    pub workload: Workload,
    /// For how long.
    pub timing: Timing,
    /// This host's ends.
    pub ends: Vec<EndSpec>,
}

/// One end of one path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EndSpec {
    /// The path's index in the trial.
    pub path: u16,
    /// Which end of it.
    pub role: EndRole,
}

/// Which end of a path a host holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EndRole {
    /// Connects to the listener.
    Opener,
    /// Listens on `address`, at a port of the system's choice.
    Listener {
        /// The local address to listen on.
        address: IpAddr,
    },
}

/// The answer to a prepared trial: where each listening end listens, by path.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Prepared {
    /// Path index to listening address.
    pub listening: BTreeMap<u16, SocketAddr>,
}

/// Where an agent's opening ends find their listeners, by path. Empty on a host that only listens.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Connect {
    /// Path index to the listener's address.
    pub listeners: BTreeMap<u16, SocketAddr>,
}

/// How far an agent's half has come; sent a few times a second while it runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Progress {
    /// Since the measured window opened; zero before.
    pub elapsed: Nanos,
    /// Payload bytes received by this host since the window opened.
    pub received_bytes: u64,
    /// Payload bytes sent by this host since the window opened.
    pub sent_bytes: u64,
    /// Transactions completed by this host since the window opened.
    pub transactions: u64,
    /// The half is done and its result can be fetched.
    pub done: bool,
}

/// What one agent counted and saw.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HalfResult {
    /// Each end's counts, in the order of the spec's ends.
    pub ends: Vec<EndResult>,
    /// What the host saw.
    pub observation: Observation,
    /// When the window opened, nanoseconds since 1970 by this host's clock.
    pub started_unix_ns: u64,
}

/// One end's counts.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EndResult {
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
    pub flows: Vec<FlowResult>,
    /// NFS: why a flow ended before its time, as when the server went away. What it had counted until then is kept, and what
    /// was due later counts as not sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broken: Option<String>,
    /// NFS: what could not be removed from the server, and must be by hand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remains: Option<String>,
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
    /// The means of sending, as in `sendfile` or `sendmmsg + UDP_SEGMENT`.
    pub means: String,
}

/// What one end took from its kernel.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Received {
    /// Length of the window by this end's clock. Rates are taken over it.
    pub window: Nanos,
    /// Payload bytes that arrived within the window.
    pub payload_bytes: u64,
    /// Messages that arrived within the window; UDP: datagrams, duplicates left out.
    pub messages: u64,
    /// UDP: datagrams of the measured phase that arrived at all, stragglers counted, duplicates left out. Loss is what
    /// the sender's `messages` exceeds this by.
    pub arrived: u64,
    /// UDP: further copies of datagrams that had arrived.
    pub duplicates: u64,
    /// UDP: datagrams that arrived after one with a higher sequence number (RFC 4737 section 3.3).
    pub reordered: u64,
    /// UDP: what the kernel dropped for want of room in these sockets' buffers (SO_MEMINFO). Counted in datagrams, or in
    /// runs of joined datagrams where `joined` is set.
    pub socket_drops: u64,
    /// UDP: buffers in which the kernel delivered joined datagrams (UDP_GRO); zero if none were joined.
    pub joined: u64,
    /// UDP: mean deviation of transit times, RFC 3550 section 6.4.1; none for TCP.
    pub jitter: Option<Nanos>,
    /// The means of receiving, as in `recv` or `recvmmsg + UDP_GRO`.
    pub means: String,
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
pub struct FlowResult {
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
