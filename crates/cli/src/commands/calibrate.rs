//! `linerate calibrate`: what the hosts reach with the device bypassed, for later runs to be compared with.

use super::command_line::Command;
use super::inner_command::measuring;
use super::ladder::USUAL_MTU;
use crate::calibration::{CalibrationOption, interfaces};
use crate::exit::Failure;
use crate::hosts::{HostArguments, HostBook, host_arguments};
use crate::measure::{Beside, RunRequest, conclude, reach};
use crate::options::{Family, Repetition, Results};
use crate::output::say;
use linerate_method::calibration::{plan, usual};
use linerate_method::ladder::LadderRequest;
use linerate_model::{Calibration, IpVersion, Path, Plan, Planned, SocketOptions, Transport};
use linerate_units::Nanos;
use std::collections::BTreeMap;
use tokio::sync::watch;

/// Where options for results do not belong, and where they do.
const WHERE: (&str, &str) = ("the command behind `--`", "give options for results to `calibrate`");
/// Length and number of the runs if nothing else is asked.
const TIME: Nanos = Nanos::from_secs(3);
const REPEATS: u32 = 3;

/// Measure the tester limit: what the hosts reach with the device bypassed
#[derive(Debug, clap::Args)]
#[command(
    after_help = "\
Examples:
  linerate calibrate A B                A and B joined by a cable
  linerate calibrate A B --loopback     without it, each host against itself
  linerate calibrate -- stream A B --udp --sizes 64,256 --flows 4
  linerate stream A B --udp             later, through the device: finds it
  linerate stream A B --udp --calibration 20261121T0930
  linerate lab --device none -- calibrate a b

Put a cable in the device's place first. Later runs between the same hosts are
compared with the tester limit: a result at the limit is the tester's, below it
the device or the path limits it.",
    after_long_help = "\
UDP, TCP, transactions and RPC are measured, or the command behind `--`. Later runs of stream, transact, rpc and ladder with the \
same settings are compared with them. A calibration no longer counts once a host, its kernel or driver, the interface or the \
settings have changed (docs/calibration.md)."
)]
pub(crate) struct Arguments {
    /// Two hosts that are joined by a cable, named as for `stream`
    #[arg(required_unless_present = "command", num_args = 1..=2, value_name = "HOST", conflicts_with = "command")]
    pub(crate) hosts: Vec<String>,

    /// Measure each host against itself
    ///
    /// It gives an upper estimate of the tester limit, because the interfaces take no part.
    #[arg(long)]
    loopback: bool,

    /// Length of each measured window [default: 3s]
    #[arg(long, short = 't', value_name = "TIME", conflicts_with = "command")]
    time: Option<Nanos>,

    /// Number of runs [default: 3]
    #[arg(long, short = 'r', value_name = "N", conflicts_with = "command", value_parser = clap::value_parser!(u32).range(1..=1000))]
    repeats: Option<u32>,

    /// A command to calibrate for: stream, transact, rpc or ladder
    ///
    /// Give it with its options.
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,

    #[command(flatten)]
    pub(crate) family: Family,

    #[command(flatten)]
    pub(crate) results: Results,
}

/// What is to be calibrated.
enum Test {
    /// What most runs measure, between these hosts.
    Usual { hosts: Vec<String>, ip: IpVersion, repetition: Repetition },
    /// What a command measures.
    Of(Box<Command>),
}

