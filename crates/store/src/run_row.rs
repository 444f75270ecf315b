//! The row of a run in lists.

use crate::search_text;
use crate::sql::{SqlRow, UnexpectedColumn};
use linerate_model::{Headline, HeadlineVerdict, Record, RecordId};
use serde::de::DeserializeOwned;
use std::fmt;

/// Returns the key of a command's runs: a hash of its words after the first, which is the program's own path.
pub(crate) fn command_key(command: &[String]) -> String {
    let mut hasher = blake3::Hasher::new();
    for word in command.iter().skip(1) {
        hasher.update(&(word.len() as u64).to_le_bytes());
        hasher.update(word.as_bytes());
    }
    hasher.finalize().to_hex()[..32].to_owned()
}

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

    /// Returns the state of this name.
    fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == name)
    }

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
    pub(crate) fn read(row: &SqlRow) -> Result<(i64, Self), UnexpectedColumn> {
        let shown = Self {
            id: RecordId(row.text(1)?.to_owned()),
            started_unix_ns: row.instant(2)?,
            changed_unix_ns: row.instant(3)?,
            command: serde_json::from_str(row.text(4)?).map_err(|_| UnexpectedColumn(4))?,
            kind: row.text(5)?.to_owned(),
            study: row.optional_text(6)?.map(str::to_owned),
            group: row.optional_text(7)?.map(str::to_owned),
            state: State::of_name(row.text(8)?).ok_or(UnexpectedColumn(8))?,
            results: row.count(9)?,
            trials: row.count(10)?,
            attempts: row.count(11)?,
            headline: known(row, 12)?,
            verdict: known(row, 13)?,
        };
        Ok((row.integer(0)?, shown))
    }
}

/// Reads a column of JSON. `None` if it is empty or unknown to this version, so that one such run does not prevent a
/// list.
pub(crate) fn known<T: DeserializeOwned>(row: &SqlRow, column: usize) -> Result<Option<T>, UnexpectedColumn> {
    Ok(row.optional_text(column)?.and_then(|text| serde_json::from_str(text).ok()))
}
