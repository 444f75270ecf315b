//! How losses fell on the measured window: one by one as by chance, together, or at regular intervals.
//!
//! Errors of a path come by chance, so their count in an interval follows a Poisson distribution, whose variance is its mean: their share of
//! what went by then. A queue that overflows drops many at a time: the variance is larger. A policer that drops what exceeds its rate
//! of a steady load drops one packet in so many: the variance is smaller. The measure is the index of dispersion, variance over mean
//! (Cox and Lewis 1966, "The Statistical Analysis of Series of Events", section 6.3); of n intervals with events by chance it
//! follows a chi-squared distribution of n - 1 degrees of freedom, divided by n - 1.

/// How losses fell on the intervals of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LossPattern {
    /// Many at a time.
    Clustered,
    /// One by one, as by chance.
    ByChance,
    /// At more regular intervals than by chance.
    Regular,
}

/// Fewer counts, or fewer losses, show no pattern.
const FEWEST_COUNTS: usize = 6;
const FEWEST_LOSSES: f64 = 10.0;
/// Counts whose variance is so many times their mean do not come by chance, one by one.
const CLUSTERED: f64 = 4.0;
/// To tell chance from regularity takes so many losses in an interval, on average: with fewer both leave zeros and ones.
const LOSSES_EACH: f64 = 2.0;
/// It takes so many of these intervals.
const FEWEST_INTERVALS: usize = 8;
/// A smaller index is rare by chance, and may be that of losses at regular intervals on a host that is not punctual.
const LEAST_BY_CHANCE: f64 = 0.6;

impl LossPattern {
    /// The pattern of the losses in each interval of a window, in which so much `traffic` went by, in any unit; none where there
    /// are too few to tell.
    pub(crate) fn of(counts: &[f64], traffic: &[f64]) -> Option<Self> {
        // Where nothing went by nothing could be lost.
        let (counts, traffic): (Vec<f64>, Vec<f64>) =
            counts.iter().zip(traffic).filter(|(_, traffic)| **traffic > 0.0).unzip();
        let (number, all) = (counts.len(), counts.iter().sum::<f64>());
        if number < FEWEST_COUNTS || all < FEWEST_LOSSES {
            return None;
        }
        if dispersion(&counts, &traffic) >= CLUSTERED {
            return Some(Self::Clustered);
        }
        let joined = ((LOSSES_EACH * number as f64 / all).ceil() as usize).max(1);
        let join = |values: &[f64]| -> Vec<f64> { values.chunks_exact(joined).map(|some| some.iter().sum()).collect() };
        let (wider, traffic) = (join(&counts), join(&traffic));
        if wider.len() < FEWEST_INTERVALS {
            return None;
        }
        match dispersion(&wider, &traffic) {
            CLUSTERED.. => Some(Self::Clustered),
            LEAST_BY_CHANCE.. => Some(Self::ByChance),
            index if index < rarely_below(wider.len() - 1) => Some(Self::Regular),
            _ => None,
        }
    }

    /// The pattern of most runs that show one; none if two are as frequent.
    pub(crate) fn of_most(patterns: impl Iterator<Item = Self> + Clone) -> Option<Self> {
        let count = |wanted| patterns.clone().filter(|pattern| *pattern == wanted).count();
        let mut all = [Self::Clustered, Self::ByChance, Self::Regular].map(|pattern| (count(pattern), pattern));
        all.sort_by_key(|(count, _)| *count);
        let [_, (second, _), (most, pattern)] = all;
        (most > second).then_some(pattern)
    }
}

/// The index that one in a hundred windows stays below where losses come by chance: the first percentile of a chi-squared distribution
/// over its degrees of freedom, by the approximation of Wilson and Hilferty (1931).
fn rarely_below(degrees_of_freedom: usize) -> f64 {
    const FIRST_PERCENTILE: f64 = -2.326;
    let part = 2.0 / (9.0 * degrees_of_freedom as f64);
    (1.0 - part + FIRST_PERCENTILE * part.sqrt()).powi(3)
}

