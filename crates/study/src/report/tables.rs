//! Tables by factor, and all cells.

use super::charts::capital;
use super::pivot::Pivot;
use crate::findings::data::{Data, Group};
use crate::findings::price::cost_range;
use crate::findings::words::{with_commas, with_semicolons};
use crate::study::{Level, Price};
use linerate_method::statistics::median;
use linerate_model::{Firmness, MeasureUnit};
use linerate_report::column;
use linerate_report::columns;
use linerate_report::parts::figures::MISSING;
use linerate_report::parts::firmness::{bounded, shown, told};
use linerate_report::parts::values::{extremes, range, value};
use linerate_report::parts::wording::listed;
use linerate_report::{Column, Language, Table, plain, said};
use unicode_width::UnicodeWidthStr;

/// Maximum number of rows of a table.
const MOST_ROWS: usize = 400;

/// Returns the tables by a pivot: one for each measure, or one of all measures if these have the columns. Without a
/// pivot, returns one for each measure and each factor with several levels.
pub(super) fn pivots(lang: Language, data: &Data<'_>, asked: Option<&Pivot>) -> Vec<Table> {
    match asked {
        Some(pivot) if pivot.columns.is_empty() => vec![beside(lang, data, pivot)],
        Some(pivot) => {
            let all: Vec<usize> = (0..data.study.cells.len()).collect();
            data.measures().map(|(measure, _)| pivoted(lang, data, measure, pivot, &all)).collect()
        }
        None => data.measures().flat_map(|(measure, _)| by_each(lang, data, measure)).collect(),
    }
}

/// Returns a table by each factor that compares something.
fn by_each(lang: Language, data: &Data<'_>, measure: usize) -> Vec<Table> {
    // Media first: that is what most readers look for.
    let others = (0..data.study.factors.len()).filter(|factor| Some(*factor) != data.medium_factor());
    let by = |factor: usize| {
        let pivot = Pivot::by(data.study, factor);
        let has =
            |cell: &usize| data.study.cells[*cell].levels[factor].is_some() && data.span(*cell, measure).is_some();
        let cells: Vec<usize> = (0..data.study.cells.len()).filter(has).collect();
        let matrix = pivot.matrix(data, &cells);
        // Where no row holds two levels there is nothing to compare.
        let compares = matrix.fields.iter().any(|row| row.iter().filter(|field| !field.is_empty()).count() > 1);
        if !compares || matrix.rows.len() > MOST_ROWS {
            return None;
        }
        let table = pivoted(lang, data, measure, &pivot, &cells);
        Some(if is_better_turned(lang, &table) { turned(lang, data, (measure, factor), table) } else { table })
    };
    data.medium_factor().into_iter().chain(others).filter_map(by).collect()
}

/// Returns whether a table is wider than a page, and would have fewer columns with its rows as columns.
fn is_better_turned(lang: Language, table: &Table) -> bool {
    let width_of = |(at, column): (usize, &Column)| {
        let cells = table.rows.iter().filter_map(|row| row[at].as_deref()).map(UnicodeWidthStr::width);
        cells.fold(column.title(lang).width(), usize::max) + BETWEEN_COLUMNS
    };
    let width: usize = table.columns.iter().enumerate().map(width_of).sum();
    width > PAGE_WIDTH && table.columns.len() > table.rows.len() + 1
}

/// Width of a page in columns of text, and space between two columns of a table.
const PAGE_WIDTH: usize = 110;
const BETWEEN_COLUMNS: usize = 3;

/// Returns a table of a measure with the levels of a factor in the rows.
fn turned(lang: Language, data: &Data<'_>, (measure, factor): (usize, usize), table: Table) -> Table {
    let names: Vec<String> = table.columns[1..].iter().map(|column| column.title(lang)).collect();
    // As many cells share a field as before.
    let meaning = table.columns[1].meaning(lang);
    let head =
        column(&data.study.factors[factor].title, said!(lang, "study-meaning-levels", "the levels of these factors"));
    let heads = table.rows.iter().map(|row| match &row[0] {
        Some(name) => column(name, meaning.clone()),
        None => column(&data.study.measures[measure].title, meaning.clone()),
    });
    let columns = std::iter::once(head).chain(heads).collect();
    let row = |(at, name): (usize, String)| {
        std::iter::once(Some(name)).chain(table.rows.iter().map(|row| row[at + 1].clone())).collect()
    };
    Table { rows: names.into_iter().enumerate().map(row).collect(), columns, caption: table.caption }
}

