//! The 16 bytes that begin every datagram of a stream: whose it is, when it was sent, and which it is.

use linerate_model::SessionKey;

/// Bytes of the header.
pub(crate) const HEADER: usize = 16;

/// The sequence number's top bit marks a datagram of the warm-up.
pub(crate) const WARM_UP: u64 = 1 << 63;

/// What a datagram says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    /// Tells this trial's datagrams from others.
    pub(crate) tag: u32,
    /// The sender's clock in nanoseconds, modulo 2^32: enough for differences of transit times.
    pub(crate) sent_ns: u32,
    /// Counts up from 0 in each phase.
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
        let header = Header { tag: 0xdead_beef, sent_ns: u32::MAX - 1, sequence: WARM_UP | 77 };
        let mut datagram = [0u8; 20];
        header.write(&mut datagram);
        assert_eq!(Header::read(&datagram, header.tag), Some(header));
        assert_eq!(Header::read(&datagram, 1), None);
        assert_eq!(Header::read(&datagram[..15], header.tag), None);
        assert_ne!(tag(&SessionKey([1; 16]), 0), tag(&SessionKey([1; 16]), 1));
    }
}
