//! What the repeats of one trial amount to: the entries of a record's `results`.

use crate::{
    Bypass, Caveat, CopyFigures, Direction, Firmness, FrameFlow, IpVersion, LoadedLatency, Loss, NfsClass,
    NfsOperation, PathLimit, Quantity, RecordId, RpcCall, Summary, TaskKind, Transport, Verdict,
};
use linerate_units::Nanos;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The repeats of one trial as one result. The head is the same for every task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Measurement {
    /// The trial's name, as in `udp 1472`.
    pub name: String,
    /// What the main figure counts.
    pub quantity: Quantity,
    /// The main figure: payload at the receivers of a stream, transactions per second, payload of copied files, frames
    /// received per second.
    pub main: Summary,
    /// What the tester itself reached with the device bypassed; none if it was not calibrated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tester_limit: Option<TesterLimit>,
    /// What limited it.
    pub verdict: Verdict,
    /// Doubts.
    pub caveats: Vec<Caveat>,
    /// The task's own figures; its fields stand beside these.
    #[serde(flatten)]
    pub detail: Detail,
}

impl Measurement {
    /// The figures of streams, transactions, RPC and NFS; none for other tasks.
    pub fn flows(&self) -> Option<&FlowFigures> {
        match &self.detail {
            Detail::Flows(figures) => Some(figures),
            Detail::Frames { .. } | Detail::Copy(_) => None,
        }
    }

    /// The figures of raw frames, one for each frame size and direction; empty for other tasks.
    pub fn frames(&self) -> &[FrameFlow] {
        match &self.detail {
            Detail::Frames { flows } => flows,
            Detail::Flows(_) | Detail::Copy(_) => &[],
        }
    }

    /// Whether its figures are firm by themselves: of raw frames the tester sent all that were due.
    pub fn firmness(&self) -> Firmness {
        self.frames().iter().map(|flow| flow.firmness).fold(Firmness::Firm, Firmness::and)
    }

    /// The figures of a copy; none for other tasks.
    pub fn copy(&self) -> Option<&CopyFigures> {
        match &self.detail {
            Detail::Copy(figures) => Some(figures),
            Detail::Flows(_) | Detail::Frames { .. } => None,
        }
    }
}

/// A task's own figures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "detail")]
pub enum Detail {
    /// Streams, transactions, RPC and NFS.
    Flows(Box<FlowFigures>),
    /// Raw frames.
    Frames {
        /// Each flow of frames.
        flows: Vec<FrameFlow>,
    },
    /// A copy.
    Copy(Box<CopyFigures>),
}

/// Figures of streams, transactions, RPC and NFS.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FlowFigures {
    /// Which task.
    pub task: TaskKind,
    /// TCP or UDP.
    pub transport: Transport,
    /// IPv4 or IPv6.
    pub ip: IpVersion,
    /// Bytes of a message (transactions: of a request).
    pub message_bytes: u64,
    /// Bytes of a response; transactions only.
    pub response_bytes: Option<u64>,
    /// Which way a stream went, seen from the client; none for transactions.
    pub direction: Option<Direction>,
    /// Flows of each path and direction.
    pub flows: u16,
    /// What the receivers got, all paths together; streams only.
    pub received: Option<ReceivedRates>,
    /// What the senders handed over; streams only.
    pub sent: Option<SentRates>,
    /// Each path and direction on its own, where there are several.
    pub shares: Vec<Share>,
    /// What the path can carry at this message size, and how much of it was used; none where no link speed is known.
    pub limit: Option<PathLimit>,
    /// Transactions per second; transactions only.
    pub transactions_per_s: Option<Summary>,
    /// Transactions that failed, over all runs; transactions only.
    pub failed: Option<u64>,
    /// Datagrams lost, over all runs; UDP streams only.
    pub loss: Option<Loss>,
    /// Deviation of transit times (RFC 3550), nanoseconds; UDP streams only.
    pub jitter_ns: Option<Summary>,
    /// Latency over all runs; transactions only.
    pub latency_ns: Option<Latency>,
    /// What each RPC call does; RPC only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<RpcCall>,
    /// Calls sent again because no reply came in time, over all runs; RPC and NFS only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retransmitted: Option<u64>,
    /// Each operation over all runs; NFS only.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub operations: BTreeMap<NfsOperation, OperationFigures>,
    /// The same by class; NFS only.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub classes: BTreeMap<NfsClass, OperationFigures>,
    /// How long calls took within the server, over all runs, nanoseconds; none where the server does not measure it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_ns: Option<Latency>,
    /// Latency on the idle path and beside the load; none but for streams that were probed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loaded_latency: Option<LoadedLatency>,
    /// What it cost.
    pub cpu: CpuCosts,
    /// TCP's own account of the data senders, over all runs; TCP only.
    pub tcp: Option<TcpSummary>,
}

/// The tester's own limit: the same measurement with the device bypassed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TesterLimit {
    /// The calibration's record.
    pub record: RecordId,
    /// What stood in the device's place.
    #[serde(default)]
    pub bypass: Bypass,
    /// How long before the run the calibration began; zero where it was made for the run.
    #[serde(default)]
    pub age: Nanos,
    /// Its trials alternated with those of this result, under the same conditions.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interleaved: bool,
    /// What it reached: payload bit/s of a stream, transactions per second otherwise.
    pub reached: Summary,
    /// This result's median as a share of the limit's.
    pub share: f64,
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

/// One path and direction's part of the total.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Share {
    /// The sending (transactions: the asking) host.
    pub from: String,
    /// The receiving (transactions: the answering) host.
    pub to: String,
    /// Payload at the receiver, bit/s; streams only.
    pub payload_bps: Option<Summary>,
    /// Transactions per second; transactions only.
    pub transactions_per_s: Option<Summary>,
    /// Datagrams lost, over all runs; UDP streams only.
    pub loss: Option<Loss>,
}

/// Latency, nanoseconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Latency {
    /// Half of all are at or below this.
    pub p50: u64,
    /// 90 %.
    pub p90: u64,
    /// 99 %.
    pub p99: u64,
    /// 99.9 %.
    pub p999: u64,
    /// The longest.
    pub max: u64,
    /// The shortest.
    pub min: u64,
    /// The mean.
    pub mean: f64,
    /// How many were timed.
    pub count: u64,
    /// The cumulative distribution for drawing: nanoseconds, share at or below.
    pub distribution: Vec<(u64, f64)>,
}

/// Operations of one kind, or of one class, over all runs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OperationFigures {
    /// How many were completed.
    pub count: u64,
    /// Share of all completed operations, 0 to 1.
    pub share: f64,
    /// Completed per second: the mean over the runs.
    pub ops_per_s: f64,
    /// Mean response time, milliseconds.
    pub mean_ms: f64,
    /// Half of all are answered within this, milliseconds.
    pub p50_ms: f64,
    /// 99 %, milliseconds.
    pub p99_ms: f64,
    /// Bytes of file data read or written.
    pub bytes: u64,
    /// Operations that failed, by NFS status.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub errors: BTreeMap<String, u64>,
    /// Bytes read that were not what had been written.
    pub corrupt_bytes: u64,
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
