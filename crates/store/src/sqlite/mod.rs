//! Records in one SQLite file.

mod error;
mod locks;
mod schema;

use crate::StoreError;
use crate::alive::Sign;
use crate::backend::{Access, Backend, Body, BodyTable, RunLock, Session, SessionBody};
use crate::location::{make_file, make_folder};
use crate::sql::{SqlRow, SqlValue, UnexpectedColumn};
use error::store_error;
use linerate_model::RecordId;
use locks::FileLocks;
use rusqlite::types::{ToSqlOutput, Value, ValueRef};
use rusqlite::{Connection, ToSql, TransactionBehavior, params_from_iter};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// A store in a SQLite file.
pub(crate) struct SqliteBackend {
    path: PathBuf,
    connection: Mutex<Connection>,
    locks: FileLocks,
}

impl SqliteBackend {
    /// Opens the file at `path`. Creates it and its folder if they are missing.
    pub(crate) fn open(path: PathBuf) -> Result<Self, StoreError> {
        make_folder(&path)?;
        make_file(&path);
        let mut connection = Connection::open(&path).map_err(|error| store_error(&path, error))?;
        schema::set_up(&mut connection, &path)?;
        // Each shape of statement is compiled once.
        connection.set_prepared_statement_cache_capacity(64);
        let locks = FileLocks::of(&path);
        Ok(Self { path, connection: Mutex::new(connection), locks })
    }
}

impl Backend for SqliteBackend {
    fn transact(&self, access: Access, body: &mut SessionBody<'_>) -> Result<(), StoreError> {
        let failed = |error| store_error(&self.path, error);
        // A thread that panicked has rolled its change back: the connection is sound.
        let mut connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        let behavior = match access {
            Access::Read => {
                return body(&mut SqliteSession { connection: &connection, path: &self.path, locks: &self.locks });
            }
            Access::Snapshot => TransactionBehavior::Deferred,
            // The lock is taken at the beginning, where waiting for another program is safe.
            Access::Write => TransactionBehavior::Immediate,
        };
        let transaction = connection.transaction_with_behavior(behavior).map_err(failed)?;
        body(&mut SqliteSession { connection: &transaction, path: &self.path, locks: &self.locks })?;
        transaction.commit().map_err(failed)
    }

    fn file(&self) -> Option<&Path> {
        Some(&self.path)
    }

    /// Does nothing: all rows are deleted one by one.
    fn drop_old_bodies(&self, _unix_ns: u64) -> Result<(), StoreError> {
        Ok(())
    }
}

/// Statements on the file.
struct SqliteSession<'a> {
    connection: &'a Connection,
    path: &'a Path,
    locks: &'a FileLocks,
}

impl SqliteSession<'_> {
    fn failed(&self, error: rusqlite::Error) -> StoreError {
        store_error(self.path, error)
    }

    fn read(&self, sql: &str, values: &[SqlValue]) -> Result<Vec<SqlRow>, rusqlite::Error> {
        let mut statement = self.connection.prepare_cached(sql)?;
        let columns = statement.column_count();
        let mut rows = statement.query(params_from_iter(values))?;
        let mut read = Vec::new();
        while let Some(row) = rows.next()? {
            let values: Result<Vec<SqlValue>, _> = (0..columns).map(|column| row.get_ref(column)?.try_into()).collect();
            read.push(SqlRow(values?));
        }
        Ok(read)
    }
}

impl Session for SqliteSession<'_> {
    fn query(&mut self, sql: &str, values: &[SqlValue]) -> Result<Vec<SqlRow>, StoreError> {
        self.read(sql, values).map_err(|error| self.failed(error))
    }

    fn execute(&mut self, sql: &str, values: &[SqlValue]) -> Result<u64, StoreError> {
        let statement = self.connection.prepare_cached(sql);
        let changed = statement.and_then(|mut statement| statement.execute(params_from_iter(values)));
        changed.map(|rows| rows as u64).map_err(|error| self.failed(error))
    }

    fn insert_bodies(&mut self, table: BodyTable, bodies: &[Body]) -> Result<(), StoreError> {
        let columns = table.columns();
        let marks = vec!["?"; columns.len() + 1].join(", ");
        let sql = format!("INSERT INTO {} (run, {}) VALUES ({marks})", table.name(), columns.join(", "));
        let mut insert = self.connection.prepare_cached(&sql).map_err(|error| self.failed(error))?;
        for body in bodies {
            let run = SqlValue::Integer(body.run);
            let values = std::iter::once(&run).chain(&body.values);
            insert.execute(params_from_iter(values)).map_err(|error| self.failed(error))?;
        }
        Ok(())
    }

    fn lock_run(&mut self, number: i64, id: &RecordId) -> Result<RunLock, StoreError> {
        self.locks.take(number, id)
    }

    fn dead_runs(&mut self, signs: &[Sign]) -> Result<Vec<i64>, StoreError> {
        let mut dead = Vec::new();
        for sign in signs {
            if !self.locks.is_alive(sign)? {
                dead.push(sign.number);
            }
        }
        Ok(dead)
    }

    fn place(&self) -> String {
        self.locks.boot.clone()
    }

    fn is_repeated(&self) -> bool {
        false
    }

    fn unexpected(&self, column: UnexpectedColumn) -> StoreError {
        StoreError::unexpected(&self.path.display().to_string(), column)
    }
}

impl ToSql for SqlValue {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self {
            Self::Null => ToSqlOutput::Owned(Value::Null),
            Self::Integer(value) => ToSqlOutput::Owned(Value::Integer(*value)),
            Self::Real(value) => ToSqlOutput::Owned(Value::Real(*value)),
            Self::Text(value) => ToSqlOutput::Borrowed(ValueRef::Text(value.as_bytes())),
        })
    }
}

impl TryFrom<ValueRef<'_>> for SqlValue {
    type Error = rusqlite::Error;

    fn try_from(value: ValueRef<'_>) -> Result<Self, rusqlite::Error> {
        Ok(match value {
            ValueRef::Null => Self::Null,
            ValueRef::Integer(value) => Self::Integer(value),
            ValueRef::Real(value) => Self::Real(value),
            ValueRef::Text(value) => Self::Text(String::from_utf8_lossy(value).into_owned()),
            ValueRef::Blob(_) => return Err(rusqlite::Error::InvalidQuery),
        })
    }
}
