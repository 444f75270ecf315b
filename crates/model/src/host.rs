//! A machine with an agent.

use crate::{HostName, Slot};
use linerate_units::{BitRate, ParseError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// What a host is and what it can do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Host {
    /// The name it goes by in this record; the agent itself says its system's host name.
    pub name: HostName,
    /// The agent's version.
    pub version: String,
    /// Version of the agent's protocol; ends of one trial must agree.
    pub protocol: u32,
    /// Operating system and release, as in `Linux 6.18.44`.
    pub system: String,
    /// CPU model as the system names it.
    pub cpu_model: String,
    /// Cores online.
    pub cores: u32,
    /// Cores that the agent may use, by the last-level cache that they share. Empty if the system does not say.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub core_groups: Vec<Vec<u32>>,
    /// Main memory, bytes.
    pub memory_bytes: u64,
    /// Tells this boot of this machine from all others: two hosts with the same one share their cores.
    pub boot_id: String,
    /// TCP congestion controls that the agent may use, the default first.
    pub congestion_controls: Vec<String>,
    /// Network interfaces but loopback.
    pub nics: Vec<Nic>,
    /// Addresses that other hosts are to send trial data to, as the agent was told; empty: where they reach the agent.
    pub data_addresses: Vec<IpAddr>,
    /// What the agent can do here.
    pub capabilities: Vec<Capability>,
}

/// One network interface.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Nic {
    /// The system's name for it.
    pub name: String,
    /// Its driver, as in `veth` or `ixgbe`; empty if unknown.
    pub driver: String,
    /// Line rate; none where the driver does not know one or makes one up (veth, tun and other links without a wire).
    pub speed: Option<BitRate>,
    /// Duplex of the link. `None` if it is unknown, as for links without a wire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duplex: Option<Duplex>,
    /// Largest IP packet, bytes.
    pub mtu: u32,
    /// Link is up and has a carrier.
    pub up: bool,
    /// Hardware address.
    pub mac: String,
    /// IP addresses.
    pub addresses: Vec<IpAddr>,
    /// Offloads by the kernel's name (`tx-tcp-segmentation`, `rx-gro` ...), on or off.
    pub offloads: BTreeMap<String, bool>,
    /// Root queueing discipline, as in `fq` or `tbf`; empty if unknown.
    pub qdisc: String,
    /// Version of the driver; empty if unknown.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub driver_version: String,
    /// Version of the card's firmware; empty if unknown.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub firmware: String,
    /// The card's slot; none without one, or where the system does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slot: Option<Slot>,
}

impl Nic {
    /// Returns whether sent and received frames share the medium, as on a hub.
    pub fn is_half_duplex(&self) -> bool {
        self.duplex == Some(Duplex::Half)
    }
}

/// Duplex of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Duplex {
    /// Each direction has the whole rate.
    Full,
    /// Both directions share the rate, as on a hub (IEEE 802.3 clause 4).
    Half,
}

impl FromStr for Duplex {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        match text {
            "full" => Ok(Self::Full),
            "half" => Ok(Self::Half),
            _ => Err(ParseError { text: text.to_owned(), expected: "a duplex, half or full", example: "half" }),
        }
    }
}

impl fmt::Display for Duplex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Full => "full",
            Self::Half => "half",
        })
    }
}

/// One thing an agent can or cannot do here, and what would change that.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Capability {
    /// Short name, as in `udp-segmentation-offload`.
    pub name: String,
    /// It works here.
    pub available: bool,
    /// What it is for; if it does not work: why, and the remedy.
    pub text: String,
}
