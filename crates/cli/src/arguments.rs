//! The command line. Each command's own words are beside its code; what several share is here.

use crate::commands::{
    agent, completions, device, explain, frames, lab, ladder, man, probe, report, results, stream, transact,
};
use clap::builder::styling::{AnsiColor, Styles};
use clap::{Args, Parser, Subcommand};
use linerate_method::Expectation;
use linerate_model::{IpVersion, Repeats, SocketOptions, Timing};
use linerate_units::{ByteCount, Nanos, Ratio};
use std::net::IpAddr;
use std::path::PathBuf;

const STYLES: Styles =
    Styles::styled().header(AnsiColor::Green.on_default().bold()).literal(AnsiColor::Cyan.on_default().bold());

const EXAMPLES: &str = "\
Examples:
  linerate lab                                   Two hosts and a switch, measured, with a report
  linerate lab --link 100Mbit/s -- stream a b --udp --sizes 64,1472
  linerate agent --listen 0.0.0.0:4747           On the other host: prints a join line
  linerate stream linerate://host:4747#...       From here to that host, TCP
  linerate stream A B --udp --expect 'loss<=0.1%'
  linerate transact A B --rate 10k               Latency at 10,000 requests a second
  linerate ladder A B                            Line, UDP, TCP in one unit: which layer loses the most
  linerate device throughput --ports eth1,eth2   A switch or router between two ports, RFC 2544
  linerate frames --ports eth1,eth2 --rate 100k  Raw frames from port to port, counted

Hosts are given as the join line an agent printed, as `local` (this machine), or by a lab host's name.

Exit codes: 0 measured, 1 measured but an expectation was missed, 2 usage, 3 could not measure.";

/// Measures what a network path or device can carry, layer by layer, and says which part limits it.
#[derive(Debug, Parser)]
#[command(name = "linerate", version, styles = STYLES, after_help = EXAMPLES, arg_required_else_help = true)]
pub(crate) struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Stream(stream::Arguments),
    Transact(transact::Arguments),
    Ladder(ladder::Arguments),
    Device(device::Arguments),
    Frames(frames::Arguments),
    Lab(lab::Arguments),
    Agent(agent::Arguments),
    Probe(probe::Arguments),
    Results(results::Arguments),
    Report(report::Arguments),
    Explain(explain::Arguments),
    Completions(completions::Arguments),
    Man(man::Arguments),
}

/// How long and how often.
#[derive(Debug, Args)]
#[command(next_help_heading = "How long and how often")]
pub(crate) struct Repetition {
    /// Length of each measured window
    #[arg(long, short = 't', value_name = "TIME", default_value = "3s")]
    pub(crate) time: Nanos,

    /// Load before each window that counts for nothing
    #[arg(long, value_name = "TIME", default_value = "500ms")]
    warmup: Nanos,

    /// Runs of each measurement; median and spread are reported
    #[arg(long, short = 'r', value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    repeats: u32,

    /// Repeat until the mean is known with this confidence, percent (with --within)
    #[arg(long, value_name = "PERCENT", conflicts_with = "repeats")]
    confidence: Option<f64>,

    /// Repeat until the confidence interval is within this share of the mean
    #[arg(long, value_name = "SHARE", conflicts_with = "repeats")]
    within: Option<Ratio>,

    /// Most runs with --confidence or --within
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u32).range(3..=1000))]
    max_repeats: u32,

    /// Put each verdict to the test: measure again with one thing changed (more flows, a larger buffer, a lower rate ...)
    #[arg(long)]
    pub(crate) prove: bool,
}

impl Repetition {
    /// A short run of `repeats` trials.
    pub(crate) fn brief(time: Nanos, warmup: Nanos, repeats: u32) -> Self {
        Self { time, warmup, repeats, confidence: None, within: None, max_repeats: repeats.max(3), prove: false }
    }

    pub(crate) fn timing(&self) -> Result<Timing, String> {
        const SHORTEST: Nanos = Nanos::from_millis(50);
        if self.time < SHORTEST {
            return Err(format!("--time {} is too short to measure anything; give at least {SHORTEST}", self.time));
        }
        Ok(Timing { warmup: self.warmup, measure: self.time })
    }

