//! A connection to the server.

use super::error::{Failure, failure, message};
use super::months::Month;
use super::runtime::RuntimeThread;
use super::tls::Tls;
use super::url::PostgresUrl;
use super::value::{sql_row, with_dollars};
use super::{LOCK_CLASS, password};
use crate::StoreError;
use crate::backend::BodyTable;
use crate::sql::{SqlRow, SqlValue};
use futures_util::SinkExt as _;
use std::collections::{BTreeSet, HashMap};
use std::hash::{BuildHasher as _, RandomState};
use std::io::Cursor;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Config, Error, Statement};

/// Time for which one address is tried.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Time after which an idle connection is probed, and after which data without an answer means that it is lost.
const SILENCE: Duration = Duration::from_secs(20);
/// Compresses what this connection writes with LZ4, where the server has it (PostgreSQL 14): its own compression takes most of the time
/// of storing a record.
const FAST_COMPRESSION: &str = "SELECT set_config(name, 'lz4', false) FROM pg_settings
    WHERE name = 'default_toast_compression' AND 'lz4' = ANY (enumvals)";
/// Most statements that are kept prepared.
const MOST_STATEMENTS: usize = 256;

/// Makes connections of one store.
pub(super) struct Connector {
    /// Name of the store in messages.
    pub(super) store: String,
    /// Name of this store among the server's connections.
    pub(super) application: String,
    config: Config,
    tls: Tls,
    runtime: Arc<RuntimeThread>,
}

impl Connector {
    pub(super) fn new(url: &PostgresUrl) -> Result<Self, StoreError> {
        let store = url.to_string();
        let tls = Tls::of(url).map_err(|reason| StoreError::Unreachable { store: store.clone(), reason })?;
        let runtime = RuntimeThread::start()
            .map_err(|error| StoreError::Database { store: store.clone(), source: Box::new(error) })?;
        let application = format!("linerate-{:016x}", RandomState::new().hash_one(std::process::id()));
        let mut config = (*url.config).clone();
        config.application_name(&application).keepalives_idle(SILENCE).tcp_user_timeout(SILENCE);
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT_TIMEOUT);
        }
        if let Some(password) = password::find(url) {
            config.password(password);
        }
        Ok(Self { store, application, config, tls, runtime: Arc::new(runtime) })
    }

    /// Connects to the server.
    pub(super) fn connect(&self) -> Result<Connection, StoreError> {
        self.try_connect().map_err(|failure| match failure {
            Failure::Lost(reason) => StoreError::Unreachable { store: self.store.clone(), reason },
            Failure::Conflict => StoreError::Locked { store: self.store.clone() },
            Failure::Final(error) => error,
        })
    }

    /// Connects to the server once.
    pub(super) fn try_connect(&self) -> Result<Connection, Failure> {
        let config = self.config.clone();
        let tls = self.tls.clone();
        let connected = self.runtime.run(async move { config.connect(tls).await });
        let connected = connected.ok_or_else(panicked)?;
        let (client, driver) = connected.map_err(|error| self.refused(error))?;
        self.runtime.spawn(async move {
            // An error of the connection is that of the statement that waits for it.
            let _ = driver.await;
        });
        let connection = Connection {
            store: self.store.clone(),
            application: self.application.clone(),
            runtime: self.runtime.clone(),
            client: Arc::new(client),
            statements: HashMap::new(),
            months: BTreeSet::new(),
            in_transaction: false,
        };
        connection.script(FAST_COMPRESSION)?;
        Ok(connection)
    }

    /// Returns the meaning of an error before the connection was made.
    fn refused(&self, error: Error) -> Failure {
        let store = self.store.clone();
        let reason = message(&error);
        if error.code().is_some() {
            return failure(&self.store, error);
        }
        if self.config.get_password().is_none() && reason.contains("password missing") {
            return Failure::Final(StoreError::LoginRefused { store, reason: "it asks for a password".to_owned() });
        }
        Failure::Lost(reason)
    }
}

/// Returns the failure of a future that panicked: its connection is of no more use.
fn panicked() -> Failure {
    Failure::Lost("the thread of the connection failed".to_owned())
}

/// A connection, and what it knows of the database.
pub(super) struct Connection {
    pub(super) store: String,
    pub(super) application: String,
    runtime: Arc<RuntimeThread>,
    client: Arc<Client>,
    statements: HashMap<String, Statement>,
    /// Months that have partitions.
    months: BTreeSet<Month>,
    pub(super) in_transaction: bool,
}

impl Connection {
    pub(super) fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    /// Runs statements without values.
    pub(super) fn script(&self, sql: &str) -> Result<(), Failure> {
        let client = self.client.clone();
        let sql = sql.to_owned();
        self.answer(self.runtime.run(async move { client.batch_execute(&sql).await }))
    }

