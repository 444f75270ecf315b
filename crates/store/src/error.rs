//! What can go wrong with the store, each with its remedy.

use linerate_model::RecordId;
use rusqlite::{ErrorCode, ffi};
use std::io;
use std::path::{Path, PathBuf};

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
        "no space left for {}; what was stored before is kept: free some space, delete records with \
         `linerate results delete`, or name a file on another disk with --store",
        path.display()
    )]
    Full {
        /// The store.
        path: PathBuf,
    },
    /// The file or its folder cannot be written.
    #[error("cannot open or write {}: {reason}; allow writing to it and its folder, or name another file with --store", path.display())]
    NotWritable {
        /// The store.
        path: PathBuf,
        /// What SQLite said.
        reason: String,
    },
    /// The file is something else.
    #[error("{} is not a linerate store; move it away, or name another file with --store", path.display())]
    NotAStore {
        /// The file.
        path: PathBuf,
    },
    /// The file is cut short, or its content does not fit together.
    #[error(
        "{} is damaged or cut short ({reason}); move it away and put a copy in its place, or name another file with --store",
        path.display()
    )]
    Damaged {
        /// The store.
        path: PathBuf,
        /// What SQLite said.
        reason: String,
    },
    /// Another program kept the store locked.
    #[error("{} is locked by another program; wait for it to end, or name another file with --store", path.display())]
    Locked {
        /// The store.
        path: PathBuf,
    },
    /// Another linerate made the store.
    #[error(
        "{} has format {found}, and this linerate reads {known} alone; use the linerate that wrote it, or name another file with --store: \
         nothing was changed",
        path.display()
    )]
    OtherFormat {
        /// The store.
        path: PathBuf,
        /// Its format.
        found: i64,
        /// The format of this program.
        known: i64,
    },
    /// The lock of a run that is being measured cannot be taken or looked at.
    #[error("cannot lock a run of {}: {source}; allow writing to its folder, or name another file with --store", path.display())]
    Lock {
        /// The store.
        path: PathBuf,
        /// Why.
        source: linerate_sys::Error,
    },
    /// Another program measures the run.
    #[error("{id} in {} is being measured by another program; wait until it ends, or stop it", path.display())]
    Running {
        /// The store.
        path: PathBuf,
        /// The run.
        id: RecordId,
    },
    /// Another program went on with the run.
    #[error("another program went on with {id} in {}; its trials are kept, those measured here since are not", path.display())]
    TakenOver {
        /// The store.
        path: PathBuf,
        /// The run.
        id: RecordId,
    },
    /// A run that ran to its end cannot be resumed.
    #[error("{id} in {} has finished: nothing is left to resume; measure again without --resume", path.display())]
    Finished {
        /// The store.
        path: PathBuf,
        /// The run.
        id: RecordId,
    },
    /// No record has this name.
    #[error("no record {name} in {}; `linerate results list` shows them", path.display())]
    Unknown {
        /// The store.
        path: PathBuf,
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
    #[error("a record {id} is in {} already; try again", path.display())]
    Exists {
        /// The store.
        path: PathBuf,
        /// The name.
        id: RecordId,
    },
    /// A stored record has another format.
    #[error(
        "record {id} in {} has format {found}, and this linerate reads {known} alone; use linerate {version}, which wrote it, or measure \
         again: nothing was changed",
        path.display()
    )]
    OtherRecordFormat {
        /// The store.
        path: PathBuf,
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
    #[error("record {id} in {} cannot be read: {source}; it may be of another version of linerate", path.display())]
    Unreadable {
        /// The store.
        path: PathBuf,
        /// The record.
        id: RecordId,
        /// Why.
        source: serde_json::Error,
    },
    /// SQLite failed in some other way.
    #[error("cannot use {}: {source}; check the disk, or name another file with --store", path.display())]
    Database {
        /// The store.
        path: PathBuf,
        /// Why.
        source: rusqlite::Error,
    },
}

impl StoreError {
    /// Returns whether the place cannot hold a store: no home, or a folder or file that cannot be made or written.
    pub fn is_of_place(&self) -> bool {
        matches!(self, Self::NoHome | Self::Folder { .. } | Self::NotWritable { .. })
    }

    /// What SQLite's error on the store at `path` means to its user.
    pub(crate) fn of(path: &Path, source: rusqlite::Error) -> Self {
        let path = path.to_owned();
        let Some(failure) = source.sqlite_error() else { return Self::Database { path, source } };
        match failure.code {
            ErrorCode::DiskFull => Self::Full { path },
            // The index of the log is mapped memory, whose blocks are taken beforehand.
            _ if failure.extended_code == ffi::SQLITE_IOERR_SHMSIZE => Self::Full { path },
            ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied => {
                Self::NotWritable { path, reason: source.to_string() }
            }
            ErrorCode::NotADatabase => Self::NotAStore { path },
            ErrorCode::DatabaseCorrupt => Self::Damaged { path, reason: source.to_string() },
            ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => Self::Locked { path },
            _ => Self::Database { path, source },
        }
    }
}
