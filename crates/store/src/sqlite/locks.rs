//! Locks of the runs in a SQLite file.
//!
//! The program that measures run `number` holds a lock on byte `number` of the file `results.db-live`. The kernel drops it when
//! the program ends.

use crate::StoreError;
use crate::alive::{Sign, now_unix_ns};
use crate::backend::RunLock;
use crate::location::neighbour_file;
use linerate_model::RecordId;
use linerate_sys::byte_lock::{ByteLock, has_no_locks};
use std::path::{Path, PathBuf};

/// Locks of a store's runs.
#[derive(Debug)]
pub(super) struct FileLocks {
    store: String,
    file: PathBuf,
    /// Start of this machine; empty if it is not known.
    pub(super) boot: String,
}

impl FileLocks {
    /// Prepares the locks of the store at `path`.
    pub(super) fn of(path: &Path) -> Self {
        let boot = linerate_sys::system::boot_id().unwrap_or_default();
        Self { store: path.display().to_string(), file: neighbour_file(path, "-live"), boot }
    }

    /// Locks run `number`.
    pub(super) fn take(&self, number: i64, id: &RecordId) -> Result<RunLock, StoreError> {
        match ByteLock::take(&self.file, number as u64) {
            Ok(Some(lock)) => Ok(RunLock::Byte(lock)),
            Ok(None) => Err(StoreError::Running { store: self.store.clone(), id: id.clone() }),
            Err(error) if has_no_locks(&error) => Ok(RunLock::Unavailable),
            Err(error) => Err(self.failed(error)),
        }
    }

    /// Returns whether the run of `sign` is still being measured.
    pub(super) fn is_alive(&self, sign: &Sign) -> Result<bool, StoreError> {
        if sign.locked {
            match ByteLock::is_taken(&self.file, sign.number as u64) {
                Ok(taken) => return Ok(taken),
                Err(error) if has_no_locks(&error) => {}
                Err(error) => return Err(self.failed(error)),
            }
        }
        Ok(sign.is_alive_without_lock(&self.boot, now_unix_ns()))
    }

    fn failed(&self, source: linerate_sys::Error) -> StoreError {
        StoreError::Lock { store: self.store.clone(), source }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lock_decides_alone() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let locks = FileLocks::of(&folder.path().join("results.db"));
        let sign = Sign { number: 3, locked: true, boot: "another".into(), changed_unix_ns: 0 };
        assert!(!locks.is_alive(&sign).expect("free"));
        let id = RecordId("one".into());
        let lock = locks.take(3, &id).expect("free");
        assert!(lock.is_visible(), "this file system has locks");
        assert!(locks.is_alive(&sign).expect("taken"));
        assert!(matches!(locks.take(3, &id), Err(StoreError::Running { .. })));
        drop(lock);
        assert!(!locks.is_alive(&sign).expect("free again"));
    }
}
