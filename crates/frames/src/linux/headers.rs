//! Frames built from their headers, and the signature of a received frame.

use crate::linux::layout::{ICMP, ICMPV6, IPV4, IPV6, Layout, OUTER_VLAN, TCP, UDP, VLAN};
use crate::linux::signature::{BYTES, Signature, sum};
use linerate_model::{FrameHeaders, FramePayload};
use std::net::IpAddr;

/// The ACK flag (RFC 9293 section 3.1).
const ACK: u8 = 0x10;

/// Builds a frame of `length` bytes (without FCS) with `signature`, filled with zeros. Both addresses must be of one
/// family, and `length` must have room for headers and signature.
pub(crate) fn frame(headers: &FrameHeaders, length: usize, signature: Signature) -> Vec<u8> {
    let mut frame = ethernet(headers);
    let begin = frame.len();
    let packet = length - begin;
    let protocol = match (headers.payload, headers.source) {
        (FramePayload::Udp { .. }, _) => UDP,
        (FramePayload::Tcp { .. }, _) => TCP,
        (FramePayload::Echo, IpAddr::V4(_)) => ICMP,
        (FramePayload::Echo, IpAddr::V6(_)) => ICMPV6,
    };
    let carried = match (headers.source, headers.destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            frame.extend([0x45, headers.dscp << 2]);
            frame.extend((packet as u16).to_be_bytes());
            // No identification, do not fragment, 64 hops; the checksum follows.
            frame.extend([0, 0, 0x40, 0, 64, protocol, 0, 0]);
            frame.extend(source.octets());
            frame.extend(destination.octets());
            let checksum = !sum(&frame[begin..]);
            frame[begin + 10..begin + 12].copy_from_slice(&checksum.to_be_bytes());
            packet - 20
        }
        (source, destination) => {
            // Version 6, then the traffic class; no flow label.
            frame.extend([0x60 | headers.dscp >> 2, headers.dscp << 6, 0, 0]);
            frame.extend(((packet - 40) as u16).to_be_bytes());
            frame.extend([protocol, 64]);
            frame.extend(octets(source));
            frame.extend(octets(destination));
            packet - 40
        }
    };
    let transport = frame.len();
    match headers.payload {
        FramePayload::Udp { source_port, destination_port } => {
            frame.extend(source_port.to_be_bytes());
            frame.extend(destination_port.to_be_bytes());
            frame.extend((carried as u16).to_be_bytes());
            frame.extend([0, 0]);
        }
        FramePayload::Echo => {
            frame.extend([if protocol == ICMP { 8 } else { 128 }, 0, 0, 0]);
            frame.extend(signature.tag.to_be_bytes());
            frame.extend(signature.stream.to_be_bytes());
        }
        FramePayload::Tcp { source_port, destination_port } => {
            frame.extend(source_port.to_be_bytes());
            frame.extend(destination_port.to_be_bytes());
            // Sequence and acknowledgement number, five words of header, the widest window; no urgent data.
            frame.extend([0, 0, 0, 1, 0, 0, 0, 1, 5 << 4, ACK, 0xff, 0xff, 0, 0, 0, 0]);
        }
    }
    frame.extend(signature.to_bytes());
    frame.resize(length, 0);

    // ICMP for IPv4 alone has no pseudo header (RFC 792).
    let mut covered = Vec::new();
    if protocol != ICMP {
        covered.extend(octets(headers.source));
        covered.extend(octets(headers.destination));
        covered.extend((carried as u32).to_be_bytes());
        covered.extend([0, 0, 0, protocol]);
    }
    covered.extend(&frame[transport..]);
    let checksum = match !sum(&covered) {
        // In UDP, zero means no checksum (RFC 768).
        0 if protocol == UDP => 0xffff,
        checksum => checksum,
    };
    let at = transport
        + match protocol {
            UDP => 6,
            TCP => 16,
            _ => 2,
        };
    frame[at..at + 2].copy_from_slice(&checksum.to_be_bytes());
    frame
}

/// Builds the Ethernet header with its tags and the type of the addresses.
fn ethernet(headers: &FrameHeaders) -> Vec<u8> {
    let priority = u16::from(headers.priority) << 13;
    let tags: Vec<u16> = headers.vlans.iter().map(|vlan| priority | vlan & 0x0fff).collect();
    link_header(
        headers.destination_mac.0,
        headers.source_mac.0,
        &tags,
        match headers.source {
            IpAddr::V4(_) => IPV4,
            IpAddr::V6(_) => IPV6,
        },
    )
}

