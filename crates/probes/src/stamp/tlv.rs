//! Extensions of STAMP test packets: type, length and value (RFC 8972, section 4).

/// Flags of a TLV (RFC 8972, section 4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TlvFlags {
    /// U: set by the sender, and kept by a reflector that does not understand the TLV.
    pub unrecognised: bool,
    /// M: set by a reflector if the length does not fit the type or the packet.
    pub malformed: bool,
    /// I: set by a reflector if the HMAC of the TLVs failed verification, and by `read` if it fails here.
    pub integrity_failed: bool,
}

const UNRECOGNISED: u8 = 0x80;
const MALFORMED: u8 = 0x40;
const INTEGRITY_FAILED: u8 = 0x20;

impl TlvFlags {
    /// Flags of a TLV that a Session-Sender transmits.
    pub const SENT: Self = Self { unrecognised: true, malformed: false, integrity_failed: false };

    fn read(byte: u8) -> Self {
        Self {
            unrecognised: byte & UNRECOGNISED != 0,
            malformed: byte & MALFORMED != 0,
            integrity_failed: byte & INTEGRITY_FAILED != 0,
        }
    }

    fn byte(self) -> u8 {
        [(self.unrecognised, UNRECOGNISED), (self.malformed, MALFORMED), (self.integrity_failed, INTEGRITY_FAILED)]
            .into_iter()
            .filter_map(|(is_set, bit)| is_set.then_some(bit))
            .sum()
    }
}

/// Class of Service TLV (RFC 8972, section 4.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ClassOfService {
    /// DSCP1: DSCP that the sender asks for in the reflected packet, 6 bits.
    pub requested_dscp: u8,
    /// DSCP2: DSCP with which the packet reached the reflector, 6 bits.
    pub received_dscp: u8,
    /// ECN field with which the packet reached the reflector, 2 bits.
    pub received_ecn: u8,
    /// RP: 1 if the reflector did not use the DSCP that the sender asked for, 2 bits.
    pub reverse_path: u8,
}

/// Direct Measurement TLV (RFC 8972, section 4.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DirectMeasurement {
    /// Packets that the sender has transmitted (S_TxC).
    pub sender_transmitted: u32,
    /// Packets that the reflector has received (R_RxC).
    pub reflector_received: u32,
    /// Packets that the reflector has transmitted (R_TxC).
    pub reflector_transmitted: u32,
}

/// Access Report TLV (RFC 8972, section 4.6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AccessReport {
    /// Type of the access network, 4 bits: 1 is 3GPP, 2 is non-3GPP.
    pub access_id: u8,
    /// 1 if the network is available, 2 if it is not.
    pub return_code: u8,
}

/// Value of a TLV.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TlvValue {
    /// Type 1: any bytes that make the packet longer.
    ExtraPadding(Vec<u8>),
    /// Type 4.
    ClassOfService(ClassOfService),
    /// Type 5.
    DirectMeasurement(DirectMeasurement),
    /// Type 6.
    AccessReport(AccessReport),
    /// Type 8. `read` returns one only if its verification failed; `write` adds a valid one itself.
    Hmac([u8; HMAC_BYTES]),
    /// Any other type.
    Unknown {
        /// Type.
        kind: u8,
        /// Value without the header.
        value: Vec<u8>,
    },
    /// A TLV with an invalid length, and all bytes of the packet after its header.
    Malformed {
        /// Type.
        kind: u8,
        /// Length field.
        length: u16,
        /// Bytes after the header, up to the end of the packet.
        rest: Vec<u8>,
    },
}

/// An extension of a test packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tlv {
    /// Its flags.
    pub flags: TlvFlags,
    /// Its type and value.
    pub value: TlvValue,
}

/// Bytes of flags, type and length.
pub(super) const HEADER_BYTES: usize = 4;
/// Bytes of a truncated HMAC.
pub(super) const HMAC_BYTES: usize = 16;

const EXTRA_PADDING: u8 = 1;
const CLASS_OF_SERVICE: u8 = 4;
const DIRECT_MEASUREMENT: u8 = 5;
const ACCESS_REPORT: u8 = 6;
const HMAC: u8 = 8;

