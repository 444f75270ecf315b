//! Statements on a connection.

use super::connection::{Connection, lock_key};
use super::error::Failure;
use super::locks::AdvisoryLock;
use super::months::Month;
use super::value::copy_text;
use super::{Core, LOCK_CLASS};
use crate::StoreError;
use crate::alive::{FLEET, Sign, now_unix_ns};
use crate::backend::{Body, BodyTable, RunLock, Session};
use crate::sql::{SqlRow, SqlValue, UnexpectedColumn};
use linerate_model::RecordId;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Time after the start of the server for which runs without a lock count as alive: their programs connect again.
const RECONNECT_S: f64 = 60.0;

/// Why statements did not get to their end, apart from errors that the caller sees.
pub(super) enum Trouble {
    /// The connection is lost, or another transaction was in the way.
    Failed(Failure),
    /// Rows belong to a month that has no partitions yet.
    Partition(Month),
}

/// Statements on the connection of a store.
pub(super) struct PostgresSession<'a> {
    core: &'a Arc<Core>,
    connection: &'a mut Connection,
    repeated: bool,
    trouble: Option<Trouble>,
}

impl<'a> PostgresSession<'a> {
    pub(super) fn new(core: &'a Arc<Core>, connection: &'a mut Connection, repeated: bool) -> Self {
        Self { core, connection, repeated, trouble: None }
    }

    pub(super) fn into_trouble(self) -> Option<Trouble> {
        self.trouble
    }

    /// Runs statements without values.
    pub(super) fn script(&mut self, sql: &str) -> Result<(), StoreError> {
        let result = self.connection.script(sql);
        self.check(result)
    }

    /// Returns the error of a failure, and keeps those that a repetition may mend.
    fn check<T>(&mut self, result: Result<T, Failure>) -> Result<T, StoreError> {
        let store = self.connection.store.clone();
        result.map_err(|failure| match failure {
            Failure::Final(error) => error,
            Failure::Lost(reason) => {
                self.trouble = Some(Trouble::Failed(Failure::Lost(reason.clone())));
                StoreError::Unreachable { store, reason }
            }
            Failure::Conflict => {
                self.trouble = Some(Trouble::Failed(Failure::Conflict));
                StoreError::Locked { store }
            }
        })
    }

    /// Returns whether the server started just now, and after a run was written to: the program that measures it connects again.
    fn may_reconnect(&mut self, sign: &Sign) -> Result<bool, StoreError> {
        let sql = "SELECT extract(epoch FROM now() - pg_postmaster_start_time())::float8 < ?1
                          AND extract(epoch FROM pg_postmaster_start_time())::float8 > ?2";
        let written_s = sign.changed_unix_ns as f64 / 1e9;
        let rows = self.query(sql, &[RECONNECT_S.into(), written_s.into()])?;
        Ok(rows.first().is_some_and(|row| row.flag(0) == Ok(true)))
    }

    /// Checks that the months of all rows have partitions.
    fn check_partitions(&mut self, bodies: &[Body]) -> Result<(), StoreError> {
        let months: BTreeSet<Month> = bodies.iter().filter_map(|body| Month::of(body.started_unix_ns)).collect();
        for month in months {
            let exists = self.connection.has_partitions(month);
            if !self.check(exists)? {
                self.trouble = Some(Trouble::Partition(month));
                return Err(StoreError::Locked { store: self.connection.store.clone() });
            }
        }
        Ok(())
    }
}

impl Session for PostgresSession<'_> {
    fn query(&mut self, sql: &str, values: &[SqlValue]) -> Result<Vec<SqlRow>, StoreError> {
        let rows = self.connection.query(sql, values);
        self.check(rows)
    }

    fn execute(&mut self, sql: &str, values: &[SqlValue]) -> Result<u64, StoreError> {
        let changed = self.connection.execute(sql, values);
        self.check(changed)
    }

    fn insert_bodies(&mut self, table: BodyTable, bodies: &[Body]) -> Result<(), StoreError> {
        if bodies.is_empty() {
            return Ok(());
        }
        self.check_partitions(bodies)?;
        let columns = table.columns().join(", ");
        let sql = format!("COPY {} (run, started_unix_ns, {columns}) FROM STDIN", table.name());
        let copied = self.connection.copy(&sql, copy_text(bodies));
        self.check(copied)
    }

    fn lock_run(&mut self, number: i64, id: &RecordId) -> Result<RunLock, StoreError> {
        // The server would admit the same connection twice.
        let taken = if self.core.locks.holds(number) { Ok(false) } else { self.connection.try_lock(number) };
        if self.check(taken)? {
            return Ok(RunLock::Server(Box::new(AdvisoryLock::new(self.core.clone(), number))));
        }
        Err(StoreError::Running { store: self.connection.store.clone(), id: id.clone() })
    }

    fn dead_runs(&mut self, signs: &[Sign]) -> Result<Vec<i64>, StoreError> {
        let sql = "SELECT objid::bigint FROM pg_locks
                   WHERE locktype = 'advisory' AND classid::bigint = ?1 AND objsubid = 2 AND granted
                         AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
        let rows = self.query(sql, &[LOCK_CLASS.into()])?;
        let keys: Result<BTreeSet<i64>, _> = rows.iter().map(|row| row.integer(0)).collect();
        let locked = keys.map_err(|column| self.unexpected(column))?;
        let now = now_unix_ns();
        let mut dead = Vec::new();
        for sign in signs {
            let is_alive = if sign.locked {
                locked.contains(&lock_key(sign.number)) || self.may_reconnect(sign)?
            } else {
                sign.is_alive_without_lock(FLEET, now)
            };
            if !is_alive {
                dead.push(sign.number);
            }
        }
        Ok(dead)
    }

    fn place(&self) -> String {
        self.connection.application.clone()
    }

    fn is_repeated(&self) -> bool {
        self.repeated
    }

    fn unexpected(&self, column: UnexpectedColumn) -> StoreError {
        StoreError::unexpected(&self.connection.store, column)
    }
}
