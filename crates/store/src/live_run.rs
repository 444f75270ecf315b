//! A run that is being measured: begun or resumed, kept trial by trial, ended.

use crate::backend::{BodyTable, RunLock, Session};
use crate::body::{self, Parts};
use crate::finish::{FinishedRun, finish};
use crate::pairs::PairKey;
use crate::rows::{NewRun, insert_runs, replace_found, trial_body};
use crate::run_row::{RunRow, State};
use crate::search_text::search_text;
use crate::sql::{SqlValue, instant};
use crate::{Store, StoreError, alive};
use linerate_model::{Record, RecordId, RunSummary, TrialResult};

/// Run that this program measures. Dropping it without [`LiveRun::end`] leaves it as killed.
pub struct LiveRun<'a> {
    store: &'a Store,
    id: RecordId,
    /// Number of the run's row.
    run: i64,
    started_unix_ns: u64,
    /// Number of attempts stored, which is the number of the next one.
    attempts: u32,
    /// Shows other programs that the run is measured.
    lock: RunLock,
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
        let mut new = NewRun {
            row: RunRow::of(record, State::Running, alive::now_unix_ns()),
            search_text: search_text(record),
            place: String::new(),
            plan: body::plan(record),
        };
        let (run, lock) = self.change(|session| {
            new.place = session.place();
            let run = match insert_runs(session, &[&new])?.get(&record.id) {
                Some(run) => *run,
                None => own_run(session, &record.id)?
                    .ok_or_else(|| StoreError::Exists { store: self.name(), id: record.id.clone() })?,
            };
            // Locked before any other program can see the row.
            let lock = session.lock_run(run, &record.id)?;
            own(session, run, &lock)?;
            Ok((run, lock))
        })?;
        Ok(LiveRun {
            store: self,
            id: record.id.clone(),
            run,
            started_unix_ns: record.started_unix_ns,
            attempts: 0,
            lock,
        })
    }

    /// Takes up the run called `name` (see [`Store::resolve`]) that was interrupted, failed or was killed: the record
    /// as it began, with all trials that ended. What was found of them is dropped, because it follows from the trials.
    ///
    /// # Errors
    /// The run has finished, another program measures it, or its record cannot be read.
    pub fn resume(&self, name: &str) -> Result<(Record, LiveRun<'_>), StoreError> {
        let id = self.resolve(name)?;
        self.change(|session| {
            let sql = "SELECT number, attempts, state FROM run WHERE id = ?1";
            let row = session.row(sql, &[id.0.as_str().into()], |row| {
                Ok((row.integer(0)?, row.count(1)?, row.text(2)?.to_owned()))
            })?;
            // `None` if another program deleted the run since it was resolved.
            let (run, attempts, state) = row.ok_or_else(|| self.unknown(name))?;
            if state == State::Finished.name() {
                return Err(StoreError::Finished { store: self.name(), id: id.clone() });
            }
            if state == State::Running.name() {
                self.refuse_alive(session, &id)?;
            }
            // Read first: a record that cannot be read stays as it is.
            let mut parts = Parts::read(session, &id)?.ok_or_else(|| self.unknown(name))?;
            parts.found = None;
            let record = parts.join().map_err(|error| self.unreadable(&id, error))?;
            let lock = session.lock_run(run, &id)?;
            own(session, run, &lock)?;
            session.execute("DELETE FROM found WHERE run = ?1", &[run.into()])?;
            let started_unix_ns = record.started_unix_ns;
            Ok((record, LiveRun { store: self, id: id.clone(), run, started_unix_ns, attempts, lock }))
        })
    }
}

/// Marks `run` as measured by this program.
fn own(session: &mut dyn Session, run: i64, lock: &RunLock) -> Result<(), StoreError> {
    let values = [
        State::Running.name().into(),
        lock.is_visible().into(),
        session.place().into(),
        instant(alive::now_unix_ns()).into(),
        run.into(),
    ];
    let sql = "UPDATE run SET state = ?1, locked = ?2, boot = ?3, changed_unix_ns = ?4 WHERE number = ?5";
    session.execute(sql, &values).map(drop)
}

