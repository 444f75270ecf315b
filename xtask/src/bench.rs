//! Compares linerate with its peers on the same link, and measures linerate's own cost.

mod against;
mod callgrind;
mod clock;
mod compare;
mod copy;
mod counters;
mod curve;
pub(crate) mod figure;
mod flags;
mod flames;
mod fleet;
mod fleet_store;
mod frames;
mod growth;
mod hops;
mod iperf3;
pub(crate) mod lab;
mod many_records;
mod nfs;
mod overhead;
mod pairs;
mod path;
mod peers;
mod ports;
pub(crate) mod read;
mod runs;
mod served;
mod startup;
mod store;
mod view;
mod why;
mod work;

use anyhow::Result;
use clap::{Args, Subcommand};
use std::path::{Path, PathBuf};

/// Folder of records and results.
const FOLDER: &str = "target/bench";

/// Options of a comparison of two or more tools that run the same loads in turn.
#[derive(Args)]
pub(crate) struct Comparison {
    /// Number of times each tool runs each load.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    repeats: u32,
    /// Seconds that each run measures.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=60))]
    seconds: u32,
    /// Only loads or links with this in their names, as in `tcp` or `udp-64`.
    #[arg(long)]
    only: Option<String>,
    /// Use this linerate instead of the one as it is released, built now.
    #[arg(long)]
    program: Option<PathBuf>,
}

impl Comparison {
    /// Returns whether the load or link of this name is selected.
    fn has(&self, name: &str) -> bool {
        self.only.as_ref().is_none_or(|only| name.contains(only))
    }
}

/// Benchmark to run.
#[derive(Subcommand)]
pub(crate) enum Bench {
    /// linerate and every installed peer in turn over one link. Prints ratios with their spread.
    Streams(compare::Arguments),
    /// The frame tester's engine against a bare loop and trafgen, and its accuracy of pace.
    Frames {
        /// Number of runs of each way.
        #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
        repeats: u32,
        /// Seconds that each run sends.
        #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=60))]
        seconds: u32,
    },
    /// linerate to iperf3's server and iperf3 to linerate's, compared with iperf3 to iperf3, at 100 Mbit/s, 1 Gbit/s
    /// and unlimited.
    Iperf3(Comparison),
    /// Cost of the port that all trials share, compared with `--data-ports`: streams and transactions over TCP and UDP.
    Ports(Comparison),
    /// Cost of `--hops`: streams and transactions through three routers, with the probes and without.
    Hops(Comparison),
    /// Accuracy of the lab's path with full and small frames, and of its delay.
    Path {
        /// Number of runs of each load.
        #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
        repeats: u32,
        /// Seconds that each run sends.
        #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=5))]
        seconds: u32,
    },
    /// NFS calls against linerate's own server over one link: calls per second, and CPU time of each.
    Nfs {
        /// Number of runs of each load.
        #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
        repeats: u32,
        /// Seconds that each trial measures.
        #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=60))]
        seconds: u32,
        /// Use this linerate instead of the one as it is released, built now.
        #[arg(long)]
        program: Option<PathBuf>,
    },
    /// `linerate copy` and its peers in turn: the same tree, storage, link and caches; ratios with their spread.
    Copy {
        /// Number of copies with each tool.
        #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
        repeats: u32,
        /// The tree, made as `linerate copy --tree` makes it.
        #[arg(long, default_value = "like:system")]
        tree: String,
        /// Folder in which the tree is made and copied.
        #[arg(long, default_value = "target/bench")]
        storage: PathBuf,
        /// Only ways with this in their names, as in `path`.
        #[arg(long)]
        only: Option<String>,
        /// Time goes on until all is durable, for every tool.
        #[arg(long)]
        durable: bool,
        /// Instead: a million files, and what memory the agents took for them.
        #[arg(long, conflicts_with_all = ["tree", "table", "only"])]
        million: bool,
        /// Instead: each way at 100 Mbit/s and unshaped, to one client and to three, as a table. Takes half an hour.
        #[arg(long)]
        table: bool,
        /// Use this linerate instead of the one as it is released, built now.
        #[arg(long)]
        program: Option<PathBuf>,
    },
    /// CPU use of agent and observer while a trial runs.
    Overhead {
        /// Number of runs of each load.
        #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
        repeats: u32,
        /// Seconds that each trial measures.
        #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=60))]
        seconds: u32,
        /// Use this linerate instead of the one as it is released, built now.
        #[arg(long)]
        program: Option<PathBuf>,
    },
    /// Accuracy of the offset between the hosts' clocks.
    Clock {
        /// Trials; each gives an offset for either host.
        #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1000))]
        trials: u32,
        /// Use this linerate instead of the one as it is released, built now.
        #[arg(long)]
        program: Option<PathBuf>,
    },
    /// Cost of fleets of simulated agents by their size, or faults during a mesh run.
    Fleet(fleet::Arguments),
    /// Cost of linerate as work grows: flows, hosts, repeats, results, records, cells. Prints fitted exponents.
    Growth(growth::Arguments),
    /// Time to the first figure and to the end of commands, next to iperf3 and xfr.
    Startup {
        /// Number of runs of each command.
        #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1000))]
        repeats: u32,
        /// Use this linerate instead of the one as it is released, built now.
        #[arg(long)]
        program: Option<PathBuf>,
    },
    /// Time that a user waits for a store of many records, and for a report of many results.
    Store {
        /// Records in the store.
        #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(2..=10_000_000))]
        records: u32,
        /// Results of the record that is reported.
        #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
        results: u32,
        /// Use this linerate instead of the one as it is released, built now.
        #[arg(long)]
        program: Option<PathBuf>,
    },
    /// A PostgreSQL store of a fleet: records stored a second, bytes a record, and times of its queries.
    FleetStore {
        /// Records in the store.
        #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(1_000..=100_000_000))]
        records: u32,
        /// Hosts of the fleet.
        #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(2..=10_000))]
        hosts: u32,
        /// Sites of the fleet.
        #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1_000))]
        sites: u32,
        /// Hosts that each host measures.
        #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=9_999))]
        peers: u32,
    },
    /// Time that a reader waits for each page of `linerate view` over a store of many records.
    View {
        /// Records in the store.
        #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(4..=10_000_000))]
        records: u32,
        /// Number of times each page is fetched.
        #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000))]
        repeats: u32,
        /// Use this linerate instead of the one as it is released, built now.
        #[arg(long)]
        program: Option<PathBuf>,
    },
}

