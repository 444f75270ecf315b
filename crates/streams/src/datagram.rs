//! The header that begins every datagram: the tag of its flow, its sending time, and its number.

use linerate_model::SessionKey;

/// Bytes of the header.
pub(crate) const HEADER: usize = 16;

/// Bytes of a [`Numbering::Timestamped`] header with numbers of 32 bits.
const NARROW_HEADER: usize = 12;

const SECOND_NS: u64 = 1_000_000_000;
const MICROSECOND_NS: u64 = 1_000;

/// Bits of the sequence field below the phase.
const NUMBER_BITS: u32 = 62;

/// Part of a stream, in the two top bits of a datagram's sequence field. The numbers go on through all phases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Datagrams before the window.
    WarmUp = 0,
    /// Datagrams due within the window, for which loss is counted.
    Measured = 1,
    /// Datagrams after the window. They fill the receiver's window, which begins and ends later.
    CoolDown = 2,
}

impl Phase {
    /// Returns the sequence field of datagram `number`.
    #[inline]
    pub(crate) fn sequence(self, number: u64) -> u64 {
        (self as u64) << NUMBER_BITS | number
    }

    /// Splits a sequence field into phase and number. Returns `None` if there is no such phase.
    #[inline]
    pub(crate) fn of(sequence: u64) -> Option<(Self, u64)> {
        let phase = match sequence >> NUMBER_BITS {
            0 => Self::WarmUp,
            1 => Self::Measured,
            2 => Self::CoolDown,
            _ => return None,
        };
        Some((phase, sequence & ((1 << NUMBER_BITS) - 1)))
    }
}

/// Header of a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    /// Tag that distinguishes this trial's datagrams from others.
    pub(crate) tag: u32,
    /// Time of sending by the sender's clock in nanoseconds, modulo 2^32: enough for differences of transit times.
    pub(crate) sent_ns: u32,
    /// [`Phase`] and number; in transactions, the number of the request.
    pub(crate) sequence: u64,
}

impl Header {
    /// Writes the header to the beginning of `datagram`.
    #[inline]
    pub(crate) fn write(self, datagram: &mut [u8]) {
        datagram[..4].copy_from_slice(&self.tag.to_be_bytes());
        datagram[4..8].copy_from_slice(&self.sent_ns.to_be_bytes());
        datagram[8..16].copy_from_slice(&self.sequence.to_be_bytes());
    }

    /// Reads the header of a datagram with this tag.
    #[inline]
    pub(crate) fn read(datagram: &[u8], tag: u32) -> Option<Self> {
        let header = datagram.first_chunk::<HEADER>()?;
        let (fields, sequence) = header.split_first_chunk::<8>()?;
        let [t0, t1, t2, t3, s0, s1, s2, s3] = *fields;
        let sent_ns = u32::from_be_bytes([s0, s1, s2, s3]);
        let sequence = u64::from_be_bytes(*sequence.first_chunk()?);
        (u32::from_be_bytes([t0, t1, t2, t3]) == tag).then_some(Self { tag, sent_ns, sequence })
    }
}

/// Header format of a flow's datagrams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Numbering {
    /// [`Header`] with the flow's tag.
    Tagged { tag: u32 },
    /// Seconds, microseconds and a number from 1 on, all big-endian, without a phase.
    Timestamped {
        /// Whether the number has 64 bits, not 32.
        wide: bool,
    },
}

/// Header fields that a receiver reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Marked {
    /// `None` if the sender does not mark phases.
    pub(crate) phase: Option<Phase>,
    /// Number from 0 on.
    pub(crate) number: u64,
    /// Time of sending by the sender's clock in nanoseconds, modulo 2^32.
    pub(crate) sent_ns: u32,
}

impl Numbering {
    /// Bytes of the header.
    pub(crate) fn header(self) -> usize {
        if let Self::Timestamped { wide: false } = self { NARROW_HEADER } else { HEADER }
    }

    /// Marks `datagram`, of at least [`Numbering::header`] bytes, as sent at `now`.
    #[inline]
    pub(crate) fn write(self, datagram: &mut [u8], now: u64, phase: Phase, number: u64) {
        let wide = match self {
            Self::Tagged { tag } => {
                return Header { tag, sent_ns: now as u32, sequence: phase.sequence(number) }.write(datagram);
            }
            Self::Timestamped { wide } => wide,
        };
        datagram[..4].copy_from_slice(&((now / SECOND_NS) as u32).to_be_bytes());
        datagram[4..8].copy_from_slice(&((now % SECOND_NS / MICROSECOND_NS) as u32).to_be_bytes());
        if wide {
            datagram[8..16].copy_from_slice(&(number + 1).to_be_bytes());
        } else {
            datagram[8..12].copy_from_slice(&((number + 1) as u32).to_be_bytes());
        }
    }

