//! What a client asks for: its first JSON text, weighed against what is allowed.

use super::ServiceLimits;
use super::test::{RESULT_MEMORY, TEXTS_MEMORY};
use linerate_engine::{Engine as _, Needs};
use linerate_model::{
    Assignment, Direction, IpVersion, Iperf3Client, Iperf3End, Iperf3Server, LinkId, Listen, Net, Offered, Path, Role,
    RoleKind, Sampling, SessionId, SessionKey, SocketOptions, StreamTask, Task, Timing, Transport,
};
use linerate_streams::Streams;
use linerate_units::{BitRate, ByteCount, Nanos};
use serde_json::Value;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What iperf3 reads and writes at a time over TCP if nothing else is asked for.
const USUAL_BYTES: u64 = 128 << 10;
/// Bytes of socket buffers that a stranger may have set: more would be memory of the kernel.
const MOST_WINDOW: u64 = 64 << 20;

/// A test as a client asks for it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct TestRequest {
    pub(super) transport: Transport,
    pub(super) direction: Direction,
    pub(super) omit: Nanos,
    /// None where the client ends the test by bytes or by itself.
    pub(super) time: Option<Nanos>,
    /// Payload bytes after which the client ends the test, of all its flows together.
    pub(super) bytes: Option<u64>,
    /// Flows of each direction.
    pub(super) flows: u16,
    pub(super) message_bytes: u64,
    /// Payload bits per second of each flow; zero is no limit.
    pub(super) rate_each: u64,
    pub(super) socket: SocketOptions,
    /// Datagrams have numbers of 64 bits.
    pub(super) wide: bool,
    /// iperf3's number for a test that is too long for this service, as far as the client knows one.
    too_long: i32,
}

/// Why a test is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RequestError {
    /// iperf3's own number for it, which its clients put into words.
    pub(super) number: i32,
    pub(super) reason: String,
}

/// iperf3's numbers of errors.
mod numbers {
    pub(super) const TIME: i32 = 5;
    pub(super) const FLOWS: i32 = 6;
    pub(super) const BYTES: i32 = 7;
    pub(super) const NOT_SUPPORTED: i32 = 13;
    pub(super) const RATE: i32 = 27;
    /// The service's own limit of time. Clients from 3.20 on know it; older ones call any time that is refused out of range.
    pub(super) const LONGEST_TIME: i32 = 37;
    pub(super) const PARAMETERS: i32 = 114;
}

/// Whether the client's iperf3 is 3.20 or later.
fn is_from_3_20(version: &str) -> bool {
    let mut numbers = version.split(|c: char| !c.is_ascii_digit()).map(|number| number.parse::<u32>().unwrap_or(0));
    (numbers.next(), numbers.next()) >= (Some(3), Some(20))
}

impl RequestError {
    /// A test for which the host has no room; iperf3 knows a number for the cause that a client can change.
    pub(super) fn beyond_budget(reason: String) -> Self {
        Self { number: numbers::FLOWS, reason }
    }
}

fn refuse<T>(number: i32, reason: impl Into<String>) -> Result<T, RequestError> {
    Err(RequestError { number, reason: reason.into() })
}

