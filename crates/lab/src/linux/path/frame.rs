//! Fields that a path reads in a frame and changes in it: ECN, one byte of payload, and the answer to a packet that is
//! too large.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::RangeInclusive;

/// EtherTypes (IEEE 802).
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const ARP: u16 = 0x0806;
const TAGS: [u16; 2] = [0x8100, 0x88a8];
/// IP protocol numbers.
const ICMP: u8 = 1;
const TCP: u8 = 6;
const UDP: u8 = 17;
const ICMPV6: u8 = 58;
/// Router solicitation to redirect (RFC 4861).
const NEIGHBOUR_DISCOVERY: RangeInclusive<u8> = 133..=137;
/// Queries and reports of multicast listeners (RFC 3810), after a hop-by-hop options header.
const LISTENERS: [u8; 4] = [130, 131, 132, 143];
const HOP_BY_HOP: u8 = 0;
/// "Congestion experienced" (RFC 3168 section 5).
const CE: u8 = 0b11;
/// Bytes of a packet that an ICMP message quotes: RFC 1812 section 4.3.2.3 (576 bytes in all), RFC 4443 section 2.4
/// (1,280).
const QUOTED_V4: usize = 576 - 28;
const QUOTED_V6: usize = 1_280 - 48;
/// Constants of the hash FNV-1a.
const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0100_0000_01b3;
/// The path's own addresses, from which only such messages come.
const OWN_MAC: [u8; 6] = [2, 0, 0, 0, 0, 0xfe];
const OWN_V4: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 254);
const OWN_V6: Ipv6Addr = Ipv6Addr::new(0x2001, 2, 0, 0, 0, 0, 0, 0xfe);
/// ICMP errors by type: source quench, redirect and others (RFC 792), and the types of ICMPv6 below the first query (RFC
/// 4443).
const ERRORS_V4: [u8; 5] = [3, 4, 5, 11, 12];
const QUERIES_V6: u8 = 128;

/// The IP packet in a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Packet {
    /// Offset of its header.
    at: usize,
    v6: bool,
    /// Bytes of the packet, header and all.
    pub(crate) length: usize,
}

/// Properties of a frame that matter to a path.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Contents {
    /// Its IP packet, if it is whole.
    pub(crate) packet: Option<Packet>,
    /// ARP, neighbour discovery or listener reports, which kernels send by themselves: a path only delays them.
    pub(crate) is_control: bool,
    /// The packet allows to be marked (ECT, RFC 3168).
    pub(crate) allows_marking: bool,
}

impl Contents {
    /// Reads an Ethernet frame without FCS.
    pub(crate) fn of(frame: &[u8]) -> Self {
        let mut at = 12;
        let kind = loop {
            let Some(kind) = word(frame, at) else { return Self::default() };
            at += 2;
            if !TAGS.contains(&kind) {
                break kind;
            }
            at += 2;
        };
        match kind {
            ARP => Self { is_control: true, ..Self::default() },
            IPV4 => Self::of_packet(frame, at, false),
            IPV6 => Self::of_packet(frame, at, true),
            _ => Self::default(),
        }
    }

    fn of_packet(frame: &[u8], at: usize, v6: bool) -> Self {
        let length = match (v6, word(frame, at + 2), word(frame, at + 4)) {
            (false, Some(length), _) => usize::from(length),
            (true, _, Some(length)) => usize::from(length) + 40,
            _ => return Self::default(),
        };
        let packet = Packet { at, v6, length };
        if length < packet.header(frame) || frame.len() < at + length {
            return Self::default();
        }
        let packet_bytes = &frame[at..at + length];
        let is_control = v6
            && match (packet_bytes[6], packet_bytes.get(40), packet_bytes.get(48)) {
                (ICMPV6, Some(kind), _) => NEIGHBOUR_DISCOVERY.contains(kind),
                (HOP_BY_HOP, Some(&ICMPV6), Some(kind)) => LISTENERS.contains(kind),
                _ => false,
            };
        let ecn = packet.ecn(frame);
        Self { packet: Some(packet), is_control, allows_marking: ecn == 0b01 || ecn == 0b10 }
    }
}

