//! The store itself.

use crate::{StoreError, listing, location, schema};
use linerate_model::{Record, RecordId, TrialResult};
use rusqlite::{Connection, ErrorCode, OptionalExtension as _, Transaction, TransactionBehavior, params};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Records in one SQLite file.
pub struct Store {
    path: PathBuf,
    connection: Mutex<Connection>,
}

impl Store {
    /// Opens the store at `path` or, without one, at [`crate::default_path`]; makes it and its folder if missing.
    pub fn open(path: Option<&Path>) -> Result<Self, StoreError> {
        let path = path.map_or_else(location::default_path, |path| Ok(path.to_owned()))?;
        location::make_folder(&path)?;
        let mut connection = Connection::open(&path).map_err(|error| StoreError::of(&path, error))?;
        schema::set_up(&mut connection, &path)?;
        Ok(Self { path, connection: Mutex::new(connection) })
    }

    /// The store's file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Stores a record that begins: its command, plan and hosts, and what else it has already. Its trials follow one by
    /// one.
    pub fn begin(&self, record: &Record) -> Result<(), StoreError> {
        self.change(|change| {
            let command = serde_json::Value::from(record.command.clone()).to_string();
            let cells = i64::try_from(record.plan.cells.len()).unwrap_or(i64::MAX);
            change
                .execute(
                    "INSERT INTO record (id, started_unix_ns, command, cells, trials, finished, kind, words, ended,
                                         changed_unix_ns)
                     VALUES (?, ?, ?, ?, 0, 0, ?, ?, 0, ?)",
                    params![
                        record.id.0,
                        record.started_unix_ns as i64,
                        command,
                        cells,
                        listing::kind(&record.command),
                        listing::words_of(record),
                        listing::now_unix_ns()
                    ],
                )
                .map_err(|error| match error.sqlite_error_code() {
                    Some(ErrorCode::ConstraintViolation) => {
                        StoreError::Exists { path: self.path.clone(), id: record.id.clone() }
                    }
                    _ => self.failed(error),
                })?;
            change
                .execute("INSERT INTO content (record, body) VALUES (?, ?)", params![record.id.0, body(record)])
                .map_err(|error| self.failed(error))?;
            Ok(())
        })
    }

    /// Stores the next trial of a record that has begun. It is on the disk when this returns.
    pub fn trial(&self, record: &RecordId, trial: &TrialResult) -> Result<(), StoreError> {
        let trial = serde_json::to_string(trial).expect("a trial has no map with keys that are no text");
        self.change(|change| {
            let number: Option<i64> = change
                .query_row(
                    "UPDATE record SET trials = trials + 1, changed_unix_ns = ? WHERE id = ? RETURNING trials - 1",
                    params![listing::now_unix_ns(), record.0],
                    |row| row.get(0),
                )
                .optional()
                .map_err(|error| self.failed(error))?;
            let number = number.ok_or_else(|| self.unknown(&record.0))?;
            change
                .execute("INSERT INTO trial (record, number, body) VALUES (?, ?, ?)", params![record.0, number, trial])
                .map_err(|error| self.failed(error))?;
            Ok(())
        })
    }

    /// Stores what a record that has begun amounts to, and whether it ran to its end. Its trials are those already stored.
    pub fn finish(&self, record: &Record, complete: bool) -> Result<(), StoreError> {
        self.change(|change| {
            let ended = complete || listing::was_interrupted(record);
            let found = change
                .execute(
                    "UPDATE record SET finished = ?, ended = ?, words = ?, changed_unix_ns = ? WHERE id = ?",
                    params![complete, ended, listing::words_of(record), listing::now_unix_ns(), record.id.0],
                )
                .map_err(|error| self.failed(error))?;
            if found == 0 {
                return Err(self.unknown(&record.id.0));
            }
            change
                .execute("UPDATE content SET body = ? WHERE record = ?", params![body(record), record.id.0])
                .map_err(|error| self.failed(error))?;
            Ok(())
        })
    }

    /// The record that began last.
    pub fn latest(&self) -> Result<Option<RecordId>, StoreError> {
        Ok(self.list(1)?.pop().map(|listed| listed.id))
    }

    /// The whole name of the record called `name`: its name, an unmistakable beginning of it, or `latest`.
    pub fn resolve(&self, name: &str) -> Result<RecordId, StoreError> {
        if name == "latest" {
            return self.latest()?.ok_or_else(|| self.unknown(name));
        }
        if name.is_empty() {
            return Err(self.unknown("of no name"));
        }
        let connection = self.connection();
        let read = || {
            // Names are ASCII: U+FFFF sorts after all that begin like this.
            let mut statement = connection
                .prepare_cached("SELECT id FROM record WHERE id >= ?1 AND id < ?1 || ?2 ORDER BY id LIMIT 2")?;
            statement.query_map([name, "\u{ffff}"], |row| row.get(0).map(RecordId))?.collect::<Result<Vec<_>, _>>()
        };
        let mut found = read().map_err(|error| self.failed(error))?.into_iter();
        match (found.next(), found.next()) {
            (None, _) => Err(self.unknown(name)),
            (Some(first), Some(second)) if first.0 != name => {
                Err(StoreError::Ambiguous { name: name.to_owned(), first, second })
            }
            (Some(first), _) => Ok(first),
        }
    }

    /// The record called `name` (see [`Store::resolve`]) with all its trials. One that was interrupted has what it began
    /// with, and the trials that had ended.
    pub fn load(&self, name: &str) -> Result<Record, StoreError> {
        let id = self.resolve(name)?;
        let (record, trials) = self.bodies(&id).map_err(|error| match error {
            // Deleted by another program since it was resolved.
            rusqlite::Error::QueryReturnedNoRows => self.unknown(name),
            other => self.failed(other),
        })?;
        let unreadable = |source| StoreError::Unreadable { path: self.path.clone(), id: id.clone(), source };
        let mut record: Record = serde_json::from_str(&record).map_err(unreadable)?;
        for trial in trials {
            record.trials.push(serde_json::from_str(&trial).map_err(unreadable)?);
        }
        Ok(record)
    }

    /// Deletes the record called `name` (see [`Store::resolve`]) and says which it was.
    pub fn delete(&self, name: &str) -> Result<RecordId, StoreError> {
        let id = self.resolve(name)?;
        self.change(|change| {
            change.execute("DELETE FROM record WHERE id = ?", [&id.0]).map_err(|error| self.failed(error)).map(drop)
        })?;
        Ok(id)
    }

    /// A record's text and its trials', of one moment.
    fn bodies(&self, id: &RecordId) -> Result<(String, Vec<String>), rusqlite::Error> {
        let mut connection = self.connection();
        let moment = connection.transaction()?;
        let record = moment.query_row("SELECT body FROM content WHERE record = ?", [&id.0], |row| row.get(0))?;
        let mut statement = moment.prepare_cached("SELECT body FROM trial WHERE record = ? ORDER BY number")?;
        let trials = statement.query_map([&id.0], |row| row.get(0))?.collect::<Result<_, _>>()?;
        Ok((record, trials))
    }

    /// Makes a change wholly or not at all. The lock is taken at its beginning, where waiting for another program is safe.
    fn change(&self, make: impl FnOnce(&Transaction<'_>) -> Result<(), StoreError>) -> Result<(), StoreError> {
        let mut connection = self.connection();
        let change =
            connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(|error| self.failed(error))?;
        make(&change)?;
        change.commit().map_err(|error| self.failed(error))
    }

    /// Asks the database something.
    pub(crate) fn read<T>(&self, ask: impl FnOnce(&Connection) -> Result<T, rusqlite::Error>) -> Result<T, StoreError> {
        ask(&self.connection()).map_err(|error| self.failed(error))
    }

    /// A thread that panicked has rolled its change back: the connection is sound.
    fn connection(&self) -> MutexGuard<'_, Connection> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn failed(&self, error: rusqlite::Error) -> StoreError {
        StoreError::of(&self.path, error)
    }

    pub(crate) fn unknown(&self, name: &str) -> StoreError {
        StoreError::Unknown { path: self.path.clone(), name: name.to_owned() }
    }
}

/// The record without its trials, which are stored one by one.
fn body(record: &Record) -> String {
    let mut body = serde_json::to_value(record).expect("a record has no map with keys that are no text");
    body["trials"] = serde_json::Value::Array(Vec::new());
    body.to_string()
}
