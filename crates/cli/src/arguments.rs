//! The command line. Each command's own words are beside its code; what several share is here.

use crate::commands::{
    calibrate, compare, completions, copy, device, explain, frames, hosts, lab, ladder, limits, man, nfs, probe,
    report, results, rpc, run, serve, stream, transact, view,
};
use crate::exit::Failure;
use crate::expectations::BuildReport;
use crate::hosts::HostBook;
use clap::builder::styling::{AnsiColor, Styles};
use clap::{Args, Parser, Subcommand};
use linerate_method::{Expectation, Metric};
use linerate_model::{Arrivals, IpVersion, Net, Plan, Repeats, Sampling, SocketOptions, Timing, Transport, Trial};
use linerate_report::Language;
use linerate_runner::Origin;
use linerate_store::Store;
use linerate_units::{ByteCount, Nanos, OpRate, Ratio};
use std::net::{IpAddr, ToSocketAddrs as _};
use std::path::PathBuf;

const STYLES: Styles =
    Styles::styled().header(AnsiColor::Green.on_default().bold()).literal(AnsiColor::Cyan.on_default().bold());

/// What most people need, on one screen of 80 columns and 24 rows with what stands above it.
const SCREEN: &str = "\
Most used:
  linerate lab                two hosts and a switch on this machine, measured
  linerate serve              on the other machine: prints its agent URL
  linerate URL                the path to it: both ways, latency, the limit
  linerate stream URL         TCP or UDP throughput, counted at the receiver
  linerate transact URL       requests and responses: rate and latency
  linerate report             the latest record; --out report.html for a page

Measure more:  rpc  nfs  copy  ladder  device  frames  calibrate  run (a study)
Read records:  results  report  explain  compare  view (in a browser)
Set up:        hosts (saved by name)  probe  limits  completions  man

  linerate COMMAND --help     examples and everyday options of a command
  linerate --help-all         all commands in a line each, more examples
      --lang <LANG>           language of results: en or ja
  -V, --version               version";

/// All of it, before the list of commands.
pub(crate) const EXAMPLES: &str = "\
Examples:
  linerate lab                                   Two hosts and a switch, measured, with a report
  linerate lab --link 100Mbit/s -- stream a b --udp --sizes 64,1472
  linerate serve                                 On the other host: prints its agent URL
  linerate stream linerate://host:4747#...       From here to that host, TCP
  linerate iperf3://192.0.2.5                    To and from a server of iperf3
  linerate stream A B --udp --expect 'loss<=0.1%'
  linerate transact A B --rate 10k               Latency at 10,000 requests per second
  linerate rpc A B --sizes 1K,8K                 ONC RPC over UDP and TCP, by size of the data
  linerate nfs A B --mix sfs97-like --curve      NFS response time against load, up to the peak
  linerate copy --tree like:system A B           A folder tree, verified and timed by stage
  linerate ladder A B                            All layers of one path, and which loses most
  linerate calibrate A B                         The hosts' own limit, without the device
  linerate device throughput --ports eth1,eth2   A switch or router between two ports, RFC 2544
  linerate frames --ports eth1,eth2 --rate 100k  Raw frames from port to port, counted
  linerate run studies/lab-devices.toml          A study: randomised, resumable, with findings
  linerate limits --medium 10gbase-t             Capacity of a medium, calculated layer by layer

Name a host by the agent URL that its agent printed, by a name saved with `linerate hosts add`, as `local` (this machine), or \
by its name in a lab. @FILE reads the agent URL from a file, env:NAME from an environment variable: this keeps it off the \
command line.

Exit codes: 0 measured, 1 measured but an expectation was missed, 2 usage, 3 could not measure, 4 a study waits for an \
operator, 141 stopped because the reader of --json-stream left.";

/// Measures what a network path or device carries, layer by layer, and names the part that limits it.
#[derive(Debug, Parser)]
#[command(name = "linerate", version, styles = STYLES, after_help = SCREEN, arg_required_else_help = true)]
pub(crate) struct Arguments {
    /// Language of results and reports: en or ja. CSV and JSON do not depend on it [default: from LC_ALL, LC_MESSAGES
    /// or LANG]
    #[arg(long, value_name = "LANG", global = true)]
    pub(crate) lang: Option<Language>,

