//! Entry point for fuzzing: test packets of senders and reflectors.

use super::{Arrival, ErrorEstimate, Key, Mode, ReflectedPacket, Reflector, ReflectorOptions, ReplyTime, TestPacket};
use std::net::Ipv4Addr;

/// Reads a packet in both modes and both roles. The first byte selects whether its HMAC is made valid first.
pub fn packet(bytes: &[u8]) {
    let Some((choice, bytes)) = bytes.split_first() else { return };
    let authenticated = Mode::Authenticated(Key::new(b"key"));
    let mut signed = Vec::new();
    if let (true, Ok((packet, _))) = (choice & 1 == 1, TestPacket::read(bytes, &Mode::Unauthenticated)) {
        packet.write(&authenticated, &[], &mut signed);
        signed.extend(bytes.get(44..).unwrap_or_default());
    }
    for (mode, bytes) in [(&Mode::Unauthenticated, bytes), (&authenticated, bytes), (&authenticated, &signed)] {
        reflect(bytes, mode);
        if let Ok((packet, tlvs)) = TestPacket::read(bytes, mode) {
            let mut copy = Vec::new();
            packet.write(mode, &tlvs, &mut copy);
            // Packets of TWAMP Light may be shorter than the base packet.
            assert!(copy.len() <= bytes.len().max(mode.packet_bytes()));
            let (again, _) = TestPacket::read(&copy, mode).expect("a written packet is valid");
            assert_eq!(again, packet);
        }
        if let Ok((packet, tlvs)) = ReflectedPacket::read(bytes, mode) {
            let mut copy = Vec::new();
            packet.write(mode, &tlvs, &mut copy);
            let (again, _) = ReflectedPacket::read(&copy, mode).expect("a written packet is valid");
            assert_eq!(again, packet);
        }
    }
}

/// Answers the packet. No reply may be longer than its packet, or get a reply itself.
fn reflect(bytes: &[u8], mode: &Mode) {
    let mut reflector = Reflector::new(ReflectorOptions { mode: mode.clone(), ..ReflectorOptions::default() });
    let from = (Ipv4Addr::LOCALHOST, 5_000).into();
    let unix_ns = 1_795_910_400_000_000_000;
    let arrival = Arrival { from, at_unix_ns: unix_ns, ttl: Some(64), traffic_class: Some(0xb9) };
    let now = ReplyTime { monotonic_ns: 0, unix_ns, error: ErrorEstimate::unsynchronised() };
    if let Ok(reply) = reflector.answer(bytes, &arrival, now) {
        assert_eq!(reply.bytes.len(), bytes.len());
        assert!(reflector.answer(&reply.bytes, &arrival, now).is_err());
    }
}
