//! Groups that cannot be paired, as kinds of device each with devices of its own: one has all the higher results.

use super::data::{Data, Group};
use super::ranking::{contestants, strata};
use super::words::{extremes, p_value, range, times};
use super::{bound, finding, test};
use crate::said;
use linerate_method::statistics::{SIGNIFICANT, Tested, separation_test};
use linerate_model::{Finding, FindingKind};

/// Fewer results in a group show nothing of it.
const FEWEST: usize = 3;

pub(super) fn findings(data: &Data<'_>, measure: usize) -> Vec<Finding> {
    all(data, measure).into_iter().map(|apart| apart.told(data, measure)).collect()
}

pub(super) fn tests(data: &Data<'_>, measure: usize) -> Vec<Tested> {
    all(data, measure).iter().map(Apart::tested).collect()
}

fn all(data: &Data<'_>, measure: usize) -> Vec<Apart> {
    let of_factor = |factor: usize| {
        let levels = contestants(data, factor);
        let mut apart = Vec::new();
        for group in strata(data, measure, factor) {
            for (at, a) in levels.iter().enumerate() {
                apart.extend(levels[at + 1..].iter().filter_map(|b| Apart::of(data, measure, factor, *a, *b, &group)));
            }
        }
        apart
    };
    data.unordered().flat_map(of_factor).collect()
}

/// Two levels of a factor without pairs, of which every result of one is above every result of the other.
struct Apart {
    factor: usize,
    above: usize,
    below: usize,
    /// The lowest and the highest result of each, and how many there are.
    high: (f64, f64, usize),
    low: (f64, f64, usize),
}

impl Apart {
    fn of(data: &Data<'_>, measure: usize, factor: usize, a: usize, b: usize, group: &Group) -> Option<Self> {
        // Pairs say more, and are ranked.
        if !data.pairs(factor, a, b, measure).is_empty() {
            return None;
        }
        let cells_of = |level: usize| {
            let is = |cell: &usize| data.study.cells[*cell].levels[factor] == Some(level);
            group.cells.iter().copied().filter(is).collect::<Vec<usize>>()
        };
        let (of_a, of_b) = (cells_of(a), cells_of(b));
        if of_a.len() < FEWEST || of_b.len() < FEWEST || !is_all_that_differs(data, factor, &of_a, &of_b) {
            return None;
        }
        // What is not firm may lie anywhere, so nothing is known of all results.
        if of_a.iter().chain(&of_b).any(|cell| data.value(*cell, measure).is_none()) {
            return None;
        }
        let results = |cells: &[usize]| {
            let (low, high) = extremes(cells.iter().filter_map(|cell| data.value(*cell, measure)))?;
            Some((low, high, cells.len()))
        };
        let (ends_a, ends_b) = (results(&of_a)?, results(&of_b)?);
        if ends_a.0 > ends_b.1 {
            Some(Self { factor, above: a, below: b, high: ends_a, low: ends_b })
        } else if ends_b.0 > ends_a.1 {
            Some(Self { factor, above: b, below: a, high: ends_b, low: ends_a })
        } else {
            None
        }
    }

    /// Its test by itself: two-sided, as either group may be the higher.
    fn tested(&self) -> Tested {
        let p = (2.0 * separation_test(self.high.2 + self.low.2, self.high.2)).min(1.0);
        Tested { p, least: p }
    }

    fn told(&self, data: &Data<'_>, measure: usize) -> Finding {
        let unit = data.study.measures[measure].unit;
        let (title, p) = (&data.study.measures[measure].title, data.adjusted(self.tested()));
        let (above, below) = (data.name_of(self.factor, self.above), data.name_of(self.factor, self.below));
        let mut text = said!(
            data.lang,
            "findings-unpaired-above",
            above = above,
            below = below,
            title = title,
            all = self.high.2,
            others = self.low.2,
            high = range(data.lang, self.high.0, self.high.1, unit),
            low = range(data.lang, self.low.0, self.low.1, unit)
        );
        if p >= SIGNIFICANT {
            text.push_str(&said!(data.lang, "findings-unpaired-of-these-only"));
        }
        let mut evidence = Vec::new();
        if self.low.1 > 0.0 {
            let ratio = times(data.lang, self.high.0 / self.low.1);
            evidence.push(bound(said!(
                data.lang,
                "findings-unpaired-nearest",
                above = above,
                times = ratio,
                below = below
            )));
        }
        evidence.push(test(
            &said!(data.lang, "findings-unpaired-rank-sum-test"),
            p,
            said!(
                data.lang,
                "findings-unpaired-by-chance",
                all = self.high.2 + self.low.2,
                few = self.high.2,
                p = p_value(p)
            ),
        ));
        finding(FindingKind::Unpaired, text, evidence)
    }
}

/// Whether the cells of both sides agree in every other factor, but for those that have levels of their own on each side, as the
/// devices of a kind.
fn is_all_that_differs(data: &Data<'_>, factor: usize, one: &[usize], other: &[usize]) -> bool {
    let levels = |cells: &[usize], of: usize| -> Vec<Option<usize>> {
        let mut levels: Vec<_> = cells.iter().map(|cell| data.study.cells[*cell].levels[of]).collect();
        levels.sort_unstable();
        levels
    };
    let others = (0..data.study.factors.len()).filter(|of| *of != factor);
    let (mut own, mut shared) = (0, true);
    for of in others {
        let (ours, theirs) = (levels(one, of), levels(other, of));
        if ours.iter().any(|level| theirs.contains(level)) {
            let (mut ours, mut theirs) = (ours, theirs);
            ours.dedup();
            theirs.dedup();
            // What is shared is the same in all of them.
            shared &= ours == theirs && ours.len() == 1;
        } else {
            own += 1;
        }
    }
    // One factor of their own names the members; of two, either may make the difference.
    shared && own == 1
}
