//! The stratified rank-sum test: repeats of two levels, ranked within each pair of cells.
//!
//! Without an effect of the level, every assignment of a pair's values to its two cells is equally likely. The
//! statistic is the sum over the pairs of Wilcoxon's rank sums (van Elteren, Bulletin of the International Statistical
//! Institute 37, 1960, with equal weights). Pairs of single values make it the sign test.

use linerate_method::statistics::Tested;

/// Maximum number of values in a pair of cells, and of steps of the statistic, for which outcomes are counted.
const MOST_VALUES: usize = 20;
const MOST_STEPS: usize = 4_000;

/// Largest share of the pairs in which all repeats of the level behind may be ahead.
const MOST_AGAINST: f64 = 0.1;

/// The repeats of two levels in one pair of cells.
pub(super) struct Block {
    pub(super) a: Vec<f64>,
    pub(super) b: Vec<f64>,
}

impl Block {
    /// Returns twice the number of couples of a repeat of `a` and one of `b` in which `a` is higher. Equal ones count
    /// half.
    fn wins(&self) -> usize {
        let wins_of = |a: &f64| -> usize {
            let win = |b: &f64| usize::from(a > b) + usize::from(a >= b);
            self.b.iter().map(win).sum()
        };
        self.a.iter().map(wins_of).sum()
    }

    /// Returns the number of couples.
    fn couples(&self) -> usize {
        self.a.len() * self.b.len()
    }

    fn values(&self) -> usize {
        self.a.len() + self.b.len()
    }

    fn has_spread(&self) -> bool {
        [&self.a, &self.b].iter().any(|values| values.iter().any(|value| *value != values[0]))
    }

    /// Returns whether both cells have repeats, and all of `a` are above all of `b`.
    fn is_all_above(&self) -> bool {
        self.a.len() > 1 && self.b.len() > 1 && self.wins() == 2 * self.couples()
    }

    /// Returns whether both cells have repeats, and all of `a` are below all of `b`.
    fn is_all_below(&self) -> bool {
        self.a.len() > 1 && self.b.len() > 1 && self.wins() == 0
    }

    /// Returns the values of both cells in groups of equal ones, ascending, by the size of each group.
    fn ties(&self) -> Vec<usize> {
        let mut values = [&self.a[..], &self.b[..]].concat();
        values.sort_by(f64::total_cmp);
        values.chunk_by(|one, other| one == other).map(<[f64]>::len).collect()
    }

    /// Returns the probability of each number of [`Block::wins`].
    fn distribution(&self) -> Vec<f64> {
        let most = 2 * self.couples();
        let count_a = self.a.len();
        let count_b = self.b.len();
        // By the number of values that `a` has so far, and its wins over the values of `b` so far.
        let mut ways = vec![vec![0.0; most + 1]; count_a + 1];
        ways[0][0] = 1.0;
        let mut placed = 0;
        for size in self.ties() {
            let mut next = vec![vec![0.0; most + 1]; count_a + 1];
            for before in 0..=count_a.min(placed) {
                let below = placed - before;
                if below > count_b {
                    continue;
                }
                for of_a in 0..=size.min(count_a - before) {
                    let of_b = size - of_a;
                    if below + of_b > count_b {
                        continue;
                    }
                    let (won, choices) = (2 * of_a * below + of_a * of_b, choose(size, of_a));
                    for wins in 0..=most - won {
                        next[before + of_a][wins + won] += ways[before][wins] * choices;
                    }
                }
            }
            ways = next;
            placed += size;
        }
        let all = choose(self.values(), count_a);
        ways[count_a].iter().map(|ways| ways / all).collect()
    }

    /// Returns the variance of [`Block::wins`], with equal values taken into account.
    fn variance(&self) -> f64 {
        let all = self.values() as f64;
        let tied: f64 = self.ties().iter().map(|size| (*size as f64).powi(3) - *size as f64).sum();
        // Of the number of couples; `wins` counts each twice.
        4.0 * self.couples() as f64 / 12.0 * (all + 1.0 - tied / (all * (all - 1.0)))
    }
}

/// Returns the number of choices of `k` out of `n`.
fn choose(n: usize, k: usize) -> f64 {
    (0..k.min(n - k)).map(|i| (n - i) as f64 / (i + 1) as f64).product()
}

