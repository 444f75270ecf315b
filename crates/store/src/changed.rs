//! Whether the figure of a run has changed from that of the run before ([`Headline::has_changed_from`]): kept in its row, so that a list
//! of such runs is read from an index.
//!
//! The run before is the latest earlier finished run of the same command and kind. So what is kept depends on two runs, and is renewed as
//! either ends or is deleted.

use crate::neighbours::{self, Side};
use crate::run_row::RunRow;
use linerate_model::Headline;
use rusqlite::{Result, Transaction, params};

/// Renews what is kept of the run of this number, which has finished, and of the run after it.
pub(crate) fn renew_around(change: &Transaction<'_>, number: i64) -> Result<()> {
    let run = renew(change, number)?;
    renew_after(change, &run)
}

/// Renews what is kept of the run after `run`.
pub(crate) fn renew_after(change: &Transaction<'_>, run: &RunRow) -> Result<()> {
    match neighbours::nearest(change, run, Side::After, 1)?.pop() {
        Some((after, _)) => renew(change, after).map(drop),
        None => Ok(()),
    }
}

/// Renews what is kept of the finished run of this number. Returns the run.
fn renew(change: &Transaction<'_>, number: i64) -> Result<RunRow> {
    let sql = format!("SELECT {} FROM run WHERE number = ?", RunRow::COLUMNS);
    let (_, run) = change.prepare_cached(&sql)?.query_row([number], RunRow::read)?;
    let before = neighbours::nearest(change, &run, Side::Before, 1)?.pop().and_then(|(_, before)| before.headline);
    let has_changed = |new: &Headline| before.is_some_and(|before| new.has_changed_from(&before));
    let changed = run.headline.as_ref().is_some_and(has_changed);
    change.prepare_cached("UPDATE run SET changed = ? WHERE number = ?")?.execute(params![changed, number])?;
    Ok(run)
}
