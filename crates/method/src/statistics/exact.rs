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

/// The rank-sum test where two groups do not overlap, one-sided: the chance that `group` things drawn out of `all` are the
/// lowest ones. `group` is at most `all`.
pub fn separation_test(all: usize, group: usize) -> f64 {
    (-ln_choose(all, group)).exp()
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
        assert!(near(fisher_test(8, 4, 4, 4), 1.0 / 70.0));
        assert!(near(fisher_test(8, 4, 4, 3), 17.0 / 70.0));
        assert!(near(separation_test(7, 3), 1.0 / 35.0));
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
