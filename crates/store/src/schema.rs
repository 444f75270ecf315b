//! The tables, and how a file comes to have them.

use crate::{StoreError, listing};
use rusqlite::{Connection, ErrorCode, Transaction, TransactionBehavior, params};
use serde::Deserialize;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// The format this program writes (`user_version`).
pub(crate) const VERSION: i64 = 2;
/// Marks the file as ours (`application_id`): "lnrt".
const APPLICATION: i64 = 0x6c6e_7274;
/// How long a writer waits for another.
const PATIENCE: Duration = Duration::from_secs(10);

/// What lists need is in small rows of their own, so that a list never touches the bulk beside them.
const TABLES: &str = "
    CREATE TABLE record (
        id TEXT PRIMARY KEY,
        started_unix_ns INTEGER NOT NULL,
        command TEXT NOT NULL,      -- JSON array of strings
        cells INTEGER NOT NULL,
        trials INTEGER NOT NULL,
        finished INTEGER NOT NULL   -- 0 or 1: ran to its end
    ) STRICT;
    CREATE INDEX record_by_start ON record (started_unix_ns, id);
    CREATE TABLE content (
        record TEXT PRIMARY KEY REFERENCES record (id) ON DELETE CASCADE,
        body TEXT NOT NULL          -- the record without its trials, JSON
    ) STRICT;
    CREATE TABLE trial (
        record TEXT NOT NULL REFERENCES record (id) ON DELETE CASCADE,
        number INTEGER NOT NULL,    -- from 0, in the order they ran
        body TEXT NOT NULL,         -- JSON
        UNIQUE (record, number)
    ) STRICT;
";

/// What format 2 added. The defaults let a program of format 1 that has the store open write on.
const LISTED: &str = "
    ALTER TABLE record ADD COLUMN kind TEXT NOT NULL DEFAULT '';            -- stream, device ...
    ALTER TABLE record ADD COLUMN words TEXT NOT NULL DEFAULT '';           -- what is searched, in small letters
    ALTER TABLE record ADD COLUMN ended INTEGER NOT NULL DEFAULT 0;         -- 0 or 1: finished, or said to be interrupted
    ALTER TABLE record ADD COLUMN changed_unix_ns INTEGER NOT NULL DEFAULT 0;
    CREATE INDEX record_by_kind ON record (kind, started_unix_ns, id);
";

/// Makes a fresh connection safe for several programs at once, and a new file into a store.
pub(crate) fn set_up(connection: &mut Connection, path: &Path) -> Result<(), StoreError> {
    let failed = |error| StoreError::of(path, error);
    connection.busy_timeout(PATIENCE).map_err(failed)?;
    check(&connection.transaction().map_err(failed)?, path)?;
    write_ahead(connection).map_err(failed)?;
    connection.pragma_update(None, "synchronous", "FULL").map_err(failed)?;
    connection.pragma_update(None, "foreign_keys", true).map_err(failed)?;
    if number(connection, "user_version").map_err(failed)? == VERSION {
        return Ok(());
    }
    // Another program may have been faster: look again once the file is ours.
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
    check(&transaction, path)?;
    let found = number(&transaction, "user_version").map_err(failed)?;
    if found < 1 {
        transaction.execute_batch(TABLES).map_err(failed)?;
        transaction.pragma_update(None, "application_id", APPLICATION).map_err(failed)?;
    }
    if found < 2 {
        transaction.execute_batch(LISTED).map_err(failed)?;
        fill_listed(&transaction).map_err(failed)?;
    }
    transaction.pragma_update(None, "user_version", VERSION).map_err(failed)?;
    transaction.commit().map_err(failed)
}

/// What searches need of a record.
#[derive(Default, Deserialize)]
struct Searched {
    #[serde(default)]
    hosts: Vec<Named>,
    #[serde(default)]
    plan: Cells,
}

#[derive(Default, Deserialize)]
struct Cells {
    #[serde(default)]
    cells: Vec<Named>,
}

#[derive(Deserialize)]
struct Named {
    name: String,
}

/// Fills the columns of format 2 for the records of a store of format 1.
fn fill_listed(connection: &Transaction<'_>) -> Result<(), rusqlite::Error> {
    let mut records =
        connection.prepare("SELECT id, command, body FROM record LEFT JOIN content ON content.record = record.id")?;
    let mut fill = connection.prepare(
        "UPDATE record SET kind = ?, words = ?, ended = finished, changed_unix_ns = started_unix_ns WHERE id = ?",
    )?;
    let mut rows = records.query([])?;
    while let Some(row) = rows.next()? {
        let id: String = row.get(0)?;
        let command = listing::command(row.get_ref(1)?.as_str()?);
        // A record that cannot be read is still found by its command.
        let body = row.get_ref(2)?.as_str_or_null()?;
        let searched: Searched = body.and_then(|body: &str| serde_json::from_str(body).ok()).unwrap_or_default();
        let names = searched.hosts.iter().chain(&searched.plan.cells).map(|named| named.name.as_str());
        fill.execute(params![listing::kind(&command), listing::words(&id, &command, names), id])?;
    }
    Ok(())
}

/// Refuses a store of a newer program, and a database that is no store of ours. Within one transaction, or else a store that
/// another program makes between two of the questions looks like a stranger's.
fn check(connection: &Transaction<'_>, path: &Path) -> Result<(), StoreError> {
    let failed = |error| StoreError::of(path, error);
    let found = number(connection, "user_version").map_err(failed)?;
    let ours = number(connection, "application_id").map_err(failed)? == APPLICATION;
    let empty = || connection.query_row("SELECT count(*) = 0 FROM sqlite_schema", [], |row| row.get(0));
    match found {
        _ if !ours && (found != 0 || !empty().map_err(failed)?) => Err(StoreError::NotAStore { path: path.to_owned() }),
        _ if found > VERSION => Err(StoreError::Newer { path: path.to_owned(), found, known: VERSION }),
        _ => Ok(()),
    }
}

/// Switches to write-ahead logging. SQLite does not wait for others here, so we do.
fn write_ahead(connection: &Connection) -> Result<(), rusqlite::Error> {
    let start = Instant::now();
    loop {
        let switched = connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get::<_, String>(0));
        match switched {
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) && start.elapsed() < PATIENCE => {
                thread::sleep(Duration::from_millis(10));
            }
            // A file system that cannot do it (some network ones) keeps the rollback journal, which is as safe.
            other => return other.map(drop),
        }
    }
}

fn number(connection: &Connection, pragma: &str) -> Result<i64, rusqlite::Error> {
    connection.pragma_query_value(None, pragma, |row| row.get(0))
}
