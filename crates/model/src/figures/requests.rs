//! Figures that every task of requests has: transactions, RPC and NFS.

use crate::Summary;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Figures that every task of requests has: transactions, RPC and NFS.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RequestFigures {
    /// Requests answered per second.
    pub transactions_per_s: Summary,
    /// Requests that failed, over all runs.
    pub failed: u64,
    /// Time from a request to its answer, over all runs. `None` if none was timed.
    pub latency_ns: Option<Latency>,
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
