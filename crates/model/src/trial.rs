//! One measurement: what it is to do, and what it counted.

use crate::{Caveat, Counterproof, EndResult, Loss, Observation, ProbeResult, TransactSpec, Workload};
use linerate_units::Nanos;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// The name a host has in a plan: a lab host's, `local`, or host:port.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct HostName(pub String);

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl From<&str> for HostName {
    fn from(name: &str) -> Self {
        Self(name.to_owned())
    }
}

/// A pair of hosts. The opener opens the data connections, so that only the listener needs to be reachable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Path {
    /// Opens the data connections; asks, in transactions.
    pub opener: HostName,
    /// Accepts them; answers, in transactions.
    pub listener: HostName,
}

/// When a trial does what. Warm-up comes before the window and counts for nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Timing {
    /// Load before the measured window.
    pub warmup: Nanos,
    /// The measured window.
    pub measure: Nanos,
}

/// One trial to run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrialSpec {
    /// The name of what is measured; trials of the same name are repeats.
    pub name: String,
    /// Who talks to whom; several paths run at once.
    pub paths: Vec<Path>,
    /// What they do.
    pub workload: Workload,
    /// For how long.
    pub timing: Timing,
    /// Requests that are timed on every path besides: first with nothing else on it, then while the workload runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe: Option<TransactSpec>,
    /// Which verdict it puts to the test; none if it was asked for itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proves: Option<Counterproof>,
}

/// Both ends of one path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PathResult {
    /// The opener's end.
    pub opener: EndResult,
    /// The listener's end.
    pub listener: EndResult,
    /// What became of the datagrams from opener to listener (UDP streams).
    pub forward_loss: Option<Loss>,
    /// What became of the datagrams from listener to opener (UDP streams).
    pub backward_loss: Option<Loss>,
}

/// What one trial counted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrialResult {
    /// What was to be done.
    pub spec: TrialSpec,
    /// When the window opened, nanoseconds since 1970.
    pub started_unix_ns: u64,
    /// Counts of each path, in the order of the spec's paths.
    pub paths: Vec<PathResult>,
    /// What each host saw during the window.
    pub hosts: BTreeMap<HostName, Observation>,
    /// What the probes counted; none without probes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe: Option<ProbeResult>,
    /// Doubts about this trial.
    pub caveats: Vec<Caveat>,
}
