//! `linerate nfs`: operations on an NFS server, at one load or at one after the other up to its peak.

mod mix;
mod server;
mod target;

pub(super) use server::Server;
pub(super) use target::{Target, named};

use crate::device_load::ServerLoadSource;
use crate::exit::Failure;
use crate::hosts::{HostArguments, HostBook, ReachedAgents, all_listed, host_arguments};
use crate::measure::{Beside, RunRequest, conclude, reach};
use crate::options::{Over, Repetition, Results, Sockets};
use crate::output::say;
use linerate_method::calibrated;
use linerate_method::curve::calibration;
use linerate_model::{
    Arrivals, Calibrated, CurvePlan, FileSet, Goal, Net, NfsMix, NfsServer, NfsTask, Path, Plan, Repeats,
    Server as PathServer, Task, Timing, Transport, Trial, Window,
};
use linerate_units::{ByteCount, Nanos, OpRate, Ratio};
use tokio::sync::watch;

/// The closed loop that finds the scale of a curve.
const PROBE: &str = "nfs closed loop";
const PROBE_TIME: Nanos = Nanos::from_secs(1);
/// Loads up to the closed loop's rate: as LADDIS and SFS ask for ten at least.
const STEPS: u32 = 10;
/// Operations that may be left undone or fail at a load that is held, and how narrowly the peak is found.
const BEARABLE: Ratio = Ratio::new(2, 100);

/// Measure an NFS server: operations per second, response times, its peak
#[derive(Debug, clap::Args)]
#[command(
    after_help = "\
Examples:
  linerate nfs B                        the server of B's agent, closed loop
  linerate nfs A B --rate 2000          2,000 operations/s, each timed when due
  linerate nfs A B --mix laddis-like --curve --out nfs.html
  linerate nfs 192.0.2.5:/srv/test --curve        an existing server, NFS 3
  linerate lab -- nfs a b --curve

Mixes: laddis-like, sfs97-like, read, write, metadata, null, getattr; or a
TOML file with lines such as `read = 60`.",
    after_long_help = "\
More examples:
  linerate nfs 127.0.0.1:/export --nfs-port 2049 --mount-port 20048 --udp
  linerate nfs A,C B --mix mine.toml --rate 1k    1,000/s from each of A and C

Without --rate and --curve, --connections x --outstanding operations are in flight, and each answer triggers the next: a \
quick look at what the server can do. With --curve, the load rises in ten steps to that rate. Then the highest load with a \
mean response time within --response-cap is searched.

On an existing server linerate makes a directory of its own in the export, works only there, and removes it."
)]
pub(crate) struct Arguments {
    /// Clients and server, or the server alone
    ///
    /// Separate clients by commas. The server is a host with an agent (agent URL, `local`, a lab host's name), which starts a
    /// server of its own, or SERVER:/EXPORT. If you name one, it is the server, and this machine is the client.
    #[arg(required = true, num_args = 1..=2, value_name = "HOST|SERVER:/EXPORT")]
    pub(crate) hosts: Vec<String>,

    /// Mix of operations
    ///
    /// A name, or a TOML file of percentages.
    #[arg(long, value_name = "NAME|FILE", default_value = "sfs97-like")]
    mix: String,

    /// Operations per second of each client
    ///
    /// They are due at random times (a Poisson process, as of many independent users). Response time counts from when an
    /// operation was due.
    #[arg(long, short = 'b', value_name = "RATE", conflicts_with = "curve")]
    rate: Option<OpRate>,

    /// Raise the load up to the server's peak
    ///
    /// Offers one load after the other, and finds the highest that the server sustains.
    #[arg(long)]
    curve: bool,

    /// Maximum mean response time
    ///
    /// Applies at the peak of a curve.
    #[arg(long, value_name = "TIME", default_value = "50ms")]
    response_cap: Nanos,

    #[command(flatten)]
    over: Over,

    /// Connections of each client
    ///
    /// With UDP they are sockets.
    #[arg(long, short = 'P', value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=128))]
    connections: u16,