/// A TLV and the bytes that it takes.
pub(super) struct ReadTlv {
    pub(super) tlv: Tlv,
    pub(super) length: usize,
}

impl Tlv {
    /// A TLV with the flags of a Session-Sender.
    pub fn new(value: TlvValue) -> Self {
        Self { flags: TlvFlags::SENT, value }
    }

    /// Extra Padding of `bytes` zeroes, in addition to the header of 4 bytes.
    pub fn padding(bytes: u16) -> Self {
        Self::new(TlvValue::ExtraPadding(vec![0; bytes.into()]))
    }

    /// Reads the TLV at the start of `bytes`. Returns `None` if fewer bytes than a header are left.
    pub(super) fn read(bytes: &[u8]) -> Option<ReadTlv> {
        let (&[flags, kind, high, low], rest) = bytes.split_first_chunk::<HEADER_BYTES>()?;
        let length = u16::from_be_bytes([high, low]);
        let flags = TlvFlags::read(flags);
        let value = rest.get(..length.into()).and_then(|value| TlvValue::read(kind, value));
        Some(match value {
            Some(value) => ReadTlv { tlv: Self { flags, value }, length: HEADER_BYTES + usize::from(length) },
            None => ReadTlv {
                tlv: Self {
                    flags: TlvFlags { malformed: true, ..flags },
                    value: TlvValue::Malformed { kind, length, rest: rest.to_vec() },
                },
                length: bytes.len(),
            },
        })
    }

    /// Appends the TLV to `into`. A value longer than 65,535 bytes is cut there.
    pub(super) fn write(&self, into: &mut Vec<u8>) {
        let (kind, length, value) = self.value.encode();
        into.extend([self.flags.byte(), kind]);
        into.extend(length.to_be_bytes());
        into.extend(value);
    }

    /// Whether it is Extra Padding, which the HMAC does not cover at the end of a packet.
    pub(super) fn is_padding(&self) -> bool {
        matches!(self.value, TlvValue::ExtraPadding(_))
    }
}

impl TlvValue {
    /// Reads a value. Returns `None` if the type has another length.
    fn read(kind: u8, value: &[u8]) -> Option<Self> {
        Some(match kind {
            EXTRA_PADDING => Self::ExtraPadding(value.to_vec()),
            CLASS_OF_SERVICE => {
                let [first, second, ..]: [u8; 4] = value.try_into().ok()?;
                Self::ClassOfService(ClassOfService {
                    requested_dscp: first >> 2,
                    received_dscp: ((first & 0b11) << 4) | (second >> 4),
                    received_ecn: (second >> 2) & 0b11,
                    reverse_path: second & 0b11,
                })
            }
            DIRECT_MEASUREMENT => {
                let counts: [u8; 12] = value.try_into().ok()?;
                let count =
                    |at: usize| u32::from_be_bytes([counts[at], counts[at + 1], counts[at + 2], counts[at + 3]]);
                Self::DirectMeasurement(DirectMeasurement {
                    sender_transmitted: count(0),
                    reflector_received: count(4),
                    reflector_transmitted: count(8),
                })
            }
            ACCESS_REPORT => {
                let [access, return_code, ..]: [u8; 4] = value.try_into().ok()?;
                Self::AccessReport(AccessReport { access_id: access >> 4, return_code })
            }
            HMAC => Self::Hmac(value.try_into().ok()?),
            _ => Self::Unknown { kind, value: value.to_vec() },
        })
    }

    /// An HMAC that cannot be verified without a key.
    pub(super) fn unknown_hmac(hmac: [u8; HMAC_BYTES]) -> Self {
        Self::Unknown { kind: HMAC, value: hmac.to_vec() }
    }

