//! How losses fell on the measured window: one by one as by chance, together, or as what exceeds a rate.
//!
//! Two indices of dispersion, variance over expected variance (Cox and Lewis 1966, "The Statistical Analysis of Series of Events",
//! section 6.3), are compared. Both take the intervals of the series.
//!
//! - Losses around their share of what was sent. Errors of a path come by chance, so the losses of an interval follow a binomial
//!   distribution, and the index is about 1. A queue that overflows drops many at a time: the index is larger. A policer that drops what
//!   exceeds its rate of a steady load drops one packet in a fixed number: the index is smaller.
//! - Arrivals around a constant rate, over the same expected variance. Chance lets through its share of what was sent, so this index is
//!   about 1 if the load was steady and larger if it was not. A path that is full lets through its rate whatever was sent: the index is
//!   far smaller. It is known for datagrams only; the retransmits of TCP lower its rate.
//!
//! By chance, an index of n intervals follows a chi-squared distribution of n - 1 degrees of freedom, divided by n - 1.

/// How losses fell on the intervals of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LossPattern {
    /// Many at a time.
    Clustered,
    /// One by one, as by chance.
    ByChance,
    /// As what exceeds a rate: at more regular intervals than by chance, or so that as much arrives whatever was sent.
    Excess,
}

/// Fewer counts, or fewer losses, show no pattern.
const FEWEST_COUNTS: usize = 6;
const FEWEST_LOSSES: f64 = 10.0;
/// Counts whose variance is this many times the expected one do not come by chance, one by one.
const CLUSTERED: f64 = 4.0;
/// Losses in an interval, on average, below which chance and regularity both leave zeros and ones.
const LOSSES_EACH: f64 = 2.0;
/// Intervals with that many losses, at least.
const FEWEST_INTERVALS: usize = 8;
/// A smaller index is rare by chance, and may be that of losses at regular intervals on a host that is not punctual.
const LEAST_BY_CHANCE: f64 = 0.6;
/// Arrivals are independent of what was sent if their index is smaller than that of the losses by this factor.
const INDEPENDENT: f64 = 4.0;

/// What a receiver counted in an interval.
#[derive(Debug, Clone, Copy, Default)]
struct Counted {
    lost: f64,
    /// Packets sent, or any other measure of the traffic.
    sent: f64,
    /// Length in seconds; zero if arrivals are not compared with a rate.
    seconds: f64,
}

impl LossPattern {
    /// Returns the pattern of the losses in each interval of a window with this `traffic`, in any unit; `None` if there are too few.
    pub(crate) fn of(lost: &[f64], traffic: &[f64]) -> Option<Self> {
        let counted = lost.iter().zip(traffic).map(|(lost, sent)| Counted { lost: *lost, sent: *sent, seconds: 0.0 });
        Self::of_intervals(counted.collect())
    }

    /// Returns the pattern of the datagrams that were lost, by those that arrived in each interval and its length in seconds; `None`
    /// if there are too few.
    pub(crate) fn of_datagrams(lost: &[f64], arrived: &[f64], seconds: &[f64]) -> Option<Self> {
        let counted = lost.iter().zip(arrived).zip(seconds).map(|((lost, arrived), seconds)| Counted {
            lost: *lost,
            sent: lost + arrived,
            seconds: *seconds,
        });
        Self::of_intervals(counted.collect())
    }

    fn of_intervals(mut counted: Vec<Counted>) -> Option<Self> {
        // Nothing can be lost where nothing was sent.
        counted.retain(|interval| interval.sent > 0.0);
        let (number, all) = (counted.len(), counted.iter().map(|interval| interval.lost).sum::<f64>());
        if number < FEWEST_COUNTS || all < FEWEST_LOSSES {
            return None;
        }
        if dispersion(&counted) >= CLUSTERED {
            return Some(Self::of_many_at_a_time(&counted));
        }
        let joined = ((LOSSES_EACH * number as f64 / all).ceil() as usize).max(1);
        let wider: Vec<Counted> = counted.chunks_exact(joined).map(Counted::sum).collect();
        if wider.len() < FEWEST_INTERVALS {
            return None;
        }
        let rare = rarely_below(wider.len() - 1);
        let index = dispersion(&wider);
        let of_arrivals = dispersion_of_arrivals(&wider);
        match index {
            CLUSTERED.. => Some(Self::of_many_at_a_time(&wider)),
            _ if of_arrivals.is_some_and(|of_arrivals| of_arrivals < rare) => Some(Self::Excess),
            LEAST_BY_CHANCE.. => {
                // Chance varies the arrivals as much as the losses, a load that is not steady varies them even more.
                let varies = of_arrivals.is_none_or(|of_arrivals| of_arrivals >= LEAST_BY_CHANCE * index.max(1.0));
                varies.then_some(Self::ByChance)
            }
            _ if index < rare => Some(Self::Excess),
            _ => None,
        }
    }

    /// Returns the pattern of losses that vary more than by chance: the losses of a full path vary with the load, its arrivals do not.
    fn of_many_at_a_time(counted: &[Counted]) -> Self {
        match dispersion_of_arrivals(counted) {
            Some(of_arrivals) if INDEPENDENT * of_arrivals <= dispersion(counted) => Self::Excess,
            _ => Self::Clustered,
        }
    }