impl Packet {
    /// Bytes of the IP header.
    fn header(&self, frame: &[u8]) -> usize {
        if self.v6 { 40 } else { 4 * usize::from(frame.get(self.at).copied().unwrap_or_default() & 0xf).max(5) }
    }

    fn ecn(&self, frame: &[u8]) -> u8 {
        if self.v6 { (frame[self.at + 1] >> 4) & CE } else { frame[self.at + 1] & CE }
    }

    /// Returns a hash of the packet's flow: its addresses and protocol, and the ports of TCP and UDP outside fragments.
    pub(crate) fn flow(&self, frame: &[u8]) -> u64 {
        let header = self.header(frame);
        let (addresses, protocol) = if self.v6 { (8..40, frame[self.at + 6]) } else { (12..20, frame[self.at + 9]) };
        let is_fragment = !self.v6 && word(frame, self.at + 6).is_some_and(|flags| flags & 0x3fff != 0);
        let has_ports = [TCP, UDP].contains(&protocol) && !is_fragment && self.length >= header + 4;
        let ports = if has_ports { &frame[self.at + header..self.at + header + 4] } else { &[] };
        let mut hash = FNV_OFFSET;
        for byte in frame[self.at + addresses.start..self.at + addresses.end].iter().chain(&[protocol]).chain(ports) {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(FNV_PRIME);
        }
        hash
    }

    /// Marks it "congestion experienced" and mends the header's checksum (RFC 1624).
    pub(crate) fn mark(&self, frame: &mut [u8]) {
        if self.v6 {
            frame[self.at + 1] |= CE << 4;
            return;
        }
        let Some(old) = word(frame, self.at) else { return };
        frame[self.at + 1] |= CE;
        let (Some(new), Some(sum)) = (word(frame, self.at), word(frame, self.at + 10)) else { return };
        let mended = !fold(u32::from(!sum) + u32::from(!old) + u32::from(new));
        frame[self.at + 10..self.at + 12].copy_from_slice(&mended.to_be_bytes());
    }

    /// Changes one byte after the transport header, by `random`, so that the transport's checksum no longer fits.
    /// Without such a byte it changes the checksum itself. Returns false if the frame has neither.
    pub(crate) fn corrupt(&self, frame: &mut [u8], random: u64) -> bool {
        let header = self.header(frame);
        let start = self.at + header;
        let end = self.at + self.length;
        let protocol = frame[self.at + if self.v6 { 6 } else { 9 }];
        let later_fragment = !self.v6 && word(frame, self.at + 6).is_some_and(|flags| flags & 0x1fff != 0);
        let (payload, checksum) = match protocol {
            _ if later_fragment => (start, None),
            TCP => (start + 4 * usize::from(frame.get(start + 12).copied().unwrap_or_default() >> 4), Some(start + 16)),
            UDP => (start + 8, Some(start + 6)),
            ICMP | ICMPV6 => (start + 8, Some(start + 2)),
            _ => (start, None),
        };
        let at = match (end.checked_sub(payload), checksum) {
            (Some(bytes @ 1..), _) => payload + (random >> 8) as usize % bytes,
            (_, Some(checksum)) if checksum + 2 <= end => checksum,
            _ => return false,
        };
        // One byte changed changes a sum of 16-bit words by less than its modulus, and never by 0.
        frame[at] ^= 1 + (random & 0xff) as u8 % 255;
        true
    }

    /// Returns the frame with the ICMP message that reports the path's MTU to the sender of this packet (RFC 1191, RFC
    /// 8201), or `None` if the packet must not be answered (RFC 1812 section 4.3.2.7).
    pub(crate) fn too_large(&self, frame: &[u8], mtu: u32) -> Option<Vec<u8>> {
        if self.v6 {
            self.icmp_error(frame, OWN_MAC, OWN_V6.into(), [2, 0], mtu)
        } else {
            // Destination unreachable, fragmentation needed.
            self.icmp_error(frame, OWN_MAC, OWN_V4.into(), [3, 4], mtu & 0xffff)
        }
    }

