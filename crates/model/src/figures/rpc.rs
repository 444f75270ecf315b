//! Figures of RPC calls.

use super::{FlowFigures, Latency, ReceivedRates, RequestFigures, SentRates};
use crate::RpcCall;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Figures of RPC calls.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RpcFigures {
    /// Figures of its flows.
    #[serde(flatten)]
    pub flow: FlowFigures,
    /// Figures of its calls as requests.
    #[serde(flatten)]
    pub requests: RequestFigures,
    /// Work of each call.
    pub call: RpcCall,
    /// Data at the receiver: the server of a write or an echo, the client of a read. `None` if calls carry no data.
    pub received: Option<ReceivedRates>,
    /// Data at the sender: the client of a write or an echo, the server of a read. `None` if calls carry no data.
    pub sent: Option<SentRates>,
    /// Calls sent again because no reply came in time, over all runs.
    pub retransmitted: u64,
    /// Time that calls took within the server, over all runs. `None` if the server does not measure it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_ns: Option<Latency>,
}
