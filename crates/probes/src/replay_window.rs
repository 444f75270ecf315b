//! Sequence numbers that a reflector has answered, so that a copied packet gets no second answer.

/// Numbers below the highest that the window distinguishes.
const WIDTH: u32 = 64;

/// Window of sequence numbers, as for IPsec (RFC 4303 section 3.4.3).
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ReplayWindow {
    /// Highest number so far. `None` before the first packet.
    highest: Option<u32>,
    /// Whether each number was seen, from the highest on in the lowest bit.
    seen: u64,
}

impl ReplayWindow {
    /// Returns whether `sequence` is new, and notes it. A number below the window counts as seen.
    pub(crate) fn accept(&mut self, sequence: u32) -> bool {
        let Some(highest) = self.highest else {
            (self.highest, self.seen) = (Some(sequence), 1);
            return true;
        };
        if let Some(ahead) = sequence.checked_sub(highest).filter(|ahead| *ahead > 0) {
            self.seen = self.seen.checked_shl(ahead).unwrap_or(0) | 1;
            self.highest = Some(sequence);
            return true;
        }
        let behind = highest - sequence;
        let bit = 1u64.checked_shl(behind).unwrap_or(0);
        let is_new = behind < WIDTH && self.seen & bit == 0;
        self.seen |= bit;
        is_new
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn numbers_are_new_once_and_within_the_window() {
        let mut window = ReplayWindow::default();
        let numbers = [5, 5, 7, 6, 6, 0, 200, 137, 136, 137, u32::MAX, u32::MAX];
        let accepted = numbers.map(|number| window.accept(number));
        assert_eq!(accepted, [true, false, true, true, false, true, true, true, false, false, true, false]);
    }

    proptest! {
        #[test]
        fn no_number_is_new_twice(numbers in prop::collection::vec(0u32..300, 0..200)) {
            let mut window = ReplayWindow::default();
            let mut accepted = BTreeSet::new();
            for number in numbers {
                let highest = accepted.last().copied();
                let is_new = window.accept(number);
                prop_assert!(!is_new || accepted.insert(number), "{} twice", number);
                let is_recent = highest.is_none_or(|highest| number + WIDTH > highest);
                prop_assert!(is_new || !is_recent || accepted.contains(&number), "{} is refused", number);
            }
        }
    }
}
