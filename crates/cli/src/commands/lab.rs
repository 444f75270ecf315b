//! `linerate lab`: hosts, links and a device on this one machine, and any command run among them.

use super::command_line::{Command, CommandLine};
use super::demo;
use super::device::split;
use super::help;
use crate::exit::Failure;
use crate::hosts::{HostBook, LOCAL};
use crate::options::{Results, Typed};
use crate::output::{self, language, say};
use clap::Subcommand;
use linerate_lab::{
    Bench, CrossTraffic, DeviceKind, Fault, HubPortCounts, Lab, LabError, LabOptions, OpenVswitchLimits, PathPlan,
    SlowDisk, SlowRouter, SlowServer, TESTER, child_processes, cross, open_vswitch, path, pause, slow_disk,
    slow_router,
};
use linerate_model::{Calibrated, HostName};
use linerate_report::{Language, said};
use linerate_units::{BitRate, Nanos};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command as Program;
use tokio::sync::watch;

/// Build hosts, links and a device from network namespaces, and run a command there
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  linerate lab                          the demonstration, with report.html
  linerate lab --link 100Mbit/s -- stream a b --udp --sizes 64,1472
  linerate lab --police 300Mbit/s -- stream a b --prove
  linerate lab --device path,delay=20ms,rate=50Mbit/s,loss=0.1% -- stream a b
  linerate lab --routers 4 --fault path,at=2-3,rate=20Mbit/s -- stream a b
  linerate lab --keep && linerate stream a b && linerate lab down

Hosts are called a, b, c and so on. The lab changes nothing outside itself, and
leaves nothing behind.",
    after_long_help = "\
More examples:
  linerate lab --device reference,max-frames=200000 -- device throughput --ports tester:p0,tester:p1 --sizes 64
  linerate lab --hosts 2 --device path,delay=20ms,queue=128KiB -- stream a b
  linerate lab --device hub,collisions=true,seed=1 -- stream a,c b --udp
  linerate lab shell a -- ip address