    /// The command.
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Stream(stream::Arguments),
    Transact(transact::Arguments),
    Rpc(rpc::Arguments),
    Nfs(nfs::Arguments),
    Copy(Box<copy::Arguments>),
    Ladder(ladder::Arguments),
    Calibrate(calibrate::Arguments),
    Device(device::Arguments),
    Frames(frames::Arguments),
    Lab(lab::Arguments),
    Run(run::Arguments),
    Serve(serve::Arguments),
    Hosts(hosts::Arguments),
    Probe(probe::Arguments),
    Limits(limits::Arguments),
    Results(results::Arguments),
    Report(report::Arguments),
    Explain(explain::Arguments),
    Compare(compare::Arguments),
    View(view::Arguments),
    Completions(completions::Arguments),
    Man(man::Arguments),
}

impl Command {
    /// Returns the output options; none for a command that measures nothing.
    pub(crate) fn results_mut(&mut self) -> Option<&mut Results> {
        match self {
            Self::Stream(stream) => Some(&mut stream.results),
            Self::Transact(transact) => Some(&mut transact.results),
            Self::Rpc(rpc) => Some(&mut rpc.results),
            Self::Nfs(nfs) => Some(&mut nfs.results),
            Self::Copy(copy) => Some(&mut copy.results),
            Self::Ladder(ladder) => Some(&mut ladder.results),
            Self::Calibrate(calibrate) => Some(&mut calibrate.results),
            Self::Device(device) => Some(device.results_mut()),
            Self::Frames(frames) => Some(&mut frames.results),
            _ => None,
        }
    }
}

impl Command {
    /// Chooses the IP version where none is asked for: IPv6 where every host elsewhere is reached by it.
    pub(crate) fn choose_ip(&mut self, book: &HostBook) {
        let (family, hosts) = match self {
            Self::Stream(stream) => (&mut stream.sockets.family, vec![&stream.hosts]),
            Self::Transact(transact) => (&mut transact.sockets.family, vec![&transact.hosts]),
            Self::Rpc(rpc) => (&mut rpc.sockets.family, vec![&rpc.hosts]),
            Self::Nfs(nfs) => (&mut nfs.sockets.family, vec![&nfs.hosts]),
            Self::Ladder(ladder) => (&mut ladder.sockets.family, vec![&ladder.hosts]),
            Self::Calibrate(calibrate) => (&mut calibrate.family, vec![&calibrate.hosts]),
            Self::Copy(copy) => {
                let to = if copy.discards() { None } else { Some(&copy.to) };
                (&mut copy.family, std::iter::once(&copy.hosts).chain(to).collect())
            }
            _ => return,
        };
        if !family.ipv4 {
            family.ipv6 |= book.ip_version(hosts.into_iter().flatten()) == IpVersion::V6;
        }
    }
}

/// Default number of runs of a measurement.
const USUAL_REPEATS: u32 = 3;

/// Duration and repeats.
#[derive(Debug, Args)]
#[command(next_help_heading = "Duration and repeats")]
pub(crate) struct Repetition {
    /// Length of each measured window
    #[arg(long, short = 't', value_name = "TIME", default_value = "3s")]
    pub(crate) time: Nanos,

    /// Warm-up before each window, excluded from results [default: until the rate is steady, at least 500ms and 10 round
    /// trips, at most 10s]
    #[arg(long, short = 'O', value_name = "TIME")]
    warmup: Option<Nanos>,

    /// Number of runs; the median is reported [default: 3]
    ///
    /// Results have the spread of the runs too. Each load of a curve has one run unless this asks for more.
    #[arg(long, short = 'r', value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    repeats: Option<u32>,

    /// Repeat until the mean has this confidence, percent (see --within). The spread of the first 5 runs says how many runs
    /// are needed
    #[arg(long, value_name = "PERCENT", conflicts_with = "repeats")]
    confidence: Option<f64>,

    /// Repeat until half the width of the confidence interval is at most this share of the mean
    #[arg(long, value_name = "SHARE", conflicts_with = "repeats")]
    within: Option<Ratio>,

    /// Maximum number of runs with --confidence or --within
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u32).range(3..=1000))]
    max_repeats: u32,
}

/// Whether verdicts are tested.
#[derive(Debug, Clone, Copy, Default, Args)]
pub(crate) struct Prove {
    /// Test each verdict: measure again with one thing changed
    ///
    /// For example the load, the flows, the buffers or the congestion control; of a copy: without the storage that the verdict
    /// names. Changed and unchanged trials alternate: 6 trials for each test, 12 if these do not decide; at most two tests for
    /// each verdict.
    #[arg(long)]
    pub(crate) prove: bool,
}

