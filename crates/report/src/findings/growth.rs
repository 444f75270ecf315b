//! Growth with a factor whose levels are numbers, or none because the medium is full.

use super::data::{Data, Group};
use super::exact::{SIGNIFICANT, Trend, holm, trend_test};
use super::words::{extremes, listed, median, p_value, share, times, times_range, value};
use super::{bound, finding, test};
use linerate_model::{Evidence, Finding, FindingKind};
use std::collections::BTreeMap;

/// From this share of the limit on a medium counts as full: more of anything adds a ninth at most.
pub(super) const FULL: f64 = 0.9;
/// So many series are told by their extremes.
const FEW_SERIES: usize = 10;
/// Fewer levels show no course.
const FEWEST_LEVELS: usize = 3;

pub(super) fn findings(data: &Data<'_>, measure: usize) -> Vec<Finding> {
    data.ordered().flat_map(|factor| of_factor(data, measure, factor)).collect()
}

fn of_factor(data: &Data<'_>, measure: usize, factor: usize) -> Vec<Finding> {
    let courses = courses(data, measure, factor);
    let mut found: Vec<Finding> =
        courses.iter().filter_map(|course| saturated(data, measure, factor, course)).collect();
    let growing: Vec<&Course> = courses.iter().filter(|course| course.grows()).collect();
    found.extend(growth(data, measure, factor, &growing));
    found
}

/// What becomes of one group's results along a factor.
pub(super) struct Course {
    pub(super) group: Group,
    /// Values by ascending level, for each combination of the other factors.
    blocks: Vec<Vec<f64>>,
    trend: Trend,
    /// The p-value, adjusted for the number of groups.
    p: f64,
    /// The lowest share of the limit; none where a limit is not known, or is passed.
    least_share: Option<f64>,
}

impl Course {
    pub(super) fn is_full(&self) -> bool {
        self.least_share.is_some_and(|share| share >= FULL)
    }

    pub(super) fn grows(&self) -> bool {
        !self.is_full() && self.p < SIGNIFICANT
    }

    pub(super) fn p(&self) -> f64 {
        self.p
    }

    /// The test behind it.
    pub(super) fn test(&self) -> &'static str {
        self.trend.test()
    }
}

/// The courses of all groups that have enough levels.
pub(super) fn courses(data: &Data<'_>, measure: usize, factor: usize) -> Vec<Course> {
    let mut courses = Vec::new();
    for mut group in data.groups(data.gathered_by().filter(|by| *by != factor), measure) {
        group.cells.retain(|cell| data.study.cells[*cell].levels[factor].is_some());
        let mut blocks: BTreeMap<Vec<Option<usize>>, BTreeMap<usize, f64>> = BTreeMap::new();
        for cell in &group.cells {
            let mut rest = data.study.cells[*cell].levels.clone();
            let (Some(level), Some(value)) = (rest[factor].take(), data.value(*cell, measure)) else { continue };
            blocks.entry(rest).or_default().insert(level, value);
        }
        let blocks: Vec<Vec<f64>> = blocks.into_values().map(|block| block.into_values().collect()).collect();
        let blocks: Vec<Vec<f64>> = blocks.into_iter().filter(|block| block.len() >= FEWEST_LEVELS).collect();
        if blocks.is_empty() {
            continue;
        }
        let shares: Option<Vec<f64>> =
            group.cells.iter().map(|cell| data.limit(*cell, measure).map(|limit| limit.share)).collect();
        let shares = shares.and_then(extremes).filter(|(_, most)| *most <= 1.0);
        let trend = trend_test(&blocks);
        courses.push(Course { group, blocks, trend, p: trend.p, least_share: shares.map(|(least, _)| least) });
    }
    let adjusted = holm(&courses.iter().map(|course| course.p).collect::<Vec<_>>());
    courses.iter_mut().zip(adjusted).for_each(|(course, p)| course.p = p);
    courses
}

