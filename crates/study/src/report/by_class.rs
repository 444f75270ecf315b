//! Charts of one figure of several classes of operations, such as the response times of reads and writes: each class
//! has its colour, and each level of the factor that otherwise has the colours its dashes.

use super::charts::{self, Line, colour};
use super::multiples::{self, Over, Plot};
use super::shape::Shape;
use crate::findings::data::Data;
use crate::findings::words::with_commas;
use linerate_report::parts::wording::listed;
use linerate_report::{Chart, Language};

/// Styles of lines by colour and dashes. Readers cannot distinguish more of either.
const STYLES: [[&str; 3]; 4] = [
    ["s0 dash0", "s0 dash1", "s0 dash2"],
    ["s1 dash0", "s1 dash1", "s1 dash2"],
    ["s2 dash0", "s2 dash1", "s2 dash2"],
    ["s3 dash0", "s3 dash1", "s3 dash2"],
];

/// Splits a metric such as `read.mean` into class and figure; `None` if it has no class.
fn figure<'a>(data: &'a Data<'_>, shape: &Shape) -> Option<&'a str> {
    let (class, figure) = data.study.measures[shape.measure].metric.as_deref()?.split_once('.')?;
    ["read", "write", "other"].contains(&class).then_some(figure)
}

/// Returns the shapes of measures that share a chart, and all others.
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

/// Draws measures that share a chart, for all combinations of the factors that are neither axis nor dashes.
pub(super) fn charts(lang: Language, data: &Data<'_>, shapes: &[&Shape]) -> Vec<Chart> {
    let Some(factor) = shapes[0].axis else { return Vec::new() };
    let mut plots: Vec<Plot> = Vec::new();
    for (shape, styles) in shapes.iter().zip(STYLES) {
        let title = &data.study.measures[shape.measure].title;
        for facet in shape.facets(data, false) {
            let at = plots.iter().position(|plot| plot.levels == facet.levels).unwrap_or_else(|| {
                plots.push(Plot {
                    levels: facet.levels.clone(),
                    lines: Vec::new(),
                    limits: Default::default(),
                    top: 0.0,
                });
                plots.len() - 1
            });
            let Plot { lines, top, .. } = &mut plots[at];
            *top = top.max(charts::top(data, shape.measure, &facet.cells));
            for cell in facet.cells {
                let (level, of_level) = colour(data, shape, cell);
                let class = styles[level];
                let name =
                    if shape.series.is_some() { with_commas(lang, &[title.clone(), of_level]) } else { title.clone() };
                match lines.iter_mut().find(|line| line.class == class) {
                    Some(line) => line.cells.push(cell),
                    None => lines.push(Line { class, name, measure: shape.measure, cells: vec![cell], joined: true }),
                }
            }
        }
    }
    let measures: Vec<usize> = shapes.iter().map(|shape| shape.measure).collect();
    let titles: Vec<String> = measures.iter().map(|measure| data.study.measures[*measure].title.clone()).collect();
    multiples::charts(lang, data, &Over { factor, measures: &measures, what: &listed(lang, &titles) }, plots)
}