impl TestRequest {
    /// Reads the parameters of a test.
    pub(super) fn read(text: &Value) -> Result<Self, RequestError> {
        let is = |name: &str| match text.get(name) {
            Some(Value::Bool(is)) => *is,
            Some(value) => value.as_f64().is_some_and(|number| number != 0.0),
            None => false,
        };
        let number = |name: &str| match text.get(name) {
            None | Some(Value::Null) => Ok(0),
            Some(value) => match value.as_u64() {
                Some(number) => Ok(number),
                None => refuse(numbers::PARAMETERS, format!("it asked for `{name}` of {value}")),
            },
        };
        let transport = match (is("tcp"), is("udp")) {
            (true, false) => Transport::Tcp,
            (false, true) => Transport::Udp,
            _ => return refuse(numbers::NOT_SUPPORTED, "it asked for neither TCP nor UDP"),
        };
        let direction = match (is("reverse"), is("bidirectional")) {
            (_, true) => Direction::Both,
            (true, false) => Direction::Receive,
            (false, false) => Direction::Send,
        };
        let flows = match number("parallel")? {
            flows @ 1.. if flows <= u64::from(Iperf3Server::MOST_FLOWS) => flows as u16,
            flows => return refuse(numbers::FLOWS, format!("it asked for {flows} flows")),
        };
        let (omit_s, time_s) = (number("omit")?, number("time")?);
        if omit_s > Iperf3Server::MOST_WARMUP_S || time_s > 86_400 {
            return refuse(numbers::TIME, format!("it asked for {time_s} s after {omit_s} s of warm-up"));
        }
        let bytes = match number("len")? {
            0 if transport == Transport::Tcp => USUAL_BYTES,
            bytes => bytes,
        };
        let (least, most) = match transport {
            Transport::Tcp => (1, Iperf3Server::MOST_TCP_BYTES),
            Transport::Udp => (StreamTask::UDP_MINIMUM, StreamTask::UDP_MAXIMUM),
        };
        if !(least..=most).contains(&bytes) {
            return refuse(numbers::BYTES, format!("it asked for messages of {bytes} bytes"));
        }
        let total = match number("num")? {
            0 => number("blockcount")?.saturating_mul(bytes),
            total => total,
        };
        let window = Some(number("window")?.min(MOST_WINDOW)).filter(|bytes| *bytes > 0).map(ByteCount::new);
        let socket = SocketOptions {
            congestion: text
                .get("congestion")
                .and_then(Value::as_str)
                .filter(|name| transport == Transport::Tcp && SocketOptions::is_congestion_name(name))
                .map(str::to_owned),
            // The old type of service holds it in its upper six bits: RFC 2474 section 3.
            dscp: Some((number("TOS")? as u8) >> 2).filter(|dscp| *dscp > 0),
            send_buffer: window,
            receive_buffer: window,
            ..SocketOptions::default()
        };
        Ok(Self {
            transport,
            direction,
            omit: Nanos::from_secs(omit_s),
            time: Some(Nanos::from_secs(time_s)).filter(|time| !time.is_zero()),
            bytes: Some(total).filter(|total| *total > 0),
            flows,
            message_bytes: bytes,
            rate_each: number("bandwidth")?,
            socket,
            wide: is("udp_counters_64bit"),
            too_long: match text.get("client_version").and_then(Value::as_str) {
                Some(version) if is_from_3_20(version) => numbers::LONGEST_TIME,
                _ => numbers::TIME,
            },
        })
    }

    /// Payload bits per second that this host is to send and to receive; none has no bound.
    pub(super) fn rates(&self) -> (Option<u64>, Option<u64>) {
        let rate = Some(self.rate_each.saturating_mul(self.flows.into())).filter(|rate| *rate > 0);
        match self.direction {
            Direction::Send => (Some(0), rate),
            Direction::Receive => (rate, Some(0)),
            Direction::Both => (rate, rate),
        }
    }

    /// Weighs it against what is allowed, beside what the other tests send and receive.
    pub(super) fn check(&self, limits: &ServiceLimits, others: (u64, u64)) -> Result<(), RequestError> {
        let flows = u64::from(self.flows) * if self.direction == Direction::Both { 2 } else { 1 };
        if flows > limits.max_flows {
            return refuse(numbers::FLOWS, format!("it asked for {flows} flows, and {} are allowed", limits.max_flows));
        }
        let time = self.omit + self.time.unwrap_or_default();
        if time > limits.max_time {
            return refuse(self.too_long, format!("it asked for {time}, and {} are allowed", limits.max_time));
        }
        let Some(limit) = limits.max_rate else { return Ok(()) };
        let (sends, receives) = self.rates();
        for (rate, others) in [(sends, others.0), (receives, others.1)] {
            match rate.map(|rate| rate.saturating_add(others)) {
                None => return refuse(numbers::RATE, format!("it asked for no limit of rate, and {limit} is allowed")),
                Some(rate) if rate > limit.get() => {
                    let rate = BitRate::per_second(rate);
                    return refuse(numbers::RATE, format!("with it all tests had {rate}, and {limit} is allowed"));
                }
                Some(_) => (),
            }
        }
        Ok(())
    }

    /// What a test with `peer` needs of this host.
    pub(super) fn needs(&self, peer: IpAddr) -> Result<Needs, RequestError> {
        let assignment = self.assignment(peer, Nanos::from_secs(1));
        let demand = Streams.demand(&assignment).or_else(|error| refuse(numbers::PARAMETERS, error.message))?;
        let flows = self.ways().len() as u64;
        Ok(Needs {
            // The thread of the test, and the one that watches this host.
            threads: demand.needs.threads.saturating_add(2),
            memory: demand
                .needs
                .memory
                .saturating_add(2 * Needs::THREAD + TEXTS_MEMORY)
                .saturating_add(flows.saturating_mul(RESULT_MEMORY)),
            // The control connection, and each flow's socket once more until the test has ended.
            descriptors: demand.needs.descriptors.saturating_add(flows).saturating_add(1),
            ..demand.needs
        })
    }