    /// Operations in flight on each
    ///
    /// Maximum number of operations in flight on each connection.
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=4096))]
    outstanding: u16,

    /// Maximum bytes of one read or write call
    #[arg(long, value_name = "BYTES", default_value = "8KiB", hide_short_help = true)]
    transfer_size: ByteCount,

    /// Do not measure the tester limit first
    #[arg(long, hide_short_help = true)]
    no_tester_limit: bool,

    #[command(flatten)]
    files: Files,

    #[command(flatten)]
    server: Server,

    #[command(flatten)]
    server_load: ServerLoadSource,

    #[command(flatten)]
    repetition: Repetition,

    #[command(flatten)]
    pub(crate) sockets: Sockets,

    #[command(flatten)]
    pub(crate) results: Results,
}

/// The file set.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Files")]
struct Files {
    /// Number of files [default: 200]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000), hide_short_help = true)]
    files: Option<u32>,

    /// Number of directories [default: one for ten files]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000), hide_short_help = true)]
    directories: Option<u32>,

    /// Bytes of each file [default: 144KiB]
    #[arg(long, value_name = "BYTES", hide_short_help = true)]
    file_size: Option<ByteCount>,

    /// Seed of operations, files, data and times: the same seed gives the same load
    #[arg(long, value_name = "N", default_value_t = 1, hide_short_help = true)]
    seed: u64,
}

pub(crate) async fn run(
    mut arguments: Arguments,
    book: HostBook,
    cancel: watch::Receiver<bool>,
) -> Result<(), Failure> {
    let (hosts, paths, server) = arguments.ends(&book).map_err(Failure::usage)?;
    let mut plan = arguments.plan(paths, server).map_err(Failure::usage)?;
    let asked = RunRequest::of_plan(&arguments.results, &plan)?;
    let mut agents = reach(&book, &hosts, cancel.clone()).await?;
    let device = match arguments.server_load.watch(&book, &mut agents, &hosts).await {
        Ok(device) => device,
        Err(failure) => {
            agents.close().await;
            return Err(failure);
        }
    };
    if !arguments.no_tester_limit && !asked.resumes() {
        plan.calibrated = tester_limits(&plan, &asked, &agents, &cancel).await;
    }
    let ended = asked.run(plan, &agents, Beside { device, ..Beside::default() }, cancel).await;
    agents.close().await;
    conclude(&ended?, &arguments.results)
}

/// What the clients themselves can do; nothing if that could not be measured, which the user is told.
async fn tester_limits(
    plan: &Plan,
    asked: &RunRequest,
    agents: &ReachedAgents,
    cancel: &watch::Receiver<bool>,
) -> Vec<Calibrated> {
    let Some(calibration) = calibration(plan) else { return Vec::new() };
    match asked.calibrate(calibration, agents, cancel.clone()).await {
        Ok(record) => calibrated(&record),
        Err(failure) => {
            say(&format!(
                "linerate: the tester limit could not be measured: {failure}; --no-tester-limit leaves it out"
            ));
            Vec::new()
        }
    }
}

impl Arguments {
    /// Who takes part, who asks whom, and the server where it has no agent.
    fn ends(&mut self, book: &HostBook) -> Result<(HostArguments, Vec<Path>, Option<NfsServer>), String> {
        let pair = book.pair(&self.hosts);
        let [clients, server] = &pair[..] else {
            return Err("name a client and a server, or a server alone".to_owned());
        };
        let Target::Server { server, export } = Target::read(server)? else {
            if let Some(option) = self.server.given().or(self.server_load.given()) {
                return Err(format!("{option} is for a server that is there already, given as SERVER:/export"));
            }
            let hosts = host_arguments(&pair)?;
            let paths = hosts.paths();
            return Ok((hosts, paths, None));
        };
        let (hosts, names) = all_listed(clients)?;
        let shown = named(&server, &export);
        if let Some(twice) = names.iter().enumerate().find_map(|(at, name)| names[..at].contains(name).then_some(name))
        {
            return Err(format!("{twice} is named twice; for more connections from one host use --connections"));
        }
        let path = |client| Path { client, server: PathServer::Foreign(shown.clone()) };
        let paths = names.into_iter().map(path).collect();
        self.sockets.reach_by(server.split_once('%').map(|(_, zone)| zone.to_owned()));
        let server = self.server.at(&server, export, self.sockets.ip())?;
        Ok((hosts, paths, Some(server)))
    }

