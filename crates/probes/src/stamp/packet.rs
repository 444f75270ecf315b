//! Test packets of the Session-Sender and the Session-Reflector (RFC 8762, sections 4.2 and 4.3; RFC 8972, section 3).

use super::timestamp::{ErrorEstimate, Timestamp, TimestampFormat};
use super::tlv::{HEADER_BYTES, HMAC_BYTES, Tlv, TlvValue};
use ring::hmac;
use std::mem;
use subtle::ConstantTimeEq as _;

/// Bytes of a base packet in unauthenticated mode.
pub(super) const UNAUTHENTICATED_BYTES: usize = 44;
/// Bytes of a base packet in authenticated mode, with its HMAC.
pub(super) const AUTHENTICATED_BYTES: usize = 112;
/// Bytes of sequence number, timestamp and error estimate: the shortest packet of a TWAMP Light sender.
pub(super) const SHORTEST_BYTES: usize = 14;
/// Bytes of a packet of a TWAMP Light reflector (RFC 5357, section 4.2.1), which lacks the last three of STAMP.
const TWAMP_REFLECTED_BYTES: usize = 41;
/// Bytes that the HMAC of a base packet covers (RFC 8762, section 4.4).
const COVERED_BYTES: usize = AUTHENTICATED_BYTES - HMAC_BYTES;

/// Key of HMAC-SHA-256.
#[derive(Debug, Clone)]
pub struct Key(hmac::Key);

impl Key {
    /// Makes a key of these bytes.
    pub fn new(bytes: &[u8]) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, bytes))
    }

    /// Reads a key from hexadecimal digits; white space at both ends is ignored.
    ///
    /// # Errors
    /// The text is not made of pairs of hexadecimal digits, or the key has fewer than 16 bytes.
    pub fn from_hex(text: &str) -> Result<Self, KeyError> {
        let digits = text.trim().as_bytes();
        if !digits.len().is_multiple_of(2) {
            return Err(KeyError::Digits);
        }
        let pairs = digits.chunks_exact(2).map(|pair| Some((hex_digit(pair[0])? << 4) | hex_digit(pair[1])?));
        let bytes: Vec<u8> = pairs.collect::<Option<_>>().ok_or(KeyError::Digits)?;
        if bytes.len() < HMAC_BYTES {
            return Err(KeyError::Short { bytes: bytes.len() });
        }
        Ok(Self::new(&bytes))
    }

    /// HMAC-SHA-256 of the concatenated parts, truncated to 128 bits (RFC 8762, section 4.4).
    fn sign(&self, parts: &[&[u8]]) -> [u8; HMAC_BYTES] {
        let mut context = hmac::Context::with_key(&self.0);
        parts.iter().for_each(|part| context.update(part));
        let tag = context.sign();
        *tag.as_ref().first_chunk().expect("SHA-256 has 32 bytes")
    }

    fn verify(&self, parts: &[&[u8]], hmac: &[u8]) -> bool {
        self.sign(parts).ct_eq(hmac).into()
    }
}

fn hex_digit(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

/// Text that is not a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// Other characters than hexadecimal digits, or an odd number of them.
    #[error("a key is an even number of hexadecimal digits; `openssl rand -hex 32` makes one")]
    Digits,
    /// Fewer than 16 bytes.
    #[error("the key has {bytes} bytes, and 16 are the least; `openssl rand -hex 32` makes one of 32")]
    Short {
        /// Length of the key.
        bytes: usize,
    },
}

/// Mode of a test session (RFC 8762, section 4.1).
#[derive(Debug, Clone)]
pub enum Mode {
    /// Packets carry no HMAC.
    Unauthenticated,
    /// Packets, and their TLVs, carry HMACs made with this key.
    Authenticated(Key),
}

impl Mode {
    /// Length of a base packet in bytes.
    pub fn packet_bytes(&self) -> usize {
        match self {
            Self::Unauthenticated => UNAUTHENTICATED_BYTES,
            Self::Authenticated(_) => AUTHENTICATED_BYTES,
        }
    }

