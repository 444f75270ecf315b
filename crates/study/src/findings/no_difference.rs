//! Levels with equal results, within the tolerance of the study.
//!
//! Where the cells have repeats, their spread decides: two one-sided tests in each pair, of which all must be
//! significant. One value in each cell is taken as it is.

use super::data::{Data, Group, Pair};
use super::limiter::WIRE;
use super::ranking::{contestants, strata};
use super::words::{listed, share, some_of};
use super::{bound, finding, test};
use crate::finding::{Finding, FindingKind};
use linerate_method::statistics::{Contrast, Sample, Scale, Tested};
use linerate_report::parts::values::{extremes, value};
use linerate_report::said;

/// Highest adjusted p-value of a claim.
const LEVEL: f64 = 0.05;
/// Maximum number of pairs shown.
const MOST_SHOWN: usize = 6;

pub(super) fn findings(data: &Data<'_>, measure: usize) -> Vec<Finding> {
    let told = data.transport_factor();
    let factors = data.unordered().filter(|factor| Some(*factor) != told);
    factors.flat_map(|factor| of_factor(data, measure, factor)).collect()
}

fn of_factor(data: &Data<'_>, measure: usize, factor: usize) -> Vec<Finding> {
    let strata = strata(data, measure, factor);
    let several = strata.len() > 1;
    let of_stratum = |group: &Group| {
        let alike = alike(data, measure, factor, group);
        let told = |levels: &Vec<usize>| told(data, measure, factor, levels, group, several);
        alike.iter().filter(|levels| levels.len() > 1).map(told).collect::<Vec<_>>()
    };
    strata.iter().flat_map(of_stratum).flatten().collect()
}

fn pairs(data: &Data<'_>, measure: usize, factor: usize, a: usize, b: usize, group: &Group) -> Vec<Pair> {
    // A value stated as about a number is not known to be equal.
    let known = |cell: usize| group.cells.contains(&cell) && data.stated(cell, measure).is_none();
    // At zero both are at the floor, whatever else differs.
    let within = |pair: &Pair| known(pair.a.0) && known(pair.b.0) && pair.a.1.max(pair.b.1) > 0.0;
    data.pairs(factor, a, b, measure).into_iter().filter(within).collect()
}

/// Returns the difference of two results as a share of the larger.
fn difference(pair: &Pair) -> f64 {
    let (low, high) = (pair.a.1.min(pair.b.1), pair.a.1.max(pair.b.1));
    if high > 0.0 { (high - low) / high } else { 0.0 }
}

/// Returns the tests of all pairs of levels with repeats.
pub(super) fn tests(data: &Data<'_>, measure: usize) -> Vec<Tested> {
    let told = data.transport_factor();
    let factors = data.unordered().filter(|factor| Some(*factor) != told);
    let of_factor = |factor: usize| {
        let levels = contestants(data, factor);
        let of_stratum = move |group: Group| {
            let every_two =
                levels.iter().enumerate().flat_map(|(at, a)| levels[at + 1..].iter().map(move |b| (*a, *b)));
            every_two
                .filter_map(|(a, b)| equivalence(data, measure, &pairs(data, measure, factor, a, b, &group)))
                .collect::<Vec<_>>()
        };
        strata(data, measure, factor).into_iter().flat_map(of_stratum).collect::<Vec<_>>()
    };
    factors.flat_map(of_factor).collect()
}

/// The test whether all pairs with repeats differ by less than the tolerance: that of the least certain pair, since
/// each has to show it (an intersection-union test). Returns `None` if no pair has repeats that differ.
fn equivalence(data: &Data<'_>, measure: usize, pairs: &[Pair]) -> Option<Tested> {
    let tolerance = data.study.tolerance.unwrap_or(0.0);
    let p_of = |pair: &Pair| {
        let sample = |cell: usize| Sample::of(&data.study.cells[cell].values[measure], 0.0);
        let (a, b) = (sample(pair.a.0)?, sample(pair.b.0)?);
        Contrast::welch(Scale::Ratio, &a, &b).map(|contrast| contrast.p_within(tolerance))
    };
    pairs.iter().filter_map(p_of).reduce(f64::max).map(Tested::any)
}

