//! Cost of the port that all trials share, compared with separate data ports (`--data-ports`): each load runs to an agent of
//! either kind.

use super::figure::Unit;
use super::lab::{Lab, RECEIVER, SENDER};
use super::pairs::{self, Load};
use super::read::{self, WorkUnit, Written};
use super::{Comparison, FOLDER};
use crate::process::{self, Running};
use anyhow::{Context, Result};
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
    let compared = pairs::run(comparison, LOADS, ["shared port", "own ports"], GOAL, |load, agent| {
        measure(&lab, &program, &agents[agent].1, load, comparison)
    });
    drop(agents);
    lab.down()?;
    compared
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
    Ok(figure?.value)
}