The demonstration measures two hosts and a switch, with raw frames too. An unprivileged user's lab uses a user namespace of its \
own."
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Option<Action>,

    /// switch, cable, router, hub, tester, testers, or a file
    ///
    /// Bench of the lab (docs/bench-files.md). The default is switch, or for raw frames tester, with the ports that the command
    /// names.
    #[arg(long, value_name = "BENCH")]
    bench: Option<String>,

    /// Rate of every link [default: not limited]
    ///
    /// It then behaves as Ethernet of that rate. Links of the demonstration have 1Gbit/s.
    #[arg(long, value_name = "RATE")]
    link: Option<BitRate>,

    /// bridge, router, none, hub, open-vswitch, path, reference
    ///
    /// Device between the hosts: bridge (a switch), router, none (a cable from a to b), hub (one half-duplex medium for all
    /// ports), open-vswitch (Open vSwitch with its userspace datapath), reference (a switch of known limits), or path (delay,
    /// rate, loss and more), for example reference,max-frames=200000,loss=1/1000 or path,delay=20ms,rate=50Mbit/s. Fields of
    /// open-vswitch: addresses, ageing. Fields of a reference device: max-frames, max-rate, loss, queue, addresses, echo,
    /// port-rate, queues, pause, forward-pressure, broadcast, undersize, oversize, uplink. Fields of a path, for each direction:
    /// delay, jitter, rate, queue, burst, loss, loss-burst, corrupt, duplicate, reorder, mark, max-frames, slots, alternate,
    /// mtu, mtu-silent, cut, fair. Fields of a hub: rate (default 10Mbit/s), queue, collisions, seed (docs/bench-files.md).
    /// --routers is a device of its own.
    #[arg(long, value_name = "KIND")]
    device: Option<DeviceKind>,

    /// Number of routers in a row between hosts a and b
    ///
    /// At most 12. Each link is a network of its own, and has limits by --fault path,at=2-3,rate=20Mbit/s: link 0-1 is that
    /// of host a, 2-3 joins the second router and the third (docs/bench-files.md).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=12), conflicts_with = "device")]
    routers: Option<u8>,

    /// Rate to which the device shapes traffic to every host
    ///
    /// The agents are not told.
    #[arg(long, value_name = "RATE")]
    shape: Option<BitRate>,

    /// Rate above which the device drops traffic (a policer)
    ///
    /// Applies to traffic to every host; the agents are not told.
    #[arg(long, value_name = "RATE")]
    police: Option<BitRate>,

    /// Slow down a host's NFS server: time of each call or of writes, and number of calls at once (default 8), for
    /// example b,service-time=2ms,at-once=1 or b,write-time=20ms; may be repeated
    #[arg(long, value_name = "HOST,TIMES", hide_short_help = true)]
    slow_server: Vec<SlowServer>,

    /// Slow down the disk that copies use on a host, for example b,write-rate=20MB/s or
    /// a,read-rate=50MB/s,access-time=5ms; may be repeated
    #[arg(long, value_name = "HOST,LIMITS", hide_short_help = true)]
    slow_disk: Vec<SlowDisk>,

    /// Plant a fault at a host or in a chain of routers, for example softirq-load,at=b,cost=5us or
    /// path,at=2-3,delay=5ms,loss=1% (docs/bench-files.md lists the kinds); may be repeated
    #[arg(long, value_name = "KIND,at=PLACE", hide_short_help = true)]
    fault: Vec<Fault>,

    /// Send datagrams between two hosts for as long as the lab runs, for example from=c,to=b,rate=50Mbit/s,size=1400;
    /// may be repeated
    #[arg(long, value_name = "TRAFFIC", hide_short_help = true)]
    cross: Vec<CrossTraffic>,

    /// Number of hosts
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(2..=26))]
    hosts: Option<u8>,

    /// Keep the lab running; `linerate lab down` removes it
    #[arg(long)]
    keep: bool,

    /// A command to run in the lab [default: the demonstration]
    ///
    /// It is one of linerate's, without `linerate`.
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,

    #[command(flatten)]
    results: Typed<Results>,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Remove a kept lab
    Down,
    /// Open a shell, or run a program, in a host of a kept lab
    Shell {
        /// The host
        host: String,
        /// The program and its arguments [default: the user's shell]
        #[arg(last = true, value_name = "PROGRAM")]
        command: Vec<String>,
    },
    /// Maintain one of a lab's planted faults
    #[command(hide = true)]
    Beside {
        #[command(subcommand)]
        role: Role,
    },
}

/// Processes that maintain a lab's faults until their standard input ends.
#[derive(Debug, Subcommand)]
enum Role {
    /// Take a share of a core's time
    Neighbour { core: u32, share: f64, first: Option<String> },
    /// Remove a control group
    Keeper { group: PathBuf },
    /// Forward the frames of a path
    Path { plan: PathPlan },
    /// Run Open vSwitch between the ports, on one core if it is given
    OpenVswitch { limits: OpenVswitchLimits, core: Option<u32> },
    /// Send the PAUSE frames of a reference device
    Pauses,
    /// Answer for a slow router
    SlowRouter { plan: SlowRouter },
    /// Serve the slow disk of a host
    SlowDisk { disk: SlowDisk, folders: Vec<PathBuf> },
    /// Exchange datagrams by two inherited sockets
    Cross { interval_ns: u64, size: u16 },
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

    /// The bench for one run of a study, and that run.
    pub(crate) fn of_study(&self, test: Command, results: &Results) -> Result<(Bench, LabTask), Failure> {
        if self.keep || self.action.is_some() {
            return Err(Failure::usage("the lab of a study is taken down with it: leave --keep, down and shell out"));
        }
        self.check_results()?;
        let wanted = LabTask::of_study(test, results)?;
        Ok((self.bench(&wanted)?, wanted))
    }

    /// Refuses options for results: they belong to the command in the lab.
    fn check_results(&self) -> Result<(), Failure> {
        match self.results.names.first() {
            Some(option) if self.command.is_empty() => Err(Failure::usage(format!(
                "{option} does not go with --keep: nothing is measured; give it to the command that measures"
            ))),
            Some(option) => Err(Failure::usage(format!(
                "{option} belongs to the command in the lab: write it behind `--`, as in `linerate lab -- stream a b {option}`"
            ))),
            None => Ok(()),
        }
    }

