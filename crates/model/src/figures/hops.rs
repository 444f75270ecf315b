//! Figures of probes along a path: delays and losses by hop, and the sections of the path that they point to.

use crate::{HopRef, HostName, MplsLabel, PathMtu, PathSection, ProbePacket};
use linerate_units::Nanos;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// Figures of one probed way, over all runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WayFigures {
    /// Probing host.
    pub from: HostName,
    /// Far end.
    pub to: HostName,
    /// Packets that probed it.
    pub packet: ProbePacket,
    /// Whether the measured load used this way.
    pub under_load: bool,
    /// Routers and, if it answered, the far end.
    pub hops: Vec<HopFigures>,
    /// Sections of the path where delay or loss begins.
    pub sections: Vec<PathSection>,
    /// Path MTU. `None` if it was not searched for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path_mtu: Option<PathMtu>,
    /// One-way delays. `None` without a reflector.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub one_way: Option<OneWayFigures>,
    /// Rate of the probes, IP packets with their headers, bit/s.
    pub probe_bps: f64,
    /// Whether a hop answered from one address before and from another one later: the path changed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub path_changed: bool,
    /// Changes of the round trip in the course of the last run without a load, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<DelayChange>,
}

/// Change of the round trip to the last hop that answered, on a path without a load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DelayChange {
    /// Time of the change, from the opening of the window.
    pub at: Nanos,
    /// Median before, back to the change before it.
    pub before: Nanos,
    /// Median after, up to the next change.
    pub after: Nanos,
    /// First hop with the change, as all hops after it have. `None` if the hops do not show it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_hop: Option<HopRef>,
}

impl WayFigures {
    /// Returns the section that best explains a limit of this way.
    pub fn section(&self) -> Option<&PathSection> {
        self.sections.first()
    }

    /// Returns the hop of this TTL.
    pub fn hop(&self, ttl: u8) -> Option<&HopFigures> {
        self.hops.iter().find(|hop| hop.ttl == ttl)
    }
}

/// Figures of one hop.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HopFigures {
    /// TTL of the probes.
    pub ttl: u8,
    /// Addresses that answered, the most frequent first. Empty if none did.
    pub addresses: Vec<IpAddr>,
    /// Whether it is the far end.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_far_end: bool,
    /// MPLS label stack of its last answer (RFC 4950).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<MplsLabel>,
    /// Whether the router limits the rate of its answers.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rate_limited: bool,
    /// Round trips on the idle path. `None` if it was not probed idle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle: Option<HopDelay>,
    /// Round trips while the load ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loaded: Option<HopDelay>,
}

/// Round trips to one hop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HopDelay {
    /// Probes sent.
    pub sent: u64,
    /// Probes answered.
    pub answered: u64,
    /// Median round trip. `None` if no probe was answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p50: Option<Nanos>,
    /// 99th percentile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99: Option<Nanos>,
}

impl HopDelay {
    /// Returns the share of probes without an answer, 0 to 1. `None` if no probe was sent.
    pub fn loss(&self) -> Option<f64> {
        (self.sent > 0).then(|| self.sent.saturating_sub(self.answered) as f64 / self.sent as f64)
    }
}

/// One-way delays between two agents, or an agent and a STAMP reflector.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OneWayFigures {
    /// Delay on the idle path. `None` if it was not probed idle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle: Option<OneWayDelay>,
    /// Delay while the load ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loaded: Option<OneWayDelay>,
}

/// One-way delay and its variation.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OneWayDelay {
    /// Least delay that the median can have, given the uncertainty of the clocks. Never negative.
    pub p50_low: Nanos,
    /// Greatest delay that the median can have.
    pub p50_high: Nanos,
    /// 99th percentile of the packet delay variation: delay less the smallest delay (RFC 5481 section 4.2). It needs no synchronised
    /// clocks.
    pub variation_p99: Nanos,
    /// Median of the same.
    pub variation_p50: Nanos,
    /// Mean magnitude of the difference between successive delays (RFC 3393 section 4.5).
    pub inter_packet: Nanos,
    /// Share of packets lost on this way, 0 to 1. `None` if the reflector does not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss: Option<f64>,
}