/// Returns levels of which every two are equal in every pair, and have at least one pair.
fn alike(data: &Data<'_>, measure: usize, factor: usize, group: &Group) -> Vec<Vec<usize>> {
    let tolerance = data.study.tolerance.unwrap_or(0.0);
    let equal = |a: usize, b: usize| {
        let pairs = pairs(data, measure, factor, a, b, group);
        // Of a pair of which a bound is stated it is not known whether it is equal.
        if data.pairs_with_stated(factor, a, b, measure).iter().any(|pair| data.has_stated(*pair, measure)) {
            return false;
        }
        let shown = equivalence(data, measure, &pairs).is_none_or(|test| data.adjusted(test) < LEVEL);
        !pairs.is_empty() && pairs.iter().all(|pair| difference(pair) <= tolerance) && shown
    };
    let mut alike: Vec<Vec<usize>> = Vec::new();
    for level in contestants(data, factor) {
        match alike.iter_mut().find(|levels| levels.iter().all(|other| equal(*other, level))) {
            Some(levels) => levels.push(level),
            None => alike.push(vec![level]),
        }
    }
    alike
}

fn told(
    data: &Data<'_>,
    measure: usize,
    factor: usize,
    levels: &[usize],
    group: &Group,
    several: bool,
) -> Option<Finding> {
    let every_two = levels.iter().enumerate().flat_map(|(at, a)| levels[at + 1..].iter().map(move |b| (*a, *b)));
    let by_levels: Vec<Vec<Pair>> = every_two.map(|(a, b)| pairs(data, measure, factor, a, b, group)).collect();
    let tests = by_levels.iter().filter_map(|pairs| equivalence(data, measure, pairs));
    let least_certain = tests.map(|test| data.adjusted(test)).reduce(f64::max);
    let pairs: Vec<Pair> = by_levels.into_iter().flatten().collect();
    let (_, most) = extremes(pairs.iter().map(difference))?;
    let unit = data.study.measures[measure].unit;
    let names: Vec<String> = levels.iter().map(|level| data.name_of(factor, *level)).collect();
    let on = if several {
        said!(data.lang, "findings-no-difference-on", " on {group}", group = group.name)
    } else {
        String::new()
    };
    let (title, names) = (&data.study.measures[measure].title, listed(data.lang, &names));
    let mut text = match data.study.tolerance {
        _ if most == 0.0 => {
            said!(
                data.lang,
                "findings-no-difference-equal",
                if pairs == 1 {
                    "{names} show no difference{on}: {title} is equal in the one pair of cells that agree in all else."
                } else {
                    "{names} show no difference{on}: {title} is equal in all {pairs} pairs of cells that agree in all \
                     else."
                },
                names = names,
                on = on,
                title = title,
                pairs = pairs.len()
            )
        }
        tolerance => said!(
            data.lang,
            "findings-no-difference-within",
            if pairs == 1 {
                "{names} show no difference{on} beyond the tolerance of {tolerance}: {title} differs by at most {most} in \
                 the one pair of cells that agree in all else."
            } else {
                "{names} show no difference{on} beyond the tolerance of {tolerance}: {title} differs by at most {most} in \
                 all {pairs} pairs of cells that agree in all else."
            },
            names = names,
            on = on,
            title = title,
            pairs = pairs.len(),
            tolerance = share(tolerance.unwrap_or(0.0)),
            most = share(most)
        ),
    };
    // At the limit of the wire all are equal, whatever they could do.
    let full = |cell: usize| data.limit(cell, measure).is_some_and(|limit| limit.share >= WIRE);
    if pairs.iter().all(|pair| full(pair.a.0) && full(pair.b.0)) {
        text.push_str(&said!(
            data.lang,
            "findings-no-difference-at-the-wire",
            " The wire limits them, so they may differ beyond it."
        ));
    }
    let shown = |pair: &Pair| {
        let of = |(cell, number): (usize, f64)| format!("{}: {}", data.cell_name(cell, &[]), value(number, unit));
        said!(data.lang, "findings-no-difference-against", "{one} and {other}", one = of(pair.a), other = of(pair.b))
    };
    let shown: Vec<String> = pairs.iter().map(shown).collect();
    let tolerance = share(data.study.tolerance.unwrap_or(0.0));
    let tested = least_certain.map(|p| {
        let name = said!(data.lang, "findings-no-difference-test", "two one-sided tests (Welch), Holm-adjusted over the study");
        test(&name, p, said!(data.lang, "findings-no-difference-shown", "the means of the repeats differ by less than {tolerance} in every pair; the p-value is that of the least \
             certain pair", tolerance = tolerance))
    });
    let shown = bound(some_of(data.lang, MOST_SHOWN, &shown));
    Some(finding(FindingKind::NoDifference, text, tested.into_iter().chain([shown]).collect()))
}
