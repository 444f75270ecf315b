//! Two measures of the same thing's capacity: near each other, one part limits both; far apart, different parts do.

use super::data::Data;
use super::words::{p_value, times, times_range, with_semicolons};
use super::{bound, finding, test};
use crate::finding::{Evidence, Finding, FindingKind};
use crate::study::MeasurePair;
use linerate_method::statistics::{SIGNIFICANT, Tested, separation_test};
use linerate_report::parts::values::{extremes, value};
use linerate_report::said;

/// Ratios up to which measures count as equal, and from which as different; between the two there is no finding.
const NEAR: f64 = 1.25;
const APART: f64 = 2.0;

pub(super) fn tests(data: &Data<'_>) -> Vec<Tested> {
    let comparisons = data.study.comparisons.iter();
    comparisons.filter_map(|comparison| Some(Separation::of(&kinds(data, comparison))?.tested)).collect()
}

pub(super) fn findings(data: &Data<'_>) -> Vec<Finding> {
    data.study.comparisons.iter().flat_map(|comparison| of_comparison(data, comparison)).collect()
}

/// Cells of one level, and the ratio of the larger to the smaller measure in each.
struct Kind {
    name: String,
    cells: Vec<(usize, f64)>,
    nearest: f64,
    farthest: f64,
}

/// Returns the levels by which two measures are compared.
fn kinds(data: &Data<'_>, comparison: &MeasurePair) -> Vec<Kind> {
    let [first, second] = comparison.measures;
    data.groups(Some(comparison.by), first)
        .into_iter()
        .filter_map(|group| {
            let apart = |cell: &usize| {
                let (a, b) = (data.value(*cell, first)?, data.value(*cell, second)?);
                (a > 0.0 && b > 0.0).then(|| (*cell, (a / b).max(b / a)))
            };
            let cells: Vec<(usize, f64)> = group.cells.iter().filter_map(apart).collect();
            let (nearest, farthest) = extremes(cells.iter().map(|(_, apart)| *apart))?;
            Some(Kind { name: group.name, cells, nearest, farthest })
        })
        .collect()
}

impl Kind {
    fn is_near(&self) -> bool {
        self.farthest <= NEAR
    }

    fn is_apart(&self) -> bool {
        self.nearest >= APART
    }
}

fn of_comparison(data: &Data<'_>, comparison: &MeasurePair) -> Vec<Finding> {
    let [first, second] = comparison.measures;
    let kinds = kinds(data, comparison);
    let separation = Separation::of(&kinds).filter(Separation::is_parted);
    let is_shown = separation.as_ref().is_none_or(|separation| data.adjusted(separation.tested) < SIGNIFICANT);
    let each = |kind: &Kind| {
        let each = kind.cells.iter().map(|(cell, apart)| {
            let show = |measure: usize| {
                data.value(*cell, measure).map(|number| value(number, data.study.measures[measure].unit))
            };
            let name = data.cell_name(*cell, &[comparison.by]);
            let both = said!(
                data.lang,
                "findings-parts-pair",
                "{one} and {other}, {times}",
                one = show(first).unwrap_or_default(),
                other = show(second).unwrap_or_default(),
                times = times(data.lang, *apart)
            );
            // A study without other factors has nothing to tell its cells apart by.
            if name.is_empty() {
                both
            } else {
                said!(data.lang, "findings-parts-of-cell", "{name}: {both}", name = name, both = both)
            }
        });
        with_semicolons(data.lang, &each.collect::<Vec<_>>())
    };
    let (one, other) = (&data.study.measures[first].title, &data.study.measures[second].title);
    let of_kind = |kind: &Kind| {
        let same = kind.is_near();
        let apart = times_range(data.lang, kind.nearest, kind.farthest);
        let (what, mut text, each) = match same {
            true => (
                FindingKind::SamePart,
                said!(
                    data.lang,
                    "findings-parts-same",
                    "{kind}: {one} and {other} are nearly equal: the larger is {apart} the smaller. That is consistent \
                     with one part limiting both, and does not prove it.",
                    kind = kind.name,
                    one = one,
                    other = other,
                    apart = apart
                ),
                said!(
                    data.lang,
                    "findings-parts-times-or-less",
                    "Each is {times} times or less: {each}.",
                    times = NEAR,
                    each = each(kind)
                ),
            ),
            false => (
                FindingKind::DifferentParts,
                said!(
                    data.lang,
                    "findings-parts-different",
                    "{kind}: {one} and {other} are far apart: the larger is {apart} the smaller. One part with one cost \
                     per frame would make them equal, so it does not limit both.",
                    kind = kind.name,
                    one = one,
                    other = other,
                    apart = apart
                ),
                said!(
                    data.lang,
                    "findings-parts-times-or-more",
                    "Each is {times} times or more: {each}.",
                    times = APART,
                    each = each(kind)
                ),
            ),
        };
        if !is_shown {
            text.push_str(&said!(data.lang, "findings-of-these-only", " So few results show this of these only."));
        }
        let mut evidence = vec![bound(each)];
        evidence.extend(separation.as_ref().map(|separation| separation.evidence(data)));
        finding(what, text, evidence)
    };
    let near = kinds.iter().filter(|kind| kind.is_near());
    near.chain(kinds.iter().filter(|kind| kind.is_apart())).map(of_kind).collect()
}

/// Test of whether some kinds are near and all others apart.
struct Separation {
    near: usize,
    apart: usize,
    tested: Tested,
}

impl Separation {
    /// Returns `None` for fewer than two kinds. Which of them are the near ones was not stated beforehand, so the test
    /// is two-sided.
    fn of(kinds: &[Kind]) -> Option<Self> {
        if kinds.len() < 2 {
            return None;
        }
        let near: Vec<usize> = kinds.iter().filter(|kind| kind.is_near()).map(|kind| kind.cells.len()).collect();
        let apart: Vec<usize> = kinds.iter().filter(|kind| kind.is_apart()).map(|kind| kind.cells.len()).collect();
        let (near_cells, apart_cells) = (near.iter().sum(), apart.iter().sum());
        let is_parted = near_cells > 0 && apart_cells > 0;
        let p = if is_parted { separation_test(&[near, apart].concat()) } else { 1.0 };
        let all: Vec<usize> = kinds.iter().map(|kind| kind.cells.len()).collect();
        let least = separation_test(&all).min(p);
        Some(Self { near: near_cells, apart: apart_cells, tested: Tested { p, least } })
    }

    fn is_parted(&self) -> bool {
        self.near > 0 && self.apart > 0
    }

    fn evidence(&self, data: &Data<'_>) -> Evidence {
        let p = data.adjusted(self.tested);
        let text = said!(
            data.lang,
            "findings-parts-all-are-nearer",
            "All {few} results of one kind are nearer to 1 than all {rest} of the other, whichever kind that is; \
                 {p}.",
            few = self.near,
            rest = self.apart,
            p = p_value(p)
        );
        test(
            &said!(
                data.lang,
                "findings-parts-rank-sum-test",
                "rank-sum test, exact, two-sided, Holm-adjusted over the study"
            ),
            p,
            text,
        )
    }
}
