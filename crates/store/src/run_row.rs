//! A run as lists show it.

use crate::search_text;
use linerate_model::{Headline, HeadlineVerdict, Record, RecordId};
use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSql, ToSqlOutput, ValueRef};
use rusqlite::{Row, types};
use serde::de::DeserializeOwned;
use std::fmt;

/// A command without its first word, the program's own path. The index `run_by_command` holds this expression.
pub(crate) const ARGUMENTS: &str = "json_remove(command, '$[0]')";

/// A run as lists show it.
#[derive(Debug, Clone, PartialEq)]
pub struct RunRow {
    /// Its name.
    pub id: RecordId,
    /// When it began, nanoseconds since 1970.
    pub started_unix_ns: u64,
    /// When it was last written to, nanoseconds since 1970.
    pub changed_unix_ns: u64,
    /// The command as typed.
    pub command: Vec<String>,
    /// What was measured, by the command's name: `stream`, `device` ...; of a tester limit that a command measured for itself
    /// `tester-limit`.
    pub kind: String,
    /// The study it is a run of.
    pub study: Option<String>,
    /// The group of runs that are reported together.
    pub group: Option<String>,
    /// How far it is.
    pub state: State,
    /// How many things have a result.
    pub results: u32,
    /// How many trials counted.
    pub trials: u32,
    /// How many trials were made, with those that were spoilt or failed.
    pub attempts: u32,
    /// The figure that stands for the run; none while nothing is measured.
    pub headline: Option<Headline>,
    /// What limited that figure; none where nothing was weighed.
    pub verdict: Option<HeadlineVerdict>,
}

/// How far a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum State {
    /// It is being measured.
    Running,
    /// It ran to its end.
    Finished,
    /// Its user stopped it; what was measured is kept.
    Interrupted,
    /// A trial failed, which ended it; what was measured is kept.
    Failed,
    /// Its program was killed, or the machine stopped; every trial that had ended is kept.
    Killed,
}

impl State {
    /// Every state.
    pub const ALL: [Self; 5] = [Self::Running, Self::Finished, Self::Interrupted, Self::Failed, Self::Killed];

    /// Its name in the store and in JSON.
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
    /// Whether it is a tester limit that a command measured for itself, and has the same words as the run that was asked for.
    pub fn is_tester_limit(&self) -> bool {
        self.kind == search_text::TESTER_LIMIT
    }

    /// The row of `record`, of which no trial is stored yet.
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

    /// The row and its number.
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

/// A column that holds JSON; none where it is empty, or where a later version wrote what this one does not know: one such run does
/// not keep a list from being shown.
fn known<T: DeserializeOwned>(row: &Row<'_>, column: usize) -> Result<Option<T>, rusqlite::Error> {
    let text = row.get_ref(column)?.as_str_or_null()?;
    Ok(text.and_then(|text| serde_json::from_str(text).ok()))
}

/// A column that holds JSON; `null` where it is empty.
fn json<T: DeserializeOwned>(row: &Row<'_>, column: usize) -> Result<T, rusqlite::Error> {
    let text = row.get_ref(column)?.as_str_or_null()?.unwrap_or("null");
    serde_json::from_str(text)
        .map_err(|error| rusqlite::Error::FromSqlConversionFailure(column, types::Type::Text, Box::new(error)))
}
