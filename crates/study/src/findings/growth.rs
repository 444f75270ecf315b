//! Growth with a numeric factor, or no growth because the medium is full.

use super::data::{Data, Group};
use super::trend::Directed;
use super::words::{listed, p_value, share, times, times_range};
use super::{bound, finding, test};
use crate::finding::{Evidence, Finding, FindingKind};
use linerate_method::statistics::{SIGNIFICANT, Tested, Trend, median};
use linerate_model::text;
use linerate_report::parts::values::{extremes, value};
use linerate_report::parts::wording::sentence;
use linerate_report::{Language, said};
use std::collections::BTreeMap;

/// From this share of the limit on a medium counts as full: more of anything adds a ninth at most.
pub(super) const FULL: f64 = 0.9;
/// Maximum number of series that are all named; of more, only the extremes are.
const FEW_SERIES: usize = 10;
/// Minimum number of levels that show a course.
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
    let falling: Vec<&Course> = courses.iter().filter(|course| course.falls()).collect();
    found.extend(growth(data, measure, factor, &falling));
    found
}

/// Results of one group along a factor.
pub(super) struct Course {
    pub(super) group: Group,
    /// Values by ascending level, for each combination of the other factors. Nothing else differs within a block.
    blocks: Vec<Vec<f64>>,
    /// The lowest and the highest level of the blocks.
    ends: (usize, usize),
    trend: Directed,
    /// The p-value, adjusted for the tests of the study.
    p: f64,
    /// Lowest share of the limit; `None` if a limit is unknown or exceeded.
    least_share: Option<f64>,
}

impl Course {
    pub(super) fn is_full(&self) -> bool {
        self.least_share.is_some_and(|share| share >= FULL)
    }

    pub(super) fn grows(&self) -> bool {
        !self.is_full() && self.p < SIGNIFICANT && self.trend.rises()
    }

    fn falls(&self) -> bool {
        !self.is_full() && self.p < SIGNIFICANT && self.trend.falls()
    }

    pub(super) fn p(&self) -> f64 {
        self.p
    }

    /// Returns the lowest and the highest level between which nothing else differs.
    pub(super) fn ends(&self) -> (usize, usize) {
        self.ends
    }

    /// Returns its test, not adjusted.
    fn tested(&self) -> Tested {
        self.trend.tested
    }

    /// Returns the name of its test.
    pub(super) fn test(&self, lang: Language) -> String {
        self.trend.name(lang)
    }
}

pub(super) fn tests(data: &Data<'_>, measure: usize) -> Vec<Tested> {
    data.ordered().flat_map(|factor| tested(data, measure, factor)).map(|course| course.tested()).collect()
}

/// Returns the courses of all groups with enough levels.
pub(super) fn courses(data: &Data<'_>, measure: usize, factor: usize) -> Vec<Course> {
    let mut courses = tested(data, measure, factor);
    courses.iter_mut().for_each(|course| course.p = data.adjusted(course.tested()));
    courses
}

/// Differences between cells apart from one factor: levels of the other factors, and what changes together with this
/// one.
type Rest<'a> = (Vec<Option<usize>>, Option<&'a str>);

/// Returns the same courses with p-values that are not adjusted.
fn tested(data: &Data<'_>, measure: usize, factor: usize) -> Vec<Course> {
    let mut courses = Vec::new();
    for mut group in data.groups(data.gathered_by().filter(|by| *by != factor), measure) {
        group.cells.retain(|cell| data.study.cells[*cell].levels[factor].is_some());
        // A difference apart from the factor cannot be separated from it: levels with such a difference are in no block
        // together.
        let mut blocks: BTreeMap<Rest<'_>, BTreeMap<usize, f64>> = BTreeMap::new();
        for cell in &group.cells {
            let mut rest = data.study.cells[*cell].levels.clone();
            let (Some(level), Some(value)) = (rest[factor].take(), data.value(*cell, measure)) else { continue };
            let also = data.study.factors[factor].levels[level].also.as_deref();
            blocks.entry((rest, also)).or_default().insert(level, value);
        }
        blocks.retain(|_, block| block.len() >= FEWEST_LEVELS);
        let mut levels = blocks.values().flat_map(BTreeMap::keys).copied();
        let Some(first) = levels.next() else { continue };
        let ends = levels.fold((first, first), |(low, high), level| (low.min(level), high.max(level)));
        let blocks: Vec<Vec<f64>> = blocks.into_values().map(|block| block.into_values().collect()).collect();
        let shares: Option<Vec<f64>> =
            group.cells.iter().map(|cell| data.limit(*cell, measure).map(|limit| limit.share)).collect();
        let by = data.gathered_by().filter(|by| *by != factor);
        let is_known = !data.has_open(by, &group, measure);
        let shares = shares.and_then(extremes).filter(|(_, most)| *most <= 1.0 && is_known);
        let trend = Directed::of(&blocks, data.study.factors[factor].expect);
        let p = trend.tested.p;
        courses.push(Course { group, blocks, ends, trend, p, least_share: shares.map(|(least, _)| least) });
    }
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
            (names.len() > 1).then(|| {
                said!(data.lang, "findings-growth-with", ", with {levels}", levels = listed(data.lang, &names))
            })
        })
        .collect();
    let lowest = course
        .group
        .cells
        .iter()
        .filter_map(|cell| data.limit(*cell, measure))
        .reduce(|a, b| if b.share < a.share { b } else { a })?;
    let unit = data.study.measures[measure].unit;
    let text = said!(
        data.lang,
        "findings-growth-saturated",
        "{group} is saturated from the lowest {factor} on{with}: at {level} and above every result is at least {least} \
         of what the medium can carry.",
        group = course.group.name,
        factor = title,
        with = others.concat(),
        level = data.name_of(factor, lowest_level),
        least = share(least)
    );
    let evidence = bound(said!(
        data.lang,
        "findings-growth-the-lowest",
        "The lowest of {count} results is {reached} ({name}) of {limit} that the medium can carry, {share}; so more \
         {factor} can add at most {more}.",
        count = course.group.cells.len(),
        reached = value(data.value(lowest.cell, measure)?, unit),
        name = data.cell_name(lowest.cell, &[]),
        limit = value(lowest.high, unit),
        share = share(least),
        factor = title,
        more = share(1.0 / least - 1.0)
    ));
    Some(finding(FindingKind::Saturated, text, vec![evidence]))
}

