//! What the repeats of a copy amount to.

use crate::{CopyFault, CopyStage, CopyTree, HostName, Latency};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What was found of a copy.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CopyFigures {
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
    /// Its tree, where each destination has its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<CopyTree>,
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
