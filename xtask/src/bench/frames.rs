//! Compares the frame tester's engine with a bare loop and a packet-socket generator, and checks its pace.
//!
//! Each run is a process with its own network namespace (crates/frames/benches/engine.rs). In each repeat every way
//! runs once, in an order that rotates, and ratios are taken within a repeat.

use super::figure::Spread;
use super::lab::build;
use crate::process;
use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Ways to send frames. Each reports `frames_per_s`.
const WAYS: &[(&str, &str)] = &[
    ("xdp", "XDP engine, one core for both ends"),
    ("xdp-two", "XDP engine, a core for each end"),
    ("bare", "bare loop into a dropping receiver, one core"),
    ("bare-two", "bare loop into a dropping receiver, a core for each end"),
    ("packet", "packet-socket engine"),
    ("trafgen", "trafgen (netsniff-ng), one core"),
];

/// Minimum ratio of one way's rate to another's.
const RATIOS: &[(&str, &str, f64)] = &[("xdp", "bare", 0.85), ("xdp-two", "bare", 0.95), ("xdp", "trafgen", 7.0)];

/// Paces to keep, in frames per second.
const PACES: &[&str] = &["1000", "10000", "100000", "1000000", "3000000"];
/// Maximum error of the mean pace, as a share.
const PACE_GOAL: f64 = 0.001;

/// Pace at which the gaps between frames are checked, in frames per second.
const GAPS: &str = "100000";
/// Maximum error of the gaps' 99th percentile, in nanoseconds.
const GAP_GOAL_NS: f64 = 2_000.0;

/// Options of the benchmark.
pub(super) struct Frames<'a> {
    pub(super) folder: &'a Path,
    pub(super) repeats: u32,
    pub(super) seconds: u32,
}

/// Figures of one way and rate in each run. `None` if the run failed.
type Runs = Vec<Option<BTreeMap<String, f64>>>;

/// Runs all ways and paces, prints the results and writes them as JSON.
pub(super) fn run(frames: &Frames<'_>) -> Result<()> {
    let engine = build(&["--package", "linerate-frames", "--bench", "engine"], "engine")?;
    process::catch_interrupts()?;
    let mut works: Vec<Vec<&str>> = WAYS.iter().map(|(way, _)| vec![*way]).collect();
    works.extend(PACES.iter().map(|rate| vec!["pace", *rate]));
    works.push(vec!["gaps", GAPS]);
    let mut table: Vec<Runs> = vec![Runs::new(); works.len()];
    let result = measure(&engine, frames, &works, &mut table);

    let runs: BTreeMap<String, Runs> = works.iter().map(|work| work.join(" ")).zip(table).collect();
    print(&runs);
    std::fs::create_dir_all(frames.folder).with_context(|| format!("making {}", frames.folder.display()))?;
    let file = frames.folder.join("frames.json");
    let json = json!({ "repeats": frames.repeats, "seconds": frames.seconds, "runs": runs });
    std::fs::write(&file, serde_json::to_string_pretty::<Value>(&json)?)
        .with_context(|| format!("writing {}", file.display()))?;
    println!("\nkept in {}", file.display());
    result
}

fn measure(engine: &PathBuf, frames: &Frames<'_>, works: &[Vec<&str>], table: &mut [Runs]) -> Result<()> {
    let seconds = frames.seconds.to_string();
    let mut failure = None;
    for repeat in 0..frames.repeats as usize {
        for turn in 0..works.len() {
            let index = (turn + repeat) % works.len();
            let mut command = Command::new(engine);
            command.arg(works[index][0]).arg(&seconds).args(&works[index][1..]);
            let output = process::run(command, Duration::from_secs(u64::from(frames.seconds) * 2 + 20));
            process::check_interrupt()?;
            let name = works[index].join(" ");
            let figures = output.and_then(|output| read(&output.stdout));
            match &figures {
                Ok(figures) => eprintln!("[{}/{}] {name}: {figures:?}", repeat + 1, frames.repeats),
                Err(error) => eprintln!("[{}/{}] {name}: FAILED: {error:#}", repeat + 1, frames.repeats),
            }
            table[index].push(figures.map_err(|error| failure = Some(error.context(name))).ok());
        }
    }
    failure.map_or(Ok(()), Err)
}