    /// The bench asked for; what sends raw frames has one of its own.
    fn bench(&self, command: &LabTask) -> Result<Bench, Failure> {
        let testers = command.testers();
        let hosts_test = testers.iter().any(|host| ![TESTER, LOCAL].contains(&host.0.as_str()));
        let usual = match hosts_test {
            true => "testers",
            false if testers.is_empty() => "switch",
            false => "tester",
        };
        let mut bench = Bench::find(self.bench.as_deref().unwrap_or(usual)).map_err(failure)?;
        if self.bench.is_none() && bench.tester_ports > 0 {
            let ports = bench.tester_ports.max(command.tester_ports());
            bench = bench.with_tester(ports);
        }
        let chain = self.routers.map(|routers| DeviceKind::Chain { routers });
        if let Some(device) = self.device.or(chain) {
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
        if let Some(rate) = self.police {
            bench = bench.with_policer(rate);
        }
        for server in &self.slow_server {
            bench = bench.with_slow_server(server.clone());
        }
        for disk in &self.slow_disk {
            bench = bench.with_slow_disk(disk.clone());
        }
        for fault in &self.fault {
            bench = bench.with_fault(fault.clone());
        }
        for cross in &self.cross {
            bench = bench.with_cross_traffic(cross.clone());
        }
        bench.check().map_err(failure)?;
        Ok(bench)
    }
}

impl Role {
    fn play(&self) -> Result<(), Failure> {
        let played = match self {
            Self::Neighbour { core, share, first } => child_processes::neighbour(*core, *share, first.is_some()),
            Self::Keeper { group } => child_processes::keeper(group),
            Self::Path { plan } => path::serve(plan),
            Self::OpenVswitch { limits, core } => open_vswitch::serve(limits, *core),
            Self::Pauses => pause::serve(),
            Self::SlowRouter { plan } => slow_router::serve(plan),
            Self::SlowDisk { disk, folders } => slow_disk::serve(disk, folders),
            Self::Cross { interval_ns, size } => cross::exchange(Nanos::new(*interval_ns), *size),
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
        if let Some(hosts) = arguments.hosts.filter(|hosts| *hosts != 2) {
            return Err(Failure::usage(format!(
                "--hosts {hosts}: the demonstration has two hosts; name a command behind `--`, as in `linerate lab --hosts {hosts} -- \
                 stream a,c b`"
            )));
        }
        return demo::run(bench, &arguments.results.options, cancel).await;
    }
    arguments.check_results()?;
    bench.check_programs().map_err(failure)?;
    let calibrated = command.tester_limits(&bench, &cancel).await?;
    let lab = up(&bench, arguments.keep, command.folders()).await?;
    if *cancel.borrow() {
        lab.down().await;
        return Err(Failure::measure("interrupted before anything was measured; the lab is down"));
    }
    let book = HostBook::of_lab(&lab);
    let result = command.run(book, calibrated, cancel).await;
    let counts = lab.path_counts().ok().flatten();
    if let Some(line) = counts.and_then(|counts| of_hub(language(), &counts.from)) {
        say(&line);
    }
    if arguments.keep {
        let names: Vec<&str> = lab.hosts().keys().map(|host| host.0.as_str()).collect();
        say(&said!(
            language(),
            "lab-stays-up",
            "linerate: the lab stays up with hosts {hosts}; `linerate lab down` removes it",
            hosts = names.join(", ")
        ));
        lab.keep().map_err(failure)?;
    } else {
        lab.down().await;
    }
    result
}

/// Formats the counts of a hub's ports; `None` if nothing arrived at one, as at other devices.
fn of_hub(lang: Language, counts: &BTreeMap<HostName, HubPortCounts>) -> Option<String> {
    let mut ports = Vec::new();
    for (host, port) in counts.iter().filter(|(_, port)| port.arrived > 0) {
        let mut parts = vec![said!(
            lang,
            "lab-hub-sent",
            "{host} sent {frames} frames",
            host = &host.0,
            frames = port.sent.to_string()
        )];
        if port.collisions > 0 {
            parts.push(said!(lang, "lab-hub-collisions", "{count} collisions", count = port.collisions.to_string()));
        }
        if port.excessive_collisions > 0 {
            parts.push(said!(
                lang,
                "lab-hub-excessive-collisions",
                "{count} dropped after 16 collisions",
                count = port.excessive_collisions.to_string()
            ));
        }
        if port.queue_full > 0 {
            parts.push(said!(
                lang,
                "lab-hub-queue-full",
                "{count} dropped as the queue was full",
                count = port.queue_full.to_string()
            ));
        }
        ports.push(parts.join(&said!(lang, "list-comma", ", ")));
    }
    (!ports.is_empty()).then(|| said!(lang, "lab-hub", "linerate: on the hub {ports}", ports = ports.join("; ")))
}

/// What is to be done in the lab.
pub(crate) enum LabTask {
    Command(Box<Command>),
    Device(Box<super::device::Arguments>),
    Nothing,
}

impl LabTask {
    /// That of a command line.
    fn of(command: Command) -> Result<Self, Failure> {
        match command {
            Command::Lab(_) | Command::Serve(_) | Command::Run(_) => Err(Failure::usage(
                "a lab cannot hold another lab, and its hosts have agents already; run stream, transact, ladder or probe in it",
            )),
            Command::Device(test) => Ok(Self::Device(Box::new(test))),
            command => Ok(Self::Command(Box::new(command))),
        }
    }

