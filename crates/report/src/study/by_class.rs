//! The same figure of several classes of operations on one chart, as the response times of reads and writes: each class has its
//! colour, and each level of the factor that otherwise has the colours its dashes.

use super::charts::{Line, MOST_FACETS, along, axis, capital, colour, top};
use super::shape::Shape;
use crate::charts::Chart;
use crate::findings::data::Data;
use crate::language::Language;

/// Styles of lines by colour and dashes. More of either would not be told apart.
const STYLES: [[&str; 3]; 4] = [
    ["s0 dash0", "s0 dash1", "s0 dash2"],
    ["s1 dash0", "s1 dash1", "s1 dash2"],
    ["s2 dash0", "s2 dash1", "s2 dash2"],
    ["s3 dash0", "s3 dash1", "s3 dash2"],
];

/// What a measure is of its class, as in the `mean` of `read.mean`; none where it is of no class.
fn figure<'a>(data: &'a Data<'_>, shape: &Shape) -> Option<&'a str> {
    let (class, figure) = data.study.measures[shape.measure].metric.as_deref()?.split_once('.')?;
    ["read", "write", "other"].contains(&class).then_some(figure)
}

/// The shapes of measures that go on one chart together, and all others.
pub(super) fn sorted<'a>(data: &Data<'_>, shapes: &'a [Shape]) -> (Vec<Vec<&'a Shape>>, Vec<&'a Shape>) {
    let mut together: Vec<Vec<&Shape>> = Vec::new();
    let mut alone = Vec::new();
    for shape in shapes {
        let dashes = shape.series.map_or(1, |factor| data.study.factors[factor].levels.len());
        let key = |shape: &Shape| Some((figure(data, shape)?, shape.axis?, shape.series));
        if key(shape).is_none() || dashes > STYLES[0].len() {
            alone.push(shape);
            continue;
        }
        match together.iter_mut().find(|known| key(known[0]) == key(shape) && known.len() < STYLES.len()) {
            Some(known) => known.push(shape),
            None => together.push(vec![shape]),
        }
    }
    // One class by itself is drawn as any other measure.
    let (single, together): (Vec<_>, Vec<_>) = together.into_iter().partition(|shapes| shapes.len() == 1);
    alone.extend(single.into_iter().flatten());
    alone.sort_by_key(|shape| shape.measure);
    (together, alone)
}

/// The charts of measures that go together: one for each combination of the factors that are neither axis nor dashes.
pub(super) fn charts(lang: Language, data: &Data<'_>, shapes: &[&Shape]) -> Vec<Chart> {
    let Some(factor) = shapes[0].axis else { return Vec::new() };
    let measures: Vec<usize> = shapes.iter().map(|shape| shape.measure).collect();
    let facets: Vec<_> = shapes.iter().map(|shape| shape.facets(data, false)).collect();
    let mut names: Vec<&str> = Vec::new();
    for facet in facets.iter().flatten() {
        if !names.contains(&facet.name.as_str()) {
            names.push(&facet.name);
        }
    }
    let chart = |name: &&str| {
        let mut lines: Vec<Line> = Vec::new();
        for (shape, styles) in shapes.iter().zip(STYLES) {
            let own = facets.iter().flatten().filter(|facet| facet.name == **name);
            let cells = own.flat_map(|facet| &facet.cells).filter(|cell| data.value(**cell, shape.measure).is_some());
            for cell in cells {
                let (level, of_level) = colour(data, shape, *cell);
                let class = styles[level];
                let title = &data.study.measures[shape.measure].title;
                let name = if shape.series.is_some() { format!("{title}, {of_level}") } else { title.clone() };
                match lines.iter_mut().find(|line| line.class == class) {
                    Some(line) if line.cells.contains(cell) => {}
                    Some(line) => line.cells.push(*cell),
                    None => lines.push(Line { class, name, measure: shape.measure, cells: vec![*cell], joined: true }),
                }
            }
        }
        let mut cells: Vec<usize> = lines.iter().flat_map(|line| line.cells.iter().copied()).collect();
        cells.sort_unstable();
        cells.dedup();
        let titles: Vec<String> = measures.iter().map(|measure| data.study.measures[*measure].title.clone()).collect();
        let listed = crate::sentences::listed(lang, &titles);
        let title = capital(if name.is_empty() { &listed } else { name });
        let most = measures.iter().map(|measure| top(data, *measure, &cells)).fold(0.0, f64::max);
        let y = axis(data, &listed, measures[0], most);
        let table = super::tables::of_cells(lang, data, &title, &measures, &cells);
        along(lang, data, factor, y, title, table, (Vec::new(), Vec::new()), lines)
    };
    names.iter().take(MOST_FACETS).map(chart).collect()
}