/// Result of the test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct RankSum {
    /// The two-sided test, not adjusted.
    pub(super) tested: Tested,
    /// `true` if all outcomes were counted; otherwise the p-value is that of the normal distribution.
    pub(super) is_exact: bool,
    /// Lowest and highest number of repeats in a cell.
    pub(super) repeats: (usize, usize),
    /// Wins of `a` beyond what chance gives; negative if `b` is higher.
    lead: f64,
    /// Pairs in which all repeats of `a` are above those of `b`, and below.
    all_above: usize,
    all_below: usize,
    blocks: usize,
}

impl RankSum {
    /// Returns the test of these pairs of cells. Returns `None` if no cell has repeats that differ, because copies of
    /// one value carry no information.
    pub(super) fn of(blocks: &[Block]) -> Option<Self> {
        let has_values = |block: &Block| !block.a.is_empty() && !block.b.is_empty();
        if !blocks.iter().all(has_values) || !blocks.iter().any(Block::has_spread) {
            return None;
        }
        let couples: usize = blocks.iter().map(Block::couples).sum();
        let wins: usize = blocks.iter().map(Block::wins).sum();
        let steps = 2 * couples;
        let is_exact = steps <= MOST_STEPS && blocks.iter().all(|block| block.values() <= MOST_VALUES);
        let counts = || blocks.iter().flat_map(|block| [block.a.len(), block.b.len()]);
        Some(Self {
            tested: if is_exact { counted(blocks, wins, couples) } else { approximated(blocks, wins, couples) },
            is_exact,
            repeats: (counts().min()?, counts().max()?),
            lead: wins as f64 - couples as f64,
            all_above: blocks.iter().filter(|block| block.is_all_above()).count(),
            all_below: blocks.iter().filter(|block| block.is_all_below()).count(),
            blocks: blocks.len(),
        })
    }

    /// Returns whether `a` has the higher values, and `b` is clearly the higher in hardly any pair of cells.
    pub(super) fn is_a_higher(&self) -> bool {
        self.lead > 0.0 && self.all_below as f64 <= MOST_AGAINST * self.blocks as f64
    }

    /// Returns whether `b` has the higher values, and `a` is clearly the higher in hardly any pair of cells.
    pub(super) fn is_b_higher(&self) -> bool {
        self.lead < 0.0 && self.all_above as f64 <= MOST_AGAINST * self.blocks as f64
    }
}

/// Counts the outcomes that are as far from what chance gives as `wins`, or farther.
fn counted(blocks: &[Block], wins: usize, couples: usize) -> Tested {
    let mut all = vec![1.0];
    for block in blocks {
        let one = block.distribution();
        let mut sum = vec![0.0; all.len() + one.len() - 1];
        for (at, chance) in all.iter().enumerate().filter(|(_, chance)| **chance > 0.0) {
            for (step, of_block) in one.iter().enumerate() {
                sum[at + step] += chance * of_block;
            }
        }
        all = sum;
    }
    let farther = |least: usize| -> f64 {
        let is_far = |(at, _): &(usize, &f64)| at.abs_diff(couples) >= least;
        all.iter().enumerate().filter(is_far).map(|(_, chance)| chance).sum::<f64>().min(1.0)
    };
    let possible = |(at, chance): (usize, &f64)| (*chance > 0.0).then_some(at.abs_diff(couples));
    let farthest = all.iter().enumerate().filter_map(possible).max().unwrap_or(0);
    Tested { p: farther(wins.abs_diff(couples)), least: farther(farthest) }
}

/// Returns the test by the normal distribution, with a correction for continuity.
fn approximated(blocks: &[Block], wins: usize, couples: usize) -> Tested {
    let deviation = blocks.iter().map(Block::variance).sum::<f64>().sqrt();
    let lead = (wins.abs_diff(couples) as f64 - 1.0).max(0.0);
    Tested::any(if deviation > 0.0 { normal_tails(lead / deviation) } else { 1.0 })
}

