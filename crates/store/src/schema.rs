//! The tables, and how a file comes to have them.

use crate::StoreError;
use crate::location::beside;
use rusqlite::{Connection, ErrorCode, Transaction, TransactionBehavior};
use std::path::Path;
use std::time::{Duration, Instant};
use std::{fs, thread};

/// The format this program writes (`user_version`).
const VERSION: i64 = 4;
/// Marks the file as ours (`application_id`): "lnrt".
const APPLICATION: i64 = 0x6c6e_7274;
/// How long a writer waits for another.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// Lists read the small rows of `run` alone, and never touch the bulk of the other tables.
const TABLES: &str = r#"
    CREATE TABLE run (
        number INTEGER PRIMARY KEY,         -- the byte that is locked while the run is measured
        id TEXT UNIQUE NOT NULL,
        started_unix_ns INTEGER NOT NULL,
        changed_unix_ns INTEGER NOT NULL,   -- last written to
        command TEXT NOT NULL,              -- JSON array of strings
        kind TEXT NOT NULL,                 -- stream, device, tester-limit ...
        search_text TEXT NOT NULL,          -- in small letters
        study TEXT,
        grp TEXT,                           -- runs that are reported together
        state TEXT NOT NULL,                -- running, finished, interrupted, failed, killed
        locked INTEGER NOT NULL,            -- 0 or 1: a lock tells whether it is still measured
        boot TEXT NOT NULL,                 -- the kernel's boot_id where it is measured
        results INTEGER NOT NULL,
        trials INTEGER NOT NULL,            -- those that count
        attempts INTEGER NOT NULL,          -- all of them
        headline TEXT,                      -- JSON: {"result", "quantity", "value", "unit", "firmness"}
        verdict TEXT,                       -- JSON: {"limit", "confidence"}
        changed INTEGER NOT NULL DEFAULT 0  -- 0 or 1: the headline has changed from that of the run before
    ) STRICT;
    CREATE INDEX run_by_start ON run (started_unix_ns, id);
    CREATE INDEX run_by_kind ON run (kind, started_unix_ns, id);
    CREATE INDEX run_by_limit ON run (verdict ->> '$.limit', started_unix_ns, id);
    CREATE INDEX run_by_command ON run (json_remove(command, '$[0]'), started_unix_ns, id);
    CREATE INDEX run_by_study ON run (study, started_unix_ns, id) WHERE study IS NOT NULL;
    CREATE INDEX run_under_way ON run (number) WHERE state = 'running';
    CREATE INDEX run_changed ON run (started_unix_ns, id) WHERE changed = 1;
    CREATE INDEX run_changed_by_kind ON run (kind, started_unix_ns, id) WHERE changed = 1;
    CREATE TABLE plan (                     -- written once, as the run begins
        run INTEGER PRIMARY KEY REFERENCES run (number) ON DELETE CASCADE,
        body TEXT NOT NULL                  -- the record without its trials, JSON
    ) STRICT;
    CREATE TABLE trial (                    -- every attempt
        run INTEGER NOT NULL REFERENCES run (number) ON DELETE CASCADE,
        number INTEGER NOT NULL,            -- from 0, in the order they ran
        name TEXT NOT NULL,
        attempt INTEGER NOT NULL,           -- from 0
        standing TEXT NOT NULL,             -- counted, spoilt, failed
        body TEXT NOT NULL,                 -- JSON
        PRIMARY KEY (run, number)
    ) STRICT;
    CREATE TABLE found (                    -- written as the run ends; follows from plan and trials
        run INTEGER PRIMARY KEY REFERENCES run (number) ON DELETE CASCADE,
        body TEXT NOT NULL                  -- results, outcome and caveats, JSON
    ) STRICT;
"#;

/// Makes a fresh connection safe for several programs at once, and a new file into a store.
pub(crate) fn set_up(connection: &mut Connection, path: &Path) -> Result<(), StoreError> {
    let failed = |error| StoreError::of(path, error);
    connection.busy_timeout(BUSY_TIMEOUT).map_err(failed)?;
    check(&connection.transaction().map_err(failed)?, path)?;
    write_ahead(connection).map_err(failed)?;
    connection.pragma_update(None, "synchronous", "FULL").map_err(failed)?;
    connection.pragma_update(None, "foreign_keys", true).map_err(failed)?;
    if number(connection, "user_version").map_err(failed)? == VERSION {
        return Ok(());
    }
    // Another program may have been faster: look again once the file is ours.
    let change = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
    check(&change, path)?;
    if number(&change, "user_version").map_err(failed)? == VERSION {
        return Ok(());
    }
    change.execute_batch(TABLES).map_err(failed)?;
    change.pragma_update(None, "application_id", APPLICATION).map_err(failed)?;
    change.pragma_update(None, "user_version", VERSION).map_err(failed)?;
    change.commit().map_err(failed)
}

/// Refuses a store of another format, and a database that is no store of ours. Within one transaction, or else a store that
/// another program makes between two of the questions looks like a stranger's.
fn check(connection: &Transaction<'_>, path: &Path) -> Result<(), StoreError> {
    let failed = |error| StoreError::of(path, error);
    let found = number(connection, "user_version").map_err(failed)?;
    let ours = number(connection, "application_id").map_err(failed)? == APPLICATION;
    let empty = || connection.query_row("SELECT count(*) = 0 FROM sqlite_schema", [], |row| row.get(0));
    match found {
        _ if !ours && (found != 0 || !empty().map_err(failed)?) => Err(StoreError::NotAStore { path: path.to_owned() }),
        _ if found != 0 && found != VERSION => {
            Err(StoreError::OtherFormat { path: path.to_owned(), found, known: VERSION })
        }
        _ => whole_pages(connection, path),
    }
}

/// Refuses a file whose last page is cut off: SQLite would fill it up with zeros. SQLite finds all other cuts itself.
fn whole_pages(connection: &Transaction<'_>, path: &Path) -> Result<(), StoreError> {
    let page = number(connection, "page_size").map_err(|error| StoreError::of(path, error))?;
    let length = |path: &Path| fs::metadata(path).map_or(0, |file| file.len());
    // While a log is written ahead, pages may be on their way into the file.
    if length(path).is_multiple_of(page.unsigned_abs().max(1)) || length(&beside(path, "-wal")) > 0 {
        return Ok(());
    }
    Err(StoreError::Damaged { path: path.to_owned(), reason: "its last page is cut off".to_owned() })
}

/// Switches to write-ahead logging. SQLite does not wait for others here, so we do.
fn write_ahead(connection: &Connection) -> Result<(), rusqlite::Error> {
    let start = Instant::now();
    loop {
        let switched = connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get::<_, String>(0));
        match switched {
            Err(error)
                if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) && start.elapsed() < BUSY_TIMEOUT =>
            {
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