    /// That of one run of a study, whose results go where `results` says.
    pub(crate) fn of_study(mut test: Command, results: &Results) -> Result<Self, Failure> {
        if let Some(of_test) = test.results_mut() {
            *of_test = Results { sample: of_test.sample, ..results.clone() };
        }
        let wanted = Self::of(test)?;
        wanted.device().map_or(Ok(()), |test| test.check())?;
        Ok(wanted)
    }

    /// The tester limits, where the result is compared with them and something stands between its ports.
    pub(crate) async fn tester_limits(
        &self,
        bench: &Bench,
        cancel: &watch::Receiver<bool>,
    ) -> Result<Vec<Calibrated>, Failure> {
        match self.device() {
            // A run that goes on has those that it began with.
            Some(test) if test.wants_tester_limit() && !test.resumes() && bench.device.kind != DeviceKind::None => {
                say(&said!(
                    language(),
                    "lab-tester-limit-first",
                    "linerate: first the tester limit, with a cable in the device's place"
                ));
                tester_limits(test, bench.clone(), &self.testers(), cancel).await
            }
            _ => Ok(Vec::new()),
        }
    }

    /// Does it, with the hosts that `book` knows by name.
    pub(crate) async fn run(
        self,
        book: HostBook,
        calibrated: Vec<Calibrated>,
        cancel: watch::Receiver<bool>,
    ) -> Result<(), Failure> {
        match self {
            Self::Device(test) => Box::pin(super::device::run(*test, book, calibrated, cancel)).await,
            Self::Command(command) => super::run_command(*command, book, cancel).await,
            Self::Nothing => Ok(()),
        }
    }

    /// The hosts whose ports it sends raw frames from; none if it works with hosts.
    fn testers(&self) -> Vec<HostName> {
        self.ports().iter().map(|port| HostName::from(split(port).0)).collect()
    }

    /// Returns the number of ports that a tester needs to have all those that the task names.
    fn tester_ports(&self) -> u8 {
        let ports = self.ports();
        let of_tester = ports.iter().map(|port| split(port)).filter(|(host, _)| *host == TESTER);
        let numbers = of_tester.filter_map(|(_, port)| port.strip_prefix('p')?.parse::<u8>().ok());
        numbers.max().map_or(0, |last| last.saturating_add(1))
    }

    /// Returns the ports that it sends raw frames from.
    fn ports(&self) -> Vec<String> {
        match self {
            Self::Device(test) => test.ports().to_vec(),
            Self::Command(command) => match &**command {
                Command::Compare(compare) => {
                    compare.inner().iter().flat_map(|command| ports_of(command).to_vec()).collect()
                }
                command => ports_of(command).to_vec(),
            },
            Self::Nothing => Vec::new(),
        }
    }

    /// The folders that it names, which its hosts may then read and write: they are the user's own.
    pub(crate) fn folders(&self) -> Vec<PathBuf> {
        match self {
            Self::Command(command) => match &**command {
                Command::Copy(copy) => copy.folders(),
                _ => Vec::new(),
            },
            Self::Device(_) | Self::Nothing => Vec::new(),
        }
    }

