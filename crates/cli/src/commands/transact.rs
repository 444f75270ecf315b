//! `linerate transact`: requests and responses, timed one by one.

use super::measured::measure;
use crate::calibration::CalibrationOption;
use crate::exit::Failure;
use crate::hosts::{HostArguments, HostBook, host_arguments};
use crate::measure::TuneOption;
use crate::options::{Over, Prove, Repetition, Requests, Results, Sockets};
use linerate_method::with_load;
use linerate_model::{HopsTask, Net, Path, Plan, Task, TransactStyle, TransactTask, Transport, Trial};
use linerate_units::ByteCount;
use tokio::sync::watch;

/// Measure requests and responses: the rate, and the latency of each
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  linerate transact B                   1 byte each way, one by one, over TCP
  linerate transact A B --udp --busy-poll
  linerate transact A B --connect       a new connection for each request
  linerate transact A B --request 200 --response 8K --outstanding 16
  linerate transact A B --rate 20k --poisson --expect 'p99<200us'")]
pub(crate) struct Arguments {
    /// Client and server, or the server alone
    ///
    /// A host is an agent URL, a saved name, `local`, or a lab host's name. Separate several clients by commas. If you name one
    /// host, it is the server, and this machine is the client.
    #[arg(required = true, num_args = 1..=2, value_name = "HOST")]
    pub(crate) hosts: Vec<String>,

    #[command(flatten)]
    over: Over,

    /// A new connection for each request (TCP)
    #[arg(long, conflicts_with_all = ["udp", "outstanding"])]
    connect: bool,

    /// Bytes of a request
    #[arg(long, value_name = "BYTES", default_value = "1")]
    request: ByteCount,

    /// Bytes of a response
    #[arg(long, value_name = "BYTES", default_value = "1")]
    response: ByteCount,

    #[command(flatten)]
    requests: Requests,

    /// Probe the routers too (see `linerate path`)
    #[arg(long)]
    hops: bool,

    /// Poll the sockets at both ends instead of blocking
    #[arg(long, hide_short_help = true)]
    busy_poll: bool,

    #[command(flatten)]
    tune: TuneOption,

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

pub(crate) async fn run(arguments: Arguments, book: HostBook, cancel: watch::Receiver<bool>) -> Result<(), Failure> {
    let hosts = arguments.hosts(&book).map_err(Failure::usage)?;
    let plan = arguments.plan(hosts.paths()).map_err(Failure::usage)?;
    measure(plan, &hosts, book, &arguments.results, &arguments.calibration, &arguments.tune, cancel).await
}

impl Arguments {
    /// Who takes part.
    pub(crate) fn hosts(&self, book: &HostBook) -> Result<HostArguments, String> {
        host_arguments(&book.pair(&self.hosts))
    }

    /// What is measured on these paths.
    pub(crate) fn plan(&self, paths: Vec<Path>) -> Result<Plan, String> {
        let transport = self.over.transport();
        let most = if transport == Transport::Udp { 65_507 } else { 64 << 20 };
        for (option, size) in [("--request", self.request), ("--response", self.response)] {
            if !(1..=most).contains(&size.get()) {
                return Err(format!("{option} {}: a message has 1 to {most} bytes here", size.get()));
            }
        }
        let name = match (self.connect, transport) {
            (true, _) => "tcp connect transactions",
            (false, Transport::Tcp) => "tcp transactions",
            (false, Transport::Udp) => "udp transactions",
        };
        let task = TransactTask {
            paths,
            net: Net { transport, ip: self.sockets.ip(), flows: self.requests.flows(), socket: self.sockets.options() },
            style: if self.connect { TransactStyle::Connect } else { TransactStyle::Persistent },
            request_bytes: self.request,
            response_bytes: self.response,
            outstanding: self.requests.outstanding,
            rate: self.requests.rate()?,
            arrivals: self.requests.arrivals(),
            busy_poll: self.busy_poll,
        };
        let hops = self.hops.then(|| HopsTask::beside(&task.paths, &task.net, None));
        let cell = Trial::new(name, Task::Transact(task), self.repetition.timing()?);
        let cell = hops.map(Task::Hops).into_iter().fold(cell, with_load);
        Ok(self.prove.applied_to(self.repetition.sweep(vec![cell])?))
    }
}
