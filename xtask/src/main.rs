//! The project's own chores. `cargo xtask --help` lists them.

mod bench;
mod bpf;
mod busy;
mod check;
mod deny;
mod fleet;
mod fuzz;
mod kubernetes;
mod layers;
mod metadata;
mod package;
mod process;
mod sanitize;
mod snapshots;
mod test;
mod truth;
mod wine;

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// The project's own chores.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Run the tests of one tier and print how long they took. Without an option, run those that need no root.
    Test(test::Arguments),
    /// Run every check that is not a test: format, layers, kernel programs, clippy, documentation.
    Check,
    /// Check that dependencies point down, that the pure crates are pure, and that every path in ARCHITECTURE.md
    /// exists.
    Layers,
    /// Compile the programs for the kernel (`*.bpf.c`) into the objects next to them.
    Bpf(bpf::Arguments),
    /// Check licences, duplicate versions, sources and yanked versions of all dependencies by deny.toml.
    Deny,
    /// Look for inputs that make a parser of foreign bytes panic, hang or fill memory (libFuzzer).
    Fuzz(fuzz::Arguments),
    /// Run the tests of the crate with `unsafe` under AddressSanitizer and Miri (nightly compiler).
    Sanitize,
    /// Build a release: static programs, .tar.gz, .deb, .rpm, the image, bills of materials, checksums.
    Package(package::Arguments),
    /// Check the Helm chart and the dashboards by the types of Kubernetes and Grafana (needs Go).
    Kubernetes(kubernetes::Arguments),
    /// Write anew the files that tests compare outputs with: snapshots, schemas, rendered studies.
    Snapshots,
    /// Compare linerate with its peers, or measure its own cost.
    #[command(subcommand)]
    Bench(bench::Bench),
    /// Run a fleet in a lab for three minutes: 12 agents at 4 sites with NATS, PostgreSQL and Prometheus, its matrix and pages.
    Fleet(fleet::Arguments),
    /// Plant every limit in generated cases and count how often verdicts name it.
    Truth(truth::Arguments),
}

fn main() -> ExitCode {
    let chore = Arguments::parse().chore;
    let result = go_to_root().and_then(|()| match chore {
        Chore::Test(arguments) => test::run(&arguments),
        Chore::Check => check::run(),
        Chore::Layers => layers::run(),
        Chore::Bpf(arguments) => bpf::run(&arguments),
        Chore::Deny => deny::run(),
        Chore::Fuzz(arguments) => fuzz::run(&arguments),
        Chore::Sanitize => sanitize::run(),
        Chore::Package(arguments) => package::run(&arguments),
        Chore::Kubernetes(arguments) => kubernetes::run_all(&arguments),
        Chore::Snapshots => snapshots::run(),
        Chore::Bench(bench) => bench::run(&bench),
        Chore::Fleet(arguments) => fleet::run(&arguments),
        Chore::Truth(arguments) => truth::run(&arguments),
    });
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            if error.is::<truth::BadInput>() { ExitCode::from(2) } else { ExitCode::FAILURE }
        }
    }
}

/// Changes to the project's root, because chores work on the whole project.
fn go_to_root() -> Result<()> {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    std::env::set_current_dir(root).with_context(|| format!("going to {root}"))
}
