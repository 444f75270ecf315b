//! Sequence numbers of arrived datagrams: new ones, copies, and reordered ones.

/// Number of remembered sequence numbers below the highest. A datagram with a lower number counts as new and reordered,
/// because it can no longer be recognised as a copy.
const REMEMBERED: u64 = 1 << 16;

/// Relation of a datagram to those that arrived before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// New datagram with the highest number.
    InOrder,
    /// New datagram after one with a higher number (RFC 4737 section 3.3).
    Reordered,
    /// Further copy.
    Copy,
}

/// Record of the datagrams of one flow that have arrived.
#[derive(Debug)]
pub(crate) struct Sequence {
    /// One above the highest number that arrived.
    next: u64,
    seen: Vec<u64>,
    /// Datagrams that arrived, copies left out.
    arrived: u64,
}

impl Default for Sequence {
    fn default() -> Self {
        Self { next: 0, seen: vec![0; (REMEMBERED / 64) as usize], arrived: 0 }
    }
}

impl Sequence {
    /// Records a datagram.
    #[inline]
    pub(crate) fn take(&mut self, number: u64) -> Arrival {
        let arrival = if number >= self.next {
            self.forget(self.next, number);
            self.next = number + 1;
            Arrival::InOrder
        } else if self.next - number > REMEMBERED {
            self.arrived += 1;
            return Arrival::Reordered;
        } else if self.seen[word(number)] & bit(number) != 0 {
            return Arrival::Copy;
        } else {
            Arrival::Reordered
        };
        self.seen[word(number)] |= bit(number);
        self.arrived += 1;
        arrival
    }

    /// One above the highest number that arrived.
    #[inline]
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// Returns the number of datagrams below the highest number that have not arrived.
    #[inline]
    pub(crate) fn missing(&self) -> u64 {
        self.next.saturating_sub(self.arrived)
    }

    /// Clears the bits of `from..=to`, which older numbers used before.
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

    /// Returns the numbers of new, copied and reordered datagrams.
    fn counts(numbers: impl IntoIterator<Item = u64>) -> (u64, u64, u64) {
        let mut sequence = Sequence::default();
        let mut copies = 0;
        let mut reordered = 0;
        for number in numbers {
            let arrival = sequence.take(number);
            copies += u64::from(arrival == Arrival::Copy);
            reordered += u64::from(arrival == Arrival::Reordered);
        }
        (sequence.arrived, copies, reordered)
    }

    #[test]
    fn gaps_are_neither_copies_nor_reordering() {
        assert_eq!(counts(0..200_000), (200_000, 0, 0));
        assert_eq!(counts((0..200_000).step_by(7)), (28_572, 0, 0));
        assert_eq!(counts([0, 5, 1_000_000, 1_000_001, 900_000_000_000]), (5, 0, 0));
    }

    #[test]
    fn copies_are_distinguished_from_reordered_datagrams() {
        assert_eq!(counts([0, 1, 1, 3, 2, 2, 4]), (5, 2, 1));
        // RFC 4737 section 3.3: only the datagram that arrives after a higher number is reordered.
        assert_eq!(counts([0, 2, 3, 1]), (4, 0, 1));
        assert_eq!(counts([5, 5, 5]), (1, 2, 0));
    }

    #[test]
    fn bits_of_old_numbers_are_reused() {
        assert_eq!(counts((0..=REMEMBERED).chain([1, 1 + REMEMBERED, 1 + REMEMBERED])), (REMEMBERED + 2, 2, 0));
        assert_eq!(counts([0, 3 * REMEMBERED, 1]), (3, 0, 1));
        assert_eq!(counts([100, 100 + REMEMBERED - 1, 100]), (2, 1, 0));
    }

    #[test]
    fn datagram_is_missing_until_it_arrives() {
        let mut sequence = Sequence::default();
        let missing = [0, 1, 4, 2, 2, 3, 9].map(|number| {
            sequence.take(number);
            sequence.missing()
        });
        assert_eq!(missing, [0, 0, 2, 1, 1, 0, 4]);
    }
}
