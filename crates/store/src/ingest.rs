//! Runs that were measured elsewhere and arrive in parts, each at least once.
//!
//! Each part is stored once. Parts of several runs may come in any order, those of one run in theirs. Parts that arrive together
//! are stored in one transaction with one statement for each table, because a round trip to a server costs more than a row.

use crate::alive::{self, FLEET};
use crate::backend::{Body, BodyTable, Session};
use crate::finish::{FinishedRun, finish};
use crate::insert::{MOST_ROWS, update_rows};
use crate::pairs::PairKey;
use crate::rows::{NewRun, insert_runs, trial_body};
use crate::run_row::{RunRow, State};
use crate::search_text::search_text;
use crate::sql::{SqlValue, Values, instant};
use crate::{Ending, Store, StoreError, body};
use linerate_model::{Goal, Record, RecordId, RunSummary, TrialResult};
use std::collections::{BTreeMap, HashSet};

/// A part of a record as it arrives.
#[derive(Debug, Clone, Copy)]
pub enum IngestPart<'a> {
    /// The record as its run began. Its trials do not count.
    Begin(&'a Record),
    /// A trial.
    Trial {
        /// Name of the record.
        record: &'a RecordId,
        /// Number of the trial in the record, counted from 0.
        number: u32,
        /// The trial.
        result: &'a TrialResult,
        /// Summary of the run with it.
        summary: &'a RunSummary,
    },
    /// The record at the end of its run. Its trials do not count.
    End {
        /// The record.
        record: &'a Record,
        /// Number of its trials.
        attempts: u32,
        /// Reason of the end.
        ending: Ending,
    },
}

impl<'a> IngestPart<'a> {
    fn record(self) -> &'a RecordId {
        match self {
            Self::Begin(record) | Self::End { record, .. } => &record.id,
            Self::Trial { record, .. } => record,
        }
    }
}

/// Result of storing a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartOutcome {
    /// The part was stored just now.
    Stored,
    /// The part was stored before.
    Duplicate,
    /// An earlier part of the record is missing, or another program stores parts of it now. The part may be stored later.
    TooEarly,
}

impl Store {
    /// Stores parts of runs at once, all or none of them. Returns the outcome of each.
    ///
    /// # Errors
    /// The store cannot be written.
    pub fn ingest_parts(&self, parts: &[IngestPart<'_>]) -> Result<Vec<PartOutcome>, StoreError> {
        self.change(|session| {
            let mut changes = stored_runs(session, parts)?;
            let mut outcomes = Vec::with_capacity(parts.len());
            for part in parts {
                outcomes.push(changes.entry(part.record()).or_default().add(*part));
            }
            let written = write(session, &changes)?;
            for (part, outcome) in parts.iter().zip(&mut outcomes) {
                if *outcome == PartOutcome::Stored && !written.contains(part.record()) {
                    *outcome = PartOutcome::TooEarly;
                }
            }
            Ok(outcomes)
        })
    }

    /// Stores whole runs at once, all or none of them. Returns for each whether it was stored just now, `false` if its end is stored
    /// already.
    ///
    /// # Errors
    /// The store cannot be written.
    pub fn ingest_records(&self, records: &[(&Record, Ending)]) -> Result<Vec<bool>, StoreError> {
        let summary = RunSummary::default();
        let mut parts = Vec::new();
        let mut ends = Vec::new();
        for &(record, ending) in records {
            parts.push(IngestPart::Begin(record));
            let mut attempts = 0;
            for result in &record.trials {
                parts.push(IngestPart::Trial { record: &record.id, number: attempts, result, summary: &summary });
                attempts += 1;
            }
            ends.push(parts.len());
            parts.push(IngestPart::End { record, attempts, ending });
        }
        let outcomes = self.ingest_parts(&parts)?;
        Ok(ends.into_iter().map(|end| outcomes[end] == PartOutcome::Stored).collect())
    }
}

/// A run in the store, and parts of it that are not stored yet.
#[derive(Default)]
struct RunChange<'a> {
    /// `None` if the run is not in the store.
    stored: Option<StoredRun>,
    begin: Option<&'a Record>,
    trials: Vec<&'a TrialResult>,
    /// Summary of the run with the last of `trials`.
    summary: Option<&'a RunSummary>,
    end: Option<(&'a Record, Ending)>,
}

/// Columns of a run that decide what a part adds to it.
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

impl<'a> RunChange<'a> {
    /// Adds a part, unless it is stored already or comes too early.
    fn add(&mut self, part: IngestPart<'a>) -> PartOutcome {
        let has_begun = self.stored.is_some() || self.begin.is_some();
        let has_ended = self.end.is_some() || self.stored.as_ref().is_some_and(StoredRun::has_ended);
        let attempts = self.stored_attempts() + self.attempts();
        match part {
            IngestPart::Begin(_) if has_begun => return PartOutcome::Duplicate,
            IngestPart::Begin(record) => self.begin = Some(record),
            _ if !has_begun => return PartOutcome::TooEarly,
            _ if has_ended => return PartOutcome::Duplicate,
            IngestPart::Trial { number, .. } if number < attempts => return PartOutcome::Duplicate,
            IngestPart::Trial { number, .. } if number > attempts => return PartOutcome::TooEarly,
            IngestPart::Trial { result, summary, .. } => {
                self.trials.push(result);
                self.summary = Some(summary);
            }
            IngestPart::End { attempts: needed, .. } if needed > attempts => return PartOutcome::TooEarly,
            IngestPart::End { record, ending, .. } => self.end = Some((record, ending)),
        }
        PartOutcome::Stored
    }