pub(crate) async fn run(arguments: Arguments, book: HostBook, cancel: watch::Receiver<bool>) -> Result<(), Failure> {
    let test = arguments.test(&book)?;
    let hosts = test.hosts(&book).map_err(Failure::usage)?;
    let paths = hosts.paths();
    let how = |interfaces| if arguments.loopback { Calibration::loopback() } else { Calibration::cable(interfaces) };
    let at_mtu = |mtu| test.plan(&paths, mtu).map_err(Failure::usage);
    let checked = plan(&at_mtu(USUAL_MTU)?, how(BTreeMap::new())).map_err(Failure::usage)?;
    let asked = RunRequest::of_plan(&arguments.results, &checked)?;
    let agents = reach(&book, &hosts, cancel.clone()).await?;
    let ip = checked.cells().iter().find_map(|cell| cell.net()).map_or(IpVersion::V4, |net| net.ip);
    let mtu = paths.iter().filter_map(|path| agents.control.path_mtu(path, ip)).min().unwrap_or(USUAL_MTU);
    let plan = at_mtu(mtu).and_then(|run| plan(&run, how(interfaces(&run, &agents))).map_err(Failure::usage));
    let ended = match plan {
        Ok(plan) => asked.run(plan, &agents, Beside::default(), cancel).await,
        Err(failure) => Err(failure),
    };
    agents.close().await;
    let ended = ended?;
    let concluded = conclude(&ended, &arguments.results);
    if ended.failure.is_none() && arguments.results.are_text() {
        say(&format!(
            "linerate: kept as calibration {}; later runs between these hosts are compared with it",
            ended.record.id
        ));
    }
    concluded
}

impl Arguments {
    fn test(&self, book: &HostBook) -> Result<Test, Failure> {
        if self.command.is_empty() {
            let repetition = Repetition::plain(self.time.unwrap_or(TIME), self.repeats.unwrap_or(REPEATS));
            return Ok(Test::Usual { hosts: self.hosts.clone(), ip: self.family.ip(), repetition });
        }
        if self.family.is_given() {
            return Err(Failure::usage("-4 and -6 belong to the command behind `--`: write them there"));
        }
        let words = self.command.strip_prefix(&["linerate".to_owned()]).unwrap_or(&self.command);
        let mut command = measuring(words, WHERE)?;
        if command.results_mut().is_some_and(|results| results.sample.is_some()) {
            let (place, remedy) = WHERE;
            return Err(Failure::usage(format!("--sample does not go into {place}: {remedy}")));
        }
        command.choose_ip(book);
        let calibration: &CalibrationOption = match &command {
            Command::Stream(stream) => &stream.calibration,
            Command::Transact(transact) => &transact.calibration,
            Command::Rpc(rpc) => &rpc.calibration,
            Command::Ladder(ladder) => &ladder.calibration,
            _ => {
                return Err(Failure::usage(
                    "only stream, transact, rpc and ladder have a tester limit of this kind; `linerate device calibrate` measures \
                     that of raw frames, and nfs measures its own",
                ));
            }
        };
        match calibration.is_usual() {
            true => Ok(Test::Of(Box::new(command))),
            false => {
                Err(Failure::usage("--calibration does not go into a calibration: it makes the record to compare with"))
            }
        }
    }
}

impl Test {
    fn hosts(&self, book: &HostBook) -> Result<HostArguments, String> {
        match self {
            Self::Usual { hosts, .. } => host_arguments(&book.pair(hosts)),
            Self::Of(command) => match &**command {
                Command::Stream(stream) => stream.hosts(book),
                Command::Transact(transact) => transact.hosts(book),
                Command::Rpc(rpc) => rpc.hosts(book),
                Command::Ladder(ladder) => ladder.hosts(book),
                _ => Err(String::from("it has no hosts to calibrate")),
            },
        }
    }

    /// The run to calibrate for.
    fn plan(&self, paths: &[Path], mtu: u32) -> Result<Plan, String> {
        let one_path = || match paths {
            [path] => Ok(path),
            _ => {
                Err(String::from("name one sender and one receiver; for several senders give the command behind `--`"))
            }
        };
        let missing = Planned::Missing(String::from("a calibration has no raw frames"));
        match self {
            Self::Usual { ip, repetition, .. } => Ok(usual(&LadderRequest {
                path: one_path()?.clone(),
                ip: *ip,
                mtu,
                flows: 1,
                socket: SocketOptions::default(),
                calls_over: Transport::Tcp,
                timing: repetition.timing()?,
                repeats: repetition.repeats()?,
                frames: missing,
                hops: false,
            })),
            Self::Of(command) => match &**command {
                Command::Stream(stream) => stream.plan(paths, None, mtu),
                Command::Transact(transact) => transact.plan(paths.to_vec()),
                Command::Rpc(rpc) => rpc.plan(paths),
                Command::Ladder(ladder) => ladder.plan(one_path()?, mtu, missing),
                _ => Err(String::from("it measures nothing to calibrate")),
            },
        }
    }
}