    /// Runs a statement and returns its rows.
    pub(super) fn query(&mut self, sql: &str, values: &[SqlValue]) -> Result<Vec<SqlRow>, Failure> {
        let statement = self.prepared(sql)?;
        let client = self.client.clone();
        let values = values.to_vec();
        let rows = self.runtime.run(async move {
            let rows = client.query(&statement, &parameters(&values)).await?;
            rows.iter().map(sql_row).collect::<Result<Vec<_>, _>>()
        });
        self.answer(rows)
    }

    /// Runs a statement and returns the number of rows that it changed.
    pub(super) fn execute(&mut self, sql: &str, values: &[SqlValue]) -> Result<u64, Failure> {
        let statement = self.prepared(sql)?;
        let client = self.client.clone();
        let values = values.to_vec();
        let changed = self.runtime.run(async move { client.execute(&statement, &parameters(&values)).await });
        self.answer(changed)
    }

    /// Writes rows in the text format of COPY.
    pub(super) fn copy(&mut self, sql: &str, text: Vec<u8>) -> Result<(), Failure> {
        let statement = self.prepared(sql)?;
        let client = self.client.clone();
        let copied = self.runtime.run(async move {
            let mut sink = pin!(client.copy_in(&statement).await?);
            sink.send(Cursor::new(text)).await?;
            sink.finish().await.map(drop)
        });
        self.answer(copied)
    }

    fn prepared(&mut self, sql: &str) -> Result<Statement, Failure> {
        if let Some(statement) = self.statements.get(sql) {
            return Ok(statement.clone());
        }
        let client = self.client.clone();
        let text = with_dollars(sql);
        let statement = self.answer(self.runtime.run(async move { client.prepare(&text).await }))?;
        if self.statements.len() >= MOST_STATEMENTS {
            self.statements.clear();
        }
        // A search is planned for its words: common ones are soon found in the order of the list, rare ones by their index.
        if !sql.contains(" LIKE ") {
            self.statements.insert(sql.to_owned(), statement.clone());
        }
        Ok(statement)
    }

    fn answer<T>(&self, result: Option<Result<T, Error>>) -> Result<T, Failure> {
        result.ok_or_else(panicked)?.map_err(|error| failure(&self.store, error))
    }
}

/// Partitions.
impl Connection {
    /// Returns whether the tables of bodies have partitions for a month.
    pub(super) fn has_partitions(&mut self, month: Month) -> Result<bool, Failure> {
        if self.months.contains(&month) {
            return Ok(true);
        }
        let last = BodyTable::ALL[BodyTable::ALL.len() - 1].name();
        let name = format!("{last}_{}", month.suffix());
        let rows = self.query("SELECT to_regclass(?1) IS NOT NULL", &[name.into()])?;
        let exists = rows.first().is_some_and(|row| row.flag(0) == Ok(true));
        if exists {
            self.months.insert(month);
        }
        Ok(exists)
    }

    /// Creates the partitions for a month, in a transaction of its own.
    pub(super) fn create_partitions(&mut self, month: Month) -> Result<(), Failure> {
        let mut sql = format!("BEGIN; SELECT pg_advisory_xact_lock({LOCK_CLASS}, 0);");
        for table in BodyTable::ALL {
            let name = table.name();
            sql += &format!(
                "CREATE TABLE IF NOT EXISTS {name}_{} PARTITION OF {name} FOR VALUES FROM ({}) TO ({});",
                month.suffix(),
                month.start_unix_ns(),
                month.next().start_unix_ns()
            );
        }
        self.in_transaction = true;
        let created = self.script(&(sql + "COMMIT"));
        if created.is_err() {
            self.script("ROLLBACK")?;
        }
        self.in_transaction = false;
        created
    }
}

/// Advisory locks.
impl Connection {
    /// Takes the lock of a run. Returns `false` if another connection holds it.
    pub(super) fn try_lock(&mut self, number: i64) -> Result<bool, Failure> {
        let key = lock_key(number);
        let rows = self.query("SELECT pg_try_advisory_lock(?1, ?2)", &[LOCK_CLASS.into(), key.into()])?;
        Ok(rows.first().is_some_and(|row| row.flag(0) == Ok(true)))
    }

    pub(super) fn unlock(&mut self, number: i64) -> Result<(), Failure> {
        let key = lock_key(number);
        self.query("SELECT pg_advisory_unlock(?1, ?2)", &[LOCK_CLASS.into(), key.into()]).map(drop)
    }

    /// Ends the connection that this one replaces, if the server still has it.
    pub(super) fn end_predecessor(&mut self) -> Result<(), Failure> {
        let sql = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = ?1 AND pid <> pg_backend_pid()";
        let application = self.application.as_str().into();
        self.query(sql, &[application]).map(drop)
    }
}

/// Returns the second half of the key of a run's lock.
pub(super) fn lock_key(number: i64) -> i64 {
    number & i64::from(i32::MAX)
}

fn parameters(values: &[SqlValue]) -> Vec<&(dyn ToSql + Sync)> {
    values.iter().map(|value| value as &(dyn ToSql + Sync)).collect()
}
