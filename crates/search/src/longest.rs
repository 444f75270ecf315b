//! The longest burst that comes back whole: a binary search with loss verification (RFC 9004 section 5.2, after ETSI GS
//! NFV-TST 009 section 12.3.3).
//!
//! 1. From a first guess the length doubles its distance, upwards while bursts come back whole, downwards while they do not.
//! 2. Between a length that came back whole and one that did not, the next is halfway.
//! 3. A burst that lost frames is sent once more: what came between by chance will hardly do so twice.
//! 4. Where what arrived tells the likely answer, that length and the one above it come before any other halving.

use super::share;
use linerate_units::Ratio;

/// A search for one length, in frames.
#[derive(Debug, Clone)]
pub struct Longest {
    maximum: u64,
    width: Ratio,
    guess: u64,
    step: u64,
    lower: Option<u64>,
    upper: Option<u64>,
    /// The length that is due has lost frames once.
    doubted: bool,
    /// The likely answer.
    suspected: Option<u64>,
}

impl Longest {
    /// A search up to `maximum` that begins at `guess` with steps of `step`, until the answer is known to a share `width`.
    pub fn new(guess: u64, step: u64, maximum: u64, width: Ratio) -> Self {
        let maximum = maximum.max(1);
        let (guess, step) = (guess.clamp(1, maximum), step.max(1));
        Self { maximum, width, guess, step, lower: None, upper: None, doubted: false, suspected: None }
    }

    /// The length of the next burst; none when the search is done. Asking again without recording changes nothing.
    pub fn next(&self) -> Option<u64> {
        let next = self.by_halves()?;
        let likely = self.suspected.into_iter().flat_map(|length| [length, length.saturating_add(1)]);
        let open = |length: &u64| self.upper.is_some_and(|upper| self.lower.unwrap_or(0) < *length && *length < upper);
        Some(likely.into_iter().find(open).unwrap_or(next))
    }

    fn by_halves(&self) -> Option<u64> {
        match (self.lower, self.upper) {
            (None, None) => Some(self.guess),
            (Some(lower), None) => (lower < self.maximum).then(|| lower.saturating_add(self.step).min(self.maximum)),
            (None, Some(upper)) => (upper > 1).then(|| upper.saturating_sub(self.step).max(1)),
            (Some(lower), Some(upper)) => {
                (upper - lower > share(upper, self.width).max(1)).then(|| lower.midpoint(upper))
            }
        }
    }

    /// Takes what became of the burst last asked for.
    pub fn record(&mut self, whole: bool) {
        let Some(length) = self.next() else { return };
        if !whole && !self.doubted {
            self.doubted = true;
            return;
        }
        self.doubted = false;
        *(if whole { &mut self.lower } else { &mut self.upper }) = Some(length);
        if self.lower.is_none() || self.upper.is_none() {
            self.step = self.step.saturating_mul(2);
        }
    }

    /// What arrived of the burst last recorded says that `length` is the answer. It decides nothing by itself, and says
    /// nothing while that burst is in doubt.
    pub fn suspect(&mut self, length: u64) {
        if !self.doubted {
            self.suspected = Some(length);
        }
    }

    /// Bursts longer than `maximum` cannot be sent.
    pub fn cap(&mut self, maximum: u64) {
        self.maximum = self.maximum.min(maximum.max(1));
        self.guess = self.guess.min(self.maximum);
    }

    /// The longest length that came back whole, and the shortest that did not.
    pub fn bounds(&self) -> (Option<u64>, Option<u64>) {
        (self.lower, self.upper)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn run(mut search: Longest, mut whole: impl FnMut(u64) -> bool) -> (Longest, u32) {
        let mut bursts = 0;
        while let Some(length) = search.next() {
            assert_eq!(search.next(), Some(length), "asking twice");
            search.record(whole(length));
            bursts += 1;
            assert!(bursts < 300, "does not end: {search:?}");
        }
        (search, bursts)
    }

    const EXACT: Ratio = Ratio::new(0, 1);

    #[test]
    fn a_buffer_is_found_to_the_frame_from_below_and_from_above() {
        for guess in [1, 16, 270, 271, 5_000] {
            let (search, bursts) = run(Longest::new(guess, 16, 1_000_000, EXACT), |length| length <= 270);
            assert_eq!(search.bounds(), (Some(270), Some(271)), "from {guess}");
            assert!(bursts <= 40, "{bursts} from {guess}");
        }
    }

    #[test]
    fn a_good_guess_saves_most_of_the_search() {
        let (search, bursts) = run(Longest::new(270, 1, 1_000_000, EXACT), |length| length <= 270);
        assert!(search.bounds().0 == Some(270) && bursts <= 5, "{bursts}");
    }

    #[test]
    fn one_loss_by_chance_is_not_believed() {
        let mut bursts = 0;
        let (search, _) = run(Longest::new(16, 16, 1_000_000, EXACT), |length| {
            bursts += 1;
            length <= 1_000 && bursts % 3 != 0
        });
        assert_eq!(search.bounds(), (Some(1_000), Some(1_001)));
    }

    #[test]
    fn a_likely_answer_is_tried_first_and_decides_nothing() {
        for (says, most) in [(270, 12), (100, 30), (0, 30), (5_000, 30)] {
            let (mut search, mut bursts) = (Longest::new(64, 64, 1_000_000, EXACT), 0);
            while let Some(length) = search.next() {
                search.record(length <= 270);
                if length > 270 {
                    search.suspect(says);
                    assert!(!search.doubted || search.next() == Some(length), "in doubt the same is sent again");
                }
                bursts += 1;
            }
            assert_eq!(search.bounds(), (Some(270), Some(271)), "{says}");
            assert!(bursts <= most, "{bursts} where {says} is said");
        }
    }

    #[test]
    fn the_ends_are_answers() {
        assert_eq!(run(Longest::new(16, 16, 5_000, EXACT), |_| true).0.bounds(), (Some(5_000), None));
        assert_eq!(run(Longest::new(16, 16, 5_000, EXACT), |_| false).0.bounds(), (None, Some(1)));
        let mut search = Longest::new(16, 16, 5_000, EXACT);
        search.record(true);
        search.cap(20);
        assert_eq!(search.next(), Some(20));
    }

    proptest! {
        #[test]
        fn any_device_ends_with_ordered_bounds(
            seed: u64,
            buffer in 1u64..1_000_000,
            wild in 0u64..100,
            guess in 0u64..2_000_000,
            step in 0u64..1_000,
            parts in 0u64..50,
        ) {
            let mut draw = seed;
            let (search, _) = run(Longest::new(guess, step, 500_000, Ratio::new(parts, 1000)), |length| {
                draw = draw.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
                if (draw >> 33) % 100 < wild { draw >> 63 == 0 } else { length <= buffer }
            });
            let (lower, upper) = search.bounds();
            prop_assert!(lower.is_some() || upper == Some(1));
            prop_assert!(upper.is_none_or(|upper| lower.is_none_or(|lower| lower < upper)));
            if wild == 0 {
                prop_assert!(lower.is_some_and(|lower| lower <= buffer));
                prop_assert!(upper.is_none_or(|upper| upper > buffer));
            }
        }
    }
}
