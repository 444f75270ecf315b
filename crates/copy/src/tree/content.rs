//! The content of made files: random words, each found by its place alone.

use super::{GAMMA, mix};

/// Bytes of a word.
const WORD: usize = 8;

/// Fills `buffer` with the content from `offset` on of the file that drew `content`.
pub(crate) fn fill(content: u64, offset: u64, buffer: &mut [u8]) {
    let word = |index: u64| mix(content.wrapping_add(index.wrapping_mul(GAMMA))).to_le_bytes();
    let mut index = offset / WORD as u64;
    let skipped = (offset % WORD as u64) as usize;
    let mut rest = buffer;
    if skipped > 0 {
        let head = rest.len().min(WORD - skipped);
        let (start, tail) = rest.split_at_mut(head);
        start.copy_from_slice(&word(index)[skipped..skipped + head]);
        rest = tail;
        index += 1;
    }
    let mut words = rest.chunks_exact_mut(WORD);
    for chunk in &mut words {
        chunk.copy_from_slice(&word(index));
        index += 1;
    }
    let end = words.into_remainder();
    end.copy_from_slice(&word(index)[..end.len()]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_part_is_a_part_of_the_whole(seed: u64, from in 0_usize..200, length in 0_usize..100) {
            let mut whole = [0; 300];
            fill(seed, 0, &mut whole);
            let mut part = vec![0; length];
            fill(seed, from as u64, &mut part);
            prop_assert_eq!(&part[..], &whole[from..from + length]);
        }
    }

    #[test]
    fn it_cannot_be_compressed_by_repetition() {
        let mut content = vec![0; 1 << 16];
        fill(3, 0, &mut content);
        let different: std::collections::HashSet<&[u8]> = content.chunks(4).collect();
        assert!(different.len() > 16_000, "{} of 16,384 differ", different.len());
        let ones: u32 = content.iter().map(|byte| byte.count_ones()).sum();
        assert!(ones.abs_diff(1 << 18) < 4_000, "{ones} of {} bits are set", 1 << 19);
    }
}
