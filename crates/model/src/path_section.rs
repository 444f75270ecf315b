//! Sections of a path, where delay or loss begins.

use crate::Confidence;
use crate::named;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// A section of a path: one link, or several where the routers between do not answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PathSection {
    /// Effect that begins here.
    pub effect: PathEffect,
    /// Last hop that does not show the effect; TTL 0 is the probing host.
    pub after: HopRef,
    /// First hop that shows it, as all hops after it do.
    pub before: HopRef,
    /// Confidence in the section.
    pub confidence: Confidence,
    /// Amount of the effect: the added delay in nanoseconds, the share of packets lost, or the size of the smallest packet lost.
    pub amount: f64,
}

impl PathSection {
    /// Returns whether it is a single link.
    pub fn is_one_link(&self) -> bool {
        self.before.ttl == self.after.ttl + 1
    }
}

/// Reference to a hop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HopRef {
    /// TTL; 0 is the probing host.
    pub ttl: u8,
    /// Address of the hop. `None` if it did not answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<IpAddr>,
}

named! {
    /// Effect of a section of a path on the packets that pass it.
    pub enum PathEffect as "path-effect" {
        /// Packets wait in a queue while the load runs.
        Queue = "queue", "queue under load";
        /// Packets are lost.
        Loss = "loss", "loss";
        /// Large packets are lost without an ICMP message.
        BlackHole = "black-hole", "MTU black hole";
    }
}