fn saturated(data: &Data<'_>, measure: usize, factor: usize, course: &Course) -> Option<Finding> {
    let least = course.least_share.filter(|_| course.is_full())?;
    let title = &data.study.factors[factor].title;
    let levels = course.group.cells.iter().filter_map(|cell| data.study.cells[*cell].levels[factor]);
    let lowest_level = levels.min()?;
    // What the other factors were, so that a reader sees how far this holds.
    let by = data.gathered_by();
    let others: Vec<String> = (0..data.study.factors.len())
        .filter(|other| *other != factor && Some(*other) != by)
        .filter_map(|other| {
            let mut names: Vec<String> = Vec::new();
            for cell in &course.group.cells {
                let name = data.study.cells[*cell].levels[other].map(|level| data.name_of(other, level))?;
                if !names.contains(&name) {
                    names.push(name);
                }
            }
            (names.len() > 1).then(|| listed(&names))
        })
        .collect();
    let with = if others.is_empty() { String::new() } else { format!(", with {}", others.join(", with ")) };
    let lowest = course
        .group
        .cells
        .iter()
        .filter_map(|cell| data.limit(*cell, measure))
        .reduce(|a, b| if b.share < a.share { b } else { a })?;
    let unit = data.study.measures[measure].unit;
    let text = format!(
        "{} is saturated from the lowest {title} on{with}: at {} and above every result is at least {} of what the medium can carry.",
        course.group.name,
        data.name_of(factor, lowest_level),
        share(least),
    );
    let evidence = bound(format!(
        "The lowest of {} results is {} ({}) of {} that the medium can carry, {}; so more {title} can add {} at the most.",
        course.group.cells.len(),
        value(data.value(lowest.cell, measure)?, unit),
        data.cell_name(lowest.cell, &[]),
        value(lowest.high, unit),
        share(least),
        share(1.0 / least - 1.0),
    ));
    Some(finding(FindingKind::Saturated, text, vec![evidence]))
}

fn growth(data: &Data<'_>, measure: usize, factor: usize, growing: &[&Course]) -> Option<Finding> {
    let whole = data.gathered_by().is_none();
    let clause = |course: &&Course| {
        let ends = course.blocks.iter().filter_map(|block| Some((*block.first()?, *block.last()?)));
        let ratios: Vec<f64> = ends.filter(|(first, _)| *first > 0.0).map(|(first, last)| last / first).collect();
        let grown = match ratios.len() {
            // The extremes of many say more of their noise than of their growth.
            many if many > FEW_SERIES => format!("{} as high (median of {many} series)", times(median(ratios)?)),
            _ => extremes(ratios).map(|(low, high)| times_range(low, high))?,
        };
        let on = if whole { String::new() } else { format!(" on {}", course.group.name) };
        Some(format!("{grown}{on}"))
    };
    let clauses: Option<Vec<String>> = growing.iter().map(clause).collect();
    let clauses = clauses.filter(|clauses| !clauses.is_empty())?;
    let levels: Vec<usize> = growing
        .iter()
        .flat_map(|course| course.group.cells.iter().filter_map(|cell| data.study.cells[*cell].levels[factor]))
        .collect();
    let (lowest, highest) = (*levels.iter().min()?, *levels.iter().max()?);
    let named = &data.study.factors[factor];
    let factor_ratio = match (named.levels[lowest].value, named.levels[highest].value) {
        (Some(low), Some(high)) if low > 0.0 => format!(" ({})", times(high / low)),
        _ => String::new(),
    };
    let names: Vec<String> = growing.iter().map(|course| course.group.name.clone()).collect();
    let on = if whole { String::new() } else { format!("On {} ", listed(&names)) };
    let text = format!(
        "{on}the {} grows with the {}: from {} to {}{factor_ratio} it becomes {}.",
        data.study.measures[measure].title,
        named.title,
        data.name_of(factor, lowest),
        data.name_of(factor, highest),
        listed(&clauses),
    );
    let evidence: Vec<Evidence> = growing
        .iter()
        .map(|course| {
            let Trend { rising, falling, pairs, .. } = course.trend;
            let text = format!(
                "{}: of {pairs} pairs of levels that agree in all else {rising} rise and {falling} fall; Kendall's trend within {} \
                 series, {}.",
                course.group.name,
                course.blocks.len(),
                p_value(course.p),
            );
            test(course.trend.test(), course.p, text)
        })
        .collect();
    Some(finding(FindingKind::Growth, crate::sentences::sentence(&text), evidence))
}