impl Prove {
    /// `plan`, its verdicts tested where that is asked for.
    pub(crate) fn applied_to(self, plan: Plan) -> Plan {
        Plan { prove: self.prove, ..plan }
    }
}

impl Repetition {
    /// A short run of `repeats` trials.
    pub(crate) fn brief(time: Nanos, warmup: Nanos, repeats: u32) -> Self {
        Self {
            time,
            warmup: Some(warmup),
            repeats: Some(repeats),
            confidence: None,
            within: None,
            max_repeats: repeats.max(3),
        }
    }

    /// `repeats` runs of this length, each after the usual warm-up.
    pub(crate) fn plain(time: Nanos, repeats: u32) -> Self {
        Self { warmup: None, ..Self::brief(time, Nanos::default(), repeats) }
    }

    pub(crate) fn timing(&self) -> Result<Timing, String> {
        const SHORTEST: Nanos = Nanos::from_millis(50);
        if self.time < SHORTEST {
            return Err(format!("--time {} is too short to measure anything; give at least {SHORTEST}", self.time));
        }
        Ok(self.warmup.map_or(Timing::when_steady(self.time), |warmup| Timing::of(warmup, self.time)))
    }

    /// As [`Self::timing`], with a warm-up of fixed length: `usual` unless another is asked for.
    pub(crate) fn timing_after(&self, usual: Nanos) -> Result<Timing, String> {
        self.timing()?;
        Ok(Timing::of(self.warmup.unwrap_or(usual), self.time))
    }

    /// The timing of runs that end by volume, within `longest` with their warm-up: none unless one is asked for.
    pub(crate) fn timing_within(&self, longest: Nanos) -> Result<Timing, String> {
        let warmup = self.warmup.unwrap_or_default();
        if warmup >= longest {
            return Err(format!("--warmup {warmup} leaves nothing of the {longest} that a run may take"));
        }
        Ok(Timing::of(warmup, longest - warmup))
    }

    /// The plan that measures each of `cells`.
    pub(crate) fn sweep(&self, cells: Vec<Trial>) -> Result<Plan, String> {
        Ok(Plan::sweep(cells, self.repeats()?))
    }

    pub(crate) fn repeats(&self) -> Result<Repeats, String> {
        self.repeats_or(USUAL_REPEATS)
    }

    /// As [`Self::repeats`], where `usual` runs are enough if nothing is asked for.
    pub(crate) fn repeats_or(&self, usual: u32) -> Result<Repeats, String> {
        if self.confidence.is_none() && self.within.is_none() {
            return Ok(Repeats::Times(self.repeats.unwrap_or(usual)));
        }
        let confidence_percent = self.confidence.unwrap_or(95.0);
        if !(50.0..100.0).contains(&confidence_percent) {
            return Err(format!(
                "--confidence {confidence_percent} is not a percentage from 50 to below 100, as in 95"
            ));
        }
        let within = self.within.unwrap_or(Ratio::new(25, 1000)).as_f64();
        if within <= 0.0 {
            return Err("--within 0 can never be met; give a share of the mean, as in 2.5%".to_owned());
        }
        Ok(Repeats::Until { confidence_percent, within, at_least: 3, at_most: self.max_repeats })
    }
}

/// Which IP.
#[derive(Debug, Clone, Copy, Default, Args)]
pub(crate) struct Family {
    /// Use IPv6
    #[arg(short = '6', long = "ipv6", conflicts_with = "ipv4")]
    ipv6: bool,

    /// Use IPv4 [default: IPv6 if all other hosts of a trial are reached by it; else, and for raw frames, IPv4]
    #[arg(short = '4', long = "ipv4")]
    ipv4: bool,
}

impl Family {
    pub(crate) fn of(ip: IpVersion) -> Self {
        Self { ipv6: ip == IpVersion::V6, ipv4: ip == IpVersion::V4 }
    }

    pub(crate) fn ip(self) -> IpVersion {
        if self.ipv6 { IpVersion::V6 } else { IpVersion::V4 }
    }

    pub(crate) fn is_v6(self) -> bool {
        self.ipv6
    }

    /// Whether either was asked for.
    pub(crate) fn is_given(self) -> bool {
        self.ipv4 || self.ipv6
    }
}

