//! Cost of linerate as work grows: flows, hosts of a lab, repeats, results, records, and cells of a study.

use super::FOLDER;
use super::curve::Curve;
use super::lab::Lab;
use super::many_records::{LIMIT, ManyRecords, times};
use super::store::multiply;
use crate::process::{self, Running};
use anyhow::{Context, Result, bail};
use clap::Args;
use serde_json::Value;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Address of the agent that flows run to.
const AGENT: &str = "127.0.0.1:4751";
/// Time within which the agent must print its URL.
const START_LIMIT: Duration = Duration::from_secs(20);
/// Number of runs of a command. The median counts.
const REPEATS: usize = 3;
/// Time of a run from which on it is not repeated, and larger sizes are left out.
const SLOW: f64 = 20.0;
/// Time that a run of flows measures.
const FLOWS_TIME: Duration = Duration::from_millis(500);
/// Sizes of the curves without an option.
const FLOWS: [u32; 7] = [1, 4, 16, 64, 256, 1024, 4096];
const HOSTS: [u32; 6] = [2, 4, 8, 16, 32, 64];
const RESULTS: [u32; 4] = [10, 100, 1_000, 10_000];
/// Rows and columns of the grown studies.
const CELLS: [(u32, u32); 6] = [(1, 10), (10, 10), (10, 30), (10, 100), (30, 100), (100, 100)];
/// Study with two factors, apart from its data.
const STUDY: &str = r#"
title = "Grown study"
about = "Cells of a benchmark."
method = "Calculated."
data = "grown.csv"
[path]
transport = "tcp"
[[factors]]
column = "row"
[[factors]]
column = "column"
[[measures]]
column = "mbps"
unit = "Mbit/s"
counts = "payload"
"#;

/// Options of the benchmark.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Only kinds of work with this in their names: flows, hosts, repeats, results, records, cells.
    #[arg(long)]
    only: Option<String>,
    /// Largest number of records in a store.
    #[arg(long, default_value_t = 30_000, value_parser = clap::value_parser!(u32).range(100..=10_000_000))]
    records: u32,
    /// Largest number of repeats in a record. Each takes up to half a second.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(10..=1000))]
    repeats: u32,
    /// Use this linerate instead of the one as it is released, built now.
    #[arg(long)]
    program: Option<PathBuf>,
}

/// Kind of work that grows.
struct Growth {
    name: &'static str,
    /// Name and unit of each curve.
    curves: &'static [(&'static str, &'static str)],
    /// Adds points to the curves, smallest size first.
    measure: fn(&ManyRecords, &Arguments, &mut [Curve]) -> Result<()>,
}

const GROWTHS: &[Growth] = &[
    Growth { name: "flows", curves: &[("flows of a stream: set-up and end", "s")], measure: flows },
    Growth { name: "hosts", curves: &[("hosts of a lab: up", "s"), ("hosts of a lab: down", "s")], measure: hosts },
    Growth {
        name: "repeats",
        curves: &[
            ("repeats in a record: report", "s"),
            ("repeats in a record: page", "bytes"),
            ("repeats in a record: record", "bytes"),
        ],
        measure: repeats,
    },
    Growth {
        name: "results",
        curves: &[("results in a record: report", "s"), ("results in a record: page", "bytes")],
        measure: results,
    },
    Growth {
        name: "records",
        curves: &[
            ("records in a store: list", "s"),
            ("records in a store: search without result", "s"),
            ("records in a store: store", "bytes"),
        ],
        measure: records,
    },
    Growth {
        name: "cells",
        curves: &[("cells of a study: report", "s"), ("cells of a study: page", "bytes")],
        measure: cells,
    },
];

