//! Accuracy of the lab's path. docs/benchmarks.md has the goals. Each run is a process with its own lab
//! (crates/lab/benches/path.rs).

use super::figure::Spread;
use super::frames::{met, read};
use super::lab::build;
use crate::process;
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Offered loads: name, frames per second, and bytes of a frame without FCS.
const WORKS: &[(&str, u32, u32)] = &[("full frames", 81_000, 1_514), ("small frames", 300_000, 60)];

/// Maximum 99th percentile of the delay's error, in nanoseconds.
const DELAY_GOAL_NS: f64 = 100_000.0;

/// Maximum percentage of the frames that leave the path more than 100 us late.
const LATE_GOAL_PERCENT: f64 = 1.0;

/// Minimum share of the frames due that the sender must offer for a run to count.
const OFFERED: f64 = 0.99;

/// Options of the benchmark.
pub(super) struct Paths<'a> {
    pub(super) folder: &'a Path,
    pub(super) repeats: u32,
    pub(super) seconds: u32,
}

/// Runs all loads, prints the results and writes them as JSON.
pub(super) fn run(paths: &Paths<'_>) -> Result<()> {
    let program = build(&["--package", "linerate-lab", "--bench", "path"], "path")?;
    process::catch_interrupts()?;
    let mut runs: BTreeMap<&str, Vec<BTreeMap<String, f64>>> = BTreeMap::new();
    for repeat in 1..=paths.repeats {
        for (name, rate, bytes) in WORKS {
            let mut command = Command::new(&program);
            command.args([paths.seconds, *rate, *bytes].map(|number| number.to_string()));
            let output = process::run(command, Duration::from_secs(u64::from(paths.seconds) * 10 + 30))?;
            process::check_interrupt()?;
            let figures = read(&output.stdout).with_context(|| format!("{name}: {}", output.stderr))?;
            eprintln!("[{repeat}/{}] {name}: {figures:?}", paths.repeats);
            runs.entry(name).or_default().push(figures);
        }
    }
    for (name, rate, _) in WORKS {
        print(name, f64::from(*rate), &runs[name]);
    }
    std::fs::create_dir_all(paths.folder).with_context(|| format!("making {}", paths.folder.display()))?;
    let file = paths.folder.join("path.json");
    let json = json!({ "repeats": paths.repeats, "seconds": paths.seconds, "runs": runs });
    std::fs::write(&file, serde_json::to_string_pretty::<Value>(&json)?)
        .with_context(|| format!("writing {}", file.display()))?;
    println!("\nkept in {}", file.display());
    Ok(())
}

fn print(name: &str, rate: f64, runs: &[BTreeMap<String, f64>]) {
    let spread = |figure: &str| Spread::of(runs.iter().filter_map(|figures| figures.get(figure).copied()));
    let figure = |figure: &str| spread(figure).map_or(f64::NAN, |spread| spread.median);
    let offered = figure("offered_frames_per_s");
    println!(
        "\n{name}: {offered:.0} frames/s of {rate:.0} offered, {:.1} Mbit/s on the wire",
        figure("offered_bits_per_s") / 1e6
    );
    let lost = figure("sent") - figure("received");
    let kept_up = offered >= rate * OFFERED && lost == 0.0;
    println!("  lost: {lost}, for want of room: {}: {}", figure("unplanned"), met(kept_up));
    let share = figure("late_share") * 100.0;
    let goal = met(share <= LATE_GOAL_PERCENT);
    println!("  left more than 100 us late: {share:.3} %, the last by {:.1} us: {goal}", figure("latest_ns") / 1e3);
    for (label, field) in [("p50", "delay_error_ns_p50"), ("p99", "delay_error_ns_p99"), ("max", "delay_error_ns_max")]
    {
        let Some(spread) = spread(field) else { continue };
        let goal = if label == "p99" { met(spread.median <= DELAY_GOAL_NS) } else { "" };
        let [median, low, high] = [spread.median, spread.low, spread.high].map(|ns| ns / 1e3);
        println!("  delay off the planted one, {label}: {median:.1} us ({low:.1}..{high:.1}) {goal}");
    }
}
