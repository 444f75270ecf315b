//! Cost of the port that all trials share, compared with separate data ports (`--data-ports`). In each repeat each load
//! runs to an agent of either kind, in an order that rotates. Ratios are taken within a repeat.

use super::figure::{Spread, Unit};
use super::lab::{Lab, RECEIVER, SENDER};
use super::read::{self, WorkUnit, Written};
use super::{Comparison, FOLDER};
use crate::process::{self, Running};
use anyhow::{Context, Result, bail};
use std::path::Path;
use std::time::Duration;

/// Minimum median ratio of the shared port to separate ports.
const GOAL: f64 = 0.97;
/// The CPUs that the client and the agents are pinned to.
const CLIENT_CPU: &str = "0";
const AGENT_CPU: &str = "1";
/// Warm-up of each run, in seconds.
const WARMUP: u32 = 1;
/// Time within which an agent must print its URL.
const START_LIMIT: Duration = Duration::from_secs(10);
/// Port and further options of both agents. The agent with the shared port comes first.
const AGENTS: [(u16, &[&str]); 2] = [(4747, &[]), (4748, &["--data-ports", "5000-5199"])];

/// A load and its unit.
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
    let start = |(port, options): (u16, &[&str])| -> Result<_> {
        let listen = format!("{address}:{port}");
        let words = ["taskset", "-c", AGENT_CPU, &program, "serve", "--ephemeral", "--listen", &listen];
        let mut agent = Running::start(lab.inside(RECEIVER, words.iter().chain(options)))?;
        let url = agent.first_line(START_LIMIT)?;
        Ok((agent, url))
    };
    let agents = [start(AGENTS[0])?, start(AGENTS[1])?];
    println!("{:<12} {:>16} {:>16} {:>26}", "load", "shared port", "own ports", "ratio");
    let mut missed = Vec::new();
    for load in LOADS.iter().filter(|load| comparison.has(load.name)) {
        let mut values: [Vec<f64>; 2] = Default::default();
        for turn in 0..2 * comparison.repeats as usize {
            // Each repeat starts with the other agent.
            let index = (turn + turn / 2) % 2;
            let value = measure(&lab, &program, &agents[index].1, load, comparison)?;
            values[index].push(value);
            process::check_interrupt()?;
        }
        let [shared, separate] = &values;
        let ratios = shared.iter().zip(separate).map(|(shared, separate)| shared / separate);
        let ratio = Spread::of(ratios).context("no repeat")?;
        let shared = Spread::of(shared.iter().copied()).context("no repeat")?;
        let separate = Spread::of(separate.iter().copied()).context("no repeat")?;
        let ratio_text = format!("{:.3} ({:.3}..{:.3})", ratio.median, ratio.low, ratio.high);
        println!(
            "{:<12} {:>16} {:>16} {ratio_text:>26}",
            load.name,
            load.unit.show(shared.median),
            load.unit.show(separate.median)
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
    let time = format!("{}s", comparison.seconds);
    let warmup = format!("{WARMUP}s");
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
