//! Runs that were measured elsewhere and arrive as messages, each at least once.
//!
//! Each message is stored once. Messages of several runs may come in any order, those of one run in theirs.

use crate::alive::{self, FLEET};
use crate::backend::{Body, BodyTable, Session};
use crate::finish::{FinishedRun, finish};
use crate::pairs::PairKey;
use crate::rows::{NewRun, insert_runs, replace_found, trial_body};
use crate::run_row::{RunRow, State};
use crate::search_text::search_text;
use crate::sql::instant;
use crate::{Ending, Store, StoreError, body};
use linerate_model::{Goal, Record, RecordId, RunSummary, TrialResult};
use std::collections::HashSet;

impl Store {
    /// Stores a run that begins elsewhere, without its trials. Returns `false` if it is stored already.
    ///
    /// # Errors
    /// The store cannot be written.
    pub fn ingest_begin(&self, record: &Record) -> Result<bool, StoreError> {
        let new = new_run(record, State::Running, RunSummary::default());
        self.change(|session| Ok(!insert_runs(session, &[&new])?.is_empty()))
    }

    /// Stores the `number`th trial of a run, counted from 0, and the summary of the run with it. Returns `false` if it is stored
    /// already.
    ///
    /// # Errors
    /// The run is not known, an earlier trial is missing, or the store cannot be written.
    pub fn ingest_trial(
        &self,
        id: &RecordId,
        number: u32,
        result: &TrialResult,
        summary: &RunSummary,
    ) -> Result<bool, StoreError> {
        self.change(|session| {
            let run = stored_run(session, id)?.ok_or_else(|| self.unknown(&id.0))?;
            if number < run.attempts || run.has_ended() {
                return Ok(false);
            }
            if number > run.attempts {
                let (store, id) = (self.name(), id.clone());
                return Err(StoreError::TrialOutOfOrder { store, id, number, stored: run.attempts });
            }
            let values = [
                State::Running.name().into(),
                instant(alive::now_unix_ns()).into(),
                summary.results.into(),
                result.is_counted().into(),
                summary.headline.as_ref().map(body::json).into(),
                summary.verdict.as_ref().map(body::json).into(),
                summary.verdict.map(|verdict| verdict.limit.name()).into(),
                run.number.into(),
                number.into(),
            ];
            // Two programs may store the same message at once: the row admits one of them.
            let sql = "UPDATE run SET state = ?1, changed_unix_ns = ?2, results = ?3, trials = trials + ?4, attempts = attempts + 1,
                              headline = ?5, verdict = ?6, limit_name = ?7
                       WHERE number = ?8 AND attempts = ?9";
            let stored = session.execute(sql, &values)? > 0;
            if stored {
                let trial = trial_body(run.number, run.started_unix_ns, number, result);
                session.insert_bodies(BodyTable::Trial, &[trial])?;
            }
            Ok(stored)
        })
    }

    /// Stores the end of a run whose `attempts` were stored one by one; those in `record` do not count. Returns `false` if its end
    /// is stored already.
    ///
    /// # Errors
    /// The run is not known, an attempt is missing, or the store cannot be written.
    pub fn ingest_end(&self, record: &Record, attempts: u32, ending: Ending) -> Result<bool, StoreError> {
        let id = &record.id;
        let begun = Record { trials: Vec::new(), ..record.clone() };
        let run = EndedRun::of(&begun, ending);
        self.change(|session| {
            let stored = stored_run(session, id)?.ok_or_else(|| self.unknown(&id.0))?;
            if stored.attempts < attempts && !stored.has_ended() {
                let (store, id) = (self.name(), id.clone());
                return Err(StoreError::TrialOutOfOrder { store, id, number: attempts, stored: stored.attempts });
            }
            Ok(insert_ended(session, &[&run])?.contains(id))
        })
    }

    /// Stores a whole run. Returns `false` if its end is stored already.
    ///
    /// # Errors
    /// The store cannot be written.
    pub fn ingest_record(&self, record: &Record, ending: Ending) -> Result<bool, StoreError> {
        let stored = self.ingest_records(&[(record, ending)])?;
        Ok(stored.first().copied().unwrap_or_default())
    }

    /// Stores whole runs at once, all or none of them. Returns for each whether it was stored just now, `false` if its end is stored
    /// already.
    ///
    /// # Errors
    /// The store cannot be written.
    pub fn ingest_records(&self, records: &[(&Record, Ending)]) -> Result<Vec<bool>, StoreError> {
        let mut names = HashSet::new();
        let runs: Vec<Option<EndedRun<'_>>> = records
            .iter()
            // A message that came twice in one batch is stored once.
            .map(|(record, ending)| names.insert(&record.id).then(|| EndedRun::of(record, *ending)))
            .collect();
        self.change(|session| {
            let ended: Vec<&EndedRun<'_>> = runs.iter().flatten().collect();
            let stored = insert_ended(session, &ended)?;
            Ok(runs.iter().map(|run| run.as_ref().is_some_and(|run| stored.contains(&run.new.row.id))).collect())
        })
    }
}

/// A run that ended, as it is written.
struct EndedRun<'a> {
    record: &'a Record,
    new: NewRun,
    found: String,
    pair: Option<PairKey>,
}