    /// The pattern of most runs that show one; none if two are as frequent.
    pub(crate) fn of_most(patterns: impl Iterator<Item = Self> + Clone) -> Option<Self> {
        let count = |wanted| patterns.clone().filter(|pattern| *pattern == wanted).count();
        let mut all = [Self::Clustered, Self::ByChance, Self::Excess].map(|pattern| (count(pattern), pattern));
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

impl Counted {
    fn sum(intervals: &[Self]) -> Self {
        intervals.iter().fold(Self::default(), |sum, one| Self {
            lost: sum.lost + one.lost,
            sent: sum.sent + one.sent,
            seconds: sum.seconds + one.seconds,
        })
    }

    /// Variance of the losses if each packet is lost with probability `share`.
    fn variance(self, share: f64) -> f64 {
        self.sent * share * (1.0 - share).max(f64::MIN_POSITIVE)
    }
}

/// Returns the index of dispersion of the losses around their share of what was sent.
fn dispersion(counted: &[Counted]) -> f64 {
    let all = Counted::sum(counted);
    let share = all.lost / all.sent;
    let parts = counted.iter().map(|one| (one.lost - share * one.sent).powi(2) / one.variance(share));
    parts.sum::<f64>() / (counted.len() as f64 - 1.0)
}

/// Returns the same index of the arrivals around their mean rate; `None` if the lengths of the intervals are not known.
fn dispersion_of_arrivals(counted: &[Counted]) -> Option<f64> {
    let all = Counted::sum(counted);
    if all.seconds <= 0.0 {
        return None;
    }
    let share = all.lost / all.sent;
    let rate = (all.sent - all.lost) / all.seconds;
    let parts = counted.iter().map(|one| (one.sent - one.lost - rate * one.seconds).powi(2) / one.variance(share));
    Some(parts.sum::<f64>() / (counted.len() as f64 - 1.0))
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
        assert_eq!(even(&[2.0; 20]), Some(LossPattern::Excess));
        // One in 893 packets at 8,930 a second, in tenths of a second whose borders lie anywhere.
        let policed: Vec<f64> = (0..20).map(|at| f64::from((at + 1) * 7 / 3 - at * 7 / 3)).collect();
        assert_eq!(even(&policed), Some(LossPattern::Excess));
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

    /// Knuth's multiplicative generator, "The Art of Computer Programming" volume 2, section 3.3.4, line 26.
    struct Random(u64);

    impl Random {
        /// Returns a number from 0 to 1.
        fn unit(&mut self) -> f64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 11) as f64 / (1_u64 << 53) as f64
        }

        /// Returns how many of `packets` are lost, each with probability `share`.
        fn lost(&mut self, packets: u64, share: f64) -> f64 {
            (0..packets).filter(|_| self.unit() < share).count() as f64
        }
    }

    /// Losses drawn at random with a fixed start: how often each pattern is found.
    #[test]
    fn losses_by_chance_are_rarely_taken_for_anything_else() {
        let mut random = Random(1);
        for packets in [50, 200, 900] {
            let mut window = || -> Vec<f64> { (0..20).map(|_| random.lost(packets, 0.02)).collect() };
            let found: Vec<_> = (0..1000).filter_map(|_| even(&window())).collect();
            let chance = found.iter().filter(|pattern| **pattern == LossPattern::ByChance).count();
            assert!(found.len() > 400 && chance * 100 >= found.len() * 95, "{chance} of {}", found.len());
        }
    }

    /// Returns the patterns of 300 windows of 20 intervals, in each of which about `packets` are sent, up to `varying` more or less, and
    /// `lost` of them are lost.
    fn drawn(packets: u64, varying: u64, mut lost: impl FnMut(&mut Random, u64) -> f64) -> Vec<LossPattern> {
        let mut random = Random(7);
        let window = |_| {
            let sent: Vec<u64> =
                (0..20).map(|_| packets - varying + (random.unit() * 2.0 * varying as f64) as u64).collect();
            let missing: Vec<f64> = sent.iter().map(|sent| lost(&mut random, *sent)).collect();
            let arrived: Vec<f64> = sent.iter().zip(&missing).map(|(sent, lost)| *sent as f64 - lost).collect();
            LossPattern::of_datagrams(&missing, &arrived, &[0.1; 20])
        };
        (0..300).filter_map(window).collect()
    }

    #[test]
    fn heavy_loss_by_chance_is_told_from_a_rate_that_is_exceeded() {
        let of = |found: &[LossPattern], wanted| found.iter().filter(|pattern| **pattern == wanted).count();
        for share in [0.08, 0.1, 0.25, 0.6] {
            for varying in [0, 3, 100] {
                let found = drawn(900, varying, |random, sent| random.lost(sent, share));
                let chance = of(&found, LossPattern::ByChance);
                assert!(
                    chance * 100 >= found.len() * 95 && chance >= 200,
                    "{share}, {varying}: {chance} of {}",
                    found.len()
                );
                // A path with room for this share of the mean load, give or take a packet at the borders of an interval.
                let room = 900.0 * (1.0 - share);
                let found = drawn(900, varying, |random, sent| (sent as f64 - room + random.unit().round()).max(0.0));
                let excess = of(&found, LossPattern::Excess);
                assert_eq!((excess, found.len()), (300, 300), "{share}, {varying}");
            }
        }
        // Bursts of errors, each of which takes 30 packets in a row.
        let found = drawn(900, 3, |random, sent| (random.lost(sent, 0.1 / 30.0) * 30.0).min(sent as f64));
        assert!(of(&found, LossPattern::Clustered) >= 295, "{}", of(&found, LossPattern::Clustered));
    }

    #[test]
    fn the_pattern_of_most_runs_stands_for_all() {
        use LossPattern::{ByChance, Clustered, Excess};
        assert_eq!(LossPattern::of_most([ByChance, ByChance, Excess].into_iter()), Some(ByChance));
        assert_eq!(LossPattern::of_most([ByChance, Clustered].into_iter()), None);
        assert_eq!(LossPattern::of_most([].into_iter()), None);
    }
}
