//! Random events of a path: a seeded generator, and frames lost singly or in runs.

use linerate_units::Ratio;

/// A generator of random numbers (SplitMix64: Steele, Lea and Flood, OOPSLA 2014). Equal seeds give equal numbers.
#[derive(Debug, Clone)]
pub(crate) struct Chance(u64);

/// Probability, in parts of 2^64.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Likelihood(u128);

impl Likelihood {
    pub(crate) const NEVER: Self = Self(0);

    /// Converts a ratio from 0 to 1. `None` disables the fault.
    pub(crate) fn of(ratio: Option<Ratio>) -> Self {
        ratio.map_or(Self::NEVER, |ratio| Self((u128::from(ratio.part) << 64) / u128::from(ratio.of.max(1))))
    }

    /// Returns a probability of one in `count`.
    fn one_in(count: u32) -> Self {
        Self((1 << 64) / u128::from(count.max(1)))
    }
}

impl Chance {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number of 64 random bits.
    pub(crate) fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut number = self.0;
        number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        number ^ (number >> 31)
    }

    /// Whether it happens this time.
    pub(crate) fn happens(&mut self, likelihood: Likelihood) -> bool {
        // What never happens costs no number.
        likelihood != Likelihood::NEVER && u128::from(self.number()) < likelihood.0
    }
}

/// Random losses of frames.
#[derive(Debug, Clone)]
pub(crate) enum Loss {
    /// Each by itself.
    Single(Likelihood),
    /// In runs, of geometrically distributed length (Gilbert, Bell System Technical Journal, 1960).
    Runs {
        /// A run begins with the next frame.
        begins: Likelihood,
        /// A run has ended with the last frame.
        ends: Likelihood,
        /// The last frame was lost.
        lost: bool,
    },
}

impl Loss {
    /// Loses `share` of the frames, `mean` in a row on average; without a mean each by itself.
    pub(crate) fn new(share: Option<Ratio>, mean: Option<u32>) -> Self {
        let (Some(share), Some(mean)) = (share, mean) else { return Self::Single(Likelihood::of(share)) };
        // Of the two states' shares: lost / passed = begins / ends.
        let passed = u128::from(share.of - share.part.min(share.of)) * u128::from(mean);
        let begins = Likelihood((u128::from(share.part) << 64).checked_div(passed).unwrap_or(1 << 64));
        Self::Runs { begins, ends: Likelihood::one_in(mean), lost: false }
    }

    /// Whether the next frame is lost.
    pub(crate) fn takes(&mut self, chance: &mut Chance) -> bool {
        match self {
            Self::Single(likelihood) => chance.happens(*likelihood),
            Self::Runs { begins, ends, lost } => {
                *lost = if *lost { !chance.happens(*ends) } else { chance.happens(*begins) };
                *lost
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAMES: u32 = 1_000_000;

    /// The share of frames lost, and the mean length of a run.
    fn lost(share: &str, mean: Option<u32>) -> (f64, f64) {
        let mut loss = Loss::new(Some(share.parse().expect("a ratio")), mean);
        let mut chance = Chance::new(7);
        let mut count = 0u32;
        let mut runs = 0u32;
        let mut last = false;
        for _ in 0..FRAMES {
            let taken = loss.takes(&mut chance);
            count += u32::from(taken);
            runs += u32::from(taken && !last);
            last = taken;
        }
        (f64::from(count) / f64::from(FRAMES), f64::from(count) / f64::from(runs.max(1)))
    }

    #[test]
    fn single_losses_have_their_share() {
        for (text, share) in [("1%", 0.01), ("1/1000", 0.001), ("30%", 0.3)] {
            let (count, run) = lost(text, None);
            // Four standard deviations of a binomial count.
            let bound = 4.0 * (share * (1.0 - share) / f64::from(FRAMES)).sqrt();
            assert!((count - share).abs() < bound, "{text}: {count}");
            assert!((run - 1.0 / (1.0 - share)).abs() < 0.05, "{text}: runs of {run}");
        }
        assert_eq!(lost("0", None).0, 0.0);
        assert_eq!(lost("100%", None).0, 1.0);
    }

    #[test]
    fn runs_have_their_share_and_mean_length() {
        for (text, share, mean) in [("1%", 0.01, 8), ("20%", 0.2, 3), ("50%", 0.5, 1)] {
            let (count, run) = lost(text, Some(mean));
            assert!((count / share - 1.0).abs() < 0.1, "{text}: {count}");
            assert!((run / f64::from(mean) - 1.0).abs() < 0.1, "{text}: runs of {run}, not {mean}");
        }
    }

    #[test]
    fn equal_seeds_give_equal_numbers() {
        let numbers = |seed| {
            let mut chance = Chance::new(seed);
            [chance.number(), chance.number(), chance.number()]
        };
        // The generator's published first numbers for seed 1234567.
        assert_eq!(
            numbers(1_234_567),
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        );
        assert_eq!(numbers(1), numbers(1));
        assert_ne!(numbers(1), numbers(2));
    }
}