/// Builds an Ethernet header. `tags` are the control words of its VLAN tags, each a priority and a VLAN identifier.
pub(crate) fn link_header(destination: [u8; 6], source: [u8; 6], tags: &[u16], kind: u16) -> Vec<u8> {
    let mut header = Vec::with_capacity(64);
    header.extend(destination);
    header.extend(source);
    for (index, tag) in tags.iter().enumerate() {
        let last = index + 1 == tags.len();
        header.extend(if last { VLAN } else { OUTER_VLAN }.to_be_bytes());
        header.extend(tag.to_be_bytes());
    }
    header.extend(kind.to_be_bytes());
    header
}

/// Returns the signature of a frame, if it has one.
pub(crate) fn find_signature(frame: &[u8]) -> Option<Signature> {
    let at = Layout::of(frame).signature_at(frame)?;
    Signature::read(frame.get(at..at + BYTES)?)
}

/// Returns the bytes of an address.
pub(crate) fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(v4) => v4.octets().to_vec(),
        IpAddr::V6(v6) => v6.octets().to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linux::mutated::mutated;
    use etherparse::{LinkExtSlice, SlicedPacket, TransportSlice};
    use linerate_model::Mac;

    const UDP_7: FramePayload = FramePayload::Udp { source_port: 49_152, destination_port: 7 };

    const TCP_7: FramePayload = FramePayload::Tcp { source_port: 49_152, destination_port: 7 };

    fn headers(source: &str, destination: &str, vlans: &[u16], payload: FramePayload) -> FrameHeaders {
        FrameHeaders {
            source_mac: Mac([2, 0, 0, 0, 0, 1]),
            destination_mac: Mac([2, 0, 0, 0, 0, 2]),
            vlans: vlans.to_vec(),
            priority: 0,
            dscp: 0,
            source: source.parse().unwrap(),
            destination: destination.parse().unwrap(),
            payload,
        }
    }

    /// Checks every combination by another implementation. The signature changes, and the checksum stays correct.
    #[test]
    fn frames_are_valid() {
        for (source, destination) in [("198.18.0.1", "198.18.1.2"), ("2001:2::1", "2001:2:0:1::2")] {
            for vlans in [&[][..], &[5], &[7, 4094]] {
                for payload in [UDP_7, TCP_7, FramePayload::Echo] {
                    let mut headers = headers(source, destination, vlans, payload);
                    headers.dscp = 46;
                    headers.priority = 5;
                    let smallest = headers.smallest_frame().without_fcs() as usize;
                    for length in [smallest, smallest + 1, 512, 1514] {
                        check(&headers, length);
                    }
                }
            }
        }
    }

    fn check(headers: &FrameHeaders, length: usize) {
        let mut signature = Signature { tag: 0x1234, stream: 2, number: 0, time: 0 };
        let mut frame = frame(headers, length, signature);
        assert_eq!(frame.len(), length);
        signature.number = 0xdead_beef;
        signature.time = 0x0123_4567_89ab_cdef;
        let at = headers.bytes() as usize;
        frame[at..at + BYTES].copy_from_slice(&signature.to_bytes());
        assert_eq!(find_signature(&frame), Some(signature));

        let packet = SlicedPacket::from_ethernet(&frame).unwrap();
        let net = packet.net.unwrap();
        if let Some(v4) = net.ipv4_ref() {
            let header = v4.header().to_header();
            assert_eq!(header.header_checksum, header.calc_header_checksum());
            assert_eq!((header.dscp.value(), header.ecn.value()), (46, 0));
        }
        if let Some(v6) = net.ipv6_ref() {
            let header = v6.header().to_header();
            assert_eq!((header.traffic_class, header.flow_label.value()), (46 << 2, 0));
        }
        for (extension, vlan) in packet.link_exts.iter().zip(&headers.vlans) {
            let LinkExtSlice::Vlan(tag) = extension else { panic!("{extension:?}") };
            assert_eq!((tag.priority_code_point().value(), tag.vlan_identifier().value()), (5, *vlan));
        }
        let correct = match packet.transport.unwrap() {
            TransportSlice::Udp(udp) => {
                let header = udp.to_header();
                assert_eq!((header.source_port, header.destination_port), (49_152, 7));
                let checksum = match net.ipv4_ref() {
                    Some(v4) => header.calc_checksum_ipv4(&v4.header().to_header(), udp.payload()).unwrap(),
                    None => {
                        let v6 = net.ipv6_ref().unwrap();
                        header.calc_checksum_ipv6(&v6.header().to_header(), udp.payload()).unwrap()
                    }
                };
                header.checksum == checksum
            }
            TransportSlice::Tcp(tcp) => {
                let header = tcp.to_header();
                assert!(header.ack && !header.syn && tcp.payload().len() >= BYTES);
                let checksum = match net.ipv4_ref() {
                    Some(v4) => header.calc_checksum_ipv4(&v4.header().to_header(), tcp.payload()).unwrap(),
                    None => {
                        let v6 = net.ipv6_ref().unwrap();
                        header.calc_checksum_ipv6(&v6.header().to_header(), tcp.payload()).unwrap()
                    }
                };
                header.checksum == checksum
            }
            TransportSlice::Icmpv4(icmp) => sum(icmp.slice()) == 0xffff,
            TransportSlice::Icmpv6(icmp) => {
                let header = net.ipv6_ref().unwrap().header();
                icmp.is_checksum_valid(header.source(), header.destination())
            }
        };
        assert!(correct, "{headers:?} at {length}");
    }

    /// Checks the outer of two tags, which is the provider's (IEEE 802.1ad).
    #[test]
    fn outer_of_two_tags_has_its_own_type() {
        for (vlans, tags) in
            [(&[7, 4094][..], &[0x88, 0xa8, 0, 7, 0x81, 0, 0x0f, 0xfe, 8, 0][..]), (&[5], &[0x81, 0, 0, 5, 8, 0])]
        {
            let frame = ethernet(&headers("198.18.0.1", "198.18.0.2", vlans, UDP_7));
            assert_eq!(&frame[12..], tags);
        }
    }

    #[test]
    fn other_frames_have_no_signature() {
        let mut frame = frame(
            &headers("198.18.0.1", "198.18.0.2", &[], UDP_7),
            60,
            Signature { tag: 1, stream: 0, number: 9, time: 9 },
        );
        assert!(find_signature(&frame).is_some());
        assert_eq!(find_signature(&frame[..59]), None);
        frame[23] = 2;
        assert_eq!(find_signature(&frame), None);
        assert_eq!(find_signature(&[0x81; 10]), None);
    }

    #[test]
    fn experimental_frames_have_their_signature_after_the_type() {
        let signature = Signature { tag: 1, stream: 7, number: 9, time: 9 };
        for tags in [&[][..], &[5], &[0xa005, 6]] {
            let mut frame = link_header([2; 6], [4; 6], tags, linerate_model::RawFrame::EXPERIMENTAL);
            let at = frame.len();
            frame.resize(60, 0);
            assert_eq!(find_signature(&frame), None, "as learning frames");
            frame[at..at + BYTES].copy_from_slice(&signature.to_bytes());
            assert_eq!(find_signature(&frame[..at + BYTES]), Some(signature));
            assert_eq!(find_signature(&frame[..at + BYTES - 1]), None);
        }
    }

    /// Parsing arbitrary bytes does not panic, and a signature is found only if it is whole.
    #[test]
    fn foreign_bytes_have_no_signature() {
        let signature = Signature { tag: 0x1234, stream: 1, number: 5, time: 6 };
        let seeds = [("198.18.0.1", "198.18.0.2", &[][..]), ("2001:2::1", "2001:2::2", &[7, 8])]
            .map(|(source, destination, vlans)| frame(&headers(source, destination, vlans, UDP_7), 100, signature));
        let mut count = 0;
        for frame in mutated(&seeds).take(200_000) {
            if let Some(signature) = find_signature(&frame) {
                count += 1;
                let whole = signature.to_bytes();
                assert!(frame.windows(BYTES).any(|bytes| bytes == whole), "{frame:?}");
            }
        }
        assert!(count > 50_000, "{count}: the frames are hardly ever whole");
    }
}
