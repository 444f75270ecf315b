//! A question to a neighbour of one of the host's ports.

use linerate_model::Mac;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// Asks for the Ethernet address of a neighbour (ARP or neighbour discovery).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Resolve {
    /// The port that asks.
    pub interface: String,
    /// The port's address.
    pub mac: Mac,
    /// The IP address that asks.
    pub own: IpAddr,
    /// The neighbour, as a rule a router.
    pub target: IpAddr,
}
