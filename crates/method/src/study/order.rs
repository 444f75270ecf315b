//! In which order the cells of a study are run.
//!
//! What drifts while a study runs (temperature, other load) must not look like a factor. So each repeat is a block that holds every
//! cell once, in an order of its own (a randomised complete block design). A factor that is hard to set stays for many runs: what a
//! person sets changes least often, with all repeats in between (a split-plot design, whose whole plots are that factor's levels); a
//! lab is built once in a block for each of its states.

use rand::rngs::SmallRng;
use rand::seq::SliceRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use serde::Deserialize;

/// The order asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Order {
    /// By chance, within what the effort allows.
    #[default]
    Random,
    /// As the levels are listed, the last factor changing fastest.
    Listed,
}

/// What it takes to change a factor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effort {
    /// Somebody has to do it.
    Person,
    /// The lab is built anew.
    Lab,
    /// Next to nothing.
    Little,
}

/// A factor as far as the order goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Varied {
    pub(super) levels: usize,
    pub(super) effort: Effort,
}

/// All runs in their order: the level of each factor, and which repeat it is, from 1. The same arguments give the same order.
pub(super) fn order(factors: &[Varied], repeats: u32, order: Order, seed: u64) -> Vec<(Vec<usize>, u32)> {
    let of = |effort: Effort| (0..factors.len()).filter(move |factor| factors[*factor].effort == effort);
    let mut chance = Chance(match order {
        Order::Random => Some(SmallRng::seed_from_u64(seed)),
        Order::Listed => None,
    });
    let mut plots = vec![vec![0; factors.len()]];
    for factor in of(Effort::Person) {
        plots = plots.into_iter().flat_map(|plot| chance.crossed(factors, plot, &[factor])).collect();
    }
    let (lab, little): (Vec<usize>, Vec<usize>) = (of(Effort::Lab).collect(), of(Effort::Little).collect());
    let mut runs = Vec::new();
    for plot in plots {
        for repeat in 1..=repeats {
            for bench in chance.crossed(factors, plot.clone(), &lab) {
                runs.extend(chance.crossed(factors, bench, &little).into_iter().map(|cell| (cell, repeat)));
            }
        }
    }
    runs
}

/// Where the order comes from; without one it is as listed.
struct Chance(Option<SmallRng>);

impl Chance {
    /// All combinations of these factors' levels, the others' as in `cell`.
    fn crossed(&mut self, factors: &[Varied], cell: Vec<usize>, these: &[usize]) -> Vec<Vec<usize>> {
        let mut cells = vec![cell];
        for factor in these {
            let with = |cell: Vec<usize>| {
                (0..factors[*factor].levels).map(move |level| {
                    let mut cell = cell.clone();
                    cell[*factor] = level;
                    cell
                })
            };
            cells = cells.into_iter().flat_map(with).collect();
        }
        if let Some(random) = &mut self.0 {
            // Each shuffle has a generator of its own: one that is longer now leaves those after it as they were.
            cells.shuffle(&mut SmallRng::seed_from_u64(random.random()));
        }
        cells
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn varied(factors: &[(usize, Effort)]) -> Vec<Varied> {
        factors.iter().map(|(levels, effort)| Varied { levels: *levels, effort: *effort }).collect()
    }

    fn changes(runs: &[(Vec<usize>, u32)], factor: usize) -> usize {
        runs.windows(2).filter(|pair| pair[0].0[factor] != pair[1].0[factor]).count()
    }

    #[test]
    fn listed_is_as_listed() {
        let factors = varied(&[(2, Effort::Little), (2, Effort::Little)]);
        let cells: Vec<_> = order(&factors, 2, Order::Listed, 1);
        let block = [vec![0, 0], vec![0, 1], vec![1, 0], vec![1, 1]];
        let expected: Vec<_> = (1..=2).flat_map(|repeat| block.clone().map(|cell| (cell, repeat))).collect();
        assert_eq!(cells, expected);
    }

    #[test]
    fn chance_is_that_of_the_seed() {
        let factors = varied(&[(4, Effort::Little), (4, Effort::Little)]);
        let of = |seed| order(&factors, 3, Order::Random, seed);
        assert_eq!(of(1), of(1));
        assert_ne!(of(1), of(2));
        let blocks = of(1);
        let cells = |block: usize| blocks[16 * block..][..16].iter().map(|(cell, _)| cell.clone()).collect::<Vec<_>>();
        assert_ne!(cells(0), cells(1), "each block has an order of its own");
    }

    #[test]
    fn what_a_person_sets_changes_least() {
        let factors = varied(&[(4, Effort::Little), (2, Effort::Lab), (3, Effort::Person), (2, Effort::Person)]);
        let runs = order(&factors, 5, Order::Random, 7);
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

    proptest! {
        /// Whatever takes what effort, each repeat is a block of every cell once.
        #[test]
        fn each_cell_is_once_in_each_repeat(
            factors in prop::collection::vec((1usize..4, 0usize..3), 1..5), repeats in 1u32..4, seed: u64, listed: bool
        ) {
            let efforts = [Effort::Person, Effort::Lab, Effort::Little];
            let factors = varied(&factors.iter().map(|(levels, effort)| (*levels, efforts[*effort])).collect::<Vec<_>>());
            let runs = order(&factors, repeats, if listed { Order::Listed } else { Order::Random }, seed);
            let cells: usize = factors.iter().map(|factor| factor.levels).product();
            prop_assert_eq!(runs.len(), cells * repeats as usize);
            prop_assert_eq!(runs.iter().collect::<BTreeSet<_>>().len(), runs.len());
            for (cell, repeat) in &runs {
                prop_assert!((1..=repeats).contains(repeat));
                prop_assert!(cell.iter().zip(&factors).all(|(level, factor)| *level < factor.levels));
            }
        }
    }
}
