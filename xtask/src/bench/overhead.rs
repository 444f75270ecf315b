//! What the agent and its observer cost while a trial runs, beside the engine's threads.

use super::lab::Lab;
use crate::process;
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::path::Path;
use std::time::Duration;

/// Share of a core that the agent may use beside its engine.
const GOAL: f64 = 0.01;

/// What is run; each on both agents.
const LOADS: &[&[&str]] = &[
    &["stream", "a", "b"],
    &["stream", "a", "b", "--udp", "--size", "64", "--no-offload"],
    &["stream", "a", "b", "--udp", "--size", "1472", "--rate", "100Mbit/s"],
    &["transact", "a", "b", "--tcp"],
];

/// One agent's cost in one trial.
#[derive(Debug, PartialEq)]
struct Cost {
    trial: String,
    host: String,
    /// None if the observation names no engine thread, so that the engine's part cannot be told from the rest.
    share: Option<f64>,
}

/// Runs the loads and prints the cost of every agent in every trial.
pub(super) fn run(program: Option<&Path>, folder: &Path, seconds: u32, repeats: u32) -> Result<()> {
    process::catch_interrupts()?;
    let lab = Lab::up(program, folder)?;
    let mut costs = Vec::new();
    for load in LOADS {
        let timing = ["--time".to_owned(), format!("{seconds}s"), "--repeats".to_owned(), repeats.to_string()];
        let arguments: Vec<String> = load.iter().map(|&word| word.to_owned()).chain(timing).collect();
        let limit = Duration::from_secs(u64::from(seconds + 20) * u64::from(repeats));
        costs.extend(read(&process::run(lab.linerate(&arguments), limit)?.stdout)?);
    }
    lab.down()?;
    println!("{:<32} {:<8} {:>14}", "trial", "host", "% of a core");
    for cost in &costs {
        let share = cost.share.map_or("cannot tell".to_owned(), |share| format!("{:.3}", share * 100.0));
        println!("{:<32} {:<8} {share:>14}", cost.trial, cost.host);
    }
    let worst = costs.iter().filter_map(|cost| cost.share).fold(0.0, f64::max);
    println!("worst {:.3} %; goal: under {:.0} %", worst * 100.0, GOAL * 100.0);
    if worst >= GOAL {
        bail!("agent and observer cost {:.2} % of a core, the goal is under {:.0} %", worst * 100.0, GOAL * 100.0);
    }
    let untold = costs.iter().filter(|cost| cost.share.is_none()).count();
    if untold > 0 {
        bail!(
            "{untold} of {} observations name no engine thread: what the agent cost there cannot be told",
            costs.len()
        );
    }
    Ok(())
}

/// Each agent's CPU time in each trial of a record, its engine's threads taken off, as a share of the window.
fn read(record: &str) -> Result<Vec<Cost>> {
    let record: Value = serde_json::from_str(record).context("reading linerate's record as JSON")?;
    let trials = record["trials"].as_array().filter(|trials| !trials.is_empty()).context("the record has no trials")?;
    let mut costs = Vec::new();
    for trial in trials {
        let name = trial["trial"]["name"].as_str().unwrap_or("?");
        for (host, seen) in trial["hosts"].as_object().context("a trial without hosts")? {
            let number = |field: &str| seen[field].as_f64().with_context(|| format!("host {host} lacks {field}"));
            let threads = seen["threads"].as_array().with_context(|| format!("host {host} lacks threads"))?;
            let engine: f64 = threads.iter().filter_map(|thread| thread["cpu"].as_f64()).sum();
            let window = number("window")?;
            if window <= 0.0 {
                bail!("trial {name}: host {host} observed an empty window");
            }
            let share = (!threads.is_empty()).then_some((number("agent_cpu")? - engine) / window);
            costs.push(Cost { trial: name.to_owned(), host: host.clone(), share });
        }
    }
    Ok(costs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_the_engine_off_where_it_is_known() {
        let record = r#"{"trials":[{"trial":{"name":"tcp"},"hosts":{
            "a":{"window":2000000000,"agent_cpu":1510000000,"threads":[{"cpu":1000000000},{"cpu":500000000}]},
            "b":{"window":1000000000,"agent_cpu":470000000,"threads":[]}}}]}"#;
        let costs = read(record).unwrap();
        assert_eq!(costs.len(), 2);
        assert!((costs[0].share.unwrap() - 0.005).abs() < 1e-12, "{costs:?}");
        assert_eq!(costs[1], Cost { trial: "tcp".into(), host: "b".into(), share: None });
    }

    #[test]
    fn refuses_a_record_that_says_nothing() {
        assert!(read(r#"{"trials":[]}"#).is_err());
        let empty = r#"{"trials":[{"trial":{"name":"x"},"hosts":{"a":{"window":0,"agent_cpu":0,"threads":[]}}}]}"#;
        assert!(read(empty).unwrap_err().to_string().contains("empty window"));
    }
}
