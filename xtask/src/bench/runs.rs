//! Runs of linerate or of a peer over the lab's link.

use super::figure::Figure;
use super::lab::{Lab, RECEIVER, SENDER};
use super::peers::{Installed, Peer, port};
use super::read::{self, WorkUnit, Written};
use super::work::{Load, Work};
use crate::process::{self, Output, Running};
use anyhow::{Context, Result, bail};
use std::time::Duration;

/// The CPUs that every tool is pinned to.
pub(super) const SENDER_CPU: &str = "0";
pub(super) const RECEIVER_CPU: &str = "1";

/// Interface of each host at the link.
const INTERFACE: &str = "eth0";

/// Name of linerate in tables and results.
pub(super) const OURS: &str = "linerate";

/// Program that runs a tool, such as a profiler.
pub(super) struct Wrapper {
    /// The program and its arguments, which the tool's follow.
    pub(super) words: &'static [&'static str],
    /// Time that the tool's server has to end by itself.
    pub(super) grace: Duration,
}

impl Wrapper {
    /// Runs the tool itself.
    pub(super) const NONE: Self = Self { words: &[], grace: Duration::from_secs(3) };
}

/// Lab and tools of a comparison.
pub(super) struct Runner<'a> {
    pub(super) lab: &'a Lab,
    installed: &'a Installed,
    /// Address of the receiver.
    pub(super) to: String,
    /// Number of peers' runs so far, each of which has its own port.
    runs: u32,
}

impl<'a> Runner<'a> {
    pub(super) fn new(lab: &'a Lab, installed: &'a Installed) -> Result<Self> {
        Ok(Self { lab, installed, to: lab.address(RECEIVER)?, runs: 0 })
    }

    /// Returns every way to call an installed peer for a work. Each call uses another port.
    pub(super) fn peers(&mut self, work: &Work, seconds: u32) -> Vec<Peer> {
        self.runs += 1;
        self.installed.peers(work.load, &self.to, port(self.runs), seconds)
    }

    /// Runs linerate or the peer called `tool` once.
    pub(super) fn run(&mut self, work: &Work, tool: &str, seconds: u32) -> Result<Figure> {
        if tool == OURS {
            return self.run_linerate(work, seconds);
        }
        let peer = self.peer(work, tool, seconds)?;
        let (client, server) = self.run_peer(&peer, &Wrapper::NONE, limit(seconds))?;
        figure(&peer, work, &client, &server)
    }

    /// Returns the peer called `tool`, as in a table.
    pub(super) fn peer(&mut self, work: &Work, tool: &str, seconds: u32) -> Result<Peer> {
        let mut peers = self.peers(work, seconds).into_iter();
        peers.find(|peer| peer.tool == tool).with_context(|| format!("no peer is called {tool}"))
    }

    fn run_linerate(&self, work: &Work, seconds: u32) -> Result<Figure> {
        let output = process::run(self.lab.linerate(&linerate_arguments(work.load, seconds)), limit(seconds))?;
        read::linerate(&Written { client: &output.stdout, server: "" }, work_unit(work))
    }

    /// Runs the peer's server in the receiving host and its client in the sending host, each by
    /// `wrapper`. Returns the output of client and server.
    pub(super) fn run_peer(&self, peer: &Peer, wrapper: &Wrapper, limit: Duration) -> Result<(Output, Output)> {
        let server = pinned(RECEIVER_CPU, wrapper.words, &peer.server);
        let mut server = Running::start(self.lab.inside(RECEIVER, server))?;
        if let Err(error) = self.lab.await_listening(&mut server, peer.port) {
            let output = server.stop(peer.stop)?;
            bail!("{error:#}: {} {}", output.stdout.trim(), output.stderr.trim());
        }
        let client = process::run(self.lab.inside(SENDER, pinned(SENDER_CPU, wrapper.words, &peer.client)), limit)?;
        Ok((client, server.stop_within(peer.stop, wrapper.grace)?))
    }
}

/// Reads the figure of a peer's run.
pub(super) fn figure(peer: &Peer, work: &Work, client: &Output, server: &Output) -> Result<Figure> {
    (peer.read)(&Written { client: &client.stdout, server: &server.stdout }, work_unit(work))
}

/// Returns linerate's arguments for a load between the lab's own agents.
fn linerate_arguments(load: Load, seconds: u32) -> Vec<String> {
    let line = if load.is_of_frames() {
        format!("{} --ports {SENDER}:{INTERFACE},{RECEIVER}:{INTERFACE} --time {seconds}s", load.line())
    } else {
        let line = between(&load.line(), SENDER, RECEIVER);
        format!("{line} --cpus-sender {SENDER_CPU} --cpus-receiver {RECEIVER_CPU} --time {seconds}s --repeats 1")
    };
    line.split_whitespace().map(str::to_owned).collect()
}

/// Puts the two hosts after the command of a line, as in `stream a b --udp`.
pub(super) fn between(line: &str, from: &str, to: &str) -> String {
    let (command, options) = line.split_once(' ').unwrap_or((line, ""));
    format!("{command} {from} {to} {options}")
}

fn pinned<'a>(cpu: &'a str, wrapper: &'a [&str], words: &'a [String]) -> Vec<&'a str> {
    let first = ["taskset", "-c", cpu].into_iter().chain(wrapper.iter().copied());
    first.chain(words.iter().map(String::as_str)).collect()
}

/// Returns the unit of a work and its size of datagrams.
pub(super) fn work_unit(work: &Work) -> WorkUnit {
    let datagram = match work.load {
        Load::Udp { size, .. } => Some(size),
        Load::Tcp { .. } | Load::Transact { .. } => None,
    };
    WorkUnit { unit: work.unit(), datagram }
}

/// Returns the time limit of a run, with its warm-up and set-up, and the tuning of linerate before the first run.
pub(super) fn limit(seconds: u32) -> Duration {
    Duration::from_secs(u64::from(seconds) + 60)
}

#[cfg(test)]
mod tests {
    use super::super::work::{WORKS, Way};
    use super::*;

    #[test]
    fn every_linerate_command_is_pinned_and_runs_once() {
        for work in WORKS {
            let line = linerate_arguments(work.load, 2).join(" ");
            let is_pinned = line.ends_with("--cpus-sender 0 --cpus-receiver 1 --time 2s --repeats 1");
            assert_eq!(is_pinned, !work.load.is_of_frames(), "{line}");
        }
        let line = linerate_arguments(Load::Udp { size: 64, way: Way::Sockets }, 2).join(" ");
        assert!(line.starts_with("stream a b --udp --size 64 --no-offload "), "{line}");
    }
}
