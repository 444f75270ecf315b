//! What is told while a run goes on: by `--json-stream`, and to pages that follow a run.

use crate::{Host, HostName, Measurement, Outcome, RecordId, TaskKind, Transport, Verdict};
use linerate_units::Nanos;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The format's name and version. Fields may be added within a version; none changes its meaning.
pub const STREAM_SCHEMA: &str = "linerate.stream/1";

/// One event. Events of one run come in this order: `start`, a `host` for each host, then for each attempt a `trial` that begins, its
/// `interval`s and a `trial` that ended, then a `result` and a `verdict` for each thing measured, an `outcome` where there is one, and
/// `end`. An attempt that the user stopped has no `trial` that ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "event")]
pub enum StreamEvent {
    /// A run begins.
    Start {
        /// [`STREAM_SCHEMA`].
        schema: String,
        /// The record that will be kept.
        record: RecordId,
        /// Version of the program.
        version: String,
        /// The command as typed, secrets left out.
        command: Vec<String>,
        /// Nanoseconds since 1970.
        started_unix_ns: u64,
    },
    /// A host takes part.
    Host {
        /// What it is and what it can do.
        host: Box<Host>,
    },
    /// An attempt at a trial begins or has ended.
    Trial {
        /// The trial's name. Repeats have the same.
        name: String,
        /// The task that is measured.
        task: TaskKind,
        /// TCP or UDP; none for frames and copies.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        transport: Option<Transport>,
        /// Attempts of this run before this one.
        number: u32,
        /// Which attempt at this repeat it is; the first is 0.
        attempt: u32,
        /// What is becoming of it.
        state: TrialState,
        /// Why it does not count, or was not to be done; none otherwise.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// What was done since the interval before.
    Interval(IntervalReport),
    /// A thing was measured: all its repeats together.
    Result {
        /// What it came to.
        result: Box<Measurement>,
    },
    /// What limits it.
    Verdict {
        /// The name of the result.
        result: String,
        /// The verdict.
        verdict: Box<Verdict>,
    },
    /// What was found beside the results: of a device, of the layers of a path, or of a curve.
    Outcome {
        /// What was found.
        outcome: Box<Outcome>,
    },
    /// The run has ended.
    End {
        /// How.
        state: EndState,
        /// Why it ended early, or what could not be kept; none otherwise.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
}

/// What is becoming of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TrialState {
    /// It begins.
    Begins,
    /// Its figures count.
    Counted,
    /// The tester spoilt it, and it is repeated.
    Spoilt,
    /// It came to nothing.
    Failed,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EndState {
    /// It came to its end.
    Finished,
    /// The user stopped it.
    Interrupted,
    /// It could not go on.
    Failed,
}

/// What the measured load of a trial did in an interval, all hosts together.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IntervalReport {
    /// The trial's number, as its `trial` events give it.
    pub number: u32,
    /// When the interval began, since the load did.
    pub from: Nanos,
    /// When it ended.
    pub to: Nanos,
    /// It lies in the warm-up, at least in part: it is excluded from results.
    pub warmup: bool,
    /// Payload bytes that were received in it; copies: bytes of files in place; frames: bytes of frames.
    pub received_bytes: u64,
    /// Payload bytes that were sent in it.
    pub sent_bytes: u64,
    /// Received payload bits per second.
    pub received_bps: f64,
    /// Sent payload bits per second.
    pub sent_bps: f64,
    /// Transactions, calls or operations completed in it; copies: files in place; frames: frames sent.
    pub operations: u64,
    /// The same, per second.
    pub operations_per_s: f64,
    /// TCP: segments retransmitted; RPC over UDP: calls sent again.
    pub retransmits: u64,
    /// UDP streams: datagrams missing.
    pub lost: u64,
    /// Payload bytes received since the load began.
    pub total_received_bytes: u64,
    /// Transactions and the like since the load began.
    pub total_operations: u64,
    /// TCP: smoothed round-trip time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub srtt: Option<Nanos>,
    /// Median response time of the interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p50: Option<Nanos>,
    /// Response time that 99 % were at or below.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99: Option<Nanos>,
    /// Each host that told something.
    pub hosts: Vec<HostLoad>,
    /// Hosts that have reported nothing of the interval: their counts are missing in it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub silent: Vec<HostName>,
}

impl IntervalReport {
    /// Whether one host alone told something, and it only sent: the receiver runs no agent, and says what arrived only at the end.
    pub fn is_of_sender_alone(&self) -> bool {
        self.hosts.len() == 1 && self.received_bps == 0.0 && self.sent_bps > 0.0
    }

    /// Returns whether a figure of the interval is not known: none of it was reported, and not all hosts reported.
    pub fn is_unknown(&self, figure: f64) -> bool {
        figure == 0.0 && !self.silent.is_empty()
    }

    /// Payload bits per second: those received, or those sent where nobody tells what arrives.
    pub fn payload_bps(&self) -> f64 {
        if self.is_of_sender_alone() { self.sent_bps } else { self.received_bps }
    }
}

/// How busy the test's threads on a host are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HostLoad {
    /// The host.
    pub host: HostName,
    /// Share of a core that the busiest of the test's own threads used, percent. Other programs on the host do not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busiest_thread: Option<u8>,
}
