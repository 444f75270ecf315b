//! Two measures of the same thing's capacity: near each other, one part limits both; far apart, different parts do.

use super::data::Data;
use super::words::{extremes, p_value, times, times_range, value};
use super::{bound, finding, test};
use crate::said;
use linerate_method::statistics::separation_test;
use linerate_model::{Evidence, Finding, FindingKind, MeasurePair};

/// Ratios up to which measures count as equal, and from which as different; between the two there is no finding.
const NEAR: f64 = 1.25;
const APART: f64 = 2.0;

pub(super) fn findings(data: &Data<'_>) -> Vec<Finding> {
    data.study.comparisons.iter().flat_map(|comparison| of_comparison(data, comparison)).collect()
}

/// The cells of one level, and how far apart the two measures are in each, as the larger by the smaller.
struct Kind {
    name: String,
    cells: Vec<(usize, f64)>,
    nearest: f64,
    farthest: f64,
}

fn of_comparison(data: &Data<'_>, comparison: &MeasurePair) -> Vec<Finding> {
    let [first, second] = comparison.measures;
    let kinds: Vec<Kind> = data
        .groups(Some(comparison.by), first)
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
        .collect();
    let (near, apart): (Vec<&Kind>, Vec<&Kind>) = (
        kinds.iter().filter(|kind| kind.farthest <= NEAR).collect(),
        kinds.iter().filter(|kind| kind.nearest >= APART).collect(),
    );
    let separation = separation(data, &near, &apart);
    let each = |kind: &Kind| {
        let each = kind.cells.iter().map(|(cell, apart)| {
            let show = |measure: usize| {
                data.value(*cell, measure).map(|number| value(number, data.study.measures[measure].unit))
            };
            said!(
                data.lang,
                "findings-parts-one-and-other",
                name = data.cell_name(*cell, &[comparison.by]),
                one = show(first).unwrap_or_default(),
                other = show(second).unwrap_or_default(),
                times = times(data.lang, *apart)
            )
        });
        each.collect::<Vec<_>>().join("; ")
    };
    let (one, other) = (&data.study.measures[first].title, &data.study.measures[second].title);
    let of_kind = |kind: &Kind| {
        let same = kind.farthest <= NEAR;
        let apart = times_range(data.lang, kind.nearest, kind.farthest);
        let (what, text, each) = match same {
            true => (
                FindingKind::SamePart,
                said!(data.lang, "findings-parts-same", kind = kind.name, one = one, other = other, apart = apart),
                said!(data.lang, "findings-parts-times-or-less", times = NEAR, each = each(kind)),
            ),
            false => (
                FindingKind::DifferentParts,
                said!(data.lang, "findings-parts-different", kind = kind.name, one = one, other = other, apart = apart),
                said!(data.lang, "findings-parts-times-or-more", times = APART, each = each(kind)),
            ),
        };
        let mut evidence = vec![bound(each)];
        evidence.extend(separation.clone());
        finding(what, text, evidence)
    };
    near.iter().chain(&apart).map(|kind| of_kind(kind)).collect()
}

/// How likely it is that the kinds fall so neatly apart by chance.
fn separation(data: &Data<'_>, near: &[&Kind], apart: &[&Kind]) -> Option<Evidence> {
    let count = |kinds: &[&Kind]| kinds.iter().map(|kind| kind.cells.len()).sum::<usize>();
    let (few, all) = (count(near), count(near) + count(apart));
    if near.is_empty() || apart.is_empty() {
        return None;
    }
    let p = separation_test(all, few);
    let text = said!(
        data.lang,
        "findings-parts-all-are-nearer",
        few = few,
        rest = all - few,
        choices = format!("{:.0}", 1.0 / p),
        all = all,
        p = p_value(p)
    );
    Some(test(&said!(data.lang, "findings-parts-rank-sum-test"), p, text))
}
