//! Requests built by another implementation, and answers read by it.

use super::*;
use crate::linux::mutated::mutated;
use etherparse::{PacketBuilder, SlicedPacket, TransportSlice};

const ASKER: Mac = Mac([2, 0, 0, 0, 0, 0xaa]);
const OWN: Mac = Mac([2, 0, 0, 0, 1, 0]);
const BROADCAST: [u8; 6] = [0xff; 6];

fn link() -> Link {
    let firsts = ["198.18.16.0", "2001:2::1:0"];
    Link(firsts.map(|first| Hosts { first: first.parse().unwrap(), count: 5_000, mac: Macs::From(OWN) }).into())
}

fn arp(sender: [u8; 4], target: [u8; 4]) -> Vec<u8> {
    let mut frame = link_header(BROADCAST, ASKER.0, &[], ARP);
    frame.extend([0, 1, 8, 0, 6, 4, 0, 1]);
    frame.extend(ASKER.0);
    frame.extend(sender);
    frame.extend([0; 6]);
    frame.extend(target);
    frame.resize(60, 0);
    frame
}

#[test]
fn arp_is_answered_for_every_host_only() {
    let link = link();
    for (target, last) in [([198, 18, 16, 0], 0u16), ([198, 18, 17, 7], 263), ([198, 18, 35, 135], 4_999)] {
        let reply = link.answer(&arp([198, 18, 0, 1], target)).expect("an answer");
        let [high, low] = (0x0100 + last).to_be_bytes();
        let mac = [2, 0, 0, 0, high, low];
        assert_eq!((&reply[..6], &reply[6..12], reply.len()), (&ASKER.0[..], &mac[..], 60));
        assert_eq!(reply[12..22], [8, 6, 0, 1, 8, 0, 6, 4, 0, 2]);
        assert_eq!((&reply[22..28], &reply[28..32]), (&mac[..], &target[..]));
        assert_eq!((&reply[32..38], &reply[38..42]), (&ASKER.0[..], &[198, 18, 0, 1][..]));
        assert_eq!(link.answer(&reply), None, "an answer is no question");
    }
    for wrong in [[198, 18, 15, 255], [198, 18, 35, 136], [198, 18, 0, 1]] {
        assert_eq!(link.answer(&arp([198, 18, 0, 2], wrong)), None, "{wrong:?}");
    }
    let announced = arp([198, 18, 16, 5], [198, 18, 16, 5]);
    assert_eq!(link.answer(&announced), None, "an announcement wants no answer");
    // A host that probes its address asks without a sender address (RFC 5227).
    assert!(link.answer(&arp([0; 4], [198, 18, 16, 5])).is_some());
    let whole = arp([198, 18, 0, 1], [198, 18, 16, 5]);
    for length in 0..42 {
        assert_eq!(link.answer(&whole[..length]), None, "cut to {length}");
    }
}

fn echo_v4(to: Mac, target: [u8; 4], payload: &[u8]) -> Vec<u8> {
    let mut frame = Vec::new();
    PacketBuilder::ethernet2(ASKER.0, to.0)
        .ipv4([198, 18, 0, 1], target, 64)
        .icmpv4_echo_request(7, 9)
        .write(&mut frame, payload)
        .unwrap();
    frame
}

#[test]
fn echo_is_answered() {
    let link = link();
    let payload = [0x5a; 1_400];
    for length in [0, 1, 56, 1_400] {
        let question = echo_v4(OWN.plus(3), [198, 18, 16, 3], &payload[..length]);
        let reply = link.answer(&question).expect("an answer");
        assert_eq!((&reply[..6], &reply[6..12]), (&ASKER.0[..], &OWN.plus(3).0[..]));
        let packet = SlicedPacket::from_ethernet(&reply).unwrap();
        let header = packet.net.as_ref().and_then(|net| net.ipv4_ref()).unwrap().header().to_header();
        assert_eq!((header.source, header.destination), ([198, 18, 16, 3], [198, 18, 0, 1]));
        assert_eq!(header.header_checksum, header.calc_header_checksum());
        let Some(TransportSlice::Icmpv4(icmp)) = packet.transport else { panic!("no ICMP") };
        assert_eq!((icmp.type_u8(), sum(icmp.slice())), (0, 0xffff));
        assert_eq!((&icmp.slice()[4..8], icmp.payload()), (&[0, 7, 0, 9][..], &payload[..length]));
        assert_eq!(link.answer(&reply), None, "an answer is no question");
    }
    let good = echo_v4(OWN.plus(3), [198, 18, 16, 3], b"abcd");
    assert_eq!(link.answer(&echo_v4(OWN, [198, 18, 16, 3], b"abcd")), None, "another host's Ethernet address");
    assert_eq!(link.answer(&echo_v4(Mac(BROADCAST), [198, 18, 16, 3], b"abcd")), None, "to everybody");
    assert_eq!(link.answer(&echo_v4(OWN, [198, 18, 15, 3], b"abcd")), None, "no host of ours");
    // Any changed bit of the packet spoils a checksum or the address. The padding does not matter.
    for bit in ETHERNET * 8..good.len() * 8 {
        let mut changed = good.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(link.answer(&changed), None, "bit {bit}");
    }
    for length in 0..good.len() {
        assert_eq!(link.answer(&good[..length]), None, "cut to {length}");
    }
}

