//! What limited a result.

use crate::Proof;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The limit named, the confidence in it, and why.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    /// What limited the result.
    pub limit: Limit,
    /// Confidence in it.
    pub confidence: Confidence,
    /// Why, in sentences with numbers.
    pub evidence: Vec<String>,
    /// What to try next, in sentences; empty where nothing is known to help.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub next: Vec<String>,
    /// Every limit that was weighed, in the order of the path from the load to the device.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub weighed: Vec<Weighed>,
    /// What came of putting it to the test, in the order of the tests; empty if that was not done.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub proofs: Vec<Proof>,
}

impl Verdict {
    /// A verdict that nothing else was weighed for.
    pub fn new(limit: Limit, confidence: Confidence, evidence: Vec<String>) -> Self {
        Self { limit, confidence, evidence, next: Vec::new(), weighed: Vec::new(), proofs: Vec::new() }
    }
}

/// What speaks for or against one limit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Weighed {
    /// The limit.
    pub limit: Limit,
    /// Which way it speaks.
    pub support: Support,
    /// Why, in a sentence with numbers; where it cannot be weighed, what was missing.
    pub text: String,
}

/// Which way the facts speak for a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Support {
    /// It is not the limit.
    Against,
    /// A fact it hangs on is missing.
    Unknown,
    /// A weak sign of it: what else could be is as likely.
    Hint,
    /// A good sign of it.
    For,
    /// It accounts for the result by itself.
    Strong,
}

impl fmt::Display for Support {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Against => "against",
            Self::Unknown => "unknown",
            Self::Hint => "hint",
            Self::For => "for",
            Self::Strong => "strong",
        })
    }
}

/// What can limit a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Limit {
    /// The load that was asked for: all of it arrived.
    OfferedLoad,
    /// A link of known speed is full.
    Wire,
    /// The result equals what the tester reaches without the device.
    Tester,
    /// The server that answers calls (RPC, NFS): its storage, its threads or its processor.
    Server,
    /// The source's storage: what a copy reads from.
    StorageRead,
    /// The destination's storage: what a copy writes to and makes durable.
    StorageWrite,
    /// The sending host's processor.
    SenderCpu,
    /// The receiving host's processor.
    ReceiverCpu,
    /// The receiving socket's buffer: datagrams found no room in it though the program that reads it had time.
    ReceiverBuffer,
    /// The data that may be in flight at once: the receiver's window, or the sender's buffer.
    Window,
    /// Loss on the path, which TCP takes for congestion, or which takes its share of datagrams.
    PathLoss,
    /// The device under test: bypassed, the result rose.
    Device,
    /// Something on the path that lets through less than any link on it carries, as far as their speeds are known: a shaper,
    /// a policer, a slower link.
    Shaper,
    /// The time that one request takes, as long as the next waits for it.
    Latency,
    /// Inconclusive: the evidence says what was missing.
    CannotTell,
}

impl Limit {
    /// Its name in records.
    pub fn name(self) -> &'static str {
        match self {
            Self::OfferedLoad => "offered-load",
            Self::Wire => "wire",
            Self::Tester => "tester",
            Self::Server => "server",
            Self::StorageRead => "storage-read",
            Self::StorageWrite => "storage-write",
            Self::SenderCpu => "sender-cpu",
            Self::ReceiverCpu => "receiver-cpu",
            Self::ReceiverBuffer => "receiver-buffer",
            Self::Window => "window",
            Self::PathLoss => "path-loss",
            Self::Device => "device",
            Self::Shaper => "shaper",
            Self::Latency => "latency",
            Self::CannotTell => "cannot-tell",
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::OfferedLoad => "offered load",
            Self::Wire => "wire",
            Self::Tester => "tester",
            Self::Server => "server",
            Self::StorageRead => "storage read",
            Self::StorageWrite => "storage write",
            Self::SenderCpu => "sender's CPU",
            Self::ReceiverCpu => "receiver's CPU",
            Self::ReceiverBuffer => "receiver's buffer",
            Self::Window => "window",
            Self::PathLoss => "loss on the path",
            Self::Device => "device",
            Self::Shaper => "shaper on the path",
            Self::Latency => "latency",
            Self::CannotTell => "cannot tell",
        })
    }
}

/// Confidence with which a limit is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Confidence {
    /// One weak sign.
    Low,
    /// Good signs, alternatives not ruled out.
    Medium,
    /// Strong signs, alternatives ruled out.
    High,
}
