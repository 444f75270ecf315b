//! Which datagrams arrived: new ones, copies, and late ones.

/// Sequence numbers remembered behind the highest. A datagram later than that is counted as new and reordered; whether it
/// is a copy can no longer be told.
const REMEMBERED: u64 = 1 << 16;

/// How a datagram stands to those that arrived before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// New, and above all others.
    InOrder,
    /// New, after one with a higher number (RFC 4737 section 3.3).
    Reordered,
    /// A further copy.
    Copy,
}

/// What has arrived of one flow.
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
    /// Takes note of a datagram.
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

    /// Numbers below the highest that have not arrived.
    #[inline]
    pub(crate) fn missing(&self) -> u64 {
        self.next.saturating_sub(self.arrived)
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

    /// New, copies, reordered.
    fn counts(numbers: impl IntoIterator<Item = u64>) -> (u64, u64, u64) {
        let (mut sequence, mut copies, mut reordered) = (Sequence::default(), 0, 0);
        for number in numbers {
            let arrival = sequence.take(number);
            copies += u64::from(arrival == Arrival::Copy);
            reordered += u64::from(arrival == Arrival::Reordered);
        }
        (sequence.arrived, copies, reordered)
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

    #[test]
    fn what_is_missing_is_told_until_it_arrives() {
        let mut sequence = Sequence::default();
        let missing = [0, 1, 4, 2, 2, 3, 9].map(|number| {
            sequence.take(number);
            sequence.missing()
        });
        assert_eq!(missing, [0, 0, 2, 1, 1, 0, 4]);
    }
}