/// Returns the finding about courses that all grow, or all fall.
fn growth(data: &Data<'_>, measure: usize, factor: usize, growing: &[&Course]) -> Option<Finding> {
    let whole = data.gathered_by().is_none();
    let clause = |course: &&Course| {
        let ends = course.blocks.iter().filter_map(|block| Some((*block.first()?, *block.last()?)));
        let ratios: Vec<f64> = ends.filter(|(first, _)| *first > 0.0).map(|(first, last)| last / first).collect();
        let grown = match ratios.len() {
            // The extremes of many say more of their noise than of their growth.
            many if many > FEW_SERIES => {
                let times = times(data.lang, median(ratios)?);
                said!(
                    data.lang,
                    "findings-growth-median-of-series",
                    "{times} as high (median of {count} series)",
                    times = times,
                    count = many
                )
            }
            _ => extremes(ratios).map(|(low, high)| times_range(data.lang, low, high))?,
        };
        Some(if whole {
            grown
        } else {
            said!(data.lang, "findings-growth-on", "{grown} on {group}", grown = grown, group = course.group.name)
        })
    };
    let clauses: Option<Vec<String>> = growing.iter().map(clause).collect();
    let clauses = clauses.filter(|clauses| !clauses.is_empty())?;
    let lowest = growing.iter().map(|course| course.ends.0).min()?;
    let highest = growing.iter().map(|course| course.ends.1).max()?;
    let named = &data.study.factors[factor];
    let factor_ratio = match (named.levels[lowest].value, named.levels[highest].value) {
        (Some(low), Some(high)) if low > 0.0 => {
            said!(data.lang, "findings-growth-so-many-times", " ({times})", times = times(data.lang, high / low))
        }
        _ => String::new(),
    };
    let names: Vec<String> = growing.iter().map(|course| course.group.name.clone()).collect();
    let on = if whole {
        String::new()
    } else {
        said!(data.lang, "findings-growth-on-all", "On {groups} ", groups = listed(data.lang, &names))
    };
    let key = if growing.iter().all(|course| course.trend.rises()) {
        text!(
            "findings-growth-grows",
            "{on}the {measure} grows with the {factor}: from {low} to {high}{ratio} it becomes {becomes}."
        )
    } else {
        text!(
            "findings-growth-falls",
            "{on}the {measure} falls with the {factor}: from {low} to {high}{ratio} it becomes {becomes}."
        )
    };
    let mut text = said!(
        data.lang,
        key,
        on = on,
        measure = data.study.measures[measure].title,
        factor = named.title,
        low = data.name_of(factor, lowest),
        high = data.name_of(factor, highest),
        ratio = factor_ratio,
        becomes = listed(data.lang, &clauses)
    );
    // Levels at which something else differs are not part of this.
    let left_out = || (0..named.levels.len()).filter(|level| !(lowest..=highest).contains(level));
    let mut also: Vec<String> = left_out().filter_map(|level| named.levels[level].also.clone()).collect();
    also.dedup();
    if !also.is_empty() {
        let levels: Vec<String> = left_out().map(|level| data.name_of(factor, level)).collect();
        let (levels, also) = (listed(data.lang, &levels), listed(data.lang, &also));
        text.push_str(&said!(
            data.lang,
            "findings-growth-left-out",
            " At {levels} something else differs too ({also}), so these levels are left out.",
            levels = levels,
            also = also
        ));
    }
    let evidence: Vec<Evidence> = growing
        .iter()
        .map(|course| {
            let Trend { rising, falling, pairs, .. } = course.trend.trend;
            let text = said!(
                data.lang,
                "findings-growth-rise-and-fall", "{group}: of {pairs} pairs of levels that agree in all else {rising} rise and {falling} fall; Kendall's \
                 trend within {series} series, {p}.",
                group = course.group.name,
                pairs = pairs,
                rising = rising,
                falling = falling,
                series = course.blocks.len(),
                p = p_value(course.p)
            );
            test(&course.test(data.lang), course.p, text)
        })
        .collect();
    Some(finding(FindingKind::Growth, sentence(&text), evidence))
}
