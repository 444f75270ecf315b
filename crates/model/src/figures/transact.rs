//! Figures of transactions.

use super::{FlowFigures, RequestFigures};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Figures of transactions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TransactFigures {
    /// Figures of its flows.
    #[serde(flatten)]
    pub flow: FlowFigures,
    /// Figures of its requests.
    #[serde(flatten)]
    pub requests: RequestFigures,
    /// Bytes of a response.
    pub response_bytes: u64,
}
