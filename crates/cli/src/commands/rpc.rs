//! `linerate rpc`: ONC RPC calls with data, counted where the data arrive.

use crate::arguments::{Repetition, Results, Sockets};
use crate::exit::Failure;
use crate::hosts::{HostBook, parties};
use crate::measure::measure;
use clap::ValueEnum;
use linerate_model::{Arrivals, Path, Plan, RpcCall, RpcSpec, Transport, TrialSpec, Workload};
use linerate_units::{ByteCount, OpRate};
use std::collections::BTreeSet;
use tokio::sync::watch;

/// Measure ONC RPC over UDP and TCP: payload, calls per second, and the latency of each call
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  linerate rpc B                             write and read, six sizes, over UDP and TCP, to B
  linerate rpc A B --tcp --sizes 8K,64K,1M --outstanding 4
  linerate rpc A B --udp --call echo --sizes 1K,8K
  linerate rpc A B --call null --flows 4 --outstanding 16
  linerate rpc A B --tcp --call write --sizes 8K --rate 2k --expect 'p99<2ms'
  linerate lab --link 10Mbit/s -- rpc a b    RPC on a slow link

`write` carries data to the server, and `read` from the server, from memory to memory. docs/linerate.x describes program,
versions and procedures.")]
pub(crate) struct Arguments {
    /// Client and server: an agent URL, `local`, or a lab host's name; separate several clients by commas. If you name
    /// one host, it is the server, and this machine (in a lab another host of it) is the client
    #[arg(required = true, num_args = 1..=2, value_name = "HOST")]
    hosts: Vec<String>,

    /// Use TCP only [default: TCP and UDP]
    #[arg(long, conflicts_with = "udp")]
    tcp: bool,

    /// Use UDP only
    #[arg(long, short = 'u')]
    udp: bool,

    /// Kinds of calls to measure
    #[arg(long, value_enum, value_name = "CALL,...", value_delimiter = ',', default_values_t = [Does::Write, Does::Read])]
    call: Vec<Does>,

    /// Bytes of data per call, each size measured by itself; up to 60K over UDP, 1M over TCP
    #[arg(long, value_name = "BYTES,...", value_delimiter = ',', default_value = "64,512,1K,2K,4K,8K")]
    sizes: Vec<ByteCount>,

    /// Calls in flight on each flow
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=4096), conflicts_with = "rate")]
    outstanding: u16,

    /// Connections (UDP: sockets) of each client
    #[arg(long, short = 'P', value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=128))]
    flows: u16,

    /// Calls per second of each client, whether answered or not (open loop). Latency counts from when a call was due
    /// [default: a closed loop, in which each reply triggers the next call]
    #[arg(long, short = 'b', value_name = "RATE")]
    rate: Option<OpRate>,

    /// With --rate: random intervals (a Poisson process, as of many independent users) instead of equal ones
    #[arg(long, requires = "rate")]
    poisson: bool,

    #[command(flatten)]
    repetition: Repetition,

    #[command(flatten)]
    sockets: Sockets,

    #[command(flatten)]
    pub(crate) results: Results,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Does {
    /// No data
    Null,
    /// Data to the server
    Write,
    /// Data from the server
    Read,
    /// Data to the server and back
    Echo,
}

impl From<Does> for RpcCall {
    fn from(does: Does) -> Self {
        match does {
            Does::Null => Self::Null,
            Does::Write => Self::Write,
            Does::Read => Self::Read,
            Does::Echo => Self::Echo,
        }
    }
}

pub(crate) async fn run(arguments: Arguments, book: HostBook, cancel: watch::Receiver<bool>) -> Result<(), Failure> {
    let parties = parties(&book.pair(&arguments.hosts)).map_err(Failure::usage)?;
    let plan = arguments.plan(&parties.paths()).map_err(Failure::usage)?;
    measure(plan, &parties, book, &arguments.results, arguments.repetition.prove, cancel).await
}