/// Runs a benchmark.
pub(crate) fn run(bench: &Bench) -> Result<()> {
    let folder = Path::new(FOLDER);
    match bench {
        Bench::Streams(arguments) => compare::run(arguments),
        Bench::Frames { repeats, seconds } => {
            frames::run(&frames::Frames { folder, repeats: *repeats, seconds: *seconds })
        }
        Bench::Iperf3(comparison) => iperf3::run(comparison),
        Bench::Ports(comparison) => ports::run(comparison),
        Bench::Hops(comparison) => hops::run(comparison),
        Bench::Path { repeats, seconds } => path::run(&path::Paths { folder, repeats: *repeats, seconds: *seconds }),
        Bench::Nfs { repeats, seconds, program } => nfs::run(program.as_deref(), folder, *seconds, *repeats),
        Bench::Copy { repeats, tree, storage, only, durable, million, table, program } => {
            let comparison = copy::Comparison {
                folder,
                storage,
                tree,
                repeats: *repeats,
                only: only.as_deref(),
                durable: *durable,
                program: program.as_deref(),
            };
            match (million, table) {
                (true, _) => copy::million(&comparison),
                (_, true) => copy::table(&comparison),
                _ => copy::run(&comparison),
            }
        }
        Bench::Growth(arguments) => growth::run(arguments),
        Bench::Startup { repeats, program } => startup::run(program.as_deref(), *repeats),
        Bench::Fleet(arguments) => fleet::run(arguments),
        Bench::Store { records, results, program } => {
            store::run(&store::Size { folder, records: *records, results: *results, program: program.as_deref() })
        }
        Bench::FleetStore { records, hosts, sites, peers } => fleet_store::run([*records, *hosts, *sites, *peers]),
        Bench::View { records, repeats, program } => {
            view::run(&view::Visits { folder, records: *records, repeats: *repeats, program: program.as_deref() })
        }
        Bench::Clock { trials, program } => clock::run(program.as_deref(), folder, *trials),
        Bench::Overhead { repeats, seconds, program } => overhead::run(program.as_deref(), folder, *seconds, *repeats),
    }
}