    pub(crate) fn repeats(&self) -> Result<Repeats, String> {
        if self.confidence.is_none() && self.within.is_none() {
            return Ok(Repeats::Times(self.repeats));
        }
        let confidence_percent = self.confidence.unwrap_or(95.0);
        if !(50.0..100.0).contains(&confidence_percent) {
            return Err(format!(
                "--confidence {confidence_percent} is not a percentage from 50 to below 100, as in 95"
            ));
        }
        let within = self.within.unwrap_or(Ratio::new(25, 1000)).as_f64();
        if within <= 0.0 {
            return Err("--within 0 can never be met; give a share of the mean, as in 2.5%".to_owned());
        }
        Ok(Repeats::Until { confidence_percent, within, at_least: 3, at_most: self.max_repeats })
    }
}

/// Socket settings.
#[derive(Debug, Args)]
#[command(next_help_heading = "Sockets")]
pub(crate) struct Sockets {
    /// Use IPv6
    #[arg(short = '6', long = "ipv6", conflicts_with = "ipv4")]
    pub(crate) ipv6: bool,

    /// Use IPv4 (the default)
    #[arg(short = '4', long = "ipv4")]
    ipv4: bool,

    /// TCP congestion control at both ends, as in cubic or bbr
    #[arg(long, value_name = "NAME")]
    congestion: Option<String>,

    /// Differentiated services code point, 0 to 63
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=63))]
    dscp: Option<u8>,

    /// SO_SNDBUF of the sending sockets
    #[arg(long, value_name = "BYTES")]
    send_buffer: Option<ByteCount>,

    /// SO_RCVBUF of the receiving sockets
    #[arg(long, value_name = "BYTES")]
    receive_buffer: Option<ByteCount>,

    /// Largest TCP segment, bytes of payload
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u16).range(88..))]
    mss: Option<u16>,

    /// Local address of the side that connects
    #[arg(long = "bind", value_name = "ADDRESS")]
    bind_address: Option<IpAddr>,

    /// Interface of the side that connects
    #[arg(long = "bind-device", value_name = "IF")]
    bind_device: Option<String>,

    /// Pin the sending side's threads to these cores, in turn
    #[arg(long, value_name = "CORE", value_delimiter = ',')]
    cpus_sender: Vec<u32>,

    /// Pin the receiving side's threads to these cores, in turn
    #[arg(long, value_name = "CORE", value_delimiter = ',')]
    cpus_receiver: Vec<u32>,
}

impl Sockets {
    pub(crate) fn ip(&self) -> IpVersion {
        if self.ipv6 { IpVersion::V6 } else { IpVersion::V4 }
    }

    pub(crate) fn options(&self) -> SocketOptions {
        SocketOptions {
            congestion: self.congestion.clone(),
            dscp: self.dscp,
            send_buffer: self.send_buffer,
            receive_buffer: self.receive_buffer,
            mss: self.mss,
            bind_address: self.bind_address,
            bind_device: self.bind_device.clone(),
            sender_cpus: self.cpus_sender.clone(),
            receiver_cpus: self.cpus_receiver.clone(),
        }
    }
}

/// What becomes of the results.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Results")]
pub(crate) struct Results {
    /// Print one JSON record and nothing else
    #[arg(long)]
    pub(crate) json: bool,

    /// Write a report too: .html, .md, .csv, .json or .txt
    #[arg(long, short = 'o', value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,

    /// Exit with 1 if a result misses this, as in 'throughput>=9Gbit/s', 'loss<=0.1%', 'p99<200us'; may be repeated
    #[arg(long, value_name = "CONDITION")]
    pub(crate) expect: Vec<Expectation>,

    #[command(flatten)]
    pub(crate) store: StorePath,
}

/// Where results are kept.
#[derive(Debug, Clone, Args)]
pub(crate) struct StorePath {
    /// Keep results in this file [default: linerate/results.db in the user's data directory]
    #[arg(long, value_name = "FILE", env = "LINERATE_STORE")]
    pub(crate) store: Option<PathBuf>,
}
