//! The factor along the axis of a chart, the factor shown by colours, and the facets made of all others.

use crate::findings::data::Data;
use crate::findings::words::with_commas;
use crate::study::FactorOf;

/// Minimum number of levels for a line.
const FEWEST_ON_A_LINE: usize = 3;

/// Layout of the cells of one measure.
pub(super) struct Shape {
    pub(super) measure: usize,
    /// Numeric factor along the axis.
    pub(super) axis: Option<usize>,
    /// Factor shown by colours; `None` if measures are.
    pub(super) series: Option<usize>,
}

/// Cells with the same levels except for the factors of axis and series.
pub(super) struct Facet {
    /// Level of each factor; `None` for those of axis and series, and for those that do not apply.
    pub(super) levels: Vec<Option<usize>>,
    pub(super) cells: Vec<usize>,
}

impl Shape {
    pub(super) fn of(data: &Data<'_>, measure: usize) -> Self {
        let factors = &data.study.factors;
        let on_a_line = |factor: &usize| {
            let named = &factors[*factor];
            (named.unit.is_some() || named.of == Some(FactorOf::Message))
                && named.levels.len() >= FEWEST_ON_A_LINE
                && Some(*factor) != data.medium_factor()
        };
        // Other measures of the study may have other factors.
        let applies = |factor: &usize| {
            let is_at = |cell: &usize| data.study.cells[*cell].levels[*factor].is_some();
            (0..data.study.cells.len()).filter(is_at).any(|cell| data.span(cell, measure).is_some())
        };
        let axis = (0..factors.len()).filter(on_a_line).find(applies);
        let levels = |factor: &usize| factors[*factor].unit.is_none() && factors[*factor].levels.len() > 1;
        // A tester limit is compared with the devices, so these have the colours.
        let devices = data.unordered().find(|factor| factors[*factor].levels.iter().any(|level| level.tester));
        let media = data.medium_factor().filter(levels);
        let series = devices.or(media).or_else(|| data.unordered().find(levels));
        Self { measure, axis, series }
    }

    /// Returns the cells of the measure that have a level of the axis' factor, facet by facet. `without` returns those
    /// that have none instead, together with those that have only a stated range or bound.
    pub(super) fn facets(&self, data: &Data<'_>, without: bool) -> Vec<Facet> {
        let mut facets: Vec<Facet> = Vec::new();
        for cell in 0..data.study.cells.len() {
            let on_axis = self.axis.is_some_and(|axis| data.study.cells[cell].levels[axis].is_some());
            let has_result = if without {
                data.span(cell, self.measure).is_some()
            } else {
                data.value(cell, self.measure).is_some()
            };
            if !has_result || on_axis == without {
                continue;
            }
            let mut levels = data.study.cells[cell].levels.clone();
            self.axis.iter().chain(&self.series).for_each(|factor| levels[*factor] = None);
            match facets.iter_mut().find(|facet| facet.levels == levels) {
                Some(facet) => facet.cells.push(cell),
                None => facets.push(Facet { levels, cells: vec![cell] }),
            }
        }
        facets
    }
}

impl Facet {
    /// Returns the levels that distinguish it from other facets.
    pub(super) fn name(&self, data: &Data<'_>) -> String {
        named(data, &self.levels, &[])
    }
}

/// Returns the levels that distinguish a facet, without those of factors in `but` and of factors with one level.
pub(super) fn named(data: &Data<'_>, levels: &[Option<usize>], but: &[usize]) -> String {
    let factors = &data.study.factors;
    let mut names = Vec::new();
    for (factor, level) in levels.iter().enumerate() {
        let Some(level) = level else { continue };
        if but.contains(&factor) || factors[factor].levels.len() < 2 {
            continue;
        }
        let name = data.name_of(factor, *level);
        // A number needs the title of its factor.
        let numeric = factors[factor].unit.is_some();
        names.push(if numeric { format!("{} {name}", factors[factor].title) } else { name });
    }
    with_commas(data.lang, &names)
}
