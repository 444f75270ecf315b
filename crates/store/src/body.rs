//! How a record is cut into the parts that are stored apart: what it begins with, its trials, and what was found.

use crate::StoreError;
use crate::backend::Session;
use linerate_model::{Caveat, Measurement, Outcome, Record, RecordId, SCHEMA, TrialResult};
use serde::Serialize;
use serde_json::{Map, Value};

/// The fields that are written when a run ends; until then they are as the run began with them.
const FOUND: [&str; 3] = ["results", "outcome", "caveats"];

/// Fields of [`FOUND`].
#[derive(Serialize)]
struct Findings<'a> {
    results: &'a [Measurement],
    outcome: &'a Outcome,
    caveats: &'a [Caveat],
}

/// The record without its trials.
pub(crate) fn plan(record: &Record) -> String {
    if record.trials.is_empty() {
        return json(record);
    }
    json(&Record { trials: Vec::new(), ..record.clone() })
}

/// What was found.
pub(crate) fn found(record: &Record) -> String {
    json(&Findings { results: &record.results, outcome: &record.outcome, caveats: &record.caveats })
}

/// A value as JSON text.
pub(crate) fn json<T: Serialize>(value: &T) -> String {
    serde_json::to_string(value).expect("no map in it has keys that are no text")
}

/// Reason why the parts of a record cannot be joined.
#[derive(Debug)]
pub(crate) enum UnreadableRecord {
    /// A program with another format wrote the record.
    OtherFormat { format: String, version: String },
    /// Some part is not valid.
    Json(serde_json::Error),
}

impl From<serde_json::Error> for UnreadableRecord {
    fn from(error: serde_json::Error) -> Self {
        Self::Json(error)
    }
}

/// Stored parts of a record.
pub(crate) struct Parts {
    plan: String,
    trials: Vec<String>,
    /// `None` until the run ends.
    pub(crate) found: Option<String>,
}

impl Parts {
    /// Reads the parts of the record `id`. Returns `None` if there is no such record.
    pub(crate) fn read(session: &mut dyn Session, id: &RecordId) -> Result<Option<Self>, StoreError> {
        let sql = "SELECT number, plan.body, found.body FROM run JOIN plan ON plan.run = number
             LEFT JOIN found ON found.run = number WHERE id = ?1";
        let parts = session.row(sql, &[id.0.as_str().into()], |row| {
            Ok((row.integer(0)?, row.text(1)?.to_owned(), row.optional_text(2)?.map(str::to_owned)))
        })?;
        let Some((run, plan, found)) = parts else { return Ok(None) };
        let sql = "SELECT body FROM trial WHERE run = ?1 ORDER BY number";
        let trials = session.rows(sql, &[run.into()], |row| Ok(row.text(0)?.to_owned()))?;
        Ok(Some(Self { plan, trials, found }))
    }

    /// Joins the parts to a record. Before the run ends, the record is as the run began with it, with its trials.
    pub(crate) fn join(&self) -> Result<Record, UnreadableRecord> {
        let mut whole: Map<String, Value> = serde_json::from_str(&self.plan)?;
        if let Some(found) = &self.found {
            // A field that is left out where nothing was found is not the one that the run began with.
            FOUND.iter().for_each(|name| drop(whole.remove(*name)));
            whole.extend(serde_json::from_str::<Map<String, Value>>(found)?);
        }
        let field = |name: &str| whole.get(name).and_then(Value::as_str);
        if let Some(format) = field("schema").filter(|format| *format != SCHEMA) {
            let version = field("version").filter(|version| !version.is_empty()).unwrap_or("of another version");
            return Err(UnreadableRecord::OtherFormat { format: format.to_owned(), version: version.to_owned() });
        }
        let mut record = Record::from_json(&Value::Object(whole).to_string())?;
        for trial in &self.trials {
            record.trials.push(TrialResult::from_json(trial)?);
        }
        Ok(record)
    }
}
