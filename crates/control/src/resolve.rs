//! Requests for the Ethernet address of a neighbour.

use linerate_model::Mac;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// Asks for the Ethernet address of a neighbour (ARP or neighbour discovery).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Resolve {
    /// Port that sends the request.
    pub interface: String,
    /// Address of the port.
    pub mac: Mac,
    /// Sender's IP address.
    pub own: IpAddr,
    /// Address of the neighbour, usually a router.
    pub target: IpAddr,
}