    /// Checks the length of a packet and, in authenticated mode, its HMAC.
    fn check(&self, bytes: &[u8], least: usize) -> Result<(), PacketError> {
        let needed = if matches!(self, Self::Unauthenticated) { least } else { AUTHENTICATED_BYTES };
        if bytes.len() < needed {
            return Err(PacketError::Short { length: bytes.len(), needed });
        }
        match self {
            Self::Authenticated(key) if !key.verify(&[&bytes[..COVERED_BYTES]], &bytes[COVERED_BYTES..needed]) => {
                Err(PacketError::Hmac)
            }
            _ => Ok(()),
        }
    }

    /// Completes the base packet that starts at `start`: adds its HMAC in authenticated mode, and the TLVs.
    fn finish(&self, tlvs: &[Tlv], into: &mut Vec<u8>, start: usize) {
        let Self::Authenticated(key) = self else {
            tlvs.iter().for_each(|tlv| tlv.write(into));
            return;
        };
        let hmac = key.sign(&[&into[start..start + COVERED_BYTES]]);
        into.extend(hmac);
        let base_end = into.len();
        // The HMAC follows all TLVs but Extra Padding; a single Extra Padding needs none (RFC 8972, section 4.8).
        let covered = tlvs.iter().rposition(|tlv| !tlv.is_padding()).map_or(0, |last| last + 1);
        // A reflector returns TLVs that failed verification as they came, with the HMAC that failed if there was one.
        let is_copy = tlvs.iter().any(|tlv| tlv.flags.integrity_failed);
        let needs_hmac = !is_copy && (covered > 0 || tlvs.len() > 1);
        tlvs[..covered].iter().for_each(|tlv| tlv.write(into));
        if needs_hmac {
            let hmac = key.sign(&[&into[start..start + SEQUENCE_BYTES], &into[base_end..]]);
            let flags = tlvs.first().map(|tlv| tlv.flags).unwrap_or_default();
            Tlv { flags, value: TlvValue::Hmac(hmac) }.write(into);
        }
        tlvs[covered..].iter().for_each(|tlv| tlv.write(into));
    }

    /// Reads the TLVs of a packet and, in authenticated mode, verifies their HMAC. If that fails, all TLVs get the I flag.
    fn read_tlvs(&self, bytes: &[u8]) -> Vec<Tlv> {
        let base_bytes = self.packet_bytes();
        let mut tlvs = Vec::new();
        let mut at = base_bytes;
        let mut hmac_at = None;
        while let Some(read) = bytes.get(at..).and_then(Tlv::read) {
            if matches!(read.tlv.value, TlvValue::Hmac(_)) && hmac_at.is_none() {
                hmac_at = Some((tlvs.len(), at));
            }
            tlvs.push(read.tlv);
            at += read.length;
        }
        let Self::Authenticated(key) = self else {
            // Without a key the HMAC is as any type that is not understood.
            for tlv in &mut tlvs {
                if let TlvValue::Hmac(hmac) = tlv.value {
                    tlv.value = TlvValue::unknown_hmac(hmac);
                }
            }
            return tlvs;
        };
        if tlvs.is_empty() || (tlvs.len() == 1 && tlvs[0].is_padding()) {
            return tlvs;
        }
        let verified = hmac_at.filter(|(index, at)| {
            let covered = [&bytes[..SEQUENCE_BYTES], &bytes[base_bytes..*at]];
            let value_at = at + HEADER_BYTES;
            tlvs[index + 1..].iter().all(Tlv::is_padding)
                && key.verify(&covered, &bytes[value_at..value_at + HMAC_BYTES])
        });
        match verified {
            Some((index, _)) => drop(tlvs.remove(index)),
            None => tlvs.iter_mut().for_each(|tlv| tlv.flags.integrity_failed = true),
        }
        tlvs
    }
}

const SEQUENCE_BYTES: usize = 4;

