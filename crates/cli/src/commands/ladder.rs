//! `linerate ladder`: every layer of one path in the same unit, and the one that loses the most.

use super::device::full_frames::{End, full_frames};
use crate::calibration::CalibrationOption;
use crate::exit::Failure;
use crate::hosts::{HostArguments, HostBook, ReachedAgents, host_arguments};
use crate::measure::{Beside, RunRequest, conclude, reach};
use crate::options::{Flows, Prove, Repetition, Results, Sockets};
use linerate_method::ladder;
use linerate_model::{IpVersion, Path, Plan, Planned, Transport, Trial};
use linerate_units::Nanos;
use tokio::sync::watch;

/// Measure every layer of one path, and name the layer that loses the most
#[derive(Debug, clap::Args)]
#[command(
    after_help = "\
Examples:
  linerate ladder B                     from this machine to B
  linerate ladder A B --time 10s --out ladder.html
  linerate ladder A B -6 --flows 4 --expect 'share>=95%'
  linerate ladder A B --udp             RPC and NFS over UDP
  linerate lab --link 100Mbit/s -- ladder a b",
    after_long_help = "\
Layers from the lowest up: the line's capacity in full frames (calculated), raw frames, UDP in the largest datagrams, TCP, RPC, \
NFS, copies. Each layer has its payload, its share of the layer below and of the line, its limit, and the latency of one-byte \
requests. The widest gap between two layers is named if it exceeds the headers and the spread of the runs."
)]
pub(crate) struct Arguments {
    /// Sender and receiver, or the receiver alone
    ///
    /// A host is an agent URL, a saved name, `local`, or a lab host's name. If you name one host, it is the receiver, and this
    /// machine is the sender.
    #[arg(required = true, num_args = 1..=2, value_name = "HOST")]
    pub(crate) hosts: Vec<String>,

    /// Carry RPC and NFS over UDP instead of TCP
    #[arg(short, long)]
    udp: bool,

    #[command(flatten)]
    flows: Flows,

    /// Probe the routers too (see `linerate path`)
    ///
    /// The probes run next to the streams of UDP and TCP, and before them on the idle path.
    #[arg(long)]
    hops: bool,

    /// Send raw frames through the SSH port too
    ///
    /// That is through ports that carry your SSH session or the connection to an agent.
    #[arg(long)]
    force: bool,

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

/// The MTU a plan is checked by before the path's own is known: Ethernet's.
pub(crate) const USUAL_MTU: u32 = 1500;

pub(crate) async fn run(arguments: Arguments, book: HostBook, cancel: watch::Receiver<bool>) -> Result<(), Failure> {
    let pair = book.pair(&arguments.hosts);
    let hosts = host_arguments(&pair).map_err(Failure::usage)?;
    let [path] = &hosts.paths()[..] else {
        return Err(Failure::usage("a ladder is of one path: name one sender and one receiver"));
    };
    let unknown = Planned::Missing(String::new());
    let asked =
        RunRequest::of_plan(&arguments.results, &arguments.plan(path, USUAL_MTU, unknown).map_err(Failure::usage)?)?;
    let named = arguments.calibration.named(asked.store.as_ref())?;
    let agents = reach(&book, &hosts, cancel.clone()).await?;
    let mtu = agents.control.path_mtu(path, arguments.sockets.ip()).unwrap_or(USUAL_MTU);
    let frames = frames([&pair[0], &pair[1]], path, arguments.frames(), &agents).await;
    let plan = arguments.plan(path, mtu, frames).map_err(Failure::usage).and_then(|plan| {
        let calibrated = arguments.calibration.limits(named.as_ref(), &plan, &asked, &agents)?;
        Ok(Plan { calibrated, ..plan })
    });
    let ended = match plan {
        Ok(plan) => asked.run(plan, &agents, Beside::default(), cancel).await,
        Err(failure) => Err(failure),
    };
    agents.close().await;
    conclude(&ended?, &arguments.results)
}

impl Arguments {
    fn frames(&self) -> FramesOptions {
        FramesOptions { ip: self.sockets.ip(), time: self.repetition.time, force: self.force }
    }

    /// Who takes part.
    pub(crate) fn hosts(&self, book: &HostBook) -> Result<HostArguments, String> {
        host_arguments(&book.pair(&self.hosts))
    }

    /// What is measured on this path.
    pub(crate) fn plan(&self, path: &Path, mtu: u32, frames: Planned) -> Result<Plan, String> {
        let plan = ladder::plan(&ladder::LadderRequest {
            path: path.clone(),
            ip: self.sockets.ip(),
            mtu,
            flows: self.flows.flows,
            socket: self.sockets.options(),
            calls_over: if self.udp { Transport::Udp } else { Transport::Tcp },
            timing: self.repetition.timing()?,
            repeats: self.repetition.repeats()?,
            frames,
            hops: self.hops,
        });
        Ok(self.prove.applied_to(plan))
    }
}

/// How the raw-frame layer is to be sent.
pub(crate) struct FramesOptions {
    pub(crate) ip: IpVersion,
    pub(crate) time: Nanos,
    /// By ports that carry the user's own connections too.
    pub(crate) force: bool,
}

/// The trial of the raw-frame layer between the two hosts, as they were given; or why there is none.
pub(crate) async fn frames(hosts: [&str; 2], path: &Path, asked: FramesOptions, agents: &ReachedAgents) -> Planned {
    match trial(hosts, path, asked, agents).await {
        Ok(trial) => Planned::Trial(Box::new(trial)),
        Err(why) => Planned::Missing(why.to_string()),
    }
}

async fn trial(
    [from, to]: [&str; 2],
    path: &Path,
    asked: FramesOptions,
    agents: &ReachedAgents,
) -> Result<Trial, Failure> {
    let (client, server) = (&path.client, path.server.name());
    if client == server {
        return Err(Failure::usage("both ends are one host: frames go from one port to another"));
    }
    let control = &agents.control;
    let (near, far) = (control.nic_towards(client, server, asked.ip), control.nic_towards(server, client, asked.ip));
    let (Some(near), Some(far)) = (near, far) else {
        let why = "no interface has the address that the data go by; tell the agents with --data-address";
        return Err(Failure::usage(why));
    };
    let ends = [End { host: from, nic: near }, End { host: to, nic: far }];
    full_frames(ends, asked, agents).await
}
