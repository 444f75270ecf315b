//! The rank-sum test of Wilcoxon, Mann and Whitney: whether the values of one sample are larger than those of another.

use statrs::distribution::{ContinuousCDF, Normal};

/// Sample size up to which the distribution is counted exactly.
const EXACT: usize = 16;

/// Returns the one-sided p-value of the rank-sum test: the chance that `upper` exceeds `lower` as clearly as it does, if both samples
/// come from one distribution (Conover, Practical Nonparametric Statistics, section 5.1). Ties count against `upper`. Returns 1
/// if a sample is empty.
pub fn rank_sum_test(lower: &[f64], upper: &[f64]) -> f64 {
    if lower.is_empty() || upper.is_empty() {
        return 1.0;
    }
    let mut sorted = lower.to_vec();
    sorted.sort_by(f64::total_cmp);
    // U: the pairs in which the value of `upper` is the larger one.
    let wins: usize = upper.iter().map(|value| sorted.partition_point(|other| other < value)).sum();
    if lower.len() <= EXACT && upper.len() <= EXACT {
        return exact_tail(lower.len(), upper.len(), wins);
    }
    let pairs = (lower.len() * upper.len()) as f64;
    let deviation = (pairs * (lower.len() + upper.len() + 1) as f64 / 12.0).sqrt();
    let normal = Normal::standard();
    1.0 - normal.cdf((wins as f64 - 0.5 - pairs / 2.0) / deviation)
}

/// Returns the chance of `wins` or more among all orders of `lower` and `upper` values.
fn exact_tail(lower: usize, upper: usize, wins: usize) -> f64 {
    // `orders[n][u]`: orders of the values so far with `n` of the upper sample that win `u` pairs.
    let most = lower * upper;
    let mut orders = vec![vec![0.0; most + 1]; upper + 1];
    for row in &mut orders {
        row[0] = 1.0;
    }
    for below in 1..=lower {
        for above in 1..=upper {
            for won in (0..=most).rev() {
                // The largest value is one of the upper sample, which wins against all of `below`, or one of the lower sample.
                let of_upper = won.checked_sub(below).map_or(0.0, |rest| orders[above - 1][rest]);
                orders[above][won] += of_upper;
            }
        }
    }
    let all: f64 = orders[upper].iter().sum();
    orders[upper][wins.min(most)..].iter().sum::<f64>() / all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separated_samples_have_the_chance_of_one_order() {
        let p = rank_sum_test(&[1.0, 2.0, 3.0, 4.0, 5.0], &[6.0, 7.0, 8.0, 9.0, 10.0]);
        assert!((p - 1.0 / 252.0).abs() < 1e-12, "{p}");
        let p = rank_sum_test(&[1.0, 2.0], &[3.0]);
        assert!((p - 1.0 / 3.0).abs() < 1e-12, "{p}");
    }

    /// U = 4 of 4 values against 5: the tables give P(U <= 4) = 0.0952 (Conover, table A7, as 12 of 126).
    #[test]
    fn tail_agrees_with_brute_force() {
        for (lower, upper) in [(2usize, 3usize), (4, 5), (3, 3), (5, 2)] {
            let all = lower + upper;
            let choices = (0u32..1 << all).filter(|choice| choice.count_ones() as usize == upper);
            let wins: Vec<usize> = choices.map(|choice| wins_of(choice, all)).collect();
            for least in 0..=lower * upper {
                let expected = wins.iter().filter(|won| **won >= least).count() as f64 / wins.len() as f64;
                let p = exact_tail(lower, upper, least);
                assert!((p - expected).abs() < 1e-9, "{lower} {upper} {least}: {p}, not {expected}");
            }
        }
    }

    /// Returns the pairs that the marked ranks win.
    fn wins_of(choice: u32, all: usize) -> usize {
        let is_upper = |rank: usize| choice >> rank & 1 == 1;
        let ranks = (0..all).filter(|rank| is_upper(*rank));
        ranks.map(|rank| (0..rank).filter(|below| !is_upper(*below)).count()).sum()
    }

    #[test]
    fn large_samples_follow_the_normal_distribution() {
        let even: Vec<f64> = (0..100).map(f64::from).collect();
        let shifted: Vec<f64> = even.iter().map(|value| value + 40.0).collect();
        assert!(rank_sum_test(&even, &shifted) < 1e-6);
        assert!((0.5..0.6).contains(&rank_sum_test(&even, &even)), "ties count against");
        assert!(rank_sum_test(&shifted, &even) > 0.999);
    }

    #[test]
    fn ties_and_empty_samples_show_nothing() {
        assert_eq!(rank_sum_test(&[], &[1.0]), 1.0);
        assert!(rank_sum_test(&[1.0; 8], &[1.0; 8]) > 0.99);
    }
}
