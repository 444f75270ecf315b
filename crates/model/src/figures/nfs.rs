//! Figures of NFS operations.

use super::{FlowFigures, Latency, ReceivedRates, RequestFigures};
use crate::{NfsClass, NfsOperation};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Figures of NFS operations.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NfsFigures {
    /// Figures of its flows.
    #[serde(flatten)]
    pub flow: FlowFigures,
    /// Figures of its operations as requests.
    #[serde(flatten)]
    pub requests: RequestFigures,
    /// File data read and written. `None` if no operation moves any.
    pub received: Option<ReceivedRates>,
    /// Calls sent again because no reply came in time, over all runs.
    pub retransmitted: u64,
    /// Figures of each operation, over all runs.
    pub operations: BTreeMap<NfsOperation, OperationFigures>,
    /// Figures of each class of operations, over all runs.
    pub classes: BTreeMap<NfsClass, OperationFigures>,
    /// Time that calls took within the server, over all runs. `None` if the server does not measure it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_ns: Option<Latency>,
}

/// Operations of one kind, or of one class, over all runs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OperationFigures {
    /// How many were completed.
    pub count: u64,
    /// Share of all completed operations, 0 to 1.
    pub share: f64,
    /// Completed per second: the mean over the runs.
    pub ops_per_s: f64,
    /// Mean response time, milliseconds.
    pub mean_ms: f64,
    /// Half of all are answered within this, milliseconds.
    pub p50_ms: f64,
    /// 99 %, milliseconds.
    pub p99_ms: f64,
    /// Bytes of file data read or written.
    pub bytes: u64,
    /// Operations that failed, by NFS status.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub errors: BTreeMap<String, u64>,
    /// Bytes read that were not what had been written.
    pub corrupt_bytes: u64,
}
