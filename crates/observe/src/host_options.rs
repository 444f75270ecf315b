//! Properties of a host that only its agent knows.

use linerate_model::{Duplex, HostName};
use linerate_units::BitRate;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Properties of the host that only the agent knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostOptions {
    /// The name it goes by.
    pub name: HostName,
    /// The agent's version.
    pub version: String,
    /// Version of the agent's protocol.
    pub protocol: u32,
    /// Line rates by interface, in place of what the drivers say.
    pub link_speeds: BTreeMap<String, BitRate>,
    /// Duplex by interface, in place of what the drivers say.
    pub link_duplexes: BTreeMap<String, Duplex>,
    /// Addresses that other hosts are to send trial data to; empty: where they reach the agent.
    pub data_addresses: Vec<IpAddr>,
}