/// TCP or UDP.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Over {
    /// Use TCP
    ///
    /// It is the default; `rpc` without either measures both.
    #[arg(long, conflicts_with = "udp")]
    tcp: bool,

    /// Use UDP
    #[arg(long, short = 'u')]
    udp: bool,
}

impl Over {
    /// The one that was asked for.
    pub(crate) fn given(self) -> Option<Transport> {
        match (self.tcp, self.udp) {
            (true, _) => Some(Transport::Tcp),
            (_, true) => Some(Transport::Udp),
            _ => None,
        }
    }

    /// The one that was asked for, else TCP.
    pub(crate) fn transport(self) -> Transport {
        self.given().unwrap_or(Transport::Tcp)
    }
}

/// Connections, `MOST` at the most.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Flows<const MOST: u16 = { Net::MOST_FLOWS_WITH_THREADS }> {
    /// Connections (UDP: sockets)
    ///
    /// Each client has as many in each direction.
    #[arg(long, short = 'P', value_name = "N", default_value_t = 1,
        value_parser = clap::value_parser!(u16).range(1..=i64::from(MOST)))]
    pub(crate) flows: u16,
}

/// How requests follow each other.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Requests {
    /// Requests in flight on each flow
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=4096), conflicts_with = "rate")]
    pub(crate) outstanding: u16,

    #[command(flatten)]
    flows: Flows,

    /// Requests per second, answered or not
    ///
    /// Each client sends as many (open loop). Latency counts from when a request was due. The default is a closed loop, in
    /// which each response triggers the next request.
    #[arg(long, short = 'b', value_name = "RATE")]
    rate: Option<OpRate>,

    /// With --rate: random intervals (a Poisson process, as of many independent users) instead of equal ones
    #[arg(long, requires = "rate")]
    poisson: bool,
}

impl Requests {
    pub(crate) fn flows(self) -> u16 {
        self.flows.flows
    }

    /// Requests a second; none is a closed loop.
    pub(crate) fn rate(self) -> Result<Option<OpRate>, String> {
        match self.rate {
            Some(rate) if rate.get() == 0 => Err("--rate 0 asks nothing; give requests a second, as in 20k".to_owned()),
            rate => Ok(rate),
        }
    }

    pub(crate) fn arrivals(self) -> Arrivals {
        if self.poisson { Arrivals::Poisson } else { Arrivals::Even }
    }
}

/// Socket settings.
#[derive(Debug, Args)]
#[command(next_help_heading = "Sockets")]
pub(crate) struct Sockets {
    #[command(flatten)]
    pub(crate) family: Family,

    /// TCP congestion control at both ends, for example cubic or bbr
    #[arg(long, short = 'C', value_name = "NAME")]
    congestion: Option<String>,

    /// Differentiated services code point, 0 to 63
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=63))]
    dscp: Option<u8>,

    /// The same as the whole byte of the type of service, as in 0xb8 for DSCP 46
    #[arg(long, short = 'S', value_name = "BYTE", value_parser = dscp_of_tos, conflicts_with = "dscp")]
    tos: Option<u8>,

    /// SO_SNDBUF of the sending sockets
    #[arg(long, value_name = "BYTES", conflicts_with = "window")]
    send_buffer: Option<ByteCount>,

    /// SO_RCVBUF of the receiving sockets
    #[arg(long, value_name = "BYTES", conflicts_with = "window")]
    receive_buffer: Option<ByteCount>,

    /// Both buffers
    #[arg(long, short = 'w', value_name = "BYTES")]
    window: Option<ByteCount>,

    /// TCP maximum segment size (MSS), bytes of payload
    #[arg(long, short = 'M', value_name = "BYTES", value_parser = clap::value_parser!(u16).range(88..))]
    mss: Option<u16>,

    /// Local address, name or interface of the client, as in 192.0.2.1, eth1 or 192.0.2.1%eth1
    #[arg(long = "bind", short = 'B', value_name = "ADDRESS", value_parser = LocalEnd::read)]
    bind: Option<LocalEnd>,

    /// Interface of the client (SO_BINDTODEVICE)
    #[arg(long = "bind-device", value_name = "IF", value_parser = interface)]
    bind_device: Option<String>,

    /// Cores to pin the sender's threads to, in turn
    #[arg(long, value_name = "CORE", value_delimiter = ',')]
    cpus_sender: Vec<u32>,

    /// Cores to pin the receiver's threads to, in turn
    #[arg(long, value_name = "CORE", value_delimiter = ',')]
    cpus_receiver: Vec<u32>,
}

