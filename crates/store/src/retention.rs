//! Deletion of old records.

use crate::insert::MOST_ROWS;
use crate::sql::{SqlValue, instant};
use crate::{Store, StoreError, pairs, rows};
use std::time::Duration;

/// Ages from which records and sums are deleted. `None` keeps them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RetentionPolicy {
    /// Age of records.
    pub bodies: Option<Duration>,
    /// Age of sums by hour, of pairs and of sites.
    pub rollups: Option<Duration>,
}

/// Number of deleted rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Deleted {
    /// Number of records.
    pub records: u64,
    /// Number of hours of pairs and of sites.
    pub hours: u64,
}

impl Store {
    /// Deletes what is older than `policy` keeps, at the time `now_unix_ns`. The newest result of each pair stays, and so do the sums
    /// of hours whose records are deleted. Ages are counted in whole hours.
    ///
    /// # Errors
    /// The store cannot be written.
    pub fn retain(&self, policy: &RetentionPolicy, now_unix_ns: u64) -> Result<Deleted, StoreError> {
        let mut deleted = Deleted::default();
        if let Some(age) = policy.bodies {
            let limit = hours_before(now_unix_ns, age) * HOUR_NS;
            self.backend().drop_old_bodies(limit)?;
            deleted.records = self.delete_records(limit)?;
            self.change(|session| pairs::forget_old(session, limit))?;
        }
        if let Some(age) = policy.rollups {
            let limit: SqlValue = instant(hours_before(now_unix_ns, age)).into();
            deleted.hours = self.change(|session| {
                let values = std::slice::from_ref(&limit);
                let pairs = session.execute("DELETE FROM pair_hour WHERE hour < ?1", values)?;
                Ok(pairs + session.execute("DELETE FROM site_hour WHERE hour < ?1", values)?)
            })?;
        }
        Ok(deleted)
    }

    /// Deletes the records of ended runs that began before `unix_ns`, in steps, so that others can write meanwhile.
    fn delete_records(&self, unix_ns: u64) -> Result<u64, StoreError> {
        let mut deleted = 0;
        loop {
            let values = [instant(unix_ns).into(), (MOST_ROWS as i64).into()];
            let sql = "SELECT number FROM run WHERE started_unix_ns < ?1 AND state <> 'running' ORDER BY started_unix_ns LIMIT ?2";
            let step = self.change(|session| {
                let numbers = session.rows(sql, &values, |row| row.integer(0))?;
                rows::delete_runs(session, &numbers)?;
                Ok(numbers.len())
            })?;
            if step == 0 {
                return Ok(deleted);
            }
            deleted += step as u64;
        }
    }
}

const HOUR_NS: u64 = 3_600_000_000_000;

/// Returns the hour, counted from 1970, that lies `age` before a time.
fn hours_before(now_unix_ns: u64, age: Duration) -> u64 {
    let age = u64::try_from(age.as_nanos()).unwrap_or(u64::MAX);
    now_unix_ns.saturating_sub(age) / HOUR_NS
}
