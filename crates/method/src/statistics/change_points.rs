//! Where the level of a series changed.

use super::median;
use rand::rngs::SmallRng;
use rand::seq::SliceRandom as _;
use rand::{Rng, SeedableRng as _};

/// Probability that a series without any change is said to have one.
pub const FALSE_ALARMS: f64 = 0.01;
/// Fewest values that are tested: of fewer, hardly any order is so rare by chance alone that it would count as a change.
pub const FEWEST: usize = 12;
/// Random orders that a series is compared with.
const ORDERS: u32 = 999;
/// Splits whose statistic is at least this share of the largest may be the place of a change.
const NEARLY: f64 = 0.9;

/// A change of level.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ChangePoint {
    /// Index of the first value at the new level.
    pub at: usize,
    /// The p-value of the test by which it was found.
    pub p: f64,
}

/// Returns where the level of `values` changed, in their order; values that are not finite are no part of a series.
///
/// Each stretch is split where the ranks on both sides differ most: the maximum of standardised Mann-Whitney statistics
/// (Hawkins and Deng, Journal of Quality Technology 42, 2010). The largest of all stretches is compared with those of random
/// orders within the stretches, and splitting ends at the first that is not significant (Matteson and James, Journal of the
/// American Statistical Association 109, 2014, section 2.3). Its p-value counts the observed order too (Phipson and Smyth,
/// Statistical Applications in Genetics and Molecular Biology 9, 2010), so that a series without a change has one found with a
/// probability of at most [`FALSE_ALARMS`], whatever the distribution. Ranks make single outliers harmless.
///
/// Ranks tell that a level changed better than where, because they know no distances. The place is therefore that of the least
/// absolute deviations from the medians of both sides (Bai, Econometric Theory 11, 1995), among splits of nearly the largest statistic.
///
/// The test takes the order of values without a change as random: results that drift slowly show as changes.
pub fn change_points(values: &[f64]) -> Vec<ChangePoint> {
    if values.len() < FEWEST || values.iter().any(|value| !value.is_finite()) {
        return Vec::new();
    }
    // The orders are the same whenever the same series is tested: a page that is loaded again shows the same.
    let mut random = SmallRng::seed_from_u64(values.len() as u64);
    let mut stretches = vec![Stretch::of(0, values)];
    let mut found = Vec::new();
    while let Some((index, best)) = largest(&stretches) {
        let Some(p) = significance(&stretches, best, &mut random) else { break };
        let stretch = stretches.swap_remove(index);
        let (from, end) = (stretch.from, stretch.from + stretch.ranks.len());
        let at = from + stretch.place(&values[from..end], best);
        found.push(ChangePoint { at, p });
        stretches.extend([Stretch::of(from, &values[from..at]), Stretch::of(at, &values[at..end])]);
    }
    found.sort_by_key(|change| change.at);
    found
}

/// Values between two changes.
struct Stretch {
    /// Index of its first value.
    from: usize,
    /// The rank of each of its values less their mean.
    ranks: Vec<f64>,
}

impl Stretch {
    fn of(from: usize, values: &[f64]) -> Self {
        Self { from, ranks: centred_ranks(values) }
    }

    /// How many of its `values` are before the change whose statistic is `best`.
    fn place(&self, values: &[f64], best: f64) -> usize {
        let near = splits(&self.ranks).filter(|(_, statistic)| *statistic >= best * NEARLY);
        let deviations = |at: usize| deviations(&values[..at]) + deviations(&values[at..]);
        let places = near.map(|(at, _)| (at, deviations(at)));
        places.min_by(|(_, one), (_, other)| one.total_cmp(other)).map_or(0, |(at, _)| at)
    }
}

/// The stretch with the largest statistic, and that statistic; none where no values differ within a stretch.
fn largest(stretches: &[Stretch]) -> Option<(usize, f64)> {
    let all = stretches.iter().map(|stretch| largest_statistic(&stretch.ranks)).enumerate();
    all.filter(|(_, statistic)| *statistic > 0.0).max_by(|(_, one), (_, other)| one.total_cmp(other))
}

/// The sum of absolute deviations from the median.
fn deviations(values: &[f64]) -> f64 {
    let middle = median(values.to_vec()).unwrap_or_default();
    values.iter().map(|value| (value - middle).abs()).sum()
}

/// How probable a statistic as large as `observed` is if nothing changed within the stretches; none where that is not significant.
fn significance(stretches: &[Stretch], observed: f64, random: &mut impl Rng) -> Option<f64> {
    let most = (FALSE_ALARMS * f64::from(ORDERS + 1)).round() as u32;
    let mut orders: Vec<Vec<f64>> = stretches.iter().map(|stretch| stretch.ranks.clone()).collect();
    let mut as_large = 1;
    for _ in 0..ORDERS {
        let shuffled = orders.iter_mut().map(|ranks| {
            ranks.shuffle(random);
            largest_statistic(ranks)
        });
        // Rounding must not make an equal statistic smaller.
        as_large += u32::from(shuffled.fold(0.0, f64::max) >= observed - 1e-9);
        // What is not significant by now will not be: most series are done after a few orders.
        if as_large > most {
            return None;
        }
    }
    Some(f64::from(as_large) / f64::from(ORDERS + 1))
}

/// The largest statistic of all splits; zero where all ranks are equal.
fn largest_statistic(ranks: &[f64]) -> f64 {
    splits(ranks).map(|(_, statistic)| statistic).fold(0.0, f64::max)
}

