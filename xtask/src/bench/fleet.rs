//! Fleets: faults during a mesh run, and the cost of large fleets.

mod audit;
mod faults;
mod scale;

use anyhow::Result;
use clap::Args;
use std::path::PathBuf;

/// Options of the benchmark.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Instead: plant faults during a mesh run and check the records against the agents' own logs. Takes half an hour.
    #[arg(long)]
    faults: bool,
    /// Number of times each fault is planted.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100), requires = "faults")]
    repeats: u32,
    /// Seed of the moments of the faults.
    #[arg(long, default_value_t = 1, requires = "faults")]
    seed: u64,
    /// Only faults with this in their names, as in `kill` or `nats`.
    #[arg(long, requires = "faults")]
    only: Option<String>,
    /// Sizes of the simulated fleets, in agents.
    #[arg(long, value_delimiter = ',', default_value = "100,1000,10000", conflicts_with = "faults")]
    agents: Vec<u32>,
    /// Use this linerate instead of the one as it is released, built now.
    #[arg(long)]
    program: Option<PathBuf>,
}

/// Runs the benchmark.
pub(super) fn run(arguments: &Arguments) -> Result<()> {
    if arguments.faults {
        return faults::run(&faults::Options {
            repeats: arguments.repeats,
            seed: arguments.seed,
            only: arguments.only.as_deref(),
            program: arguments.program.as_deref(),
        });
    }
    scale::run(&arguments.agents, arguments.program.as_deref())
}
