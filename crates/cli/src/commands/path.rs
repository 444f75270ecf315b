//! `linerate path`: the routers of a path, idle and under load, and the link that limits it.

use super::stream::TCP_MESSAGE;
use crate::choice::{Choices, choice};
use crate::exit::Failure;
use crate::hosts::{HostArguments, HostBook, all_listed, host_arguments};
use crate::iperf3_server::Iperf3Target;
use crate::measure::{Beside, RunRequest, conclude, reach};
use crate::options::{Repetition, Results, Sockets};
use crate::server_address::{ServerAddress, resolve};
use crate::stamp_key;
use linerate_method::with_load;
use linerate_model::{
    Direction, FarEnd, HopsTask, HostName, Iperf3End, Iperf3Server, Net, Password, Path, Plan, ProbePacket, Repeats,
    Server, StreamTask, Task, Timing, Transport, Trial,
};
use linerate_units::{BitRate, ByteCount, Nanos};
use std::path::PathBuf;
use tokio::sync::watch;

/// Beginning of the name of a STAMP reflector.
const STAMP: &str = "stamp://";
/// Warm-up of the load: a queue has filled by then.
const WARMUP: Nanos = Nanos::from_millis(1_500);
/// Warm-up of the load of an iperf3 server, which leaves out whole seconds.
const IPERF3_WARMUP: Nanos = Nanos::from_secs(2);
/// Warm-up of probes without a load: routers and their rates are found out.
const DISCOVERY: Nanos = Nanos::from_millis(2_000);
/// Shortest window of a watched path, and the longest: an agent allows no longer sessions unless it is told to.
const WATCH_WINDOW: Nanos = Nanos::from_secs(60);
const LONGEST_WINDOW: Nanos = Nanos::from_secs(590);
/// Windows of a watched path, up to the longest window.
const MAX_WINDOWS: u64 = 200;
/// Windows of a record.
const MOST_WINDOWS: u64 = 1_000;
/// Rate of the probes: there is a load that they cannot disturb, or none.
const RATE: &str = "100kbit/s";

/// Probe the routers of a path, and find the link that limits it
#[derive(Debug, clap::Args)]
#[command(
    after_help = "\
Examples:
  linerate path B                       this machine to B and back
  linerate path A B --no-load           idle delays, loss and path MTU only
  linerate path A B --watch 8h          the same for hours, at 20 kbit/s
  linerate path A 192.0.2.7             from A to any host, one direction
  linerate path stamp://192.0.2.7       to a STAMP reflector (RFC 8762)
  linerate path iperf3://192.0.2.5      loaded by a server of iperf3",
    after_long_help = "\
Probes with small TTLs go to the other host: first on the idle path, then while TCP fills it, in each direction. Delay that begins \
at one router and stays at all routers after it shows the link where a queue stands; loss and the path MTU are found alike."
)]
pub(crate) struct Arguments {
    /// Probing host and far end, or the far end alone
    ///
    /// The first runs an agent. The far end is an agent (agent URL, saved name, lab host), a server of iperf3 (iperf3://HOST), a STAMP
    /// reflector (stamp://HOST), or any host by its name or address. The last two are probed one way and without a load. If you name one
    /// host, this machine probes.
    #[arg(required = true, num_args = 1..=2, value_name = "HOST")]
    pub(crate) hosts: Vec<String>,

    /// Probe the idle path only
    #[arg(long)]
    no_load: bool,

    /// Probe the idle path for this long, as in 8h
    ///
    /// At most 20 kbit/s in each direction, in windows of a minute or more. Ctrl-C ends it; what was measured until then is kept. All
    /// windows are one record.
    #[arg(long, value_name = "TIME", conflicts_with_all = ["no_load", "time", "repeats", "rate"])]
    watch: Option<Nanos>,

