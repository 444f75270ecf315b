//! A store of many records and a report of many results: how long a user waits for them, and how large the report is.

use super::many_records::{LIMIT, ManyRecords, copy, times};
use crate::process;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// How often each question is asked; the median counts.
const REPEATS: usize = 5;
/// Longest that a question to the store may take.
const ANSWER: Duration = Duration::from_secs(1);
/// Longest that a report may take, and its largest size.
const REPORT: Duration = Duration::from_secs(10);
const REPORT_BYTES: u64 = 15_000_000;

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
    let many = ManyRecords::new(size.program, size.folder)?;
    let met = questions(&many, size.records)? & report(&many, size)?;
    ensure!(met, "a goal was not met");
    Ok(())
}

/// Asks a store of so many records.
fn questions(many: &ManyRecords, records: u32) -> Result<bool> {
    let id = many.fill(records)?;
    let mut met = true;
    let (first, last) = (copy(&id, 1), copy(&id, records - 1));
    for line in [
        &["results", "list"][..],
        &["results", "list", "--filter", "host-777 local"],
        &["results", "list", "--filter", "nosuch"],
        &["compare", &first, &last],
    ] {
        met &= goal(&format!("linerate {}", line.join(" ")), ANSWER, || {
            process::run(many.linerate(line), LIMIT).map(drop)
        })?;
    }
    Ok(met)
}

/// Makes a report of so many results.
fn report(many: &ManyRecords, size: &Size<'_>) -> Result<bool> {
    let (from, to) = (size.folder.join("many.json"), size.folder.join("many.html"));
    std::fs::write(&from, swollen(many.measured()?, size.results)?.to_string()).context("writing the record")?;
    let what = format!("linerate report of {} results", size.results);
    let fast = goal(&what, REPORT, || {
        let mut command = Command::new(&many.program);
        command.arg("report").arg(&from).arg("--out").arg(&to);
        process::run(command, LIMIT).map(drop)
    })?;
    let bytes = std::fs::metadata(&to)?.len();
    println!("{what}: {:.1} MB, goal: under {} MB", bytes as f64 / 1e6, REPORT_BYTES / 1_000_000);
    Ok(fast && bytes < REPORT_BYTES)
}

/// Prints how long `ask` takes; whether that is less than `most`.
fn goal(what: &str, most: Duration, ask: impl FnMut() -> Result<()>) -> Result<bool> {
    let times = times(REPEATS, ask)?;
    let (median, longest) = (times[REPEATS / 2], times[REPEATS - 1]);
    println!(
        "{what}: {:.3} s (to {:.3}), goal: under {} s",
        median.as_secs_f64(),
        longest.as_secs_f64(),
        most.as_secs()
    );
    Ok(median < most)
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
