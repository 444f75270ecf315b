//! Rate and cost of NFS calls against linerate's own server over a link, on the same cores.

use super::figure::Spread;
use super::lab::{Lab, RECEIVER, SENDER};
use crate::process;
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::path::Path;
use std::time::Duration;

/// Minimum calls per second of a load of small calls, with the server on the same two cores.
const GOAL_PER_S: f64 = 40_000.0;
/// Maximum CPU time of the calling threads for each call, in microseconds.
const GOAL_US: f64 = 20.0;

/// Mix and transport of each load.
const LOADS: &[(&str, &str)] =
    &[("null", "--tcp"), ("getattr", "--tcp"), ("getattr", "--udp"), ("sfs97-like", "--tcp")];
/// Mixes of small calls, for which the goals apply.
const SMALL: &[&str] = &["null", "getattr"];

/// Figures of one trial.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Call {
    per_s: f64,
    /// CPU time of the engine's threads on the calling host, for each call.
    calling_us: f64,
    /// CPU time of the engine's threads on the answering host, for each call.
    answering_us: f64,
}

/// Runs the loads, prints their figures, and fails if a goal is missed.
pub(super) fn run(program: Option<&Path>, folder: &Path, seconds: u32, repeats: u32) -> Result<()> {
    process::catch_interrupts()?;
    let lab = Lab::up(program, folder)?;
    println!("{:<20} {:>12} {:>24} {:>12} {:>12}", "mix", "calls/s", "lowest to highest", "us calling", "us serving");
    let mut missed = Vec::new();
    for (mix, transport) in LOADS {
        let timing = ["--time".to_owned(), format!("{seconds}s"), "--repeats".to_owned(), repeats.to_string()];
        let words = ["nfs", SENDER, RECEIVER, "--mix", mix, transport, "--connections", "2", "--outstanding", "64"];
        let arguments: Vec<String> = words.iter().map(|&word| word.to_owned()).chain(timing).collect();
        // Each trial creates its files first.
        let limit = Duration::from_secs(u64::from(seconds + 40) * u64::from(repeats));
        let calls = read(&process::run(lab.linerate(&arguments), limit)?.stdout)?;
        let spread = |of: fn(&Call) -> f64| Spread::of(calls.iter().map(of)).context("no trial ran");
        let per_s = spread(|call| call.per_s)?;
        let calling = spread(|call| call.calling_us)?;
        let answering = spread(|call| call.answering_us)?;
        let range = format!("{:.0} to {:.0}", per_s.low, per_s.high);
        let name = format!("{mix} {transport}");
        println!("{name:<20} {:>12.0} {range:>24} {:>12.2} {:>12.2}", per_s.median, calling.median, answering.median);
        if SMALL.contains(mix) && (per_s.median < GOAL_PER_S || calling.median >= GOAL_US) {
            missed.push(name);
        }
    }
    lab.down()?;
    println!("goals for null and getattr: {GOAL_PER_S:.0} calls/s, under {GOAL_US:.0} us of CPU calling");
    if !missed.is_empty() {
        bail!("missed by {}", missed.join(", "));
    }
    Ok(())
}

/// Reads every counted trial between two hosts from a record. Calibrations on one host are left out.
fn read(record: &str) -> Result<Vec<Call>> {
    let record: Value = serde_json::from_str(record).context("reading linerate's record as JSON")?;
    let trials = record["trials"].as_array().context("the record has no trials")?;
    let counted = trials.iter().filter(|trial| trial["standing"]["is"] == "counted");
    let between = counted.filter(|trial| trial["hosts"].as_object().is_some_and(|hosts| hosts.len() == 2));
    between
        .map(|trial| {
            let transactions = &trial["counts"][0]["flows"][0]["client"]["transactions"];
            let number = |value: &Value, what| value.as_f64().with_context(|| format!("a trial lacks {what}"));
            let completed = number(&transactions["completed"], "what was completed")?;
            let window_ns = number(&transactions["window"], "its window")?;
            if completed <= 0.0 || window_ns <= 0.0 {
                bail!("a trial completed no call");
            }
            let engine_us = |host: &str| {
                let threads = trial["hosts"][host]["threads"].as_array();
                let threads = threads.filter(|threads| !threads.is_empty());
                let threads = threads.with_context(|| format!("host {host} names no engine thread"))?;
                Ok::<_, anyhow::Error>(threads.iter().filter_map(|thread| thread["cpu"].as_f64()).sum::<f64>() / 1e3)
            };
            Ok(Call {
                per_s: completed / window_ns * 1e9,
                calling_us: engine_us(SENDER)? / completed,
                answering_us: engine_us(RECEIVER)? / completed,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_and_cost_are_read_from_trials_between_two_hosts() {
        let record = r#"{"trials":[
            {"standing":{"is":"counted"},"hosts":{"a":{"threads":[]}},"counts":[]},
            {"standing":{"is":"spoilt"},"hosts":{"a":{"threads":[]},"b":{"threads":[]}},"counts":[]},
            {"standing":{"is":"counted"},"hosts":{"a":{"threads":[{"cpu":300000000},{"cpu":100000000}]},"b":{"threads":[{"cpu":200000000}]}},
             "counts":[{"flows":[{"client":{"transactions":{"completed":50000,"window":500000000}}}]}]}]}"#;
        let expected = Call { per_s: 100_000.0, calling_us: 8.0, answering_us: 4.0 };
        assert_eq!(read(record).unwrap(), [expected]);
        let idle = record.replace("50000,", "0,");
        assert!(read(&idle).unwrap_err().to_string().contains("completed no call"));
    }
}