    /// Packets: udp, ping, raw-icmp or tcp-syn
    ///
    /// The default is udp, and the next one if neither a router nor the far end answers.
    #[arg(long, value_name = "PACKET", value_parser = choice::<ProbePacket>(PACKETS))]
    packet: Option<ProbePacket>,

    /// Port that probes to a host without an agent are sent to
    #[arg(long, short = 'p', value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    port: Option<u16>,

    /// Key of a STAMP reflector in authenticated mode: a file of hexadecimal digits
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    key_file: Option<PathBuf>,

    /// Largest TTL
    #[arg(long, value_name = "N", default_value_t = HopsTask::MAX_HOPS, value_parser = clap::value_parser!(u8).range(1..))]
    max_hops: u8,

    /// Highest rate of probes, each way
    #[arg(long, value_name = "RATE", default_value = RATE)]
    rate: BitRate,

    #[command(flatten)]
    repetition: Repetition,

    #[command(flatten)]
    pub(crate) sockets: Sockets,

    #[command(flatten)]
    pub(crate) results: Results,
}

const PACKETS: Choices = &[
    ("udp", "UDP datagrams"),
    ("ping", "ICMP echo requests of an unprivileged socket"),
    ("raw-icmp", "ICMP echo requests of a raw socket (CAP_NET_RAW)"),
    ("tcp-syn", "TCP SYN segments to an open port"),
];

/// Returns a plan that probes an idle path for `time`.
fn watch(time: Nanos, probes: HopsTask) -> Result<Plan, String> {
    if time < WATCH_WINDOW {
        return Err(format!("--watch {time} is shorter than a window of {WATCH_WINDOW}: use --no-load --time {time}"));
    }
    // Few windows keep the record small, whatever the time.
    let window = Nanos::new(time.get() / MAX_WINDOWS).clamp(WATCH_WINDOW, LONGEST_WINDOW);
    let windows = time.get() / window.get();
    if windows > MOST_WINDOWS {
        let most = Nanos::new(LONGEST_WINDOW.get() * MOST_WINDOWS);
        return Err(format!("--watch {time} is longer than {most}, which one record holds: watch again after that"));
    }
    let cell = Trial::new("path", Task::Hops(probes), Timing::of(DISCOVERY, window));
    Ok(Plan::sweep(vec![cell], Repeats::Times(windows as u32)))
}

/// Far end of a probed path.
enum Target {
    Agent,
    Iperf3(Iperf3Server),
    Host(FarEnd),
}

pub(crate) async fn run(arguments: Arguments, book: HostBook, cancel: watch::Receiver<bool>) -> Result<(), Failure> {
    let (hosts, path, target) = arguments.ends(&book).map_err(Failure::usage)?;
    let plan = arguments.plan(path, &target).map_err(Failure::usage)?;
    let password = arguments.key().map_err(Failure::usage)?.map(Password);
    let asked = RunRequest::of_plan(&arguments.results, &plan)?;
    let agents = reach(&book, &hosts, cancel.clone()).await?;
    let ended = asked.run(plan, &agents, Beside { password, ..Beside::default() }, cancel).await;
    agents.close().await;
    conclude(&ended?, &arguments.results)
}

