//! Memory use of the agents for a tree of a million files.

use super::Comparison;
use super::ground::{Cache, Ground};
use super::ways::WAYS;
use crate::bench::lab::{Lab, RECEIVER, SENDER};
use crate::process;
use anyhow::{Context, Result, bail};
use std::ffi::OsStr;
use std::fs;
use std::path::Path;

/// A million files without content, since memory use depends on their number.
const TREE: &str = "files=1000000,folders=1000,bytes=0";
/// Maximum peak memory of an agent, in bytes.
const GOAL: u64 = 100_000_000;

/// Copies the tree between the lab's hosts and prints each agent's peak memory. Fails if it exceeds the goal.
pub(in crate::bench) fn million(comparison: &Comparison<'_>) -> Result<()> {
    process::catch_interrupts()?;
    let mut ground = Ground::lay(&Comparison { tree: TREE, ..*comparison }, &["--bench", "cable"])?;
    println!("{TREE}");
    let way = WAYS.first().context("there is no way")?;
    let seconds = ground.time(&way.tools[0], Cache::Warm)?;
    println!("copied in {seconds:.1} s");
    let mut highest = 0;
    for (host, did) in [(SENDER, "made the tree, and sent it"), (RECEIVER, "received it")] {
        let peak = peak_bytes(&ground.lab, host)?;
        println!("the agent of {host}, which {did}: {:.1} MB at its peak", peak as f64 / 1e6);
        highest = highest.max(peak);
    }
    ground.lab.down()?;
    println!("goal: under {} MB", GOAL / 1_000_000);
    if highest >= GOAL { bail!("goal missed") } else { Ok(()) }
}

/// Returns the peak resident memory of the agents in a host, in bytes.
fn peak_bytes(lab: &Lab, host: &str) -> Result<u64> {
    let namespace = lab.ask(host, &["readlink", "/proc/self/ns/net"])?.stdout;
    let mut peak = None;
    for process in fs::read_dir("/proc").context("listing /proc")? {
        let process = process?.path();
        if is_agent(&process, namespace.trim()) {
            let status = fs::read_to_string(process.join("status")).context("reading an agent's status")?;
            peak = peak.max(Some(high_water(&status).context("an agent's status has no VmHWM")?));
        }
    }
    peak.with_context(|| format!("no agent runs in host {host}"))
}

/// Returns whether a process is an agent in a network namespace. Returns false for a process that has ended.
fn is_agent(process: &Path, namespace: &str) -> bool {
    let here = fs::read_link(process.join("ns/net")).is_ok_and(|found| found.as_os_str() == OsStr::new(namespace));
    here && fs::read(process.join("cmdline")).is_ok_and(|line| line.split(|byte| *byte == 0).nth(1) == Some(b"serve"))
}

/// Returns the peak resident memory in a process's status, in bytes (proc_pid_status(5)).
fn high_water(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peak_is_read_from_a_status() {
        assert_eq!(high_water("Name:\tx\nVmHWM:\t    1000 kB\nVmRSS:\t 5 kB\n"), Some(1_024_000));
        assert_eq!(high_water("Name:\tx\n"), None);
    }

    #[test]
    fn this_process_is_not_an_agent() {
        let namespace = fs::read_link("/proc/self/ns/net").unwrap();
        assert!(!is_agent(Path::new("/proc/self"), namespace.to_str().unwrap()));
    }
}
