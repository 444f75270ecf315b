//! A store of many records and a report of many results: how long a user waits for them, and how large the report is.

use super::lab::build;
use crate::process;
use anyhow::{Context, Result, bail, ensure};
use rusqlite::Connection;
use serde_json::Value;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How often each question is asked; the median counts.
const REPEATS: usize = 5;
/// Longest that a question to the store may take.
const ANSWER: Duration = Duration::from_secs(1);
/// Longest that a report may take, and its largest size.
const REPORT: Duration = Duration::from_secs(10);
const REPORT_BYTES: u64 = 15_000_000;
/// Nothing here takes longer.
const LIMIT: Duration = Duration::from_secs(300);

/// What to measure.
pub(super) struct Size<'a> {
    pub(super) folder: &'a Path,
    pub(super) records: u32,
    pub(super) results: u32,
    pub(super) program: Option<&'a Path>,
}

/// Fills a store, asks it, makes a report, and holds the times against the goals.
pub(super) fn run(size: &Size<'_>) -> Result<()> {
    process::catch_interrupts()?;
    let program = match size.program {
        Some(program) => program.canonicalize().with_context(|| format!("finding {}", program.display()))?,
        None => build(&["--package", "linerate"], "linerate")?,
    };
    std::fs::create_dir_all(size.folder).with_context(|| format!("making {}", size.folder.display()))?;
    let bench = Bench { program, store: size.folder.join("many.db") };
    bench.remove_store();
    let done = bench.questions(size.records).and_then(|met| Ok(met & bench.report(size)?));
    bench.remove_store();
    ensure!(done?, "a goal was not met");
    Ok(())
}

struct Bench {
    program: PathBuf,
    store: PathBuf,
}

impl Bench {
    fn linerate(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(arguments).env("LINERATE_STORE", &self.store);
        command
    }

    fn remove_store(&self) {
        for tail in ["", "-wal", "-shm", "-live"] {
            let _ = std::fs::remove_file(format!("{}{tail}", self.store.display()));
        }
    }

    /// A record as a run leaves it, small and real.
    fn measured(&self) -> Result<Value> {
        let line = ["stream", "local", "--time", "100ms", "--warmup", "50ms", "--json"];
        let record = process::run(self.linerate(&line), LIMIT)?.stdout;
        serde_json::from_str(&record).context("reading linerate's record as JSON")
    }

    /// Asks a store of so many records.
    fn questions(&self, records: u32) -> Result<bool> {
        let record = self.measured()?;
        let id = record["id"].as_str().context("the record has no id")?;
        multiply(&self.store, id, records)?;
        let bytes = std::fs::metadata(&self.store)?.len();
        println!("a store of {records} records, {} MB", bytes / 1_000_000);
        let mut met = true;
        let (first, last) = (copy(id, 1), copy(id, records - 1));
        for line in [
            &["results", "list"][..],
            &["results", "list", "--filter", "host-777 local"],
            &["results", "list", "--filter", "nosuch"],
            &["compare", &first, &last],
        ] {
            met &= goal(&format!("linerate {}", line.join(" ")), ANSWER, || {
                process::run(self.linerate(line), LIMIT).map(drop)
            })?;
        }
        let pages = Pages::open(self.linerate(&["view"]))?;
        let oldest = format!("?page={}", records.div_ceil(50));
        let compare = format!("compare?with={first}&with={last}");
        for page in ["", &oldest, "?text=host-777+local", "?text=nosuch", "?kind=stream&ended=finished", &compare] {
            met &= goal(&format!("view /{page}"), ANSWER, || pages.get(page))?;
        }
        Ok(met)
    }

    /// Makes a report of so many results.
    fn report(&self, size: &Size<'_>) -> Result<bool> {
        let (from, to) = (size.folder.join("many.json"), size.folder.join("many.html"));
        std::fs::write(&from, swollen(self.measured()?, size.results)?.to_string()).context("writing the record")?;
        let line = ["report".as_ref(), from.as_os_str(), "--out".as_ref(), to.as_os_str()];
        let what = format!("linerate report of {} results", size.results);
        let fast = goal(&what, REPORT, || {
            let mut command = Command::new(&self.program);
            process::run(
                {
                    command.args(line);
                    command
                },
                LIMIT,
            )
            .map(drop)
        })?;
        let bytes = std::fs::metadata(&to)?.len();
        println!("{what}: {:.1} MB, goal: under {} MB", bytes as f64 / 1e6, REPORT_BYTES / 1_000_000);
        Ok(fast && bytes < REPORT_BYTES)
    }
}

