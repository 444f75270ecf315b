//! `linerate rpc`: ONC RPC calls with data, counted where the data arrive.

use super::measured::measure;
use crate::calibration::CalibrationOption;
use crate::choice::{Choices, choice};
use crate::exit::Failure;
use crate::hosts::{HostArguments, HostBook, host_arguments};
use crate::measure::TuneOption;
use crate::options::{Over, Prove, Repetition, Requests, Results, Sockets};
use linerate_model::{Net, Path, Plan, RpcCall, RpcTask, Task, Transport, Trial};
use linerate_units::ByteCount;
use std::collections::BTreeSet;
use tokio::sync::watch;

/// Measure ONC RPC over UDP and TCP: payload, calls per second, latency
#[derive(Debug, clap::Args)]
// Without either of --tcp and --udp both are measured, so both are everyday options here.
#[command(mut_arg("tcp", |tcp| tcp.hide_short_help(false)))]
#[command(after_help = "\
Examples:
  linerate rpc B                             write and read, UDP and TCP, to B
  linerate rpc A B --tcp --sizes 8K,64K,1M --outstanding 4
  linerate rpc A B --udp --call echo --sizes 1K,8K
  linerate rpc A B --call null --flows 4 --outstanding 16
  linerate rpc A B --tcp --call write --sizes 8K --rate 2k --expect 'p99<2ms'
  linerate lab --link 10Mbit/s -- rpc a b    RPC on a slow link

`write` carries data to the server, `read` from it, from memory to memory.
docs/linerate.x describes the program, its versions and procedures.")]
pub(crate) struct Arguments {
    /// Client and server, or the server alone
    ///
    /// A host is an agent URL, a saved name, `local`, or a lab host's name. Separate several clients by commas. If you name one
    /// host, it is the server, and this machine (in a lab another host of it) is the client.
    #[arg(required = true, num_args = 1..=2, value_name = "HOST")]
    pub(crate) hosts: Vec<String>,

    #[command(flatten)]
    over: Over,

    /// null, write, read, echo
    ///
    /// Kinds of calls to measure.
    #[arg(long, value_name = "CALL,...", value_delimiter = ',', default_value = "write,read", value_parser = choice::<RpcCall>(CALLS))]
    call: Vec<RpcCall>,

    /// Bytes of data per call [default: 64 to 8K]
    ///
    /// Each size is measured by itself; up to 60K over UDP, 1M over TCP. The default is 64,512,1K,2K,4K,8K.
    #[arg(
        long,
        value_name = "BYTES,...",
        value_delimiter = ',',
        default_value = "64,512,1K,2K,4K,8K",
        hide_default_value = true
    )]
    sizes: Vec<ByteCount>,

    #[command(flatten)]
    requests: Requests,

    #[command(flatten)]
    pub(crate) calibration: CalibrationOption,

    #[command(flatten)]
    repetition: Repetition,

    #[command(flatten, next_help_heading = "Duration and repeats")]
    prove: Prove,

    #[command(flatten)]
    pub(crate) sockets: Sockets,

    #[command(flatten)]
    pub(crate) results: Results,
}

const CALLS: Choices = &[
    ("null", "No data"),
    ("write", "Data to the server"),
    ("read", "Data from the server"),
    ("echo", "Data to the server and back"),
];

pub(crate) async fn run(arguments: Arguments, book: HostBook, cancel: watch::Receiver<bool>) -> Result<(), Failure> {
    let hosts = arguments.hosts(&book).map_err(Failure::usage)?;
    let plan = arguments.plan(&hosts.paths()).map_err(Failure::usage)?;
    measure(plan, &hosts, book, &arguments.results, &arguments.calibration, &TuneOption::default(), cancel).await
}

impl Arguments {
    /// Who takes part.
    pub(crate) fn hosts(&self, book: &HostBook) -> Result<HostArguments, String> {
        host_arguments(&book.pair(&self.hosts))
    }

    /// What is measured on these paths.
    pub(crate) fn plan(&self, paths: &[Path]) -> Result<Plan, String> {
        let both = [Transport::Udp, Transport::Tcp];
        let given = self.over.given();
        let timing = self.repetition.timing()?;
        let mut cells = Vec::new();
        // What is asked for twice is one measurement.
        let mut seen = BTreeSet::new();
        for transport in given.as_ref().map_or(&both[..], std::slice::from_ref) {
            for call in &self.call {
                // A null call has no size.
                let none = [ByteCount::new(0)];
                for size in if *call == RpcCall::Null { &none[..] } else { &self.sizes } {
                    check_size(*transport, *size)?;
                    if seen.insert((*transport, *call, *size)) {
                        let task = self.task(paths, *transport, *call, *size)?;
                        cells.push(Trial::new(name(*transport, *call, *size), Task::Rpc(task), timing));
                    }
                }
            }
        }
        Ok(self.prove.applied_to(self.repetition.sweep(cells)?))
    }

    fn task(
        &self,
        paths: &[Path],
        transport: Transport,
        call: RpcCall,
        unit_bytes: ByteCount,
    ) -> Result<RpcTask, String> {
        Ok(RpcTask {
            paths: paths.to_vec(),
            net: Net { transport, ip: self.sockets.ip(), flows: self.requests.flows(), socket: self.sockets.options() },
            call,
            unit_bytes,
            outstanding: self.requests.outstanding,
            rate: self.requests.rate()?,
            arrivals: self.requests.arrivals(),
        })
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
        Transport::Udp => (RpcTask::UDP_MAXIMUM, "UDP", ", or measure TCP alone with --tcp"),
        Transport::Tcp => (RpcTask::TCP_MAXIMUM, "TCP", ""),
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
        let plan = line.arguments.plan(&[Path::between("a", "b")])?;
        Ok(plan.cells().iter().map(|cell| cell.name.clone()).collect())
    }

    #[test]
    fn every_choice_is_a_variant() {
        crate::choice::tests::check::<RpcCall>(CALLS);
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
            (&["--rate", "0"], "asks nothing"),
            (&["--tcp", "--udp"], "cannot be used with"),
            (&["--rate", "5", "--outstanding", "2"], "cannot be used with"),
        ] {
            let error = names(options).expect_err(needle);
            assert!(error.contains(needle), "{error}");
        }
    }
}
