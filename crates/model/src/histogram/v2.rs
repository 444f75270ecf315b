//! The encoding HdrHistogram V2, uncompressed, of histograms with this crate's bounds.
//!
//! A header of 40 bytes, then the counts of all slots up to the last that is not empty: numbers of variable length, of which a
//! negative one stands for that many empty slots. Java's `AbstractHistogram.encodeIntoByteBuffer` and `ZigZagEncoding` define it.

use super::{DIGITS, LONGEST_NS, SHORTEST_NS};

type Counts = hdrhistogram::Histogram<u64>;

/// The version, and that slots are numbers of up to nine bytes.
const COOKIE: u32 = 0x1c84_9313;
const HEADER: usize = 40;
/// Slots below this hold one value each. Above, there are 1,024 for each power of two.
const SINGLE: u64 = 2048;
const PART_BITS: u32 = SINGLE.ilog2() - 1;

/// Encodes counts.
pub(super) fn encode(counts: &Counts) -> Vec<u8> {
    let mut body = Vec::new();
    let mut next = 0;
    for step in counts.iter_recorded() {
        let slot = slot(step.value_iterated_to());
        match slot - next {
            0 => {}
            // One empty slot is a count.
            1 => put(&mut body, 0),
            empty => put(&mut body, -(empty as i64)),
        }
        put(&mut body, i64::try_from(step.count_at_value()).unwrap_or(i64::MAX));
        next = slot + 1;
    }
    if next == 0 {
        put(&mut body, 0);
    }
    let mut bytes = Vec::with_capacity(HEADER + body.len());
    for number in [COOKIE, body.len() as u32, 0, u32::from(DIGITS)] {
        bytes.extend(number.to_be_bytes());
    }
    for number in [SHORTEST_NS, LONGEST_NS, 1_f64.to_bits()] {
        bytes.extend(number.to_be_bytes());
    }
    bytes.extend(body);
    bytes
}

/// Adds what was encoded to `counts`.
///
/// # Errors
/// It is cut, of another version, or of other bounds.
pub(super) fn decode(bytes: &[u8], counts: &mut Counts) -> Result<(), &'static str> {
    let (header, body) = bytes.split_at_checked(HEADER).ok_or("its header is cut")?;
    let (words, longs) = header.split_at(16);
    let word = |index: usize| u32::from_be_bytes(words.as_chunks().0[index]);
    let long = |index: usize| u64::from_be_bytes(longs.as_chunks().0[index]);
    if word(0) != COOKIE || word(2) != 0 || long(2) != 1_f64.to_bits() {
        return Err("it is of another version");
    }
    if (word(3), long(0), long(1)) != (DIGITS.into(), SHORTEST_NS, LONGEST_NS) {
        return Err("it has other bounds");
    }
    if word(1) as usize != body.len() {
        return Err("it is cut");
    }
    let (mut rest, mut slot) = (body, 0_u64);
    while !rest.is_empty() {
        let number = take(&mut rest).ok_or("it is cut")?;
        let taken = if number < 0 { number.unsigned_abs() } else { 1 };
        if number > 0 {
            let value = value(slot).filter(|value| *value <= LONGEST_NS).ok_or("it has too many slots")?;
            counts.record_n(value, number.unsigned_abs()).map_err(|_| "it has too many slots")?;
        }
        slot = slot.saturating_add(taken);
    }
    Ok(())
}

/// The slot that counts `value`.
fn slot(value: u64) -> u64 {
    let power = value.max(SINGLE / 2).ilog2() - PART_BITS;
    (u64::from(power) << PART_BITS) + (value >> power)
}

/// The least value that a slot counts; none beyond 64 bits.
fn value(slot: u64) -> Option<u64> {
    let Some(power) = (slot >> PART_BITS).checked_sub(1) else { return Some(slot) };
    let top = slot - (power << PART_BITS);
    let power = u32::try_from(power).ok().filter(|power| *power <= top.leading_zeros())?;
    Some(top << power)
}

/// Appends a number: zigzag, then seven bits a byte, the lowest first; a ninth byte has eight.
fn put(bytes: &mut Vec<u8>, number: i64) {
    let mut rest = ((number << 1) ^ (number >> 63)).cast_unsigned();
    for _ in 0..8 {
        if rest < 0x80 {
            bytes.push(rest as u8);
            return;
        }
        bytes.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    bytes.push(rest as u8);
}

/// Takes a number; none if it is cut.
fn take(bytes: &mut &[u8]) -> Option<i64> {
    let mut zigzag = 0_u64;
    for place in 0..9 {
        let byte = *bytes.split_off_first()?;
        let last = place == 8;
        zigzag |= u64::from(if last { byte } else { byte & 0x7f }) << (7 * place);
        if last || byte < 0x80 {
            break;
        }
    }
    Some((zigzag >> 1).cast_signed() ^ -(zigzag & 1).cast_signed())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn empty() -> Counts {
        Counts::new_with_bounds(SHORTEST_NS, LONGEST_NS, DIGITS).expect("bounds")
    }

    #[test]
    fn slots_are_those_of_hdr_histogram() {
        let counts = empty();
        for (index, step) in counts.iter_all().enumerate() {
            let least = counts.lowest_equivalent(step.value_iterated_to());
            assert_eq!(value(index as u64), Some(least));
            assert_eq!((slot(least), slot(step.value_iterated_to())), (index as u64, index as u64));
        }
        assert_eq!(value(u64::MAX), None);
    }

    #[test]
    fn numbers_of_every_length_are_read_back() {
        for number in [0, 1, -1, 63, 64, -64, -65, 1 << 20, -(1 << 40), i64::MAX, i64::MIN] {
            let mut bytes = Vec::new();
            put(&mut bytes, number);
            let mut rest = &bytes[..];
            assert_eq!((take(&mut rest), rest.len()), (Some(number), 0), "{number}");
            assert_eq!(take(&mut &bytes[..bytes.len() - 1]), None);
        }
    }

    #[test]
    fn other_versions_bounds_and_ends_are_refused() {
        let mut counts = empty();
        counts.record(5_000).expect("in bounds");
        let whole = encode(&counts);
        let refused = |bytes: &[u8]| decode(bytes, &mut empty()).expect_err("refused");
        assert_eq!(refused(&whole[..39]), "its header is cut");
        assert_eq!(refused(&whole[..whole.len() - 1]), "it is cut");
        for (byte, why) in [(3, "it is of another version"), (15, "it has other bounds"), (31, "it has other bounds")] {
            let mut other = whole.clone();
            other[byte] ^= 1;
            assert_eq!(refused(&other), why);
        }
        let mut long = whole[..HEADER].to_vec();
        put(&mut long, -1_000_000);
        put(&mut long, 1);
        long[7] = (long.len() - HEADER) as u8;
        assert_eq!(refused(&long), "it has too many slots");
    }

    proptest! {
        #[test]
        fn counts_are_read_back(values in prop::collection::vec((1..=LONGEST_NS, 1..u64::from(u32::MAX)), 0..40)) {
            let mut counts = empty();
            for (value, times) in values {
                counts.record_n(value, times).expect("in bounds");
            }
            let mut read = empty();
            prop_assert_eq!(decode(&encode(&counts), &mut read), Ok(()));
            prop_assert_eq!(read, counts);
        }
    }
}
