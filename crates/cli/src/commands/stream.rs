//! `linerate stream`: bulk data over TCP or UDP, counted at the receiver.

use super::ladder::USUAL_MTU;
use crate::calibration::CalibrationOption;
use crate::choice::{Choices, choice};
use crate::exit::Failure;
use crate::hosts::{HostArguments, HostBook, all_listed, host_arguments};
use crate::iperf3_server::{Iperf3Target, Iperf3User};
use crate::measure::{Beside, RunRequest, TuneOption, conclude, reach};
use crate::options::{Flows, Over, Prove, Repetition, Results, Sockets};
use linerate_method::with_load;
use linerate_model::{
    Direction, HopsTask, IpVersion, Iperf3End, Iperf3Server, Net, Offered, Path, Plan, ReceiveBy, ReceiveWake, SendBy,
    Server, SocketOptions, StreamTask, Task, TransactTask, Transport, Trial,
};
use linerate_units::{BitRate, ByteCount, FrameRate, Nanos};
use std::collections::BTreeSet;
use tokio::sync::watch;

/// Default bytes of a TCP sender's call. With the MSS of usual and of jumbo frames it fills two GSO packets and leaves no small one
/// (docs/tuning.md).
pub(super) const TCP_MESSAGE: u64 = 125_000;
/// Warm-up where the server must know it beforehand, in whole seconds.
const IPERF3_WARMUP: Nanos = Nanos::from_secs(1);
/// A run that ends by bytes ends after this in any case. Agents allow no longer ones unless told to (`serve --max-time`).
const LONGEST: Nanos = Nanos::from_secs(600);
/// Latency under load needs a window that is long beside a full queue's fill and drain.
const SHORTEST_PROBED: Nanos = Nanos::from_secs(1);

/// Measure bulk throughput over TCP or UDP, counted at the receiver
#[derive(Debug, clap::Args)]
#[command(
    after_help = "\
Examples:
  linerate stream B                     TCP from this machine to B
  linerate stream A B --flows 4         TCP from A to B, four connections
  linerate stream A B --udp --sizes 64,512,1472
  linerate stream A B --udp --rate 900Mbit/s --expect 'loss<=0.01%'
  linerate stream A,C,D B               three senders to one receiver
  linerate stream iperf3://192.0.2.5    to a server of iperf3 (iperf3 -s)",
    after_long_help = "\
More examples:
  linerate stream A B -R -P 4 -t 10     options of iperf3 that mean the same
  linerate stream A B --bytes 1G        one gigabyte in each run
  linerate stream A B --prove           tests the verdict too
  linerate stream A B --confidence 95 --within 2.5%
  linerate stream A B --loaded-latency --warmup 5s --time 10s
                                        latency that it adds to other traffic
  linerate stream A B --loaded-latency=udp --expect 'added.p99<=30ms'
  linerate stream iperf3://192.0.2.5 --direction receive --time 10s

With two hosts named, this machine only controls the run. Of several senders the total and each share are reported."
)]
pub(crate) struct Arguments {
    /// Sender and receiver, or the receiver alone
    ///
    /// A host is an agent URL, a saved name, `local`, or a lab host's name. Separate several senders by commas. If you name one
    /// host, it is the receiver, and this machine is the sender. The receiver may be iperf3://HOST:PORT.
    #[arg(required = true, num_args = 1..=2, value_name = "HOST")]
    pub(crate) hosts: Vec<String>,

    #[command(flatten)]
    over: Over,

    /// Bytes of a datagram, or of a TCP write
    ///
    /// That is a UDP datagram's payload, or one write to a TCP socket. With UDP, the default is the largest datagram that fits into one
    /// packet: 1472 at an MTU of 1500 (IPv6: 1452). With TCP it is 1 MiB, or 128 KiB with more than 128 flows.
    #[arg(long, short = 'l', value_name = "BYTES", conflicts_with = "sizes")]
    size: Option<ByteCount>,

