//! Rows as they are written.

use crate::backend::{Body, BodyTable, Session};
use crate::insert::{MOST_ROWS, insert_rows};
use crate::run_row::{RunRow, command_key};
use crate::sql::{SqlValue, Values, instant};
use crate::{StoreError, body};
use linerate_model::{RecordId, Standing, TrialResult};
use std::collections::HashMap;

/// A run as it is first written, in row and plan.
pub(crate) struct NewRun {
    pub(crate) row: RunRow,
    pub(crate) search_text: String,
    /// Value of column `boot`.
    pub(crate) place: String,
    /// The record without its trials, as JSON.
    pub(crate) plan: String,
}

/// Writes the rows and the plans of runs. Returns their numbers; runs whose names exist already have none and are not written.
pub(crate) fn insert_runs(session: &mut dyn Session, runs: &[&NewRun]) -> Result<HashMap<RecordId, i64>, StoreError> {
    let rows = runs.iter().map(|run| {
        let row = &run.row;
        let values: [SqlValue; 18] = [
            row.id.0.as_str().into(),
            instant(row.started_unix_ns).into(),
            instant(row.changed_unix_ns).into(),
            body::json(&row.command).into(),
            command_key(&row.command).into(),
            row.kind.as_str().into(),
            run.search_text.as_str().into(),
            row.study.as_deref().into(),
            row.group.as_deref().into(),
            row.state.name().into(),
            false.into(),
            run.place.as_str().into(),
            row.results.into(),
            row.trials.into(),
            row.attempts.into(),
            row.headline.as_ref().map(body::json).into(),
            row.verdict.as_ref().map(body::json).into(),
            row.verdict.map(|verdict| verdict.limit.name()).into(),
        ];
        values.into()
    });
    let head = "INSERT INTO run (id, started_unix_ns, changed_unix_ns, command, command_key, kind, search_text, study, grp, state, \
                locked, boot, results, trials, attempts, headline, verdict, limit_name)";
    let returned = insert_rows(session, head, rows.collect(), "ON CONFLICT (id) DO NOTHING RETURNING number, id")?;
    let mut numbers = HashMap::new();
    for row in returned {
        let read = || Ok((RecordId(row.text(1)?.to_owned()), row.integer(0)?));
        let (id, number) = read().map_err(|column| session.unexpected(column))?;
        numbers.insert(id, number);
    }
    let plans = runs.iter().filter_map(|run| {
        let number = *numbers.get(&run.row.id)?;
        Some(Body { run: number, started_unix_ns: run.row.started_unix_ns, values: vec![run.plan.as_str().into()] })
    });
    session.insert_bodies(BodyTable::Plan, &plans.collect::<Vec<_>>())?;
    Ok(numbers)
}

/// Returns the row of the `number`th attempt of a run, counted from 0.
pub(crate) fn trial_body(run: i64, started_unix_ns: u64, number: u32, result: &TrialResult) -> Body {
    let standing = match result.standing {
        Standing::Counted => "counted",
        Standing::Spoilt { .. } => "spoilt",
        Standing::Failed { .. } => "failed",
    };
    let values = vec![
        number.into(),
        result.trial.name.as_str().into(),
        result.attempt.into(),
        standing.into(),
        body::json(result).into(),
    ];
    Body { run, started_unix_ns, values }
}

/// Writes what a run found, in place of what it found before.
pub(crate) fn replace_found(
    session: &mut dyn Session,
    run: i64,
    started_unix_ns: u64,
    found: String,
) -> Result<(), StoreError> {
    session.execute("DELETE FROM found WHERE run = ?1", &[run.into()])?;
    session.insert_bodies(BodyTable::Found, &[Body { run, started_unix_ns, values: vec![found.into()] }])
}

/// Deletes runs with all that belongs to them.
pub(crate) fn delete_runs(session: &mut dyn Session, numbers: &[i64]) -> Result<(), StoreError> {
    for numbers in numbers.chunks(MOST_ROWS) {
        let mut values = Values::default();
        let list = values.list(numbers.iter().copied());
        for table in BodyTable::ALL {
            session.execute(&format!("DELETE FROM {} WHERE run IN {list}", table.name()), values.all())?;
        }
        session.execute(&format!("DELETE FROM run WHERE number IN {list}"), values.all())?;
    }
    Ok(())
}
