//! Two measures of the same thing's capacity: near each other, one part limits both; far apart, different parts do.

use super::data::Data;
use super::words::{extremes, p_value, times, times_range, value};
use super::{bound, finding, test};
use crate::said;
use linerate_method::statistics::{Tested, separation_test};
use linerate_model::{Evidence, Finding, FindingKind, MeasurePair};

/// Ratios up to which measures count as equal, and from which as different; between the two there is no finding.
const NEAR: f64 = 1.25;
const APART: f64 = 2.0;

pub(super) fn tests(data: &Data<'_>) -> Vec<Tested> {
    let comparisons = data.study.comparisons.iter();
    comparisons.filter_map(|comparison| Some(Separation::of(&kinds(data, comparison))?.tested())).collect()
}

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

/// The levels by which two measures are compared.
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
    let separation = Separation::of(&kinds).map(|separation| separation.said(data));
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
        let same = kind.is_near();
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
    let near = kinds.iter().filter(|kind| kind.is_near());
    near.chain(kinds.iter().filter(|kind| kind.is_apart())).map(of_kind).collect()
}

/// Kinds of which some are near and some apart, and how likely it is that they fall so neatly apart by chance.
struct Separation {
    near: usize,
    all: usize,
    by_chance: f64,
}

impl Separation {
    /// None where all are near, or all apart.
    fn of(kinds: &[Kind]) -> Option<Self> {
        let count =
            |is: fn(&Kind) -> bool| kinds.iter().filter(|kind| is(kind)).map(|kind| kind.cells.len()).sum::<usize>();
        let (near, apart) = (count(Kind::is_near), count(Kind::is_apart));
        let all = near + apart;
        (near > 0 && apart > 0).then(|| Self { near, all, by_chance: separation_test(all, near) })
    }

    fn tested(&self) -> Tested {
        Tested { p: self.by_chance, least: self.by_chance }
    }

    fn said(&self, data: &Data<'_>) -> Evidence {
        let Self { near, all, by_chance } = *self;
        let p = data.adjusted(self.tested());
        let text = said!(
            data.lang,
            "findings-parts-all-are-nearer",
            few = near,
            rest = all - near,
            choices = format!("{:.0}", 1.0 / by_chance),
            all = all,
            p = p_value(p)
        );
        test(&said!(data.lang, "findings-parts-rank-sum-test"), p, text)
    }
}
