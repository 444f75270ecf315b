//! A study as the rules see it: medians, limits, and cells that agree in all but one factor.

use super::words::with_commas;
use crate::study::{CellLimit, Conditions, Factor, FactorOf, Level, Measure, StatedAs, StatedValue, Study, StudyCell};
use linerate_method::statistics::{Holm, Tested};
use linerate_model::{Firmness, Known, Layer, MeasureUnit, Medium, Transport};
use linerate_report::parts::figures::{self, percent};
use linerate_report::parts::firmness::bounded;
use linerate_report::parts::values::value;
use linerate_report::{Language, said};
use std::collections::HashMap;

/// A study and the figures that all rules use.
pub(crate) struct Data<'a> {
    pub(crate) study: &'a Study,
    /// The same study, with values that are not firm.
    all: &'a Study,
    /// Language of the sentences.
    pub(crate) lang: Language,
    /// Conditions of the path for each cell and measure.
    paths: Vec<Vec<Conditions>>,
    limits: HashMap<(usize, usize), CellLimit>,
    /// Cells of each level of each factor. Comparing all pairs of levels would otherwise look at all cells for each pair.
    by_level: Vec<Vec<Vec<usize>>>,
    /// All tests of the study's findings, adjusted together.
    tests: Holm,
}

/// Two cells that differ in one factor only.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Pair {
    /// Cell of the one level, and its value.
    pub(crate) a: (usize, f64),
    /// Cell of the other level, and its value.
    pub(crate) b: (usize, f64),
}

/// Returns the cells of each level of each factor.
fn cells_by_level(study: &Study) -> Vec<Vec<Vec<usize>>> {
    let mut by_level: Vec<_> = study.factors.iter().map(|factor| vec![Vec::new(); factor.levels.len()]).collect();
    for (cell, StudyCell { levels, .. }) in study.cells.iter().enumerate() {
        for (factor, level) in levels.iter().enumerate() {
            if let Some(level) = level {
                by_level[factor][*level].push(cell);
            }
        }
    }
    by_level
}

impl<'a> Data<'a> {
    pub(crate) fn of(lang: Language, study: &'a Study) -> Self {
        Self::with_bounds(lang, study, study)
    }

    /// Returns a study of firm values; `all` is the study with all values.
    pub(super) fn with_bounds(lang: Language, study: &'a Study, all: &'a Study) -> Self {
        let mut paths = Vec::new();
        for cell in &study.cells {
            paths.push((0..study.measures.len()).map(|measure| study.conditions(cell, measure)).collect());
        }
        let by_level = cells_by_level(study);
        let mut data = Self { study, all, lang, paths, limits: HashMap::new(), by_level, tests: Holm::default() };
        for cell in 0..study.cells.len() {
            for measure in 0..study.measures.len() {
                if let Some(limit) = data.work_out(cell, measure) {
                    data.limits.insert((cell, measure), limit);
                }
            }
        }
        data.tests = Holm::over(super::tests(&data));
        data
    }

    /// Returns the p-value of one of the study's tests, adjusted for all of them.
    pub(crate) fn adjusted(&self, test: Tested) -> f64 {
        self.tests.adjusted(test)
    }

    /// Returns the range of the limit, over the possible message sizes and counted layers.
    fn work_out(&self, cell: usize, measure: usize) -> Option<CellLimit> {
        let value = self.value(cell, measure)?;
        let (low, high) = self.range_of(self.path(cell, measure), measure)?;
        (high > 0.0).then_some(CellLimit { cell, measure, low, high, share: value / high })
    }

