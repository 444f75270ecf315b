//! The header that begins every datagram of a stream: whose it is, when it was sent, and which it is.

use linerate_model::SessionKey;

/// Bytes of the header.
pub(crate) const HEADER: usize = 16;

/// Bytes of the header of iperf3 where its numbers have 32 bits.
const NARROW_HEADER: usize = 12;

const SECOND_NS: u64 = 1_000_000_000;
const MICROSECOND_NS: u64 = 1_000;

/// Bits of the sequence field below the phase.
const NUMBER_BITS: u32 = 62;

/// The part of a stream that a datagram belongs to, the two top bits of its sequence field. The numbers go on through all phases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Before the window.
    WarmUp = 0,
    /// Due within the window: of these, loss is told.
    Measured = 1,
    /// After it, so that the receiver's window, which begins and ends later, is filled.
    CoolDown = 2,
}

impl Phase {
    /// The sequence field of datagram `number`.
    #[inline]
    pub(crate) fn sequence(self, number: u64) -> u64 {
        (self as u64) << NUMBER_BITS | number
    }

    /// The phase and the number in a sequence field; none if there is no such phase.
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

/// What a datagram says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    /// Tells this trial's datagrams from others.
    pub(crate) tag: u32,
    /// The sender's clock in nanoseconds, modulo 2^32: enough for differences of transit times.
    pub(crate) sent_ns: u32,
    /// Streams: [`Phase`] and number. Transactions: the number of the request.
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
        let half = |at: usize| u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        let sequence = u64::from(half(8)) << 32 | u64::from(half(12));
        (half(0) == tag).then_some(Self { tag, sent_ns: half(4), sequence })
    }
}

/// How the datagrams of a flow are numbered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Numbering {
    /// As linerate does: by [`Header`], with the flow's tag.
    Own {
        /// The flow's tag.
        tag: u32,
    },
    /// As iperf3 does: seconds, microseconds and a number from 1 on, all big-endian. The phase is not told.
    Iperf3 {
        /// The number has 64 bits, not 32.
        wide: bool,
    },
}

/// What a receiver learns of a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Marked {
    /// None where the sender does not tell.
    pub(crate) phase: Option<Phase>,
    /// From 0 on.
    pub(crate) number: u64,
    /// The sender's clock in nanoseconds, modulo 2^32.
    pub(crate) sent_ns: u32,
}

impl Numbering {
    /// Bytes of the header.
    pub(crate) fn header(self) -> usize {
        if let Self::Iperf3 { wide: false } = self { NARROW_HEADER } else { HEADER }
    }

    /// Marks `datagram`, of at least [`Numbering::header`] bytes, as sent at `now`.
    #[inline]
    pub(crate) fn write(self, datagram: &mut [u8], now: u64, phase: Phase, number: u64) {
        let wide = match self {
            Self::Own { tag } => {
                return Header { tag, sent_ns: now as u32, sequence: phase.sequence(number) }.write(datagram);
            }
            Self::Iperf3 { wide } => wide,
        };
        datagram[..4].copy_from_slice(&((now / SECOND_NS) as u32).to_be_bytes());
        datagram[4..8].copy_from_slice(&((now % SECOND_NS / MICROSECOND_NS) as u32).to_be_bytes());
        match wide {
            true => datagram[8..16].copy_from_slice(&(number + 1).to_be_bytes()),
            false => datagram[8..12].copy_from_slice(&((number + 1) as u32).to_be_bytes()),
        }
    }

    /// Reads the marks of `datagram`; none if it is not of this flow.
    #[inline]
    pub(crate) fn read(self, datagram: &[u8]) -> Option<Marked> {
        let wide = match self {
            Self::Own { tag } => {
                let header = Header::read(datagram, tag)?;
                let (phase, number) = Phase::of(header.sequence)?;
                return Some(Marked { phase: Some(phase), number, sent_ns: header.sent_ns });
            }
            Self::Iperf3 { wide } => wide,
        };
        let quarter = |at: usize| Some(u32::from_be_bytes(*datagram.get(at..)?.first_chunk()?));
        let number = match wide {
            true => u64::from_be_bytes(*datagram.get(8..)?.first_chunk()?),
            false => u64::from(quarter(8)?),
        };
        // Whatever a stranger writes there, sums of numbers do not wrap.
        let number = number.checked_sub(1).filter(|number| *number < 1 << NUMBER_BITS)?;
        let sent = u64::from(quarter(0)?) * SECOND_NS + u64::from(quarter(4)?) * MICROSECOND_NS;
        Some(Marked { phase: None, number, sent_ns: sent as u32 })
    }
}

/// The tag of one flow's datagrams: the key folded, so that the key itself is not in every datagram.
pub(crate) fn tag(key: &SessionKey, flow: u16) -> u32 {
    // FNV-1a: spreads, and is no secret. The socket is connected; the tag only keeps strays of other trials out.
    let step = |hash: u32, byte: &u8| (hash ^ u32::from(*byte)).wrapping_mul(16_777_619);
    flow.to_be_bytes().iter().fold(key.0.iter().fold(2_166_136_261, step), step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_it_wrote_and_nothing_else() {
        let header = Header { tag: 0xdead_beef, sent_ns: u32::MAX - 1, sequence: Phase::CoolDown.sequence(77) };
        let mut datagram = [0u8; 20];
        header.write(&mut datagram);
        assert_eq!(Header::read(&datagram, header.tag), Some(header));
        assert_eq!(Header::read(&datagram, 1), None);
        assert_eq!(Header::read(&datagram[..15], header.tag), None);
        assert_ne!(tag(&SessionKey([1; 16]), 0), tag(&SessionKey([1; 16]), 1));
    }

    /// Datagrams of iperf3 3.12 as they were captured: second 74082, the 251st with 32 bits, and the first with 64.
    #[test]
    fn datagrams_of_iperf3_are_read_and_written() {
        let narrow = [0, 1, 0x21, 0x62, 0, 7, 0xd1, 0xa6, 0, 0, 0, 251];
        let wide = [0, 1, 0x21, 0x62, 0, 7, 0xd1, 0xa6, 0, 0, 0, 0, 0, 0, 0, 1];
        let at = 74_082 * SECOND_NS + 0x7d1a6 * MICROSECOND_NS;
        for (numbering, bytes, number) in
            [(Numbering::Iperf3 { wide: false }, &narrow[..], 250), (Numbering::Iperf3 { wide: true }, &wide, 0)]
        {
            assert_eq!(numbering.read(bytes), Some(Marked { phase: None, number, sent_ns: at as u32 }));
            assert_eq!((numbering.header(), numbering.read(&bytes[1..])), (bytes.len(), None), "cut short");
            let mut written = vec![0; bytes.len()];
            numbering.write(&mut written, at + 999, Phase::Measured, number);
            assert_eq!(written, bytes);
        }
        let wide = Numbering::Iperf3 { wide: true };
        assert_eq!(wide.read(&[0; 16]), None, "numbers begin at 1");
        assert_eq!(wide.read(&[0xff; 16]), None, "no stream is so long");
    }

    #[test]
    fn phase_and_number_come_apart() {
        for phase in [Phase::WarmUp, Phase::Measured, Phase::CoolDown] {
            assert_eq!(Phase::of(phase.sequence(77)), Some((phase, 77)));
        }
        assert_eq!(Phase::of(u64::MAX), None);
    }
}
