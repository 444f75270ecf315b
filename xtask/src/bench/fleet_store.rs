//! A PostgreSQL store of a fleet's size. The example `fleet_scale` of crate `linerate-store` fills and queries it.

use crate::process;
use anyhow::{Context, Result, ensure};

/// Runs the benchmark with these numbers of records, hosts, sites, and peers of each host. Fails if a goal is not met.
pub(super) fn run(numbers: [u32; 4]) -> Result<()> {
    let mut command = process::cargo();
    command.args(["run", "--release", "--quiet", "--package", "linerate-store", "--example", "fleet_scale", "--"]);
    command.args(numbers.map(|number| number.to_string()));
    // Its table is shown as it grows.
    let status = command.status().context("running the example fleet_scale")?;
    ensure!(status.success(), "a goal was not met");
    Ok(())
}
