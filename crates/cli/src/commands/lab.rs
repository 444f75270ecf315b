//! `linerate lab`: hosts, links and a device on this one machine, and any command run among them.

use super::demo;
use super::device::split;
use crate::arguments::{Arguments as CommandLine, Command, Results};
use crate::exit::Failure;
use crate::hosts::{HostBook, LOCAL};
use crate::output::say;
use clap::{Parser as _, Subcommand};
use linerate_lab::{Bench, DeviceKind, Lab, LabError, LabOptions, TESTER, beside};
use linerate_model::{HostName, Record};
use linerate_units::BitRate;
use std::path::PathBuf;
use std::process::Command as Program;
use tokio::sync::watch;

/// Build hosts, links and a device out of network namespaces, and run a command among them
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  linerate lab                               the demonstration: two hosts, a switch, raw frames, report.html
  linerate lab --link 100Mbit/s -- stream a b --udp --sizes 64,1472 --json
  linerate lab --device router -- transact a b
  linerate lab --device reference,max-frames=200000 -- device throughput --ports tester:p0,tester:p1 --sizes 64
  linerate lab --keep && linerate stream a b && linerate lab down
  linerate lab shell a -- ip address

Hosts are called a, b, c and so on. An ordinary user's lab lives in a user namespace of its own; nothing outside the lab \
is touched, and nothing of it stays behind."
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Option<Action>,

    /// Which bench: switch, cable, router, tester, testers, or a TOML file (docs/bench-files.md) [default: switch]
    #[arg(long, value_name = "NAME|FILE")]
    bench: Option<String>,

    /// Rate of every link; it then behaves as that Ethernet [default: unlimited; the demonstration: 1Gbit/s]
    #[arg(long, value_name = "RATE")]
    link: Option<BitRate>,

    /// The device between the hosts: bridge (a switch), router, none (a cable from a to b), or reference with known limits,
    /// as in reference,max-frames=200000,loss=1/1000 or reference,delay=1ms
    #[arg(long, value_name = "DEVICE")]
    device: Option<DeviceKind>,

    /// What the device lets through to every host, a shaper that the agents do not know of
    #[arg(long, value_name = "RATE")]
    shape: Option<BitRate>,

    /// How many hosts
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(2..=26))]
    hosts: Option<u8>,

    /// Leave the lab up; `linerate lab down` removes it
    #[arg(long)]
    keep: bool,

    /// A linerate command to run in the lab [default: the demonstration]
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,

    #[command(flatten)]
    results: Results,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Remove a lab that was kept
    Down,
    /// Open a shell, or run a program, in a host of a kept lab
    Shell {
        /// The host
        host: String,
        /// The program and its arguments [default: the user's shell]
        #[arg(last = true, value_name = "PROGRAM")]
        command: Vec<String>,
    },
    /// Stand beside a lab for one of its planted faults
    #[command(hide = true)]
    Beside {
        #[command(subcommand)]
        role: Role,
    },
}

/// What stands beside a lab until its standard input ends.
#[derive(Debug, Subcommand)]
enum Role {
    /// Take a share of a core's time
    Neighbour { core: u32, share: f64, first: Option<String> },
    /// Remove a control group
    Keeper { group: PathBuf },
}

impl Arguments {
    /// An ordinary user becomes the root of a user namespace; must come before any thread.
    pub(crate) fn enter_user_namespace(&self) -> Result<(), Failure> {
        match self.action {
            None => linerate_lab::enter_user_namespace().map_err(failure),
            Some(_) => Ok(()),
        }
    }

    /// `lab shell`, which waits for its program and for nothing else, and what stands beside a lab.
    pub(crate) fn shell(&self) -> Option<Result<(), Failure>> {
        match &self.action {
            Some(Action::Shell { host, command }) => Some(shell(host, command)),
            Some(Action::Beside { role }) => Some(role.play()),
            _ => None,
        }
    }