    /// Several sizes, each measured by itself
    #[arg(long, value_name = "BYTES,...", value_delimiter = ',')]
    sizes: Vec<ByteCount>,

    /// Bytes to send instead of a time, as in 100M
    ///
    /// Each sender sends as many in each run and direction, by all its flows together; with UDP in whole datagrams. A run ends with its
    /// last byte, after 10 minutes at the most. It has no warm-up unless --warmup asks for one.
    #[arg(long, short = 'n', value_name = "BYTES", conflicts_with_all = ["time", "loaded_latency", "hops"])]
    bytes: Option<ByteCount>,

    /// The same in messages of --size, as in 10k
    #[arg(long = "blockcount", short = 'k', value_name = "N", value_parser = messages,
        conflicts_with_all = ["bytes", "time", "loaded_latency", "hops"], hide_short_help = true)]
    messages: Option<u64>,

    #[command(flatten)]
    flows: Flows<{ Net::MOST_FLOWS }>,

    /// Data direction, as seen from the first host; several are measured one after the other
    #[arg(long, value_name = "DIRECTION,...", default_value = "send", value_delimiter = ',',
        value_parser = choice::<Direction>(DIRECTIONS), hide_short_help = true)]
    direction: Vec<Direction>,

    /// From the receiver to the sender
    ///
    /// The same as --direction receive.
    #[arg(short = 'R', long = "reverse", conflicts_with_all = ["direction", "bidir"])]
    reverse: bool,

    /// Both directions at the same time
    ///
    /// The same as --direction both.
    #[arg(long, conflicts_with = "direction")]
    bidir: bool,

    /// Load to offer, as in 900Mbit/s, 100kpps
    ///
    /// Each sender offers it in each direction: payload (900Mbit/s) or messages (100kpps). The default is not limited.
    #[arg(long, short = 'b', value_name = "RATE", value_parser = offered)]
    rate: Option<Offered>,

    /// UDP: send and receive each datagram by itself, without the kernel's GSO and GRO
    #[arg(long, hide_short_help = true)]
    no_offload: bool,

    /// Latency under load too, over tcp or udp
    ///
    /// Measures latency under load: it sends 100 small requests per second, on the idle path before each run and beside the stream. Reports the delay that
    /// the load adds, its grade (median added: A+ below 5 ms, A 30, B 60, C 200, D 400, else F), and round trips per minute.
    /// OVER is the requests' transport; the default is that of the stream.
    #[arg(long, value_name = "OVER", num_args = 0..=1, require_equals = true, value_parser = choice::<Transport>(TRANSPORTS))]
    loaded_latency: Option<Option<Transport>>,

    /// Probe the routers too: where the limit is
    ///
    /// Probes with small TTLs on the idle path before the runs and next to the stream, 20 kbit/s in each direction. The verdict names the
    /// link where a queue stands or loss begins (see `linerate path`).
    #[arg(long)]
    hops: bool,

    /// How a TCP sender passes data to the kernel
    #[arg(long, default_value = "auto", value_parser = choice::<SendBy>(SEND_BY), hide_short_help = true)]
    send_by: SendBy,

    /// How a TCP receiver takes data from the kernel; `discard` (MSG_TRUNC) leaves out the copy that programs need
    #[arg(long, default_value = "copy", value_parser = choice::<ReceiveBy>(RECEIVE_BY), hide_short_help = true)]
    receive_by: ReceiveBy,

    /// When a TCP receiver wakes up; `each` moves work of the kernel from the sender's core to the receiver's
    #[arg(long, default_value = "batched", value_parser = choice::<ReceiveWake>(RECEIVE_WAKE), hide_short_help = true)]
    receive_wake: ReceiveWake,

    /// The same as --send-by sendfile
    #[arg(short = 'Z', long = "zerocopy", conflicts_with = "send_by", hide_short_help = true)]
    zerocopy: bool,

    /// Core of the first host's threads and, after a comma, of the second's: sets --cpus-sender and --cpus-receiver by host,
    /// for one direction at a time
    #[arg(short = 'A', long, value_name = "CORE[,CORE]", value_parser = affinity,
        conflicts_with_all = ["cpus_sender", "cpus_receiver"], hide_short_help = true)]
    affinity: Option<Affinity>,

    /// Port of an iperf3:// host
    #[arg(short = 'p', long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..), hide_short_help = true)]
    port: Option<u16>,

    /// Ask an iperf3 server for its own report, and keep it in the record
    #[arg(long, hide_short_help = true)]
    server_output: bool,

    #[command(flatten)]
    user: Iperf3User,

    #[command(flatten)]
    tune: TuneOption,

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

