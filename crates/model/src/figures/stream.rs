//! Figures of streams.

use super::{FlowFigures, LoadedLatency, ReceivedRates, SentRates};
use crate::{Direction, Loss, Summary};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Figures of streams.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StreamFigures {
    /// Figures of its flows.
    #[serde(flatten)]
    pub flow: FlowFigures,
    /// Direction of the data, seen from the client.
    pub direction: Direction,
    /// Rates at the receivers, all paths together.
    pub received: ReceivedRates,
    /// Rates at the senders, all paths together.
    pub sent: SentRates,
    /// Datagrams lost, over all runs. `None` over TCP.
    pub loss: Option<Loss>,
    /// Deviation of transit times (RFC 3550), nanoseconds. `None` over TCP, and with fewer than two datagrams.
    pub jitter_ns: Option<Summary>,
    /// Latency on the idle path and next to the stream. `None` if it was not probed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loaded_latency: Option<LoadedLatency>,
}