/// A packet that cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PacketError {
    /// Fewer bytes than a packet of the mode has.
    #[error("the STAMP packet has {length} bytes, and {needed} are needed")]
    Short {
        /// Its length.
        length: usize,
        /// Least length in the mode.
        needed: usize,
    },
    /// An HMAC that was not made with the key.
    #[error("the HMAC of the STAMP packet is wrong: the keys of both ends differ, or the packet was changed")]
    Hmac,
}

/// Test packet of a Session-Sender (RFC 8762, section 4.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TestPacket {
    /// Sequence number, from 0.
    pub sequence: u32,
    /// Time of transmission.
    pub sent: Timestamp,
    /// Error estimate of `sent`.
    pub error: ErrorEstimate,
    /// Identifier of the test session (RFC 8972, section 3); 0 if the sender has none.
    pub ssid: u16,
}

/// Test packet of a Session-Reflector (RFC 8762, section 4.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReflectedPacket {
    /// Sequence number of the reflector: its own count in stateful mode, the sender's number in stateless mode.
    pub sequence: u32,
    /// Time of transmission by the reflector.
    pub sent: Timestamp,
    /// Error estimate of `sent` and `received`.
    pub error: ErrorEstimate,
    /// Identifier of the test session, copied from the sender's packet.
    pub ssid: u16,
    /// Time of reception by the reflector.
    pub received: Timestamp,
    /// Sender's packet, as the reflector received it.
    pub sender: TestPacket,
    /// TTL or hop limit with which the sender's packet arrived; 255 if the reflector cannot read it.
    pub sender_ttl: u8,
}

/// Offsets of the fields in one mode.
struct Layout {
    sent: usize,
    error: usize,
    ssid: usize,
    received: usize,
    sender_sequence: usize,
    sender_sent: usize,
    sender_error: usize,
    sender_ttl: usize,
}

/// RFC 8762, sections 4.2.1 and 4.3.1, with the SSID of RFC 8972, section 3.
const UNAUTHENTICATED: Layout = Layout {
    sent: 4,
    error: 12,
    ssid: 14,
    received: 16,
    sender_sequence: 24,
    sender_sent: 28,
    sender_error: 36,
    sender_ttl: 40,
};

/// RFC 8762, sections 4.2.2 and 4.3.2, with the SSID of RFC 8972, section 3.
const AUTHENTICATED: Layout = Layout {
    sent: 16,
    error: 24,
    ssid: 26,
    received: 32,
    sender_sequence: 48,
    sender_sent: 64,
    sender_error: 72,
    sender_ttl: 80,
};

impl Mode {
    fn layout(&self) -> &'static Layout {
        match self {
            Self::Unauthenticated => &UNAUTHENTICATED,
            Self::Authenticated(_) => &AUTHENTICATED,
        }
    }

    /// Bytes of the base packet before its HMAC.
    fn body_bytes(&self) -> usize {
        match self {
            Self::Unauthenticated => UNAUTHENTICATED_BYTES,
            Self::Authenticated(_) => COVERED_BYTES,
        }
    }
}

impl TestPacket {
    /// Appends the packet and its TLVs to `into`: 44 bytes, or 112 in authenticated mode, and the TLVs. In authenticated mode a TLV
    /// with the HMAC of the others is added, before Extra Padding at the end (RFC 8972, section 4.8).
    pub fn write(&self, mode: &Mode, tlvs: &[Tlv], into: &mut Vec<u8>) {
        let start = into.len();
        into.resize(start + mode.body_bytes(), 0);
        self.put(mode.layout(), &mut into[start..]);
        mode.finish(tlvs, into, start);
    }

