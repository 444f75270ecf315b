//! Errors of PostgreSQL, in the user's terms.

use crate::StoreError;
use std::error::Error as _;
use tokio_postgres::Error;
use tokio_postgres::error::SqlState;

/// What an error of PostgreSQL means for the transaction.
#[derive(Debug)]
pub(super) enum Failure {
    /// The connection is gone or the server is going down: the same again on a new connection.
    Lost(String),
    /// Another transaction was in the way: the same again at once.
    Conflict,
    /// The same again would fail again.
    Final(StoreError),
}

/// Returns the meaning of an error of the store called `store`.
pub(super) fn failure(store: &str, error: Error) -> Failure {
    let store = store.to_owned();
    let reason = message(&error);
    let Some(code) = error.code() else {
        // Without an answer of the server: the network, or a closed connection.
        let lost = error.is_closed() || has_io_source(&error);
        if lost {
            return Failure::Lost(reason);
        }
        return Failure::Final(StoreError::Database { store, source: Box::new(error) });
    };
    let class = &code.code()[..2];
    if class == "08" || is_shutdown(code) {
        return Failure::Lost(reason);
    }
    if *code == SqlState::T_R_DEADLOCK_DETECTED || *code == SqlState::T_R_SERIALIZATION_FAILURE {
        return Failure::Conflict;
    }
    Failure::Final(if *code == SqlState::READ_ONLY_SQL_TRANSACTION {
        let remedy = "connect to a server that is not read-only, or as a role whose transactions may write";
        StoreError::NotWritable { store, reason, remedy }
    } else if *code == SqlState::INSUFFICIENT_PRIVILEGE {
        let remedy = "grant this role the right to read and write the tables";
        StoreError::NotWritable { store, reason, remedy }
    } else if *code == SqlState::DISK_FULL {
        StoreError::Full { store }
    } else if class == "28" {
        StoreError::LoginRefused { store, reason }
    } else if *code == SqlState::INVALID_CATALOG_NAME {
        StoreError::NoDatabase { store, reason }
    } else if *code == SqlState::TOO_MANY_CONNECTIONS {
        StoreError::Unreachable { store, reason }
    } else if class == "XX" {
        StoreError::Damaged { store, reason }
    } else {
        StoreError::Database { store, source: Box::new(error) }
    })
}

fn is_shutdown(code: &SqlState) -> bool {
    [SqlState::ADMIN_SHUTDOWN, SqlState::CRASH_SHUTDOWN, SqlState::CANNOT_CONNECT_NOW].contains(code)
}

fn has_io_source(error: &Error) -> bool {
    error.source().is_some_and(|source| source.is::<std::io::Error>())
}

/// Returns the message of the server, or the cause of an error without one.
pub(super) fn message(error: &Error) -> String {
    if let Some(answer) = error.as_db_error() {
        return answer.message().to_owned();
    }
    match error.source() {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}