const DIRECTIONS: Choices = &[
    ("send", "From the first host to the second"),
    ("receive", "From the second host to the first"),
    ("both", "Both directions at the same time"),
];
const TRANSPORTS: Choices = &[("tcp", ""), ("udp", "")];
const SEND_BY: Choices = &[
    ("auto", "write, or what --tune finds"),
    ("sendfile", "From memory, without a copy"),
    ("write", "From a buffer, with a copy"),
];
const RECEIVE_BY: Choices =
    &[("copy", "Copied into a buffer, as programs do"), ("discard", "Discarded by the kernel, without a copy")];
const RECEIVE_WAKE: Choices =
    &[("batched", "For the data of 0.1 ms (SO_RCVLOWAT)"), ("each", "For anything that has arrived, as programs do")];

/// A core of the first host, and one of the second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Affinity {
    first: u32,
    second: Option<u32>,
}

fn affinity(text: &str) -> Result<Affinity, String> {
    let core = |text: &str| text.parse().map_err(|_| "expected a core, or one for each host, as in 0,1".to_owned());
    Ok(match text.split_once(',') {
        Some((first, second)) => Affinity { first: core(first)?, second: Some(core(second)?) },
        None => Affinity { first: core(text)?, second: None },
    })
}

/// A number of messages, as in `10k`.
fn messages(text: &str) -> Result<u64, String> {
    let count = format!("{text}B").parse().map(ByteCount::get);
    count.map_err(|_| format!("`{text}` is not a number of messages; write it like 1000 or 10k"))
}

/// `900Mbit/s` is payload; `100kpps` and `100k/s` are messages.
fn offered(text: &str) -> Result<Offered, String> {
    let zero = || format!("a rate of `{text}` sends nothing");
    if text.ends_with("pps")
        || text.ends_with("fps")
        || (text.ends_with("/s") && !text.ends_with("bit/s") && !text.ends_with("b/s") && !text.ends_with("B/s"))
    {
        let rate: FrameRate = text.parse().map_err(|error| format!("{error}"))?;
        return if rate.get() == 0 { Err(zero()) } else { Ok(Offered::MessagesPerS(rate)) };
    }
    let rate: BitRate = text.parse().map_err(|error| format!("{error} (payload), or 100kpps (messages)"))?;
    if rate.get() == 0 { Err(zero()) } else { Ok(Offered::PayloadBps(rate)) }
}

pub(crate) async fn run(
    mut arguments: Arguments,
    book: HostBook,
    mut cancel: watch::Receiver<bool>,
) -> Result<(), Failure> {
    let (hosts, paths, iperf3) = arguments.ends(&book).map_err(Failure::usage)?;
    if let Some(Ok(Some(target))) = arguments.hosts.last().map(|host| Iperf3Target::read(host, arguments.port)) {
        arguments.sockets.reach_by(target.zone());
    }
    let plan = |mtu| arguments.plan(&paths, iperf3.as_ref(), mtu).map_err(Failure::usage);
    let asked = RunRequest::of_plan(&arguments.results, &plan(USUAL_MTU)?)?;
    let named = arguments.calibration.named(asked.store.as_ref())?;
    let password = arguments.user.password(&mut cancel).await?;
    let beside = Beside { password, ..Beside::default() };
    let agents = reach(&book, &hosts, cancel.clone()).await?;
    let mtus = paths.iter().filter_map(|path| agents.control.path_mtu(path, arguments.ip()));
    let mtu = mtus.min().unwrap_or(USUAL_MTU);
    let any_size = arguments.size.is_none() && arguments.sizes.is_empty();
    let ended = async {
        let plan = arguments.tune.apply(plan(mtu)?, any_size, &asked, &agents, cancel.clone()).await?;
        let calibrated = arguments.calibration.limits(named.as_ref(), &plan, &asked, &agents)?;
        asked.run(Plan { calibrated, ..plan }, &agents, beside, cancel).await
    }
    .await;
    agents.close().await;
    conclude(&ended?, &arguments.results)
}

