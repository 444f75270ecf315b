//! Rows as they are written.

use crate::body;
use crate::query::instant;
use crate::run_row::RunRow;
use linerate_model::{Record, Standing, TrialResult};
use rusqlite::{Result, Transaction, params};

/// Writes the row of a run that nobody measures, and its plan; the answer is its number.
pub(crate) fn insert_run(change: &Transaction<'_>, row: &RunRow, search_text: &str, plan: &str) -> Result<i64> {
    change.execute(
        "INSERT INTO run (id, started_unix_ns, changed_unix_ns, command, kind, search_text, study, grp, state, locked, boot,
                          results, trials, attempts, headline, verdict)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 0, '', ?, ?, ?, ?, ?)",
        params![
            row.id.0,
            instant(row.started_unix_ns),
            instant(row.changed_unix_ns),
            body::json(&row.command),
            row.kind,
            search_text,
            row.study,
            row.group,
            row.state,
            row.results,
            row.trials,
            row.attempts,
            row.headline.as_ref().map(body::json),
            row.verdict.as_ref().map(body::json),
        ],
    )?;
    let run = change.last_insert_rowid();
    change.execute("INSERT INTO plan (run, body) VALUES (?, ?)", params![run, plan])?;
    Ok(run)
}

/// Writes the `number`th attempt of a run, counted from 0.
pub(crate) fn insert_trial(change: &Transaction<'_>, run: i64, number: u32, result: &TrialResult) -> Result<()> {
    let standing = match result.standing {
        Standing::Counted => "counted",
        Standing::Spoilt { .. } => "spoilt",
        Standing::Failed { .. } => "failed",
    };
    let mut insert = change
        .prepare_cached("INSERT INTO trial (run, number, name, attempt, standing, body) VALUES (?, ?, ?, ?, ?, ?)")?;
    insert.execute(params![run, number, result.trial.name, result.attempt, standing, body::json(result)]).map(drop)
}

/// Writes what was found by a run.
pub(crate) fn insert_found(change: &Transaction<'_>, run: i64, record: &Record) -> Result<()> {
    change.execute("INSERT INTO found (run, body) VALUES (?, ?)", params![run, body::found(record)]).map(drop)
}
