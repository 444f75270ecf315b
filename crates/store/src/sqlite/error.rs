//! Errors of SQLite, in the user's terms.

use crate::StoreError;
use rusqlite::{ErrorCode, ffi};
use std::path::Path;

/// Returns the meaning of SQLite's error on the store at `path`.
pub(super) fn store_error(path: &Path, source: rusqlite::Error) -> StoreError {
    let store = path.display().to_string();
    let Some(failure) = source.sqlite_error() else {
        return StoreError::Database { store, source: Box::new(source) };
    };
    match failure.code {
        ErrorCode::DiskFull => StoreError::Full { store },
        // The index of the log is mapped memory; its blocks are allocated beforehand.
        _ if failure.extended_code == ffi::SQLITE_IOERR_SHMSIZE => StoreError::Full { store },
        ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied => {
            let remedy = "allow writing to it and its folder";
            StoreError::NotWritable { store, reason: source.to_string(), remedy }
        }
        ErrorCode::NotADatabase => StoreError::NotAStore { path: path.to_owned() },
        ErrorCode::DatabaseCorrupt => StoreError::Damaged { store, reason: source.to_string() },
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => StoreError::Locked { store },
        _ => StoreError::Database { store, source: Box::new(source) },
    }
}
