//! Repeats of each cell that has several, each as a point.

use super::charts::{capital, class, colour};
use super::shape::Shape;
use crate::findings::data::Data;
use linerate_model::MeasureUnit;
use linerate_report::columns;
use linerate_report::parts::runs::{self, Group, Runs};
use linerate_report::{Chart, Language, plain, said};

/// Draws the repeats of one measure, grouped like its bars.
pub(super) fn chart(lang: Language, data: &Data<'_>, shape: &Shape) -> Option<Chart> {
    let measure = shape.measure;
    let repeated = data.study.cells.iter().any(|cell| cell.values[measure].len() > 1);
    if !repeated {
        return None;
    }
    let named = &data.study.measures[measure];
    let mut legend: Vec<(&'static str, String)> = Vec::new();
    let mut runs = |cell: usize, name: Option<&str>| {
        let (level, of_colour) = colour(data, shape, cell);
        let class = class(data, shape, level);
        let of_colour = plain(&of_colour);
        if !legend.contains(&(class, of_colour.clone())) {
            legend.push((class, of_colour.clone()));
        }
        let values = data.study.cells[cell].values[measure].clone();
        Runs { name: name.map_or(of_colour, plain), class, unit: named.unit, values, before: None }
    };
    // All cells: a line along numbers has no room for points beside each other.
    let mut facets = Shape { axis: None, ..*shape }.facets(data, true);
    facets.iter_mut().for_each(|facet| facet.cells.retain(|cell| data.value(*cell, measure).is_some()));
    facets.retain(|facet| !facet.cells.is_empty());
    let groups: Vec<Group> = match shape.series {
        Some(_) => facets
            .iter()
            .map(|facet| Group {
                name: plain(&facet.name(data)),
                members: facet.cells.iter().map(|cell| runs(*cell, None)).collect(),
            })
            .collect(),
        // Without colours each group would have one member.
        None => {
            let members = facets.iter().flat_map(|facet| facet.cells.iter().map(move |cell| (*cell, facet.name(data))));
            vec![Group { name: String::new(), members: members.map(|(cell, name)| runs(cell, Some(&name))).collect() }]
        }
    };
    let title = match named.unit {
        MeasureUnit::Share => said!(lang, "study-repeats-title", "{title}: each run", title = capital(&named.title)),
        _ => said!(
            lang,
            "study-repeats-title-relative",
            "{title}: each run against the median of its cell",
            title = capital(&named.title)
        ),
    };
    runs::chart(lang, title, columns::CELL, groups, legend)
}
