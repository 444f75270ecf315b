//! A session: one host's part in one load of a trial, and what the runner and the host's agent say to each other about it.
//!
//! A session goes through the stages of [`Stage`] in their order. The runner orders the next step when all sessions of the trial
//! have reached a stage: connect when all listen, start when all are ready, drain when all have sent. None of this is kept.

use crate::checked::{OutOfRange, check_when_read};
use crate::named;
use crate::{
    Caveat, CopyCounts, EndCounts, FramePartCounts, HopsEnd, LatencyBuckets, LinkId, Observation, Password, Sampling,
    Series, Task, Timing,
};
use linerate_units::Nanos;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};

/// Names one session on its agent.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", transparent)]
pub struct SessionId(pub String);

impl SessionId {
    /// A name stands in paths and messages, so it is kept plain.
    fn check(&self) -> Result<(), OutOfRange> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        if (1..=64).contains(&self.0.len()) && self.0.bytes().all(plain) {
            return Ok(());
        }
        Err(OutOfRange(String::from("a session's id is 1 to 64 letters, digits, dashes, dots or underscores")))
    }
}

check_when_read!(SessionId);

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// The secret that every data connection and datagram of one load carries; 16 random bytes, the same on all its hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct SessionKey(pub [u8; 16]);

/// Where links are listened on.
pub type Endpoints = BTreeMap<LinkId, SocketAddr>;

/// What one agent does in one load of a trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Assignment {
    /// The session's name.
    pub id: SessionId,
    /// The load's secret.
    pub key: SessionKey,
    /// What all hosts of the load do together.
    pub task: Task,
    /// For how long.
    pub timing: Timing,
    /// This host's roles in it. A receiver of three senders has three.
    pub roles: Vec<Role>,
    /// For the file server or the iperf3 server in the task, where that wants one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<Password>,
    /// How the host samples it.
    pub sampling: Sampling,
}

impl Assignment {
    /// All links that this host's roles listen on.
    pub fn listens(&self) -> impl Iterator<Item = &Listen> {
        self.roles.iter().flat_map(|role| &role.listens)
    }

    /// All links that this host's roles connect to.
    pub fn connects(&self) -> impl Iterator<Item = LinkId> {
        self.roles.iter().flat_map(|role| role.connects.iter().copied())
    }
}

/// One role of a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Role {
    /// Which.
    pub kind: RoleKind,
    /// The links it listens on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub listens: Vec<Listen>,
    /// The links it connects to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub connects: Vec<LinkId>,
}

/// A link to listen on, at a port of the system's choice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Listen {
    /// The link.
    pub link: LinkId,
    /// The local address to listen on.
    pub address: IpAddr,
    /// Copies from several sources: the folder, below the one asked for, that this link's source writes to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
}

/// What a role does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum RoleKind {
    /// The client of a path: it opens the connections, and asks in transactions.
    Client {
        /// The path's index in the task.
        path: u16,
    },
    /// The server of a path: it accepts the connections, and answers in transactions.
    Server {
        /// The path's index in the task.
        path: u16,
    },
    /// Ports with raw frames: those that this host has.
    Ports {
        /// Indices of the task's ports.
        own: Vec<u16>,
        /// Marks the trial's frames on all hosts.
        tag: u16,
    },
    /// Reads the tree of a copy and sends it on its links.
    Source,
    /// Receives the tree of a copy on its links and writes it.
    Destination,
    /// Both ends of a copy on one host: reads the tree and writes it to a folder or to file servers.
    Copier {
        /// The folder, below the one asked for, that this host writes to; none writes to the one asked for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        folder: Option<String>,
        /// The index of the destination whose tree it reads from a file server.
        #[serde(default)]
        destination: u16,
    },
    /// Serves the folder of a copy by NFS on its links, for copiers on other hosts.
    FileServer,
}

named! {
    /// What a session does before its links are listened on.
    pub enum Preparation as "preparing" {
        /// Connects to the other host.
        Connecting = "connecting", "connecting";
        /// Connects to a file server.
        ConnectingToServer = "connecting-to-server", "connecting to the server";
        /// Connects to an iperf3 server.
        ReachingIperf3 = "reaching-iperf3", "reaching the iperf3 server";
        /// Makes the files that operations work on.
        MakingFiles = "making-files", "making files";
        /// Makes the tree to copy.
        MakingTree = "making-tree", "making the tree";
        /// Counts the files and bytes of the tree to copy.
        CountingTree = "counting-tree", "counting the tree";
        /// Reads the tree so that it is in the page cache.
        ReadingTree = "reading-tree", "reading the tree once";
        /// Drops the tree from the page cache.
        EmptyingCaches = "emptying-caches", "emptying the caches";
    }
}