impl Arguments {
    /// Who takes part, who sends to whom, and the receiver where it is a server of iperf3.
    fn ends(&self, book: &HostBook) -> Result<(HostArguments, Vec<Path>, Option<Iperf3Server>), String> {
        let pair = book.pair(&self.hosts);
        let [clients, server] = &pair[..] else {
            return Err("name a sender and a receiver, or a receiver alone".to_owned());
        };
        if Iperf3Target::read(clients, None)?.is_some() {
            return Err(format!(
                "{clients} is an iperf3 server, which opens no connections: name it last, and turn the data with --direction receive"
            ));
        }
        let Some(target) = Iperf3Target::read(server, self.port)? else {
            let needless = self.server_output.then_some("--server-output").or(self.user.given());
            if let Some(option) = needless {
                return Err(format!("{option} is for a server of iperf3, given as iperf3://HOST"));
            }
            if self.port.is_some() {
                return Err("-p is for a server of iperf3, given as iperf3://HOST; an agent's port stands in its URL"
                    .to_owned());
            }
            let hosts = host_arguments(&pair)?;
            let paths = hosts.paths();
            return Ok((hosts, paths, None));
        };
        if self.loaded_latency.is_some() {
            return Err(format!("--loaded-latency needs an agent that answers requests; {server} is an iperf3 server"));
        }
        let (hosts, names) = all_listed(clients)?;
        let [client] = &names[..] else {
            return Err(format!("{server} is an iperf3 server, which serves one client at a time: name one sender"));
        };
        let path = Path { client: client.clone(), server: Server::Foreign(target.name()) };
        let server = target.server(self.ip(), self.server_output)?;
        Ok((hosts, vec![path], Some(Iperf3Server { login: self.user.login()?, ..server })))
    }

    /// Who takes part in a calibration.
    ///
    /// # Errors
    /// The hosts cannot be read, or one of them runs no agent.
    pub(crate) fn hosts(&self, book: &HostBook) -> Result<HostArguments, String> {
        match self.ends(book)? {
            (hosts, _, None) => Ok(hosts),
            (_, paths, Some(_)) => {
                let server = paths.first().map_or("the receiver", |path| path.server.name().0.as_str());
                Err(format!("{server} is an iperf3 server: a calibration needs an agent at both ends"))
            }
        }
    }

