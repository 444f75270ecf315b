//! Whether the figure of a run has changed from that of the run before ([`Headline::has_changed_from`]): kept in its row, so that a list
//! of such runs is read from an index.
//!
//! The run before is the latest earlier finished run of the same command and kind. So what is kept depends on two runs, and is renewed as
//! either ends or is deleted.

use crate::body;
use crate::query::instant;
use crate::run_row::{ARGUMENTS, RunRow, State};
use linerate_model::Headline;
use rusqlite::{Connection, Result, Transaction, params};

/// Renews what is kept of the run of this number, which has finished, and of the run after it.
pub(crate) fn renew_around(change: &Transaction<'_>, number: i64) -> Result<()> {
    let run = renew(change, number)?;
    renew_after(change, &run)
}

/// Renews what is kept of the run after `run`.
pub(crate) fn renew_after(change: &Transaction<'_>, run: &RunRow) -> Result<()> {
    match nearest(change, run, Side::After, 1)?.pop() {
        Some((after, _)) => renew(change, after).map(drop),
        None => Ok(()),
    }
}

/// Renews what is kept of the finished run of this number. Returns the run.
fn renew(change: &Transaction<'_>, number: i64) -> Result<RunRow> {
    let sql = format!("SELECT {} FROM run WHERE number = ?", RunRow::COLUMNS);
    let (_, run) = change.prepare_cached(&sql)?.query_row([number], RunRow::read)?;
    let before = nearest(change, &run, Side::Before, 1)?.pop().and_then(|(_, before)| before.headline);
    let has_changed = |new: &Headline| before.is_some_and(|before| new.has_changed_from(&before));
    let changed = run.headline.as_ref().is_some_and(has_changed);
    change.prepare_cached("UPDATE run SET changed = ? WHERE number = ?")?.execute(params![changed, number])?;
    Ok(run)
}

/// On which side of a run, by when they began.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Side {
    Before,
    After,
}

/// The nearest finished runs on one side of `run` with its arguments and of its kind, the nearest first, at most `most`, each with its number.
pub(crate) fn nearest(
    connection: &Connection,
    run: &RunRow,
    side: Side,
    most: usize,
) -> rusqlite::Result<Vec<(i64, RunRow)>> {
    let command = body::json(&run.command);
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    let values = params![command, instant(run.started_unix_ns), run.id.0, State::Finished, run.kind, most];
    connection.prepare_cached(&nearest_sql(side))?.query_map(values, RunRow::read)?.collect()
}

/// The nearest finished runs on one side in SQL.
pub(crate) fn nearest_sql(side: Side) -> String {
    let columns = RunRow::COLUMNS;
    let (comparison, order) = match side {
        Side::Before => ("<", "DESC"),
        Side::After => (">", "ASC"),
    };
    format!(
        "SELECT {columns} FROM run WHERE {ARGUMENTS} = json_remove(?, '$[0]') AND (started_unix_ns, id) {comparison} (?, ?) \
         AND state = ? AND +kind = ? ORDER BY started_unix_ns {order}, id {order} LIMIT ?"
    )
}
