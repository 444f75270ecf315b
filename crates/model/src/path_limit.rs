//! What an Ethernet link can carry, by layer and message size. Each rate says which bytes it counts.

use crate::header_field::{Layer, LayerBytes};
use crate::ip_packet::{IpPackets, tcp_header};
use crate::medium::{ETHERNET_HEADER, Medium};
use crate::{IpVersion, Transport};
use linerate_units::{BitRate, FrameSize};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Linux sends TCP timestamps by default, and what is measured is counted with them.
const TIMESTAMPS: bool = true;
const TCP_HEADER: u32 = tcp_header(TIMESTAMPS);

/// What a path can carry, and how much of it was used.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PathLimit {
    /// Rate of the slowest known link on the path.
    pub line_bps: BitRate,
    /// Smallest MTU known on the path, bytes.
    pub mtu: u32,
    /// The most payload that line can carry in messages of this size.
    pub payload_bps: BitRate,
    /// Median received payload as a share of `payload_bps`.
    pub share: f64,
}

impl PathLimit {
    /// More than this share of what a declared speed allows cannot have been carried: clocks, and data that were held up before a
    /// short window, explain less. The speeds of media are further apart.
    const MOST_SHARE: f64 = 1.2;

    /// Whether a line of the declared speed cannot have carried so much.
    pub fn is_declared_too_slow(&self) -> bool {
        self.share > Self::MOST_SHARE
    }
}

/// Sizes of the IP packets one message becomes: UDP messages past the MTU are cut into fragments, TCP fills its segments
/// whatever the message.
pub fn ip_packets(transport: Transport, ip: IpVersion, message_bytes: u64, mtu: u32) -> Vec<u32> {
    let packets = IpPackets::of(transport, TIMESTAMPS, ip, message_bytes, mtu);
    packets.iter().flat_map(|packets| vec![packets.bytes(); packets.count as usize]).collect()
}

/// Payload, IP and wire bytes of one message (TCP: of one full segment) on untagged Ethernet, in this order: the shares of a
/// rate by layer.
pub fn layer_bytes(transport: Transport, ip: IpVersion, message_bytes: u64, mtu: u32) -> (u64, u64, u64) {
    // The shares are the same at any rate.
    let medium = Medium::Ethernet(BitRate::per_second(1));
    let mut bytes = LayerBytes::default();
    for packets in IpPackets::of(transport, TIMESTAMPS, ip, message_bytes, mtu) {
        bytes += LayerBytes::of(&medium.frame(packets.parts()), packets.count);
    }
    (bytes.at(Layer::Payload), bytes.at(Layer::Ip), bytes.at(Layer::Wire))
}

/// The IP packet that carries a TCP segment of `payload` bytes.
pub fn tcp_packet(ip: IpVersion, payload: u32) -> u32 {
    payload.saturating_add(ip.header() + TCP_HEADER)
}

/// What one TCP segment adds to its payload, in bytes: in its IP packet, and on an Ethernet wire.
pub fn tcp_overhead(ip: IpVersion) -> (u32, u32) {
    let packet = ip.header() + TCP_HEADER;
    // Headers alone are above the minimum of a frame, IPv4's with 66 bytes.
    (packet, FrameSize::carrying(packet, ETHERNET_HEADER).on_the_wire())
}

impl PathLimit {
    /// The most payload an untagged Ethernet line of rate `line` carries in such messages.
    pub fn payload_of(line: BitRate, transport: Transport, ip: IpVersion, message_bytes: u64, mtu: u32) -> BitRate {
        let (payload, _, wire) = layer_bytes(transport, ip, message_bytes, mtu);
        line.scaled(payload, wire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(transport: Transport, message: u64) -> f64 {
        let line = BitRate::per_second(1_000_000_000);
        PathLimit::payload_of(line, transport, IpVersion::V4, message, 1500).get() as f64 / 1e9
    }

    /// The figures every network engineer knows: 1472/1538, 64/130, 1448/1538.
    #[test]
    fn payload_shares_of_a_line() {
        assert!((share(Transport::Udp, 1472) - 1472.0 / 1538.0).abs() < 1e-8);
        assert!((share(Transport::Udp, 64) - 64.0 / 130.0).abs() < 1e-8);
        assert!((share(Transport::Tcp, 131_072) - 1448.0 / 1538.0).abs() < 1e-8);
        // One byte rides in a minimum frame: 64 with FCS, 84 on the wire.
        assert!((share(Transport::Udp, 1) - 1.0 / 84.0).abs() < 1e-8);
    }

    #[test]
    fn tcp_segments_cost_their_headers() {
        assert_eq!(tcp_packet(IpVersion::V4, 1448), 1500);
        // 52 in the packet; 14 of Ethernet, 4 of FCS and 20 of preamble and gap more on the wire.
        assert_eq!(tcp_overhead(IpVersion::V4), (52, 90));
        assert_eq!(tcp_overhead(IpVersion::V6), (72, 110));
    }

    #[test]
    fn past_the_mtu_a_datagram_is_cut() {
        assert_eq!(ip_packets(Transport::Udp, IpVersion::V4, 1472, 1500), [1500]);
        assert_eq!(ip_packets(Transport::Udp, IpVersion::V4, 1473, 1500), [1500, 21]);
        assert_eq!(ip_packets(Transport::Udp, IpVersion::V4, 8192, 1500), [1500, 1500, 1500, 1500, 1500, 820]);
        assert_eq!(ip_packets(Transport::Udp, IpVersion::V6, 1452, 1500), [1500]);
        assert_eq!(ip_packets(Transport::Udp, IpVersion::V6, 1453, 1500), [1496, 61]);
    }
}
