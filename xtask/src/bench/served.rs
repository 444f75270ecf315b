//! Agents of the receiving host that are started in addition to the lab's own, as of another build or with other
//! options. The sending host's program runs loads to them.

use super::FOLDER;
use super::lab::{Lab, RECEIVER, SENDER};
use super::pairs::Load;
use super::read::{self, WorkUnit, Written};
use super::runs::{RECEIVER_CPU, SENDER_CPU, Wrapper, between};
use crate::process::{self, Output, Running};
use anyhow::Result;
use nix::sys::signal::Signal;
use std::path::Path;
use std::time::Duration;

/// Warm-up of each run, in seconds.
pub(super) const WARMUP: u32 = 1;
/// Time within which an agent must print its URL.
const START_LIMIT: Duration = Duration::from_secs(20);

/// Options of an agent that may choose the congestion control.
pub(super) const KEEP_NET_ADMIN: &[&str] = &["--keep-net-admin"];

/// An agent with the program that runs loads to it.
pub(super) struct Served<'a> {
    lab: &'a Lab,
    program: String,
    wrapper: &'a Wrapper,
    agent: Running,
    url: String,
}

impl<'a> Served<'a> {
    /// Starts an agent of `program` on a port of the receiving host.
    pub(super) fn start(
        lab: &'a Lab,
        program: &Path,
        wrapper: &'a Wrapper,
        port: u16,
        options: &[&str],
    ) -> Result<Self> {
        let program = program.to_string_lossy().into_owned();
        let listen = format!("{}:{port}", lab.address(RECEIVER)?);
        let first = ["taskset", "-c", RECEIVER_CPU].iter().chain(wrapper.words);
        let words = [program.as_str(), "serve", "--ephemeral", "--listen", &listen];
        let mut agent = Running::start(lab.inside(RECEIVER, first.chain(&words).chain(options)))?;
        let url = agent.first_line(START_LIMIT)?;
        Ok(Self { lab, program, wrapper, agent, url })
    }

    /// Runs a line such as `stream --udp` once. Returns the output of linerate, which has the record as JSON.
    pub(super) fn run(&self, line: &str, seconds: u32) -> Result<Output> {
        let store = Path::new(FOLDER).join("served.sqlite");
        let timing = format!("--time {seconds}s --warmup {WARMUP}s --repeats 1");
        let line = format!("{} {timing} --json --store {}", between(line, "local", &self.url), store.display());
        let first = ["taskset", "-c", SENDER_CPU].iter().chain(self.wrapper.words).copied();
        let words = first.chain([self.program.as_str()]).chain(line.split_whitespace());
        let limit = Duration::from_secs(u64::from(seconds + WARMUP) + 30) + self.wrapper.grace;
        process::run(self.lab.inside(SENDER, words), limit)
    }

    /// Runs a load once and returns its figure.
    pub(super) fn rate(&self, load: &Load<'_>, seconds: u32) -> Result<f64> {
        let output = self.run(load.line, seconds)?;
        let written = Written { client: &output.stdout, server: "" };
        Ok(read::linerate(&written, WorkUnit { unit: load.unit, datagram: None })?.value)
    }

    /// Ends the agent and returns its output.
    pub(super) fn stop(self) -> Result<Output> {
        self.agent.stop_within(Signal::SIGINT, self.wrapper.grace)
    }
}
