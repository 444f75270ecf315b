//! Exact tests: their p-values are counted over all outcomes that are equally likely without an effect.

/// The two-sided sign test over pairs without ties: without an effect either one of a pair is the larger equally often.
/// Wins follow a binomial distribution (Conover, Practical Nonparametric Statistics, section 3.4).
pub fn sign_test(wins: usize, losses: usize) -> f64 {
    (2.0 * binomial_tail(wins + losses, wins.max(losses))).min(1.0)
}

/// The chance of `least` or more heads in `throws` of a fair coin.
fn binomial_tail(throws: usize, least: usize) -> f64 {
    (least..=throws).map(|heads| (ln_choose(throws, heads) - throws as f64 * 2f64.ln()).exp()).sum::<f64>().min(1.0)
}

/// Fisher's exact test, one-sided: of `all` things `marked` are marked, and `group` form a group. Returns the chance that
/// the group holds `inside` marked ones or more (the hypergeometric distribution). `marked` and `group` are at most `all`.
pub fn fisher_test(all: usize, marked: usize, group: usize, inside: usize) -> f64 {
    let most = marked.min(group);
    let least = (marked + group).saturating_sub(all);
    let chance = |k: usize| (ln_choose(marked, k) + ln_choose(all - marked, group - k) - ln_choose(all, group)).exp();
    (inside.max(least)..=most).map(chance).sum::<f64>().min(1.0)
}

/// The rank-sum test where a cut through the ranking of all values parts whole groups, two-sided: which groups are above the cut was
/// not stated beforehand. Returns the chance that any cut does so; 1 for fewer than two groups.
pub fn separation_test(groups: &[usize]) -> f64 {
    let groups: Vec<usize> = groups.iter().copied().filter(|size| *size > 0).collect();
    if groups.len() < 2 {
        return 1.0;
    }
    let all: usize = groups.iter().sum();
    // The number of sets of groups by the values that they hold together.
    let mut sets = vec![0.0; all + 1];
    sets[0] = 1.0;
    for group in &groups {
        for size in (*group..=all).rev() {
            sets[size] += sets[size - group];
        }
    }
    (1..all).map(|size| sets[size] * (-ln_choose(all, size)).exp()).sum::<f64>().min(1.0)
}

/// The logarithm of the number of choices of `k` out of `n`.
pub(crate) fn ln_choose(n: usize, k: usize) -> f64 {
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
        assert!(near(fisher_test(8, 4, 4, 4), 1.0 / 70.0));
        assert!(near(fisher_test(8, 4, 4, 3), 17.0 / 70.0));
    }

    #[test]
    fn separation_counts_every_way_in_which_groups_are_parted() {
        assert!(near(separation_test(&[3, 4]), 2.0 / 35.0));
        assert!(near(separation_test(&[4, 3]), 2.0 / 35.0));
        // Of three groups any one may be the lowest, or the highest.
        assert!(near(separation_test(&[2, 2, 2]), 6.0 / 15.0));
        assert!(near(separation_test(&[5]), 1.0) && near(separation_test(&[]), 1.0));
    }

    /// Counted over all orders of the values, one by one.
    #[test]
    fn separation_agrees_with_brute_force() {
        let (all, few) = (7usize, 3u32);
        let lowest = (1u32 << few) - 1;
        let highest = lowest << (all as u32 - few);
        let choices = (0u32..1 << all).filter(|choice| choice.count_ones() == few);
        let (parted, count) = choices
            .fold((0, 0), |(parted, count), one| (parted + u32::from(one == lowest || one == highest), count + 1));
        assert!(near(separation_test(&[3, 4]), f64::from(parted) / f64::from(count)));
    }

    proptest! {
        #[test]
        fn p_values_are_chances(wins in 0usize..200, losses in 0usize..200, group in 0usize..200) {
            let all = wins + losses;
            for p in [sign_test(wins, losses), fisher_test(all, wins, group.min(all), group.min(wins))] {
                prop_assert!((0.0..=1.0).contains(&p), "{p}");
            }
        }
    }
}
