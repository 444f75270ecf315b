//! The order in which the cells of a study are run.
//!
//! What drifts while a study runs (temperature, other load) must not look like a factor. So each repeat is a block that
//! holds every cell once, in an order of its own (a randomised complete block design). A factor that is hard to set
//! stays for many runs: what a person sets changes least often, with all repeats in between (a split-plot design, whose
//! whole plots are that factor's levels); a lab is built once in a block for each of its states. A test has cells of
//! the factors that it uses, and of no others.

use rand::rngs::SmallRng;
use rand::seq::SliceRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use serde::Deserialize;
use std::collections::BTreeSet;

/// The order asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Order {
    /// By chance, within what the effort allows.
    #[default]
    Random,
    /// In the order of the listed levels, the last factor changing fastest.
    Listed,
}

/// Factors that a test uses, without those that a person sets, which hold for every test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Uses {
    /// Tests with the same number share a lab, and its factors.
    pub(super) lab: usize,
    /// Factors whose levels need a lab of their own.
    pub(super) built: BTreeSet<usize>,
    /// Factors that change with next to no effort.
    pub(super) varied: BTreeSet<usize>,
}

/// A run's slot in the design.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Slot {
    /// Level of each factor; `None` if the test does not use the factor.
    pub(super) cell: Vec<Option<usize>>,
    /// Number of the repeat, from 1.
    pub(super) repeat: u32,
    /// Index into the tests.
    pub(super) test: usize,
}

/// Returns all runs in their order. `levels` is the number of levels of each factor, `persons` the factors that a
/// person sets. The same arguments give the same order.
pub(super) fn order(
    levels: &[usize],
    persons: &BTreeSet<usize>,
    tests: &[Uses],
    repeats: u32,
    order: Order,
    seed: u64,
) -> Vec<Slot> {
    let mut chance = Chance(match order {
        Order::Random => Some(SmallRng::seed_from_u64(seed)),
        Order::Listed => None,
    });
    let mut plots = vec![vec![None; levels.len()]];
    for factor in persons {
        let varied = BTreeSet::from([*factor]);
        plots = plots.into_iter().flat_map(|plot| chance.ordered(crossed(levels, plot, &varied))).collect();
    }
    let mut labs: Vec<&Uses> = Vec::new();
    for test in tests {
        if labs.iter().all(|other| other.lab != test.lab) {
            labs.push(test);
        }
    }
    let mut slots = Vec::new();
    for plot in plots {
        for repeat in 1..=repeats {
            let benches = labs
                .iter()
                .flat_map(|of| crossed(levels, plot.clone(), &of.built).into_iter().map(|cell| (of.lab, cell)));
            for (lab, bench) in chance.ordered(benches.collect()) {
                let mut varied: Vec<&BTreeSet<usize>> = Vec::new();
                for test in tests.iter().filter(|test| test.lab == lab) {
                    if !varied.contains(&&test.varied) {
                        varied.push(&test.varied);
                    }
                }
                let cells = varied.into_iter().flat_map(|varied| {
                    crossed(levels, bench.clone(), varied).into_iter().map(move |cell| (varied, cell))
                });
                for (varied, cell) in chance.ordered(cells.collect()) {
                    for (test, uses) in tests.iter().enumerate() {
                        if uses.lab == lab && uses.varied == *varied {
                            slots.push(Slot { cell: cell.clone(), repeat, test });
                        }
                    }
                }
            }
        }
    }
    slots
}

/// Returns all combinations of the levels of `factors`, with the other levels of `cell`.
fn crossed(levels: &[usize], cell: Vec<Option<usize>>, factors: &BTreeSet<usize>) -> Vec<Vec<Option<usize>>> {
    let mut cells = vec![cell];
    for factor in factors {
        let mut crossed = Vec::new();
        for cell in cells {
            for level in 0..levels[*factor] {
                let mut cell = cell.clone();
                cell[*factor] = Some(level);
                crossed.push(cell);
            }
        }
        cells = crossed;
    }
    cells
}

/// Source of random orders; without a generator everything stays as listed.
struct Chance(Option<SmallRng>);

