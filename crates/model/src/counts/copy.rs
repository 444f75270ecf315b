//! What hosts count of a copy.

use crate::named;
use crate::{Histogram, HostName, MessageValue, TcpFlow};
use linerate_units::Nanos;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

named! {
    /// A stage of the pipeline, in the order in which data passes.
    pub enum CopyStage as "stage" {
        /// Finds files and folders.
        List = "list", "list";
        /// Opens files.
        Open = "open", "open";
        /// Reads them.
        Read = "read", "read";
        /// Hashes what was read.
        Hash = "hash", "hash";
        /// Hands it to the network.
        Send = "send", "send";
        /// Takes it from the network.
        Receive = "receive", "receive";
        /// Hashes what was received and compares.
        Verify = "verify", "verify";
        /// Makes folders and opens new files.
        Create = "create", "create";
        /// Writes them.
        Write = "write", "write";
        /// Makes them durable as asked, and gives them their names.
        Sync = "sync", "sync";
    }
}

impl From<CopyStage> for MessageValue {
    fn from(stage: CopyStage) -> Self {
        stage.text().into()
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
pub struct CopyCounts {
    /// A side for each host at the other end, in the order of the role's links.
    pub sides: Vec<CopySide>,
    /// What was not copied; the first of them, see `faults_total`.
    pub faults: Vec<CopyFault>,
    /// How many things were not copied.
    pub faults_total: u64,
}

/// One copy and all that was counted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CopyParts {
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
    pub counted: CopyCounts,
}