/// Returns the number of the run that an earlier call of [`Store::begin`] on a lost connection stored after all.
fn own_run(session: &mut dyn Session, id: &RecordId) -> Result<Option<i64>, StoreError> {
    if !session.is_repeated() {
        return Ok(None);
    }
    let values = [id.0.as_str().into(), session.place().into()];
    session.row("SELECT number FROM run WHERE id = ?1 AND boot = ?2 AND attempts = 0", &values, |row| row.integer(0))
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
        let trial = trial_body(self.run, self.started_unix_ns, self.attempts, result);
        self.store.change(|session| {
            self.refuse_lost()?;
            let values = [
                // Without a lock the run may have been marked as killed during a long trial.
                State::Running.name().into(),
                instant(alive::now_unix_ns()).into(),
                summary.results.into(),
                result.is_counted().into(),
                summary.headline.as_ref().map(body::json).into(),
                summary.verdict.as_ref().map(body::json).into(),
                summary.verdict.map(|verdict| verdict.limit.name()).into(),
                self.run.into(),
                self.id.0.as_str().into(),
                self.attempts.into(),
            ];
            let sql = "UPDATE run SET state = ?1, changed_unix_ns = ?2, results = ?3, trials = trials + ?4, attempts = attempts + 1,
                              headline = ?5, verdict = ?6, limit_name = ?7
                       WHERE number = ?8 AND id = ?9 AND attempts = ?10";
            if session.execute(sql, &values)? > 0 {
                session.insert_bodies(BodyTable::Trial, std::slice::from_ref(&trial))
            } else if session.is_repeated() && self.is_stored(session, &trial.values)? {
                // The connection was lost after the server had committed the trial.
                Ok(())
            } else {
                Err(self.lost(session)?)
            }
        })?;
        self.attempts += 1;
        Ok(())
    }

    /// Stores the results and the end of the run.
    ///
    /// # Errors
    /// The run was deleted, another program went on with it, or the store cannot be written. It counts as killed then.
    pub fn end(self, record: &Record, ending: Ending) -> Result<(), StoreError> {
        self.store.change(|session| {
            self.refuse_lost()?;
            let values = [
                State::from(ending).name().into(),
                instant(alive::now_unix_ns()).into(),
                self.run.into(),
                self.id.0.as_str().into(),
                self.attempts.into(),
            ];
            let sql = "UPDATE run SET state = ?1, changed_unix_ns = ?2 WHERE number = ?3 AND id = ?4 AND attempts = ?5";
            if session.execute(sql, &values)? == 0 {
                return Err(self.lost(session)?);
            }
            replace_found(session, self.run, self.started_unix_ns, body::found(record))?;
            match ending {
                Ending::Finished => finish(session, &[FinishedRun { number: self.run, pair: PairKey::of(record) }]),
                Ending::Interrupted | Ending::Failed => Ok(()),
            }
        })
    }

    /// Fails if another program took the run while this one had no connection.
    fn refuse_lost(&self) -> Result<(), StoreError> {
        if self.lock.is_lost() {
            return Err(StoreError::TakenOver { store: self.store.name(), id: self.id.clone() });
        }
        Ok(())
    }

    /// Returns whether the next attempt is stored already, with these values.
    fn is_stored(&self, session: &mut dyn Session, values: &[SqlValue]) -> Result<bool, StoreError> {
        let key = [self.run.into(), self.attempts.into()];
        let stored = session.row("SELECT body FROM trial WHERE run = ?1 AND number = ?2", &key, |row| {
            Ok(SqlValue::from(row.text(0)?))
        })?;
        Ok(stored.is_some_and(|stored| values.last() == Some(&stored)))
    }

    /// Returns why the run is not as this program left it.
    fn lost(&self, session: &mut dyn Session) -> Result<StoreError, StoreError> {
        let values = [self.run.into(), self.id.0.as_str().into()];
        let rows = session.query("SELECT number FROM run WHERE number = ?1 AND id = ?2", &values)?;
        if rows.is_empty() {
            return Ok(self.store.unknown(&self.id.0));
        }
        Ok(StoreError::TakenOver { store: self.store.name(), id: self.id.clone() })
    }
}
