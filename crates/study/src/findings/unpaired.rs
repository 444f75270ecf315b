//! Groups without pairs, such as kinds of device: one of them has all the higher results.

use super::data::{Data, Group};
use super::ranking::{contestants, strata};
use super::words::{p_value, times};
use super::{bound, finding, test};
use crate::finding::{Finding, FindingKind};
use linerate_method::statistics::{SIGNIFICANT, Tested, separation_test};
use linerate_report::parts::values::{extremes, range};
use linerate_report::said;

/// Minimum number of results in a group.
const FEWEST: usize = 3;

pub(super) fn findings(data: &Data<'_>, measure: usize) -> Vec<Finding> {
    contests(data, measure).iter().filter_map(|contest| contest.finding(data, measure)).collect()
}

/// Returns the tests of all contests, also without a winner: which have one was not known beforehand.
pub(super) fn tests(data: &Data<'_>, measure: usize) -> Vec<Tested> {
    contests(data, measure).iter().map(Contest::tested).collect()
}

fn contests(data: &Data<'_>, measure: usize) -> Vec<Contest> {
    let mut contests = Vec::new();
    for factor in data.unordered() {
        let levels = contestants(data, factor);
        for group in strata(data, measure, factor) {
            for (at, a) in levels.iter().enumerate() {
                let others = levels[at + 1..].iter();
                contests.extend(others.filter_map(|b| Contest::of(data, measure, factor, *a, *b, &group)));
            }
        }
    }
    contests
}

/// Results of one level.
#[derive(Clone, Copy)]
struct Results {
    level: usize,
    lowest: f64,
    highest: f64,
    count: usize,
}

impl Results {
    fn is_above(&self, other: &Self) -> bool {
        self.lowest > other.highest
    }
}

/// Two levels of a factor without pairs.
struct Contest {
    factor: usize,
    results: [Results; 2],
}

impl Contest {
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
        let results = |level: usize, cells: &[usize]| {
            let (lowest, highest) = extremes(cells.iter().filter_map(|cell| data.value(*cell, measure)))?;
            Some(Results { level, lowest, highest, count: cells.len() })
        };
        Some(Self { factor, results: [results(a, &of_a)?, results(b, &of_b)?] })
    }

    /// Returns the level with all the higher results, and the other. Returns `None` if they overlap.
    fn order(&self) -> Option<(Results, Results)> {
        let [a, b] = self.results;
        if a.is_above(&b) {
            Some((a, b))
        } else if b.is_above(&a) {
            Some((b, a))
        } else {
            None
        }
    }

    /// Returns its test, not adjusted: two-sided, because either group may be the higher.
    fn tested(&self) -> Tested {
        let least = separation_test(&self.results.map(|results| results.count));
        Tested { p: if self.order().is_some() { least } else { 1.0 }, least }
    }

    fn finding(&self, data: &Data<'_>, measure: usize) -> Option<Finding> {
        let (high, low) = self.order()?;
        let unit = data.study.measures[measure].unit;
        let title = &data.study.measures[measure].title;
        let p = data.adjusted(self.tested());
        let above = data.name_of(self.factor, high.level);
        let below = data.name_of(self.factor, low.level);
        let mut text = said!(
            data.lang,
            "findings-unpaired-above",
            "{above} against {below}: all {all} results of {above} for {title} are above all {others} of {below}, \
             {high} against {low}.",
            above = above,
            below = below,
            title = title,
            all = high.count,
            others = low.count,
            high = range(data.lang, high.lowest, high.highest, unit),
            low = range(data.lang, low.lowest, low.highest, unit)
        );
        if p >= SIGNIFICANT {
            text.push_str(&said!(data.lang, "findings-of-these-only", " So few results show this of these only."));
        }
        let mut evidence = Vec::new();
        if low.highest > 0.0 {
            let ratio = times(data.lang, high.lowest / low.highest);
            evidence.push(bound(said!(
                data.lang,
                "findings-unpaired-nearest",
                "The lowest of {above} is {times} the highest of {below}.",
                above = above,
                times = ratio,
                below = below
            )));
        }
        evidence.push(test(
            &said!(
                data.lang,
                "findings-unpaired-rank-sum-test",
                "rank-sum test, exact, two-sided, Holm-adjusted over the study"
            ),
            p,
            said!(
                data.lang,
                "findings-unpaired-by-chance",
                "No two cells agree in all else, so all {all} results are ranked together: {few} of them are the \
                 highest; {p}.",
                all = high.count + low.count,
                few = high.count,
                p = p_value(p)
            ),
        ));
        Some(finding(FindingKind::Unpaired, text, evidence))
    }
}

/// Whether the cells of both sides agree in every other factor, but for those that have levels of their own on each
/// side, as the devices of a kind.
pub(super) fn is_all_that_differs(data: &Data<'_>, factor: usize, one: &[usize], other: &[usize]) -> bool {
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
