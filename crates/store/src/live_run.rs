//! A run that is being measured: begun or resumed, kept trial by trial, ended.

use crate::body::Parts;
use crate::query::instant;
use crate::run_row::{RunRow, State};
use crate::search_text::search_text;
use crate::{Store, StoreError, alive, body, changed, rows};
use linerate_model::{Record, RecordId, RunSummary, TrialResult};
use linerate_sys::byte_lock::ByteLock;
use rusqlite::{ErrorCode, OptionalExtension as _, Transaction, params};

/// Run that this program measures. Dropping it without [`LiveRun::end`] leaves it as killed.
pub struct LiveRun<'a> {
    store: &'a Store,
    id: RecordId,
    /// Row of the run in the store.
    run: i64,
    /// Number of attempts stored, which is the number of the next one.
    attempts: u32,
    /// Shows other programs that the run is measured. `None` if the file system has no locks.
    _lock: Option<ByteLock>,
}

/// Reason for the end of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The run was complete.
    Finished,
    /// The user stopped it.
    Interrupted,
    /// A trial failed.
    Failed,
}

impl From<Ending> for State {
    fn from(ending: Ending) -> Self {
        match ending {
            Ending::Finished => Self::Finished,
            Ending::Interrupted => Self::Interrupted,
            Ending::Failed => Self::Failed,
        }
    }
}

impl Store {
    /// Stores a run that begins: its command, plan and hosts, and the caveats known before it begins. Its trials follow
    /// one by one; the ones that `record` has already are not stored.
    ///
    /// # Errors
    /// A run of this name is there already, or the store cannot be written.
    pub fn begin(&self, record: &Record) -> Result<LiveRun<'_>, StoreError> {
        let row = RunRow::of(record, State::Running, alive::now_unix_ns());
        let (run, lock) = self.change(|change| {
            let inserted = rows::insert_run(change, &row, &search_text(record), &body::plan(record));
            let run = inserted.map_err(|error| match error.sqlite_error_code() {
                Some(ErrorCode::ConstraintViolation) => {
                    StoreError::Exists { path: self.path().to_owned(), id: record.id.clone() }
                }
                _ => self.failed(error),
            })?;
            // Locked before any other program can see the row.
            let lock = self.locks().take(run, || self.running(&record.id))?;
            self.own(change, run, lock.is_some())?;
            Ok((run, lock))
        })?;
        Ok(LiveRun { store: self, id: record.id.clone(), run, attempts: 0, _lock: lock })
    }

    /// Takes up the run called `name` (see [`Store::resolve`]) that was interrupted, failed or was killed: the record
    /// as it began, with all trials that ended. What was found of them is dropped, because it follows from the trials.
    ///
    /// # Errors
    /// The run has finished, another program measures it, or its record cannot be read.
    pub fn resume(&self, name: &str) -> Result<(Record, LiveRun<'_>), StoreError> {
        let id = self.resolve(name)?;
        let (record, run, attempts, lock) = self.change(|change| {
            let row = change.query_row("SELECT number, attempts, state FROM run WHERE id = ?", [&id.0], |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?))
            });
            // `None` if another program deleted the run since it was resolved.
            let row = row.optional().map_err(|error| self.failed(error))?;
            let (run, attempts, state) = row.ok_or_else(|| self.unknown(name))?;
            match state {
                State::Finished => return Err(StoreError::Finished { path: self.path().to_owned(), id: id.clone() }),
                State::Running => self.refuse_alive(change, &id)?,
                State::Interrupted | State::Failed | State::Killed => {}
            }
            // Read first: a record that cannot be read stays as it is.
            let mut parts = Parts::read(change, &id).map_err(|error| self.failed(error))?;
            parts.found = None;
            let record = parts.join().map_err(|error| self.unreadable(&id, error))?;
            let lock = self.locks().take(run, || self.running(&id))?;
            self.own(change, run, lock.is_some())?;
            change.execute("DELETE FROM found WHERE run = ?", [run]).map_err(|error| self.failed(error))?;
            Ok((record, run, attempts, lock))
        })?;
        Ok((record, LiveRun { store: self, id, run, attempts, _lock: lock }))
    }

    /// Marks `run` as measured by this program.
    fn own(&self, change: &Transaction<'_>, run: i64, locked: bool) -> Result<(), StoreError> {
        change
            .execute(
                "UPDATE run SET state = ?, locked = ?, boot = ?, changed_unix_ns = ? WHERE number = ?",
                params![State::Running, locked, self.locks().boot, instant(alive::now_unix_ns()), run],
            )
            .map_err(|error| self.failed(error))
            .map(drop)
    }
}

impl LiveRun<'_> {
    /// The run's name.
    pub fn id(&self) -> &RecordId {
        &self.id
    }

    /// Stores the next trial and the summary of the run with it. Both are on the disk when this returns.
    ///
    /// # Errors
    /// The run was deleted, another program went on with it, or the store cannot be written. The trial is not stored then.
    pub fn trial(&mut self, result: &TrialResult, summary: &RunSummary) -> Result<(), StoreError> {
        self.store.change(|change| {
            let mut row = change
                .prepare_cached(
                    "UPDATE run SET state = ?, changed_unix_ns = ?, results = ?, trials = trials + ?, attempts = attempts + 1,
                            headline = ?, verdict = ?
                     WHERE number = ? AND id = ? AND attempts = ?",
                )
                .map_err(|error| self.store.failed(error))?;
            let changed = row
                .execute(params![
                    // On a file system without locks the run may have been marked as killed during a long trial.
                    State::Running,
                    instant(alive::now_unix_ns()),
                    summary.results,
                    result.is_counted(),
                    summary.headline.as_ref().map(body::json),
                    summary.verdict.as_ref().map(body::json),
                    self.run,
                    self.id.0,
                    self.attempts,
                ])
                .map_err(|error| self.store.failed(error))?;
            if changed == 0 {
                return Err(self.lost(change));
            }
            rows::insert_trial(change, self.run, self.attempts, result).map_err(|error| self.store.failed(error))
        })?;
        self.attempts += 1;
        Ok(())
    }

    /// Stores the results and the end of the run.
    ///
    /// # Errors
    /// The run was deleted, another program went on with it, or the store cannot be written. It counts as killed then.
    pub fn end(self, record: &Record, ending: Ending) -> Result<(), StoreError> {
        self.store.change(|change| {
            let changed = change
                .execute(
                    "UPDATE run SET state = ?, changed_unix_ns = ? WHERE number = ? AND id = ? AND attempts = ?",
                    params![State::from(ending), instant(alive::now_unix_ns()), self.run, self.id.0, self.attempts],
                )
                .map_err(|error| self.store.failed(error))?;
            if changed == 0 {
                return Err(self.lost(change));
            }
            rows::insert_found(change, self.run, record).map_err(|error| self.store.failed(error))?;
            match ending {
                Ending::Finished => changed::renew_around(change, self.run).map_err(|error| self.store.failed(error)),
                Ending::Interrupted | Ending::Failed => Ok(()),
            }
        })
    }

    /// Returns why the run is not as this program left it.
    fn lost(&self, change: &Transaction<'_>) -> StoreError {
        let there = change.query_row(
            "SELECT count(*) FROM run WHERE number = ? AND id = ?",
            params![self.run, self.id.0],
            |row| row.get::<_, bool>(0),
        );
        match there {
            Ok(true) => StoreError::TakenOver { path: self.store.path().to_owned(), id: self.id.clone() },
            Ok(false) => self.store.unknown(&self.id.0),
            Err(error) => self.store.failed(error),
        }
    }
}
