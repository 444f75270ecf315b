//! Whether a run is still being measured.
//!
//! The program that measures run `number` holds a lock on byte `number` of the file `results.db-live`; the kernel drops
//! it when the program ends, by `kill -9` too. Nothing is written while a trial runs. If the file system has no locks,
//! a run counts as alive if it began since this machine started and was written to recently.

use crate::StoreError;
use crate::location::beside;
use linerate_model::RecordId;
use linerate_sys::byte_lock::{ByteLock, has_no_locks};
use rusqlite::{Connection, OptionalExtension as _, Row};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Time without a write after which a run without a lock counts as killed. Its next trial, if any, marks it as running
/// again.
const SILENCE: Duration = Duration::from_secs(30 * 60);

/// The locks of a store's runs.
#[derive(Debug)]
pub(crate) struct Locks {
    store: PathBuf,
    file: PathBuf,
    /// Start of this machine; empty if it is not known.
    pub(crate) boot: String,
}

/// Columns of a run in state `running` that show whether it is alive.
#[derive(Debug)]
pub(crate) struct Sign {
    pub(crate) number: i64,
    locked: bool,
    boot: String,
    changed_unix_ns: u64,
}

impl Locks {
    /// Prepares the locks of the store at `path`.
    pub(crate) fn of(path: &Path) -> Self {
        let boot = linerate_sys::system::boot_id().unwrap_or_default();
        Self { store: path.to_owned(), file: beside(path, "-live"), boot }
    }

    /// Locks run `number`. Returns `None` if the file system has no locks, and the error `held` if another program
    /// holds the lock.
    pub(crate) fn take(&self, number: i64, held: impl FnOnce() -> StoreError) -> Result<Option<ByteLock>, StoreError> {
        match ByteLock::take(&self.file, number as u64) {
            Ok(Some(lock)) => Ok(Some(lock)),
            Ok(None) => Err(held()),
            Err(error) if has_no_locks(&error) => Ok(None),
            Err(error) => Err(self.failed(error)),
        }
    }

    /// Returns whether the run of `sign` is still being measured.
    pub(crate) fn is_alive(&self, sign: &Sign) -> Result<bool, StoreError> {
        if sign.locked {
            match ByteLock::is_taken(&self.file, sign.number as u64) {
                Ok(taken) => return Ok(taken),
                Err(error) if has_no_locks(&error) => {}
                Err(error) => return Err(self.failed(error)),
            }
        }
        Ok(sign.boot == self.boot && !sign.is_silent(now_unix_ns()))
    }

    fn failed(&self, source: linerate_sys::Error) -> StoreError {
        StoreError::Lock { path: self.store.clone(), source }
    }
}

impl Sign {
    /// Reads the sign of one run. `None` if its state is not `running`.
    pub(crate) fn one(connection: &Connection, id: &RecordId) -> Result<Option<Self>, rusqlite::Error> {
        let sql = "SELECT number, locked, boot, changed_unix_ns FROM run WHERE state = 'running' AND id = ?";
        connection.prepare_cached(sql)?.query_row([&id.0], Self::read).optional()
    }

    /// Reads the signs of all runs in state `running`.
    pub(crate) fn all(connection: &Connection) -> Result<Vec<Self>, rusqlite::Error> {
        let mut statement = connection
            .prepare_cached("SELECT number, locked, boot, changed_unix_ns FROM run WHERE state = 'running'")?;
        statement.query_map([], Self::read)?.collect()
    }

    fn read(row: &Row<'_>) -> Result<Self, rusqlite::Error> {
        Ok(Self {
            number: row.get(0)?,
            locked: row.get(1)?,
            boot: row.get(2)?,
            changed_unix_ns: row.get::<_, i64>(3)? as u64,
        })
    }

    fn is_silent(&self, now_unix_ns: u64) -> bool {
        // A clock that stepped back does not count as silence.
        Duration::from_nanos(now_unix_ns.saturating_sub(self.changed_unix_ns)) >= SILENCE
    }
}

/// Returns the time in nanoseconds since 1970.
pub(crate) fn now_unix_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_locks_boot_and_silence_decide() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let locks = Locks::of(&folder.path().join("results.db"));
        assert!(!locks.boot.is_empty());
        let half_an_hour = SILENCE.as_nanos() as i64;
        let alive = |boot: &str, ago: i64| {
            let changed_unix_ns = now_unix_ns().saturating_add_signed(-ago);
            let sign = Sign { number: 1, locked: false, boot: boot.into(), changed_unix_ns };
            locks.is_alive(&sign).expect("no lock is looked at")
        };
        assert!(alive(&locks.boot, 0) && alive(&locks.boot, half_an_hour / 2));
        assert!(alive(&locks.boot, -half_an_hour), "the clock stepped back");
        assert!(!alive(&locks.boot, half_an_hour));
        assert!(!alive("another", 0));
    }

    #[test]
    fn with_a_lock_nothing_else_counts() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let locks = Locks::of(&folder.path().join("results.db"));
        let sign = Sign { number: 3, locked: true, boot: "another".into(), changed_unix_ns: 0 };
        assert!(!locks.is_alive(&sign).expect("free"));
        let held = || StoreError::NoHome;
        let lock = locks.take(3, held).expect("free");
        assert!(lock.is_some(), "this file system has locks");
        assert!(locks.is_alive(&sign).expect("taken"));
        assert!(matches!(locks.take(3, held), Err(StoreError::NoHome)));
        drop(lock);
        assert!(!locks.is_alive(&sign).expect("free again"));
    }
}