    /// Reads a packet and its TLVs. In unauthenticated mode 14 bytes suffice, as TWAMP Light senders may transmit them (RFC 8762,
    /// section 4.6); a packet below 44 bytes has neither SSID nor TLVs. TLVs with a wrong HMAC, or none, have the I flag.
    ///
    /// # Errors
    /// The packet is too short, or its HMAC is wrong.
    pub fn read(bytes: &[u8], mode: &Mode) -> Result<(Self, Vec<Tlv>), PacketError> {
        mode.check(bytes, SHORTEST_BYTES)?;
        let layout = mode.layout();
        let is_whole = bytes.len() >= mode.packet_bytes();
        let packet = Self {
            sequence: u32_at(bytes, 0),
            sent: Timestamp(u64_at(bytes, layout.sent)),
            error: ErrorEstimate(u16_at(bytes, layout.error)),
            ssid: if is_whole { u16_at(bytes, layout.ssid) } else { 0 },
        };
        Ok((packet, mode.read_tlvs(bytes)))
    }

    fn put(&self, layout: &Layout, body: &mut [u8]) {
        put(body, 0, &self.sequence.to_be_bytes());
        put(body, layout.sent, &self.sent.0.to_be_bytes());
        put(body, layout.error, &self.error.0.to_be_bytes());
        put(body, layout.ssid, &self.ssid.to_be_bytes());
    }
}

impl ReflectedPacket {
    /// Appends the packet and its TLVs to `into`, as [`TestPacket::write`] does.
    pub fn write(&self, mode: &Mode, tlvs: &[Tlv], into: &mut Vec<u8>) {
        let start = into.len();
        into.resize(start + mode.body_bytes(), 0);
        let body = &mut into[start..];
        let layout = mode.layout();
        let Self { sequence, sent, error, ssid, .. } = *self;
        TestPacket { sequence, sent, error, ssid }.put(layout, body);
        put(body, layout.received, &self.received.0.to_be_bytes());
        put(body, layout.sender_sequence, &self.sender.sequence.to_be_bytes());
        put(body, layout.sender_sent, &self.sender.sent.0.to_be_bytes());
        put(body, layout.sender_error, &self.sender.error.0.to_be_bytes());
        put(body, layout.sender_ttl, &[self.sender_ttl]);
        mode.finish(tlvs, into, start);
    }

    /// Reads a packet and its TLVs. `sender` has the SSID of the packet. In unauthenticated mode 41 bytes suffice, as TWAMP Light
    /// reflectors transmit them (RFC 8762, section 4.6). TLVs with a wrong HMAC, or none, have the I flag.
    ///
    /// # Errors
    /// The packet is too short, or its HMAC is wrong.
    pub fn read(bytes: &[u8], mode: &Mode) -> Result<(Self, Vec<Tlv>), PacketError> {
        mode.check(bytes, TWAMP_REFLECTED_BYTES)?;
        let layout = mode.layout();
        let ssid = u16_at(bytes, layout.ssid);
        let packet = Self {
            sequence: u32_at(bytes, 0),
            sent: Timestamp(u64_at(bytes, layout.sent)),
            error: ErrorEstimate(u16_at(bytes, layout.error)),
            ssid,
            received: Timestamp(u64_at(bytes, layout.received)),
            sender: TestPacket {
                sequence: u32_at(bytes, layout.sender_sequence),
                sent: Timestamp(u64_at(bytes, layout.sender_sent)),
                error: ErrorEstimate(u16_at(bytes, layout.sender_error)),
                ssid,
            },
            sender_ttl: bytes[layout.sender_ttl],
        };
        Ok((packet, mode.read_tlvs(bytes)))
    }
}

/// Whether a packet is the reply of a reflector: it has the time of reception, and shortly after it the time of transmission. A
/// Session-Sender has zeroes or padding there. Returns `None` if the packet is too short for that time.
pub(super) fn is_reflected(bytes: &[u8], mode: &Mode) -> Option<bool> {
    const TURNAROUND_NS: u64 = 10_000_000_000;
    let layout = mode.layout();
    if bytes.len() < layout.received + mem::size_of::<u64>() {
        return None;
    }
    let sent = Timestamp(u64_at(bytes, layout.sent));
    let received = Timestamp(u64_at(bytes, layout.received));
    let formats = [TimestampFormat::Ntp, TimestampFormat::Ptp];
    let is_near =
        formats.iter().any(|format| received.unix_ns(*format).abs_diff(sent.unix_ns(*format)) < TURNAROUND_NS);
    Some(received != Timestamp(0) && is_near)
}

