//! Tables of results of flows: a row for each result, and the columns that any of them has figures for.

use crate::blocks::columns;
use crate::blocks::table::{Column, Table};
use crate::column;
use crate::figures::{grouped, nanos, per_second, percent, plain};
use crate::language::Language;
use linerate_model::{Measurement, TaskKind};

/// A column of results: its key and rank, and how its cell is taken from a result.
pub(crate) type Figure = (Column, u8, fn(Language, &Measurement) -> Option<String>);

/// Columns of requests of any kind.
pub(crate) const REQUESTS: [Figure; 11] = [
    (columns::TABLES_PER_SECOND, 0, |_, m| {
        per_second(m.requests().map(|requests| &requests.transactions_per_s)?.median)
    }),
    (columns::SPREAD, 4, |_, m| {
        let done = m.requests().map(|requests| &requests.transactions_per_s)?;
        percent(done.spread()).filter(|_| done.runs > 1)
    }),
    (columns::OF_TESTER, 2, |_, m| percent(m.tester_limit.as_ref()?.share)),
    (columns::TESTER, 5, |_, m| per_second(m.tester_limit.as_ref()?.reached.median)),
    (column!("column-request-p50", "p50", "median response time"), 0, |_, m| Some(nanos(m.latency()?.p50))),
    (columns::P90, 4, |_, m| Some(nanos(m.latency()?.p90))),
    (columns::P99, 0, |_, m| Some(nanos(m.latency()?.p99))),
    (columns::P999, 3, |_, m| Some(nanos(m.latency()?.p999))),
    (column!("column-tables-slowest", "slowest", "the slowest answer"), 3, |_, m| Some(nanos(m.latency()?.max))),
    (column!("column-tables-failed", "failed", "transactions that failed, over all runs"), 2, |_, m| {
        m.requests().map(|requests| requests.failed).filter(|failed| *failed > 0).map(grouped)
    }),
    (columns::LIMIT, 2, limit),
];

/// Returns what limited a result, in a word.
pub(crate) fn limit(lang: Language, result: &Measurement) -> Option<String> {
    Some(lang.text(result.verdict.limit.text()))
}

/// Returns the results of a task.
pub(crate) fn of_task<'a>(results: &[&'a Measurement], task: TaskKind) -> Vec<&'a Measurement> {
    results.iter().copied().filter(|result| result.task() == task).collect()
}

/// Returns a table of these results, with those of `figures` that any result has. `one` is the key of the names' column.
pub(crate) fn results_table(
    lang: Language,
    caption: String,
    one: Column,
    results: &[&Measurement],
    figures: &[Figure],
) -> Option<Table> {
    if results.is_empty() {
        return None;
    }
    let has = |(index, (.., cell)): &(usize, &Figure)| *index == 0 || results.iter().any(|m| cell(lang, m).is_some());
    let columns_with_figures: Vec<&Figure> = figures.iter().enumerate().filter(has).map(|(_, figure)| figure).collect();
    let lengths = bars(results);
    let heads = columns_with_figures.iter().enumerate().map(|(index, (column, rank, _))| {
        let column = column.clone().ranked(*rank);
        if index == 0 && results.len() > 1 { column.with_bars(lengths.clone()) } else { column }
    });
    let row = |result: &&Measurement| {
        std::iter::once(Some(plain(&result.name)))
            .chain(columns_with_figures.iter().map(|(.., cell)| cell(lang, result)))
            .collect()
    };
    Some(Table {
        caption,
        columns: std::iter::once(one).chain(heads).collect(),
        rows: results.iter().map(row).collect(),
    })
}

/// Returns each result's main figure as a share of the greatest, 0 to 1.
fn bars(results: &[&Measurement]) -> Vec<f64> {
    let figure = |result: &&Measurement| {
        let payload = result.received().map(|received| &received.payload_bps);
        let main = result
            .requests()
            .map(|requests| &requests.transactions_per_s)
            .or(payload)
            .map_or(0.0, |summary| summary.median);
        if main.is_finite() { main.max(0.0) } else { 0.0 }
    };
    let highest = results.iter().map(figure).fold(0.0, f64::max);
    results.iter().map(|result| if highest > 0.0 { figure(result) / highest } else { 0.0 }).collect()
}
