//! Accuracy of the measured offset between the hosts' clocks. Lab hosts share a clock, so the true offset is 0.

use super::lab::Lab;
use crate::process;
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::path::Path;
use std::time::Duration;

/// Maximum error of an offset, in nanoseconds.
const GOAL_NS: f64 = 50_000.0;
/// Share of the offsets with an error within [`GOAL_NS`] and within their stated uncertainty.
const SHARE: f64 = 0.95;

/// Estimated clock offset of one host in one trial, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Estimate {
    offset: f64,
    uncertainty: f64,
}

impl Estimate {
    fn is_good(self) -> bool {
        self.offset.abs() <= GOAL_NS && self.offset.abs() <= self.uncertainty
    }
}

/// Runs short trials and prints how far their offsets are from 0.
pub(super) fn run(program: Option<&Path>, folder: &Path, trials: u32) -> Result<()> {
    process::catch_interrupts()?;
    let lab = Lab::up(program, folder)?;
    let arguments = ["stream", "a", "b", "--time", "100ms", "--warmup", "50ms", "--repeats"];
    let arguments: Vec<String> = arguments.iter().map(|&word| word.to_owned()).chain([trials.to_string()]).collect();
    let output = process::run(lab.linerate(&arguments), Duration::from_secs(60 + u64::from(trials) * 5))?;
    let estimates = read(&output.stdout)?;
    lab.down()?;
    let good = estimates.iter().filter(|estimate| estimate.is_good()).count();
    let mut offsets: Vec<f64> = estimates.iter().map(|estimate| estimate.offset.abs() / 1e3).collect();
    let mut uncertainties: Vec<f64> = estimates.iter().map(|estimate| estimate.uncertainty / 1e3).collect();
    for values in [&mut offsets, &mut uncertainties] {
        values.sort_by(f64::total_cmp);
    }
    let at = |values: &[f64], percent: usize| values[(values.len() - 1) * percent / 100];
    println!("{:<14} {:>8} {:>8} {:>8}", "us", "p50", "p95", "max");
    for (name, values) in [("offset", &offsets), ("uncertainty", &uncertainties)] {
        println!("{name:<14} {:>8.1} {:>8.1} {:>8.1}", at(values, 50), at(values, 95), at(values, 100));
    }
    let share = good as f64 / estimates.len() as f64;
    println!(
        "{good} of {} within {:.0} us and within their uncertainty; goal: {:.0} %",
        estimates.len(),
        GOAL_NS / 1e3,
        SHARE * 100.0
    );
    if share < SHARE {
        bail!(
            "{:.1} % of the offsets are as good as they should be, the goal is {:.0} %",
            share * 100.0,
            SHARE * 100.0
        );
    }
    Ok(())
}

/// Reads the estimates of a record, one for each host and trial.
fn read(record: &str) -> Result<Vec<Estimate>> {
    let record: Value = serde_json::from_str(record).context("reading linerate's record as JSON")?;
    let trials = record["trials"].as_array().context("the record has no trials")?;
    let mut estimates = Vec::new();
    for trial in trials {
        let hosts = trial["hosts"].as_object().context("a trial without hosts")?;
        for host in hosts.keys() {
            let number = |field: &str| {
                let value = trial["clocks"][host][field].as_f64();
                value.with_context(|| format!("a trial has no {field} of the clock of host {host}"))
            };
            estimates.push(Estimate { offset: number("offset_ns")?, uncertainty: number("uncertainty")? });
        }
    }
    if estimates.is_empty() {
        bail!("the record has no trials");
    }
    Ok(estimates)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_host_of_every_trial_must_have_a_clock() {
        let with = |clocks: &str| format!(r#"{{"trials":[{{"hosts":{{"a":{{}},"b":{{}}}},"clocks":{clocks}}}]}}"#);
        let both = r#"{"a":{"offset_ns":-9000,"uncertainty":12000},"b":{"offset_ns":70000,"uncertainty":80000}}"#;
        let estimates = read(&with(both)).unwrap();
        assert_eq!(estimates.iter().map(|estimate| estimate.is_good()).collect::<Vec<_>>(), [true, false]);
        assert!(read(&with(r#"{"a":{"offset_ns":0,"uncertainty":1}}"#)).unwrap_err().to_string().contains("host b"));
        assert!(read(r#"{"trials":[]}"#).is_err());
    }

    #[test]
    fn offset_beyond_its_uncertainty_is_not_good() {
        assert!(!Estimate { offset: 9_000.0, uncertainty: 8_000.0 }.is_good());
    }
}
