//! The store itself.

use crate::backend::{Access, Backend, Session};
use crate::body::{Parts, UnreadableRecord};
use crate::feed::{Feed, FeedFolder, FeedWriter};
use crate::location::default_path;
use crate::postgres::PostgresBackend;
use crate::sqlite::SqliteBackend;
use crate::{StoreError, StoreLocation, signs};
use linerate_model::{Record, RecordId, SCHEMA};
use std::path::Path;

/// Records in a SQLite file or a PostgreSQL database.
pub struct Store {
    location: StoreLocation,
    backend: Box<dyn Backend>,
    /// Folder of the feeds of its runs. `None` without a file.
    feeds: Option<FeedFolder>,
}

impl Store {
    /// Opens the store at `location`. Creates the file and its folder, or the tables of the database, if they are missing, and
    /// migrates tables of an older format. Runs that nobody measures any more are marked as killed, and their feeds are removed.
    ///
    /// # Errors
    /// The place is no store, is damaged, has another format, or cannot be read and written. A PostgreSQL database that can only
    /// be read is opened if it has the tables of this format.
    pub fn open(location: &StoreLocation) -> Result<Self, StoreError> {
        let location = match location {
            StoreLocation::Default => StoreLocation::File(default_path()?),
            named => named.clone(),
        };
        let backend: Box<dyn Backend> = match &location {
            StoreLocation::Default => Box::new(SqliteBackend::open(default_path()?)?),
            StoreLocation::File(path) => Box::new(SqliteBackend::open(path.clone())?),
            StoreLocation::Postgres(url) => Box::new(PostgresBackend::open(url)?),
        };
        let feeds = backend.file().map(FeedFolder::of);
        let store = Self { location, backend, feeds };
        store.settle()?;
        if let Some(feeds) = &store.feeds {
            feeds.clean();
        }
        Ok(store)
    }

    /// Returns where the store is.
    pub fn location(&self) -> &StoreLocation {
        &self.location
    }

    /// Returns the store's file. `None` if it is a database on a server.
    pub fn file(&self) -> Option<&Path> {
        self.backend.file()
    }

    /// Returns the name of the store in messages: its file, or its URL without the password.
    pub fn name(&self) -> String {
        self.location.to_string()
    }

    /// The run that began last.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn latest(&self) -> Result<Option<RecordId>, StoreError> {
        let sql = "SELECT id FROM run ORDER BY started_unix_ns DESC, id DESC LIMIT 1";
        self.read(|session| session.row(sql, &[], |row| Ok(RecordId(row.text(0)?.to_owned()))))
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
        // Names are ASCII: U+FFFF sorts after all that begin like this.
        let values = [name.into(), format!("{name}\u{ffff}").into()];
        let sql = "SELECT id FROM run WHERE id >= ?1 AND id < ?2 ORDER BY id LIMIT 2";
        let matches = self.read(|session| session.rows(sql, &values, |row| Ok(RecordId(row.text(0)?.to_owned()))))?;
        let mut matches = matches.into_iter();
        match (matches.next(), matches.next()) {
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
        // `None` if another program deleted the record since it was resolved.
        let parts = self.snapshot(|session| Parts::read(session, &id))?.ok_or_else(|| self.unknown(name))?;
        parts.join().map_err(|error| self.unreadable(&id, error))
    }

    /// Fails if run `id` is being measured.
    pub(crate) fn refuse_alive(&self, session: &mut dyn Session, id: &RecordId) -> Result<(), StoreError> {
        match signs::of_run(session, id)? {
            Some(sign) if session.dead_runs(std::slice::from_ref(&sign))?.is_empty() => {
                Err(StoreError::Running { store: self.name(), id: id.clone() })
            }
            _ => Ok(()),
        }
    }

    /// Makes a change wholly or not at all. `make` may be called again after the connection was lost.
    pub(crate) fn change<T>(
        &self,
        make: impl FnMut(&mut dyn Session) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.transact(Access::Write, make)
    }

    /// Reads with one statement.
    pub(crate) fn read<T>(&self, ask: impl FnMut(&mut dyn Session) -> Result<T, StoreError>) -> Result<T, StoreError> {
        self.transact(Access::Read, ask)
    }

    /// Reads the same state with several statements.
    pub(crate) fn snapshot<T>(
        &self,
        ask: impl FnMut(&mut dyn Session) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.transact(Access::Snapshot, ask)
    }

    fn transact<T>(
        &self,
        access: Access,
        mut body: impl FnMut(&mut dyn Session) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut answer = None;
        self.backend.transact(access, &mut |session| {
            // A lock in an earlier answer ends before it is taken again.
            answer = None;
            answer = Some(body(session)?);
            Ok(())
        })?;
        Ok(answer.expect("a backend runs the body before it returns without an error"))
    }

    pub(crate) fn backend(&self) -> &dyn Backend {
        &*self.backend
    }

    pub(crate) fn unknown(&self, name: &str) -> StoreError {
        StoreError::Unknown { store: self.name(), name: name.to_owned() }
    }

    pub(crate) fn unreadable(&self, id: &RecordId, error: UnreadableRecord) -> StoreError {
        let store = self.name();
        let id = id.clone();
        match error {
            UnreadableRecord::OtherFormat { format, version } => {
                StoreError::OtherRecordFormat { store, id, found: format, known: SCHEMA, version }
            }
            UnreadableRecord::Json(source) => StoreError::Unreadable { store, id, source },
        }
    }
}

impl Store {
    /// Begins the feed of a run. A feed that cannot be written, and one of a store without a file, reaches nobody, without an error.
    pub fn feed(&self, record: &RecordId) -> FeedWriter {
        self.feeds.as_ref().map_or_else(FeedWriter::silent, |feeds| FeedWriter::begin(feeds, record))
    }

    /// The feeds of the runs under way, in the order of their names, which is that in which they began. Empty for a store without a
    /// file.
    pub fn feeds(&self) -> Vec<Feed> {
        self.feeds.as_ref().map(FeedFolder::feeds).unwrap_or_default()
    }

    /// Returns the feed of the run with the whole name `record`. Returns `None` if the run is not under way, or has no feed.
    pub fn feed_of(&self, record: &RecordId) -> Option<Feed> {
        self.feeds.as_ref()?.feed_of(record)
    }
}