    /// The flows in the order in which clients open them: whether data go back to the client.
    pub(super) fn ways(&self) -> Vec<(u16, bool)> {
        let ways: &[bool] = match self.direction {
            Direction::Send => &[false],
            Direction::Receive => &[true],
            Direction::Both => &[false, true],
        };
        ways.iter().flat_map(|backward| (0..self.flows).map(|number| (number, *backward))).collect()
    }

    /// The same as a stream of linerate's to or from `peer`. The sockets have their options when they are made.
    fn stream(&self, peer: IpAddr) -> StreamTask {
        let ip = if peer.to_canonical().is_ipv4() { IpVersion::V4 } else { IpVersion::V6 };
        let rate = self.rate_each.saturating_mul(self.flows.into());
        StreamTask {
            net: Net { ip, flows: self.flows, ..Net::plain(self.transport) },
            direction: self.direction,
            offered: (rate > 0).then(|| Offered::PayloadBps(BitRate::per_second(rate))),
            ..StreamTask::plain(self.transport, ByteCount::new(self.message_bytes))
        }
    }

    /// That stream as it is kept: seen from this host, which receives what the client sends.
    pub(super) fn seen_from_here(&self, peer: IpAddr) -> StreamTask {
        let direction = match self.direction {
            Direction::Send => Direction::Receive,
            Direction::Receive => Direction::Send,
            Direction::Both => Direction::Both,
        };
        let client = Iperf3Client { address: peer.to_canonical() };
        let stream = self.stream(peer);
        let net = Net { socket: self.socket.clone(), ..stream.net };
        StreamTask { direction, net, iperf3: Some(Iperf3End::Client(client)), ..stream }
    }

    /// What this host sends and no more; none where the client alone says when it is enough: datagrams may be lost, and of what is sent within
    /// `-O` no byte counts. Clients from iperf3 3.16 on look once a second whether they have all their bytes, and count whole messages only. So
    /// each flow may end within one.
    pub(super) fn volume(&self) -> Option<ByteCount> {
        let sends_only =
            self.direction == Direction::Receive && self.transport == Transport::Tcp && self.omit.is_zero();
        let bytes = self.bytes.filter(|_| sends_only)?.min(StreamTask::MOST_VOLUME / 2);
        let messages = bytes.div_ceil(self.message_bytes.max(1)) + u64::from(self.flows);
        Some(ByteCount::new(messages * self.message_bytes))
    }

