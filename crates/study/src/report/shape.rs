//! Which factor is drawn along the axis, which as colours, and which part the rest into charts.

use crate::findings::data::Data;
use crate::study::FactorOf;

/// Fewer levels make no line.
const FEWEST_ON_A_LINE: usize = 3;

/// How the cells of one measure are laid out.
pub(super) struct Shape {
    pub(super) measure: usize,
    /// The factor along the axis, whose levels are numbers.
    pub(super) axis: Option<usize>,
    /// The factor whose levels have a colour each; none where measures have.
    pub(super) series: Option<usize>,
}

/// Cells that agree in all factors but those of axis and series.
pub(super) struct Facet {
    /// The level of each factor; none for those of axis and series, and for those that do not apply.
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
        // Another measure of the study may have been taken at other factors.
        let applies = |factor: &usize| {
            let is_at = |cell: &usize| data.study.cells[*cell].levels[*factor].is_some();
            (0..data.study.cells.len()).filter(is_at).any(|cell| data.span(cell, measure).is_some())
        };
        let axis = (0..factors.len()).filter(on_a_line).find(applies);
        let levels = |factor: &usize| factors[*factor].unit.is_none() && factors[*factor].levels.len() > 1;
        // A tester limit is read beside the devices, so these have the colours.
        let devices = data.unordered().find(|factor| factors[*factor].levels.iter().any(|level| level.tester));
        let media = data.medium_factor().filter(levels);
        let series = devices.or(media).or_else(|| data.unordered().find(levels));
        Self { measure, axis, series }
    }

    /// All cells of the measure that have a level of the axis' factor or, where `without`, that have none; then also those of which only a
    /// range or a bound is stated.
    pub(super) fn facets(&self, data: &Data<'_>, without: bool) -> Vec<Facet> {
        let mut facets: Vec<Facet> = Vec::new();
        for cell in 0..data.study.cells.len() {
            let on_axis = self.axis.is_some_and(|axis| data.study.cells[cell].levels[axis].is_some());
            let known = match without {
                true => data.span(cell, self.measure).is_some(),
                false => data.value(cell, self.measure).is_some(),
            };
            if !known || on_axis == without {
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
    /// The levels that tell it from others.
    pub(super) fn name(&self, data: &Data<'_>) -> String {
        named(data, &self.levels, &[])
    }
}

/// The levels that tell a facet from others, without those of the factors in `but`: factors with only one level are left out too.
pub(super) fn named(data: &Data<'_>, levels: &[Option<usize>], but: &[usize]) -> String {
    let factors = &data.study.factors;
    let of = |(factor, level): (usize, &Option<usize>)| {
        let name = data.name_of(factor, (*level)?);
        // A number needs to be said what it is of.
        let is_told = !but.contains(&factor) && factors[factor].levels.len() > 1;
        is_told.then(|| if factors[factor].unit.is_some() { format!("{} {name}", factors[factor].title) } else { name })
    };
    levels.iter().enumerate().filter_map(of).collect::<Vec<_>>().join(", ")
}