    /// Type, length field and value as they are transmitted.
    fn encode(&self) -> (u8, u16, Vec<u8>) {
        let (kind, value) = match self {
            Self::ExtraPadding(bytes) => (EXTRA_PADDING, bytes.clone()),
            Self::ClassOfService(class) => {
                let first = (class.requested_dscp << 2) | ((class.received_dscp >> 4) & 0b11);
                let second =
                    (class.received_dscp << 4) | ((class.received_ecn & 0b11) << 2) | (class.reverse_path & 0b11);
                (CLASS_OF_SERVICE, vec![first, second, 0, 0])
            }
            Self::DirectMeasurement(counts) => {
                let counts = [counts.sender_transmitted, counts.reflector_received, counts.reflector_transmitted];
                (DIRECT_MEASUREMENT, counts.into_iter().flat_map(u32::to_be_bytes).collect())
            }
            Self::AccessReport(report) => (ACCESS_REPORT, vec![report.access_id << 4, report.return_code, 0, 0]),
            Self::Hmac(hmac) => (HMAC, hmac.to_vec()),
            Self::Unknown { kind, value } => (*kind, value.clone()),
            Self::Malformed { kind, length, rest } => return (*kind, *length, rest.clone()),
        };
        let length = u16::try_from(value.len()).unwrap_or(u16::MAX);
        (kind, length, value[..length.into()].to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bytes(value: TlvValue) -> Vec<u8> {
        let mut bytes = Vec::new();
        Tlv::new(value).write(&mut bytes);
        bytes
    }

    #[test]
    fn layouts_are_those_of_rfc_8972() {
        assert_eq!(bytes(TlvValue::ExtraPadding(vec![7, 8])), [0x80, 1, 0, 2, 7, 8]);
        // DSCP1 is EF (46 = 0b101110), DSCP2 is AF41 (34 = 0b100010), ECN is CE, RP is 1.
        let class = ClassOfService { requested_dscp: 46, received_dscp: 34, received_ecn: 0b11, reverse_path: 1 };
        assert_eq!(bytes(TlvValue::ClassOfService(class)), [0x80, 4, 0, 4, 0b1011_1010, 0b0010_1101, 0, 0]);
        let counts = DirectMeasurement { sender_transmitted: 1, reflector_received: 2, reflector_transmitted: 3 };
        assert_eq!(bytes(TlvValue::DirectMeasurement(counts)), [0x80, 5, 0, 12, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3]);
        let report = AccessReport { access_id: 2, return_code: 1 };
        assert_eq!(bytes(TlvValue::AccessReport(report)), [0x80, 6, 0, 4, 0x20, 1, 0, 0]);
        assert_eq!(bytes(TlvValue::Hmac([9; 16])), [&[0x80, 8, 0, 16][..], &[9; 16]].concat());
    }

    #[test]
    fn lengths_that_fit_neither_type_nor_packet_are_malformed() {
        for bytes in [&[0x80, 4, 0, 5, 1, 2, 3, 4, 5][..], &[0, 5, 0, 4, 1, 2, 3, 4], &[0x80, 200, 0xff, 0xff, 1]] {
            let malformed = Tlv::read(bytes).expect("a header");
            assert!(malformed.tlv.flags.malformed, "{bytes:?}");
            assert_eq!(malformed.length, bytes.len(), "nothing after it is read");
            let mut copy = Vec::new();
            malformed.tlv.write(&mut copy);
            assert_eq!((copy[0], &copy[1..]), (bytes[0] | 0x40, &bytes[1..]));
        }
        assert!(Tlv::read(&[0x80, 1, 0]).is_none(), "no header");
    }

    proptest! {
        #[test]
        fn what_is_read_is_written_again(bytes in proptest::collection::vec(any::<u8>(), 0..64), kind in 0u8..10) {
            let mut bytes = bytes;
            if let [_, at, ..] = &mut bytes[..] {
                *at = kind;
            }
            if let Some(read) = Tlv::read(&bytes) {
                let mut copy = Vec::new();
                read.tlv.write(&mut copy);
                prop_assert_eq!(copy.len(), read.length);
                let again = Tlv::read(&copy).expect("a header");
                prop_assert_eq!(again.tlv, read.tlv);
            }
        }
    }
}