fn put(body: &mut [u8], at: usize, field: &[u8]) {
    body[at..at + field.len()].copy_from_slice(field);
}

fn field<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes[at..at + N].try_into().expect("the slice has N bytes")
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes(field(bytes, at))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(field(bytes, at))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_be_bytes(field(bytes, at))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stamp::{ClassOfService, TlvFlags};
    use proptest::prelude::*;

    const TEST: TestPacket = TestPacket {
        sequence: 0x0102_0304,
        sent: Timestamp(0x1112_1314_1516_1718),
        error: ErrorEstimate(0x2122),
        ssid: 0x3132,
    };
    const REFLECTED: ReflectedPacket = ReflectedPacket {
        sequence: 0x4142_4344,
        sent: Timestamp(0x5152_5354_5556_5758),
        error: ErrorEstimate(0x6162),
        ssid: 0x3132,
        received: Timestamp(0x7172_7374_7576_7778),
        sender: TEST,
        sender_ttl: 0x81,
    };

    fn authenticated() -> Mode {
        Mode::Authenticated(Key::new(b"a key of tests"))
    }

    fn modes() -> [Mode; 2] {
        [Mode::Unauthenticated, authenticated()]
    }

    fn test_bytes(mode: &Mode, tlvs: &[Tlv]) -> Vec<u8> {
        let mut bytes = Vec::new();
        TEST.write(mode, tlvs, &mut bytes);
        bytes
    }

    fn reflected_bytes(mode: &Mode, tlvs: &[Tlv]) -> Vec<u8> {
        let mut bytes = Vec::new();
        REFLECTED.write(mode, tlvs, &mut bytes);
        bytes
    }

    /// HMAC-SHA-256 by the key of the tests, truncated.
    fn hmac(covered: &[u8]) -> Vec<u8> {
        let key = hmac::Key::new(hmac::HMAC_SHA256, b"a key of tests");
        hmac::sign(&key, covered).as_ref()[..16].to_vec()
    }

    #[test]
    fn sender_packets_have_the_layout_of_rfc_8762() {
        let expected =
            [&[1, 2, 3, 4, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0x21, 0x22, 0x31, 0x32][..], &[0; 28]]
                .concat();
        assert_eq!(test_bytes(&Mode::Unauthenticated, &[]), expected);
        let covered = [
            &[1, 2, 3, 4][..],
            &[0; 12],
            &[0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0x21, 0x22, 0x31, 0x32],
            &[0; 68],
        ]
        .concat();
        assert_eq!(test_bytes(&authenticated(), &[]), [&covered[..], &hmac(&covered)].concat());
    }

    #[test]
    fn reflected_packets_have_the_layout_of_rfc_8762() {
        let sent = [0x51, 0x52, 0x53, 0x54, 0x55, 0x56, 0x57, 0x58, 0x61, 0x62, 0x31, 0x32];
        let received = [0x71, 0x72, 0x73, 0x74, 0x75, 0x76, 0x77, 0x78];
        let sender_sent = [0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0x21, 0x22];
        let expected =
            [&[0x41, 0x42, 0x43, 0x44][..], &sent, &received, &[1, 2, 3, 4], &sender_sent, &[0, 0, 0x81, 0, 0, 0]]
                .concat();
        assert_eq!(expected.len(), 44);
        assert_eq!(reflected_bytes(&Mode::Unauthenticated, &[]), expected);
        let covered = [
            &[0x41, 0x42, 0x43, 0x44][..],
            &[0; 12],
            &sent,
            &[0; 4],
            &received,
            &[0; 8],
            &[1, 2, 3, 4],
            &[0; 12],
            &sender_sent,
            &[0; 6],
            &[0x81],
            &[0; 15],
        ]
        .concat();
        assert_eq!(covered.len(), 96);
        assert_eq!(reflected_bytes(&authenticated(), &[]), [&covered[..], &hmac(&covered)].concat());
    }

    #[test]
    fn the_hmac_of_tlvs_covers_sequence_number_and_tlvs_before_it() {
        let class = Tlv::new(TlvValue::ClassOfService(ClassOfService { requested_dscp: 46, ..Default::default() }));
        let bytes = test_bytes(&authenticated(), &[class.clone(), Tlv::padding(8)]);
        let class_bytes = [0x80, 4, 0, 4, 0b1011_1000, 0, 0, 0];
        assert_eq!(bytes[112..120], class_bytes);
        assert_eq!(bytes[120..124], [0x80, 8, 0, 16]);
        assert_eq!(bytes[124..140], hmac(&[&[1, 2, 3, 4][..], &class_bytes].concat()));
        assert_eq!(bytes[140..], [0x80, 1, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0]);
        let (_, tlvs) = TestPacket::read(&bytes, &authenticated()).expect("both HMACs are valid");
        assert_eq!(tlvs, [class, Tlv::padding(8)]);
    }

    #[test]
    fn single_extra_padding_needs_no_hmac() {
        let bytes = test_bytes(&authenticated(), &[Tlv::padding(8)]);
        assert_eq!(bytes.len(), 112 + 12);
        let (_, tlvs) = TestPacket::read(&bytes, &authenticated()).expect("the base packet is valid");
        assert_eq!(tlvs, [Tlv::padding(8)]);
    }

    #[test]
    fn tlvs_without_a_valid_hmac_have_the_integrity_flag() {
        let class = Tlv::new(TlvValue::ClassOfService(ClassOfService::default()));
        let valid = test_bytes(&authenticated(), &[class]);
        let mut changed = valid.clone();
        changed[116] ^= 4;
        let mut followed = valid.clone();
        followed.extend([0x80, 200, 0, 0]);
        for bytes in [&changed[..], &followed, &valid[..120]] {
            let (packet, tlvs) = TestPacket::read(bytes, &authenticated()).expect("the base packet is valid");
            assert_eq!(packet, TEST);
            assert!(!tlvs.is_empty() && tlvs.iter().all(|tlv| tlv.flags.integrity_failed), "{tlvs:?}");
            // A reflector copies them, and adds no HMAC.
            let reply = reflected_bytes(&authenticated(), &tlvs);
            assert_eq!(reply.len(), bytes.len());
            assert_eq!(ReflectedPacket::read(&reply, &authenticated()), Ok((REFLECTED, tlvs)));
        }
    }

    #[test]
    fn base_packets_with_any_bit_changed_fail_verification() {
        for (bytes, read) in [
            (
                test_bytes(&authenticated(), &[]),
                (|bytes| TestPacket::read(bytes, &authenticated()).map(drop)) as fn(&[u8]) -> _,
            ),
            (reflected_bytes(&authenticated(), &[]), |bytes| ReflectedPacket::read(bytes, &authenticated()).map(drop)),
        ] {
            assert_eq!(read(&bytes), Ok(()));
            for at in 0..112 {
                let mut changed = bytes.clone();
                changed[at] ^= 0x10;
                assert_eq!(read(&changed), Err(PacketError::Hmac), "byte {at}");
            }
            assert_eq!(read(&bytes[..111]), Err(PacketError::Short { length: 111, needed: 112 }));
        }
    }

    #[test]
    fn keys_are_read_from_hexadecimal_digits() {
        let key = Key::from_hex(" 000102030405060708090a0B0C0d0e0f\n").expect("16 bytes");
        let bytes: Vec<u8> = (0..16).collect();
        assert_eq!(key.sign(&[b"text"]), Key::new(&bytes).sign(&[b"te", b"xt"]));
        assert_eq!(Key::from_hex(&"0".repeat(30)).err(), Some(KeyError::Short { bytes: 15 }));
        for text in ["0".repeat(33), "g".repeat(32), "ä".repeat(16)] {
            assert_eq!(Key::from_hex(&text).err(), Some(KeyError::Digits), "{text}");
        }
    }

    #[test]
    fn packets_of_twamp_light_are_read() {
        let bytes = test_bytes(&Mode::Unauthenticated, &[]);
        for length in 14..44 {
            let (packet, tlvs) = TestPacket::read(&bytes[..length], &Mode::Unauthenticated).expect("long enough");
            assert_eq!((packet, tlvs), (TestPacket { ssid: 0, ..TEST }, Vec::new()));
        }
        let short = TestPacket::read(&bytes[..13], &Mode::Unauthenticated);
        assert_eq!(short, Err(PacketError::Short { length: 13, needed: 14 }));
        let bytes = reflected_bytes(&Mode::Unauthenticated, &[]);
        assert_eq!(ReflectedPacket::read(&bytes[..41], &Mode::Unauthenticated), Ok((REFLECTED, Vec::new())));
        assert!(ReflectedPacket::read(&bytes[..40], &Mode::Unauthenticated).is_err());
    }

    fn tlvs() -> impl Strategy<Value = Vec<Tlv>> {
        let value = prop_oneof![
            proptest::collection::vec(any::<u8>(), 0..20).prop_map(TlvValue::ExtraPadding),
            (0u8..64, 0u8..64, 0u8..4, 0u8..4).prop_map(
                |(requested_dscp, received_dscp, received_ecn, reverse_path)| {
                    TlvValue::ClassOfService(ClassOfService {
                        requested_dscp,
                        received_dscp,
                        received_ecn,
                        reverse_path,
                    })
                }
            ),
            (9u8..=255, proptest::collection::vec(any::<u8>(), 0..20))
                .prop_map(|(kind, value)| TlvValue::Unknown { kind, value }),
        ];
        let flags = (any::<bool>(), any::<bool>()).prop_map(|(unrecognised, malformed)| TlvFlags {
            unrecognised,
            malformed,
            integrity_failed: false,
        });
        proptest::collection::vec((flags, value).prop_map(|(flags, value)| Tlv { flags, value }), 0..4)
    }

    proptest! {
        #[test]
        fn packets_survive_encoding(
            (sequence, sent, error, ssid, received, sender_ttl) in any::<(u32, u64, u16, u16, u64, u8)>(),
            tlvs in tlvs(),
        ) {
            let sender = TestPacket { sequence, sent: Timestamp(sent), error: ErrorEstimate(error), ssid };
            let reflected = ReflectedPacket {
                sequence,
                sent: Timestamp(received),
                error: sender.error,
                ssid,
                received: Timestamp(sent),
                sender,
                sender_ttl,
            };
            for mode in modes() {
                let mut bytes = Vec::new();
                sender.write(&mode, &tlvs, &mut bytes);
                prop_assert_eq!(TestPacket::read(&bytes, &mode), Ok((sender, tlvs.clone())));
                bytes.clear();
                reflected.write(&mode, &tlvs, &mut bytes);
                prop_assert_eq!(ReflectedPacket::read(&bytes, &mode), Ok((reflected, tlvs.clone())));
            }
        }

        #[test]
        fn hostile_bytes_are_refused_or_read(
            bytes in proptest::collection::vec(any::<u8>(), 0..200),
            tail in proptest::collection::vec(0u8..20, 0..60),
        ) {
            for mode in modes() {
                let _ = TestPacket::read(&bytes, &mode);
                let _ = ReflectedPacket::read(&bytes, &mode);
                let base = test_bytes(&mode, &[]);
                let (packet, _) = TestPacket::read(&[&base[..], &tail].concat(), &mode).expect("the base is valid");
                prop_assert_eq!(packet, TEST);
            }
        }
    }
}