fn v6(text: &str) -> Ipv6Addr {
    text.parse().unwrap()
}

fn solicitation(source: &str, target: Ipv6Addr, options: &[u8]) -> Vec<u8> {
    let mut message = vec![135, 0, 0, 0, 0, 0, 0, 0];
    message.extend(target.octets());
    message.extend(options);
    let [.., a, b, c] = target.octets();
    let group = Ipv6Addr::from([0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, a, b, c]);
    icmpv6(ASKER, [0x33, 0x33, 0xff, a, b, c], (v6(source), group), FROM_THE_LINK, message)
}

#[test]
fn solicitations_are_answered() {
    let link = link();
    let target = v6("2001:2::1:1387");
    let mac = OWN.plus(4_999);
    let own_option = [&[1, 1][..], &ASKER.0].concat();
    for options in [&own_option[..], &[]] {
        let reply = link.answer(&solicitation("2001:2::1", target, options)).expect("an answer");
        assert_eq!((&reply[..6], &reply[6..12], reply[21]), (&ASKER.0[..], &mac.0[..], 255));
        let packet = SlicedPacket::from_ethernet(&reply).unwrap();
        let header = packet.net.as_ref().and_then(|net| net.ipv6_ref()).unwrap().header();
        assert_eq!((header.source_addr(), header.destination_addr()), (target, v6("2001:2::1")));
        let Some(TransportSlice::Icmpv6(icmp)) = packet.transport else { panic!("no ICMPv6") };
        assert!(icmp.is_checksum_valid(header.source(), header.destination()));
        assert_eq!((icmp.type_u8(), icmp.slice()[4]), (136, 0x60));
        assert_eq!(
            (&icmp.slice()[8..24], &icmp.slice()[24..]),
            (&target.octets()[..], &[&[2, 1][..], &mac.0].concat()[..])
        );
        assert_eq!(link.answer(&reply), None, "an answer is no question");
    }
    // Duplicate address detection.
    let reply = link.answer(&solicitation("::", target, &[])).expect("an answer");
    assert_eq!((&reply[..6], reply[58]), (&[0x33, 0x33, 0, 0, 0, 1][..], 0x20));
    assert_eq!(link.answer(&solicitation("::", target, &own_option)), None, "void by RFC 4861 section 7.1.1");

    let good = solicitation("2001:2::1", target, &own_option);
    assert_eq!(link.answer(&solicitation("2001:2::1", v6("2001:2::1:1388"), &[])), None, "no host of ours");
    assert_eq!(link.answer(&solicitation("2001:2::1", target, &[1, 0, 0, 0, 0, 0, 0, 0])), None, "length 0");
    assert_eq!(link.answer(&solicitation("2001:2::1", target, &[1, 2, 0, 0, 0, 0, 0, 0])), None, "too long");
    assert_eq!(link.answer(&solicitation("ff02::1", target, &own_option)), None, "from a group");
    let mut crossed = good.clone();
    crossed[21] = 254;
    assert_eq!(link.answer(&crossed), None, "it crossed a router");
    for bit in (ETHERNET + 40) * 8..good.len() * 8 {
        let mut changed = good.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(link.answer(&changed), None, "bit {bit}");
    }
    for length in 0..good.len() {
        assert_eq!(link.answer(&good[..length]), None, "cut to {length}");
    }
}

#[test]
fn echo_over_ipv6_is_answered() {
    let link = link();
    let to = v6("2001:2::1:3");
    let mut question = Vec::new();
    PacketBuilder::ethernet2(ASKER.0, OWN.plus(3).0)
        .ipv6(v6("2001:2::1").octets(), to.octets(), 64)
        .icmpv6_echo_request(7, 9)
        .write(&mut question, b"payload")
        .unwrap();
    let reply = link.answer(&question).expect("an answer");
    let packet = SlicedPacket::from_ethernet(&reply).unwrap();
    let header = packet.net.as_ref().and_then(|net| net.ipv6_ref()).unwrap().header();
    assert_eq!((header.source_addr(), header.destination_addr()), (to, v6("2001:2::1")));
    let Some(TransportSlice::Icmpv6(icmp)) = packet.transport else { panic!("no ICMPv6") };
    assert!(icmp.is_checksum_valid(header.source(), header.destination()));
    assert_eq!((icmp.type_u8(), icmp.payload()), (129, &b"payload"[..]));
    assert_eq!(link.answer(&reply), None, "an answer is no question");
    question[5] ^= 1;
    assert_eq!(link.answer(&question), None, "another host's Ethernet address");
}

/// Arbitrary bytes do not panic, and an answer is never longer than the shortest frame or its request.
#[test]
fn foreign_bytes_do_no_harm() {
    let link = link();
    let option = [&[1, 1][..], &ASKER.0].concat();
    let seeds = [
        arp([198, 18, 0, 1], [198, 18, 16, 5]),
        echo_v4(OWN.plus(3), [198, 18, 16, 3], &[0; 56]),
        solicitation("2001:2::1", v6("2001:2::1:3"), &option),
    ];
    let mut count = 0;
    for frame in mutated(&seeds).take(200_000) {
        if let Some(answer) = link.answer(&frame) {
            count += 1;
            assert!(answer.len() <= frame.len().max(86), "{} of {}", answer.len(), frame.len());
        }
    }
    assert!(count > 50_000, "{count}: the questions are hardly ever whole");
}