/// Measures the curves, prints them and writes them as JSON. A steep curve is marked; it is no error.
pub(super) fn run(arguments: &Arguments) -> Result<()> {
    process::catch_interrupts()?;
    let many = ManyRecords::new(arguments.program.as_deref(), Path::new(FOLDER))?;
    let mut all = Vec::new();
    let mut failed = Vec::new();
    for growth in GROWTHS {
        if arguments.only.as_ref().is_some_and(|only| !growth.name.contains(only)) {
            continue;
        }
        eprintln!("[growth] {}", growth.name);
        let mut curves: Vec<Curve> = growth.curves.iter().map(|(name, unit)| Curve::new(name, unit)).collect();
        let measured = (growth.measure)(&many, arguments, &mut curves);
        process::check_interrupt()?;
        // The sizes before a failure count.
        curves.iter().for_each(|curve| println!("{}", curve.line()));
        all.extend(curves);
        if let Err(error) = measured {
            eprintln!("[growth] {}: FAILED at the next size: {error:#}", growth.name);
            failed.push(growth.name);
        }
    }
    let steep: Vec<&str> = all.iter().filter(|curve| curve.is_steep()).map(|curve| curve.name).collect();
    println!("{} curves; steep: {}", all.len(), if steep.is_empty() { "none".to_owned() } else { steep.join(", ") });
    let file = Path::new(FOLDER).join("growth.json");
    let json: Value = all.iter().map(Curve::to_json).collect();
    std::fs::write(&file, serde_json::to_string_pretty(&json)?)
        .with_context(|| format!("writing {}", file.display()))?;
    println!("kept in {}", file.display());
    if failed.is_empty() { Ok(()) } else { bail!("failed: {}", failed.join(", ")) }
}

/// Adds a cost to each curve.
fn add(curves: &mut [Curve], size: u32, costs: &[f64]) {
    for (curve, cost) in curves.iter_mut().zip(costs) {
        curve.points.push((f64::from(size), *cost));
    }
}

/// Returns the time of a command in seconds: the median of several runs, or of one if it is slow.
fn seconds(command: impl Fn() -> Command) -> Result<f64> {
    let first = times(1, || process::run(command(), LIMIT).map(drop))?[0].as_secs_f64();
    if first > SLOW {
        return Ok(first);
    }
    Ok(times(REPEATS, || process::run(command(), LIMIT).map(drop))?[REPEATS / 2].as_secs_f64())
}

/// Returns the sizes from 10 on, each ten times the one before, and the largest.
fn decades(largest: u32) -> Vec<u32> {
    let mut sizes: Vec<u32> =
        std::iter::successors(Some(10_u32), |size| size.checked_mul(10)).take_while(|size| *size < largest).collect();
    sizes.push(largest);
    sizes
}

/// Times the set-up and the end of streams.
fn flows(many: &ManyRecords, _: &Arguments, curves: &mut [Curve]) -> Result<()> {
    let mut agent = Running::start(many.linerate(&["serve", "--ephemeral", "--listen", AGENT]))?;
    let url = agent.first_line(START_LIMIT)?;
    let time = format!("{}ms", FLOWS_TIME.as_millis());
    for count in FLOWS {
        let flows = count.to_string();
        let line = ["stream", "local", &url, "--flows", &flows, "--time", &time, "--warmup", "0s", "--repeats", "1"];
        let whole = seconds(|| many.linerate(&line))?;
        add(curves, count, &[whole - FLOWS_TIME.as_secs_f64()]);
    }
    Ok(())
}

/// Times the start and the removal of labs with a bridge.
fn hosts(many: &ManyRecords, _: &Arguments, curves: &mut [Curve]) -> Result<()> {
    let bench = Path::new(FOLDER).join("growth-bench.toml");
    let path = bench.to_string_lossy().into_owned();
    for count in HOSTS {
        let names: Vec<String> = (1..=count).map(|number| format!("h{number}")).collect();
        std::fs::write(&bench, format!("name = \"grown\"\nhosts = {names:?}\n")).context("writing the bench")?;
        let mut labs = Vec::new();
        let time_up = times(1, || {
            labs.push(Lab::up_with(Some(&many.program), Path::new(FOLDER), &["--bench", &path], &[])?);
            Ok(())
        })?;
        let time_down = times(1, || labs.drain(..).try_for_each(Lab::down))?;
        add(curves, count, &[time_up[0].as_secs_f64(), time_down[0].as_secs_f64()]);
    }
    Ok(())
}

