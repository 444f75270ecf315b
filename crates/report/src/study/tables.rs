//! Tables by factor, and all cells.

use super::charts::capital;
use crate::figures::{percent, plain};
use crate::findings::data::Data;
use crate::findings::words::{range_in, value};
use crate::language::Language;
use crate::said;
use crate::tables::{Column, Table};

/// Rows of a table that a reader looks at.
const MOST_ROWS: usize = 400;

/// For each measure and each factor with several levels a table that has these as columns: what there is to compare stands
/// beside each other.
pub(super) fn pivots(lang: Language, data: &Data<'_>) -> Vec<Table> {
    data.measures()
        .flat_map(|(measure, _)| {
            // Media first: that is what most readers look for.
            let others = (0..data.study.factors.len()).filter(|factor| Some(*factor) != data.medium_factor());
            data.medium_factor().into_iter().chain(others).filter_map(move |factor| pivot(lang, data, measure, factor))
        })
        .collect()
}

/// Cells that agree in all but one factor.
struct Row {
    rest: Vec<Option<usize>>,
    /// One of them.
    cell: usize,
    by_level: Vec<Option<usize>>,
}

/// A column that the study names.
fn column(title: &str, meaning: String) -> Column {
    Column::named(plain(title), meaning)
}

/// What a table of [`pivots`] is by: `by device`.
pub(super) fn by(lang: Language, table: &Table) -> String {
    table
        .caption
        .rsplit_once(" by ")
        .map_or_else(|| table.caption.clone(), |(_, factor)| said!(lang, "study-tables-by-2", factor = factor))
}

fn pivot(lang: Language, data: &Data<'_>, measure: usize, factor: usize) -> Option<Table> {
    let named = &data.study.factors[factor];
    let mut rows: Vec<Row> = Vec::new();
    for (cell, of) in data.study.cells.iter().enumerate() {
        let Some(level) = of.levels[factor].filter(|_| data.value(cell, measure).is_some()) else { continue };
        let mut rest = of.levels.clone();
        rest[factor] = None;
        let at = rows.iter().position(|row| row.rest == rest).unwrap_or_else(|| {
            rows.push(Row { rest, cell, by_level: vec![None; named.levels.len()] });
            rows.len() - 1
        });
        rows[at].by_level[level] = Some(cell);
    }
    // Where no row holds two levels there is nothing to compare.
    let compares = rows.iter().any(|row| row.by_level.iter().flatten().count() > 1);
    if !compares || rows.len() > MOST_ROWS {
        return None;
    }
    rows.sort_by(|a, b| a.rest.cmp(&b.rest));
    let unit = data.study.measures[measure].unit;
    let used: Vec<usize> =
        (0..named.levels.len()).filter(|level| rows.iter().any(|row| row.by_level[*level].is_some())).collect();
    let row = |row: &Row| {
        let name = Some(plain(&data.cell_name(row.cell, &[factor])));
        let value_of = |level: &usize| row.by_level[*level].and_then(|cell| data.value(cell, measure));
        let values = used.iter().map(|level| value_of(level).map(|reached| value(reached, unit)));
        std::iter::once(name).chain(values).collect()
    };
    let title = &data.study.measures[measure].title;
    let heads = used.iter().map(|level| {
        column(&data.name_of(factor, *level), said!(lang, "study-tables-median-of-the-repeats", title = title))
    });
    Some(Table {
        caption: plain(&said!(lang, "study-tables-by", title = capital(title), title2 = named.title)),
        columns: std::iter::once(Column::new("column-all-else")).chain(heads).collect(),
        rows: rows.iter().map(row).collect(),
    })
}

/// Every cell with every measure, its limit and its share of that.
pub(super) fn everything(lang: Language, data: &Data<'_>) -> Table {
    let measures: Vec<usize> = data.measures().map(|(measure, _)| measure).collect();
    let cells: Vec<usize> = (0..data.study.cells.len()).collect();
    of_cells(lang, data, &said!(lang, "study-tables-all-results"), &measures, &cells)
}

/// These cells with these measures.
pub(super) fn of_cells(lang: Language, data: &Data<'_>, caption: &str, measures: &[usize], cells: &[usize]) -> Table {
    let limited = |measure: &usize| cells.iter().any(|cell| data.limit(*cell, *measure).is_some());
    let mut columns = vec![Column::new("column-cell")];
    for measure in measures {
        let named = &data.study.measures[*measure];
        columns.push(column(&named.title, said!(lang, "study-tables-as-measured")));
        if limited(measure) {
            columns.push(Column::new("column-medium-limit"));
            columns.push(Column::new("column-limit-share"));
        }
    }
    let row = |cell: &usize| {
        let mut row = vec![Some(plain(&data.cell_name(*cell, &[])))];
        for measure in measures {
            let unit = data.study.measures[*measure].unit;
            row.push(data.value(*cell, *measure).map(|reached| value(reached, unit)));
            if limited(measure) {
                let limit = data.limit(*cell, *measure);
                row.push(limit.map(|limit| range_in(lang, limit.low, limit.high, unit)));
                row.push(limit.and_then(|limit| percent(limit.share)));
            }
        }
        row
    };
    Table { caption: caption.to_owned(), columns, rows: cells.iter().map(row).collect() }
}

/// The levels with what the study says of them: medium and price.
pub(super) fn levels(lang: Language, data: &Data<'_>) -> Option<Table> {
    let currency = data.study.currency.as_deref().unwrap_or("");
    let mut rows = Vec::new();
    for factor in &data.study.factors {
        for level in &factor.levels {
            let price = level.price.map(|price| {
                let amount = |amount: f64| linerate_units::grouped(amount.round() as u64);
                let low = amount(price.low);
                let range = if price.low == price.high {
                    low
                } else {
                    said!(lang, "comparison-to", low = low, high = amount(price.high))
                };
                format!("{range} {currency}").trim_end().to_owned()
            });
            let medium = level.path.medium.map(|medium| medium.to_string());
            if medium.is_some() || price.is_some() {
                rows.push(vec![Some(plain(&format!("{} {}", factor.title, level.name))), medium, price]);
            }
        }
    }
    (!rows.is_empty()).then(|| Table {
        caption: said!(lang, "study-tables-what-the-levels-are"),
        columns: vec![
            Column::new("column-level"),
            Column::new("column-study-tables-medium"),
            Column::new("column-price"),
        ],
        rows,
    })
}