/// Where a client's sockets are bound: an address of each family, an interface, or both.
#[derive(Debug, Clone, PartialEq, Eq)]
struct LocalEnd {
    addresses: Vec<IpAddr>,
    interface: Option<String>,
}

impl LocalEnd {
    /// Reads `ADDRESS`, `NAME`, `IF`, `ADDRESS%IF` or `NAME%IF`. A word that is no name of a host is an interface, perhaps of another host.
    fn read(text: &str) -> Result<Self, String> {
        let (host, zone) = text.split_once('%').map_or((text, None), |(host, zone)| (host, Some(zone)));
        let zone = zone.map(interface).transpose()?;
        if let Ok(address) = host.parse() {
            return Ok(Self { addresses: vec![address], interface: zone });
        }
        let is_own = zone.is_none() && std::path::Path::new("/sys/class/net").join(host).exists();
        let addresses: Vec<IpAddr> = match (is_own, (host, 0).to_socket_addrs()) {
            (false, Ok(found)) => found.map(|address| address.ip()).collect(),
            _ => Vec::new(),
        };
        match (addresses.is_empty(), zone) {
            (false, zone) => Ok(Self { addresses, interface: zone }),
            (true, None) => Ok(Self { addresses, interface: Some(interface(host)?) }),
            (true, Some(_)) => Err(format!("`{host}` is no address, and no address is known for it as a name")),
        }
    }

    /// Returns the address of that family, else any: the host that is to have it refuses the latter with the reason.
    fn address(&self, ip: IpVersion) -> Option<IpAddr> {
        let wanted = |address: &&IpAddr| address.is_ipv4() == (ip == IpVersion::V4);
        self.addresses.iter().find(wanted).or(self.addresses.first()).copied()
    }
}

/// The name of an interface, as the kernel allows them (dev_valid_name() in net/core/dev.c).
fn interface(text: &str) -> Result<String, String> {
    const MOST_BYTES: usize = 15;
    let plain = |c: char| c.is_ascii_graphic() && c != '/' && c != ':';
    if text.is_empty() || text.len() > MOST_BYTES || !text.chars().all(plain) {
        return Err(format!(
            "`{}` is no address, no name of a host, and no interface, as in 192.0.2.1, eth1 or 192.0.2.1%eth1",
            text.escape_debug()
        ));
    }
    Ok(text.to_owned())
}

/// The DSCP in a type of service, decimal or hexadecimal: its upper six bits (RFC 2474 section 3).
fn dscp_of_tos(text: &str) -> Result<u8, String> {
    let byte = match text.strip_prefix("0x") {
        Some(digits) => u8::from_str_radix(digits, 16),
        None => text.parse(),
    };
    match byte {
        Ok(byte) if byte & 3 == 0 => Ok(byte >> 2),
        Ok(_) => Err("its lower two bits are those of ECN, which TCP sets: expected a multiple of 4".to_owned()),
        Err(_) => Err("expected a byte, as in 184 or 0xb8".to_owned()),
    }
}

impl Sockets {
    pub(crate) fn ip(&self) -> IpVersion {
        self.family.ip()
    }

    /// Binds the client to an interface, which a server's link-local address names, unless another is given.
    pub(crate) fn reach_by(&mut self, interface: Option<String>) {
        if self.bind_device.is_none() && self.bind.as_ref().is_none_or(|end| end.interface.is_none()) {
            self.bind_device = interface;
        }
    }

    pub(crate) fn options(&self) -> SocketOptions {
        SocketOptions {
            congestion: self.congestion.clone(),
            dscp: self.dscp.or(self.tos),
            send_buffer: self.send_buffer.or(self.window),
            receive_buffer: self.receive_buffer.or(self.window),
            mss: self.mss,
            bind_address: self.bind.as_ref().and_then(|end| end.address(self.ip())),
            bind_device: self.bind_device.clone().or_else(|| self.bind.as_ref()?.interface.clone()),
            sender_cpus: self.cpus_sender.clone(),
            receiver_cpus: self.cpus_receiver.clone(),
        }
    }
}

/// Output options.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Results")]
pub(crate) struct Results {
    /// Print only the JSON record
    #[arg(long, short = 'J')]
    pub(crate) json: bool,

    /// Print all: reasons, doubts, every table
    ///
    /// Shows every detail of each result, not only its answer.
    #[arg(long, short = 'v', conflicts_with_all = ["json", "json_stream"])]
    pub(crate) verbose: bool,

