//! The row of a run in lists.

use crate::search_text;
use linerate_model::{Headline, HeadlineVerdict, Record, RecordId};
use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSql, ToSqlOutput, ValueRef};
use rusqlite::{Row, types};
use serde::de::DeserializeOwned;
use std::fmt;

/// A command without its first word, the program's own path. The index `run_by_command` holds this expression.
pub(crate) const ARGUMENTS: &str = "json_remove(command, '$[0]')";

/// Row of a run in lists.
#[derive(Debug, Clone, PartialEq)]
pub struct RunRow {
    pub id: RecordId,
    /// Start of the run, in nanoseconds since 1970.
    pub started_unix_ns: u64,
    /// Last write, in nanoseconds since 1970.
    pub changed_unix_ns: u64,
    /// The command as typed.
    pub command: Vec<String>,
    /// Kind of run, by the command's name: `stream`, `device` ...; `tester-limit` for one that a command measured for
    /// itself.
    pub kind: String,
    /// Study that the run is part of.
    pub study: Option<String>,
    /// The group of runs that are reported together.
    pub group: Option<String>,
    pub state: State,
    /// Number of results.
    pub results: u32,
    /// Number of trials that count.
    pub trials: u32,
    /// Number of trials made, including spoilt and failed ones.
    pub attempts: u32,
    /// Headline figure of the run. `None` before the first measurement.
    pub headline: Option<Headline>,
    /// Verdict on the headline figure, if one was reached.
    pub verdict: Option<HeadlineVerdict>,
}

/// State of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum State {
    /// The run is being measured.
    Running,
    /// The run is complete.
    Finished,
    /// The user stopped the run; its measurements are kept.
    Interrupted,
    /// A trial failed and ended the run; its measurements are kept.
    Failed,
    /// The program was killed, or the machine stopped; completed trials are kept.
    Killed,
}

impl State {
    /// Every state.
    pub const ALL: [Self; 5] = [Self::Running, Self::Finished, Self::Interrupted, Self::Failed, Self::Killed];

    /// Returns the name in the store and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Finished => "finished",
            Self::Interrupted => "interrupted",
            Self::Failed => "failed",
            Self::Killed => "killed",
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl ToSql for State {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::from(self.name()))
    }
}

impl FromSql for State {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let name = value.as_str()?;
        Self::ALL.into_iter().find(|state| state.name() == name).ok_or(FromSqlError::InvalidType)
    }
}

impl RunRow {
    /// Returns whether the run is a tester limit that a command measured for itself. Its command is that of the
    /// requested run.
    pub fn is_tester_limit(&self) -> bool {
        self.kind == search_text::TESTER_LIMIT
    }

    /// Makes the row of `record` before its first trial is stored.
    pub(crate) fn of(record: &Record, state: State, changed_unix_ns: u64) -> Self {
        Self {
            id: record.id.clone(),
            started_unix_ns: record.started_unix_ns,
            changed_unix_ns,
            command: record.command.clone(),
            kind: search_text::kind_of(record),
            study: record.study.as_ref().map(|run| run.study.clone()),
            group: record.group.clone(),
            state,
            results: 0,
            trials: 0,
            attempts: 0,
            headline: None,
            verdict: None,
        }
    }

    /// The columns that [`RunRow::read`] reads, in its order.
    pub(crate) const COLUMNS: &str = "number, id, started_unix_ns, changed_unix_ns, command, kind, study, grp, state, results, \
         trials, attempts, headline, verdict";

    /// Reads the row and its number.
    pub(crate) fn read(row: &Row<'_>) -> Result<(i64, Self), rusqlite::Error> {
        let shown = Self {
            id: RecordId(row.get(1)?),
            started_unix_ns: row.get::<_, i64>(2)? as u64,
            changed_unix_ns: row.get::<_, i64>(3)? as u64,
            command: json(row, 4)?,
            kind: row.get(5)?,
            study: row.get(6)?,
            group: row.get(7)?,
            state: row.get(8)?,
            results: row.get(9)?,
            trials: row.get(10)?,
            attempts: row.get(11)?,
            headline: known(row, 12)?,
            verdict: known(row, 13)?,
        };
        Ok((row.get(0)?, shown))
    }
}

/// Reads a column of JSON. `None` if it is empty or unknown to this version, so that one such run does not prevent a
/// list.
fn known<T: DeserializeOwned>(row: &Row<'_>, column: usize) -> Result<Option<T>, rusqlite::Error> {
    let text = row.get_ref(column)?.as_str_or_null()?;
    Ok(text.and_then(|text| serde_json::from_str(text).ok()))
}

/// Reads a column of JSON; an empty column counts as `null`.
fn json<T: DeserializeOwned>(row: &Row<'_>, column: usize) -> Result<T, rusqlite::Error> {
    let text = row.get_ref(column)?.as_str_or_null()?.unwrap_or("null");
    serde_json::from_str(text)
        .map_err(|error| rusqlite::Error::FromSqlConversionFailure(column, types::Type::Text, Box::new(error)))
}
