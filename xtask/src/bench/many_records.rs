//! A store of many records for benchmarks, and the times of its queries.

use super::lab::build;
use crate::process;
use anyhow::{Context, Result};
use rusqlite::Connection;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Time limit of each command.
pub(super) const LIMIT: Duration = Duration::from_secs(300);

/// A program with its own store, which is removed on drop.
pub(super) struct ManyRecords {
    pub(super) program: PathBuf,
    store: PathBuf,
}

impl ManyRecords {
    /// Creates an empty store in `folder` for `program`, or for a linerate built now.
    pub(super) fn new(program: Option<&Path>, folder: &Path) -> Result<Self> {
        let program = match program {
            Some(program) => program.canonicalize().with_context(|| format!("finding {}", program.display()))?,
            None => build(&["--package", "linerate"], "linerate")?,
        };
        std::fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
        let many = Self { program, store: folder.join("many.db") };
        many.remove_store();
        Ok(many)
    }

    /// Returns a command of the program on the store.
    pub(super) fn linerate(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(arguments).env("LINERATE_STORE", &self.store);
        command
    }

    /// Measures a short run and returns its record.
    pub(super) fn measured(&self) -> Result<Value> {
        let line = ["stream", "local", "--time", "100ms", "--warmup", "50ms", "--json"];
        let record = process::run(self.linerate(&line), LIMIT)?.stdout;
        serde_json::from_str(&record).context("reading linerate's record as JSON")
    }

    /// Fills the store with `records` records. Returns the id of the original, of which the others are copies.
    pub(super) fn fill(&self, records: u32) -> Result<String> {
        let record = self.measured()?;
        let id = record["id"].as_str().context("the record has no id")?;
        multiply(&self.store, id, records)?;
        println!("a store of {records} records, {} MB", self.bytes()? / 1_000_000);
        Ok(id.to_owned())
    }

    /// Returns the size of the store.
    pub(super) fn bytes(&self) -> Result<u64> {
        Ok(std::fs::metadata(&self.store)?.len())
    }

    fn remove_store(&self) {
        for tail in ["", "-wal", "-shm", "-live"] {
            let _ = std::fs::remove_file(format!("{}{tail}", self.store.display()));
        }
        let _ = std::fs::remove_dir(format!("{}-live.d", self.store.display()));
    }
}

impl Drop for ManyRecords {
    fn drop(&mut self) {
        self.remove_store();
    }
}

/// Returns the times of `repeats` calls of `query`, shortest first.
pub(super) fn times(repeats: usize, mut query: impl FnMut() -> Result<()>) -> Result<Vec<Duration>> {
    let mut times = Vec::with_capacity(repeats);
    for _ in 0..repeats {
        process::check_interrupt()?;
        let start = Instant::now();
        query()?;
        times.push(start.elapsed());
    }
    times.sort();
    Ok(times)
}

/// Returns the id of a copy of the record `id`.
pub(super) fn copy(id: &str, number: u32) -> String {
    format!("{number:08}-{id}")
}

/// Copies the record `id` with its trials within its store until there are `records` of them.
///
/// Each copy is a second older than the one before and has another host name. Figures are up to 1 % higher, those of
/// every tenth copy a further 20 %. That copy and the next newer one are marked as changed.
fn multiply(store: &Path, id: &str, records: u32) -> Result<()> {
    let connection = Connection::open(store)?;
    connection.execute_batch("PRAGMA synchronous = OFF; BEGIN")?;
    let numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?2 - 1)";
    for insert in [
        "INSERT INTO run
         SELECT number + i, printf('%08d-%s', i, id), started_unix_ns - i * 1000000000, changed_unix_ns, command, kind,
                search_text || printf(' host-%d', i % 1000), study, grp, state, locked, boot, results, trials, attempts,
                json_set(headline, '$.value', (headline ->> '$.value') * (1 + abs(random() % 101) / 10000.0 + (i % 10 = 0) / 5.0)),
                verdict, i % 10 IN (0, 9), command_key, limit_name
         FROM run, n WHERE id = ?1",
        "INSERT INTO plan (run, body)
         SELECT number + i, json_set(body, '$.id', printf('%08d-%s', i, id)) FROM n, plan JOIN run ON number = run
         WHERE id = ?1",
        "INSERT INTO trial SELECT run.number + i, trial.number, name, attempt, standing, body
         FROM n, trial JOIN run ON run.number = run WHERE id = ?1",
        "INSERT INTO found SELECT run + i, body FROM n, found JOIN run ON number = run WHERE id = ?1",
    ] {
        connection.execute(&format!("{numbers} {insert}"), (id, records))?;
    }
    connection.execute_batch("COMMIT; PRAGMA wal_checkpoint(TRUNCATE)")?;
    Ok(())
}