impl<'a> EndedRun<'a> {
    fn of(record: &'a Record, ending: Ending) -> Self {
        let pair = if ending == Ending::Finished { PairKey::of(record) } else { None };
        let mut new = new_run(record, ending.into(), summary(record));
        new.row.attempts = u32::try_from(record.trials.len()).unwrap_or(u32::MAX);
        new.row.trials = u32::try_from(record.counted().count()).unwrap_or(u32::MAX);
        Self { record, new, found: body::found(record), pair }
    }

    /// Returns the rows of its attempts from the `first` on.
    fn trials(&self, run: i64, first: u32) -> impl Iterator<Item = Body> {
        let started_unix_ns = self.record.started_unix_ns;
        let numbered = (0..).zip(&self.record.trials).skip(first as usize);
        numbered.map(move |(number, result)| trial_body(run, started_unix_ns, number, result))
    }
}

fn new_run(record: &Record, state: State, summary: RunSummary) -> NewRun {
    let row = RunRow::of(record, state, alive::now_unix_ns());
    NewRun {
        row: RunRow { results: summary.results, headline: summary.headline, verdict: summary.verdict, ..row },
        search_text: search_text(record),
        place: FLEET.to_owned(),
        plan: body::plan(record),
    }
}

/// Returns the summary of a run that ended.
fn summary(record: &Record) -> RunSummary {
    match record.plan.goal {
        // The same as a replay, without its cost.
        Goal::Sweep(_) => RunSummary::of(&record.results),
        Goal::Curve(_) | Goal::Ladder(_) | Goal::Device(_) => linerate_method::summary(record),
    }
}

/// Writes runs that ended. Returns the names of those that were not stored before.
fn insert_ended<'a>(session: &mut dyn Session, runs: &[&'a EndedRun<'_>]) -> Result<HashSet<&'a RecordId>, StoreError> {
    // In the order of their names, so that two programs never wait for each other.
    let mut runs = runs.to_vec();
    runs.sort_by(|a, b| a.record.id.cmp(&b.record.id));
    let numbers = insert_runs(session, &runs.iter().map(|run| &run.new).collect::<Vec<_>>())?;
    let mut stored = HashSet::new();
    let mut finished = Vec::new();
    let mut trials = Vec::new();
    let mut found = Vec::new();
    for run in runs {
        let id = &run.record.id;
        let number = match numbers.get(id) {
            Some(number) => {
                trials.extend(run.trials(*number, 0));
                let started_unix_ns = run.record.started_unix_ns;
                found.push(Body { run: *number, started_unix_ns, values: vec![run.found.as_str().into()] });
                *number
            }
            None => match complete(session, run)? {
                Some(number) => number,
                None => continue,
            },
        };
        stored.insert(id);
        if run.new.row.state == State::Finished {
            finished.push(FinishedRun { number, pair: run.pair.clone() });
        }
    }
    session.insert_bodies(BodyTable::Trial, &trials)?;
    session.insert_bodies(BodyTable::Found, &found)?;
    finish(session, &finished)?;
    Ok(stored)
}

/// Ends a run that has begun in the store. Returns its number, or `None` if its end is stored already.
fn complete(session: &mut dyn Session, run: &EndedRun<'_>) -> Result<Option<i64>, StoreError> {
    // Deleted since then: its end is of no use.
    let Some(stored) = stored_run(session, &run.record.id)? else { return Ok(None) };
    if stored.has_ended() {
        return Ok(None);
    }
    let row = &run.new.row;
    let values = [
        row.state.name().into(),
        instant(row.changed_unix_ns).into(),
        row.results.into(),
        row.trials.into(),
        row.attempts.into(),
        row.headline.as_ref().map(body::json).into(),
        row.verdict.as_ref().map(body::json).into(),
        row.verdict.map(|verdict| verdict.limit.name()).into(),
        stored.number.into(),
        stored.attempts.into(),
    ];
    // Two programs may store the same message at once: the row admits one of them.
    let sql =
        "UPDATE run SET state = ?1, changed_unix_ns = ?2, results = ?3,
                      trials = CASE WHEN trials > ?4 THEN trials ELSE ?4 END,
                      attempts = CASE WHEN attempts > ?5 THEN attempts ELSE ?5 END, headline = ?6, verdict = ?7, limit_name = ?8
               WHERE number = ?9 AND attempts = ?10 AND state IN ('running', 'killed')";
    if session.execute(sql, &values)? == 0 {
        return Ok(None);
    }
    let trials: Vec<Body> = run.trials(stored.number, stored.attempts).collect();
    session.insert_bodies(BodyTable::Trial, &trials)?;
    replace_found(session, stored.number, stored.started_unix_ns, run.found.clone())?;
    Ok(Some(stored.number))
}

/// Columns of a run that decide what a message adds to it.
struct StoredRun {
    number: i64,
    started_unix_ns: u64,
    attempts: u32,
    state: String,
}

impl StoredRun {
    /// Returns whether the run has an end. One that counts as killed may be silent for another reason.
    fn has_ended(&self) -> bool {
        self.state != State::Running.name() && self.state != State::Killed.name()
    }
}

fn stored_run(session: &mut dyn Session, id: &RecordId) -> Result<Option<StoredRun>, StoreError> {
    let sql = "SELECT number, started_unix_ns, attempts, state FROM run WHERE id = ?1";
    session.row(sql, &[id.0.as_str().into()], |row| {
        Ok(StoredRun {
            number: row.integer(0)?,
            started_unix_ns: row.instant(1)?,
            attempts: row.count(2)?,
            state: row.text(3)?.to_owned(),
        })
    })
}