    fn stored_attempts(&self) -> u32 {
        self.stored.as_ref().map_or(0, |stored| stored.attempts)
    }

    /// Returns the number of trials that are added.
    fn attempts(&self) -> u32 {
        u32::try_from(self.trials.len()).unwrap_or(u32::MAX)
    }

    /// Returns the number of trials that are added and count.
    fn counted(&self) -> u32 {
        u32::try_from(self.trials.iter().filter(|trial| trial.is_counted()).count()).unwrap_or(u32::MAX)
    }

    fn state(&self) -> State {
        self.end.map_or(State::Running, |(_, ending)| ending.into())
    }

    /// Returns the summary of the run with all parts.
    fn summary(&self) -> RunSummary {
        match self.end {
            Some((record, _)) => summary(record),
            None => self.summary.cloned().unwrap_or_default(),
        }
    }

    /// Returns the run as it is first written. `None` if it is in the store, or has not begun.
    fn new_run(&self) -> Option<NewRun> {
        let record = self.begin?;
        let summary = self.summary();
        let row = RunRow {
            results: summary.results,
            trials: self.counted(),
            attempts: self.attempts(),
            headline: summary.headline,
            verdict: summary.verdict,
            ..RunRow::of(record, self.state(), alive::now_unix_ns())
        };
        Some(NewRun { row, search_text: search_text(record), place: FLEET.to_owned(), plan: body::plan(record) })
    }

    /// Returns the values of [`UPDATED`]. `None` if the run is not in the store, or nothing is added.
    fn update(&self) -> Option<Vec<SqlValue>> {
        let stored = self.stored.as_ref()?;
        if self.trials.is_empty() && self.end.is_none() {
            return None;
        }
        let summary = self.summary();
        Some(vec![
            stored.number.into(),
            stored.attempts.into(),
            self.state().name().into(),
            instant(alive::now_unix_ns()).into(),
            summary.results.into(),
            self.counted().into(),
            self.attempts().into(),
            summary.headline.as_ref().map(body::json).into(),
            summary.verdict.as_ref().map(body::json).into(),
            summary.verdict.map(|verdict| verdict.limit.name()).into(),
        ])
    }

    fn started_unix_ns(&self) -> u64 {
        let of_record = self.begin.map(|record| record.started_unix_ns);
        self.stored.as_ref().map(|stored| stored.started_unix_ns).or(of_record).unwrap_or_default()
    }

