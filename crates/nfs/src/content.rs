//! Content of files, made so that a reader can verify it.
//!
//! Files consist of blocks of 1 KiB. A block's bytes follow from the trial's seed, the file, the block's place in it
//! and its version, which goes up by one with each write. Its first word is the version; all others look random.

use linerate_model::NfsTask;

/// Bytes of a block.
pub(crate) const BLOCK: usize = NfsTask::UNIT as usize;
const WORDS: usize = BLOCK / 8;

/// The steps of SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014).
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// Block of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BlockId {
    pub(crate) seed: u64,
    pub(crate) file: u32,
    pub(crate) block: u32,
}

impl BlockId {
    /// Appends the block in a version to `into`.
    pub(crate) fn write(self, version: u32, into: &mut Vec<u8>) {
        (0..WORDS).for_each(|index| into.extend_from_slice(&self.word(version, index).to_le_bytes()));
    }

    /// Counts the wrong bytes of `bytes`, read from the block's beginning, if the block may have any version from
    /// `least` to `most`.
    pub(crate) fn wrong(self, bytes: &[u8], least: u32, most: u32) -> usize {
        let (words, rest) = bytes.as_chunks::<8>();
        let Some(first) = words.first() else { return 0 };
        let version = u64::from_le_bytes(*first) ^ self.mark();
        let Some(version) = u32::try_from(version).ok().filter(|version| (least..=most).contains(version)) else {
            // Of another block, too old, or not linerate's at all.
            return bytes.len();
        };
        let mut wrong = 0;
        for (index, word) in words.iter().enumerate() {
            let expected = self.word(version, index).to_le_bytes();
            if *word != expected {
                wrong += differing(word, &expected);
            }
        }
        wrong + differing(rest, &self.word(version, words.len()).to_le_bytes())
    }

    /// Word `index` of the block.
    #[inline]
    fn word(self, version: u32, index: usize) -> u64 {
        let first = self.mark() ^ u64::from(version);
        if index == 0 { first } else { mixed(first.wrapping_add(GOLDEN.wrapping_mul(index as u64))) }
    }

    /// Returns the seed of this block's content.
    #[inline]
    fn mark(self) -> u64 {
        mixed(mixed(self.seed.wrapping_add(GOLDEN)) ^ (u64::from(self.file) << 32 | u64::from(self.block)))
    }
}

fn differing(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).filter(|(a, b)| a != b).count()
}

/// The finalizer of SplitMix64.
#[inline]
pub(crate) fn mixed(mut word: u64) -> u64 {
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK_ID: BlockId = BlockId { seed: 5, file: 3, block: 9 };

    fn block(place: BlockId, version: u32) -> Vec<u8> {
        let mut bytes = Vec::new();
        place.write(version, &mut bytes);
        bytes
    }

    #[test]
    fn a_block_is_right_in_the_versions_it_may_have() {
        let bytes = block(BLOCK_ID, 7);
        assert_eq!(bytes.len(), BLOCK);
        assert_eq!(BLOCK_ID.wrong(&bytes, 7, 7), 0);
        assert_eq!(BLOCK_ID.wrong(&bytes, 0, 9), 0);
        for (least, most) in [(8, 9), (0, 6)] {
            assert_eq!(BLOCK_ID.wrong(&bytes, least, most), BLOCK, "{least} to {most}");
        }
        assert_eq!(BLOCK_ID.wrong(&bytes[..1_001], 7, 7), 0, "the beginning of a block");
        assert_eq!(BLOCK_ID.wrong(&[], 7, 7), 0);
    }

    #[test]
    fn every_byte_is_looked_at() {
        for at in 0..BLOCK {
            let mut bytes = block(BLOCK_ID, 7);
            bytes[at] ^= 1;
            assert!(BLOCK_ID.wrong(&bytes, 7, 7) > 0, "byte {at}");
            assert_eq!(BLOCK_ID.wrong(&bytes[..at], 7, 7), 0);
        }
        let mut bytes = block(BLOCK_ID, 7);
        bytes[100] ^= 1;
        assert_eq!(BLOCK_ID.wrong(&bytes, 7, 7), 1);
    }

    #[test]
    fn no_other_block_will_do() {
        let bytes = block(BLOCK_ID, 7);
        for other in [
            BlockId { seed: 6, ..BLOCK_ID },
            BlockId { file: 9, block: 3, ..BLOCK_ID },
            BlockId { block: 8, ..BLOCK_ID },
        ] {
            assert_eq!(other.wrong(&bytes, 0, u32::MAX), BLOCK, "{other:?}");
        }
        assert_eq!(BLOCK_ID.wrong(&[0; BLOCK], 0, u32::MAX), BLOCK, "a hole");
    }
}