    /// What this host does in a stream to or from `peer`, for `time` at the most.
    pub(super) fn assignment(&self, peer: IpAddr, time: Nanos) -> Assignment {
        let address = match peer.to_canonical() {
            IpAddr::V4(_) => IpAddr::from(Ipv4Addr::UNSPECIFIED),
            IpAddr::V6(_) => IpAddr::from(Ipv6Addr::UNSPECIFIED),
        };
        let volume = self.volume();
        let task = StreamTask { paths: vec![Path::between("client", "here")], volume, ..self.stream(peer) };
        let link = LinkId(0);
        let listens = vec![Listen { link, address, folder: None }];
        Assignment {
            id: SessionId("iperf3".to_owned()),
            key: SessionKey(rand::random()),
            task: Task::Stream(task),
            timing: Timing::of(Nanos::default(), time),
            roles: vec![Role { kind: RoleKind::Server { path: 0 }, listens, connects: Vec::new() }],
            password: None,
            sampling: Sampling::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_engine::{AllowedPeers, Reserve};
    use serde_json::json;

    fn limits() -> ServiceLimits {
        ServiceLimits {
            max_rate: Some(BitRate::per_second(10_000_000)),
            max_time: Nanos::from_secs(20),
            max_tests: 4,
            max_flows: 8,
            peers: AllowedPeers::default(),
            reserve: Reserve::default(),
        }
    }

    /// What iperf3 3.12 sends, as it was captured.
    fn captured() -> Value {
        json!({"tcp":true,"omit":1,"time":10,"num":0,"blockcount":0,"MSS":1400,"parallel":2,"bidirectional":true,"window":102400,
            "len":131072,"bandwidth":1000000,"pacing_timer":1000,"TOS":32,"congestion":"cubic","client_version":"3.12"})
    }

    fn with(name: &str, value: Value) -> Result<TestRequest, RequestError> {
        let mut text = captured();
        text[name] = value;
        TestRequest::read(&text)
    }

    #[test]
    fn what_iperf3_asks_for_is_read() {
        let asked = TestRequest::read(&captured()).expect("valid");
        assert_eq!((asked.transport, asked.direction, asked.flows), (Transport::Tcp, Direction::Both, 2));
        assert_eq!((asked.omit, asked.time), (Nanos::from_secs(1), Some(Nanos::from_secs(10))));
        assert_eq!((asked.socket.dscp, asked.socket.congestion.as_deref()), (Some(8), Some("cubic")));
        assert_eq!(asked.rates(), (Some(2_000_000), Some(2_000_000)));
        assert_eq!(asked.ways(), [(0, false), (1, false), (0, true), (1, true)]);
        assert_eq!(asked.check(&limits(), (8_000_000, 0)), Ok(()));
        let udp = json!({"udp": true, "parallel": 1, "len": 1460, "time": 0, "reverse": 1, "udp_counters_64bit": 1});
        let udp = TestRequest::read(&udp).expect("valid");
        assert!(udp.wide && udp.time.is_none() && udp.direction == Direction::Receive && udp.rates().0.is_none());
        let total = |name: &str, value| with(name, json!(value)).expect("valid").bytes;
        assert_eq!(
            (asked.bytes, total("num", 5_000_000), total("blockcount", u64::MAX)),
            (None, Some(5_000_000), Some(u64::MAX))
        );
    }

    #[test]
    fn what_cannot_be_meant_or_is_not_allowed_is_refused_by_number() {
        for (name, value, number) in [
            ("parallel", json!(0), numbers::FLOWS),
            ("parallel", json!(129), numbers::FLOWS),
            ("parallel", json!(-1), numbers::PARAMETERS),
            ("time", json!(1e300), numbers::PARAMETERS),
            ("time", json!(90_000), numbers::TIME),
            ("len", json!(2 << 20), numbers::BYTES),
            ("bandwidth", json!("fast"), numbers::PARAMETERS),
            ("tcp", json!(false), numbers::NOT_SUPPORTED),
        ] {
            assert_eq!(with(name, value).expect_err(name).number, number, "{name}");
        }
        let check = |name: &str, value: Value| {
            with(name, value).expect("valid").check(&limits(), (0, 0)).map_err(|no| no.number)
        };
        assert_eq!(check("parallel", json!(5)), Err(numbers::FLOWS));
        assert_eq!(check("time", json!(20)), Err(numbers::TIME));
        assert_eq!(check("bandwidth", json!(0)), Err(numbers::RATE));
        assert_eq!(check("bandwidth", json!(6_000_000)), Err(numbers::RATE));
        assert_eq!(check("bandwidth", json!(u64::MAX)), Err(numbers::RATE));
        let others = with("bandwidth", json!(1_000_000)).expect("valid").check(&limits(), (0, 9_000_000));
        assert_eq!(others.map_err(|no| no.number), Err(numbers::RATE));
    }

    #[test]
    fn a_client_is_told_the_limit_of_time_as_its_version_knows_it() {
        for (version, number) in
            [("3.12", 5), ("3.19.1", 5), ("3.20", 37), ("3.21+", 37), ("4.0", 37), ("", 5), ("x", 5)]
        {
            let asked = with("client_version", json!(version)).expect("valid");
            let asked = TestRequest { time: Some(Nanos::from_secs(20)), ..asked };
            assert_eq!(asked.check(&limits(), (0, 0)).map_err(|no| no.number), Err(number), "{version}");
        }
    }

    #[test]
    fn only_what_can_be_a_congestion_control_is_kept() {
        let kept = |name: &str| with("congestion", json!(name)).expect("valid").socket.congestion;
        assert_eq!(kept("a_name_of_15_by"), Some("a_name_of_15_by".to_owned()));
        for odd in [&"x".repeat(200_000), "a b", "\u{1b}[1m", "", "$(reboot)", "`reboot`", "a;reboot", "a|b", "'", "-R"]
        {
            assert_eq!(kept(odd), None, "{odd:?}");
        }
        let udp = json!({"udp": true, "parallel": 1, "len": 1_460, "congestion": "cubic"});
        assert_eq!(TestRequest::read(&udp).expect("valid").socket.congestion, None);
    }

    /// The attack: four tests of 128 flows each way take more memory and threads than all sessions of the agent may.
    #[test]
    fn a_test_needs_what_its_flows_take() {
        let peer = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let needs = |name, value| with(name, value).expect("valid").needs(peer).expect("it can be served");
        let (few, many) = (needs("parallel", json!(1)), needs("parallel", json!(128)));
        assert!(many.threads >= 256 && many.descriptors >= 512 && many.memory >= 128 << 20, "{many:?}");
        assert!(few.threads <= 5 && few.memory <= 8 << 20, "{few:?}");
    }

    #[test]
    fn a_window_is_no_way_to_the_kernels_memory() {
        let asked = with("window", json!(u64::MAX)).expect("valid");
        assert_eq!(asked.socket.receive_buffer, Some(ByteCount::new(MOST_WINDOW)));
    }
}
