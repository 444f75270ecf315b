//! Compares linerate with iperf3 at the other end with iperf3 at both ends, over links of several speeds. In each
//! repeat each pair runs once, in an order that rotates. Ratios are taken within a repeat.

use super::figure::{Spread, Unit};
use super::lab::{Lab, RECEIVER, SENDER};
use super::peers::port;
use super::read::{self, WorkUnit, Written};
use super::{Comparison, FOLDER};
use crate::process::{self, Running};
use anyhow::{Context, Result, bail};
use nix::sys::signal::Signal;
use std::path::Path;
use std::time::Duration;

/// Maximum deviation of a median ratio from 1.
const GOAL: f64 = 0.02;
/// The CPUs that both ends of every pair are pinned to.
const SENDER_CPU: &str = "0";
const RECEIVER_CPU: &str = "1";
/// Warm-up of each run, seconds.
const WARMUP: u32 = 1;
const PAYLOAD: WorkUnit = WorkUnit { unit: Unit::Payload, datagram: None };

/// The links: their name, and the bench that has them.
const LINKS: [(&str, &[&str]); 3] = [
    ("100 Mbit/s", &["--link", "100Mbit/s"]),
    ("1 Gbit/s", &["--link", "1Gbit/s"]),
    ("unlimited", &["--bench", "cable"]),
];

/// Client and server of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pair {
    Iperf3,
    OurClient,
    OurServer,
}

impl Pair {
    const ALL: [Self; 3] = [Self::Iperf3, Self::OurClient, Self::OurServer];

    fn name(self) -> &'static str {
        match self {
            Self::Iperf3 => "iperf3 to iperf3",
            Self::OurClient => "linerate to iperf3",
            Self::OurServer => "iperf3 to linerate",
        }
    }
}

/// Runs the comparison, prints it, and fails if a ratio is off.
pub(super) fn run(comparison: &Comparison) -> Result<()> {
    process::catch_interrupts()?;
    let program = super::lab::find_or_build(comparison.program.as_deref())?;
    println!("{:<12} {:<8} {:<20} {:>14} {:>26}", "link", "data", "pair", "median", "of iperf3 to iperf3");
    let mut missed = Vec::new();
    let mut runs = 0;
    let links = LINKS.into_iter().filter(|(link, _)| comparison.has(link));
    for (link, bench) in links {
        let lab = Lab::up_with(Some(&program), Path::new(FOLDER), bench, &[])?;
        let to = lab.address(RECEIVER)?;
        for backward in [false, true] {
            let mut values: [Vec<f64>; 3] = Default::default();
            for repeat in 0..comparison.repeats as usize {
                for turn in 0..Pair::ALL.len() {
                    let index = (turn + repeat) % Pair::ALL.len();
                    runs += 1;
                    let setting = Setting { lab: &lab, program: &program, to: &to, port: port(runs), backward };
                    values[index].push(setting.run(Pair::ALL[index], comparison)?);
                    process::check_interrupt()?;
                }
            }
            let data = if backward { "receive" } else { "send" };
            for (pair, rates) in Pair::ALL.into_iter().zip(&values) {
                let median = Spread::of(rates.iter().copied()).context("no repeat")?.median;
                let ratio =
                    Spread::of(rates.iter().zip(&values[0]).map(|(rate, base)| rate / base)).context("no repeat")?;
                let ratio_text = format!("{:.3} ({:.3}..{:.3})", ratio.median, ratio.low, ratio.high);
                let rate = format!("{:.3} Gbit/s", median / 1e9);
                println!("{link:<12} {data:<8} {:<20} {rate:>14} {ratio_text:>26}", pair.name());
                if (ratio.median - 1.0).abs() > GOAL {
                    missed.push(format!("{} at {link}, {data}", pair.name()));
                }
            }
        }
        lab.down()?;
    }
    println!("goal: within {:.0} % of iperf3 to iperf3", GOAL * 100.0);
    if missed.is_empty() { Ok(()) } else { bail!("off by more: {}", missed.join("; ")) }
}

/// Settings of one run.
struct Setting<'a> {
    lab: &'a Lab,
    program: &'a Path,
    to: &'a str,
    port: u16,
    /// Whether the server sends.
    backward: bool,
}

impl Setting<'_> {
    /// Runs a pair. Returns payload bits per second at the receiver.
    fn run(&self, pair: Pair, comparison: &Comparison) -> Result<f64> {
        let port = self.port.to_string();
        let seconds = comparison.seconds.to_string();
        let program = self.program.to_string_lossy().into_owned();
        let store = Path::new(FOLDER).join("iperf3.sqlite").to_string_lossy().into_owned();
        let pinned = |cpu: &'static str| ["taskset", "-c", cpu].into_iter();
        let server: Vec<&str> = match pair {
            Pair::OurServer => {
                let listening = ["--listen", "0.0.0.0:0", "--iperf3", &port, "--store", &store];
                [&[program.as_str(), "serve", "--ephemeral"][..], &listening].concat()
            }
            Pair::Iperf3 | Pair::OurClient => vec!["iperf3", "-s", "-p", &port],
        };
        let mut server = Running::start(self.lab.inside(RECEIVER, pinned(RECEIVER_CPU).chain(server)))?;
        if let Err(error) = self.lab.await_listening(&mut server, self.port) {
            let output = server.stop(Signal::SIGINT)?;
            bail!("{error:#}: {} {}", output.stdout.trim(), output.stderr.trim());
        }
        let url = format!("iperf3://{}:{port}", self.to);
        let time = format!("{seconds}s");
        let warmup = format!("{WARMUP}s");
        let omit = WARMUP.to_string();
        let direction = if self.backward { "receive" } else { "send" };
        let client: Vec<&str> = match pair {
            Pair::OurClient => {
                let timing = ["--time", &time, "--warmup", &warmup, "--repeats", "1"];
                let first = [&program, "stream", "local", &url, "--direction", direction, "--json", "--store", &store];
                [&first[..], &timing].concat()
            }
            Pair::Iperf3 | Pair::OurServer => {
                let reverse: &[&str] = if self.backward { &["-R"] } else { &[] };
                [&["iperf3", "-J", "-c", self.to, "-p", &port, "-t", &seconds, "-O", &omit], reverse].concat()
            }
        };
        let limit = Duration::from_secs(u64::from(comparison.seconds + WARMUP) + 20);
        let client = process::run(self.lab.inside(SENDER, pinned(SENDER_CPU).chain(client)), limit);
        let server = server.stop(Signal::SIGINT)?;
        let written = client?;
        let written = Written { client: &written.stdout, server: &server.stdout };
        let figure = if pair == Pair::OurClient { read::linerate } else { read::iperf3 };
        Ok(figure(&written, PAYLOAD).with_context(|| pair.name().to_owned())?.value)
    }
}