/// How far a session is; told as server-sent events. Its name stands outside, as numbers that are keys of a map cannot be read
/// back from beside a tag.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// It makes what it needs: files, folders, programs in the kernel.
    Preparing {
        /// What it is doing, `None` before it has begun.
        doing: Option<Preparation>,
    },
    /// Its links are listened on. It waits for [`Order::Connect`].
    Listening {
        /// Where.
        endpoints: Endpoints,
    },
    /// It is connected and could begin. It waits for [`Order::Start`].
    Ready(Ready),
    /// It is at work. Where its warm-up ends when the load is steady, it waits for [`Order::Open`] meanwhile.
    Running(SessionProgress),
    /// It has sent all it had to. It waits for [`Order::Drain`]. Tasks that need no drain leave this out.
    Sent,
    /// It is over; its counts are to be fetched.
    Done,
    /// It came to nothing.
    Failed(SessionFailure),
}

impl Stage {
    /// Whether no other stage follows.
    pub fn is_last(&self) -> bool {
        matches!(self, Self::Done | Self::Failed(_))
    }
}

/// Why a session came to nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionFailure {
    /// What kind of failure.
    pub kind: FailureKind,
    /// What failed, why, and what to do.
    pub message: String,
    /// What could not be removed, and must be by hand.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remains: Vec<String>,
}

/// Kinds of failure of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// The task could not be done.
    Task,
    /// The agent's limits forbid it, or it took longer than they allow.
    Limit,
    /// It was stopped.
    Stopped,
    /// The engine panicked: a fault of linerate.
    Panic,
}

/// What a session that is ready says of itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Ready {
    /// Time it needs between hearing of the start and the start.
    pub lead: Nanos,
    /// Files that there are to copy, as far as that is known.
    pub files: u64,
    /// Bytes that there are to copy.
    pub bytes: u64,
}

/// What a session that runs tells of itself a few times a second.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionProgress {
    /// Time since the load began.
    pub running: Nanos,
    /// Time since the measured window opened, at most its length; none in the warm-up. Where there is no window, time since the
    /// load began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured: Option<Nanos>,
    /// What was done since the load began.
    pub meter: Meter,
    /// TCP: smoothed round-trip time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub srtt: Option<Nanos>,
    /// Share of a core that the busiest of the test's own threads used lately, percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busiest_thread: Option<u8>,
    /// Response times since the load began; none where none are taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<LatencyBuckets>,
}

/// How much a session has done since its load began, warm-up included.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Meter {
    /// Payload bytes sent; frames: bytes of frames.
    pub sent_bytes: u64,
    /// Payload bytes received; copies: bytes of files in place.
    pub received_bytes: u64,
    /// Transactions, calls or operations completed; copies: files in place; frames: frames sent.
    pub operations: u64,
    /// TCP: segments retransmitted; RPC over UDP: calls sent again.
    pub retransmits: u64,
    /// UDP streams: datagrams missing at this receiver, by their numbers.
    pub lost: u64,
}

/// What the runner orders a session to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// To a session that listens: connect the links that are given; empty on a host that only listens.
    Connect(Endpoints),
    /// To one that is ready: begin `delay` from now.
    Start {
        /// From hearing the order to the start.
        delay: Nanos,
    },
    /// To one that runs and whose warm-up ends when the load is steady: open the measured window `delay` from now.
    Open {
        /// From hearing the order to the opening.
        delay: Nanos,
    },
    /// To one that has sent: count what still arrives, and end.
    Drain,
}

/// What one host counted and saw in one session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostCounts {
    /// Each role's counts, in the order of the assignment's roles.
    pub roles: Vec<RoleCounts>,
    /// What the host saw.
    pub observation: Observation,
    /// The course of it.
    pub series: Series,
    /// When the window opened, nanoseconds since 1970 by this host's clock.
    pub started_unix_ns: u64,
    /// Doubts.
    pub caveats: Vec<Caveat>,
    /// What could not be removed, and must be by hand.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remains: Vec<String>,
}

/// What one role counted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RoleCounts {
    /// Client or server of a path.
    Flows(Box<EndCounts>),
    /// Ports with raw frames.
    Frames(FramePartCounts),
    /// A part in a copy.
    Copy(CopyCounts),
    /// End of a probed path.
    Hops(Box<HopsEnd>),
}
