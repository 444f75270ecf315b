//! The store itself.

use crate::alive::{Locks, Sign};
use crate::body::{Parts, UnreadableRecord};
use crate::feed::{Feed, FeedFolder, FeedWriter};
use crate::{StoreError, changed, location, schema};
use linerate_model::{Record, RecordId, SCHEMA};
use rusqlite::{Connection, OptionalExtension as _, Transaction, TransactionBehavior};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Records in one SQLite file.
pub struct Store {
    path: PathBuf,
    connection: Mutex<Connection>,
    locks: Locks,
    feeds: FeedFolder,
}

impl Store {
    /// Opens the store at `path` or, without one, at [`crate::default_path`]; makes it and its folder if missing. Runs
    /// that nobody measures any more are marked as killed, and their feeds are removed.
    ///
    /// # Errors
    /// The file is not a store, is damaged, has another format, or cannot be read and written.
    pub fn open(path: Option<&Path>) -> Result<Self, StoreError> {
        let path = path.map_or_else(location::default_path, |path| Ok(path.to_owned()))?;
        location::make_folder(&path)?;
        location::make_file(&path);
        let mut connection = Connection::open(&path).map_err(|error| StoreError::of(&path, error))?;
        schema::set_up(&mut connection, &path)?;
        let (locks, feeds) = (Locks::of(&path), FeedFolder::of(&path));
        let store = Self { path, connection: Mutex::new(connection), locks, feeds };
        store.settle()?;
        store.feeds.clean();
        Ok(store)
    }

    /// The store's file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The run that began last.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn latest(&self) -> Result<Option<RecordId>, StoreError> {
        let sql = "SELECT id FROM run ORDER BY started_unix_ns DESC, id DESC LIMIT 1";
        self.read(|connection| connection.query_row(sql, [], |row| row.get(0).map(RecordId)).optional())
    }

    /// The whole name of the record called `name`: its name, an unmistakable beginning of it, or `latest`.
    ///
    /// # Errors
    /// No record or several are called so, or the store cannot be read.
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
            let mut statement =
                connection.prepare_cached("SELECT id FROM run WHERE id >= ?1 AND id < ?1 || ?2 ORDER BY id LIMIT 2")?;
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

    /// The record called `name` (see [`Store::resolve`]) with all its trials. Results, outcome and caveats are those of
    /// the run's end; where it was killed they are those it began with, and follow from the trials.
    ///
    /// # Errors
    /// No record or several are called so, or it cannot be read.
    pub fn load(&self, name: &str) -> Result<Record, StoreError> {
        let id = self.resolve(name)?;
        let parts = {
            let mut connection = self.connection();
            let moment = connection.transaction().map_err(|error| self.failed(error))?;
            Parts::read(&moment, &id)
        };
        let parts = parts.map_err(|error| match error {
            // Deleted by another program since it was resolved.
            rusqlite::Error::QueryReturnedNoRows => self.unknown(name),
            other => self.failed(other),
        })?;
        parts.join().map_err(|error| self.unreadable(&id, error))
    }

    /// Deletes the record called `name` (see [`Store::resolve`]); the answer is its whole name.
    ///
    /// # Errors
    /// No record or several are called so, it is being measured, or the store cannot be written.
    pub fn delete(&self, name: &str) -> Result<RecordId, StoreError> {
        let run = self.row(name)?;
        self.change(|change| {
            self.refuse_alive(change, &run.id)?;
            let deleted = change.execute("DELETE FROM run WHERE id = ?", [&run.id.0]);
            deleted.and_then(|_| changed::renew_after(change, &run)).map_err(|error| self.failed(error))
        })?;
        Ok(run.id)
    }

    /// Fails if run `id` is being measured.
    pub(crate) fn refuse_alive(&self, change: &Transaction<'_>, id: &RecordId) -> Result<(), StoreError> {
        match Sign::one(change, id).map_err(|error| self.failed(error))? {
            Some(sign) if self.locks.is_alive(&sign)? => Err(self.running(id)),
            _ => Ok(()),
        }
    }

    /// The locks of its runs.
    pub(crate) fn locks(&self) -> &Locks {
        &self.locks
    }

    /// The folder with the feeds of its runs.
    pub(crate) fn feed_folder(&self) -> &FeedFolder {
        &self.feeds
    }

    /// Makes a change wholly or not at all. The lock is taken at its beginning, where waiting for another program is
    /// safe.
    pub(crate) fn change<T>(
        &self,
        make: impl FnOnce(&Transaction<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut connection = self.connection();
        let change =
            connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(|error| self.failed(error))?;
        let made = make(&change)?;
        change.commit().map_err(|error| self.failed(error))?;
        Ok(made)
    }

    /// Asks the database something.
    pub(crate) fn read<T>(&self, ask: impl FnOnce(&Connection) -> Result<T, rusqlite::Error>) -> Result<T, StoreError> {
        ask(&self.connection()).map_err(|error| self.failed(error))
    }

    /// A thread that panicked has rolled its change back: the connection is sound.
    fn connection(&self) -> MutexGuard<'_, Connection> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn failed(&self, error: rusqlite::Error) -> StoreError {
        StoreError::of(&self.path, error)
    }

    pub(crate) fn unknown(&self, name: &str) -> StoreError {
        StoreError::Unknown { path: self.path.clone(), name: name.to_owned() }
    }

    pub(crate) fn running(&self, id: &RecordId) -> StoreError {
        StoreError::Running { path: self.path.clone(), id: id.clone() }
    }

    pub(crate) fn unreadable(&self, id: &RecordId, error: UnreadableRecord) -> StoreError {
        let path = self.path.clone();
        let id = id.clone();
        match error {
            UnreadableRecord::OtherFormat { format, version } => {
                StoreError::OtherRecordFormat { path, id, found: format, known: SCHEMA, version }
            }
            UnreadableRecord::Json(source) => StoreError::Unreadable { path, id, source },
        }
    }
}

impl Store {
    /// Begins the feed of a run. Where it cannot be written it tells nobody, without an error.
    pub fn feed(&self, record: &RecordId) -> FeedWriter {
        FeedWriter::begin(self.feed_folder(), record)
    }

    /// The feeds of the runs under way, in the order of their names, which is that in which they began.
    pub fn feeds(&self) -> Vec<Feed> {
        self.feed_folder().feeds()
    }

    /// The feed of the run whose whole name is `record`; none if it is not under way, or has no feed.
    pub fn feed_of(&self, record: &RecordId) -> Option<Feed> {
        self.feed_folder().feed_of(record)
    }
}
