//! Which datagrams arrived: new ones, copies, and late ones.

/// Sequence numbers remembered behind the highest. A datagram later than that is counted as new and reordered; whether it
/// is a copy can no longer be told.
const REMEMBERED: u64 = 1 << 16;

/// What has arrived of one flow.
#[derive(Debug)]
pub(crate) struct Sequence {
    /// One above the highest number that arrived.
    next: u64,
    seen: Vec<u64>,
    /// Datagrams that arrived, copies left out.
    pub(crate) arrived: u64,
    /// Further copies.
    pub(crate) duplicates: u64,
    /// Datagrams that arrived after one with a higher number (RFC 4737 section 3.3).
    pub(crate) reordered: u64,
}

impl Default for Sequence {
    fn default() -> Self {
        Self { next: 0, seen: vec![0; (REMEMBERED / 64) as usize], arrived: 0, duplicates: 0, reordered: 0 }
    }
}

impl Sequence {
    /// Takes note of a datagram; false if it is a copy.
    #[inline]
    pub(crate) fn take(&mut self, number: u64) -> bool {
        if number >= self.next {
            self.forget(self.next, number);
            self.next = number + 1;
        } else if self.next - number > REMEMBERED {
            self.reordered += 1;
            self.arrived += 1;
            return true;
        } else if self.seen[word(number)] & bit(number) != 0 {
            self.duplicates += 1;
            return false;
        } else {
            self.reordered += 1;
        }
        self.seen[word(number)] |= bit(number);
        self.arrived += 1;
        true
    }

    /// Clears the places of `from..=to`, which were those of numbers long past.
    #[inline]
    fn forget(&mut self, from: u64, to: u64) {
        if to - from >= REMEMBERED {
            self.seen.fill(0);
            return;
        }
        for number in from..=to {
            self.seen[word(number)] &= !bit(number);
        }
    }
}

#[inline]
fn word(number: u64) -> usize {
    (number % REMEMBERED / 64) as usize
}

#[inline]
fn bit(number: u64) -> u64 {
    1 << (number % 64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(numbers: impl IntoIterator<Item = u64>) -> (u64, u64, u64) {
        let mut sequence = Sequence::default();
        numbers.into_iter().for_each(|number| {
            sequence.take(number);
        });
        (sequence.arrived, sequence.duplicates, sequence.reordered)
    }

    #[test]
    fn in_order_with_gaps_is_neither_late_nor_double() {
        assert_eq!(counts(0..200_000), (200_000, 0, 0));
        assert_eq!(counts((0..200_000).step_by(7)), (28_572, 0, 0));
        assert_eq!(counts([0, 5, 1_000_000, 1_000_001, 900_000_000_000]), (5, 0, 0));
    }

    #[test]
    fn copies_and_late_ones_are_told_apart() {
        assert_eq!(counts([0, 1, 1, 3, 2, 2, 4]), (5, 2, 1));
        // RFC 4737 section 3.3: only the one that comes after a higher one is reordered.
        assert_eq!(counts([0, 2, 3, 1]), (4, 0, 1));
        assert_eq!(counts([5, 5, 5]), (1, 2, 0));
    }

    #[test]
    fn places_are_used_again() {
        assert_eq!(counts((0..=REMEMBERED).chain([1, 1 + REMEMBERED, 1 + REMEMBERED])), (REMEMBERED + 2, 2, 0));
        assert_eq!(counts([0, 3 * REMEMBERED, 1]), (3, 0, 1));
        assert_eq!(counts([100, 100 + REMEMBERED - 1, 100]), (2, 1, 0));
    }
}
