//! The 16 bytes that begin every datagram of a stream: whose it is, when it was sent, and which it is.

use linerate_model::SessionKey;

/// Bytes of the header.
pub(crate) const HEADER: usize = 16;

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

    #[test]
    fn phase_and_number_come_apart() {
        for phase in [Phase::WarmUp, Phase::Measured, Phase::CoolDown] {
            assert_eq!(Phase::of(phase.sequence(77)), Some((phase, 77)));
        }
        assert_eq!(Phase::of(u64::MAX), None);
    }
}
