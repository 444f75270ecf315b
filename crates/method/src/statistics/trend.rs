//! Kendall's test for a trend within blocks.

/// Limits on what is counted: steps of the whole count, and pairs in one block. Beyond them the p-value is bounded.
const MOST_WORK: usize = 4_000_000;
const MOST_PAIRS: usize = 500;

/// Kendall's test for a trend within blocks, one-sided towards growth. Without a trend, each order of a block's values is
/// equally likely. The statistic is the sum over blocks of rising less falling pairs. The p-value is counted over all
/// orders where that is little work; else it is Hoeffding's bound (Journal of the American Statistical Association 58,
/// 1963, theorem 2).
pub fn trend_test(blocks: &[Vec<f64>]) -> Trend {
    let mut trend = Trend { rising: 0, falling: 0, pairs: 0, p: 1.0, least: 1.0, counted: true };
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
    let bound = |lead: f64| if lead > 0.0 { (-2.0 * lead * lead / squares).exp() } else { 1.0 };
    // So many falling pairs or fewer.
    let chance = |falling: usize| distribution[..=falling].iter().sum::<f64>().min(1.0);
    (trend.p, trend.least) = match trend.counted {
        true => (chance(trend.falling), chance(0)),
        false => (bound(lead), bound((trend.rising + trend.falling) as f64)),
    };
    trend
}

/// What [`trend_test`] found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Trend {
    /// Pairs of levels in which the higher level has the higher value.
    pub rising: usize,
    /// Pairs in which it has the lower one.
    pub falling: usize,
    /// All pairs.
    pub pairs: usize,
    /// The p-value, or an upper bound on it.
    pub p: f64,
    /// The smallest that it could have been: without a falling pair.
    pub least: f64,
    /// `p` is the p-value itself, and not a bound on it.
    pub counted: bool,
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-9
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
    fn large_blocks_are_bounded() {
        let rising: Vec<f64> = (0..60).map(f64::from).collect();
        let trend = trend_test(&vec![rising; 20]);
        assert_eq!((trend.rising, trend.falling), (20 * 1770, 0));
        assert!(trend.p > 0.0 && trend.p < 1e-4 && !trend.counted, "{trend:?}");
        assert_eq!(trend_test(&vec![vec![1.0; 60]; 3]).p, 1.0);
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
    }
}