    /// Print events while the command runs, as newline-delimited JSON: start, host, trial, interval, result, verdict, end
    /// (docs/live.md)
    #[arg(long, conflicts_with = "json")]
    pub(crate) json_stream: bool,

    /// Print a line on standard error for each interval of the running trial, and set its length, 200ms to 60s; 0 prints none
    /// [default: 1s; none with --json, in a ladder, a device test or the demonstration]
    #[arg(long, short = 'i', value_name = "TIME", value_parser = interval)]
    pub(crate) interval: Option<Nanos>,

    /// Show the run on the whole terminal
    ///
    /// While it goes on: rate, latency, processors, losses, results so far (docs/tui.md).
    #[arg(long, conflicts_with_all = ["json", "json_stream", "interval"])]
    pub(crate) tui: bool,

    /// Also write .html, .md, .csv, .json or .txt
    ///
    /// The end of the file's name says which kind of report it is.
    #[arg(long, short = 'o', value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,

    /// Exit with 1 if missed, as in 'loss<=0.1%'
    ///
    /// Other conditions: 'throughput>=9Gbit/s', 'p99<200us', 'limit!=receiver-cpu'. May be repeated.
    #[arg(long, value_name = "CONDITION")]
    pub(crate) expect: Vec<Expectation>,

    /// Report the outcome of --expect to a build server: junit=FILE writes JUnit XML, github prints GitHub error annotations; may
    /// be repeated
    #[arg(long, value_name = "KIND", requires = "expect")]
    pub(crate) report: Vec<BuildReport>,

    /// Go on with a run that was interrupted, failed or was killed: its id, or the start of it (see `linerate results`). Type the
    /// command of that run again
    #[arg(long, value_name = "ID")]
    pub(crate) resume: Option<String>,

    /// Sampling period of a trial, 10ms to 10s [default: 100ms]
    #[arg(long, value_name = "TIME", value_parser = sampling_period)]
    pub(crate) sample: Option<Nanos>,

    #[command(flatten)]
    pub(crate) store: StorePath,

    /// The run of a study, if it is one; the study shows its results.
    #[arg(skip)]
    pub(crate) of_study: Option<Origin>,

    /// What the study takes from it: columns, their metrics, and the lines of its file that name these.
    #[arg(skip)]
    pub(crate) measures: Vec<(String, Metric, usize)>,
}

impl Results {
    /// Whether results are printed as text.
    pub(crate) fn are_text(&self) -> bool {
        !self.json && !self.json_stream
    }
}

/// Length of an interval; 0 is none.
fn interval(text: &str) -> Result<Nanos, String> {
    const SHORTEST: Nanos = Nanos::from_millis(200);
    const LONGEST: Nanos = Nanos::from_secs(60);
    let every: Nanos = text.parse().map_err(|error| format!("{error}"))?;
    if every.is_zero() || (SHORTEST..=LONGEST).contains(&every) {
        return Ok(every);
    }
    Err(format!("an interval lasts {SHORTEST} to {LONGEST}; 0 prints none"))
}

/// Reads a sampling period.
fn sampling_period(text: &str) -> Result<Nanos, String> {
    let period: Nanos = text.parse().map_err(|error| format!("{error}"))?;
    let (shortest, longest) = (Sampling::SHORTEST, Sampling::LONGEST);
    let allowed = (shortest..=longest).contains(&period);
    allowed.then_some(period).ok_or_else(|| format!("a trial is sampled every {shortest} to {longest}"))
}

/// Where results are kept.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct StorePath {
    /// Keep results in this file [default: the file that LINERATE_STORE names, else linerate/results.db in the user's data
    /// directory]
    // Not `env`: clap counts an option that has its value from there as given, and shows it as required in a usage line.
    #[arg(long, value_name = "FILE")]
    pub(crate) store: Option<PathBuf>,
}

impl StorePath {
    /// Opens the store.
    ///
    /// # Errors
    /// It cannot be opened.
    pub(crate) fn open(&self) -> Result<Store, Failure> {
        Store::open(self.file().as_deref()).map_err(Failure::measure)
    }

    /// The file named by the option or by the environment; none is the user's own store.
    pub(crate) fn file(&self) -> Option<PathBuf> {
        let of_environment = || std::env::var_os("LINERATE_STORE").filter(|file| !file.is_empty()).map(PathBuf::from);
        self.store.clone().or_else(of_environment)
    }
}
