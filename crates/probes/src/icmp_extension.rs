//! Extensions of ICMP messages (RFC 4884): MPLS labels (RFC 4950).

use linerate_model::MplsLabel;

/// Version of the extension structure (RFC 4884 section 7).
const VERSION: u8 = 2;
const HEADER: usize = 4;
/// Class and type of the MPLS label stack object (RFC 4950 section 4).
const MPLS_LABEL_STACK: [u8; 2] = [1, 1];
/// Most labels that are kept.
const MAX_LABELS: usize = 16;

/// Extensions of an ICMP message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Extensions {
    /// MPLS label stack of the packet at the router, the top first.
    pub(crate) labels: Vec<MplsLabel>,
}

/// Reads an extension structure. A structure with another version or a wrong checksum has no extensions.
pub(crate) fn parse(bytes: &[u8]) -> Extensions {
    let mut extensions = Extensions::default();
    let Some((&[version, _, high, low], mut rest)) = bytes.split_first_chunk::<HEADER>() else { return extensions };
    let has_checksum = [high, low] != [0, 0];
    if version >> 4 != VERSION || (has_checksum && checksum(bytes) != 0) {
        return extensions;
    }
    while let Some((&[high, low, class, kind], _)) = rest.split_first_chunk::<HEADER>() {
        let length = usize::from(u16::from_be_bytes([high, low]));
        let Some(object) = rest.get(..length).filter(|_| length >= HEADER) else { break };
        if [class, kind] == MPLS_LABEL_STACK {
            let entries = object[HEADER..].chunks_exact(4).map(label);
            let room = MAX_LABELS - extensions.labels.len();
            extensions.labels.extend(entries.take(room));
        }
        rest = &rest[length..];
    }
    extensions
}

/// Reads a label stack entry (RFC 3032 section 2.1).
fn label(entry: &[u8]) -> MplsLabel {
    let word = u32::from_be_bytes([entry[0], entry[1], entry[2], entry[3]]);
    MplsLabel { label: word >> 12, traffic_class: (word >> 9 & 7) as u8, ttl: (word & 0xff) as u8 }
}

/// Returns the Internet checksum (RFC 1071): zero if `bytes` contain their own.
pub(crate) fn checksum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)])));
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns a structure of these objects, with its checksum.
    fn structure(objects: &[u8]) -> Vec<u8> {
        let mut bytes = vec![VERSION << 4, 0, 0, 0];
        bytes.extend(objects);
        let sum = checksum(&bytes).to_be_bytes();
        bytes[2..4].copy_from_slice(&sum);
        bytes
    }

    #[test]
    fn labels_are_read_from_the_top() {
        // Label 16,004, class 0, not the bottom, TTL 1; label 24,000, class 5, the bottom, TTL 254. Before them, an unknown object.
        let objects = [0, 8, 9, 9, 1, 2, 3, 4, 0, 12, 1, 1, 0x03, 0xe8, 0x40, 0x01, 0x05, 0xdc, 0x0b, 0xfe];
        let labels = parse(&structure(&objects)).labels;
        let top = MplsLabel { label: 16_004, traffic_class: 0, ttl: 1 };
        assert_eq!(labels, [top, MplsLabel { label: 24_000, traffic_class: 5, ttl: 254 }]);
    }

    #[test]
    fn damaged_structure_has_no_extensions() {
        let whole = structure(&[0, 8, 1, 1, 0x03, 0xe8, 0x41, 0x01]);
        assert_eq!(parse(&whole).labels.len(), 1);
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x10;
            assert_eq!(parse(&damaged), Extensions::default(), "byte {at}");
        }
        assert_eq!(parse(&whole[..whole.len() - 1]), Extensions::default());
    }

    proptest! {
        #[test]
        fn hostile_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..600), objects: Vec<u8>) {
            prop_assert!(parse(&bytes).labels.len() <= MAX_LABELS);
            prop_assert!(parse(&structure(&objects)).labels.len() <= MAX_LABELS);
        }
    }
}