/// Each split of ranks whose mean is zero: how many are before it, and their standardised sum; nothing where all ranks are equal.
fn splits(ranks: &[f64]) -> impl Iterator<Item = (usize, f64)> {
    let count = ranks.len() as f64;
    let squares: f64 = ranks.iter().map(|rank| rank * rank).sum();
    // The variance of a sum of so many ranks drawn without replacement, but for their number; equal values are allowed for.
    let unit = squares / (count * (count - 1.0));
    let before = if squares > 0.0 { &ranks[..ranks.len() - 1] } else { &[] };
    before.iter().zip(1..).scan(0.0, move |sum, (rank, at)| {
        *sum += rank;
        let drawn = at as f64;
        Some((at, f64::abs(*sum) / (drawn * (count - drawn) * unit).sqrt()))
    })
}

/// The rank of each value, less the mean of all; equal values share the mean of their ranks.
fn centred_ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|one, other| values[*one].total_cmp(&values[*other]));
    let mut ranks = vec![0.0; values.len()];
    let mut placed = 0;
    for equal in order.chunk_by(|one, other| values[*one] == values[*other]) {
        let rank = placed as f64 + (equal.len() + 1) as f64 / 2.0 - (values.len() + 1) as f64 / 2.0;
        equal.iter().for_each(|index| ranks[*index] = rank);
        placed += equal.len();
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::RngExt as _;
    use statrs::distribution::{Binomial, DiscreteCDF as _};

    /// Repeats of a measurement: mostly near a level, now and then an outlier, some equal to the last digit.
    fn noise(random: &mut SmallRng) -> f64 {
        let near: f64 = (0..4).map(|_| random.random::<f64>() - 0.5).sum();
        let value = if random.random_bool(0.05) { near * 30.0 } else { near };
        (value * 10.0).round() / 10.0
    }

    fn places(values: &[f64]) -> Vec<usize> {
        change_points(values).iter().map(|change| change.at).collect()
    }

    /// Many series in which nothing changes: no more than the stated share has a change, nor far less.
    #[test]
    fn false_alarms_are_as_rare_as_stated() {
        const SERIES: u64 = 1_000;
        let mut random = SmallRng::seed_from_u64(22);
        let alarms = (0..SERIES)
            .filter(|number| {
                let count = FEWEST + *number as usize % 20;
                let values: Vec<f64> = (0..count).map(|_| noise(&mut random)).collect();
                !change_points(&values).is_empty()
            })
            .count() as u64;
        let expected = Binomial::new(FALSE_ALARMS, SERIES).expect("a distribution");
        let (fewest, most) = (expected.inverse_cdf(1e-4), expected.inverse_cdf(1.0 - 1e-4));
        assert!((fewest..=most).contains(&alarms), "{alarms} alarms in {SERIES} series, expected {fewest} to {most}");
    }

    /// A second change is not easier found by chance because there was a first.
    #[test]
    fn a_change_does_not_bring_false_ones_with_it() {
        const SERIES: u64 = 300;
        let mut random = SmallRng::seed_from_u64(9);
        let (mut found, mut more) = (0, 0);
        for _ in 0..SERIES {
            let values: Vec<f64> = (0..40).map(|at| noise(&mut random) + if at < 25 { 0.0 } else { 4.0 }).collect();
            let places = places(&values);
            found += u64::from(places.iter().any(|at| (23..=27).contains(at)));
            more += u64::from(places.len() > 1);
        }
        let most = Binomial::new(FALSE_ALARMS, SERIES).expect("a distribution").inverse_cdf(1.0 - 1e-4);
        assert!(found >= SERIES * 4 / 5, "found {found} of {SERIES}");
        assert!(more <= most, "{more} of {SERIES} have more than one change, at most {most} were expected");
    }

    #[test]
    fn changes_are_found_where_they_are() {
        let mut random = SmallRng::seed_from_u64(3);
        let levels = [940.0, 800.0, 800.0, 941.0];
        let values: Vec<f64> = (0..80).map(|at| levels[at / 20] + noise(&mut random)).collect();
        let found = places(&values);
        // An outlier beside a change may belong to either side.
        let near = found.iter().zip([20usize, 60]).all(|(at, planted)| at.abs_diff(planted) <= 2);
        assert!(found.len() == 2 && near, "{found:?}");
        // A small change soon after a large one does not draw its place to itself.
        let levels = |at| {
            if at < 16 {
                77.0
            } else if at < 34 {
                93.4
            } else {
                94.0
            }
        };
        let two: Vec<f64> = (0..46).map(|at| levels(at) + f64::from(at % 5) / 10.0).collect();
        assert_eq!(places(&two), [16, 34]);
        let late: Vec<f64> = (0..60).map(|at| if at < 55 { 94.0 } else { 90.0 } + f64::from(at % 4) / 10.0).collect();
        assert_eq!(places(&late), [55], "five runs after it are enough");
        let fewest: Vec<f64> = (0..FEWEST).map(|at| if at < 6 { at as f64 } else { 50.0 + at as f64 }).collect();
        assert_eq!(places(&fewest), [6]);
    }

    #[test]
    fn what_cannot_be_tested_has_no_change() {
        for values in [vec![], vec![1.0], vec![1.0, 2.0], vec![5.0; 50], vec![f64::NAN; 20]] {
            assert_eq!(places(&values), Vec::<usize>::new(), "{values:?}");
        }
        let outlier: Vec<f64> = (0..30).map(|at| if at == 12 { 1e12 } else { f64::from(at % 3) }).collect();
        assert_eq!(places(&outlier), Vec::<usize>::new());
    }
}