    /// What becomes of the results is for the command in the lab to say.
    fn check_results(&self) -> Result<(), Failure> {
        let given = [
            ("--json", self.results.json),
            ("--out", self.results.out.is_some()),
            ("--expect", !self.results.expect.is_empty()),
        ];
        match given.into_iter().find(|(_, given)| *given) {
            Some((option, _)) if self.command.is_empty() => Err(Failure::usage(format!(
                "{option} does not go with --keep: nothing is measured; give it to the command that measures"
            ))),
            Some((option, _)) => Err(Failure::usage(format!(
                "{option} belongs to the command in the lab: write it behind `--`, as in `linerate lab -- stream a b {option}`"
            ))),
            None => Ok(()),
        }
    }

    /// The bench asked for; what sends raw frames has one of its own.
    fn bench(&self, command: &Wanted) -> Result<Bench, Failure> {
        let testers = command.testers();
        let hosts_test = testers.iter().any(|host| ![TESTER, LOCAL].contains(&host.0.as_str()));
        let usual = match hosts_test {
            true => "testers",
            false if testers.is_empty() => "switch",
            false => "tester",
        };
        let mut bench = Bench::find(self.bench.as_deref().unwrap_or(usual)).map_err(failure)?;
        if let Some(device) = self.device {
            bench = bench.with_device(device);
        }
        if let Some(hosts) = self.hosts {
            bench = bench.with_hosts(usize::from(hosts));
        }
        if hosts_test {
            bench = bench.with_testers(&testers);
        }
        if let Some(rate) = self.link {
            bench = bench.with_link(rate);
        }
        if let Some(rate) = self.shape {
            bench = bench.with_shaper(rate);
        }
        bench.check().map_err(failure)?;
        Ok(bench)
    }
}

impl Role {
    fn play(&self) -> Result<(), Failure> {
        let played = match self {
            Self::Neighbour { core, share, first } => beside::neighbour(*core, *share, first.is_some()),
            Self::Keeper { group } => beside::keeper(group),
        };
        played.map_err(Failure::measure)
    }
}

pub(crate) async fn run(arguments: Arguments, cancel: watch::Receiver<bool>) -> Result<(), Failure> {
    if let Some(Action::Down) = arguments.action {
        return down();
    }
    // The command is read before the lab is built: a slip in it costs nothing.
    let Some(command) = read(&arguments.command)? else { return Ok(()) };
    if let Some(test) = command.device() {
        test.check()?;
    }
    let bench = arguments.bench(&command)?;
    if arguments.command.is_empty() && !arguments.keep {
        return demo::run(bench, &arguments.results, cancel).await;
    }
    arguments.check_results()?;
    let calibration = match command.device() {
        Some(test) if test.wants_ceiling() && bench.device.kind != DeviceKind::None => {
            Some(ceiling(test, bench.clone(), &command.testers(), &cancel).await?)
        }
        _ => None,
    };
    let lab = up(&bench, arguments.keep).await?;
    let book = HostBook::of_lab(lab.hosts());
    let result = match command {
        Wanted::Device(test) => Box::pin(super::device::run(*test, book, calibration, cancel)).await,
        Wanted::Command(command) => super::run_command(*command, book, cancel).await,
        Wanted::Nothing => Ok(()),
    };
    if arguments.keep {
        let names: Vec<&str> = lab.hosts().keys().map(|host| host.0.as_str()).collect();
        say(&format!("linerate: the lab stays up with hosts {}; `linerate lab down` removes it", names.join(", ")));
        lab.keep().map_err(failure)?;
    } else {
        lab.down().await;
    }
    result
}

/// What is to be done in the lab.
enum Wanted {
    Command(Box<Command>),
    Device(Box<super::device::Arguments>),
    Nothing,
}

impl Wanted {
    /// The hosts whose ports it sends raw frames from; none if it works with hosts.
    fn testers(&self) -> Vec<HostName> {
        let ports = match self {
            Self::Device(test) => test.ports(),
            Self::Command(command) => match &**command {
                Command::Frames(frames) => frames.ports(),
                _ => &[],
            },
            Self::Nothing => &[],
        };
        ports.iter().map(|port| HostName::from(split(port).0)).collect()
    }

