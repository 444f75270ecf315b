//! `linerate transact`: requests and responses, timed one by one.

use crate::arguments::{Repetition, Results, Sockets};
use crate::exit::Failure;
use crate::hosts::{HostBook, parties};
use crate::measure::measure;
use linerate_model::{Arrivals, Path, Plan, TransactSpec, TransactStyle, Transport, TrialSpec, Workload};
use linerate_units::{ByteCount, OpRate};
use tokio::sync::watch;

/// Measure requests and responses: the rate, and the latency of each
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  linerate transact B                        1 byte each way, one request at a time, over TCP
  linerate transact A B --udp --busy-poll
  linerate transact A B --connect            a new connection for each request
  linerate transact A B --request 200 --response 8K --outstanding 16
  linerate transact A B --rate 20k --poisson --expect 'p99<200us'")]
pub(crate) struct Arguments {
    /// Client and server: an agent URL, `local`, or a lab host's name; separate several clients by commas. If you name
    /// one host, it is the server, and this machine is the client
    #[arg(required = true, num_args = 1..=2, value_name = "HOST")]
    hosts: Vec<String>,

    /// Use TCP (the default)
    #[arg(long, conflicts_with = "udp")]
    tcp: bool,

    /// Use UDP
    #[arg(long, short = 'u')]
    udp: bool,

    /// Use a new connection for each request (TCP)
    #[arg(long, conflicts_with_all = ["udp", "outstanding"])]
    connect: bool,

    /// Bytes of a request
    #[arg(long, value_name = "BYTES", default_value = "1")]
    request: ByteCount,

    /// Bytes of a response
    #[arg(long, value_name = "BYTES", default_value = "1")]
    response: ByteCount,

    /// Requests in flight on each flow
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=4096), conflicts_with = "rate")]
    outstanding: u16,

    /// Connections (UDP: sockets) of each client
    #[arg(long, short = 'P', value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=128))]
    flows: u16,

    /// Requests per second of each client, whether answered or not (open loop). Latency counts from when a request was
    /// due [default: a closed loop, in which each response triggers the next request]
    #[arg(long, short = 'b', value_name = "RATE")]
    rate: Option<OpRate>,

    /// With --rate: random intervals (a Poisson process, as of many independent users) instead of equal ones
    #[arg(long, requires = "rate")]
    poisson: bool,

    /// Poll the sockets at both ends instead of blocking
    #[arg(long)]
    busy_poll: bool,

    #[command(flatten)]
    repetition: Repetition,

    #[command(flatten)]
    sockets: Sockets,

    #[command(flatten)]
    pub(crate) results: Results,
}

pub(crate) async fn run(arguments: Arguments, book: HostBook, cancel: watch::Receiver<bool>) -> Result<(), Failure> {
    let parties = parties(&book.pair(&arguments.hosts)).map_err(Failure::usage)?;
    let plan = arguments.plan(parties.paths()).map_err(Failure::usage)?;
    measure(plan, &parties, book, &arguments.results, arguments.repetition.prove, cancel).await
}

impl Arguments {
    fn plan(&self, paths: Vec<Path>) -> Result<Plan, String> {
        let most = if self.udp { 65_507 } else { 64 << 20 };
        for (option, size) in [("--request", self.request), ("--response", self.response)] {
            if !(1..=most).contains(&size.get()) {
                return Err(format!("{option} {}: a message has 1 to {most} bytes here", size.get()));
            }
        }
        if self.rate.is_some_and(|rate| rate.get() == 0) {
            return Err("--rate 0 asks nothing; give requests a second, as in 20k".to_owned());
        }
        let mut name = if self.udp { "udp transactions".to_owned() } else { "tcp transactions".to_owned() };
        if self.connect {
            name = "tcp connect transactions".to_owned();
        }
        let transact = TransactSpec {
            transport: if self.udp { Transport::Udp } else { Transport::Tcp },
            ip: self.sockets.ip(),
            style: if self.connect { TransactStyle::Connect } else { TransactStyle::Persistent },
            request_bytes: self.request,
            response_bytes: self.response,
            flows: self.flows,
            outstanding: self.outstanding,
            rate: self.rate,
            arrivals: if self.poisson { Arrivals::Poisson } else { Arrivals::Even },
            busy_poll: self.busy_poll,
            socket: self.sockets.options(),
        };
        let timing = self.repetition.timing()?;
        let cell = TrialSpec { name, paths, workload: Workload::Transact(transact), timing, probe: None, proves: None };
        Ok(Plan::of(vec![cell], self.repetition.repeats()?))
    }
}
