//! Entry point for fuzzing: test packets of senders and reflectors.

use super::{Key, Mode, ReflectedPacket, TestPacket};

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