    /// Reads the header of `datagram`. Returns `None` if it does not belong to this flow.
    #[inline]
    pub(crate) fn read(self, datagram: &[u8]) -> Option<Marked> {
        let wide = match self {
            Self::Tagged { tag } => {
                let header = Header::read(datagram, tag)?;
                let (phase, number) = Phase::of(header.sequence)?;
                return Some(Marked { phase: Some(phase), number, sent_ns: header.sent_ns });
            }
            Self::Timestamped { wide } => wide,
        };
        let number =
            if wide { u64::from_be_bytes(*datagram.get(8..)?.first_chunk()?) } else { u64::from(u32_at(datagram, 8)?) };
        // The limit keeps sums of numbers from wrapping, whatever the peer sends.
        let number = number.checked_sub(1).filter(|number| *number < 1 << NUMBER_BITS)?;
        let seconds = u64::from(u32_at(datagram, 0)?);
        let microseconds = u64::from(u32_at(datagram, 4)?);
        let sent_ns = (seconds * SECOND_NS + microseconds * MICROSECOND_NS) as u32;
        Some(Marked { phase: None, number, sent_ns })
    }
}

/// Reads a big-endian number at `offset`.
#[inline]
fn u32_at(datagram: &[u8], offset: usize) -> Option<u32> {
    Some(u32::from_be_bytes(*datagram.get(offset..)?.first_chunk()?))
}

/// Returns the tag of one flow's datagrams: a hash of the key, so that the key itself is not in every datagram.
pub(crate) fn tag(key: &SessionKey, flow: u16) -> u32 {
    // FNV-1a: spreads, and is no secret. The socket is connected; the tag only keeps out strays of other trials.
    let mut hash = 2_166_136_261_u32;
    for byte in key.0.iter().chain(&flow.to_be_bytes()) {
        hash = (hash ^ u32::from(*byte)).wrapping_mul(16_777_619);
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_is_read_back_and_other_tags_are_not() {
        let header = Header { tag: 0xdead_beef, sent_ns: u32::MAX - 1, sequence: Phase::CoolDown.sequence(77) };
        let mut datagram = [0u8; 20];
        header.write(&mut datagram);
        assert_eq!(Header::read(&datagram, header.tag), Some(header));
        assert_eq!(Header::read(&datagram, 1), None);
        assert_eq!(Header::read(&datagram[..15], header.tag), None);
        assert_ne!(tag(&SessionKey([1; 16]), 0), tag(&SessionKey([1; 16]), 1));
    }

    /// Captured from release 3.12 of the peer of `linerate_iperf3`: second 74082, the 251st with 32 bits, and the first
    /// with 64.
    #[test]
    fn captured_timestamped_datagrams_are_read_and_written() {
        let narrow = [0, 1, 0x21, 0x62, 0, 7, 0xd1, 0xa6, 0, 0, 0, 251];
        let wide = [0, 1, 0x21, 0x62, 0, 7, 0xd1, 0xa6, 0, 0, 0, 0, 0, 0, 0, 1];
        let at = 74_082 * SECOND_NS + 0x7d1a6 * MICROSECOND_NS;
        for (numbering, bytes, number) in [
            (Numbering::Timestamped { wide: false }, &narrow[..], 250),
            (Numbering::Timestamped { wide: true }, &wide, 0),
        ] {
            assert_eq!(numbering.read(bytes), Some(Marked { phase: None, number, sent_ns: at as u32 }));
            assert_eq!((numbering.header(), numbering.read(&bytes[1..])), (bytes.len(), None), "cut short");
            let mut written = vec![0; bytes.len()];
            numbering.write(&mut written, at + 999, Phase::Measured, number);
            assert_eq!(written, bytes);
        }
        let wide = Numbering::Timestamped { wide: true };
        assert_eq!(wide.read(&[0; 16]), None, "numbers begin at 1");
        assert_eq!(wide.read(&[0xff; 16]), None, "the number is too large");
    }

    #[test]
    fn sequence_field_splits_into_phase_and_number() {
        for phase in [Phase::WarmUp, Phase::Measured, Phase::CoolDown] {
            assert_eq!(Phase::of(phase.sequence(77)), Some((phase, 77)));
        }
        assert_eq!(Phase::of(u64::MAX), None);
    }
}
