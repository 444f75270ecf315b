//! A folder tree that was copied: what the hosts counted, and what it amounts to.

use crate::{Caveat, CopyProgress, Histogram, HostName, Latency, Observation, TcpFlow, Verdict};
use linerate_units::Nanos;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// A stage of the pipeline, in the order in which data passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CopyStage {
    /// Finds files and folders.
    List,
    /// Opens files.
    Open,
    /// Reads them.
    Read,
    /// Hashes what was read.
    Hash,
    /// Hands it to the network.
    Send,
    /// Takes it from the network.
    Receive,
    /// Hashes what was received and compares.
    Verify,
    /// Makes folders and opens new files.
    Create,
    /// Writes them.
    Write,
    /// Makes them durable as asked, and gives them their names.
    Sync,
}

impl CopyStage {
    /// All of them, in order.
    pub const ALL: [Self; 10] = [
        Self::List,
        Self::Open,
        Self::Read,
        Self::Hash,
        Self::Send,
        Self::Receive,
        Self::Verify,
        Self::Create,
        Self::Write,
        Self::Sync,
    ];

    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            Self::List => "list",
            Self::Open => "open",
            Self::Read => "read",
            Self::Hash => "hash",
            Self::Send => "send",
            Self::Receive => "receive",
            Self::Verify => "verify",
            Self::Create => "create",
            Self::Write => "write",
            Self::Sync => "sync",
        }
    }
}

/// Time of all threads of one stage on one host.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StageTime {
    /// Its threads.
    pub threads: u32,
    /// At work.
    pub busy: Nanos,
    /// Waiting for the stage before.
    pub waiting_for_previous: Nanos,
    /// Waiting for the stage after.
    pub waiting_for_next: Nanos,
    /// Of the time at work: on a core. The rest it waited for storage, for the network, or for a core.
    #[serde(default)]
    pub cpu: Nanos,
    /// Time that it was ready to run and had no core; zero where the kernel does not count it (CONFIG_SCHED_INFO).
    #[serde(default)]
    pub queued: Nanos,
    /// The one of its threads that was at work the longest: where lanes end at different times, what holds up the whole.
    #[serde(default)]
    pub busiest: WorkTime,
}

impl StageTime {
    /// Adds the time of other threads of the stage; of the busiest ones the busier stays.
    pub fn add(&mut self, other: Self) {
        self.threads += other.threads;
        self.busy = self.busy + other.busy;
        self.waiting_for_previous = self.waiting_for_previous + other.waiting_for_previous;
        self.waiting_for_next = self.waiting_for_next + other.waiting_for_next;
        self.cpu = self.cpu + other.cpu;
        self.queued = self.queued + other.queued;
        self.busiest = [self.busiest, other.busiest].into_iter().max_by_key(|work| work.busy).unwrap_or_default();
    }
}

/// The time at work of one thread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorkTime {
    /// At work.
    pub busy: Nanos,
    /// Of it, on a core.
    pub cpu: Nanos,
    /// Ready to run and without a core.
    pub queued: Nanos,
}

/// Files of one size class.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SizeClassTimes {
    /// Files that came to their names.
    pub files: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// From being made at the destination to having its name, each file's.
    pub time: Histogram,
}

/// What one host counted of a copy, towards one other host.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CopySide {
    /// From the common start until all was done here: of a source, until its destination had said that all is in place.
    pub time: Nanos,
    /// Files, links left out. A destination counts those that came to their names.
    pub files: u64,
    /// Folders.
    pub folders: u64,
    /// Symbolic links.
    pub links: u64,
    /// Symbolic links that were left out, as asked. Who lists the tree counts them.
    #[serde(default)]
    pub links_skipped: u64,
    /// Bytes of file content, holes left out.
    pub bytes: u64,
    /// Bytes of holes in sparse files.
    pub hole_bytes: u64,
    /// Files whose content was verified.
    pub verified: u64,
    /// Files that were there already, of the same size and time.
    pub kept: u64,
    /// Where the time went.
    pub stages: BTreeMap<CopyStage, StageTime>,
    /// Time for each file by size class: a class holds files from its name's bytes on.
    pub sizes: BTreeMap<u64, SizeClassTimes>,
    /// TCP's own account of each connection, by the end that sends; empty where the way is none of linerate's own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tcp: Vec<TcpFlow>,
    /// Everything came to its end. If not, `faults` say why.
    pub complete: bool,
}

/// Something that was not copied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CopyFault {
    /// Its path in the tree; empty for the copy as a whole.
    pub path: String,
    /// Where it failed.
    pub stage: CopyStage,
    /// Why.
    pub reason: String,
}