    fn plan(&self, paths: Vec<Path>, server: Option<NfsServer>) -> Result<Plan, String> {
        let clients = paths.len() as u64;
        let nfs = self.task(paths, server)?;
        let timing = self.repetition.timing()?;
        if !self.curve {
            let name = match self.rate {
                Some(rate) => format!("nfs {} ops/s", rate.get() * clients),
                None => PROBE.to_owned(),
            };
            return self.repetition.sweep(vec![Trial::new(name, Task::Nfs(nfs), timing)]);
        }
        let repeats = self.repetition.repeats_or(1)?;
        Ok(Plan::of(Goal::Curve(curve(nfs, timing, repeats, self.response_cap))))
    }

    fn task(&self, paths: Vec<Path>, server: Option<NfsServer>) -> Result<NfsTask, String> {
        if self.rate.is_some_and(|rate| rate.get() == 0) {
            return Err("--rate 0 asks nothing; give operations a second, as in 2000".to_owned());
        }
        if self.response_cap.get() == 0 {
            return Err("--response-cap 0 is met by no server; give a time, as in 50ms".to_owned());
        }
        let transport = self.over.transport();
        let most = match transport {
            Transport::Udp => NfsTask::UDP_MAXIMUM,
            Transport::Tcp => NfsTask::TCP_MAXIMUM,
        };
        let transfer = self.transfer_size.get();
        if !(NfsTask::UNIT..=most).contains(&transfer) || !transfer.is_multiple_of(NfsTask::UNIT) {
            return Err(format!(
                "--transfer-size {transfer}: a call over {transport} carries {} to {most} bytes, in whole KiB, as in 8KiB",
                NfsTask::UNIT
            ));
        }
        let (mix, files) = (self.mix()?, self.files.set()?);
        if mix.needs_files() && files.files < u32::from(self.connections) {
            return Err(format!(
                "--files {}: each of the {} --connections needs files of its own; give as many files or fewer connections",
                files.files, self.connections
            ));
        }
        Ok(NfsTask {
            paths,
            net: Net { transport, ip: self.sockets.ip(), flows: self.connections, socket: self.sockets.options() },
            server,
            files,
            transfer_bytes: self.transfer_size,
            outstanding: self.outstanding,
            rate: self.rate,
            arrivals: Arrivals::Poisson,
            seed: self.files.seed,
            ..NfsTask::plain(transport, mix)
        })
    }

    fn mix(&self) -> Result<NfsMix, String> {
        mix::read(&self.mix)
    }
}

impl Files {
    /// The set asked for.
    fn set(&self) -> Result<FileSet, String> {
        let usual = FileSet::default();
        let files = self.files.unwrap_or(usual.files);
        let file_bytes = self.file_size.unwrap_or(usual.file_bytes);
        if file_bytes.get() < NfsTask::UNIT || !file_bytes.get().is_multiple_of(NfsTask::UNIT) {
            return Err(format!("--file-size {}: a file has whole KiB, as in 100KiB", file_bytes.get()));
        }
        let tenth = (files / 10).max(1);
        Ok(FileSet { files, directories: self.directories.unwrap_or(tenth).min(files), symlinks: tenth, file_bytes })
    }
}

/// The curve of `task`: its scale is found by a closed loop, in a window of at most [`PROBE_TIME`].
fn curve(task: NfsTask, timing: Timing, repeats: Repeats, response_cap: Nanos) -> CurvePlan {
    let window = timing.window().unwrap_or_default();
    let probe = Timing::Window(Window { measure: PROBE_TIME.min(window.measure), ..window });
    CurvePlan {
        cell: Trial::new(PROBE, Task::Nfs(task), probe),
        repeats,
        time: window.measure,
        response_cap,
        steps: STEPS,
        shortfall: BEARABLE,
        width: BEARABLE,
    }
}
