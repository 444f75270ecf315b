//! The tables, and how a file comes to have them.

use super::error::store_error;
use crate::StoreError;
use crate::location::neighbour_file;
use crate::run_row::command_key;
use crate::tables::{FIRST_MIGRATED, FORMAT};
use rusqlite::{Connection, ErrorCode, Transaction, TransactionBehavior};
use std::path::Path;
use std::time::{Duration, Instant};
use std::{fs, thread};

/// Marks the file as ours (`application_id`): "lnrt".
const APPLICATION: i64 = 0x6c6e_7274;
/// How long a writer waits for another.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// Lists read the small rows of `run` alone, and never touch the bulk of the other tables.
const RUN_TABLES: &str = r#"
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
        changed INTEGER NOT NULL DEFAULT 0, -- 0 or 1: the headline has changed from that of the run before
        command_key TEXT NOT NULL DEFAULT '', -- hash of the command without its first word
        limit_name TEXT                     -- the limit in the verdict
    ) STRICT;
    CREATE INDEX run_by_start ON run (started_unix_ns, id);
    CREATE INDEX run_by_kind ON run (kind, started_unix_ns, id);
    CREATE INDEX run_by_limit ON run (limit_name, started_unix_ns, id);
    CREATE INDEX run_by_command ON run (command_key, kind, started_unix_ns, id);
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

