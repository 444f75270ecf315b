//! Encapsulations: what a tag or a tunnel puts around a packet, and how large a packet it leaves room for.

use crate::IpVersion;
use crate::header_field::{HeaderField, Layer};
use crate::ip_packet::UDP_HEADER;
use crate::medium::{Offers, ethernet_header};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// One tag, label or tunnel between a medium and the packets it carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Encapsulation {
    /// One VLAN tag: IEEE 802.1Q clause 9.
    Vlan,
    /// Two VLAN tags, a provider's before a customer's: IEEE 802.1Q (802.1ad).
    Qinq,
    /// PPP in an Ethernet session: RFC 2516 section 4.
    Pppoe,
    /// One MPLS label: RFC 3032 section 2.1. The MTU counts it (section 3.1); where links are set larger to make up for it,
    /// give their MTU.
    Mpls,
    /// GRE without key, sequence number or check sum, carrying IP: RFC 2784.
    Gre,
    /// VXLAN: RFC 7348 section 5. The inner frame has no FCS and is not padded.
    Vxlan,
    /// GENEVE without options, carrying Ethernet: RFC 8926 section 3. The inner frame has no FCS and is not padded.
    Geneve,
    /// WireGuard's transport data message: the protocol's paper, section 5.4.6.
    Wireguard,
    /// IPsec ESP in tunnel mode with AES-GCM and a check value of 16 bytes: RFC 4303 section 2, RFC 4106.
    Esp,
}

/// All encapsulations, and their names.
const NAMES: [(Encapsulation, &str); 9] = [
    (Encapsulation::Vlan, "vlan"),
    (Encapsulation::Qinq, "qinq"),
    (Encapsulation::Pppoe, "pppoe"),
    (Encapsulation::Mpls, "mpls"),
    (Encapsulation::Gre, "gre"),
    (Encapsulation::Vxlan, "vxlan"),
    (Encapsulation::Geneve, "geneve"),
    (Encapsulation::Wireguard, "wireguard"),
    (Encapsulation::Esp, "esp"),
];

impl Encapsulation {
    /// All of them, in the order in which they are listed to users.
    pub fn all() -> impl Iterator<Item = Self> {
        NAMES.iter().map(|(one, _)| *one)
    }

    /// Whether it is a tag of an Ethernet frame.
    pub(crate) const fn is_tag(self) -> bool {
        matches!(self, Self::Vlan | Self::Qinq)
    }

    /// Whether it is a tunnel through an IP network, whose packets have an IP header of their own.
    pub const fn is_over_ip(self) -> bool {
        matches!(self.needs(), Offers::Ip)
    }

    /// What must stand below it.
    pub(crate) const fn needs(self) -> Offers {
        match self {
            Self::Vlan | Self::Qinq | Self::Pppoe => Offers::Frames,
            Self::Mpls => Offers::Packets,
            Self::Gre | Self::Vxlan | Self::Geneve | Self::Wireguard | Self::Esp => Offers::Ip,
        }
    }

    /// What may stand above it.
    pub(crate) const fn offers(self) -> Offers {
        match self {
            Self::Vlan | Self::Qinq | Self::Vxlan | Self::Geneve => Offers::Frames,
            // RFC 3032 section 4, RFC 4023: PPP and GRE carry labels too.
            Self::Pppoe | Self::Mpls | Self::Gre => Offers::Packets,
            Self::Wireguard | Self::Esp => Offers::Ip,
        }
    }

    /// The headers it puts before what it carries, outermost first.
    fn headers(self, outer: IpVersion) -> Vec<HeaderField> {
        let part = |name, bytes, source| HeaderField::new(name, bytes, Layer::Layer2, source);
        let tag = |name| part(name, 4, "IEEE 802.1Q clause 9");
        let name = match outer {
            IpVersion::V4 => "outer IPv4 header",
            IpVersion::V6 => "outer IPv6 header",
        };
        let ip = part(name, outer.header(), outer.source());
        let udp = part("outer UDP header", UDP_HEADER, "RFC 768");
        match self {
            Self::Vlan => vec![tag("VLAN tag")],
            Self::Qinq => vec![tag("service VLAN tag"), tag("customer VLAN tag")],
            Self::Pppoe => vec![
                part("PPPoE header", 6, "RFC 2516 section 4"),
                part("PPP protocol", 2, "RFC 1661 section 2, RFC 2516 section 4"),
            ],
            Self::Mpls => vec![part("MPLS label", 4, "RFC 3032 section 2.1")],
            Self::Gre => vec![ip, part("GRE header", 4, "RFC 2784 section 2.1")],
            Self::Vxlan => vec![ip, udp, part("VXLAN header", 8, "RFC 7348 section 5"), ethernet_header()],
            Self::Geneve => vec![ip, udp, part("GENEVE header", 8, "RFC 8926 section 3.4"), ethernet_header()],
            Self::Wireguard => {
                vec![ip, udp, part("WireGuard header", 16, "WireGuard paper section 5.4.6: type, receiver, counter")]
            }
            Self::Esp => vec![
                ip,
                part("ESP header", 8, "RFC 4303 section 2: SPI and sequence number"),
                part("ESP initialisation vector", 8, "RFC 4106 section 3.1"),
            ],
        }
    }

