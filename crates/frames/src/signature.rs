//! The signature in every test frame: check word, trial tag, stream, number, time of sending; all in network order.
//!
//! The check word makes the 16-bit words of the signature add up to 0xffff, which a UDP or ICMP checksum over them takes
//! for zero: numbers and times may change without the checksum changing. The layout is known to bpf/*.bpf.c too.

use linerate_model::SIGNATURE_BYTES;

/// Its bytes.
pub(crate) const BYTES: usize = SIGNATURE_BYTES as usize;

/// What a signature says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Signature {
    /// The trial.
    pub(crate) tag: u16,
    /// The index of the stream in it.
    pub(crate) stream: u16,
    /// The frame's number in its stream.
    pub(crate) number: u32,
    /// When it was sent, on the sending host's monotonic clock.
    pub(crate) time: u64,
}

impl Signature {
    /// Its bytes, check word included.
    pub(crate) fn to_bytes(self) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        bytes[2..4].copy_from_slice(&self.tag.to_be_bytes());
        bytes[4..6].copy_from_slice(&self.stream.to_be_bytes());
        bytes[6..10].copy_from_slice(&self.number.to_be_bytes());
        bytes[10..].copy_from_slice(&self.time.to_be_bytes());
        let check = !sum(&bytes);
        bytes[..2].copy_from_slice(&check.to_be_bytes());
        bytes
    }

    /// Reads one; none if the check word does not fit.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; BYTES] = bytes.get(..BYTES)?.try_into().ok()?;
        let short = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
        let (number, time) = (bytes[6..10].try_into().ok()?, bytes[10..].try_into().ok()?);
        (sum(bytes) == 0xffff).then(|| Self {
            tag: short(2),
            stream: short(4),
            number: u32::from_be_bytes(number),
            time: u64::from_be_bytes(time),
        })
    }
}

/// The Internet checksum's sum (RFC 1071), not complemented.
pub(crate) fn sum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks(2).map(|pair| u64::from(pair[0]) << 8 | u64::from(pair.get(1).copied().unwrap_or(0)));
    let mut sum: u64 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIGNATURE: Signature = Signature { tag: 0xbeef, stream: 3, number: 70_000, time: 0x0123_4567_89ab_cdef };

    #[test]
    fn what_was_written_is_read() {
        let bytes = SIGNATURE.to_bytes();
        assert_eq!(sum(&bytes), 0xffff);
        assert_eq!(Signature::read(&bytes), Some(SIGNATURE));
    }

    #[test]
    fn a_changed_bit_is_noticed() {
        let bytes = SIGNATURE.to_bytes();
        for bit in 0..BYTES * 8 {
            let mut changed = bytes;
            changed[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Signature::read(&changed), None, "bit {bit}");
        }
        assert_eq!(Signature::read(&bytes[..BYTES - 1]), None);
        assert_eq!(Signature::read(&[0; BYTES]), None);
    }
}