impl Chance {
    fn ordered<T>(&mut self, mut all: Vec<T>) -> Vec<T> {
        if let Some(random) = &mut self.0 {
            // Each shuffle has a generator of its own: one that is longer now leaves those after it as they were.
            all.shuffle(&mut SmallRng::seed_from_u64(random.random()));
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A test of factors, each with the number of its levels and the effort to vary it: 0 by a person, 1 by a lab, 2
    /// with little.
    fn one_test(factors: &[(usize, u8)]) -> (Vec<usize>, BTreeSet<usize>, Vec<Uses>) {
        let of = |effort: u8| (0..factors.len()).filter(|at| factors[*at].1 == effort).collect::<BTreeSet<_>>();
        let levels = factors.iter().map(|(levels, _)| *levels).collect();
        (levels, of(0), vec![Uses { lab: 0, built: of(1), varied: of(2) }])
    }

    fn ordered(factors: &[(usize, u8)], repeats: u32, by: Order, seed: u64) -> Vec<(Vec<usize>, u32)> {
        let (levels, persons, tests) = one_test(factors);
        let all = order(&levels, &persons, &tests, repeats, by, seed).into_iter();
        all.map(|slot| (slot.cell.into_iter().map(|level| level.expect("it is used")).collect(), slot.repeat)).collect()
    }

    fn changes(runs: &[(Vec<usize>, u32)], factor: usize) -> usize {
        runs.windows(2).filter(|pair| pair[0].0[factor] != pair[1].0[factor]).count()
    }

    #[test]
    fn listed_order_keeps_the_order_of_levels() {
        let cells: Vec<_> = ordered(&[(2, 2), (2, 2)], 2, Order::Listed, 1);
        let block = [vec![0, 0], vec![0, 1], vec![1, 0], vec![1, 1]];
        let expected: Vec<_> = (1..=2).flat_map(|repeat| block.clone().map(|cell| (cell, repeat))).collect();
        assert_eq!(cells, expected);
    }

    #[test]
    fn random_order_depends_on_the_seed_only() {
        let of = |seed| ordered(&[(4, 2), (4, 2)], 3, Order::Random, seed);
        assert_eq!(of(1), of(1));
        assert_ne!(of(1), of(2));
        let blocks = of(1);
        let cells = |block: usize| blocks[16 * block..][..16].iter().map(|(cell, _)| cell.clone()).collect::<Vec<_>>();
        assert_ne!(cells(0), cells(1), "each block has an order of its own");
    }

    #[test]
    fn factors_set_by_a_person_change_least() {
        let runs = ordered(&[(4, 2), (2, 1), (3, 0), (2, 0)], 5, Order::Random, 7);
        assert_eq!(changes(&runs, 2), 2, "each of three levels once");
        assert_eq!(
            changes(&runs, 3),
            3 + runs.windows(2).filter(|pair| { pair[0].0[2] != pair[1].0[2] && pair[0].0[3] != pair[1].0[3] }).count(),
            "each of two levels once within"
        );
        // Six plots of five blocks with two benches each: each bench is built once in a block.
        let benches = runs.chunks(4).all(|group| group.iter().all(|(cell, _)| cell[1] == group[0].0[1]));
        assert!(benches, "{runs:?}");
    }

    /// Two tests share a lab, one of them without the second factor; the third has a lab of its own, with a factor
    /// more.
    #[test]
    fn tests_run_in_cells_of_their_own_factors() {
        let set = |of: &[usize]| of.iter().copied().collect::<BTreeSet<_>>();
        let tests = [
            Uses { lab: 0, built: set(&[0]), varied: set(&[1]) },
            Uses { lab: 0, built: set(&[0]), varied: set(&[]) },
            Uses { lab: 1, built: set(&[0, 2]), varied: set(&[]) },
        ];
        let slots = order(&[2, 3, 2], &BTreeSet::new(), &tests, 2, Order::Random, 1);
        assert_eq!(slots.iter().collect::<BTreeSet<_>>().len(), slots.len());
        let used = |slot: &Slot| (0..3).filter(|factor| slot.cell[*factor].is_some()).collect::<BTreeSet<_>>();
        for (test, runs, factors) in [(0, 2 * 2 * 3, set(&[0, 1])), (1, 2 * 2, set(&[0])), (2, 2 * 2 * 2, set(&[0, 2]))]
        {
            let of_test: Vec<&Slot> = slots.iter().filter(|slot| slot.test == test).collect();
            assert_eq!(of_test.len(), runs, "test {test}");
            assert!(of_test.iter().all(|slot| used(slot) == factors), "test {test}: {of_test:?}");
        }
        // A lab is built once in a block for each of its states: 2 of the first lab, 4 of the second.
        let state = |slot: &Slot| (tests[slot.test].lab, slot.cell[0], slot.cell[2], slot.repeat);
        let built = 1 + slots.windows(2).filter(|pair| state(&pair[0]) != state(&pair[1])).count();
        assert_eq!(built, 2 * (2 + 4), "{slots:?}");
    }

    proptest! {
        /// Whatever takes what effort, each repeat is a block of every cell once.
        #[test]
        fn each_cell_is_once_in_each_repeat(
            factors in prop::collection::vec((1usize..4, 0u8..3), 1..5), repeats in 1u32..4, seed: u64, listed: bool
        ) {
            let runs = ordered(&factors, repeats, if listed { Order::Listed } else { Order::Random }, seed);
            let cells: usize = factors.iter().map(|(levels, _)| levels).product();
            prop_assert_eq!(runs.len(), cells * repeats as usize);
            prop_assert_eq!(runs.iter().collect::<BTreeSet<_>>().len(), runs.len());
            for (cell, repeat) in &runs {
                prop_assert!((1..=repeats).contains(repeat));
                prop_assert!(cell.iter().zip(&factors).all(|(level, (levels, _))| level < levels));
            }
        }
    }
}
