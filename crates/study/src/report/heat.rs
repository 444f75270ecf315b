//! A study by two factors, or two sets of them, as heat maps.

use super::charts::{capital, said};
use super::pivot::Pivot;
use super::tables::pivoted;
use crate::findings::data::Data;
use linerate_method::statistics::median;
use linerate_report::parts::figures::MISSING;
use linerate_report::parts::values::value;
use linerate_report::parts::wording::listed;
use linerate_report::parts::{HeatMap, Told};
use linerate_report::{Chart, Language, said};

/// Draws a heat map of each measure, if rows and columns have several levels.
pub(super) fn charts(lang: Language, data: &Data<'_>, pivot: &Pivot) -> Vec<Chart> {
    data.measures().filter_map(|(measure, _)| chart(lang, data, measure, pivot)).collect()
}

fn chart(lang: Language, data: &Data<'_>, measure: usize, pivot: &Pivot) -> Option<Chart> {
    let has = |cell: &usize| data.value(*cell, measure).is_some();
    let cells: Vec<usize> = (0..data.study.cells.len()).filter(has).collect();
    let matrix = pivot.matrix(data, &cells);
    if matrix.rows.len() < 2 || matrix.columns.len() < 2 {
        return None;
    }
    let named = &data.study.measures[measure];
    let shown = |name: &Option<String>| name.clone().unwrap_or_else(|| MISSING.to_owned());
    let told = |row: &Option<String>, column: &Option<String>, cells: &[usize]| -> Option<Told> {
        let reached: Vec<f64> = cells.iter().filter_map(|cell| data.value(*cell, measure)).collect();
        let label = |middle: f64| match cells {
            [cell] => said(lang, data, *cell, measure),
            several => said!(
                lang,
                "study-heat-point",
                "{row}, {column}: {value}, the median of {count} results",
                row = shown(row),
                column = shown(column),
                value = value(middle, named.unit),
                count = several.len()
            ),
        };
        median(reached).map(|middle| (middle, label(middle)))
    };
    let values = matrix.rows.iter().zip(&matrix.fields).map(|(row, fields)| {
        matrix.columns.iter().zip(fields).map(|(column, cells)| told(row, column, cells)).collect()
    });
    HeatMap {
        title: said!(
            lang,
            "study-caption-by",
            "{title} by {title2}",
            title = capital(&named.title),
            title2 = listed(lang, &pivot.titles(data.study))
        ),
        unit: named.unit,
        titles: pivot.heads(lang, data.study),
        values: values.collect(),
        rows: matrix.rows.iter().map(shown).collect(),
        columns: matrix.columns.iter().map(shown).collect(),
        table: pivoted(lang, data, measure, pivot, &cells),
    }
    .chart(lang)
}