    /// Returns the range or bound that the author states for a cell.
    pub(crate) fn stated(&self, cell: usize, measure: usize) -> Option<&'a StatedValue> {
        self.study.cells[cell].stated.get(&measure)
    }

    /// Returns the range of a result; a number is both ends.
    pub(crate) fn span(&self, cell: usize, measure: usize) -> Option<(f64, f64)> {
        match self.stated(cell, measure) {
            Some(stated) => Some((stated.low.unwrap_or(0.0), stated.high.unwrap_or(f64::INFINITY))),
            None => self.value(cell, measure).map(|value| (value, value)),
        }
    }

    /// Formats a result as it is stated.
    pub(crate) fn shown(&self, cell: usize, measure: usize) -> Option<String> {
        let unit = self.study.measures[measure].unit;
        let number = self.value(cell, measure);
        let Some(stated) = self.stated(cell, measure) else {
            let firmness = self.firmness(cell, measure);
            return number.map(|number| bounded(self.lang, value(number, unit), firmness, unit.more_is_better()));
        };
        let (low, high) = (stated.low.map(|low| value(low, unit)), stated.high.map(|high| value(high, unit)));
        Some(match stated.as_a {
            StatedAs::About => said!(self.lang, "findings-data-about", "about {number}", number = value(number?, unit)),
            StatedAs::AtMost => said!(self.lang, "findings-data-at-most", "at most {number}", number = high?),
            StatedAs::LessThan => said!(self.lang, "findings-data-less-than", "less than {number}", number = high?),
            StatedAs::AtLeast => said!(self.lang, "findings-data-at-least", "at least {number}", number = low?),
            StatedAs::MoreThan => said!(self.lang, "findings-data-more-than", "more than {number}", number = low?),
            StatedAs::Range => figures::range(self.lang, &low?, &high?),
        })
    }

    /// Formats the share of the limit: `81.0 %`, and `about 101 %` for a value that is stated as about a number.
    pub(crate) fn shown_share(&self, cell: usize, measure: usize) -> Option<String> {
        let share = self.limit(cell, measure)?.share;
        if self.stated(cell, measure).is_some() {
            return Some(said!(
                self.lang,
                "findings-data-about",
                "about {number}",
                number = format!("{:.0} %", share * 100.0)
            ));
        }
        percent(share)
    }

    /// Returns the range of the limit of a cell, also without a result.
    pub(crate) fn range(&self, cell: usize, measure: usize) -> Option<(f64, f64)> {
        self.range_of(self.path(cell, measure), measure)
    }

    /// Returns the range of the limit of a cell for another message size.
    pub(crate) fn range_at(&self, cell: usize, measure: usize, message_bytes: u64) -> Option<(f64, f64)> {
        let path = Conditions { message_bytes: vec![message_bytes], ..self.path(cell, measure).clone() };
        self.range_of(&path, measure)
    }

    fn range_of(&self, path: &Conditions, measure: usize) -> Option<(f64, f64)> {
        let limits: Vec<f64> = match self.study.measures[measure].unit {
            MeasureUnit::Nanos
            | MeasureUnit::NanosHeld
            | MeasureUnit::Times
            | MeasureUnit::Share
            | MeasureUnit::Count => return None,
            MeasureUnit::PerS => vec![frame_limit(path)?],
            MeasureUnit::BitsPerS => {
                let layers = match self.study.measures[measure].counts {
                    Some(layer) => vec![layer],
                    None => vec![Layer::Payload, Layer::Layer2Fcs],
                };
                let carried = path.carried().ok()?;
                carried.iter().flat_map(|one| layers.iter().map(|layer| one.rate(*layer).get() as f64)).collect()
            }
        };
        limits.iter().copied().reduce(f64::min).zip(limits.iter().copied().reduce(f64::max))
    }

    pub(crate) fn limits(&self) -> Vec<CellLimit> {
        let mut limits: Vec<CellLimit> = self.limits.values().copied().collect();
        limits.sort_by_key(|limit| (limit.cell, limit.measure));
        limits
    }

    pub(crate) fn limit(&self, cell: usize, measure: usize) -> Option<CellLimit> {
        self.limits.get(&(cell, measure)).copied()
    }

    pub(crate) fn path(&self, cell: usize, measure: usize) -> &Conditions {
        &self.paths[cell][measure]
    }

    pub(crate) fn medium(&self, cell: usize, measure: usize) -> Option<Medium> {
        self.path(cell, measure).medium
    }

    pub(crate) fn transport(&self, cell: usize, measure: usize) -> Option<Transport> {
        self.path(cell, measure).transport
    }

    pub(crate) fn value(&self, cell: usize, measure: usize) -> Option<f64> {
        self.study.cells[cell].median(measure)
    }

    /// Returns the firmness of a cell's value.
    pub(crate) fn firmness(&self, cell: usize, measure: usize) -> Firmness {
        self.all.cells[cell].firmness_of(measure)
    }

    /// Returns what the value of a cell shows.
    fn known(&self, cell: usize, measure: usize) -> Known {
        self.firmness(cell, measure).known(self.study.measures[measure].unit.more_is_better())
    }

    /// Returns the value of a cell or its lower bound; `None` if it is neither.
    fn value_or_bound(&self, cell: usize, measure: usize) -> Option<f64> {
        let is_bound = self.known(cell, measure) == Known::AtLeast;
        self.value(cell, measure).or_else(|| self.all.cells[cell].median(measure).filter(|_| is_bound))
    }

    /// Returns whether the true values of a pair have the order of its figures.
    pub(super) fn decides(&self, pair: &Pair, measure: usize) -> bool {
        let [one, other] = [pair.a, pair.b].map(|(cell, _)| self.known(cell, measure));
        one.decides(pair.a.1.total_cmp(&pair.b.1), other)
    }

    /// Returns the cells with a value of a measure, without those of the tester alone.
    pub(crate) fn cells(&self, measure: usize) -> Vec<usize> {
        (0..self.study.cells.len())
            .filter(|cell| !self.is_tester(*cell) && self.value(*cell, measure).is_some())
            .collect()
    }

    /// Returns whether a cell is the tester alone.
    pub(crate) fn is_tester(&self, cell: usize) -> bool {
        (0..self.study.factors.len()).any(|factor| self.level(cell, factor).is_some_and(|level| level.tester))
    }

    pub(crate) fn level(&self, cell: usize, factor: usize) -> Option<&'a Level> {
        self.study.level(&self.study.cells[cell], factor)
    }

    /// Returns the factor whose levels are media.
    pub(crate) fn medium_factor(&self) -> Option<usize> {
        self.factor(|factor| factor.levels.iter().any(|level| level.path.medium.is_some()))
    }

    /// Returns the factor whose levels are transports.
    pub(crate) fn transport_factor(&self) -> Option<usize> {
        self.factor(|factor| factor.levels.iter().any(|level| level.path.transport.is_some()))
    }

    /// Returns the factor whose levels are the message sizes of a measure.
    pub(crate) fn message_factor(&self, measure: usize) -> Option<usize> {
        let applies = |factor: &usize| {
            let is_at = |cell: &usize| self.study.cells[*cell].levels[*factor].is_some();
            (0..self.study.cells.len()).filter(is_at).any(|cell| self.value(cell, measure).is_some())
        };
        let is = |factor: &usize| self.study.factors[*factor].of == Some(FactorOf::Message);
        (0..self.study.factors.len()).filter(is).find(applies)
    }

    fn factor(&self, is: impl Fn(&Factor) -> bool) -> Option<usize> {
        self.study.factors.iter().position(is)
    }

    /// Returns the factors whose levels have no order.
    pub(crate) fn unordered(&self) -> impl Iterator<Item = usize> {
        (0..self.study.factors.len()).filter(|index| self.study.factors[*index].unit.is_none())
    }

    /// Returns the factors with numeric levels that are not message sizes.
    pub(crate) fn ordered(&self) -> impl Iterator<Item = usize> {
        let is = |index: &usize| {
            let factor = &self.study.factors[*index];
            factor.unit.is_some() && factor.of != Some(FactorOf::Message) && Some(*index) != self.medium_factor()
        };
        (0..self.study.factors.len()).filter(is)
    }

    /// Returns the factor that groups results: the media, or the factor by which measures are compared.
    pub(crate) fn gathered_by(&self) -> Option<usize> {
        self.medium_factor().or_else(|| self.study.comparisons.first().map(|comparison| comparison.by))
    }

    /// Returns whether a result of the group's level is not firm, so that nothing is known of all its results.
    pub(super) fn has_open(&self, factor: Option<usize>, group: &Group, measure: usize) -> bool {
        let level =
            factor.zip(group.cells.first()).map(|(factor, cell)| (factor, self.study.cells[*cell].levels[factor]));
        let is_of_group =
            |cell: usize| level.is_none_or(|(factor, level)| self.study.cells[cell].levels[factor] == level);
        let is_open =
            |cell: usize| !self.firmness(cell, measure).is_firm() && self.all.cells[cell].median(measure).is_some();
        (0..self.all.cells.len()).any(|cell| is_of_group(cell) && !self.is_tester(cell) && is_open(cell))
    }

    /// Groups the cells of a measure by the levels of a factor, in their order; without a factor, all form one group.
    pub(crate) fn groups(&self, factor: Option<usize>, measure: usize) -> Vec<Group> {
        self.grouped(factor, self.cells(measure))
    }

    /// Returns the same groups, with cells that have only a stated range or bound.
    pub(crate) fn groups_with_stated(&self, factor: Option<usize>, measure: usize) -> Vec<Group> {
        let mut cells: Vec<usize> = (0..self.study.cells.len()).collect();
        cells.retain(|cell| !self.is_tester(*cell) && self.span(*cell, measure).is_some());
        self.grouped(factor, cells)
    }

    /// Returns the same groups, with cells that have only a lower bound.
    pub(super) fn groups_with_bounds(&self, factor: Option<usize>, measure: usize) -> Vec<Group> {
        let mut cells: Vec<usize> = (0..self.study.cells.len()).collect();
        cells.retain(|cell| !self.is_tester(*cell) && self.value_or_bound(*cell, measure).is_some());
        self.grouped(factor, cells)
    }

    fn grouped(&self, factor: Option<usize>, cells: Vec<usize>) -> Vec<Group> {
        let Some(factor) = factor else {
            return vec![Group { name: said!(self.lang, "findings-data-all-results", "all results"), cells }];
        };
        let of = |level: usize| Group {
            name: match &self.study.factors[factor] {
                // A number says less than the medium that it stands for.
                numeric if numeric.unit.is_some() => numeric.levels[level].path.medium.map(|medium| medium.to_string()),
                _ => None,
            }
            .unwrap_or_else(|| self.name_of(factor, level)),
            cells: cells.iter().copied().filter(|cell| self.study.cells[*cell].levels[factor] == Some(level)).collect(),
        };
        (0..self.study.factors[factor].levels.len()).map(of).filter(|group| !group.cells.is_empty()).collect()
    }

    /// Returns all pairs of cells that differ in this factor only, with its levels `a` and `b`.
    pub(crate) fn pairs(&self, factor: usize, a: usize, b: usize, measure: usize) -> Vec<Pair> {
        self.paired(factor, a, b, |cell| self.value(cell, measure))
    }

    /// Returns the same pairs, with cells that have only a lower bound.
    pub(super) fn pairs_with_bounds(&self, factor: usize, a: usize, b: usize, measure: usize) -> Vec<Pair> {
        self.paired(factor, a, b, |cell| self.value_or_bound(cell, measure))
    }

    /// Returns the pairs of cells with a number, a range or a bound.
    pub(super) fn pairs_with_stated(&self, factor: usize, a: usize, b: usize, measure: usize) -> Vec<(usize, usize)> {
        let lowest = |cell: usize| self.span(cell, measure).map(|(low, _)| low);
        self.paired(factor, a, b, lowest).into_iter().map(|pair| (pair.a.0, pair.b.0)).collect()
    }

    /// Returns whether a range or a bound is stated of one of these cells.
    pub(super) fn has_stated(&self, (one, other): (usize, usize), measure: usize) -> bool {
        [one, other].iter().any(|cell| self.stated(*cell, measure).is_some())
    }

    fn paired(&self, factor: usize, a: usize, b: usize, value: impl Fn(usize) -> Option<f64>) -> Vec<Pair> {
        let mut of_b = HashMap::new();
        for &cell in &self.by_level[factor][b] {
            if let Some(value) = value(cell) {
                of_b.insert(self.other_levels(cell, factor), (cell, value));
            }
        }
        let mut pairs = Vec::new();
        for &cell in &self.by_level[factor][a] {
            if let (Some(value), Some(b)) = (value(cell), of_b.get(&self.other_levels(cell, factor))) {
                pairs.push(Pair { a: (cell, value), b: *b });
            }
        }
        pairs
    }

    /// Returns the levels of a cell without that of `factor`.
    fn other_levels(&self, cell: usize, factor: usize) -> (&[Option<usize>], &[Option<usize>]) {
        let levels = &self.study.cells[cell].levels;
        (&levels[..factor], &levels[factor + 1..])
    }

    pub(crate) fn measures(&self) -> impl Iterator<Item = (usize, &'a Measure)> {
        self.study.measures.iter().enumerate()
    }

    /// Formats a level with its unit.
    pub(crate) fn name_of(&self, factor: usize, level: usize) -> String {
        let factor = &self.study.factors[factor];
        let name = &factor.levels[level].name;
        factor.unit.as_ref().map_or_else(|| name.clone(), |unit| format!("{name} {unit}"))
    }

    /// Formats the levels of a cell, without the factors in `but`.
    pub(crate) fn cell_name(&self, cell: usize, but: &[usize]) -> String {
        let mut names = Vec::new();
        for (factor, level) in self.study.cells[cell].levels.iter().enumerate() {
            if let Some(level) = level
                && !but.contains(&factor)
            {
                names.push(self.name_of(factor, *level));
            }
        }
        with_commas(self.lang, &names)
    }
}

/// Cells that share a level.
#[derive(Debug, Clone)]
pub(crate) struct Group {
    pub(crate) name: String,
    pub(crate) cells: Vec<usize>,
}

/// Returns the frames per second of this size on an Ethernet line (RFC 2544 appendix B).
fn frame_limit(path: &Conditions) -> Option<f64> {
    match (path.medium?, path.frame_bytes?) {
        (Medium::Ethernet(line), frame) => Some(line.get() as f64 / (8.0 * f64::from(frame.on_the_wire()))),
        _ => None,
    }
}
