//! The IP packets that a message becomes.

use crate::header_field::{HeaderField, Layer};
use crate::{IpVersion, Transport};

/// RFC 768.
pub(crate) const UDP_HEADER: u32 = 8;
/// Fragments are cut at multiples of this: RFC 791 section 3.2, RFC 8200 section 4.5.
const FRAGMENT_UNIT: u32 = 8;

/// TCP's header: RFC 9293 section 3.1, and the timestamps option of RFC 7323 section 3 (10 bytes, padded to 12).
pub(crate) const fn tcp_header(timestamps: bool) -> u32 {
    if timestamps { 20 + 12 } else { 20 }
}

/// So many IP packets of one form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct IpPackets {
    pub(crate) count: u64,
    ip: IpVersion,
    /// IPv6 only; the others of a datagram have none.
    fragment_header: u32,
    transport: Transport,
    /// None in fragments behind the first.
    transport_header: u32,
    payload: u32,
}

impl IpPackets {
    /// The packets of one message, in order: a UDP message past the MTU is cut into fragments, all but the last a multiple
    /// of 8 bytes long; TCP fills a segment whatever the message.
    pub(crate) fn of(transport: Transport, timestamps: bool, ip: IpVersion, message_bytes: u64, mtu: u32) -> Vec<Self> {
        let one =
            |transport_header, payload| Self { count: 1, ip, fragment_header: 0, transport, transport_header, payload };
        let room = mtu.saturating_sub(ip.header());
        if transport == Transport::Tcp {
            let header = tcp_header(timestamps);
            return vec![one(header, room.saturating_sub(header))];
        }
        let whole = message_bytes.saturating_add(u64::from(UDP_HEADER));
        if whole <= u64::from(room) {
            return vec![one(UDP_HEADER, message_bytes as u32)];
        }
        let fragment_header = ip.fragment_header();
        let piece = (room.saturating_sub(fragment_header) / FRAGMENT_UNIT * FRAGMENT_UNIT).max(FRAGMENT_UNIT);
        let full = (whole - 1) / u64::from(piece);
        let last = (whole - full * u64::from(piece)) as u32;
        let fragment =
            |count, transport_header, payload| Self { count, fragment_header, ..one(transport_header, payload) };
        let mut packets = vec![fragment(1, UDP_HEADER, piece - UDP_HEADER)];
        if full > 1 {
            packets.push(fragment(full - 1, 0, piece));
        }
        packets.push(fragment(1, 0, last));
        packets
    }

    /// A segment without payload, which acknowledges what came: RFC 9293 section 3.8.6.3.
    pub(crate) const fn acknowledgement(timestamps: bool, ip: IpVersion) -> Self {
        let transport_header = tcp_header(timestamps);
        Self { count: 1, ip, fragment_header: 0, transport: Transport::Tcp, transport_header, payload: 0 }
    }

    /// The size of each.
    pub(crate) fn bytes(self) -> u32 {
        self.ip.header() + self.fragment_header + self.transport_header + self.payload
    }

    /// The headers and the payload of each, in order.
    pub(crate) fn parts(self) -> Vec<HeaderField> {
        let header = |name, bytes, source| HeaderField::new(name, bytes, Layer::Ip, source);
        let name = match self.ip {
            IpVersion::V4 => "IPv4 header",
            IpVersion::V6 => "IPv6 header",
        };
        let transport = match self.transport {
            Transport::Udp => header("UDP header", self.transport_header, "RFC 768"),
            Transport::Tcp if self.transport_header > tcp_header(false) => {
                header("TCP header with timestamps", self.transport_header, "RFC 9293 section 3.1, RFC 7323 section 3")
            }
            Transport::Tcp => header("TCP header", self.transport_header, "RFC 9293 section 3.1"),
        };
        vec![
            header(name, self.ip.header(), self.ip.source()),
            header("fragment header", self.fragment_header, "RFC 8200 section 4.5"),
            transport,
            HeaderField::new("payload", self.payload, Layer::Payload, ""),
        ]
    }
}
