//! The contract of a backend: SQLite and PostgreSQL run the same statements on the same tables.

use crate::StoreError;
use crate::alive::Sign;
use crate::sql::{SqlRow, SqlValue, UnexpectedColumn};
use linerate_model::RecordId;
use linerate_sys::byte_lock::ByteLock;
use std::path::Path;

/// A database with the tables of a store.
pub(crate) trait Backend: Send + Sync {
    /// Runs `body` on the connection. A write is done wholly or not at all.
    ///
    /// A backend that lost its connection runs `body` again, so `body` must do the same each time. It must also accept that an
    /// earlier call was committed without an answer.
    fn transact(&self, access: Access, body: &mut SessionBody<'_>) -> Result<(), StoreError>;

    /// Returns the file, if the store is one.
    fn file(&self) -> Option<&Path>;

    /// Deletes the bodies of the runs that began before `unix_ns`, as far as that is cheaper than row by row.
    fn drop_old_bodies(&self, unix_ns: u64) -> Result<(), StoreError>;
}

/// Statements that belong together.
pub(crate) type SessionBody<'a> = dyn FnMut(&mut dyn Session) -> Result<(), StoreError> + 'a;

/// Isolation that statements need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// One statement that reads.
    Read,
    /// Several statements that read the same state.
    Snapshot,
    /// Statements that write.
    Write,
}

/// Statements on one connection.
pub(crate) trait Session {
    /// Runs a statement. Its placeholders are `?1`, `?2` and so on.
    fn query(&mut self, sql: &str, values: &[SqlValue]) -> Result<Vec<SqlRow>, StoreError>;

    /// Runs a statement that returns no rows. Returns the number of rows that it changed.
    fn execute(&mut self, sql: &str, values: &[SqlValue]) -> Result<u64, StoreError>;

    /// Writes rows of bulky JSON. No row with the key of one of them may exist.
    fn insert_bodies(&mut self, table: BodyTable, bodies: &[Body]) -> Result<(), StoreError>;

    /// Marks run `number` as measured by this program until the lock is dropped, or the program ends.
    fn lock_run(&mut self, number: i64, id: &RecordId) -> Result<RunLock, StoreError>;

    /// Returns the numbers of the runs that no program measures any more.
    fn dead_runs(&mut self, signs: &[Sign]) -> Result<Vec<i64>, StoreError>;

    /// Returns the place where this program measures, as column `boot` keeps it.
    fn place(&self) -> String;

    /// Returns whether the body of this transaction ran before on a connection that was lost, and may have been committed.
    fn is_repeated(&self) -> bool;

    /// Returns the error for a row that this version cannot read.
    fn unexpected(&self, column: UnexpectedColumn) -> StoreError;
}

impl dyn Session + '_ {
    /// Runs a statement and reads its rows with `read`.
    pub(crate) fn rows<T>(
        &mut self,
        sql: &str,
        values: &[SqlValue],
        read: impl Fn(&SqlRow) -> Result<T, UnexpectedColumn>,
    ) -> Result<Vec<T>, StoreError> {
        let rows = self.query(sql, values)?;
        rows.iter().map(|row| read(row).map_err(|column| self.unexpected(column))).collect()
    }

    /// Runs a statement and reads its first row. Returns `None` if it has no rows.
    pub(crate) fn row<T>(
        &mut self,
        sql: &str,
        values: &[SqlValue],
        read: impl Fn(&SqlRow) -> Result<T, UnexpectedColumn>,
    ) -> Result<Option<T>, StoreError> {
        let rows = self.query(sql, values)?;
        rows.first().map(|row| read(row).map_err(|column| self.unexpected(column))).transpose()
    }
}

/// Lock of a run that is being measured. Other programs see it, and it ends with this program.
pub(crate) enum RunLock {
    /// The file system has no locks.
    Unavailable,
    /// A byte of a file next to a SQLite store.
    Byte(#[expect(dead_code, reason = "held until it is dropped")] ByteLock),
    /// A lock of a server, which may end with the connection.
    Server(Box<dyn ServerLock>),
}

/// Lock that a server keeps for a connection. Dropping it gives it back.
pub(crate) trait ServerLock: Send {
    /// Returns whether the lock was lost to another program.
    fn is_lost(&self) -> bool;
}

impl RunLock {
    /// Returns whether other programs can see the lock.
    pub(crate) fn is_visible(&self) -> bool {
        !matches!(self, Self::Unavailable)
    }

    /// Returns whether the lock was lost to another program.
    pub(crate) fn is_lost(&self) -> bool {
        match self {
            Self::Server(lock) => lock.is_lost(),
            Self::Unavailable | Self::Byte(_) => false,
        }
    }
}

/// Tables of bulky JSON. PostgreSQL partitions them by month.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BodyTable {
    /// What runs began with.
    Plan,
    /// Attempts.
    Trial,
    /// What runs found.
    Found,
}

impl BodyTable {
    pub(crate) const ALL: [Self; 3] = [Self::Plan, Self::Trial, Self::Found];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Plan => "plan",
            Self::Trial => "trial",
            Self::Found => "found",
        }
    }

    /// Returns the names of its columns after the number of the run.
    pub(crate) fn columns(self) -> &'static [&'static str] {
        match self {
            Self::Plan | Self::Found => &["body"],
            Self::Trial => &["number", "name", "attempt", "standing", "body"],
        }
    }
}

/// A row of a [`BodyTable`].
#[derive(Debug)]
pub(crate) struct Body {
    /// Number of the run.
    pub(crate) run: i64,
    /// Start of the run, which decides the partition.
    pub(crate) started_unix_ns: u64,
    /// Values of [`BodyTable::columns`].
    pub(crate) values: Vec<SqlValue>,
}