impl Arguments {
    fn plan(&self, paths: &[Path]) -> Result<Plan, String> {
        if self.rate.is_some_and(|rate| rate.get() == 0) {
            return Err("--rate 0 calls nothing; give calls a second, as in 2k".to_owned());
        }
        let transports: &[Transport] = match (self.tcp, self.udp) {
            (true, _) => &[Transport::Tcp],
            (_, true) => &[Transport::Udp],
            _ => &[Transport::Udp, Transport::Tcp],
        };
        let timing = self.repetition.timing()?;
        let mut cells = Vec::new();
        // What is asked for twice is one measurement.
        let mut seen = BTreeSet::new();
        for transport in transports {
            for call in self.call.iter().copied().map(RpcCall::from) {
                // A null call has no size.
                let none = [ByteCount::new(0)];
                for size in if call == RpcCall::Null { &none[..] } else { &self.sizes } {
                    check_size(*transport, *size)?;
                    if !seen.insert((*transport, call, *size)) {
                        continue;
                    }
                    let workload = Workload::Rpc(self.spec(*transport, call, *size));
                    let (name, paths) = (name(*transport, call, *size), paths.to_vec());
                    cells.push(TrialSpec { name, paths, workload, timing, probe: None, proves: None });
                }
            }
        }
        Ok(Plan::of(cells, self.repetition.repeats()?))
    }

    fn spec(&self, transport: Transport, call: RpcCall, unit_bytes: ByteCount) -> RpcSpec {
        RpcSpec {
            transport,
            ip: self.sockets.ip(),
            call,
            unit_bytes,
            flows: self.flows,
            outstanding: self.outstanding,
            rate: self.rate,
            arrivals: if self.poisson { Arrivals::Poisson } else { Arrivals::Even },
            socket: self.sockets.options(),
        }
    }
}

/// `rpc udp write 8000`.
fn name(transport: Transport, call: RpcCall, size: ByteCount) -> String {
    let transport = if transport == Transport::Udp { "udp" } else { "tcp" };
    if call == RpcCall::Null {
        format!("rpc {transport} null")
    } else {
        format!("rpc {transport} {call} {}", size.get())
    }
}

fn check_size(transport: Transport, size: ByteCount) -> Result<(), String> {
    let (most, over, remedy) = match transport {
        Transport::Udp => (RpcSpec::UDP_MAXIMUM, "UDP", ", or measure TCP alone with --tcp"),
        Transport::Tcp => (RpcSpec::TCP_MAXIMUM, "TCP", ""),
    };
    if size.get() <= most {
        return Ok(());
    }
    Err(format!("--sizes {}: a call over {over} carries at most {most} bytes; choose less{remedy}", size.get()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser as _;

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        arguments: Arguments,
    }

    fn names(options: &[&str]) -> Result<Vec<String>, String> {
        let line = Line::try_parse_from([&["rpc", "b"], options].concat()).map_err(|error| error.to_string())?;
        let path = Path { opener: "a".into(), listener: "b".into() };
        Ok(line.arguments.plan(&[path])?.cells.into_iter().map(|cell| cell.name).collect())
    }

    #[test]
    fn each_transport_call_and_size_is_measured_once() {
        assert_eq!(names(&[]).expect("defaults").len(), 2 * 2 * 6);
        let some = names(&["--tcp", "--call", "null,echo", "--sizes", "1K,1000,8K"]).expect("sizes");
        assert_eq!(some, ["rpc tcp null", "rpc tcp echo 1000", "rpc tcp echo 8000"]);
        assert_eq!(names(&["--call", "null"]).expect("no sizes"), ["rpc udp null", "rpc tcp null"]);
    }

    #[test]
    fn what_cannot_be_is_named_with_its_remedy() {
        for (options, needle) in [
            (&["--sizes", "62K"][..], "--tcp"),
            (&["--tcp", "--sizes", "2M"], "at most 1048576"),
            (&["--rate", "0"], "calls nothing"),
            (&["--tcp", "--udp"], "cannot be used with"),
            (&["--rate", "5", "--outstanding", "2"], "cannot be used with"),
        ] {
            let error = names(options).expect_err(needle);
            assert!(error.contains(needle), "{error}");
        }
    }
}
