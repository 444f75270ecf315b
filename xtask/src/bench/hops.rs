//! Cost of `--hops`: streams and transactions through three routers with the probes beside them and without.

use super::figure::Unit;
use super::lab::{Lab, RECEIVER, SENDER};
use super::pairs::{self, Load};
use super::read::{self, WorkUnit, Written};
use super::runs;
use super::{Comparison, FOLDER};
use crate::process;
use anyhow::Result;
use std::path::Path;
use std::time::Duration;

/// Minimum median ratio of the rate with `--hops` to the rate without.
const GOAL: f64 = 0.99;
/// Names of the two ways.
const WAYS: [&str; 2] = ["with --hops", "without"];

const LOADS: &[Load<'_>] = &[
    Load { name: "tcp", line: "stream --congestion cubic", unit: Unit::Payload },
    Load { name: "udp-1448", line: "stream --udp --size 1448", unit: Unit::Payload },
    Load { name: "udp-64", line: "stream --udp --size 64 --no-offload", unit: Unit::Datagrams },
    Load { name: "tcp-rr", line: "transact --tcp", unit: Unit::Transactions },
    Load { name: "udp-rr", line: "transact --udp", unit: Unit::Transactions },
];

/// Runs the comparison, prints it, and fails if a ratio is below the goal.
pub(super) fn run(comparison: &Comparison) -> Result<()> {
    process::catch_interrupts()?;
    let lab = Lab::up_with(comparison.program.as_deref(), Path::new(FOLDER), &["--routers", "3"], &[])?;
    let compared = pairs::run(comparison, LOADS, WAYS, Some(GOAL), |load, way| {
        let hops = if way == 0 { "--hops" } else { "" };
        let line = runs::between(load.line, SENDER, RECEIVER);
        let arguments = format!("{line} {hops} --time {}s --repeats 1", comparison.seconds);
        let arguments: Vec<String> = arguments.split_whitespace().map(str::to_owned).collect();
        // The idle path takes as long as the trial.
        let limit = Duration::from_secs(u64::from(2 * comparison.seconds) + 30);
        let output = process::run(lab.linerate(&arguments), limit)?;
        let written = Written { client: &output.stdout, server: "" };
        Ok(read::linerate(&written, WorkUnit { unit: load.unit, datagram: None })?.value)
    });
    lab.down()?;
    compared
}
