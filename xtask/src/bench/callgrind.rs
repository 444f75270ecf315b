//! Instructions of a tool in user space for each message, counted by valgrind's callgrind. Two runs of different length
//! are subtracted, so that start and end do not count.

use super::read::{self, Written};
use super::runs::{OURS, Runner, Wrapper, figure, work_unit};
use super::served::{KEEP_NET_ADMIN, Served, WARMUP};
use super::work::{Load, Wait, Work};
use crate::process::Output;
use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;

/// Seconds of the two runs.
const SECONDS: [u32; 2] = [1, 3];
/// Share by which the messages of the two runs must differ.
const MIN_DIFFERENCE: f64 = 0.3;
/// Time limit of a run.
const LIMIT: Duration = Duration::from_secs(90);
/// Port of linerate's agent.
const PORT: u16 = 4749;
/// Counts the instructions of a program.
const CALLGRIND: Wrapper = Wrapper {
    words: &["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"],
    grace: Duration::from_secs(30),
};

/// Instructions in user space for each message.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Instructions {
    pub(super) sender: f64,
    pub(super) receiver: f64,
}

impl Instructions {
    pub(super) fn to_json(self) -> Value {
        json!({ "sender": self.sender, "receiver": self.receiver })
    }
}

/// One run: instructions of both ends, and messages with those of the warm-up.
struct Run {
    sender: f64,
    receiver: f64,
    messages: f64,
}

/// Counts the instructions of linerate's `program`, or of the peer called `tool`.
pub(super) fn count(runner: &mut Runner<'_>, work: &Work, tool: &str, program: &Path) -> Result<Instructions> {
    if let Load::Transact { wait: Wait::BusyPoll, .. } = work.load {
        bail!("a program that polls executes instructions without messages");
    }
    let [short, long] = SECONDS.map(|seconds| {
        if tool == OURS { run_linerate(runner, work, program, seconds) } else { run_peer(runner, work, tool, seconds) }
    });
    difference(&short?, &long?)
}

/// Returns the instructions for each message that one run had more than the other. The longer run may have fewer, if
/// other programs used the CPUs.
fn difference(run: &Run, other: &Run) -> Result<Instructions> {
    let messages = other.messages - run.messages;
    let sender = (other.sender - run.sender) / messages;
    let receiver = (other.receiver - run.receiver) / messages;
    if messages.abs() < MIN_DIFFERENCE * run.messages || sender <= 0.0 || receiver <= 0.0 {
        bail!("the two runs had {:.0} and {:.0} messages: too similar", run.messages, other.messages);
    }
    Ok(Instructions { sender, receiver })
}

fn run_linerate(runner: &Runner<'_>, work: &Work, program: &Path, seconds: u32) -> Result<Run> {
    if work.load.is_of_frames() {
        bail!("the kernel sends raw frames");
    }
    let served = Served::start(runner.lab, program, &CALLGRIND, PORT, KEEP_NET_ADMIN)?;
    let client = served.run(&work.load.line(), seconds);
    let server = served.stop()?;
    let client = client?;
    let value = read::linerate(&Written { client: &client.stdout, server: "" }, work_unit(work))?.value;
    run_of(&client, &server, work.unit().messages(value), seconds + WARMUP)
}

fn run_peer(runner: &mut Runner<'_>, work: &Work, tool: &str, seconds: u32) -> Result<Run> {
    let peer = runner.peer(work, tool, seconds)?;
    let (client, server) = runner.run_peer(&peer, &CALLGRIND, LIMIT)?;
    let value = figure(&peer, work, &client, &server)?.value;
    // iperf3 alone has a warm-up, of one second.
    let warmup = u32::from(peer.client.iter().any(|word| word == "-O"));
    run_of(&client, &server, work.unit().messages(value), seconds + warmup)
}

/// Reads a run with a rate of messages per second.
fn run_of(client: &Output, server: &Output, rate: f64, seconds: u32) -> Result<Run> {
    Ok(Run {
        sender: collected(&client.stderr).context("callgrind did not report the sender")?,
        receiver: collected(&server.stderr).context("callgrind did not report the receiver")?,
        messages: rate * f64::from(seconds),
    })
}

/// Returns the instructions of all processes in valgrind's messages, as in `==12== Collected : 3456`.
fn collected(text: &str) -> Option<f64> {
    let counts = text.lines().filter_map(|line| line.split_once("== Collected : ")?.1.trim().parse::<f64>().ok());
    counts.reduce(|sum, count| sum + count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_are_added() {
        // valgrind 3.19, a server with a child.
        let text = "==7== Events    : Ir\n==7== Collected : 7594948\n==7== \n==7== I   refs:      7,594,948\n\
            ==5== Events    : Ir\n==5== Collected : 52\n";
        assert_eq!(collected(text), Some(7_595_000.0));
        assert_eq!(collected("valgrind: failed to start tool 'callgrind'"), None);
    }

    #[test]
    fn start_and_end_do_not_count() {
        let short = Run { sender: 1_000_100.0, receiver: 500_200.0, messages: 100.0 };
        let long = Run { sender: 1_000_300.0, receiver: 500_600.0, messages: 300.0 };
        assert_eq!(difference(&short, &long).unwrap(), Instructions { sender: 1.0, receiver: 2.0 });
        assert_eq!(difference(&long, &short).unwrap(), Instructions { sender: 1.0, receiver: 2.0 });
        assert!(difference(&short, &Run { messages: 120.0, ..long }).is_err());
    }
}
