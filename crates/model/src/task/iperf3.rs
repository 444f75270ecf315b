//! A server of iperf3 that is there already: the other end of a stream where no agent runs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// An iperf3 server. It takes one test at a time, and says what its end counted when the test is over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Iperf3Server {
    /// Its address.
    pub address: IpAddr,
    /// Its port, TCP and UDP.
    pub port: u16,
    /// Whether it is asked for its own report (`--get-server-output` of iperf3), which then stands among what it told.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub report: bool,
}

impl Iperf3Server {
    /// The port that iperf3 listens on unless told otherwise.
    pub const PORT: u16 = 5201;
    /// Bytes that it takes or gives in one call at the most.
    pub const MOST_TCP_BYTES: u64 = 1 << 20;
    /// Flows of each direction at the most.
    pub const MOST_FLOWS: u16 = 128;
    /// Warm-up at the most, in whole seconds.
    pub const MOST_WARMUP_S: u64 = 600;
}