/// Returns a column that the study names.
fn column(title: &str, meaning: String) -> Column {
    Column::named(plain(title), meaning)
}

/// Returns the end of the caption of a table of [`pivots`]: `by device`.
pub(super) fn by(lang: Language, table: &Table) -> String {
    table.caption.rsplit_once(" by ").map_or_else(
        || table.caption.clone(),
        |(_, factor)| said!(lang, "study-caption-by-factor", "By {factor}", factor = factor),
    )
}

/// Returns one measure of these cells by rows and columns.
pub(super) fn pivoted(lang: Language, data: &Data<'_>, measure: usize, pivot: &Pivot, cells: &[usize]) -> Table {
    let has = |cell: &usize| data.span(*cell, measure).is_some();
    let cells: Vec<usize> = cells.iter().copied().filter(has).collect();
    let matrix = pivot.matrix(data, &cells);
    let title = &data.study.measures[measure].title;
    let several = matrix.fields.iter().flatten().any(|field| field.len() > 1);
    let heads = matrix.columns.iter().map(|name| {
        column(name.as_deref().unwrap_or(MISSING), if several { of_several(lang, title) } else { of_one(lang, title) })
    });
    let row = |(name, fields): (&Option<String>, &Vec<Vec<usize>>)| {
        std::iter::once(name.clone()).chain(fields.iter().map(|cells| field(lang, data, measure, cells))).collect()
    };
    let factors = listed(lang, &pivot.titles(data.study));
    Table {
        caption: plain(&said!(
            lang,
            "study-caption-by",
            "{title} by {title2}",
            title = capital(title),
            title2 = factors
        )),
        columns: std::iter::once(head(lang, data, pivot)).chain(heads).collect(),
        rows: matrix.rows.iter().zip(&matrix.fields).map(row).collect(),
    }
}

/// Returns all measures next to each other, by rows.
fn beside(lang: Language, data: &Data<'_>, pivot: &Pivot) -> Table {
    let all: Vec<usize> = (0..data.study.cells.len()).collect();
    let matrix = pivot.matrix(data, &all);
    let several = matrix.fields.iter().flatten().any(|field| field.len() > 1);
    let heads = data.measures().map(|(_, named)| {
        column(&named.title, if several { of_several(lang, &named.title) } else { of_one(lang, &named.title) })
    });
    let row = |(name, fields): (&Option<String>, &Vec<Vec<usize>>)| {
        let cells = fields.concat();
        let values = data.measures().map(|(measure, _)| field(lang, data, measure, &cells));
        std::iter::once(name.clone()).chain(values).collect()
    };
    let factors = listed(lang, &pivot.titles(data.study));
    Table {
        caption: plain(&said!(lang, "study-caption-by-factor", "By {factor}", factor = factors)),
        columns: std::iter::once(head(lang, data, pivot)).chain(heads).collect(),
        rows: matrix.rows.iter().zip(&matrix.fields).map(row).collect(),
    }
}

/// Returns the column of the rows' names.
fn head(lang: Language, data: &Data<'_>, pivot: &Pivot) -> Column {
    if pivot.rows_implied {
        return columns::ALL_ELSE;
    }
    let [title, _] = pivot.heads(lang, data.study);
    column(&title, said!(lang, "study-meaning-levels", "the levels of these factors"))
}

fn of_one(lang: Language, title: &str) -> String {
    said!(lang, "study-meaning-median", "{title}; median of the repeats", title = title)
}

fn of_several(lang: Language, title: &str) -> String {
    said!(
        lang,
        "study-meaning-median-range",
        "{title}; median of the repeats, and of results that share a field their median, lowest and highest",
        title = title
    )
}