impl Arguments {
    /// Returns the hosts with agents, the probed path and its far end.
    fn ends(&self, book: &HostBook) -> Result<(HostArguments, Path, Target), String> {
        let pair = book.pair(&self.hosts);
        let [client, far_end] = &pair[..] else {
            return Err(String::from("name a far end, or a probing host and a far end"));
        };
        let stamp = ServerAddress::read(STAMP, far_end)?;
        let iperf3 = Iperf3Target::read(far_end, self.port)?;
        if self.key_file.is_some() && stamp.is_none() {
            return Err(format!("--key-file is for a STAMP reflector, given as {STAMP}HOST"));
        }
        if stamp.is_none() && iperf3.is_none() && book.is_agent(far_end) {
            if let Some(port) = self.port {
                return Err(format!("-p {port} is for a host without an agent; {far_end} has one"));
            }
            let hosts = host_arguments(&pair)?;
            let path = hosts.paths().pop().ok_or("name a far end")?;
            return Ok((hosts, path, Target::Agent));
        }
        let (hosts, names) = all_listed(client)?;
        let [client] = &names[..] else {
            return Err(String::from("one host probes a host without an agent: name one"));
        };
        let ip = self.sockets.ip();
        if let Some(ServerAddress { host, port }) = stamp {
            let port = port.or(self.port).unwrap_or(FarEnd::STAMP_PORT);
            let authenticated = self.key_file.is_some();
            let reflector = FarEnd::Stamp { address: resolve(&host, ip)?, port, authenticated };
            let path = Path { client: client.clone(), server: Server::Foreign(far_end.as_str().into()) };
            return Ok((hosts, path, Target::Host(reflector)));
        }
        let (name, target) = match iperf3 {
            Some(target) => (target.name(), Target::Iperf3(target.server(ip, false)?)),
            None => {
                let port = self.port.unwrap_or(FarEnd::PORT);
                (HostName::from(far_end.as_str()), Target::Host(FarEnd::Host { address: resolve(far_end, ip)?, port }))
            }
        };
        Ok((hosts, Path { client: client.clone(), server: Server::Foreign(name) }, target))
    }

    /// Returns the digits of the key.
    fn key(&self) -> Result<Option<String>, String> {
        self.key_file.as_ref().map(|file| stamp_key::read("--key-file", file)).transpose()
    }

    fn plan(&self, path: Path, target: &Target) -> Result<Plan, String> {
        if self.rate.get() == 0 {
            return Err(String::from("--rate 0 sends no probes"));
        }
        let probes = self.probes(path.clone(), target);
        if let Some(time) = self.watch {
            return watch(time, HopsTask { path_mtu: true, rate: HopsTask::RATE, ..probes });
        }
        if self.no_load || matches!(target, Target::Host(_)) {
            let task = Task::Hops(HopsTask { path_mtu: true, ..probes });
            let cell = Trial::new("path", task, self.repetition.timing_after(DISCOVERY)?);
            return Ok(Plan::sweep(vec![cell], self.repetition.repeats_or(1)?));
        }
        let warmup = if matches!(target, Target::Iperf3(_)) { IPERF3_WARMUP } else { WARMUP };
        let timing = self.repetition.timing_after(warmup)?;
        let loads = [("forward", Direction::Send), ("return", Direction::Receive)];
        let cell = |(name, direction)| {
            let load = Trial::new(name, Task::Stream(self.load(path.clone(), target, direction)), timing);
            with_load(load, Task::Hops(probes.clone()))
        };
        Ok(Plan::sweep(loads.map(cell).into(), self.repetition.repeats_or(1)?))
    }

    fn probes(&self, path: Path, target: &Target) -> HopsTask {
        let probes = HopsTask::beside(&[path], &self.net(), iperf3_end(target).as_ref());
        let probes = HopsTask { packet: self.packet, rate: self.rate, max_hops: self.max_hops, ..probes };
        match target {
            Target::Host(far_end) => HopsTask { far_end: far_end.clone(), direction: Direction::Send, ..probes },
            Target::Agent | Target::Iperf3(_) => probes,
        }
    }

    fn net(&self) -> Net {
        Net { ip: self.sockets.ip(), socket: self.sockets.options(), ..Net::plain(Transport::Tcp) }
    }

    /// Returns the load: one TCP connection.
    fn load(&self, path: Path, target: &Target, direction: Direction) -> StreamTask {
        let iperf3 = iperf3_end(target);
        StreamTask {
            paths: vec![path],
            net: self.net(),
            direction,
            iperf3,
            ..StreamTask::plain(Transport::Tcp, ByteCount::new(TCP_MESSAGE))
        }
    }
}

