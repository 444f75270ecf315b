//! linerate against its peers on the same link, and linerate's own cost.

mod compare;
mod figure;
mod frames;
mod lab;
mod overhead;
mod peers;
mod read;
mod work;

use anyhow::Result;
use clap::Subcommand;
use std::path::{Path, PathBuf};

/// What to measure.
#[derive(Subcommand)]
pub(crate) enum Bench {
    /// linerate and every installed peer in turn over one link; ratios with their spread.
    Streams {
        /// How often each tool runs each work.
        #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
        repeats: u32,
        /// How long one run measures.
        #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=60))]
        seconds: u32,
        /// Only works whose name contains this, as in `tcp` or `udp-64`.
        #[arg(long)]
        only: Option<String>,
        /// Look for peers here before PATH, for versions the distribution does not have.
        #[arg(long)]
        peer_path: Option<PathBuf>,
        /// Use this linerate instead of a release build made now.
        #[arg(long)]
        program: Option<PathBuf>,
    },
    /// The frame tester's engine against a bare loop and trafgen, and how well it keeps a pace.
    Frames {
        /// How often each way runs.
        #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
        repeats: u32,
        /// How long one run sends.
        #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=60))]
        seconds: u32,
    },
    /// CPU use of agent and observer while a trial runs.
    Overhead {
        /// How often each load runs.
        #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
        repeats: u32,
        /// How long one trial measures.
        #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=60))]
        seconds: u32,
        /// Use this linerate instead of a release build made now.
        #[arg(long)]
        program: Option<PathBuf>,
    },
}

/// Measures.
pub(crate) fn run(bench: &Bench) -> Result<()> {
    let folder = Path::new("target/bench");
    match bench {
        Bench::Streams { repeats, seconds, only, peer_path, program } => compare::run(&compare::Comparison {
            folder,
            repeats: *repeats,
            seconds: *seconds,
            only: only.as_deref(),
            peer_path: peer_path.as_deref(),
            program: program.as_deref(),
        }),
        Bench::Frames { repeats, seconds } => {
            frames::run(&frames::Frames { folder, repeats: *repeats, seconds: *seconds })
        }
        Bench::Overhead { repeats, seconds, program } => overhead::run(program.as_deref(), folder, *seconds, *repeats),
    }
}