/// Prints how long `ask` takes; whether that is less than `most`.
fn goal(what: &str, most: Duration, mut ask: impl FnMut() -> Result<()>) -> Result<bool> {
    let mut times = Vec::new();
    for _ in 0..REPEATS {
        process::check_interrupt()?;
        let start = Instant::now();
        ask()?;
        times.push(start.elapsed());
    }
    times.sort();
    let median = times[REPEATS / 2];
    println!(
        "{what}: {:.3} s (to {:.3}), goal: under {} s",
        median.as_secs_f64(),
        times[REPEATS - 1].as_secs_f64(),
        most.as_secs()
    );
    Ok(median < most)
}

/// The name of a copy of the record `id`.
fn copy(id: &str, number: u32) -> String {
    format!("{number:08}-{id}")
}

/// Copies the record `id` within its store until there are so many: each with its trials, a second after the one before, its
/// host of another name.
fn multiply(store: &Path, id: &str, records: u32) -> Result<()> {
    let connection = Connection::open(store)?;
    connection.execute_batch("PRAGMA synchronous = OFF; BEGIN")?;
    let numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?2 - 1)";
    for insert in [
        "INSERT INTO run
         SELECT number + i, printf('%08d-%s', i, id), started_unix_ns - i * 1000000000, changed_unix_ns, command, kind,
                search_text || printf(' host-%d', i % 1000), study, grp, state, locked, boot, results, trials, attempts,
                headline, verdict
         FROM run, n WHERE id = ?1",
        "INSERT INTO plan (run, body)
         SELECT number + i, json_set(body, '$.id', printf('%08d-%s', i, id)) FROM n, plan JOIN run ON number = run
         WHERE id = ?1",
        "INSERT INTO trial SELECT run.number + i, trial.number, name, attempt, standing, body
         FROM n, trial JOIN run ON run.number = run WHERE id = ?1",
        "INSERT INTO found SELECT run + i, body FROM n, found JOIN run ON number = run WHERE id = ?1",
        "INSERT INTO figure SELECT run + i, result, quantity, median, low, high
         FROM n, figure JOIN run ON number = run WHERE id = ?1",
    ] {
        connection.execute(&format!("{numbers} {insert}"), (id, records))?;
    }
    connection.execute_batch("COMMIT; PRAGMA wal_checkpoint(TRUNCATE)")?;
    Ok(())
}

/// A record of one result as one of so many, each of another name, with its cell and its trials.
fn swollen(mut record: Value, results: u32) -> Result<Value> {
    let list = |part: &Value| part.as_array().cloned().context("the record lacks a list");
    let (cells, found, trials) =
        (list(&record["plan"]["goal"]["cells"])?, list(&record["results"])?, list(&record["trials"])?);
    let (cell, result) = (cells.first().context("no cell")?, found.first().context("no result")?);
    let (mut all_cells, mut all_found, mut all_trials) = (Vec::new(), Vec::new(), Vec::new());
    for number in 0..results {
        let name = Value::from(format!("tcp case {number}"));
        let named = |value: &Value| {
            let mut value = value.clone();
            value["name"] = name.clone();
            value
        };
        all_cells.push(named(cell));
        let mut one = named(result);
        // No two results of a real record are alike.
        one["received"]["payload_bps"]["median"] = (1e9 + f64::from(number) * 1e5).into();
        one["verdict"]["evidence"][0] = format!("Case {number} is like no other.").into();
        all_found.push(one);
        all_trials.extend(trials.iter().map(|trial| {
            let mut trial = trial.clone();
            trial["trial"]["name"] = name.clone();
            trial
        }));
    }
    record["plan"]["goal"]["cells"] = all_cells.into();
    record["results"] = all_found.into();
    record["trials"] = all_trials.into();
    Ok(record)
}

/// `linerate view` under way; it ends with this.
struct Pages {
    child: Child,
    /// `127.0.0.1:PORT`, and the path that all pages are below.
    address: String,
    path: String,
}

impl Pages {
    fn open(mut command: Command) -> Result<Self> {
        let mut child =
            command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().context("starting `linerate view`")?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().context("no standard output")?).read_line(&mut line)?;
        let url = line.trim().strip_prefix("http://").and_then(|rest| rest.split_once('/'));
        let (address, path) = url.map(|(address, path)| (address.to_owned(), format!("/{path}"))).unwrap_or_default();
        Ok(Self { child, address, path })
    }

    /// Fetches a page, which must be there.
    fn get(&self, page: &str) -> Result<()> {
        let mut connection = TcpStream::connect(&self.address).context("connecting to `linerate view`")?;
        let (path, address) = (&self.path, &self.address);
        write!(connection, "GET {path}{page} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")?;
        let mut answer = String::new();
        connection.read_to_string(&mut answer)?;
        if !answer.starts_with("HTTP/1.1 200") {
            bail!("`linerate view` answers to {page} with {}", answer.lines().next().unwrap_or("nothing"));
        }
        Ok(())
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