    /// The device test, if it is one.
    fn device(&self) -> Option<&super::device::Arguments> {
        match self {
            Self::Device(test) => Some(test),
            Self::Command(_) | Self::Nothing => None,
        }
    }
}

/// The tester's ceiling, measured in a lab of its own with a cable in the device's place.
pub(super) async fn ceiling(
    test: &super::device::Arguments,
    bench: Bench,
    testers: &[HostName],
    cancel: &watch::Receiver<bool>,
) -> Result<Record, Failure> {
    say("linerate: first the tester's own ceiling, with a cable in the device's place");
    let mut cable = bench.with_device(DeviceKind::None).without_faults();
    if cable.tester_ports == 0 {
        cable = cable.with_testers(testers);
    }
    let lab = up(&cable, false).await?;
    let book = HostBook::of_lab(lab.hosts());
    let outcome = Box::pin(super::device::calibrate(test, &book, cancel.clone())).await;
    lab.down().await;
    let outcome = outcome?;
    outcome.failure.map_or(Ok(outcome.record), |failure| Err(Failure::measure(failure)))
}

/// Reads the inner command line; none if it only asked for help.
fn read(words: &[String]) -> Result<Option<Wanted>, Failure> {
    if words.is_empty() {
        return Ok(Some(Wanted::Nothing));
    }
    let words = words.strip_prefix(&["linerate".to_owned()]).unwrap_or(words);
    match CommandLine::try_parse_from(std::iter::once("linerate").chain(words.iter().map(String::as_str))) {
        Ok(CommandLine { command: Command::Lab(_) | Command::Agent(_) }) => Err(Failure::usage(
            "a lab cannot hold another lab, and its hosts have agents already; run stream, transact, ladder or probe in it",
        )),
        Ok(CommandLine { command: Command::Device(test) }) => Ok(Some(Wanted::Device(Box::new(test)))),
        Ok(CommandLine { command }) => Ok(Some(Wanted::Command(Box::new(command)))),
        Err(error) => {
            // A closed pipe is no reason to fail.
            let _ = error.print();
            if error.use_stderr() { Err(Failure::Code(2)) } else { Ok(None) }
        }
    }
}

/// Builds a lab whose agents are this very program.
pub(crate) async fn up(bench: &Bench, keep: bool) -> Result<Lab, Failure> {
    let program =
        std::env::current_exe().map_err(|error| Failure::measure(format!("cannot find this program: {error}")))?;
    Lab::up(bench, &LabOptions { program, keep }).await.map_err(failure)
}

fn down() -> Result<(), Failure> {
    match linerate_lab::kept().map_err(failure)? {
        Some(kept) => {
            kept.down().map_err(failure)?;
            say("linerate: the lab is down");
        }
        None => say("linerate: no lab is up"),
    }
    Ok(())
}

fn shell(host: &str, command: &[String]) -> Result<(), Failure> {
    let kept = linerate_lab::kept()
        .map_err(failure)?
        .ok_or_else(|| Failure::usage("no lab is up; `linerate lab --keep` builds one and leaves it"))?;
    let mut program = match command {
        [program, ..] => Program::new(program),
        [] => Program::new(std::env::var_os("SHELL").unwrap_or_else(|| "/bin/sh".into())),
    };
    program.args(command.iter().skip(1));
    let status = kept.enter(&HostName(host.to_owned()), program).map_err(failure)?;
    match status.code() {
        Some(0) => Ok(()),
        Some(code) => Err(Failure::Code(u8::try_from(code).unwrap_or(u8::MAX))),
        None => Err(Failure::measure("the program was ended by a signal")),
    }
}

/// What is wrong with the bench is the user's to mend; what is wrong with the machine is not.
fn failure(error: LabError) -> Failure {
    match error {
        LabError::UnknownBench { .. }
        | LabError::Unreadable { .. }
        | LabError::Malformed { .. }
        | LabError::Impossible { .. }
        | LabError::UnknownHost { .. }
        | LabError::AlreadyKept { .. } => Failure::usage(error),
        _ => Failure::measure(error),
    }
}
