//! `linerate fleet matrix`: the newest result of each pair, as text.

use crate::exit::Failure;
use crate::options::StorePath;
use crate::output::{print, say};
use linerate_report::parts::values::value;
use linerate_store::{Level, Matrix as PairMatrix, MatrixCell, MatrixQuery, Page};
use serde_json::{Value, json};
use std::fmt::Write as _;

/// Hosts or sites of a text matrix. More do not fit a terminal.
const MAX_NAMES: usize = 40;

/// Show the newest result of each pair, and what limited it
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Rows send, columns receive. A cell of two sites is their slowest pair of hosts.
The pages of `linerate view --store ...` show more: history, evidence, changes.")]
pub(crate) struct Matrix {
    /// Test [default: the first]
    #[arg(long)]
    test: Option<String>,

    /// Rows and columns: host or site
    #[arg(long, value_enum, default_value_t = By::Host)]
    by: By,

    /// Print JSON
    #[arg(long, short = 'J')]
    json: bool,

    #[command(flatten)]
    store: StorePath,
}

/// Rows and columns of a matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum By {
    /// Hosts.
    Host,
    /// Sites: the label `site` of hosts.
    Site,
}

pub(super) fn matrix(matrix: Matrix) -> Result<(), Failure> {
    let store = matrix.store.open()?;
    let level = match matrix.by {
        By::Host => Level::Host,
        By::Site => Level::Site,
    };
    if let Some(test) = &matrix.test {
        let tests = store.tests().map_err(Failure::measure)?;
        if !tests.contains(test) {
            return Err(Failure::usage(format!("no results of the test `{test}`; there are: {}", tests.join(", "))));
        }
    }
    let mut query = MatrixQuery { test: matrix.test, ..MatrixQuery::all(level) };
    if !matrix.json {
        let page = Page { skipped: 0, limit: MAX_NAMES };
        query = MatrixQuery { rows: page, columns: page, ..query };
    }
    let pairs = store.matrix(&query).map_err(Failure::measure)?;
    if matrix.json {
        print(&serde_json::to_string_pretty(&document(&pairs)).map_err(Failure::measure)?);
        return Ok(());
    }
    if pairs.cells.is_empty() {
        say("linerate: no pair of hosts has been measured yet");
        return Ok(());
    }
    for line in lines(&pairs) {
        print(&line);
    }
    let hidden = pairs.all_rows.max(pairs.all_columns).saturating_sub(MAX_NAMES);
    if hidden > 0 {
        say(&format!("linerate: {hidden} more are not shown; use --by site, --json or the pages of `linerate view`"));
    }
    Ok(())
}

fn document(pairs: &PairMatrix) -> Value {
    let cells: Vec<Value> = pairs
        .cells
        .iter()
        .map(|cell| {
            json!({
                "row": pairs.rows[cell.row], "column": pairs.columns[cell.column], "from": cell.from, "to": cell.to,
                "value": cell.value, "unit": cell.unit, "link_share": cell.link_share, "limit": cell.limit,
                "confidence": cell.confidence, "started_unix_ns": cell.started_unix_ns, "pairs": cell.pairs,
                "results": cell.results, "changed_unix_ns": cell.changed_unix_ns, "record": cell.record,
            })
        })
        .collect();
    json!({ "test": pairs.test, "rows": pairs.rows, "columns": pairs.columns, "cells": cells })
}

/// Formats a matrix: a line of figures for each row, and below them the limits.
fn lines(pairs: &PairMatrix) -> Vec<String> {
    let mut figures = vec![vec![String::from("-"); pairs.columns.len()]; pairs.rows.len()];
    let mut limits = vec![vec![String::new(); pairs.columns.len()]; pairs.rows.len()];
    for cell in &pairs.cells {
        figures[cell.row][cell.column] = figure(cell);
        limits[cell.row][cell.column] = cell.limit.map_or_else(String::new, |limit| limit.name().to_owned());
    }
    let name_width = width(pairs.rows.iter().map(String::as_str)).max("from \\ to".len());
    let mut widths = Vec::new();
    for (column, name) in pairs.columns.iter().enumerate() {
        let cells = figures.iter().chain(&limits).map(|row| row[column].as_str());
        widths.push(width(cells.chain([name.as_str()])));
    }
    let mut lines = Vec::new();
    if let Some(test) = &pairs.test {
        lines.push(test.clone());
    }
    lines.push(row("from \\ to", &pairs.columns, name_width, &widths));
    for (index, name) in pairs.rows.iter().enumerate() {
        lines.push(row(name, &figures[index], name_width, &widths));
        lines.push(row("", &limits[index], name_width, &widths));
    }
    lines
}

fn figure(cell: &MatrixCell) -> String {
    value(cell.value, cell.unit)
}

fn width<'a>(texts: impl Iterator<Item = &'a str>) -> usize {
    texts.map(|text| text.chars().count()).max().unwrap_or_default()
}

fn row(name: &str, cells: &[String], name_width: usize, widths: &[usize]) -> String {
    let mut line = format!("{name:<name_width$}");
    for (cell, width) in cells.iter().zip(widths) {
        let _ = write!(line, "  {cell:>width$}");
    }
    line.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_model::{Limit, MeasureUnit, Quantity};

    #[test]
    fn figures_stand_under_their_columns_with_limits_below() {
        let cell = MatrixCell {
            row: 0,
            column: 1,
            from: "a".to_owned(),
            to: "b".to_owned(),
            value: 2e7,
            unit: MeasureUnit::BitsPerS,
            quantity: Quantity::PayloadBps,
            link_share: None,
            limit: Some(Limit::Shaper),
            confidence: None,
            started_unix_ns: 1,
            last_unix_ns: 1,
            pairs: 1,
            results: 1,
            changed_unix_ns: None,
            record: None,
        };
        let names = vec!["a".to_owned(), "b".to_owned()];
        let pairs = PairMatrix {
            test: Some("stream --time 1s".to_owned()),
            rows: names.clone(),
            columns: names,
            all_rows: 2,
            all_columns: 2,
            cells: vec![cell],
        };
        let expected =
            ["stream --time 1s", "from \\ to  a          b", "a          -  20 Mbit/s", "                 shaper"];
        assert_eq!(lines(&pairs)[..4], expected);
    }
}
