//! `linerate stream`: bulk data over TCP or UDP, counted at the receiver.

use crate::arguments::{Flows, Over, Repetition, Results, Sockets};
use crate::choice::{Choices, choice};
use crate::exit::Failure;
use crate::hosts::{HostBook, host_arguments};
use crate::measure::measure;
use linerate_method::probed;
use linerate_model::{
    Direction, IpVersion, Net, Offered, Path, Plan, ReceiveBy, SendBy, StreamTask, Task, TransactTask, Transport, Trial,
};
use linerate_units::{BitRate, ByteCount, FrameRate, Nanos};
use std::collections::BTreeSet;
use tokio::sync::watch;

/// What a TCP sender hands over at a time if nothing else is asked.
const TCP_MESSAGE: u64 = 1 << 20;
/// Latency under load needs a window that is long beside a full queue's fill and drain.
const SHORTEST_PROBED: Nanos = Nanos::from_secs(1);

/// Measure bulk throughput over TCP or UDP, counted at the receiver
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  linerate stream B                          TCP from this machine to B
  linerate stream A B --flows 4              TCP from A to B, four connections; this machine only controls the run
  linerate stream A B --udp --sizes 64,512,1024,1472,8192
  linerate stream A B --udp --rate 900Mbit/s --expect 'loss<=0.01%'
  linerate stream A,C,D B                    three senders to one receiver: the total and each share
  linerate stream A B --prove                tests the verdict too
  linerate stream A B --confidence 95 --within 2.5%
  linerate stream A B --loaded-latency --warmup 5s --time 10s      latency that the stream adds to other traffic
  linerate stream A B --loaded-latency=udp --expect 'added.p99<=30ms' --expect 'rpm>=1000'")]
pub(crate) struct Arguments {
    /// Sender and receiver: a name that you saved, an agent URL, `local`, or a lab host's name; separate several senders by commas. If you
    /// name one host, it is the receiver, and this machine is the sender
    #[arg(required = true, num_args = 1..=2, value_name = "HOST")]
    hosts: Vec<String>,

    #[command(flatten)]
    over: Over,

    /// Message size: a UDP datagram's payload, or one write to a TCP socket [default: UDP 1472 (IPv6: 1452), TCP 1 MiB]
    #[arg(long, short = 'l', value_name = "BYTES", conflicts_with = "sizes")]
    size: Option<ByteCount>,

    /// Several message sizes, each measured by itself
    #[arg(long, value_name = "BYTES,...", value_delimiter = ',')]
    sizes: Vec<ByteCount>,

    #[command(flatten)]
    flows: Flows,

    /// Data direction, as seen from the first host
    #[arg(long, default_value = "send", value_parser = choice::<Direction>(DIRECTIONS))]
    direction: Direction,

    /// Offered load of each sender and direction: payload (900Mbit/s) or messages (100kpps) [default: not limited]
    #[arg(long, short = 'b', value_name = "RATE", value_parser = offered)]
    rate: Option<Offered>,

    /// UDP: send and receive each datagram by itself, without the kernel's GSO and GRO
    #[arg(long)]
    no_offload: bool,

    /// Measure latency under load: 100 small requests per second, on the idle path before each run and beside the
    /// stream. Reports the delay that the load adds, its grade (median added: A+ below 5 ms, A 30, B 60, C 200, D 400,
    /// else F), and round trips per minute. OVER is the requests' transport [default: as the stream]
    #[arg(long, value_name = "OVER", num_args = 0..=1, require_equals = true, value_parser = choice::<Transport>(TRANSPORTS))]
    loaded_latency: Option<Option<Transport>>,

    /// How a TCP sender passes data to the kernel
    #[arg(long, default_value = "auto", value_parser = choice::<SendBy>(SEND_BY))]
    send_by: SendBy,

    /// How a TCP receiver takes data from the kernel; `discard` (MSG_TRUNC) leaves out the copy that programs need
    #[arg(long, default_value = "copy", value_parser = choice::<ReceiveBy>(RECEIVE_BY))]
    receive_by: ReceiveBy,

    #[command(flatten)]
    repetition: Repetition,

    #[command(flatten)]
    sockets: Sockets,

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
    ("auto", "sendfile for 16 KiB and more, write below"),
    ("sendfile", "From memory, without a copy"),
    ("write", "From a buffer, with a copy"),
];
const RECEIVE_BY: Choices =
    &[("copy", "Copied into a buffer, as programs do"), ("discard", "Discarded by the kernel, without a copy")];

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

pub(crate) async fn run(arguments: Arguments, book: HostBook, cancel: watch::Receiver<bool>) -> Result<(), Failure> {
    let hosts = host_arguments(&book.pair(&arguments.hosts)).map_err(Failure::usage)?;
    let plan = arguments.plan(&hosts.paths()).map_err(Failure::usage)?;
    measure(plan, &hosts, book, &arguments.results, cancel).await
}

impl Arguments {
    fn plan(&self, paths: &[Path]) -> Result<Plan, String> {
        let timing = self.repetition.timing()?;
        let time = self.repetition.time;
        if self.loaded_latency.is_some() && time < SHORTEST_PROBED {
            return Err(format!("--time {time} is too short for --loaded-latency; give at least {SHORTEST_PROBED}"));
        }
        let mut sizes = if self.sizes.is_empty() { vec![self.size()] } else { self.sizes.clone() };
        for size in &sizes {
            self.check_size(*size)?;
        }
        // A size asked for twice is one measurement.
        let mut seen = BTreeSet::new();
        sizes.retain(|size| seen.insert(*size));
        let cell = |size: &ByteCount| {
            let stream = self.stream(paths, *size);
            let over = self.loaded_latency.map(|over| over.unwrap_or(stream.net.transport));
            let probe = over.map(|over| TransactTask::beside(&stream, over));
            let trial = Trial::new(self.name(*size), Task::Stream(stream), timing);
            match probe {
                Some(probe) => probed(trial, probe),
                None => trial,
            }
        };
        self.repetition.sweep(sizes.iter().map(cell).collect())
    }

    fn is_udp(&self) -> bool {
        self.over.transport() == Transport::Udp
    }

    fn size(&self) -> ByteCount {
        let largest_unfragmented = 1500 - u64::from(self.ip().header()) - 8;
        self.size.unwrap_or(ByteCount::new(if self.is_udp() { largest_unfragmented } else { TCP_MESSAGE }))
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

    fn name(&self, size: ByteCount) -> String {
        let mut name = if self.is_udp() { "udp".to_owned() } else { "tcp".to_owned() };
        if self.is_udp() || self.size.is_some() || !self.sizes.is_empty() {
            name += &format!(" {}", size.get());
        }
        match self.direction {
            Direction::Send => name,
            Direction::Receive => name + " receive",
            Direction::Both => name + " both",
        }
    }

    fn stream(&self, paths: &[Path], message_bytes: ByteCount) -> StreamTask {
        StreamTask {
            paths: paths.to_vec(),
            net: Net {
                transport: self.over.transport(),
                ip: self.ip(),
                flows: self.flows.flows,
                socket: self.sockets.options(),
            },
            message_bytes,
            direction: self.direction,
            offered: self.rate,
            offload: !self.no_offload,
            send_by: self.send_by,
            receive_by: self.receive_by,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::choice::tests::check;

    #[test]
    fn every_choice_is_a_variant() {
        check::<Direction>(DIRECTIONS);
        check::<Transport>(TRANSPORTS);
        check::<SendBy>(SEND_BY);
        check::<ReceiveBy>(RECEIVE_BY);
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
