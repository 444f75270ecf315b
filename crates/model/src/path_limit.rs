//! What an Ethernet link can carry, by layer and message size. Each rate says which bytes it counts.

use crate::carried::SEGMENTS_ACKNOWLEDGED;
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
    /// Both directions share the line, and TCP's acknowledgements are part of the calculation.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub half_duplex: bool,
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

    /// Returns the most payload that a half-duplex line carries: an acknowledgement follows every two segments of TCP
    /// (RFC 9293 section 3.8.6.3).
    pub fn half_duplex_payload_of(
        line: BitRate,
        transport: Transport,
        ip: IpVersion,
        message_bytes: u64,
        mtu: u32,
    ) -> BitRate {
        let (payload, _, wire) = layer_bytes(transport, ip, message_bytes, mtu);
        if transport == Transport::Udp {
            return line.scaled(payload, wire);
        }
        let acknowledgement = IpPackets::acknowledgement(TIMESTAMPS, ip);
        let parts = Medium::Ethernet(line).frame(acknowledgement.parts());
        let answer = LayerBytes::of(&parts, acknowledgement.count).at(Layer::Wire);
        line.scaled(SEGMENTS_ACKNOWLEDGED * payload, SEGMENTS_ACKNOWLEDGED * wire + answer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Stack;

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
    fn acknowledgements_take_their_part_of_a_half_duplex_line() {
        let line = BitRate::per_second(10_000_000);
        for (message, mtu) in [(1_448, 1_500), (1_348, 1_400), (536, 588)] {
            for (transport, v6) in [(Transport::Tcp, false), (Transport::Tcp, true), (Transport::Udp, false)] {
                let ip = if v6 { IpVersion::V6 } else { IpVersion::V4 };
                let stack = Stack {
                    half_duplex: true,
                    ip,
                    inner_mtu: Some(mtu.max(ip.smallest_mtu())),
                    ..Stack::on(Medium::Ethernet(line))
                };
                let mtu = stack.inner_mtu().expect("fits");
                let exact = stack.carried(transport, message).expect("fits").rate(Layer::Payload);
                assert_eq!(PathLimit::half_duplex_payload_of(line, transport, ip, message, mtu), exact);
            }
        }
        // 2 x 1,448 of 2 x 1,538 + 90.
        let tcp = PathLimit::half_duplex_payload_of(line, Transport::Tcp, IpVersion::V4, 1_448, 1_500);
        assert_eq!(tcp.get(), 10_000_000 * 2_896 / 3_166);
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