    /// Returns the rows of the trials that are added to run `run`.
    fn trial_bodies(&self, run: i64) -> impl Iterator<Item = Body> {
        let started_unix_ns = self.started_unix_ns();
        let numbered = (self.stored_attempts()..).zip(&self.trials);
        numbered.map(move |(number, result)| trial_body(run, started_unix_ns, number, result))
    }
}

/// Types of the values of an update.
const UPDATED: [&str; 10] =
    ["BIGINT", "BIGINT", "TEXT", "BIGINT", "BIGINT", "BIGINT", "BIGINT", "TEXT", "TEXT", "TEXT"];

/// Returns the summary of a run that ended.
fn summary(record: &Record) -> RunSummary {
    match record.plan.goal {
        // The same as a replay, without its cost.
        Goal::Sweep(_) => RunSummary::of(&record.results),
        Goal::Curve(_) | Goal::Ladder(_) | Goal::Device(_) => linerate_method::summary(record),
    }
}

/// Reads the runs of parts. Runs that are not in the store are left out.
fn stored_runs<'a>(
    session: &mut dyn Session,
    parts: &[IngestPart<'a>],
) -> Result<BTreeMap<&'a RecordId, RunChange<'a>>, StoreError> {
    let ids: BTreeMap<&str, &RecordId> = parts.iter().map(|part| (part.record().0.as_str(), part.record())).collect();
    let mut changes = BTreeMap::new();
    for names in ids.keys().copied().collect::<Vec<_>>().chunks(MOST_ROWS) {
        let mut values = Values::default();
        let list = values.list(names.iter().copied());
        let sql = format!("SELECT id, number, started_unix_ns, attempts, state FROM run WHERE id IN {list}");
        let rows = session.rows(&sql, values.all(), |row| {
            let stored = StoredRun {
                number: row.integer(1)?,
                started_unix_ns: row.instant(2)?,
                attempts: row.count(3)?,
                state: row.text(4)?.to_owned(),
            };
            Ok((row.text(0)?.to_owned(), stored))
        })?;
        for (name, stored) in rows {
            if let Some(id) = ids.get(name.as_str()) {
                changes.insert(*id, RunChange { stored: Some(stored), ..RunChange::default() });
            }
        }
    }
    Ok(changes)
}

/// Writes changes. Returns the names of the runs that were written; another program was faster with the others.
fn write<'a>(
    session: &mut dyn Session,
    changes: &BTreeMap<&'a RecordId, RunChange<'_>>,
) -> Result<HashSet<&'a RecordId>, StoreError> {
    // In the order of their names, so that two programs never wait for each other.
    let new: Vec<NewRun> = changes.values().filter_map(RunChange::new_run).collect();
    let numbers = insert_runs(session, &new.iter().collect::<Vec<_>>())?;
    let updated = update_runs(session, changes.values().filter_map(RunChange::update).collect())?;
    let mut written = HashSet::new();
    let mut trials = Vec::new();
    let mut found = Vec::new();
    let mut finished = Vec::new();
    for (id, change) in changes {
        let number = match &change.stored {
            Some(stored) => updated.get(&stored.number),
            None => numbers.get(*id),
        };
        let Some(&number) = number else { continue };
        written.insert(*id);
        trials.extend(change.trial_bodies(number));
        let Some((record, ending)) = change.end else { continue };
        let values = vec![body::found(record).into()];
        found.push(Body { run: number, started_unix_ns: change.started_unix_ns(), values });
        if ending == Ending::Finished {
            finished.push(FinishedRun { number, pair: PairKey::of(record) });
        }
    }
    session.insert_bodies(BodyTable::Trial, &trials)?;
    // A run that counted as killed may have findings.
    let before: Vec<i64> = found.iter().map(|found| found.run).filter(|run| updated.contains(run)).collect();
    for numbers in before.chunks(MOST_ROWS) {
        let mut values = Values::default();
        let list = values.list(numbers.iter().copied());
        session.execute(&format!("DELETE FROM found WHERE run IN {list}"), values.all())?;
    }
    session.insert_bodies(BodyTable::Found, &found)?;
    finish(session, &finished)?;
    Ok(written)
}

/// Updates runs that have begun in the store. Returns their numbers, without those that another program changed since they were read.
fn update_runs(session: &mut dyn Session, rows: Vec<Vec<SqlValue>>) -> Result<HashSet<i64>, StoreError> {
    let head = "UPDATE run SET state = new.column3, changed_unix_ns = new.column4, results = new.column5,
                trials = run.trials + new.column6, attempts = run.attempts + new.column7,
                headline = new.column8, verdict = new.column9, limit_name = new.column10 FROM (";
    // Two programs may store the same part at once: the row admits one of them.
    let tail =
        ") AS new WHERE run.number = new.column1 AND run.attempts = new.column2 AND run.state IN ('running', 'killed')
                RETURNING run.number";
    let returned = update_rows(session, head, &UPDATED, rows, tail)?;
    let numbers: Result<HashSet<i64>, _> = returned.iter().map(|row| row.integer(0)).collect();
    numbers.map_err(|column| session.unexpected(column))
}