    /// Returns the frame with the ICMP message "time exceeded" of the router that received this frame and has the address
    /// `source`, or `None` if the packet must not be answered.
    pub(crate) fn time_exceeded(&self, frame: &[u8], source: IpAddr) -> Option<Vec<u8>> {
        let mac = *frame.first_chunk::<6>()?;
        let protocol = frame[self.at + if self.v6 { 6 } else { 9 }];
        let kind = frame.get(self.at + self.header(frame));
        let is_error = match (protocol, kind) {
            (ICMP, Some(kind)) => ERRORS_V4.contains(kind),
            (ICMPV6, Some(kind)) => *kind < QUERIES_V6,
            _ => false,
        };
        if is_error {
            return None;
        }
        self.icmp_error(frame, mac, source, if self.v6 { [3, 0] } else { [11, 0] }, 0)
    }

    /// Returns the source and the destination of the packet.
    pub(crate) fn addresses(&self, frame: &[u8]) -> [IpAddr; 2] {
        let mut v6 = [[0; 16]; 2];
        let mut v4 = [[0; 4]; 2];
        for end in 0..2 {
            if self.v6 {
                v6[end].copy_from_slice(&frame[self.at + 8 + 16 * end..][..16]);
            } else {
                v4[end].copy_from_slice(&frame[self.at + 12 + 4 * end..][..4]);
            }
        }
        if self.v6 { v6.map(IpAddr::from) } else { v4.map(IpAddr::from) }
    }

    /// Returns the TTL, or the hop limit.
    pub(crate) fn ttl(&self, frame: &[u8]) -> u8 {
        frame[self.at + if self.v6 { 7 } else { 8 }]
    }

    /// Returns the frame with an ICMP error about this packet, `kind` being its type and code, and `word` what follows the
    /// checksum. Returns `None` if the packet must not be answered (RFC 1812 section 4.3.2.7).
    fn icmp_error(&self, frame: &[u8], mac: [u8; 6], source: IpAddr, kind: [u8; 2], word: u32) -> Option<Vec<u8>> {
        let to_group = frame[0] & 1 != 0;
        let later_fragment = !self.v6 && self::word(frame, self.at + 6)? & 0x1fff != 0;
        if to_group || later_fragment {
            return None;
        }
        let packet = frame.get(self.at..self.at + self.length)?;
        let mut answer = [&frame[6..12], &mac, &frame[12..self.at]].concat();
        let quoted = &packet[..packet.len().min(if self.v6 { QUOTED_V6 } else { QUOTED_V4 })];
        let mut message = [&[kind[0], kind[1], 0, 0], &word.to_be_bytes()[..], quoted].concat();
        match source {
            IpAddr::V6(source) => {
                let to = &packet[8..24];
                let length = message.len() as u16;
                let pseudo = [&source.octets(), to, &u32::from(length).to_be_bytes(), &[0, 0, 0, ICMPV6]].concat();
                let sum = checksum(&[&pseudo[..], &message].concat());
                message[2..4].copy_from_slice(&sum.to_be_bytes());
                answer.extend([0x60, 0, 0, 0]);
                answer.extend(length.to_be_bytes());
                answer.extend([ICMPV6, 64]);
                answer.extend(source.octets());
                answer.extend(to);
            }
            IpAddr::V4(source) => {
                let sum = checksum(&message);
                message[2..4].copy_from_slice(&sum.to_be_bytes());
                let length = (20 + message.len()) as u16;
                let to = &packet[12..16];
                let fixed = [0, 0, 0, 0, 64, ICMP, 0, 0];
                let mut header = [&[0x45, 0][..], &length.to_be_bytes(), &fixed, &source.octets(), to].concat();
                let sum = checksum(&header);
                header[10..12].copy_from_slice(&sum.to_be_bytes());
                answer.extend(header);
            }
        }
        answer.extend(message);
        Some(answer)
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..at + 2).map(|pair| u16::from_be_bytes([pair[0], pair[1]]))
}

fn fold(sum: u32) -> u16 {
    let folded = (sum & 0xffff) + (sum >> 16);
    ((folded & 0xffff) + (folded >> 16)) as u16
}