/// Returns an upper bound on the two-sided tail of the normal distribution beyond `z`, near it for large `z`
/// (Abramowitz and Stegun, 7.1.26; absolute error below 1.5e-7, which is added).
fn normal_tails(z: f64) -> f64 {
    let x = z / 2f64.sqrt();
    let t = 1.0 / (1.0 + 0.327_591_1 * x);
    let terms = [0.254_829_592, -0.284_496_736, 1.421_413_741, -1.453_152_027, 1.061_405_429];
    let series = terms.iter().rev().fold(0.0, |sum, term| (sum + term) * t);
    (series * (-x * x).exp() + 1.5e-7).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(a: &[f64], b: &[f64]) -> Block {
        Block { a: a.to_vec(), b: b.to_vec() }
    }

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-9
    }

    #[test]
    fn one_pair_of_cells_is_wilcoxons_test() {
        // 3 against 3, all above: twice 1 of 20 choices.
        let test = RankSum::of(&[block(&[4.0, 5.0, 6.0], &[1.0, 2.0, 3.0])]).expect("repeats");
        assert!(near(test.tested.p, 0.1) && near(test.tested.least, 0.1), "{test:?}");
        // 4 against 4 with rank sum 11: 4 of 70 choices in total are as far (Conover, table A7).
        let test = RankSum::of(&[block(&[1.0, 2.0, 3.0, 5.0], &[4.0, 6.0, 7.0, 8.0])]).expect("repeats");
        assert!(near(test.tested.p, 4.0 / 70.0), "{test:?}");
    }

    #[test]
    fn pairs_of_cells_multiply() {
        let one = || block(&[4.0, 5.0, 6.0], &[1.0, 2.0, 3.0]);
        let test = RankSum::of(&[one(), one(), one(), one()]).expect("repeats");
        assert!(near(test.tested.p, 2.0 / 160_000.0), "{test:?}");
        assert!(test.is_a_higher() && !test.is_b_higher());
    }

    #[test]
    fn single_values_make_it_the_sign_test() {
        let (win, loss) = (|| block(&[2.0], &[1.0]), block(&[1.0], &[2.0]));
        let repeats = block(&[1.0, 1.0, 2.0], &[1.0, 1.0, 2.0]);
        let test = RankSum::of(&[win(), win(), win(), win(), loss, repeats]).expect("repeats");
        assert!(test.tested.p > 0.3 && test.tested.p < 0.7, "{test:?}");
        assert_eq!(RankSum::of(&[win(), win()]), None);
    }

    #[test]
    fn copies_of_a_value_are_no_repeats() {
        let copies = || block(&[2.0, 2.0, 2.0], &[1.0, 1.0, 1.0]);
        assert_eq!(RankSum::of(&[copies(), copies(), copies(), copies()]), None);
    }

    #[test]
    fn level_clearly_behind_in_one_of_few_cells_is_not_higher() {
        let above = || block(&[4.0, 5.0, 6.0], &[1.0, 2.0, 3.0]);
        let below = block(&[1.0, 2.0, 3.0], &[4.0, 5.0, 6.0]);
        let test = RankSum::of(&[above(), above(), above(), above(), below]).expect("repeats");
        assert!(test.tested.p < 0.05 && !test.is_a_higher(), "{test:?}");
    }

    /// Counted over all choices, one by one, with equal values among them.
    #[test]
    fn distribution_agrees_with_brute_force() {
        let values = [1.0, 2.0, 2.0, 3.0, 3.0, 3.0, 5.0];
        let mut counts = vec![0.0; 2 * 3 * 4 + 1];
        let mut all = 0.0;
        for choice in (0u32..1 << 7).filter(|choice| choice.count_ones() == 3) {
            let is_a = |at: &usize| choice & (1 << at) != 0;
            let of_a: Vec<f64> = (0..7).filter(is_a).map(|at| values[at]).collect();
            let of_b: Vec<f64> = (0..7).filter(|at| !is_a(at)).map(|at| values[at]).collect();
            counts[block(&of_a, &of_b).wins()] += 1.0;
            all += 1.0;
        }
        let distribution = block(&values[..3], &values[3..]).distribution();
        assert!(distribution.iter().zip(&counts).all(|(chance, count)| near(*chance, count / all)), "{distribution:?}");
    }

    #[test]
    fn many_repeats_are_approximated() {
        let many = |shift: f64| (0..40).map(|at| f64::from(at) + shift).collect::<Vec<f64>>();
        let apart = RankSum::of(&[Block { a: many(20.0), b: many(0.0) }]).expect("repeats");
        assert!(!apart.is_exact && apart.tested.p < 1e-5 && apart.is_a_higher(), "{apart:?}");
        let alike = RankSum::of(&[Block { a: many(0.3), b: many(0.0) }]).expect("repeats");
        assert!(alike.tested.p > 0.5, "{alike:?}");
    }
}
