//! Records in a PostgreSQL database.
//!
//! A store has one connection, which a thread of its own drives. A lost connection is made again, and what ran on it is repeated for a
//! while. Bodies of records are partitioned by month.

mod connection;
mod error;
mod locks;
mod months;
mod password;
mod runtime;
mod schema;
mod session;
mod tls;
mod url;
mod value;
mod watch;

pub use url::{BadStoreUrl, PostgresUrl};

use crate::StoreError;
use crate::backend::{Access, Backend, BodyTable, Session as _, SessionBody};
use crate::sql::SqlRow;
use crate::tables::{FIRST_MIGRATED, FORMAT};
use connection::{Connection, Connector};
use error::Failure;
use locks::Locks;
use months::Month;
use session::{PostgresSession, Trouble};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, TryLockError};
use std::thread;
use std::time::{Duration, Instant};
use watch::Watch;

/// First half of the keys of advisory locks: "lnrt".
const LOCK_CLASS: i64 = 0x6c6e_7274;
/// Time for which a lost connection is made again.
const PATIENCE: Duration = Duration::from_secs(30);
/// First and longest pause between two attempts to connect.
const PAUSES: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(2)];
/// Number of times that a transaction is repeated because others were in its way.
const CONFLICTS: u32 = 20;

/// A store in a PostgreSQL database.
pub(crate) struct PostgresBackend {
    core: Arc<Core>,
    _watch: Watch,
}

/// Statements that belong together.
type PostgresBody<'a> = dyn FnMut(&mut PostgresSession<'_>) -> Result<(), StoreError> + 'a;

/// What the store and its locks share.
struct Core {
    connector: Connector,
    /// `None` after the connection was lost.
    connection: Mutex<Option<Connection>>,
    locks: Locks,
}

impl PostgresBackend {
    /// Connects to the database, and creates or migrates its tables.
    pub(crate) fn open(url: &PostgresUrl) -> Result<Self, StoreError> {
        let connector = Connector::new(url)?;
        let connection = connector.connect()?;
        let core = Arc::new(Core { connector, connection: Mutex::new(Some(connection)), locks: Locks::default() });
        let watch = Watch::start(&core)
            .map_err(|error| StoreError::Database { store: core.connector.store.clone(), source: Box::new(error) })?;
        let backend = Self { core, _watch: watch };
        backend.set_up()?;
        Ok(backend)
    }

    fn set_up(&self) -> Result<(), StoreError> {
        let mut found = None;
        self.core.run(Access::Read, &mut |session| {
            found = schema::format(session)?;
            Ok(())
        })?;
        let store = self.core.connector.store.clone();
        match found {
            Some(FORMAT) => return Ok(()),
            Some(found) if !(FIRST_MIGRATED..FORMAT).contains(&found) => {
                return Err(StoreError::OtherFormat { store, found, known: FORMAT });
            }
            _ => {}
        }
        let migrated = self.core.run(Access::Write, &mut |session| schema::migrate(session));
        migrated.map_err(|error| match (error, found) {
            (StoreError::NotWritable { reason, .. }, None) => StoreError::NoTables { store, reason },
            (StoreError::NotWritable { reason, .. }, Some(found)) => {
                StoreError::CannotMigrate { store, found, known: FORMAT, reason }
            }
            (error, _) => error,
        })
    }
}

impl Backend for PostgresBackend {
    fn transact(&self, access: Access, body: &mut SessionBody<'_>) -> Result<(), StoreError> {
        self.core.run(access, &mut |session| body(session))
    }

    fn file(&self) -> Option<&Path> {
        None
    }

    fn drop_old_bodies(&self, unix_ns: u64) -> Result<(), StoreError> {
        self.core.run(Access::Write, &mut |session| {
            let sql = "SELECT min(started_unix_ns) FROM run WHERE state = 'running'";
            let rows = session.query(sql, &[])?;
            let running = rows.first().map(|row| row.optional_integer(0)).transpose();
            let running = running.map_err(|column| session.unexpected(column))?.flatten().unwrap_or(i64::MAX);
            let limit = running.min(crate::sql::instant(unix_ns));
            for table in BodyTable::ALL {
                for (name, month) in partitions(session, table)? {
                    if month.next().start_unix_ns() <= limit {
                        session.script(&format!("DROP TABLE {name}"))?;
                    }
                }
            }
            Ok(())
        })
    }
}

/// Returns the partitions of a table with a month each.
fn partitions(session: &mut PostgresSession<'_>, table: BodyTable) -> Result<Vec<(String, Month)>, StoreError> {
    let sql = "SELECT child.relname::text FROM pg_inherits JOIN pg_class AS child ON child.oid = inhrelid
               WHERE inhparent = to_regclass(?1)";
    let rows = session.query(sql, &[table.name().into()])?;
    let name = |row: &SqlRow| row.text(0).map(str::to_owned);
    let names = rows.iter().map(name).collect::<Result<Vec<_>, _>>().map_err(|column| session.unexpected(column))?;
    let month = |name: &str| Month::of_suffix(name.strip_prefix(table.name())?.strip_prefix('_')?);
    Ok(names.into_iter().filter_map(|name| Some((name.clone(), month(&name)?))).collect())
}