    /// The trailers it puts behind `inner` bytes where at most `room` fit.
    fn trailers(self, inner: u32, room: u32) -> Vec<HeaderField> {
        let part = |name, bytes, source| HeaderField::new(name, bytes, Layer::Layer2, source);
        match self {
            Self::Wireguard => {
                // Padded to 16, but not past the tunnel's own MTU.
                let padded = inner.next_multiple_of(16).min(room).max(inner);
                vec![
                    part("WireGuard padding", padded - inner, "WireGuard paper section 5.4.6: to a multiple of 16"),
                    part("WireGuard tag", WIREGUARD_TAG, "RFC 8439 section 2.8"),
                ]
            }
            Self::Esp => vec![
                part(
                    "ESP padding",
                    (inner + ESP_TRAILER).next_multiple_of(ESP_ALIGNMENT) - inner - ESP_TRAILER,
                    "RFC 4303 section 2.4: to a multiple of 4",
                ),
                part("ESP pad length and next header", ESP_TRAILER, "RFC 4303 sections 2.5, 2.6"),
                part("ESP check value", ESP_CHECK, "RFC 4106 section 6"),
            ],
            _ => Vec::new(),
        }
    }

    /// Puts its bytes around `body`; `room` is the most that it can carry.
    pub(crate) fn wrap(self, body: Vec<HeaderField>, room: u32, outer: IpVersion) -> Vec<HeaderField> {
        let inner = body.iter().map(|part| part.bytes).sum();
        let mut parts = self.headers(outer);
        parts.extend(body);
        parts.extend(self.trailers(inner, room));
        parts
    }

    /// The largest body it can carry in `room` bytes; none where its own bytes do not fit.
    pub(crate) fn room(self, room: u32, outer: IpVersion) -> Option<u32> {
        let left = room.checked_sub(self.headers(outer).iter().map(|part| part.bytes).sum())?;
        match self {
            Self::Wireguard => left.checked_sub(WIREGUARD_TAG),
            Self::Esp => {
                let sealed = left.checked_sub(ESP_CHECK)?;
                (sealed / ESP_ALIGNMENT * ESP_ALIGNMENT).checked_sub(ESP_TRAILER)
            }
            _ => Some(left),
        }
    }
}

/// Poly1305's: RFC 8439 section 2.8.
const WIREGUARD_TAG: u32 = 16;
/// Pad length and next header: RFC 4303 sections 2.5 and 2.6.
const ESP_TRAILER: u32 = 2;
/// What is encrypted ends on such a boundary: RFC 4303 section 2.4.
const ESP_ALIGNMENT: u32 = 4;
/// The full check value: RFC 4106 section 6.
const ESP_CHECK: u32 = 16;

impl fmt::Display for Encapsulation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (_, name) = NAMES.iter().find(|(one, _)| one == self).expect("every encapsulation has a name");
        f.pad(name)
    }
}

/// A text that names no encapsulation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no encapsulation; name one of vlan, qinq, pppoe, mpls, gre, vxlan, geneve, wireguard, esp")]
pub struct UnknownEncapsulation(pub String);

impl FromStr for Encapsulation {
    type Err = UnknownEncapsulation;

    fn from_str(text: &str) -> Result<Self, UnknownEncapsulation> {
        let known = NAMES.iter().find(|(_, name)| name.eq_ignore_ascii_case(text.trim()));
        known.map(|(one, _)| *one).ok_or_else(|| UnknownEncapsulation(text.to_owned()))
    }
}
