//! An alert as it is sent.

use linerate_model::HostName;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// A condition that somebody should look at, from when it began to when it ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Alert {
    /// Identity of the condition. The alert that resolves it has the same.
    pub id: String,
    /// The rule that raised it.
    pub kind: AlertKind,
    /// The part of the fleet that it names.
    pub subject: Subject,
    /// Pairs that are affected, source first.
    pub members: Vec<(HostName, HostName)>,
    /// Labels to route it by: `mesh`, and those of the hosts that all members share.
    pub labels: BTreeMap<String, String>,
    /// One sentence: the figure, the number and the subject.
    pub summary: String,
    /// Evidence, and what to do.
    pub description: String,
    /// Unix time at which the condition began, in seconds.
    pub since_unix_s: u64,
    /// Unix time at which it ended. `None` while it lasts.
    pub resolved_unix_s: Option<u64>,
}

/// The rule that raised an alert.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AlertKind {
    /// The level of a series of results changed.
    LevelChanged,
    /// Results are below or above a limit of the fleet file.
    Threshold,
    /// A host has been away for longer than `silent_after`.
    SilentHost,
    /// Too many slots of a mesh were missed.
    ScheduleNotKept,
}

impl AlertKind {
    /// Returns the name of the kind, as in labels of Prometheus.
    pub fn name(self) -> &'static str {
        match self {
            Self::LevelChanged => "level-changed",
            Self::Threshold => "threshold",
            Self::SilentHost => "silent-host",
            Self::ScheduleNotKept => "schedule-not-kept",
        }
    }
}

/// The part of a fleet that an alert names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Subject {
    /// One pair of hosts.
    Pair {
        /// Host that sends.
        from: HostName,
        /// Host that receives.
        to: HostName,
    },
    /// A host: most of its pairs are affected, and others are not.
    Host(HostName),
    /// A declared link.
    Link(String),
    /// A mesh as a whole.
    Mesh(String),
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pair { from, to } => write!(f, "{from} to {to}"),
            Self::Host(name) => write!(f, "host {name}"),
            Self::Link(name) => write!(f, "link {name}"),
            Self::Mesh(name) => write!(f, "mesh {name}"),
        }
    }
}
