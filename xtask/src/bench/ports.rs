//! What the port that all trials share costs: an agent with it beside one with ports of their own for data (`--data-ports`). Repeat by
//! repeat each load runs to both, in an order that turns; ratios are taken within a repeat.

use super::figure::{Spread, Unit};
use super::lab::{Lab, RECEIVER, SENDER};
use super::read::{self, WorkUnit, Written};
use super::{Comparison, FOLDER};
use crate::process::{self, Running};
use anyhow::{Context, Result, bail};
use std::path::Path;
use std::time::Duration;

/// The smallest median ratio of the shared port to ports of their own.
const GOAL: f64 = 0.97;
/// The CPUs that the client and the agents are pinned to.
const CLIENT_CPU: &str = "0";
const AGENT_CPU: &str = "1";
/// Of each run, seconds.
const WARMUP: u32 = 1;
/// How long an agent may take to tell its URL.
const START_LIMIT: Duration = Duration::from_secs(10);
/// The options of both agents beside their address: the shared port first.
const AGENTS: [(u16, &[&str]); 2] = [(4747, &[]), (4748, &["--data-ports", "5000-5199"])];

/// What is run, and what it is measured in.
struct Load {
    name: &'static str,
    arguments: &'static [&'static str],
    unit: Unit,
}

const LOADS: &[Load] = &[
    Load { name: "tcp", arguments: &["stream"], unit: Unit::Payload },
    Load { name: "tcp-16", arguments: &["stream", "-P", "16"], unit: Unit::Payload },
    Load { name: "udp-1448", arguments: &["stream", "--udp", "--size", "1448"], unit: Unit::Payload },
    Load { name: "udp-64", arguments: &["stream", "--udp", "--size", "64", "--no-offload"], unit: Unit::Datagrams },
    Load {
        name: "udp-64-16",
        arguments: &["stream", "--udp", "--size", "64", "--no-offload", "-P", "16"],
        unit: Unit::Datagrams,
    },
    Load { name: "tcp-rr", arguments: &["transact", "--tcp"], unit: Unit::Transactions },
    Load { name: "udp-rr", arguments: &["transact", "--udp"], unit: Unit::Transactions },
    Load { name: "connect-rr", arguments: &["transact", "--tcp", "--connect"], unit: Unit::Transactions },
];

/// Runs the comparison, prints it, and fails if a ratio is below the goal.
pub(super) fn run(comparison: &Comparison) -> Result<()> {
    process::catch_interrupts()?;
    let program = super::lab::find_or_build(comparison.program.as_deref())?;
    let lab = Lab::up(Some(&program), Path::new(FOLDER))?;
    let address = lab.address(RECEIVER)?;
    let program = program.to_string_lossy().into_owned();
    let start = |(port, options): (u16, &[&str])| {
        let listen = format!("{address}:{port}");
        let words = ["taskset", "-c", AGENT_CPU, &program, "serve", "--ephemeral", "--listen", &listen];
        let mut agent = Running::start(lab.inside(RECEIVER, words.iter().chain(options)))?;
        let url = agent.first_line(START_LIMIT)?;
        Ok::<_, anyhow::Error>((agent, url))
    };
    let agents = [start(AGENTS[0])?, start(AGENTS[1])?];
    println!("{:<12} {:>16} {:>16} {:>26}", "load", "shared port", "own ports", "ratio");
    let mut missed = Vec::new();
    for load in LOADS.iter().filter(|load| comparison.has(load.name)) {
        let mut values: [Vec<f64>; 2] = Default::default();
        for turn in 0..2 * comparison.repeats as usize {
            // Each repeat begins with the other agent.
            let index = (turn + turn / 2) % 2;
            let value = measure(&lab, &program, &agents[index].1, load, comparison)?;
            values[index].push(value);
            process::check_interrupt()?;
        }
        let [shared, own] = values.each_ref().map(|values| Spread::of(values.iter().copied()));
        let ratio = Spread::of(values[0].iter().zip(&values[1]).map(|(shared, own)| shared / own));
        let (shared, own, ratio) =
            (shared.context("no repeat")?, own.context("no repeat")?, ratio.context("no repeat")?);
        let shown = format!("{:.3} ({:.3}..{:.3})", ratio.median, ratio.low, ratio.high);
        println!(
            "{:<12} {:>16} {:>16} {shown:>26}",
            load.name,
            load.unit.show(shared.median),
            load.unit.show(own.median)
        );
        if ratio.median < GOAL {
            missed.push(load.name);
        }
    }
    drop(agents);
    lab.down()?;
    println!("goal: {GOAL} or more");
    if missed.is_empty() { Ok(()) } else { bail!("below: {}", missed.join(", ")) }
}

/// Runs a load once to the agent at `url`.
fn measure(lab: &Lab, program: &str, url: &str, load: &Load, comparison: &Comparison) -> Result<f64> {
    let (time, warmup) = (format!("{}s", comparison.seconds), format!("{WARMUP}s"));
    let store = Path::new(FOLDER).join("ports.sqlite").to_string_lossy().into_owned();
    let (command, options) = load.arguments.split_first().context("a load has a command")?;
    let first = ["taskset", "-c", CLIENT_CPU, program, command, "local", url];
    let timing = ["--time", &time, "--warmup", &warmup, "--repeats", "1", "--json", "--store", &store];
    let words = first.iter().chain(options).chain(&timing);
    let limit = Duration::from_secs(u64::from(comparison.seconds + WARMUP) + 30);
    let written = process::run(lab.inside(SENDER, words), limit)?;
    let written = Written { client: &written.stdout, server: "" };
    let figure = read::linerate(&written, WorkUnit { unit: load.unit, datagram: None });
    Ok(figure.with_context(|| load.name.to_owned())?.value)
}