/// The checksum of RFC 1071.
fn checksum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0)));
    !fold(words.sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MACS: [u8; 12] = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];

    /// A UDP datagram in IPv4 or IPv6, with all its checksums.
    fn datagram(v6: bool, tag: bool, ecn: u8, payload: &[u8]) -> Vec<u8> {
        let length = (8 + payload.len()) as u16;
        let mut udp = [&[0x10, 0, 0x20, 0][..], &length.to_be_bytes(), &[0, 0], payload].concat();
        let mut frame = MACS.to_vec();
        if tag {
            frame.extend([0x81, 0, 0, 7]);
        }
        let (from, to): (&[u8], &[u8]) = if v6 { (&[1; 16], &[2; 16]) } else { (&[198, 18, 0, 1], &[198, 18, 0, 2]) };
        let pseudo = [from, to, &u32::from(length).to_be_bytes(), &[0, 0, 0, UDP]].concat();
        let sum = checksum(&[&pseudo[..], &udp].concat());
        udp[6..8].copy_from_slice(&sum.to_be_bytes());
        if v6 {
            frame.extend([0x86, 0xdd, 0x60, ecn << 4, 0, 0]);
            frame.extend(length.to_be_bytes());
            frame.extend([UDP, 64]);
        } else {
            frame.extend([8, 0]);
            let mut header = [&[0x45, ecn][..], &(length + 20).to_be_bytes(), &[0, 9, 0x40, 0, 64, UDP, 0, 0]].concat();
            let sum = checksum(&[&header[..], from, to].concat());
            header[10..12].copy_from_slice(&sum.to_be_bytes());
            frame.extend(header);
        }
        frame.extend([from, to].concat());
        frame.extend(udp);
        frame
    }

    /// The checksums of [`datagram`] fit: of the IPv4 header, and of UDP.
    fn sums(frame: &[u8]) -> (bool, bool) {
        let packet = Contents::of(frame).packet.expect("a packet");
        let at = packet.at;
        let header = packet.header(frame);
        let addresses = if packet.v6 { at + 8..at + 40 } else { at + 12..at + 20 };
        let udp = &frame[at + header..at + packet.length];
        let pseudo = [&frame[addresses], &(udp.len() as u32).to_be_bytes(), &[0, 0, 0, UDP]].concat();
        (packet.v6 || checksum(&frame[at..at + 20]) == 0, checksum(&[&pseudo[..], udp].concat()) == 0)
    }

    #[test]
    fn packets_are_found_behind_tags_and_ahead_of_padding() {
        for (v6, tag) in [(false, false), (false, true), (true, false), (true, true)] {
            let mut frame = datagram(v6, tag, 2, &[7; 5]);
            let length = frame.len();
            frame.resize(90, 0);
            let contents = Contents::of(&frame);
            let at = if tag { 18 } else { 14 };
            assert_eq!(contents.packet, Some(Packet { at, v6, length: length - at }));
            assert!(contents.allows_marking && !contents.is_control);
            assert_eq!(sums(&frame), (true, true));
            // Cut off, it is none.
            assert_eq!(Contents::of(&frame[..length - 1]).packet, None);
        }
        assert_eq!(Contents::of(&[]), Contents::default());
        assert!(Contents::of(&[&MACS[..], &[8, 6], &[0; 46]].concat()).is_control);
    }

    #[test]
    fn neighbour_discovery_is_told_from_echoes() {
        let message = |kind: u8| {
            let mut frame = datagram(true, false, 0, &[0; 16]);
            (frame[20], frame[54]) = (ICMPV6, kind);
            Contents::of(&frame).is_control
        };
        assert!(message(135) && message(136) && !message(128) && !message(1));
        let mut report = datagram(true, false, 0, &[0; 16]);
        (report[20], report[54], report[62]) = (HOP_BY_HOP, ICMPV6, 143);
        assert!(Contents::of(&report).is_control);
    }

    #[test]
    fn an_expired_packet_is_answered_by_the_router_that_has_it() {
        for v6 in [false, true] {
            let source: IpAddr = if v6 { "2001:2:0:2::2" } else { "198.18.2.2" }.parse().expect("an address");
            let frame = datagram(v6, false, 0, b"probe");
            let packet = Contents::of(&frame).packet.expect("a packet");
            let answer = packet.time_exceeded(&frame, source).expect("an answer");
            assert_eq!(answer[..12], [&frame[6..12], &frame[..6]].concat());
            let answered = Contents::of(&answer).packet.expect("a packet");
            assert_eq!(answered.addresses(&answer), [source, packet.addresses(&frame)[0]]);
            let message = if v6 { 54 } else { 34 };
            assert_eq!(answer[message..message + 2], if v6 { [3, 0] } else { [11, 0] });
            assert_eq!(&answer[message + 8..], &frame[14..]);
            assert!(sums(&answer).0);
            // An ICMP error is not answered.
            assert_eq!(answered.time_exceeded(&answer, source), None);
        }
    }

    #[test]
    fn a_flow_has_addresses_protocol_and_ports() {
        for v6 in [false, true] {
            let frame = datagram(v6, false, 0, b"payload");
            let flow = |frame: &[u8]| Contents::of(frame).packet.expect("a packet").flow(frame);
            let other_payload = datagram(v6, false, 0, b"another");
            assert_eq!(flow(&frame), flow(&other_payload));
            let header = if v6 { 54 } else { 34 };
            let addresses = if v6 { 22 } else { 26 };
            for at in [header, header + 3, addresses, header - 1] {
                let mut other = frame.clone();
                other[at] ^= 1;
                assert_ne!(flow(&other), flow(&frame), "byte {at}");
            }
        }
        // The pieces of a datagram stay together.
        let mut first = datagram(false, false, 0, b"payload");
        first[20] = 0x20;
        let mut later = first.clone();
        (later[20], later[21], later[34]) = (0, 9, 77);
        let flow = |frame: &[u8]| Contents::of(frame).packet.expect("a packet").flow(frame);
        assert_eq!(flow(&first), flow(&later));
    }

    #[test]
    fn marking_keeps_the_checksums_whole() {
        for (v6, ecn) in [(false, 1), (false, 2), (true, 1), (true, 2)] {
            let mut frame = datagram(v6, false, ecn, b"payload");
            let packet = Contents::of(&frame).packet.expect("a packet");
            packet.mark(&mut frame);
            assert_eq!(packet.ecn(&frame), CE);
            assert_eq!(sums(&frame), (true, true), "IPv6: {v6}");
            assert!(!Contents::of(&frame).allows_marking, "it is marked already");
        }
        assert!(!Contents::of(&datagram(false, false, 0, b"")).allows_marking);
    }

    #[test]
    fn corruption_always_breaks_the_transport_checksum_and_nothing_else() {
        for v6 in [false, true] {
            for payload in [&b""[..], b"x", b"payload of some length"] {
                for random in 0..2_000u64 {
                    let whole = datagram(v6, false, 0, payload);
                    let mut frame = whole.clone();
                    let packet = Contents::of(&frame).packet.expect("a packet");
                    assert!(packet.corrupt(&mut frame, random.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
                    assert_eq!(sums(&frame), (true, false), "{payload:?}, {random}");
                    assert_eq!(frame.iter().zip(&whole).filter(|(new, old)| new != old).count(), 1);
                }
            }
        }
    }

    #[test]
    fn an_answer_names_the_mtu_and_quotes_the_packet() {
        let frame = datagram(false, false, 0, &[7; 1_400]);
        let packet = Contents::of(&frame).packet.expect("a packet");
        let answer = packet.too_large(&frame, 1_300).expect("an answer");
        assert_eq!(answer[..14], [&MACS[6..], &OWN_MAC, &[8, 0]].concat());
        assert_eq!((checksum(&answer[14..34]), checksum(&answer[34..])), (0, 0));
        assert_eq!(answer[34..42], [3, 4, answer[36], answer[37], 0, 0, 5, 20]);
        assert_eq!((answer.len() - 14, &answer[42..]), (576, &frame[14..14 + QUOTED_V4]));
        assert_eq!(answer[30..34], frame[26..30], "to the sender");

        let frame = datagram(true, false, 0, &[7; 1_400]);
        let packet = Contents::of(&frame).packet.expect("a packet");
        let answer = packet.too_large(&frame, 1_300).expect("an answer");
        let pseudo = [&answer[22..54], &1_240u32.to_be_bytes(), &[0, 0, 0, ICMPV6]].concat();
        assert_eq!(checksum(&[&pseudo[..], &answer[54..]].concat()), 0);
        assert_eq!((&answer[54..56], &answer[58..62]), (&[2, 0][..], &[0, 0, 5, 20][..]));
        assert_eq!(answer.len() - 14, 1_280);

        let mut group = frame;
        group[0] |= 1;
        assert_eq!(packet.too_large(&group, 1_300), None);
    }
}
