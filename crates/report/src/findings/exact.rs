//! Tests whose p-values are counted, not approximated: published data often have one value a cell, and so no variance.
//!
//! None of them assumes a distribution. Each says in its document what is held equally likely if there is no effect.

use crate::language::Language;
use crate::said;

/// Below this p-value a sentence is said.
pub(super) const SIGNIFICANT: f64 = 0.05;

/// The two-sided sign test over pairs, ties left out: without an effect either of a pair is the larger equally often.
/// The binomial distribution of wins (Conover, Practical Nonparametric Statistics, section 3.4).
pub(super) fn sign_test(wins: usize, losses: usize) -> f64 {
    (2.0 * binomial_tail(wins + losses, wins.max(losses))).min(1.0)
}

/// The chance of `least` or more heads in `throws` of a fair coin.
fn binomial_tail(throws: usize, least: usize) -> f64 {
    (least..=throws).map(|heads| (ln_choose(throws, heads) - throws as f64 * 2f64.ln()).exp()).sum::<f64>().min(1.0)
}

/// Fisher's exact test, one-sided: `marked` things of `all` are spread over a group of `group`; the chance that it holds as
/// many as `inside` or more (the hypergeometric distribution).
pub(super) fn fisher(all: usize, marked: usize, group: usize, inside: usize) -> f64 {
    let most = marked.min(group);
    let least = (marked + group).saturating_sub(all);
    let chance = |k: usize| (ln_choose(marked, k) + ln_choose(all - marked, group - k) - ln_choose(all, group)).exp();
    (inside.max(least)..=most).map(chance).sum::<f64>().min(1.0)
}

/// Kendall's test for a trend within blocks, one-sided towards growth: without one, each order of a block's values is
/// equally likely. The statistic is the sum over blocks of rising less falling pairs. The p-value is counted over all
/// orders where that is little work, else Hoeffding's bound on it (Journal of the American Statistical Association 58, 1963,
/// theorem 2).
pub(super) fn trend_test(blocks: &[Vec<f64>]) -> Trend {
    let mut trend = Trend { rising: 0, falling: 0, pairs: 0, p: 1.0, counted: true };
    let (mut distribution, mut squares, mut work) = (vec![1.0], 0.0, 0usize);
    for block in blocks {
        let pairs = block
            .iter()
            .enumerate()
            .flat_map(|(index, early)| block[index + 1..].iter().map(move |late| (early, late)));
        let (rising, falling) = pairs.fold((0, 0), |(rising, falling), (early, late)| {
            (rising + usize::from(late > early), falling + usize::from(late < early))
        });
        let all = block.len() * block.len().saturating_sub(1) / 2;
        trend.rising += rising;
        trend.falling += falling;
        trend.pairs += all;
        // A block's part lies between minus and plus its untied pairs.
        squares += (2.0 * (rising + falling) as f64).powi(2);
        work = work.saturating_add(distribution.len().saturating_mul(all + 1));
        if work <= MOST_WORK && all <= MOST_PAIRS {
            distribution = convolved(&distribution, &inversions(block));
        } else {
            work = usize::MAX;
        }
    }
    let lead = trend.rising as f64 - trend.falling as f64;
    trend.counted = work != usize::MAX;
    trend.p = if !trend.counted {
        if lead > 0.0 { (-2.0 * lead * lead / squares).exp() } else { 1.0 }
    } else {
        // So many falling pairs or fewer.
        distribution[..=trend.falling].iter().sum::<f64>().min(1.0)
    };
    trend
}

/// Steps of a count that takes no noticeable time, and pairs in one block.
const MOST_WORK: usize = 4_000_000;
const MOST_PAIRS: usize = 500;

/// What [`trend_test`] found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Trend {
    /// Pairs of levels in which the higher level has the higher value.
    pub(super) rising: usize,
    /// Pairs in which it has the lower one.
    pub(super) falling: usize,
    /// All pairs.
    pub(super) pairs: usize,
    /// The p-value, or a bound that it is not above.
    pub(super) p: f64,
    /// It is the p-value itself.
    counted: bool,
}

impl Trend {
    /// The test, for several blocks of which each is looked at.
    pub(super) fn test(&self, lang: Language) -> String {
        match self.counted {
            true => said!(lang, "findings-exact-kendall"),
            false => said!(lang, "findings-exact-kendall-bounded"),
        }
    }
}

/// How likely each number of falling pairs is among all orders of `values`, equal ones counting as neither: a Gaussian
/// multinomial coefficient, scaled to sum one (Stanley, Enumerative Combinatorics 1, proposition 1.7.1).
fn inversions(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let mut placed = 0;
    let mut distribution = vec![1.0];
    for group in sorted.chunk_by(|a, b| a == b) {
        distribution = convolved(&distribution, &gaussian(placed + group.len(), group.len()));
        placed += group.len();
    }
    distribution
}

/// The Gaussian binomial coefficient of `n` over `k`, scaled to sum one.
fn gaussian(n: usize, k: usize) -> Vec<f64> {
    // Row by row as Pascal's triangle: G(n, k) = G(n-1, k-1) + q^k G(n-1, k), each term by its share of the orders.
    let mut row: Vec<Vec<f64>> = vec![vec![1.0]];
    for n in 1..=n {
        let mut next = vec![vec![1.0]];
        for k in 1..=n.min(k) {
            let mut sum = vec![0.0; k * (n - k) + 1];
            let with = k as f64 / n as f64;
            row[k - 1].iter().enumerate().for_each(|(power, term)| sum[power] += with * term);
            if let Some(without) = row.get(k) {
                without.iter().enumerate().for_each(|(power, term)| sum[power + k] += (1.0 - with) * term);
            }
            next.push(sum);
        }
        row = next;
    }
    row.swap_remove(k)
}

