//! Figures that every task of flows has: streams, transactions, RPC and NFS.

use crate::{IpVersion, Loss, PathLimit, Summary, Transport, WayFigures};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Figures that every task of flows has: streams, transactions, RPC and NFS.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FlowFigures {
    /// TCP or UDP.
    pub transport: Transport,
    /// IPv4 or IPv6.
    pub ip: IpVersion,
    /// Flows of each path and direction.
    pub flows: u16,
    /// Bytes of a message, a request, the data of an RPC call, or an NFS transfer.
    pub message_bytes: u64,
    /// Capacity of the path at this message size, and the share of it that was used. `None` if no link speed is known, and
    /// for transactions.
    pub limit: Option<PathLimit>,
    /// Figures of each path and direction, if there are several.
    pub shares: Vec<Share>,
    /// CPU costs of both ends.
    pub cpu: CpuCosts,
    /// TCP's counters at the data senders, over all runs. `None` over UDP.
    pub tcp: Option<TcpSummary>,
    /// Probes along the path, each way. Empty if it was not probed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ways: Vec<WayFigures>,
}

/// One path and direction's part of the total.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Share {
    /// Sending host (requests: the client).
    pub from: String,
    /// Receiving host (requests: the server).
    pub to: String,
    /// Its part of the result's main figure: payload at the receiver in bit/s, or requests per second.
    pub main: Summary,
    /// Datagrams lost, over all runs. `None` if they were not numbered.
    pub loss: Option<Loss>,
}

/// Rates at the receivers, by layer, all of the same traffic.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReceivedRates {
    /// Payload of UDP or TCP, bit/s: what a program gets.
    pub payload_bps: Summary,
    /// The IP packets that carry it, bit/s, by calculation from message size and MTU; none where packets are unknown.
    pub ip_bps: Option<Summary>,
    /// On an Ethernet wire with preamble, FCS and gap, bit/s, by the same calculation.
    pub wire_bps: Option<Summary>,
    /// IP packets per second. UDP: datagrams, or fragments where one does not fit the MTU. TCP: data segments.
    pub packets_per_s: Summary,
    /// Messages per second (UDP: datagrams); TCP has none at the receiver.
    pub messages_per_s: Option<Summary>,
    /// The means of receiving, as in `recvmmsg + UDP_GRO`.
    pub io_method: String,
    /// How far the rate ranged within the window; none where it kept to one value, or several hosts received.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<RateRange>,
}

/// The range of a rate within the measured window, from the intervals sampled in it, over all runs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RateRange {
    /// 5 % of the intervals had less payload than this, bit/s.
    pub p5_bps: f64,
    /// 5 % had more, bit/s.
    pub p95_bps: f64,
}

/// Rates at the senders.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SentRates {
    /// Payload handed to the kernel, bit/s.
    pub payload_bps: Summary,
    /// The means of sending, as in `sendfile`.
    pub io_method: String,
}

/// CPU cost at both ends (transactions: asking and answering end).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CpuCosts {
    /// The sending end.
    pub sender: CpuCost,
    /// The receiving end.
    pub receiver: CpuCost,
}

/// CPU cost at one end: medians over the runs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CpuCost {
    /// Busy share of the host's busiest core, 0 to 1, whatever ran on it.
    pub busiest_core: f64,
    /// That core's share spent in soft interrupts, 0 to 1.
    pub busiest_core_softirq: f64,
    /// Share of a core the busiest engine thread of this end used, 0 to 1.
    pub busiest_thread: f64,
    /// CPU time of this end's engine threads for each payload byte (soft interrupts on top of them included). The rest of
    /// the host's work is in `host_ns_per_byte`.
    pub ns_per_byte: Option<f64>,
    /// The same for each packet (transactions: for each transaction).
    pub ns_per_packet: Option<f64>,
    /// All busy CPU time of the host for each payload byte; none where both ends share one machine.
    pub host_ns_per_byte: Option<f64>,
    /// Share of all cores the hypervisor took, 0 to 1.
    pub steal: f64,
}

/// TCP's own account at the data senders.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TcpSummary {
    /// Congestion control in force.
    pub congestion: String,
    /// Segments retransmitted, over all runs.
    pub retransmits: u64,
    /// Retransmission timeouts, over all runs; zero also where the kernel does not count them (before Linux 6.7).
    #[serde(default)]
    pub timeouts: u64,
    /// Segments that the receivers reported as duplicates (D-SACK), over all runs: sent again in vain, or doubled on the path.
    #[serde(default)]
    pub dsacks: u64,
    /// Times that acknowledgements showed segments to have overtaken one another, over all runs; zero also where the kernel does not
    /// count them (before Linux 4.19).
    #[serde(default)]
    pub reorderings: u64,
    /// Data segments sent, over all runs.
    pub segments: u64,
    /// Median smoothed round-trip time over runs and flows, nanoseconds.
    pub rtt_ns: u64,
    /// Smallest round-trip time seen, nanoseconds.
    pub min_rtt_ns: u64,
    /// Share of the busy time stalled by the receiver's window, 0 to 1.
    pub receive_window_limited: f64,
    /// Share of the busy time stalled by the send buffer, 0 to 1.
    pub send_buffer_limited: f64,
    /// Segment payload, bytes.
    pub mss: u32,
}
