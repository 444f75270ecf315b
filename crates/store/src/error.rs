//! What can go wrong with the store, each with its remedy.

use crate::sql::UnexpectedColumn;
use linerate_model::RecordId;
use std::io;
use std::path::PathBuf;

/// The store could not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// There is no home directory to keep results in.
    #[error("no home directory to keep results in: set HOME or XDG_DATA_HOME, or name a file with --store")]
    NoHome,
    /// The store's folder could not be made.
    #[error("cannot create the folder {}: {source}; name another file with --store", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// No space left.
    #[error(
        "no space left for {store}; what was stored before is kept: free some space, delete records with \
         `linerate results delete`, or name a store on another disk with --store"
    )]
    Full {
        /// Name of the store.
        store: String,
    },
    /// The file, its folder or the database cannot be written.
    #[error("cannot open or write {store}: {reason}; {remedy}, or name another store with --store")]
    NotWritable {
        /// Name of the store.
        store: String,
        /// Message of the database.
        reason: String,
        /// What to do.
        remedy: &'static str,
    },
    /// The file is something else.
    #[error("{} is not a linerate store; move it away, or name another file with --store", path.display())]
    NotAStore {
        /// The file.
        path: PathBuf,
    },
    /// The file is cut short, or its content does not fit together.
    #[error(
        "{store} is damaged or cut short ({reason}); move it away and put a copy in its place, or name another file with --store"
    )]
    Damaged {
        /// Name of the store.
        store: String,
        /// What SQLite said.
        reason: String,
    },
    /// Another program kept the store locked.
    #[error("{store} is locked by another program; wait for it to end, or name another store with --store")]
    Locked {
        /// Name of the store.
        store: String,
    },
    /// Another version of linerate made the store.
    #[error(
        "{store} has format {found}, and this linerate reads {known} alone; use the linerate that wrote it, or name another store \
         with --store: nothing was changed"
    )]
    OtherFormat {
        /// Name of the store.
        store: String,
        /// Format of the store.
        found: i64,
        /// Format of this program.
        known: i64,
    },
    /// The store has an older format and cannot be written.
    #[error(
        "{store} has the older format {found}, and this linerate needs {known}, but it may not write there ({reason}); run \
         `linerate results list` once as a user who may, or name another store with --store: nothing was changed"
    )]
    CannotMigrate {
        /// Name of the store.
        store: String,
        /// Format of the store.
        found: i64,
        /// Format of this program.
        known: i64,
        /// Message of the database.
        reason: String,
    },
    /// The database has no tables of linerate, and this user may not create them.
    #[error(
        "{store} has no tables of linerate, and this user may not create them ({reason}); run `linerate results list` once as a user \
         who may, or name another store with --store"
    )]
    NoTables {
        /// Name of the store.
        store: String,
        /// Message of the database.
        reason: String,
    },
    /// The PostgreSQL server did not answer, or closed the connection, for longer than this program waits.
    #[error("cannot reach {store}: {reason}; start the server, check its address, or name another store with --store")]
    Unreachable {
        /// Name of the store.
        store: String,
        /// Last error of the connection.
        reason: String,
    },
    /// The PostgreSQL server refused the login.
    #[error(
        "cannot log in to {store}: {reason}; give the password in PGPASSWORD or in a password file (~/.pgpass or `passfile=FILE` in \
         the URL), or name another user"
    )]
    LoginRefused {
        /// Name of the store.
        store: String,
        /// Message of the server.
        reason: String,
    },
    /// The database does not exist.
    #[error("{store} does not exist: {reason}; create it with `createdb`, or name another store with --store")]
    NoDatabase {
        /// Name of the store.
        store: String,
        /// Message of the server.
        reason: String,
    },
    /// The lock of a run that is being measured cannot be taken or looked at.
    #[error("cannot lock a run of {store}: {source}; allow writing to its folder, or name another file with --store")]
    Lock {
        /// Name of the store.
        store: String,
        /// Why.
        source: linerate_sys::Error,
    },
    /// Another program measures the run.
    #[error("{id} in {store} is being measured by another program; wait until it ends, or stop it")]
    Running {
        /// Name of the store.
        store: String,
        /// The run.
        id: RecordId,
    },
    /// Another program went on with the run.
    #[error("another program went on with {id} in {store}; its trials are kept, those measured here since are not")]
    TakenOver {
        /// Name of the store.
        store: String,
        /// The run.
        id: RecordId,
    },
    /// A run that ran to its end cannot be resumed.
    #[error("{id} in {store} has finished: nothing is left to resume; measure again without --resume")]
    Finished {
        /// Name of the store.
        store: String,
        /// The run.
        id: RecordId,
    },
    /// No record has this name.
    #[error("no record {name} in {store}; `linerate results list` shows them")]
    Unknown {
        /// Name of the store.
        store: String,
        /// The name or the beginning of it.
        name: String,
    },
    /// Several records' names begin like this.
    #[error("{name} could be {first}, {second} or more; give more of the name (`linerate results list` shows them)")]
    Ambiguous {
        /// The beginning given.
        name: String,
        /// One of them.
        first: RecordId,
        /// Another.
        second: RecordId,
    },
    /// A record of this name is there already.
    #[error("a record {id} is in {store} already; try again")]
    Exists {
        /// Name of the store.
        store: String,
        /// The name.
        id: RecordId,
    },
    /// A stored record has another format.
    #[error(
        "record {id} in {store} has format {found}, and this linerate reads {known} alone; use linerate {version}, which wrote it, or \
         measure again: nothing was changed"
    )]
    OtherRecordFormat {
        /// Name of the store.
        store: String,
        /// The record.
        id: RecordId,
        /// Format of the record.
        found: String,
        /// Format of this program.
        known: &'static str,
        /// Version of the program that wrote the record.
        version: String,
    },
    /// A stored record cannot be understood.
    #[error("record {id} in {store} cannot be read: {source}; it may be of another version of linerate")]
    Unreadable {
        /// Name of the store.
        store: String,
        /// The record.
        id: RecordId,
        /// Why.
        source: serde_json::Error,
    },
    /// The database failed in another way.
    #[error("cannot use {store}: {source}; check the database and its disk, or name another store with --store")]
    Database {
        /// Name of the store.
        store: String,
        /// Error of the database.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl StoreError {
    /// Returns whether the place cannot hold a store: no home, or a folder or file that cannot be created or written.
    pub fn is_of_place(&self) -> bool {
        matches!(self, Self::NoHome | Self::Folder { .. } | Self::NotWritable { .. })
    }

    /// Returns whether the store cannot be written at present, though it may be read.
    pub(crate) fn is_of_writing(&self) -> bool {
        matches!(self, Self::Full { .. } | Self::NotWritable { .. } | Self::Locked { .. })
    }

    /// Returns the error for a row that this version cannot read.
    pub(crate) fn unexpected(store: &str, column: UnexpectedColumn) -> Self {
        Self::Database { store: store.to_owned(), source: Box::new(column) }
    }
}