/// Measures records of many repeats, and their reports.
fn repeats(many: &ManyRecords, arguments: &Arguments, curves: &mut [Curve]) -> Result<()> {
    let mut sizes = decades(arguments.repeats);
    sizes.insert(0, 1);
    for count in sizes {
        let repeats = count.to_string();
        let line = ["stream", "local", "--time", "50ms", "--warmup", "0s", "--repeats", &repeats, "--json"];
        let record = process::run(many.linerate(&line), LIMIT + count * Duration::from_secs(1))?.stdout;
        let [time, page] = report_of_record(many, &record)?;
        add(curves, count, &[time, page, record.len() as f64]);
    }
    Ok(())
}

/// Measures reports of many results.
fn results(many: &ManyRecords, _: &Arguments, curves: &mut [Curve]) -> Result<()> {
    let measured = many.measured()?;
    for count in RESULTS {
        let costs = report_of_record(many, &multiply(measured.clone(), count)?.to_string())?;
        add(curves, count, &costs);
    }
    Ok(())
}

/// Measures the list and the size of full stores.
fn records(many: &ManyRecords, arguments: &Arguments, curves: &mut [Curve]) -> Result<()> {
    for count in decades(arguments.records).into_iter().filter(|count| *count >= 100) {
        let many = ManyRecords::new(Some(&many.program), Path::new(FOLDER))?;
        many.fill(count)?;
        let list = seconds(|| many.linerate(&["results", "list"]))?;
        let search = seconds(|| many.linerate(&["results", "list", "--filter", "nosuch"]))?;
        add(curves, count, &[list, search, many.bytes()? as f64]);
    }
    Ok(())
}

/// Measures pages of imported studies.
fn cells(many: &ManyRecords, _: &Arguments, curves: &mut [Curve]) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let study = folder.path().join("grown.toml");
    std::fs::write(&study, STUDY).context("writing the study")?;
    for (rows, columns) in CELLS {
        let mut data = "row,column,mbps\n".to_owned();
        for row in 0..rows {
            for column in 0..columns {
                writeln!(data, "r{row},c{column},{}", 50 + row % 7 + column % 11)?;
            }
        }
        std::fs::write(folder.path().join("grown.csv"), data).context("writing the study's data")?;
        let [time, page] = report(many, &study)?;
        add(curves, rows * columns, &[time, page]);
        if time > SLOW {
            println!("cells of a study: larger sizes are left out, because {} took {time:.0} s", rows * columns);
            break;
        }
    }
    Ok(())
}

/// Returns the time of the report of a record, in seconds, and the bytes of its page.
fn report_of_record(many: &ManyRecords, record: &str) -> Result<[f64; 2]> {
    let file = Path::new(FOLDER).join("growth-record.json");
    std::fs::write(&file, record).context("writing the record")?;
    report(many, &file)
}

/// Returns the time of the report of a record or study in a file, in seconds, and the bytes of its page.
fn report(many: &ManyRecords, file: &Path) -> Result<[f64; 2]> {
    let page = Path::new(FOLDER).join("growth.html");
    let time = seconds(|| {
        let mut command = Command::new(&many.program);
        command.arg("report").arg(file).arg("--out").arg(&page);
        command
    })?;
    Ok([time, std::fs::metadata(&page)?.len() as f64])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_end_with_the_largest() {
        assert_eq!(decades(30_000), [10, 100, 1_000, 10_000, 30_000]);
        assert_eq!(decades(1_000), [10, 100, 1_000]);
        assert_eq!(decades(u32::MAX).last(), Some(&u32::MAX));
    }
}
