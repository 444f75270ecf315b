//! Time of queries to a store of many records and of a report of many results, and the size of the report.

use super::many_records::{LIMIT, ManyRecords, copy, times};
use crate::process;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Number of runs of each query. The median counts.
const REPEATS: usize = 5;
/// Maximum time of a query to the store.
const QUERY_GOAL: Duration = Duration::from_secs(1);
/// Maximum time of a report.
const REPORT_GOAL: Duration = Duration::from_secs(10);
/// Maximum size of a report, in bytes.
const REPORT_BYTES: u64 = 15_000_000;

/// Options of the benchmark.
pub(super) struct Size<'a> {
    pub(super) folder: &'a Path,
    pub(super) records: u32,
    pub(super) results: u32,
    pub(super) program: Option<&'a Path>,
}

/// Runs queries on a full store, writes a report, and compares the times with the goals.
pub(super) fn run(size: &Size<'_>) -> Result<()> {
    process::catch_interrupts()?;
    let many = ManyRecords::new(size.program, size.folder)?;
    let met = queries(&many, size.records)? & report(&many, size)?;
    ensure!(met, "a goal was not met");
    Ok(())
}

/// Runs queries on a store of `records` records. Returns whether all goals are met.
fn queries(many: &ManyRecords, records: u32) -> Result<bool> {
    let id = many.fill(records)?;
    let mut met = true;
    let first = copy(&id, 1);
    let last = copy(&id, records - 1);
    for line in [
        &["results", "list"][..],
        &["results", "list", "--filter", "host-777 local"],
        &["results", "list", "--filter", "nosuch"],
        &["compare", &first, &last],
    ] {
        met &= goal(&format!("linerate {}", line.join(" ")), QUERY_GOAL, || {
            process::run(many.linerate(line), LIMIT).map(drop)
        })?;
    }
    Ok(met)
}

/// Writes a report of `size.results` results. Returns whether its goals are met.
fn report(many: &ManyRecords, size: &Size<'_>) -> Result<bool> {
    let from = size.folder.join("many.json");
    let to = size.folder.join("many.html");
    std::fs::write(&from, multiply(many.measured()?, size.results)?.to_string()).context("writing the record")?;
    let name = format!("linerate report of {} results", size.results);
    let fast = goal(&name, REPORT_GOAL, || {
        let mut command = Command::new(&many.program);
        command.arg("report").arg(&from).arg("--out").arg(&to);
        process::run(command, LIMIT).map(drop)
    })?;
    let bytes = std::fs::metadata(&to)?.len();
    println!("{name}: {:.1} MB, goal: under {} MB", bytes as f64 / 1e6, REPORT_BYTES / 1_000_000);
    Ok(fast && bytes < REPORT_BYTES)
}

/// Prints the times of `query`. Returns whether the median is below `limit`.
fn goal(name: &str, limit: Duration, query: impl FnMut() -> Result<()>) -> Result<bool> {
    let times = times(REPEATS, query)?;
    let median = times[REPEATS / 2];
    let longest = times[REPEATS - 1];
    println!(
        "{name}: {:.3} s (to {:.3}), goal: under {} s",
        median.as_secs_f64(),
        longest.as_secs_f64(),
        limit.as_secs()
    );
    Ok(median < limit)
}

/// Copies the first result of a record, with its cell and its trials, until there are `results` of different names.
pub(super) fn multiply(mut record: Value, results: u32) -> Result<Value> {
    let list = |part: &Value| part.as_array().cloned().context("the record lacks a list");
    let cells = list(&record["plan"]["goal"]["cells"])?;
    let cell = cells.first().context("no cell")?;
    let original = list(&record["results"])?;
    let original = original.first().context("no result")?;
    let trials = list(&record["trials"])?;
    let mut all_cells = Vec::new();
    let mut all_results = Vec::new();
    let mut all_trials = Vec::new();
    for number in 0..results {
        let name = Value::from(format!("tcp case {number}"));
        let mut cell = cell.clone();
        cell["name"] = name.clone();
        all_cells.push(cell);
        let mut result = original.clone();
        result["name"] = name.clone();
        // No two results of a real record are alike.
        result["received"]["payload_bps"]["median"] = (1e9 + f64::from(number) * 1e5).into();
        result["verdict"]["evidence"][0] = json!({ "text": format!("Case {number} is like no other.") });
        all_results.push(result);
        all_trials.extend(trials.iter().map(|trial| {
            let mut trial = trial.clone();
            trial["trial"]["name"] = name.clone();
            trial
        }));
    }
    record["plan"]["goal"]["cells"] = all_cells.into();
    record["results"] = all_results.into();
    record["trials"] = all_trials.into();
    Ok(record)
}
