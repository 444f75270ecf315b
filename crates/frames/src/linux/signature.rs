//! Signature in every test frame: check word, trial tag, stream, number, time of sending; all in network order.
//!
//! The check word makes the 16-bit words of the signature add up to 0xffff, which counts as zero in a UDP or ICMP
//! checksum: numbers and times may change without the checksum. bpf/*.bpf.c uses the same layout.

use linerate_model::SIGNATURE_BYTES;

/// Length of a signature in bytes.
pub(crate) const BYTES: usize = SIGNATURE_BYTES as usize;

/// Fields of a signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Signature {
    /// Tag of the trial.
    pub(crate) tag: u16,
    /// Index of the stream in the trial.
    pub(crate) stream: u16,
    /// Number of the frame in its stream.
    pub(crate) number: u32,
    /// Sending time, on the sending host's monotonic clock.
    pub(crate) time: u64,
}

impl Signature {
    /// Encodes the signature with its check word.
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

    /// Reads a signature. Returns `None` if the check word is wrong.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; BYTES] = bytes.get(..BYTES)?.try_into().ok()?;
        let signature = Self {
            tag: u16::from_be_bytes([bytes[2], bytes[3]]),
            stream: u16::from_be_bytes([bytes[4], bytes[5]]),
            number: u32::from_be_bytes(bytes[6..10].try_into().ok()?),
            time: u64::from_be_bytes(bytes[10..].try_into().ok()?),
        };
        (sum(bytes) == 0xffff).then_some(signature)
    }
}

/// Returns the sum of the Internet checksum (RFC 1071), not complemented.
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
    fn signature_is_read_back() {
        let bytes = SIGNATURE.to_bytes();
        assert_eq!(sum(&bytes), 0xffff);
        assert_eq!(Signature::read(&bytes), Some(SIGNATURE));
    }

    #[test]
    fn changed_bit_is_noticed() {
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