    /// Returns what is measured on these paths, the smallest MTU of which is `mtu`.
    pub(crate) fn plan(&self, paths: &[Path], iperf3: Option<&Iperf3Server>, mtu: u32) -> Result<Plan, String> {
        let timing = match iperf3 {
            _ if self.ends_by_bytes() => self.repetition.timing_within(LONGEST)?,
            Some(_) => self.repetition.timing_after(IPERF3_WARMUP)?,
            None => self.repetition.timing()?,
        };
        let directions = self.directions();
        if self.affinity.is_some() && directions.contains(&Direction::Both) {
            return Err(
                "-A names a core of each host, which sends and receives with --direction both: give --cpus-sender and \
                        --cpus-receiver"
                    .to_owned(),
            );
        }
        let time = self.repetition.time;
        if self.loaded_latency.is_some() && time < SHORTEST_PROBED {
            return Err(format!("--time {time} is too short for --loaded-latency; give at least {SHORTEST_PROBED}"));
        }
        let mut sizes = if self.sizes.is_empty() { vec![self.size(mtu)] } else { self.sizes.clone() };
        for size in &sizes {
            self.check_size(*size)?;
            self.check_volume(*size)?;
        }
        // A size asked for twice is one measurement.
        let mut seen = BTreeSet::new();
        sizes.retain(|size| seen.insert(*size));
        let first = |(at, direction): &(usize, &Direction)| !directions[..*at].contains(direction);
        let cells = directions.iter().enumerate().filter(first).map(|(_, direction)| *direction);
        let cells = cells.flat_map(|direction| sizes.iter().map(move |size| (direction, *size)));
        let cell = |(direction, size): (Direction, ByteCount)| {
            let stream = self.stream(paths, size, direction, iperf3);
            let over = self.loaded_latency.map(|over| over.unwrap_or(stream.net.transport));
            let probe = over.map(|over| TransactTask::beside(&stream, over));
            let hops = self.hops.then(|| HopsTask::beside(&stream.paths, &stream.net, stream.iperf3.as_ref()));
            let trial = Trial::new(self.name(size, direction), Task::Stream(stream), timing);
            let further = probe.map(Task::Transact).into_iter().chain(hops.map(Task::Hops));
            further.fold(trial, with_load)
        };
        Ok(self.prove.applied_to(self.repetition.sweep(cells.map(cell).collect())?))
    }

    fn ends_by_bytes(&self) -> bool {
        self.bytes.is_some() || self.messages.is_some()
    }

    /// What each sender sends in messages of `size`; none where runs end by time.
    fn volume(&self, size: ByteCount) -> Option<ByteCount> {
        let of_messages = |count: u64| ByteCount::new(count.saturating_mul(size.get()));
        self.bytes.or(self.messages.map(of_messages))
    }

    fn check_volume(&self, size: ByteCount) -> Result<(), String> {
        let option = if self.bytes.is_some() { "--bytes" } else { "--blockcount" };
        match self.volume(size).map(ByteCount::get) {
            Some(0) => Err(format!("{option} 0 sends nothing")),
            Some(bytes) if bytes > StreamTask::MOST_VOLUME => {
                Err(format!("{option} asks for more than {}", ByteCount::new(StreamTask::MOST_VOLUME)))
            }
            _ => Ok(()),
        }
    }

    fn directions(&self) -> Vec<Direction> {
        match (self.reverse, self.bidir) {
            (true, _) => vec![Direction::Receive],
            (_, true) => vec![Direction::Both],
            (false, false) => self.direction.clone(),
        }
    }

    fn send_by(&self) -> SendBy {
        if self.zerocopy { SendBy::Sendfile } else { self.send_by }
    }

    fn socket(&self, direction: Direction) -> SocketOptions {
        let options = self.sockets.options();
        let Some(Affinity { first, second }) = self.affinity else { return options };
        let (first, second) = (vec![first], second.into_iter().collect());
        let (sender_cpus, receiver_cpus) =
            if direction == Direction::Receive { (second, first) } else { (first, second) };
        SocketOptions { sender_cpus, receiver_cpus, ..options }
    }

    fn is_udp(&self) -> bool {
        self.over.transport() == Transport::Udp
    }

    fn size(&self, mtu: u32) -> ByteCount {
        let usual = if self.is_udp() { self.ip().datagram_within(mtu) } else { TCP_MESSAGE };
        self.size.unwrap_or(ByteCount::new(usual))
    }

    fn ip(&self) -> IpVersion {
        self.sockets.ip()
    }

    fn check_size(&self, size: ByteCount) -> Result<(), String> {
        let (least, most, what) = if self.is_udp() {
            (
                StreamTask::UDP_MINIMUM,
                StreamTask::UDP_MAXIMUM,
                "a UDP stream's datagram, which carries its number and time, has",
            )
        } else {
            (1, StreamTask::TCP_MAXIMUM, "a TCP stream's message has")
        };
        if (least..=most).contains(&size.get()) {
            return Ok(());
        }
        Err(format!("--size {}: {what} {least} to {most} bytes", size.get()))
    }