/// Reads the figures of a run: one line with a name and a value for each.
pub(super) fn read(output: &str) -> Result<BTreeMap<String, f64>> {
    let figures = output.lines().map(|line| {
        let (name, value) = line.split_once(' ').with_context(|| format!("no figure in `{line}`"))?;
        Ok((name.to_owned(), value.parse().with_context(|| format!("no number in `{line}`"))?))
    });
    let figures = figures.collect::<Result<BTreeMap<_, _>>>()?;
    if figures.is_empty() {
        bail!("the run wrote no figure");
    }
    Ok(figures)
}

fn print(runs: &BTreeMap<String, Runs>) {
    println!("\n{:<56} {:>10} {:>22}", "64-byte frames/s, millions", "median", "min..max");
    for (way, description) in WAYS {
        let Some(spread) = spread(runs, way, "frames_per_s") else { continue };
        let [median, low, high] = [spread.median, spread.low, spread.high].map(|rate| rate / 1e6);
        println!("{description:<56} {median:>10.3} {:>22}", format!("{low:.3}..{high:.3}"));
    }
    println!();
    for (ours, other, goal) in RATIOS {
        let Some(ratio) = ratio(runs, ours, other) else { continue };
        println!("{ours} / {other}: {ratio}; goal {goal}: {}", met(ratio.median >= *goal));
    }
    if let Some(ratio) = ratio(runs, "xdp-two", "bare-two") {
        println!("xdp-two / bare-two: {ratio}");
    }
    println!("\n{:<24} {:>14} {:>24} {:>8}", "pace, frames/s", "error, %", "min..max", "lost");
    for rate in PACES {
        let work = format!("pace {rate}");
        let Some(error) = spread(runs, &work, "rate_error") else { continue };
        let lost = spread(runs, &work, "lost").map_or(0.0, |lost| lost.high);
        let [median, low, high] = [error.median, error.low, error.high].map(|share| share * 100.0);
        let range = format!("{low:.4}..{high:.4}");
        println!("{rate:<24} {median:>14.4} {range:>24} {lost:>8}  {}", met(error.median < PACE_GOAL));
    }
    for figure in ["gap_error_ns_p50", "gap_error_ns_p99"] {
        let Some(gaps) = spread(runs, &format!("gaps {GAPS}"), figure) else { continue };
        let goal = if figure.ends_with("p99") { met(gaps.median <= GAP_GOAL_NS) } else { "" };
        println!("{figure} at {GAPS}/s: {} ({}..{}) {goal}", gaps.median, gaps.low, gaps.high);
    }
}

pub(super) fn met(met: bool) -> &'static str {
    if met { "met" } else { "NOT MET" }
}

fn spread(runs: &BTreeMap<String, Runs>, work: &str, figure: &str) -> Option<Spread> {
    Spread::of(runs.get(work)?.iter().flatten().filter_map(|figures| figures.get(figure).copied()))
}

/// Returns the ratio of one way's rate to another's, over the repeats that both finished.
fn ratio(runs: &BTreeMap<String, Runs>, ours: &str, other: &str) -> Option<Spread> {
    let pairs = runs.get(ours)?.iter().zip(runs.get(other)?);
    Spread::of(
        pairs.filter_map(|(ours, other)| {
            Some(ours.as_ref()?.get("frames_per_s")? / other.as_ref()?.get("frames_per_s")?)
        }),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_read() {
        let figures = read("rate_error 0.0001\nlost 3\n").unwrap();
        assert_eq!((figures["rate_error"], figures["lost"]), (0.0001, 3.0));
        assert!(read("").is_err() && read("frames_per_s many").is_err());
    }

    #[test]
    fn ratios_are_taken_within_a_repeat() {
        let run = |rate: f64| Some(BTreeMap::from([("frames_per_s".to_owned(), rate)]));
        let runs = BTreeMap::from([
            ("xdp".to_owned(), vec![run(4.0), run(9.0), run(2.0)]),
            ("bare".to_owned(), vec![run(5.0), None, run(2.0)]),
        ]);
        assert_eq!(ratio(&runs, "xdp", "bare"), Some(Spread { median: 0.9, low: 0.8, high: 1.0 }));
        assert_eq!(ratio(&runs, "xdp", "trafgen"), None);
    }
}