/// The variance of counts over their mean, the index of dispersion, where each mean is the same share of the traffic.
fn dispersion(counts: &[f64], traffic: &[f64]) -> f64 {
    let share = counts.iter().sum::<f64>() / traffic.iter().sum::<f64>();
    let parts =
        counts.iter().zip(traffic).map(|(count, traffic)| (count - share * traffic).powi(2) / (share * traffic));
    parts.sum::<f64>() / (counts.len() as f64 - 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The pattern of these counts where as much goes by in each interval.
    fn even(counts: &[f64]) -> Option<LossPattern> {
        LossPattern::of(counts, &vec![100.0; counts.len()])
    }

    #[test]
    fn too_few_losses_show_no_pattern() {
        assert_eq!(even(&[3.0; 5]), None);
        assert_eq!(even(&[1.0; 9]), None, "nine losses");
        // Fifteen, in intervals of two: seven intervals.
        let few: Vec<f64> = (0..20).map(|at| if at % 4 == 0 { 0.0 } else { 1.0 }).collect();
        assert_eq!(even(&few), None);
    }

    #[test]
    fn clusters_chance_and_regular_losses_are_told_apart() {
        let bursts: Vec<f64> = (0..20).map(|at| if at % 5 == 0 { 20.0 } else { 0.0 }).collect();
        assert_eq!(even(&bursts), Some(LossPattern::Clustered));
        assert_eq!(even(&[2.0; 20]), Some(LossPattern::Regular));
        // One in 893 packets at 8,930 a second, in tenths of a second whose borders lie anywhere.
        let policed: Vec<f64> = (0..20).map(|at| f64::from((at + 1) * 7 / 3 - at * 7 / 3)).collect();
        assert_eq!(even(&policed), Some(LossPattern::Regular));
        let chance = [3.0, 1.0, 2.0, 0.0, 4.0, 2.0, 1.0, 3.0, 5.0, 2.0, 0.0, 1.0, 2.0, 3.0, 1.0, 2.0];
        assert_eq!(even(&chance), Some(LossPattern::ByChance));
        // The same share of a load that varies: as many are lost as go by.
        let traffic: Vec<f64> = (0..16).map(|at| if at % 2 == 0 { 100.0 } else { 2_000.0 }).collect();
        let lost: Vec<f64> = chance.iter().zip(&traffic).map(|(lost, traffic)| lost * traffic / 100.0).collect();
        assert_eq!(even(&lost), Some(LossPattern::Clustered));
        assert_ne!(LossPattern::of(&[1.0, 20.0].repeat(8), &traffic), Some(LossPattern::Clustered));
    }

    #[test]
    fn the_border_to_regular_losses_is_the_first_percentile() {
        // Tables of the chi-squared distribution: 1.239 of 7 degrees of freedom, 7.633 of 19.
        assert!((rarely_below(7) - 1.239 / 7.0).abs() < 0.01, "{}", rarely_below(7));
        assert!((rarely_below(19) - 7.633 / 19.0).abs() < 0.01, "{}", rarely_below(19));
    }

    /// Losses drawn at random with a fixed start: how often each pattern is found.
    #[test]
    fn losses_by_chance_are_rarely_taken_for_anything_else() {
        // Knuth's multiplicative generator, "The Art of Computer Programming" volume 2, section 3.3.4, line 26.
        let mut state = 1_u64;
        let mut unit = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1_u64 << 53) as f64
        };
        for packets in [50, 200, 900] {
            let mut window =
                || -> Vec<f64> { (0..20).map(|_| (0..packets).filter(|_| unit() < 0.02).count() as f64).collect() };
            let found: Vec<_> = (0..1000).filter_map(|_| even(&window())).collect();
            let chance = found.iter().filter(|pattern| **pattern == LossPattern::ByChance).count();
            assert!(found.len() > 400 && chance * 100 >= found.len() * 95, "{chance} of {}", found.len());
        }
    }

    #[test]
    fn the_pattern_of_most_runs_stands_for_all() {
        use LossPattern::{ByChance, Clustered, Regular};
        assert_eq!(LossPattern::of_most([ByChance, ByChance, Regular].into_iter()), Some(ByChance));
        assert_eq!(LossPattern::of_most([ByChance, Clustered].into_iter()), None);
        assert_eq!(LossPattern::of_most([].into_iter()), None);
    }
}