/// Results of pairs of hosts, and their sums.
const PAIR_TABLES: &str = r#"
    CREATE TABLE pair_result (              -- a finished run with one path
        record TEXT PRIMARY KEY,
        test TEXT NOT NULL,                 -- kind and options of the command
        from_host TEXT NOT NULL,
        to_host TEXT NOT NULL,
        started_unix_ns INTEGER NOT NULL,
        value REAL NOT NULL,
        unit TEXT NOT NULL,
        quantity TEXT NOT NULL,
        link_share REAL,
        limit_name TEXT,
        confidence TEXT,
        changed INTEGER NOT NULL,           -- 0 or 1: differs from the value before
        value_before REAL                   -- value of the run before
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX pair_result_by_pair ON pair_result (test, from_host, to_host, started_unix_ns);
    CREATE INDEX pair_result_changed ON pair_result (started_unix_ns) WHERE changed = 1;
    CREATE TABLE pair_latest (              -- the newest result of each pair and test
        test TEXT NOT NULL,
        from_host TEXT NOT NULL,
        to_host TEXT NOT NULL,
        from_site TEXT NOT NULL,
        to_site TEXT NOT NULL,
        started_unix_ns INTEGER NOT NULL,
        value REAL NOT NULL,
        badness REAL NOT NULL,              -- higher is worse
        unit TEXT NOT NULL,
        quantity TEXT NOT NULL,
        link_share REAL,
        limit_name TEXT,
        confidence TEXT,
        record TEXT,                        -- NULL if the record was deleted by retention
        changed INTEGER NOT NULL,
        results INTEGER NOT NULL,           -- number of results so far
        PRIMARY KEY (test, from_host, to_host)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX pair_latest_worst ON pair_latest (test, from_site, to_site, badness);
    CREATE TABLE pair_hour (
        test TEXT NOT NULL,
        from_host TEXT NOT NULL,
        to_host TEXT NOT NULL,
        hour INTEGER NOT NULL,              -- hours since 1970
        results INTEGER NOT NULL,
        total REAL NOT NULL,
        lowest REAL NOT NULL,
        highest REAL NOT NULL,
        last_value REAL NOT NULL,
        last_unix_ns INTEGER NOT NULL,
        changes INTEGER NOT NULL,
        unit TEXT NOT NULL,
        PRIMARY KEY (test, from_host, to_host, hour)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE site_hour (
        test TEXT NOT NULL,
        from_site TEXT NOT NULL,
        to_site TEXT NOT NULL,
        hour INTEGER NOT NULL,
        results INTEGER NOT NULL,
        total REAL NOT NULL,
        lowest REAL NOT NULL,
        highest REAL NOT NULL,
        last_value REAL NOT NULL,
        last_unix_ns INTEGER NOT NULL,
        changes INTEGER NOT NULL,
        unit TEXT NOT NULL,
        PRIMARY KEY (test, from_site, to_site, hour)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE site_latest (              -- the pairs between two sites
        test TEXT NOT NULL,
        from_site TEXT NOT NULL,
        to_site TEXT NOT NULL,
        pairs INTEGER NOT NULL,
        results INTEGER NOT NULL,
        last_unix_ns INTEGER NOT NULL,
        changed_unix_ns INTEGER NOT NULL,   -- start of the newest result that differs; 0 if none does
        worst_from TEXT NOT NULL,           -- pair with the worst newest value
        worst_to TEXT NOT NULL,
        PRIMARY KEY (test, from_site, to_site)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE pair_axis (                -- hosts that a test has results of
        test TEXT NOT NULL,
        axis TEXT NOT NULL,                 -- from, to
        host TEXT NOT NULL,
        PRIMARY KEY (test, axis, host)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE fleet_host (
        name TEXT PRIMARY KEY,
        site TEXT NOT NULL,                 -- label `site`; empty without
        labels TEXT NOT NULL,               -- JSON object of strings
        seen_unix_ns INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
"#;

/// Brings the tables of format 4 to format 5; [`add_keys`] fills the new columns.
const FROM_FORMAT_4: &str = "
    ALTER TABLE run ADD COLUMN command_key TEXT NOT NULL DEFAULT '';
    ALTER TABLE run ADD COLUMN limit_name TEXT;
    UPDATE run SET limit_name = verdict ->> '$.limit' WHERE json_valid(verdict);
    DROP INDEX run_by_limit;
    DROP INDEX run_by_command;
    CREATE INDEX run_by_limit ON run (limit_name, started_unix_ns, id);
    CREATE INDEX run_by_command ON run (command_key, kind, started_unix_ns, id);
";

/// Makes a fresh connection safe for several programs at once, and a new file into a store.
pub(crate) fn set_up(connection: &mut Connection, path: &Path) -> Result<(), StoreError> {
    let failed = |error| store_error(path, error);
    connection.busy_timeout(BUSY_TIMEOUT).map_err(failed)?;
    check(&connection.transaction().map_err(failed)?, path)?;
    write_ahead(connection).map_err(failed)?;
    connection.pragma_update(None, "synchronous", "FULL").map_err(failed)?;
    connection.pragma_update(None, "foreign_keys", true).map_err(failed)?;
    if number(connection, "user_version").map_err(failed)? == FORMAT {
        return Ok(());
    }
    // Another program may have been faster: look again once the file is ours.
    let change = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
    check(&change, path)?;
    match number(&change, "user_version").map_err(failed)? {
        FORMAT => return Ok(()),
        0 => change.execute_batch(RUN_TABLES).map_err(failed)?,
        _ => {
            change.execute_batch(FROM_FORMAT_4).map_err(failed)?;
            add_keys(&change).map_err(failed)?;
        }
    }
    change.execute_batch(PAIR_TABLES).map_err(failed)?;
    change.pragma_update(None, "application_id", APPLICATION).map_err(failed)?;
    change.pragma_update(None, "user_version", FORMAT).map_err(failed)?;
    change.commit().map_err(failed)
}

/// Fills column `command_key` of the runs of format 4.
fn add_keys(change: &Transaction<'_>) -> Result<(), rusqlite::Error> {
    let mut select = change.prepare("SELECT number, command FROM run")?;
    let mut update = change.prepare("UPDATE run SET command_key = ? WHERE number = ?")?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        let command: String = row.get(1)?;
        let command: Vec<String> = serde_json::from_str(&command).unwrap_or_default();
        update.execute((command_key(&command), row.get::<_, i64>(0)?))?;
    }
    Ok(())
}

/// Refuses a store of another format, and a database that is no store of ours. Within one transaction, or else a store that
/// another program makes between two of the questions looks like a stranger's.
fn check(connection: &Transaction<'_>, path: &Path) -> Result<(), StoreError> {
    let failed = |error| store_error(path, error);
    let found = number(connection, "user_version").map_err(failed)?;
    let ours = number(connection, "application_id").map_err(failed)? == APPLICATION;
    let empty = || connection.query_row("SELECT count(*) = 0 FROM sqlite_schema", [], |row| row.get(0));
    match found {
        _ if !ours && (found != 0 || !empty().map_err(failed)?) => Err(StoreError::NotAStore { path: path.to_owned() }),
        found if found != 0 && !(FIRST_MIGRATED..=FORMAT).contains(&found) => {
            Err(StoreError::OtherFormat { store: path.display().to_string(), found, known: FORMAT })
        }
        _ => whole_pages(connection, path),
    }
}

/// Refuses a file whose last page is cut off: SQLite would fill it up with zeros. SQLite finds all other cuts itself.
fn whole_pages(connection: &Transaction<'_>, path: &Path) -> Result<(), StoreError> {
    let page = number(connection, "page_size").map_err(|error| store_error(path, error))?;
    let length = |path: &Path| fs::metadata(path).map_or(0, |file| file.len());
    // While a log is written ahead, pages may be on their way into the file.
    if length(path).is_multiple_of(page.unsigned_abs().max(1)) || length(&neighbour_file(path, "-wal")) > 0 {
        return Ok(());
    }
    Err(StoreError::Damaged { store: path.display().to_string(), reason: "its last page is cut off".to_owned() })
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