fn convolved(a: &[f64], b: &[f64]) -> Vec<f64> {
    let mut sum = vec![0.0; a.len() + b.len() - 1];
    for (i, x) in a.iter().enumerate() {
        b.iter().enumerate().for_each(|(j, y)| sum[i + j] += x * y);
    }
    sum
}

/// The chance that a group of `group` things out of `all` holds just the lowest ones, one-sided: each choice is equally
/// likely. The rank-sum test where the groups do not overlap.
pub(super) fn separation_test(all: usize, group: usize) -> f64 {
    (-ln_choose(all, group)).exp()
}

/// Holm's adjustment: each p-value as it counts when all of these are looked at (Scandinavian Journal of Statistics 6, 1979).
pub(super) fn holm(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|a, b| p_values[*a].total_cmp(&p_values[*b]));
    let mut adjusted = vec![1.0; p_values.len()];
    let mut highest: f64 = 0.0;
    for (rank, index) in order.into_iter().enumerate() {
        highest = highest.max((p_values[index] * (p_values.len() - rank) as f64).min(1.0));
        adjusted[index] = highest;
    }
    adjusted
}

/// The logarithm of the number of choices of `k` out of `n`.
fn ln_choose(n: usize, k: usize) -> f64 {
    let k = k.min(n - k);
    (0..k).map(|i| ((n - i) as f64 / (i + 1) as f64).ln()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-9
    }

    #[test]
    fn signs_as_in_the_tables() {
        assert!(near(sign_test(5, 0), 2.0 / 32.0));
        assert!(near(sign_test(10, 0), 2.0 / 1024.0));
        assert!(near(sign_test(1, 9), 22.0 / 1024.0));
        assert!(near(sign_test(3, 3), 1.0) && near(sign_test(0, 0), 1.0));
    }

    /// Fisher's lady tasting tea: 4 of 8 cups, all named rightly, 1 in 70.
    #[test]
    fn the_lady_tasting_tea() {
        assert!(near(fisher(8, 4, 4, 4), 1.0 / 70.0));
        assert!(near(fisher(8, 4, 4, 3), 17.0 / 70.0));
        assert!(near(separation_test(7, 3), 1.0 / 35.0));
    }

    #[test]
    fn a_trend_is_counted_over_all_orders() {
        assert!(near(trend_test(&[vec![1.0, 2.0, 3.0, 4.0, 5.0]]).p, 1.0 / 120.0));
        assert!(near(trend_test(&[vec![1.0, 2.0, 3.0], vec![4.0, 5.0, 6.0]]).p, 1.0 / 36.0));
        // Of the six orders of 1 2 3, three have at most one falling pair.
        assert!(near(trend_test(&[vec![2.0, 1.0, 3.0]]).p, 3.0 / 6.0));
        // A tie is neither: of the three orders of 1 1 2 one has no falling pair.
        assert!(near(trend_test(&[vec![1.0, 1.0, 2.0]]).p, 1.0 / 3.0));
        assert!(near(trend_test(&[vec![3.0, 2.0, 1.0]]).p, 1.0));
        assert_eq!(trend_test(&[]).p, 1.0);
    }

    #[test]
    fn what_is_too_much_to_count_is_bounded() {
        let rising: Vec<f64> = (0..60).map(f64::from).collect();
        let trend = trend_test(&vec![rising; 20]);
        assert_eq!((trend.rising, trend.falling), (20 * 1770, 0));
        assert!(trend.p > 0.0 && trend.p < 1e-4 && trend.test(Language::English).contains("bound"), "{trend:?}");
        assert_eq!(trend_test(&vec![vec![1.0; 60]; 3]).p, 1.0);
    }

    #[test]
    fn looking_at_many_costs() {
        assert_eq!(holm(&[0.01, 0.04, 0.03]), [0.03, 0.06, 0.06]);
        assert_eq!(holm(&[]), Vec::<f64>::new());
    }

    proptest! {
        /// Counted over all orders, one by one.
        #[test]
        fn agrees_with_brute_force(values in prop::collection::vec(0u8..4, 1..6)) {
            let values: Vec<f64> = values.into_iter().map(f64::from).collect();
            let falling = |order: &[f64]| {
                (0..order.len()).flat_map(|i| (i + 1..order.len()).map(move |j| (i, j))).filter(|(i, j)| order[*i] > order[*j]).count()
            };
            let observed = falling(&values);
            let (mut as_few, mut all) = (0u32, 0u32);
            for code in 0..values.len().pow(values.len() as u32) {
                let mut rest = code;
                let order: Vec<usize> = values.iter().map(|_| { let at = rest % values.len(); rest /= values.len(); at }).collect();
                if (0..values.len()).all(|at| order.contains(&at)) {
                    let order: Vec<f64> = order.into_iter().map(|at| values[at]).collect();
                    all += 1;
                    as_few += u32::from(falling(&order) <= observed);
                }
            }
            let p = trend_test(std::slice::from_ref(&values)).p;
            prop_assert!((p - f64::from(as_few) / f64::from(all)).abs() < 1e-9, "{p} {as_few}/{all}");
        }

        #[test]
        fn p_values_are_chances(wins in 0usize..200, losses in 0usize..200, group in 0usize..200) {
            let all = wins + losses;
            for p in [sign_test(wins, losses), fisher(all, wins, group.min(all), group.min(wins))] {
                prop_assert!((0.0..=1.0).contains(&p), "{p}");
            }
        }
    }
}