/// Formats the results of the cells of a field: the result, or the median, lowest and highest of several. Ranges and
/// bounds have no median, so each is printed as it is stated.
fn field(lang: Language, data: &Data<'_>, measure: usize, cells: &[usize]) -> Option<String> {
    if cells.iter().any(|cell| data.stated(*cell, measure).is_some()) {
        let mut each: Vec<String> = Vec::new();
        for cell in cells {
            each.extend(data.shown(*cell, measure).filter(|text| !each.contains(text)));
        }
        return Some(with_semicolons(lang, &each));
    }
    let unit = data.study.measures[measure].unit;
    let reached: Vec<f64> = cells.iter().filter_map(|cell| data.value(*cell, measure)).collect();
    let (low, high) = extremes(reached.iter().copied())?;
    let middle = value(median(reached)?, unit);
    let firmness = cells.iter().map(|cell| data.firmness(*cell, measure)).fold(Firmness::Firm, Firmness::and);
    if low == high {
        return Some(bounded(lang, middle, firmness, unit.more_is_better()));
    }
    let all = said!(
        lang,
        "study-median-and-range",
        "{median} ({range})",
        median = middle,
        range = range(lang, low, high, unit)
    );
    Some(told(lang, all, firmness))
}

/// Returns every cell with every measure, its limit and its share of the limit.
pub(super) fn everything(lang: Language, data: &Data<'_>) -> Table {
    let measures: Vec<usize> = data.measures().map(|(measure, _)| measure).collect();
    let cells: Vec<usize> = (0..data.study.cells.len()).collect();
    of_cells(lang, data, &said!(lang, "study-caption-all", "All results"), &measures, &cells)
}

/// Returns a table of these cells with these measures.
pub(super) fn of_cells(lang: Language, data: &Data<'_>, caption: &str, measures: &[usize], cells: &[usize]) -> Table {
    let limited = |measure: &usize| cells.iter().any(|cell| data.limit(*cell, *measure).is_some());
    let mut columns = vec![columns::CELL];
    for measure in measures {
        let named = &data.study.measures[*measure];
        columns.push(column(&named.title, said!(lang, "study-meaning-measured", "as measured; median of the repeats")));
        if limited(measure) {
            columns.push(column!(
                "column-medium-limit",
                "the medium's limit",
                "what the medium can carry, by calculation"
            ));
            columns.push(column!("column-limit-share", "share", "of the higher end of the limit"));
        }
    }
    let row = |cell: &usize| {
        let mut row = vec![Some(plain(&data.cell_name(*cell, &[])))];
        for measure in measures {
            let unit = data.study.measures[*measure].unit;
            row.push(data.shown(*cell, *measure));
            if limited(measure) {
                let limit = data.limit(*cell, *measure);
                row.push(limit.map(|limit| range(lang, limit.low, limit.high, unit)));
                let share = data.shown_share(*cell, *measure);
                row.push(share.map(|share| shown(share, data.firmness(*cell, *measure))));
            }
        }
        row
    };
    Table { caption: caption.to_owned(), columns, rows: cells.iter().map(row).collect() }
}

/// Returns a table of the levels with their medium and price.
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
                    said!(lang, "comparison-to", "{low} to {high}", low = low, high = amount(price.high))
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
        caption: said!(lang, "study-caption-levels", "What the levels are"),
        columns: vec![
            column!("column-level", "level", "the factor and its level"),
            column!("column-study-tables-medium", "medium", "by which the limit is counted"),
            column!("column-price", "price", "as the study has it"),
        ],
        rows,
    })
}

/// Returns a table of the cost of a unit of each rate, by each factor with prices. No test is needed for it.
pub(super) fn costs(lang: Language, data: &Data<'_>) -> Vec<Table> {
    let mut tables = Vec::new();
    for (measure, named) in data.measures() {
        let Some(unit) = CostUnit::of(named.unit) else { continue };
        for factor in 0..data.study.factors.len() {
            let is_priced = |level: &&Level| level.price.is_some();
            if data.study.factors[factor].levels.iter().filter(is_priced).count() > 1 {
                tables.extend(cost_table(lang, data, measure, factor, unit));
            }
        }
    }
    tables
}

/// Unit of a rate by which a cost is given.
#[derive(Clone, Copy)]
enum CostUnit {
    MbitPerS,
    PerS,
}

