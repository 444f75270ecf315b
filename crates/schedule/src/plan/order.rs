//! What a planner takes and gives.

use crate::file::{Class, DAY_S};
use linerate_model::HostName;
use linerate_units::{ByteCount, Nanos};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// A host of the fleet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FleetHost {
    /// Name.
    pub name: HostName,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Whether its agent is connected.
    pub present: bool,
}

/// A point in time, with the offset of local time for hours and calendar days.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// Unix time in seconds.
    pub unix_s: u64,
    /// Local time less UTC, in seconds.
    pub utc_offset_s: i32,
}

impl Moment {
    /// Returns the seconds of local time since 1970-01-01 00:00.
    pub(super) fn local_s(self) -> u64 {
        self.unix_s.saturating_add_signed(i64::from(self.utc_offset_s))
    }

    /// Returns the number of the local calendar day.
    pub(super) fn day(self) -> u64 {
        self.local_s() / DAY_S
    }
}

/// Identity of an order: mesh, pair and due time.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct OrderId(pub String);

impl OrderId {
    pub(super) fn new(mesh: &str, from: &HostName, to: &HostName, due_unix_s: u64) -> Self {
        Self(format!("{mesh}|{from}|{to}|{due_unix_s}"))
    }
}

impl fmt::Display for OrderId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// A trial to begin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// Identity. The same slot has the same identity with every planner.
    pub id: OrderId,
    /// Name of the mesh.
    pub mesh: String,
    /// First host of the command.
    pub from: HostName,
    /// Second host of the command.
    pub to: HostName,
    /// Words of the command, without hosts.
    pub test: Vec<String>,
    /// Whether the trial needs its resources for itself.
    pub class: Class,
    /// Unix time at which it is due, in seconds.
    pub due_unix_s: u64,
    /// Unix time after which it does not begin.
    pub not_after_unix_s: u64,
    /// Hosts and declared links that it uses.
    pub resources: Vec<Resource>,
    /// Estimated bytes.
    pub bytes: ByteCount,
    /// Estimated time.
    pub time: Nanos,
    /// Whether an exclusive trial holds one of its resources as this light trial begins.
    #[serde(default)]
    pub concurrent: bool,
    /// Whether it follows a suspicion instead of the schedule.
    #[serde(default)]
    pub suspicion: bool,
}

/// A part of the fleet that exclusive trials do not share.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Resource {
    /// A host, with all its interfaces in both directions.
    Host(HostName),
    /// One direction of a declared link.
    Link {
        /// Name of the link.
        name: String,
        /// Direction.
        direction: Way,
    },
}

/// Direction of a declared link, seen from its site.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    /// From the site.
    Out,
    /// To the site.
    In,
}

/// How an order ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The trial has a result.
    Done,
    /// The trial failed or was refused.
    Failed,
    /// Nothing was heard of it.
    Lost,
}

/// An order that ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndedOrder {
    /// The order.
    pub order: Arc<Order>,
    /// Whether a light trial ran at the same time as an exclusive one on one of its resources.
    pub concurrent: bool,
}

/// The newest run of a pair, from the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastRun {
    /// Name of the mesh.
    pub mesh: String,
    /// First host.
    pub from: HostName,
    /// Second host.
    pub to: HostName,
    /// Unix time at which it began, in seconds.
    pub at: u64,
    /// Bytes that it moved.
    pub bytes: ByteCount,
}

/// A slot that was due and had no trial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Missed {
    /// Name of the mesh.
    pub mesh: String,
    /// First host.
    pub from: HostName,
    /// Second host.
    pub to: HostName,
    /// Unix time at which it was due, in seconds.
    pub due: u64,
    /// Reason.
    pub reason: MissReason,
}

/// Reason of a missed slot.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MissReason {
    /// A host's agent was not connected.
    HostAbsent(HostName),
    /// The budget of the day was spent.
    Budget,
    /// The hours ended before it could begin.
    Hours,
    /// Hosts or links were taken until the slip had passed.
    Busy,
    /// No scheduler ran when it was due.
    SchedulerAway,
    /// The trial failed or was lost.
    Failed,
}

impl fmt::Display for MissReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::HostAbsent(name) => write!(f, "host {name} absent"),
            Self::Budget => f.write_str("budget spent"),
            Self::Hours => f.write_str("hours ended"),
            Self::Busy => f.write_str("hosts or links busy"),
            Self::SchedulerAway => f.write_str("no scheduler ran"),
            Self::Failed => f.write_str("trial failed"),
        }
    }
}