/// Returns the end of the load if an iperf3 server is there.
fn iperf3_end(target: &Target) -> Option<Iperf3End> {
    if let Target::Iperf3(server) = target { Some(Iperf3End::Server(server.clone())) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::choice::tests::check;
    use crate::commands::command_line::Command;
    use crate::commands::help::parse_from;
    use linerate_model::Warmup;

    fn arguments(line: &str) -> Arguments {
        match parse_from(line.split(' ')).expect("it is a command line").command {
            Command::Path(arguments) => arguments,
            other => panic!("{other:?}"),
        }
    }

    fn plan(line: &str) -> Result<Plan, String> {
        let arguments = arguments(line);
        let (_, path, target) = arguments.ends(&HostBook::default())?;
        arguments.plan(path, &target)
    }

    fn probes(line: &str) -> HopsTask {
        let plan = plan(line).expect("it is a plan");
        let loads = plan.cells()[0].loads.iter();
        let mut tasks =
            loads.filter_map(|load| if let Task::Hops(task) = &load.task { Some(task.clone()) } else { None });
        tasks.next().expect("it probes")
    }

    #[test]
    fn far_ends_are_read_by_their_schemes() {
        check::<ProbePacket>(PACKETS);
        let address = "192.0.2.7".parse().expect("an address");
        for (line, far_end, cells) in [
            ("linerate path 192.0.2.7", FarEnd::Host { address, port: FarEnd::PORT }, 1),
            ("linerate path 192.0.2.7 -p 443 --packet tcp-syn", FarEnd::Host { address, port: 443 }, 1),
            ("linerate path stamp://192.0.2.7", FarEnd::Stamp { address, port: 862, authenticated: false }, 1),
            ("linerate path stamp://192.0.2.7:8862", FarEnd::Stamp { address, port: 8_862, authenticated: false }, 1),
            ("linerate path iperf3://192.0.2.7", FarEnd::Host { address, port: Iperf3Server::PORT }, 2),
            ("linerate path local local", FarEnd::Agent, 2),
            ("linerate path local local --no-load", FarEnd::Agent, 1),
        ] {
            let task = probes(line);
            assert_eq!(
                (&task.far_end, task.direction == Direction::Both),
                (&far_end, far_end == FarEnd::Agent),
                "{line}"
            );
            assert_eq!(plan(line).expect("a plan").cells().len(), cells, "{line}");
            let Some(window) = plan(line).expect("a plan").cells()[0].window() else { panic!("{line}: no window") };
            let Warmup::Fixed(warmup) = window.warmup else { panic!("{line}: no fixed warm-up") };
            assert!(!line.contains("iperf3://") || warmup.get() % 1_000_000_000 == 0, "{line}: {warmup}");
        }
    }

    #[test]
    fn watched_path_has_few_windows() {
        for (time, windows) in [("60s", 1), ("600s", 10), ("28800s", 200), ("590000s", 1_000)] {
            let plan = plan(&format!("linerate path local local --watch {time}")).expect("a plan");
            assert_eq!(plan.repeats(), Some(Repeats::Times(windows)), "{time}");
            assert!(plan.cells()[0].window().is_some_and(|window| window.measure <= LONGEST_WINDOW));
        }
        assert!(plan("linerate path local local --watch 700000s").is_err_and(|error| error.contains("watch again")));
        assert!(plan("linerate path local local --watch 5s").is_err_and(|error| error.contains("--no-load --time 5")));
    }

    #[test]
    fn wrong_far_ends_are_named() {
        for (line, needle) in [
            ("linerate path stamp://", "write stamp://HOST"),
            ("linerate path local local -p 99", "has one"),
            ("linerate path 192.0.2.7 --key-file k", "--key-file is for a STAMP reflector"),
            ("linerate path local,a 192.0.2.7", "name one"),
            ("linerate path nosuch.invalid", "no address is known"),
            ("linerate path local local --rate 0bit/s", "--rate 0"),
        ] {
            let error = plan(line).expect_err(line);
            assert!(error.contains(needle), "{line}: {error}");
        }
    }
}
