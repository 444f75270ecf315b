//! Two builds of linerate in turn on each work of the comparison with the peers.

use super::lab::Lab;
use super::pairs::{self, Load};
use super::runs::Wrapper;
use super::served::{KEEP_NET_ADMIN, Served};
use super::work::{Flags, Load as WorkLoad, WORKS};
use super::{Comparison, FOLDER};
use crate::process;
use anyhow::{Context, Result};
use std::path::Path;

/// Ports of the agents of both builds.
const PORTS: [u16; 2] = [4747, 4748];

/// Compares the comparison's program with the one in the file `other`.
pub(super) fn run(comparison: &Comparison, other: &Path) -> Result<()> {
    process::catch_interrupts()?;
    let program = super::lab::find_or_build(comparison.program.as_deref())?;
    let other = other.canonicalize().with_context(|| format!("finding {}", other.display()))?;
    let lab = Lab::up(Some(&program), Path::new(FOLDER))?;
    let agents = [
        Served::start(&lab, &program, &Wrapper::NONE, PORTS[0], KEEP_NET_ADMIN)?,
        Served::start(&lab, &other, &Wrapper::NONE, PORTS[1], KEEP_NET_ADMIN)?,
    ];
    // Each build would tune itself.
    let works = WORKS.iter().filter(|work| !matches!(work.load, WorkLoad::Tcp { flags: Flags::Best, .. }));
    let works = works.filter(|work| !work.load.is_of_frames());
    let lines: Vec<_> = works.map(|work| (work, work.load.line())).collect();
    let loads: Vec<Load<'_>> =
        lines.iter().map(|(work, line)| Load { name: work.name, line, unit: work.unit() }).collect();
    let compared = pairs::run(comparison, &loads, ["this build", "the other"], None, |load, build| {
        agents[build].rate(load, comparison.seconds)
    });
    drop(agents);
    lab.down()?;
    compared
}