/// What one host counted of a copy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CopyHalfResult {
    /// When it started, nanoseconds since 1970.
    pub started_unix_ns: u64,
    /// A side for each host at the other end, in the order of the half's.
    pub sides: Vec<CopySide>,
    /// What was not copied; the first of them, see `faults_total`.
    pub faults: Vec<CopyFault>,
    /// How many things were not copied.
    pub faults_total: u64,
    /// What the host saw.
    pub observation: Observation,
    /// Doubts.
    pub caveats: Vec<Caveat>,
}

/// How far a half is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "stage")]
pub enum CopyHalfStage {
    /// It makes, counts or reads the tree, or connects.
    Preparing {
        /// What it is doing, for people.
        doing: String,
    },
    /// It waits for the start.
    Ready {
        /// Where a destination listens, one address for each source.
        listening: Vec<SocketAddr>,
        /// Files that there are to copy, as far as that is known.
        files: u64,
        /// Bytes that there are to copy.
        bytes: u64,
    },
    /// It copies.
    Copying(CopyProgress),
    /// It is over, and its result is to be fetched.
    Done,
    /// It came to nothing.
    Failed {
        /// Why.
        message: String,
    },
}

/// One copy and all that was counted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CopyTrial {
    /// Each source, in the plan's order; none where one host does it all.
    pub sources: Vec<CopyPart>,
    /// Each destination, in the plan's order. Where a host writes to file servers, it is that host, with a side for each of them.
    pub destinations: Vec<CopyPart>,
    /// Hosts that only serve files to those that write.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub servers: Vec<CopyPart>,
}

/// A host's part in a copy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CopyPart {
    /// The host.
    pub host: HostName,
    /// What it counted; nothing where it was lost, and `faults` say so.
    pub counted: CopyHalfResult,
}

/// What was found of a copy.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CopyOutcome {
    /// Files that came to their names, at all destinations together, in the median run.
    pub files: u64,
    /// Folders made.
    pub folders: u64,
    /// Symbolic links made.
    pub links: u64,
    /// Symbolic links that were left out, as asked (`options.links`).
    #[serde(default)]
    pub links_skipped: u64,
    /// Bytes of file content, holes left out.
    pub bytes: u64,
    /// From the common start until the last destination had all in place.
    pub time_ns: u64,
    /// Bytes a second, all destinations together; with several runs the median.
    pub bytes_per_s: f64,
    /// Files a second, likewise.
    pub files_per_s: f64,
    /// Each run's bytes a second, in order.
    pub runs_bytes_per_s: Vec<f64>,
    /// Every file that was copied was verified, and none was left out.
    pub verified: bool,
    /// Files whose content was verified.
    pub files_verified: u64,
    /// Files that were there already and were left as they are.
    pub files_kept: u64,
    /// Where the time went, over all hosts and pipelines.
    pub stages: BTreeMap<CopyStage, StageShare>,
    /// The stage that was busy the most.
    pub busiest_stage: Option<CopyStage>,
    /// Time for each file by size: the classes hold files from `from_bytes` on.
    pub sizes: Vec<SizeClass>,
    /// Each pair of source and destination.
    pub clients: Vec<CopyClient>,
    /// What was not copied, of all runs: the first of them.
    pub faults: Vec<CopyFault>,
    /// How many things were not copied.
    pub faults_total: u64,
    /// What limited the median run; none in records of before it was weighed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
}

/// A stage's time as shares of the wall time of its threads; the three come to one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StageShare {
    /// At work.
    pub busy: f64,
    /// Waiting for the stage before.
    pub waiting_for_previous: f64,
    /// Waiting for the stage after.
    pub waiting_for_next: f64,
    /// On a core: of the share at work, what was the processor's.
    #[serde(default)]
    pub cpu: f64,
    /// Ready to run and without a core.
    #[serde(default)]
    pub queued: f64,
    /// The one of its threads that was at work the longest.
    #[serde(default)]
    pub busiest: WorkShare,
    /// Threads of it, on all hosts.
    pub threads: u32,
}

/// The time at work of one thread, as shares of the wall time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkShare {
    /// At work.
    pub busy: f64,
    /// Of it, on a core.
    pub cpu: f64,
    /// Ready to run and without a core.
    pub queued: f64,
}

/// A size class.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SizeClass {
    /// The smallest file of the class.
    pub from_bytes: u64,
    /// Its files.
    pub files: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// From being made at the destination to having its name.
    pub time_ns: Latency,
}

/// One source and one destination.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CopyClient {
    /// The source.
    pub from: HostName,
    /// The destination.
    pub to: HostName,
    /// Files that came to their names.
    pub files: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// When it was done, from the common start.
    pub finished_ns: u64,
    /// Bytes a second until then.
    pub bytes_per_s: f64,
    /// Its share of the sum of all clients' bytes a second.
    pub share: f64,
}