    /// The device test, if it is one.
    fn device(&self) -> Option<&super::device::Arguments> {
        match self {
            Self::Device(test) => Some(test),
            Self::Command(_) | Self::Nothing => None,
        }
    }
}

/// Returns the ports that a command sends raw frames from.
fn ports_of(command: &Command) -> &[String] {
    match command {
        Command::Device(test) => test.ports(),
        Command::Frames(frames) => frames.ports(),
        _ => &[],
    }
}

/// The tester limits, measured in a lab of its own with a cable in the device's place.
pub(super) async fn tester_limits(
    test: &super::device::Arguments,
    bench: Bench,
    testers: &[HostName],
    cancel: &watch::Receiver<bool>,
) -> Result<Vec<Calibrated>, Failure> {
    let mut cable = bench.with_device(DeviceKind::None).without_faults();
    if cable.tester_ports == 0 {
        cable = cable.with_testers(testers);
    }
    let lab = up(&cable, false, Vec::new()).await?;
    let book = HostBook::of_lab(&lab);
    let calibrated = Box::pin(super::device::calibrate(test, &book, cancel.clone())).await;
    lab.down().await;
    calibrated
}

/// Reads the inner command line; none if it only asked for help.
fn read(words: &[String]) -> Result<Option<LabTask>, Failure> {
    if words.is_empty() {
        return Ok(Some(LabTask::Nothing));
    }
    let words = words.strip_prefix(&["linerate".to_owned()]).unwrap_or(words);
    match help::parse_from(std::iter::once("linerate").chain(words.iter().map(String::as_str))) {
        Ok(CommandLine { command, lang }) => {
            // Said inside, it holds for the whole lab.
            lang.into_iter().for_each(output::speak);
            LabTask::of(command).map(Some)
        }
        Err(error) => {
            crate::exit::usage(&error);
            if error.use_stderr() { Err(Failure::Code(2)) } else { Ok(None) }
        }
    }
}

/// Builds a lab whose agents are this very program.
pub(crate) async fn up(bench: &Bench, keep: bool, folders: Vec<PathBuf>) -> Result<Lab, Failure> {
    let program =
        std::env::current_exe().map_err(|error| Failure::measure(format!("cannot find this program: {error}")))?;
    Lab::up(bench, &LabOptions { program, keep, folders }).await.map_err(failure)
}

fn down() -> Result<(), Failure> {
    match linerate_lab::kept().map_err(failure)? {
        Some(kept) => {
            kept.down().map_err(failure)?;
            say(&said!(language(), "lab-is-down", "linerate: the lab is down"));
        }
        None => say(&said!(language(), "lab-none-up", "linerate: no lab is up")),
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
pub(super) fn failure(error: LabError) -> Failure {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tester_has_the_ports_that_a_command_names() {
        for (line, expected) in [
            ("device throughput --ports tester:p0,tester:p7", 8),
            ("frames --ports tester:p0,tester:p1", 3),
            ("frames --ports tester:p0,tester:p99", 100),
        ] {
            let words: Vec<_> = line.split(' ').map(str::to_owned).collect();
            let task = read(&words).expect("a command line").expect("a command");
            let ports = Bench::named("tester").expect("built in").tester_ports.max(task.tester_ports());
            assert_eq!(ports, expected, "{line}");
        }
    }

    #[test]
    fn ports_of_a_hub_are_listed_with_their_counts() {
        let sent = HubPortCounts { arrived: 12, sent: 9, collisions: 4, excessive_collisions: 1, ..Default::default() };
        let counts = BTreeMap::from([("a".into(), sent), ("b".into(), HubPortCounts::default())]);
        assert_eq!(
            of_hub(Language::English, &counts).as_deref(),
            Some("linerate: on the hub a sent 9 frames, 4 collisions, 1 dropped after 16 collisions")
        );
        assert_eq!(
            of_hub(Language::Japanese, &counts).as_deref(),
            Some("linerate: ハブの計数: a の送信 9 フレーム、衝突 4 回、16 回の衝突による廃棄 1 フレーム")
        );
        assert_eq!(of_hub(Language::English, &BTreeMap::new()), None);
    }
}
