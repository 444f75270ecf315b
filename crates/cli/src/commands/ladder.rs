//! `linerate ladder`: every layer of one path in the same unit, and the one that loses the most.

use super::device::full_frames::{End, full_frames};
use crate::arguments::{Repetition, Results, Sockets};
use crate::exit::Failure;
use crate::hosts::{Company, HostBook, parties};
use crate::measure::{asked, check, conclude, reach, run as run_plan};
use linerate_method::ladder::{Asked, onto};
use linerate_model::{FrameTrial, IpVersion, Path, Plan};
use linerate_store::Store;
use linerate_units::Nanos;
use tokio::sync::watch;

/// Measure every layer of one path in one unit, and name the layer that loses the most
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  linerate ladder B                          from this machine to B
  linerate ladder A B --time 10s --out ladder.html
  linerate ladder A B -6 --flows 4 --expect 'share>=95%'
  linerate lab --link 100Mbit/s -- ladder a b

Layers from the lowest up: the line's capacity in full frames (calculated), raw frames, UDP in the largest datagrams, TCP, RPC, \
NFS, copies. Each layer has its payload, its share of the layer below and of the line, its limit, and the latency of one-byte \
requests. The widest gap between two layers is named if it exceeds the headers and the spread of the runs.")]
pub(crate) struct Arguments {
    /// Sender and receiver: an agent URL, `local`, or a lab host's name. If you name one host, it is the receiver, and
    /// this machine is the sender
    #[arg(required = true, num_args = 1..=2, value_name = "HOST")]
    hosts: Vec<String>,

    /// Connections (UDP: sockets) of each stream
    #[arg(long, short = 'P', value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=128))]
    flows: u16,

    /// Send raw frames even through ports that carry your SSH session or the connection to an agent
    #[arg(long)]
    force: bool,

    #[command(flatten)]
    repetition: Repetition,

    #[command(flatten)]
    sockets: Sockets,

    #[command(flatten)]
    pub(crate) results: Results,
}

/// The MTU a plan is checked by before the path's own is known: Ethernet's.
pub(crate) const USUAL_MTU: u32 = 1500;

pub(crate) async fn run(arguments: Arguments, book: HostBook, cancel: watch::Receiver<bool>) -> Result<(), Failure> {
    let pair = book.pair(&arguments.hosts);
    let parties = parties(&pair).map_err(Failure::usage)?;
    let [path] = &parties.paths()[..] else {
        return Err(Failure::usage("a ladder is of one path: name one source and one sink"));
    };
    check(&arguments.results, &arguments.plan(path, USUAL_MTU, Err(String::new())).map_err(Failure::usage)?)?;
    let store = Store::open(arguments.results.store.store.as_deref()).map_err(Failure::measure)?;
    let company = reach(&book, &parties, cancel.clone()).await?;
    let mtu = company.peers.path_mtu(path, arguments.sockets.ip()).unwrap_or(USUAL_MTU);
    let hosts = [pair[0].as_str(), &pair[1]];
    let frames = frames(hosts, path, arguments.frames(), &company).await;
    let plan = arguments.plan(path, mtu, frames).map_err(Failure::usage)?;
    let outcome = run_plan(
        plan,
        asked(&arguments.results),
        &company.peers,
        Some(&store),
        None,
        arguments.repetition.prove,
        cancel,
    )
    .await;
    company.dismiss().await;
    conclude(outcome, &arguments.results)
}

impl Arguments {
    fn frames(&self) -> FramesAsked<'_> {
        let (ip, time) = (self.sockets.ip(), self.repetition.time);
        FramesAsked { ip, time, force: self.force, results: &self.results }
    }

    fn plan(&self, path: &Path, mtu: u32, frames: Result<FrameTrial, String>) -> Result<Plan, String> {
        let asked = Asked {
            path: path.clone(),
            ip: self.sockets.ip(),
            mtu,
            flows: self.flows,
            socket: self.sockets.options(),
            timing: self.repetition.timing()?,
            frames,
        };
        let plan = Plan::of(Vec::new(), self.repetition.repeats()?);
        Ok(onto(plan, &asked))
    }
}

/// How the raw-frame rung is to be sent.
pub(crate) struct FramesAsked<'a> {
    pub(crate) ip: IpVersion,
    pub(crate) time: Nanos,
    /// By ports that carry the user's own connections too.
    pub(crate) force: bool,
    pub(crate) results: &'a Results,
}

/// The trial of the raw-frame rung between the two hosts, as they were given; or why there is none.
pub(crate) async fn frames(
    [from, to]: [&str; 2],
    path: &Path,
    asked: FramesAsked<'_>,
    company: &Company,
) -> Result<FrameTrial, String> {
    let Path { opener, listener } = path;
    if opener == listener {
        return Err("both ends are one host: frames go from one port to another".to_owned());
    }
    let peers = &company.peers;
    let (near, far) = (peers.nic_towards(opener, listener, asked.ip), peers.nic_towards(listener, opener, asked.ip));
    let (Some(near), Some(far)) = (near, far) else {
        let why = "no interface has the address that the data go by; tell the agents with --data-address";
        return Err(why.to_owned());
    };
    let ends = [End { host: from, nic: near }, End { host: to, nic: far }];
    full_frames(ends, asked, company).await.map_err(|failure| match failure {
        Failure::Usage(why) | Failure::Measure(why) => why,
        Failure::Missed | Failure::Waiting(_) | Failure::Code(_) => "the ports could not be looked at".to_owned(),
    })
}
