//! The result of a pair that a record is.

use super::test_name::test_name;
use crate::search_text;
use linerate_model::{Headline, HeadlineVerdict, Path, Record, RecordId, Tuning};
use serde::Serialize;

/// Longest name of a host, in bytes. Names are keys of indexes.
const LONGEST_HOST: usize = 255;

/// A pair of hosts and a test.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct PairKey {
    pub(crate) test: String,
    /// Host that opens the connections.
    pub(crate) from: String,
    /// Host that accepts them.
    pub(crate) to: String,
}

impl PairKey {
    /// Returns the pair that `record` measured. Returns `None` if the record has no path or several, or is a tester limit or
    /// a tuning.
    pub(crate) fn of(record: &Record) -> Option<Self> {
        if record.plan.is_calibration() || record.plan.tuning == Some(Tuning::Candidates) {
            return None;
        }
        let mut paths = record.plan.cells().iter().flat_map(|cell| cell.paths());
        let path: &Path = paths.next()?;
        if paths.any(|other| other != path) {
            return None;
        }
        let from = path.client.0.as_str();
        let to = path.server.name().0.as_str();
        if from.len() > LONGEST_HOST || to.len() > LONGEST_HOST {
            return None;
        }
        let test = test_name(&search_text::kind_of(record), &record.command, [from, to]);
        Some(Self { test, from: from.to_owned(), to: to.to_owned() })
    }
}

/// A result of a pair, as it is written.
#[derive(Debug, Clone)]
pub(crate) struct PairResult {
    pub(crate) pair: PairKey,
    pub(crate) record: RecordId,
    pub(crate) started_unix_ns: u64,
    pub(crate) headline: Headline,
    pub(crate) verdict: Option<HeadlineVerdict>,
    /// Whether the value differs from that of the run before.
    pub(crate) changed: bool,
    pub(crate) value_before: Option<f64>,
}

impl PairResult {
    /// Returns the value as a figure of which more is worse.
    pub(crate) fn badness(&self) -> f64 {
        badness(self.headline.value, self.headline.unit.more_is_better())
    }

    /// Returns the hour of the result, counted from 1970.
    pub(crate) fn hour(&self) -> i64 {
        hour_of(self.started_unix_ns)
    }
}

/// Returns a value as a figure of which more is worse.
pub(super) fn badness(value: f64, more_is_better: bool) -> f64 {
    if more_is_better { -value } else { value }
}

/// Returns the hour of a time, counted from 1970.
pub(super) fn hour_of(unix_ns: u64) -> i64 {
    const HOUR_NS: u64 = 3_600_000_000_000;
    (unix_ns / HOUR_NS) as i64
}

/// Returns the start of an hour that is counted from 1970, in nanoseconds.
pub(super) fn hour_start(hour: i64) -> u64 {
    (hour as u64).saturating_mul(3_600_000_000_000)
}

/// Returns the name of an enum's variant in records.
pub(super) fn name_of(value: impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(name)) => name,
        other => unreachable!("a variant without fields is a string, not {other:?}"),
    }
}

/// Returns the variant of this name, if this version knows it.
pub(super) fn of_name<T: serde::de::DeserializeOwned>(name: &str) -> Option<T> {
    serde_json::from_value(serde_json::Value::String(name.to_owned())).ok()
}
