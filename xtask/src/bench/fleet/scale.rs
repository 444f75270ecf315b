//! Cost of fleets by their size: simulated agents over a real NATS server and a real PostgreSQL.

use crate::bench::lab::find_or_build;
use crate::process::{self, catch_interrupts};
use anyhow::{Context, Result, ensure};
use std::path::Path;

/// Runs the benchmark of `crates/fleet/benches/scale.rs`, which prints the table.
pub(super) fn run(agents: &[u32], program: Option<&Path>) -> Result<()> {
    catch_interrupts()?;
    let program = find_or_build(program)?;
    let sizes: Vec<String> = agents.iter().map(u32::to_string).collect();
    let mut command = process::cargo();
    command.args(["bench", "--package", "linerate-fleet", "--bench", "scale", "--", "--program"]).arg(program);
    let status = command.args(["--agents", &sizes.join(",")]).status().context("starting `cargo bench`")?;
    ensure!(status.success(), "the benchmark failed; its message is above");
    Ok(())
}
