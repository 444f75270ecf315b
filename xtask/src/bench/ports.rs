//! Cost of the port that all trials share, compared with separate data ports (`--data-ports`): each load runs to an agent of
//! either kind.

use super::figure::Unit;
use super::lab::Lab;
use super::pairs::{self, Load};
use super::runs::Wrapper;
use super::served::Served;
use super::{Comparison, FOLDER};
use crate::process;
use anyhow::Result;
use std::path::Path;

/// Minimum median ratio of the shared port to separate ports.
const GOAL: f64 = 0.97;
/// Port and further options of both agents. The agent with the shared port comes first.
const AGENTS: [(u16, &[&str]); 2] = [(4747, &[]), (4748, &["--data-ports", "5000-5199"])];

const LOADS: &[Load<'_>] = &[
    Load { name: "tcp", line: "stream", unit: Unit::Payload },
    Load { name: "tcp-16", line: "stream -P 16", unit: Unit::Payload },
    Load { name: "udp-1448", line: "stream --udp --size 1448", unit: Unit::Payload },
    Load { name: "udp-64", line: "stream --udp --size 64 --no-offload", unit: Unit::Datagrams },
    Load { name: "udp-64-16", line: "stream --udp --size 64 --no-offload -P 16", unit: Unit::Datagrams },
    Load { name: "tcp-rr", line: "transact --tcp", unit: Unit::Transactions },
    Load { name: "udp-rr", line: "transact --udp", unit: Unit::Transactions },
    Load { name: "connect-rr", line: "transact --tcp --connect", unit: Unit::Transactions },
];

/// Runs the comparison, prints it, and fails if a ratio is below the goal.
pub(super) fn run(comparison: &Comparison) -> Result<()> {
    process::catch_interrupts()?;
    let program = super::lab::find_or_build(comparison.program.as_deref())?;
    let lab = Lab::up(Some(&program), Path::new(FOLDER))?;
    let [(shared, none), (own, options)] = AGENTS;
    let agents = [
        Served::start(&lab, &program, &Wrapper::NONE, shared, none)?,
        Served::start(&lab, &program, &Wrapper::NONE, own, options)?,
    ];
    let compared = pairs::run(comparison, LOADS, ["shared port", "own ports"], Some(GOAL), |load, agent| {
        agents[agent].rate(load, comparison.seconds)
    });
    drop(agents);
    lab.down()?;
    compared
}