impl CostUnit {
    fn of(unit: MeasureUnit) -> Option<Self> {
        match unit {
            MeasureUnit::BitsPerS => Some(Self::MbitPerS),
            MeasureUnit::PerS => Some(Self::PerS),
            MeasureUnit::Nanos
            | MeasureUnit::NanosHeld
            | MeasureUnit::Times
            | MeasureUnit::Share
            | MeasureUnit::Count => None,
        }
    }

    fn column(self) -> Column {
        match self {
            Self::MbitPerS => {
                column!("column-cost-per-mbit", "cost per Mbit/s", "the price divided by the median result in Mbit/s")
            }
            Self::PerS => {
                column!("column-cost-per-s", "cost of one per second", "the price divided by the median result")
            }
        }
    }

    fn size(self) -> f64 {
        match self {
            Self::MbitPerS => 1e6,
            Self::PerS => 1.0,
        }
    }
}

/// Returns the cost of the priced levels of a factor, for each transport by itself, in the cells that all of them have.
fn cost_table(lang: Language, data: &Data<'_>, measure: usize, factor: usize, unit: CostUnit) -> Option<Table> {
    let currency = data.study.currency.as_deref();
    let by = data.transport_factor().filter(|by| *by != factor);
    let named = &data.study.factors[factor];
    let priced: Vec<(usize, Price)> =
        (0..named.levels.len()).filter_map(|at| Some((at, named.levels[at].price?))).collect();
    let mut rows = Vec::new();
    let groups = data.groups(by, measure);
    for group in &groups {
        for (level, price) in &priced {
            let cells = compared_cells(data, group, factor, *level, &priced);
            let reached: Vec<f64> = cells.iter().filter_map(|cell| data.value(*cell, measure)).collect();
            let middle = median(reached).filter(|middle| *middle > 0.0);
            let cost = middle.map(|middle| {
                let each = middle / unit.size();
                cost_range(lang, (price.low / each, price.high / each), currency)
            });
            let name = data.name_of(factor, *level);
            let name = if by.is_some() { with_commas(lang, &[name, group.name.clone()]) } else { name };
            let price = cost_range(lang, (price.low, price.high), currency);
            let results = (!cells.is_empty()).then(|| cells.len().to_string());
            rows.push(vec![Some(plain(&name)), Some(price), field(lang, data, measure, &cells), results, cost]);
        }
    }
    let title = &data.study.measures[measure].title;
    let caption = said!(lang, "study-caption-cost", "Cost of {title} by {factor}", title = title, factor = named.title);
    (!rows.is_empty()).then(|| Table {
        caption: plain(&caption),
        columns: vec![
            column(&named.title, said!(lang, "study-meaning-levels", "the levels of these factors")),
            column!("column-price", "price", "as the study has it"),
            column(title, of_several(lang, title)),
            column!("column-cost-cells", "results", "cells that all options have; all its own if there is none"),
            unit.column(),
        ],
        rows,
    })
}

/// Returns the cells of a level whose other levels all priced levels with results have; all its own cells if there is
/// none.
fn compared_cells(
    data: &Data<'_>,
    group: &Group,
    factor: usize,
    level: usize,
    priced: &[(usize, Price)],
) -> Vec<usize> {
    let rest = |cell: usize| {
        let mut levels = data.study.cells[cell].levels.clone();
        levels[factor] = None;
        levels
    };
    let of_level = |level: usize| -> Vec<usize> {
        let is = |cell: &usize| data.study.cells[*cell].levels[factor] == Some(level);
        group.cells.iter().copied().filter(is).collect()
    };
    let others: Vec<Vec<_>> = priced
        .iter()
        .map(|(other, _)| of_level(*other).into_iter().map(rest).collect::<Vec<_>>())
        .filter(|rests| !rests.is_empty())
        .collect();
    let own = of_level(level);
    let is_shared = |cell: &usize| others.iter().all(|rests| rests.contains(&rest(*cell)));
    let shared: Vec<usize> = own.iter().copied().filter(is_shared).collect();
    if shared.is_empty() { own } else { shared }
}
