//! Stores of formats 1 to 3 become stores of format 4. To be deleted before 1.0, as those formats were never released.

use crate::location::{self, beside};
use crate::run_row::{RunRow, State};
use crate::search_text::{kind, search_text};
use crate::{StoreError, changed, rows};
use linerate_model::{CaveatKind, Record, RecordId, RunSummary};
use rusqlite::{Connection, OpenFlags, Transaction, params};
use serde_json::{Map, Value};
use std::error::Error;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// What formats 1 and 2 know of a record.
struct Old {
    id: String,
    started_unix_ns: u64,
    /// JSON array of strings.
    command: String,
    finished: bool,
    /// The record without its trials; none where it is missing.
    body: Option<String>,
    trials: Vec<String>,
}

/// Copies the store to a file beside it, and makes it one of this format, whose tables `tables` makes. `change` keeps other programs
/// from writing meanwhile.
pub(crate) fn upgrade(change: &Transaction<'_>, path: &Path, format: i64, tables: &str) -> Result<(), StoreError> {
    let copy = free_name(path, format);
    back_up(path, &copy).map_err(|source| StoreError::Backup { path: path.to_owned(), copy, source })?;
    let upgraded = || {
        if format < 3 {
            take_over(change, tables)?
        } else {
            change.execute_batch(ADDED_BY_FORMAT_4)?
        }
        changed::renew_all(change)
    };
    upgraded().map_err(|error| StoreError::of(path, error))
}

/// What format 4 added to format 3.
const ADDED_BY_FORMAT_4: &str = "
    ALTER TABLE run ADD COLUMN changed INTEGER NOT NULL DEFAULT 0;
    CREATE INDEX run_changed ON run (started_unix_ns, id) WHERE changed = 1;
    CREATE INDEX run_changed_by_kind ON run (kind, started_unix_ns, id) WHERE changed = 1;
";

/// Writes every record of formats 1 and 2 into the tables of this format, and drops the old ones.
fn take_over(change: &Transaction<'_>, tables: &str) -> Result<(), rusqlite::Error> {
    change.execute_batch("ALTER TABLE trial RENAME TO old_trial")?;
    change.execute_batch(tables)?;
    let mut names = change.prepare("SELECT id FROM record ORDER BY started_unix_ns, id")?;
    let names: Vec<String> = names.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
    for name in names {
        let old = Old::read(change, name)?;
        match old.record() {
            Ok(record) => old.write(change, &record)?,
            Err(_) => old.keep_unread(change)?,
        }
    }
    change.execute_batch("DROP TABLE old_trial; DROP TABLE content; DROP TABLE record")
}

impl Old {
    fn read(change: &Transaction<'_>, id: String) -> Result<Self, rusqlite::Error> {
        let mut trials = change.prepare_cached("SELECT body FROM old_trial WHERE record = ? ORDER BY number")?;
        let trials = trials.query_map([&id], |row| row.get(0))?.collect::<Result<_, _>>()?;
        let mut record = change.prepare_cached(
            "SELECT started_unix_ns, command, finished, body FROM record LEFT JOIN content ON content.record = id WHERE id = ?",
        )?;
        record.query_row([&id], |row| {
            let started_unix_ns = row.get::<_, i64>(0)? as u64;
            let (command, finished, body) = (row.get(1)?, row.get(2)?, row.get(3)?);
            Ok(Self { id: id.clone(), started_unix_ns, command, finished, body, trials })
        })
    }

    /// The record as this version knows it, its results worked out anew.
    fn record(&self) -> Result<Record, Box<dyn Error>> {
        let body = self.body.as_deref().ok_or("its content is missing")?;
        let mut whole: Map<String, Value> = serde_json::from_str(body)?;
        let trials: Result<Vec<Value>, _> = self.trials.iter().map(|trial| serde_json::from_str(trial)).collect();
        whole.insert("trials".to_owned(), Value::Array(trials?));
        Ok(linerate_method::read_record(&Value::Object(whole).to_string())?)
    }

    /// Writes it as this format has it.
    fn write(&self, change: &Transaction<'_>, record: &Record) -> Result<(), rusqlite::Error> {
        let interrupted = record.caveats.iter().any(|caveat| caveat.kind == CaveatKind::Interrupted);
        let state = match (self.finished, interrupted) {
            (true, _) => State::Finished,
            (false, true) => State::Interrupted,
            (false, false) => State::Killed,
        };
        let RunSummary { results, headline, verdict } = linerate_method::summary(record);
        let (trials, attempts) = (record.counted().count() as u32, record.trials.len() as u32);
        let row = RunRow::of(record, state, record.started_unix_ns);
        let row = RunRow { results, trials, attempts, headline, verdict, ..row };
        let run = rows::insert_run(change, &row, &search_text(record), &crate::body::plan(record))?;
        for (number, trial) in (0..).zip(&record.trials) {
            rows::insert_trial(change, run, number, trial)?;
        }
        if state == State::Killed { Ok(()) } else { rows::insert_found(change, run, record) }
    }

    /// Keeps a record that cannot be understood as it is. It is listed; loading it fails and says why.
    fn keep_unread(&self, change: &Transaction<'_>) -> Result<(), rusqlite::Error> {
        let command: Vec<String> = serde_json::from_str(&self.command).unwrap_or_default();
        let attempts = self.trials.len() as u32;
        let row = RunRow {
            id: RecordId(self.id.clone()),
            started_unix_ns: self.started_unix_ns,
            changed_unix_ns: self.started_unix_ns,
            kind: kind(&command),
            command,
            study: None,
            group: None,
            state: if self.finished { State::Finished } else { State::Killed },
            results: 0,
            trials: attempts,
            attempts,
            headline: None,
            verdict: None,
        };
        let text = format!("{} {}", self.id, row.command.join(" ")).to_lowercase();
        let run = rows::insert_run(change, &row, &text, self.body.as_deref().unwrap_or_default())?;
        for (number, trial) in (0_u32..).zip(&self.trials) {
            change.execute(
                "INSERT INTO trial (run, number, name, attempt, standing, body) VALUES (?, ?, '', 0, 'counted', ?)",
                params![run, number, trial],
            )?;
        }
        Ok(())
    }
}

/// A name for the copy that no file has: `results.db.v2-backup`, or one with a number behind.
fn free_name(path: &Path, format: i64) -> PathBuf {
    let first = beside(path, &format!(".v{format}-backup"));
    let others = (2..).map(|number| beside(path, &format!(".v{format}-backup-{number}")));
    std::iter::once(first).chain(others).find(|name| !name.exists()).expect("numbers do not end")
}

/// Copies the store to `copy`, wholly or not at all.
fn back_up(path: &Path, copy: &Path) -> Result<(), Box<dyn Error + Send + Sync>> {
    let partial = beside(copy, ".partial");
    match fs::remove_file(&partial) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
        _ => {}
    }
    // It may be empty; SQLite would let others read it.
    location::make_file(&partial);
    let reader = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let made = reader.execute("VACUUM INTO ?", [partial.to_str().ok_or("its name is not UTF-8")?]);
    let made = made.map_err(Into::into).and_then(|_| {
        File::open(&partial)?.sync_all()?;
        Ok(fs::rename(&partial, copy)?)
    });
    if made.is_err() {
        let _ = fs::remove_file(&partial);
    }
    made
}