    fn name(&self, size: ByteCount, direction: Direction) -> String {
        let mut name = if self.is_udp() { "udp".to_owned() } else { "tcp".to_owned() };
        if self.is_udp() || self.size.is_some() || !self.sizes.is_empty() {
            name += &format!(" {}", size.get());
        }
        match direction {
            Direction::Send => name,
            Direction::Receive => name + " receive",
            Direction::Both => name + " both",
        }
    }

    fn stream(
        &self,
        paths: &[Path],
        message_bytes: ByteCount,
        direction: Direction,
        iperf3: Option<&Iperf3Server>,
    ) -> StreamTask {
        StreamTask {
            paths: paths.to_vec(),
            net: Net {
                transport: self.over.transport(),
                ip: self.ip(),
                flows: self.flows.flows,
                socket: self.socket(direction),
            },
            message_bytes,
            direction,
            offered: self.rate,
            volume: self.volume(message_bytes),
            offload: !self.no_offload,
            send_by: self.send_by(),
            receive_by: self.receive_by,
            receive_wake: self.receive_wake,
            iperf3: iperf3.cloned().map(Iperf3End::Server),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::choice::tests::check;
    use linerate_model::Timing;

    #[test]
    fn every_choice_is_a_variant() {
        check::<Direction>(DIRECTIONS);
        check::<Transport>(TRANSPORTS);
        check::<SendBy>(SEND_BY);
        check::<ReceiveBy>(RECEIVE_BY);
        check::<ReceiveWake>(RECEIVE_WAKE);
    }

    #[test]
    fn cores_are_pinned_by_host_and_follow_the_data() {
        let cpus = |options: &str| {
            let plan = plan(options).expect(options);
            let of = |cell: &Trial| match &cell.loads[0].task {
                Task::Stream(stream) => {
                    (stream.net.socket.sender_cpus.clone(), stream.net.socket.receiver_cpus.clone())
                }
                other => panic!("{other:?}"),
            };
            plan.cells().iter().map(of).collect::<Vec<_>>()
        };
        assert_eq!(cpus("-A 0,3"), [(vec![0], vec![3])]);
        assert_eq!(cpus("-A 0,3 -R"), [(vec![3], vec![0])]);
        assert_eq!(cpus("-A 2 --direction send,receive"), [(vec![2], vec![]), (vec![], vec![2])]);
        for (options, part) in [
            ("-A 0,3 --bidir", "--cpus-sender"),
            ("-A 0,3,4", "0,1"),
            ("-A ,3", "0,1"),
            ("-A 0 --cpus-sender 1", "cannot be used with"),
        ] {
            let error = plan(options).expect_err(options);
            assert!(error.contains(part), "{options}: {error}");
        }
    }

    fn plan(options: &str) -> Result<Plan, String> {
        let line = ["linerate", "stream", "a", "b"].into_iter().chain(options.split(' '));
        let line = crate::commands::help::parse_from(line).map_err(|error| error.to_string())?;
        let crate::commands::command_line::Command::Stream(stream) = line.command else { panic!("it is a stream") };
        let path = Path { client: "a".into(), server: Server::Agent("b".into()) };
        stream.plan(&[path], None, USUAL_MTU)
    }

    #[test]
    fn a_datagram_is_one_packet_of_the_path_unless_a_size_is_given() {
        let sizes = |options: &str, mtu| -> Vec<u64> {
            let line = ["linerate", "stream", "a", "b"].into_iter().chain(options.split(' '));
            let line = crate::commands::help::parse_from(line).expect("it is a command");
            let crate::commands::command_line::Command::Stream(stream) = line.command else { panic!("it is a stream") };
            let plan = stream.plan(&[Path::between("a", "b")], None, mtu).expect("a plan");
            plan.cells().iter().filter_map(|cell| cell.task().message_bytes()).map(ByteCount::get).collect()
        };
        assert_eq!(sizes("-u", 1500), [1_472]);
        assert_eq!(sizes("-u", 1420), [1_392]);
        assert_eq!(sizes("-u -6", 1420), [1_372]);
        assert_eq!(sizes("-u", 9000), [8_972]);
        assert_eq!(sizes("-u -l 1472", 1420), [1_472], "with a caveat");
    }

    #[test]
    fn a_client_is_bound_to_an_address_an_interface_or_both() {
        let bound = |options: &str| {
            let plan = plan(options).expect(options);
            let socket = &plan.cells()[0].loads[0].task.net().expect("it has a network").socket;
            (socket.bind_address.map(|address| address.to_string()), socket.bind_device.clone())
        };
        let end = |address: Option<&str>, device: Option<&str>| (address.map(str::to_owned), device.map(str::to_owned));
        assert_eq!(bound("-B 192.0.2.1"), end(Some("192.0.2.1"), None));
        assert_eq!(bound("-B 192.0.2.1%eth1"), end(Some("192.0.2.1"), Some("eth1")));
        assert_eq!(bound("-6 -B fe80::1%eth1"), end(Some("fe80::1"), Some("eth1")));
        assert_eq!(bound("-B lo"), end(None, Some("lo")));
        assert_eq!(bound("-4 -B localhost%lo"), end(Some("127.0.0.1"), Some("lo")));
        for wrong in ["-B no/link", "-B a-name-that-is-too-long-for-a-link.invalid"] {
            assert!(plan(wrong).is_err_and(|error| error.contains("192.0.2.1%eth1")), "{wrong}");
        }
    }

    #[test]
    fn a_number_of_bytes_or_messages_takes_the_place_of_the_time() {
        let cells = |options: &str| {
            let plan = plan(options).expect(options);
            let cell = |cell: &Trial| (cell.volume().map(ByteCount::get), cell.load().timing);
            plan.cells().iter().map(cell).collect::<Vec<_>>()
        };
        let within = |warmup, rest| Timing::of(Nanos::from_secs(warmup), Nanos::from_secs(rest));
        assert_eq!(cells("-n 100M"), [(Some(100_000_000), within(0, 600))]);
        assert_eq!(cells("--bytes 1Mi -O 2s"), [(Some(1 << 20), within(2, 598))]);
        assert_eq!(cells("-k 10k -l 1000"), [(Some(10_000_000), within(0, 600))]);
        assert_eq!(cells("-u -n 2000"), [(Some(2 * 1_472), within(0, 600))], "whole datagrams");
        let of_sizes = [(Some(640), within(0, 600)), (Some(1_000), within(0, 600))];
        assert_eq!(cells("-u --blockcount 10 --sizes 64,100"), of_sizes);
        assert_eq!(cells("-t 1s -O 0s"), [(None, within(0, 1))]);
        for (options, part) in [
            ("-n 100M -t 10", "cannot be used with"),
            ("-k 5 --time 10s", "cannot be used with"),
            ("-n 100M -k 5", "cannot be used with"),
            ("-n 100M --loaded-latency", "cannot be used with"),
            ("-n 0", "--bytes 0 sends nothing"),
            ("-k 0", "--blockcount 0 sends nothing"),
            ("-k 5kB", "not a number of messages"),
            ("-k 16000000T", "asks for more than"),
            ("-n 1M -O 10min", "leaves nothing"),
        ] {
            let error = plan(options).expect_err(options);
            assert!(error.contains(part), "{options}: {error}");
        }
    }

    #[test]
    fn rates_say_what_they_count() {
        assert_eq!(offered("900Mbit/s"), Ok(Offered::PayloadBps(BitRate::per_second(900_000_000))));
        assert_eq!(offered("10MB/s"), Ok(Offered::PayloadBps(BitRate::per_second(80_000_000))));
        assert_eq!(offered("100kpps"), Ok(Offered::MessagesPerS(FrameRate::per_second(100_000))));
        assert_eq!(offered("100k/s"), Ok(Offered::MessagesPerS(FrameRate::per_second(100_000))));
        assert!(offered("0").is_err() && offered("fast").is_err());
    }
}