impl Core {
    /// Runs `body` on the connection, again if the connection was lost or another transaction was in the way.
    fn run(self: &Arc<Self>, access: Access, body: &mut PostgresBody<'_>) -> Result<(), StoreError> {
        let mut guard = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        let result = self.repeat(&mut guard, access, body);
        self.unlock_released(&mut guard);
        drop(guard);
        // A lock may have been released since, by a thread that found the connection in use.
        self.try_unlock_released();
        result
    }

    fn repeat(
        self: &Arc<Self>,
        connection: &mut Option<Connection>,
        access: Access,
        body: &mut PostgresBody<'_>,
    ) -> Result<(), StoreError> {
        let start = Instant::now();
        let mut conflicts = 0;
        let mut repeated = false;
        let mut pause = PAUSES[0];
        loop {
            let failure = match self.attempt(connection, access, repeated, body) {
                Ok(()) => return Ok(()),
                Err(failure) => failure,
            };
            match failure {
                Failure::Final(error) => return Err(error),
                Failure::Conflict if conflicts >= CONFLICTS => {
                    return Err(StoreError::Locked { store: self.connector.store.clone() });
                }
                Failure::Conflict => conflicts += 1,
                Failure::Lost(reason) => {
                    *connection = None;
                    repeated = true;
                    if start.elapsed() >= PATIENCE {
                        return Err(StoreError::Unreachable { store: self.connector.store.clone(), reason });
                    }
                    thread::sleep(pause);
                    pause = (pause * 2).min(PAUSES[1]);
                }
            }
        }
    }

    /// Runs `body` once, on a new connection if there is none.
    fn attempt(
        self: &Arc<Self>,
        slot: &mut Option<Connection>,
        access: Access,
        repeated: bool,
        body: &mut PostgresBody<'_>,
    ) -> Result<(), Failure> {
        // Closed while nothing ran, or left within a transaction by a panic.
        if slot.as_ref().is_some_and(|connection| connection.is_closed() || connection.in_transaction) {
            *slot = None;
        }
        let connection = match slot {
            Some(connection) => connection,
            None => self.connect_again(slot)?,
        };
        let begin = match access {
            Access::Read => None,
            Access::Snapshot => Some("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"),
            Access::Write => Some("BEGIN"),
        };
        if let Some(begin) = begin {
            connection.script(begin)?;
            connection.in_transaction = true;
        }
        let mut session = PostgresSession::new(self, connection, repeated);
        let result = body(&mut session);
        let result = match (result, session.into_trouble()) {
            (_, Some(Trouble::Failed(failure))) => Err(failure),
            (_, Some(Trouble::Partition(month))) => {
                connection.script("ROLLBACK")?;
                connection.in_transaction = false;
                connection.create_partitions(month)?;
                // The body is run again.
                return Err(Failure::Conflict);
            }
            (Err(error), None) => Err(Failure::Final(error)),
            (Ok(()), None) => Ok(()),
        };
        if begin.is_some() && !matches!(result, Err(Failure::Lost(_))) {
            connection.script(if result.is_ok() { "COMMIT" } else { "ROLLBACK" })?;
            connection.in_transaction = false;
        }
        result
    }

    /// Connects again, and takes the locks of this program's runs again.
    fn connect_again<'a>(&self, slot: &'a mut Option<Connection>) -> Result<&'a mut Connection, Failure> {
        let mut connection = self.connector.try_connect()?;
        self.locks.take_again(&mut connection)?;
        Ok(slot.insert(connection))
    }

    /// Connects again if runs are measured and the connection is lost, unless it is in use.
    fn connect_for_locks(&self) {
        if !self.locks.holds_any() {
            return;
        }
        // Whoever uses the connection connects again by itself.
        let Ok(mut guard) = self.connection.try_lock() else { return };
        if guard.as_ref().is_none_or(Connection::is_closed) {
            // If this fails, the next look tries again.
            let _ = self.connect_again(&mut guard);
        }
    }

    /// Ends the advisory locks that were released. They end with the connection if there is none.
    fn unlock_released(&self, slot: &mut Option<Connection>) {
        for number in self.locks.take_released() {
            if let Some(connection) = slot.as_mut() {
                // A connection that fails is made again by the next statement, and has no lock of its own then.
                let _ = connection.unlock(number);
            }
        }
    }

    /// Ends the advisory locks that were released, unless the connection is in use. Then its user ends them.
    fn try_unlock_released(&self) {
        while self.locks.has_released() {
            let mut guard = match self.connection.try_lock() {
                Ok(guard) => guard,
                Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
                Err(TryLockError::WouldBlock) => return,
            };
            self.unlock_released(&mut guard);
        }
    }
}
