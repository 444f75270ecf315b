//! Results of a pair over time.

use super::result::{hour_start, of_name};
use crate::sql::{SqlRow, UnexpectedColumn, instant};
use crate::{Store, StoreError};
use linerate_model::{Confidence, Limit, MeasureUnit, Quantity, RecordId};

/// Results of a pair at one time: one run, or the sum of an hour whose runs are no longer stored.
#[derive(Debug, Clone, PartialEq)]
pub struct PairPoint {
    /// Start of the run or of the hour, in nanoseconds since 1970.
    pub unix_ns: u64,
    /// Value of the run, or the mean of the hour.
    pub value: f64,
    /// Lowest value.
    pub low: f64,
    /// Highest value.
    pub high: f64,
    /// Number of results.
    pub results: u32,
    /// Number of results that differ from the one before.
    pub changes: u32,
    pub unit: Option<MeasureUnit>,
    /// Share of the link, 0 to 1. `None` for an hour, and if no link speed is known.
    pub link_share: Option<f64>,
    /// Limit of the run.
    pub limit: Option<Limit>,
    /// Confidence in the limit.
    pub confidence: Option<Confidence>,
    /// Record of the run. `None` for an hour.
    pub record: Option<RecordId>,
}

/// A result that differs from the one before of the same pair and test.
#[derive(Debug, Clone, PartialEq)]
pub struct PairChange {
    pub test: String,
    pub from: String,
    pub to: String,
    /// Start of the run, in nanoseconds since 1970.
    pub started_unix_ns: u64,
    pub value: f64,
    /// Value of the run before.
    pub value_before: Option<f64>,
    pub unit: MeasureUnit,
    pub quantity: Quantity,
    pub link_share: Option<f64>,
    pub limit: Option<Limit>,
    pub confidence: Option<Confidence>,
    pub record: RecordId,
}

impl Store {
    /// Returns the results of a pair since `since_unix_ns`, oldest first: the newest `limit` of them. Hours whose runs are no longer
    /// stored are one point each.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn pair_history(
        &self,
        from: &str,
        to: &str,
        test: &str,
        since_unix_ns: u64,
        limit: usize,
    ) -> Result<Vec<PairPoint>, StoreError> {
        let most = i64::try_from(limit).unwrap_or(i64::MAX);
        let mut points = self.snapshot(|session| {
            let since = instant(since_unix_ns).into();
            let values = [test.into(), from.into(), to.into(), since, most.into()];
            let mut points = session.rows(RESULTS, &values, read_result)?;
            // The hour of the oldest stored run may have had more runs, but the run itself is exact.
            let oldest = points.last().map_or(u64::MAX, |point| point.unix_ns);
            if points.len() < limit {
                let before = oldest / hour_start(1);
                let since = since_unix_ns / hour_start(1);
                let rest = i64::try_from(limit - points.len()).unwrap_or(i64::MAX);
                let hours =
                    [test.into(), from.into(), to.into(), instant(since).into(), instant(before).into(), rest.into()];
                points.extend(session.rows(HOURS, &hours, read_hour)?);
            }
            Ok(points)
        })?;
        points.reverse();
        Ok(points)
    }

    /// Returns the results that differ from the one before and began at `since_unix_ns` or later, newest first, at most `limit`.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn changed_since(&self, since_unix_ns: u64, limit: usize) -> Result<Vec<PairChange>, StoreError> {
        let most = i64::try_from(limit).unwrap_or(i64::MAX);
        let sql = "SELECT test, from_host, to_host, started_unix_ns, value, value_before, unit, quantity, link_share, limit_name, \
                          confidence, record
                   FROM pair_result WHERE changed = 1 AND started_unix_ns >= ?1 ORDER BY started_unix_ns DESC LIMIT ?2";
        let values = [instant(since_unix_ns).into(), most.into()];
        let changes = self.read(|session| session.rows(sql, &values, read_change))?;
        // A unit or a quantity of a later version has no name here.
        Ok(changes.into_iter().flatten().collect())
    }
}

const RESULTS: &str = "
    SELECT started_unix_ns, value, changed, unit, link_share, limit_name, confidence, record FROM pair_result
    WHERE test = ?1 AND from_host = ?2 AND to_host = ?3 AND started_unix_ns >= ?4 ORDER BY started_unix_ns DESC LIMIT ?5";

const HOURS: &str = "
    SELECT hour, total / results, lowest, highest, results, changes, unit FROM pair_hour
    WHERE test = ?1 AND from_host = ?2 AND to_host = ?3 AND hour >= ?4 AND hour < ?5 ORDER BY hour DESC LIMIT ?6";

fn read_result(row: &SqlRow) -> Result<PairPoint, UnexpectedColumn> {
    let value = row.real(1)?;
    Ok(PairPoint {
        unix_ns: row.instant(0)?,
        value,
        low: value,
        high: value,
        results: 1,
        changes: row.count(2)?,
        unit: of_name(row.text(3)?),
        link_share: row.optional_real(4)?,
        limit: row.optional_text(5)?.and_then(of_name),
        confidence: row.optional_text(6)?.and_then(of_name),
        record: Some(RecordId(row.text(7)?.to_owned())),
    })
}

fn read_hour(row: &SqlRow) -> Result<PairPoint, UnexpectedColumn> {
    Ok(PairPoint {
        unix_ns: hour_start(row.integer(0)?),
        value: row.real(1)?,
        low: row.real(2)?,
        high: row.real(3)?,
        results: row.count(4)?,
        // An earlier mark may have been taken back after its run was deleted.
        changes: u32::try_from(row.integer(5)?).unwrap_or_default(),
        unit: of_name(row.text(6)?),
        link_share: None,
        limit: None,
        confidence: None,
        record: None,
    })
}

fn read_change(row: &SqlRow) -> Result<Option<PairChange>, UnexpectedColumn> {
    let (Some(unit), Some(quantity)) = (of_name(row.text(6)?), of_name(row.text(7)?)) else { return Ok(None) };
    Ok(Some(PairChange {
        test: row.text(0)?.to_owned(),
        from: row.text(1)?.to_owned(),
        to: row.text(2)?.to_owned(),
        started_unix_ns: row.instant(3)?,
        value: row.real(4)?,
        value_before: row.optional_real(5)?,
        unit,
        quantity,
        link_share: row.optional_real(8)?,
        limit: row.optional_text(9)?.and_then(of_name),
        confidence: row.optional_text(10)?.and_then(of_name),
        record: RecordId(row.text(11)?.to_owned()),
    }))
}
