//! The command line: all commands, and the program's own help.

use super::{
    calibrate, compare, completions, copy, device, explain, fleet, frames, hosts, lab, ladder, limits, man, nfs, path,
    probe, report, results, rpc, run, serve, stream, transact, view,
};
use crate::hosts::HostBook;
use crate::options::{Family, Results};
use clap::builder::styling::{AnsiColor, Styles};
use clap::{Parser, Subcommand};
use linerate_model::IpVersion;
use linerate_report::Language;
use std::path::Path;

const STYLES: Styles =
    Styles::styled().header(AnsiColor::Green.on_default().bold()).literal(AnsiColor::Cyan.on_default().bold());

/// The most used commands: with the usage above them, one screen of 80 columns and 24 rows.
const SCREEN: &str = "\
Most used:
  linerate lab                two hosts and a switch on this machine, measured
  linerate serve              on the other machine: prints its agent URL
  linerate URL                the path to it: both ways, latency, the limit
  linerate stream URL         TCP or UDP throughput, counted at the receiver
  linerate transact URL       requests and responses: rate and latency
  linerate path URL           routers, path MTU, and the link that limits
  linerate report             the latest record; --out report.html for a page

Measure more:  rpc  nfs  copy  ladder  device  frames  calibrate  run (a study)
Read records:  results  report  explain  compare  view (in a browser)
Set up:        hosts (saved by name)  fleet  probe  limits  completions  man

  linerate COMMAND --help     examples and everyday options of a command
  linerate --help-all         all commands in a line each, more examples
      --lang <LANG>           language of results: en or ja
  -V, --version               version";

/// Version, and a note where nobody has run the program yet.
const VERSION: &str = if linerate_sys::IS_TESTED {
    env!("CARGO_PKG_VERSION")
} else {
    concat!(env!("CARGO_PKG_VERSION"), " (built for this system, never run on it by the authors)")
};

/// Examples for `--help-all`, before the list of commands.
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
  linerate path A B                              Routers, path MTU, and the link that limits
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
#[command(name = "linerate", version = VERSION, styles = STYLES, after_help = SCREEN, arg_required_else_help = true)]
pub(crate) struct CommandLine {
    /// Language of results and reports: en or ja. CSV and JSON do not depend on it [default: from LC_ALL, LC_MESSAGES
    /// or LANG]
    #[arg(long, value_name = "LANG", global = true, hide_short_help = true)]
    pub(crate) lang: Option<Language>,

    /// The command.
    #[command(subcommand)]
    pub(crate) command: Command,
}

impl CommandLine {
    /// Returns the folder of the service that this process is. `None` if the operating system did not start it as one.
    pub(crate) fn service_folder(&self) -> Option<&Path> {
        match &self.command {
            Command::Serve(arguments) => arguments.service_folder(),
            _ => None,
        }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Stream(stream::Arguments),
    Transact(transact::Arguments),
    Rpc(rpc::Arguments),
    Nfs(nfs::Arguments),
    Copy(Box<copy::Arguments>),
    Path(path::Arguments),
    Ladder(ladder::Arguments),
    Calibrate(calibrate::Arguments),
    Device(device::Arguments),
    Frames(frames::Arguments),
    Lab(lab::Arguments),
    Run(run::Arguments),
    Serve(serve::Arguments),
    Fleet(fleet::Arguments),
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
    /// Returns the output options. `None` for a command that measures nothing.
    pub(crate) fn results_mut(&mut self) -> Option<&mut Results> {
        match self {
            Self::Stream(stream) => Some(&mut stream.results),
            Self::Transact(transact) => Some(&mut transact.results),
            Self::Rpc(rpc) => Some(&mut rpc.results),
            Self::Nfs(nfs) => Some(&mut nfs.results),
            Self::Copy(copy) => Some(&mut copy.results),
            Self::Path(path) => Some(&mut path.results),
            Self::Ladder(ladder) => Some(&mut ladder.results),
            Self::Calibrate(calibrate) => Some(&mut calibrate.results),
            Self::Device(device) => Some(device.results_mut()),
            Self::Frames(frames) => Some(&mut frames.results),
            _ => None,
        }
    }

    /// Chooses the IP version unless one was given: IPv6 if every other host is reached by it.
    pub(crate) fn choose_ip(&mut self, book: &HostBook) {
        let (family, hosts) = match self {
            Self::Stream(stream) => (&mut stream.sockets.family, vec![&stream.hosts]),
            Self::Transact(transact) => (&mut transact.sockets.family, vec![&transact.hosts]),
            Self::Rpc(rpc) => (&mut rpc.sockets.family, vec![&rpc.hosts]),
            Self::Nfs(nfs) => (&mut nfs.sockets.family, vec![&nfs.hosts]),
            Self::Path(path) => (&mut path.sockets.family, vec![&path.hosts]),
            Self::Ladder(ladder) => (&mut ladder.sockets.family, vec![&ladder.hosts]),
            Self::Calibrate(calibrate) => (&mut calibrate.family, vec![&calibrate.hosts]),
            Self::Copy(copy) => {
                let to = if copy.discards() { None } else { Some(&copy.to) };
                (&mut copy.family, std::iter::once(&copy.hosts).chain(to).collect())
            }
            _ => return,
        };
        if !family.is_given() && book.ip_version(hosts.into_iter().flatten()) == IpVersion::V6 {
            *family = Family::of(IpVersion::V6);
        }
    }
}
