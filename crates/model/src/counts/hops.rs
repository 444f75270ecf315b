//! Counts of probes along a path.

use crate::ProbePacket;
use crate::named;
use linerate_units::Nanos;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// Counts of the probes of one path.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HopsCounts {
    /// Counts of the client's end.
    pub client: HopsEnd,
    /// Counts of the server's end. `None` if it runs no agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<HopsEnd>,
}

/// Counts of one end of a probed path.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HopsEnd {
    /// Index of the path in the task.
    pub path: u16,
    /// Way from this end to the other. `None` if this end did not probe it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub way: Option<ProbedWay>,
    /// Probes of the other end that this end reflected.
    #[serde(default)]
    pub reflected: u64,
}

/// Answers to the probes of one way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProbedWay {
    /// Packets that were sent.
    pub packet: ProbePacket,
    /// Packets that were tried before, each with the reason why they were given up.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub given_up: Vec<(ProbePacket, String)>,
    /// Local address.
    pub source: IpAddr,
    /// Address of the far end.
    pub destination: IpAddr,
    /// Routers in the order of their TTLs, from 1 on, without gaps. The far end comes last, if it answered.
    pub hops: Vec<Hop>,
    /// Path MTU. `None` if it was not searched for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path_mtu: Option<PathMtu>,
    /// Probes sent in all phases.
    pub sent: u64,
    /// Bytes of these probes, IP headers included.
    pub sent_bytes: u64,
    /// ICMP messages that quoted no packet of this host's probes.
    #[serde(default)]
    pub rejected: u64,
}

impl ProbedWay {
    /// Returns the far end, or `None` if it did not answer.
    pub fn far_end(&self) -> Option<&Hop> {
        self.hops.last().filter(|hop| hop.is_far_end)
    }
}

/// Answers to the probes of one TTL.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Hop {
    /// TTL of the probes.
    pub ttl: u8,
    /// Whether the far end answered. Its probes have a larger TTL than it needs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_far_end: bool,
    /// Addresses that answered, the most frequent first.
    pub addresses: Vec<HopAddress>,
    /// Probes sent in the measured window.
    pub sent: u64,
    /// Probes of these that were answered.
    pub answered: u64,
    /// Whether the router limits the rate of its answers: it left bursts unanswered that slower probes did not lose.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rate_limited: bool,
    /// Probes of the measured window in the order of sending. Beyond [`Hop::MAX_SAMPLES`] every other one is dropped, as often
    /// as needed.
    pub samples: Vec<HopSample>,
    /// Probes that reached the far end, as its own counter saw them. `None` for routers and hosts without a reflector.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reflected: Option<u64>,
}

impl Hop {
    /// Most samples that are kept of one hop.
    pub const MAX_SAMPLES: usize = 1_024;
}

/// One probe of the measured window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HopSample {
    /// Time of sending, from the opening of the window.
    pub at: Nanos,
    /// Time until the answer arrived. `None` if no answer did.
    pub delay: Option<Nanos>,
    /// Clock of the reflector at arrival less the clock of this host at sending, nanoseconds; and clock of this host at the
    /// answer's arrival less that of the reflector at its departure. Both include the offset of the clocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub one_way: Option<[i64; 2]>,
}

/// An address that answered for a TTL.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HopAddress {
    /// Address of the router.
    pub address: IpAddr,
    /// Answers from it, in all phases.
    pub answers: u64,
    /// Time of its first answer, from the start of the probes.
    pub first: Nanos,
    /// Time of its last answer.
    pub last: Nanos,
    /// MPLS label stack entries of its last answer (RFC 4950), as in `label 16004 TTL 1`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<MplsLabel>,
}

/// An MPLS label stack entry (RFC 3032 section 2.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MplsLabel {
    /// Label, 20 bits.
    pub label: u32,
    /// Traffic class, 3 bits.
    pub traffic_class: u8,
    /// TTL.
    pub ttl: u8,
}

/// Path MTU of one way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PathMtu {
    /// Size of the largest packet that arrived, IP header included. `None` if no packet that large was sent with success.
    pub bytes: Option<u32>,
    /// How it is known.
    pub found_by: MtuProof,
    /// MTU of the first link: the largest packet that this host could send.
    pub link_mtu: u32,
    /// Routers that reported that a packet was too big, in the order of their reports.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reports: Vec<TooBig>,
    /// Size of a packet that was lost without such a report, repeatedly, while smaller packets arrived.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub black_hole: Option<BlackHole>,
}

named! {
    /// Evidence of a path MTU.
    pub enum MtuProof as "mtu-proof" {
        /// The far end answered packets of this size (RFC 8899).
        FarEnd = "far-end", "answered by the far end";
        /// Routers reported it, and nothing larger was lost silently (RFC 1191, RFC 8201).
        Reported = "reported", "reported by a router";
        /// Neither answers nor reports arrived.
        Nothing = "nothing", "not known";
    }
}

/// A report that a packet was too big (RFC 1191 section 4, RFC 4443 section 3.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TooBig {
    /// Router that sent the report.
    pub address: IpAddr,
    /// MTU in the report, bytes; zero if the router sent none.
    pub mtu: u32,
}

/// Silent loss of large packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BlackHole {
    /// Smallest size that was lost, IP header included.
    pub lost_bytes: u32,
    /// Last TTL at which a packet of this size was answered; 0 is this host.
    pub last_answered: u8,
    /// First TTL at which packets of this size were lost although smaller ones were answered. `None` if the routers do not
    /// answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_lost: Option<u8>,
}
