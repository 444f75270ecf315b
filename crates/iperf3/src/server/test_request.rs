//! The request of a client: its first JSON text, checked against the limits.

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

/// Default size of iperf3's reads and writes over TCP.
const DEFAULT_BYTES: u64 = 128 << 10;
/// Largest socket buffer that a client may request, because it is memory of the kernel.
const MAX_WINDOW: u64 = 64 << 20;

/// Test as a client requests it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct TestRequest {
    pub(super) transport: Transport,
    pub(super) direction: Direction,
    pub(super) omit: Nanos,
    /// `None` if the client ends the test by bytes or by itself.
    pub(super) time: Option<Nanos>,
    /// Payload bytes after which the client ends the test, of all its flows together.
    pub(super) bytes: Option<u64>,
    /// Number of flows of each direction.
    pub(super) flows: u16,
    pub(super) message_bytes: u64,
    /// Payload bits per second of each flow; zero is no limit.
    pub(super) rate_each: u64,
    pub(super) socket: SocketOptions,
    /// Whether datagrams have numbers of 64 bits.
    pub(super) wide: bool,
    /// iperf3's error number for a test that is too long for this service, in the client's version.
    too_long: i32,
}

/// Reason for refusing a test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RequestError {
    /// iperf3's error number, which its clients translate into a message.
    pub(super) number: i32,
    pub(super) reason: String,
}

/// iperf3's error numbers.
mod numbers {
    pub(super) const TIME: i32 = 5;
    pub(super) const FLOWS: i32 = 6;
    pub(super) const BYTES: i32 = 7;
    pub(super) const NOT_SUPPORTED: i32 = 13;
    pub(super) const RATE: i32 = 27;
    /// Time limit of the service. Clients from 3.20 on know it; older ones call any refused time out of range.
    pub(super) const LONGEST_TIME: i32 = 37;
    pub(super) const PARAMETERS: i32 = 114;
}

/// Returns whether the client's iperf3 is 3.20 or later.
fn is_from_3_20(version: &str) -> bool {
    let mut numbers = version.split(|c: char| !c.is_ascii_digit()).map(|number| number.parse::<u32>().unwrap_or(0));
    (numbers.next(), numbers.next()) >= (Some(3), Some(20))
}

impl RequestError {
    /// Creates the error for a test beyond the budget of the host. Its number names the cause that a client can change.
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
        let transport = match (flag(text, "tcp"), flag(text, "udp")) {
            (true, false) => Transport::Tcp,
            (false, true) => Transport::Udp,
            _ => return refuse(numbers::NOT_SUPPORTED, "it asked for neither TCP nor UDP"),
        };
        let direction = match (flag(text, "reverse"), flag(text, "bidirectional")) {
            (_, true) => Direction::Both,
            (true, false) => Direction::Receive,
            (false, false) => Direction::Send,
        };
        let flows = match number(text, "parallel")? {
            flows @ 1.. if flows <= u64::from(Iperf3Server::MOST_FLOWS) => flows as u16,
            flows => return refuse(numbers::FLOWS, format!("it asked for {flows} flows")),
        };
        let omit_s = number(text, "omit")?;
        let time_s = number(text, "time")?;
        if omit_s > Iperf3Server::MOST_WARMUP_S || time_s > 86_400 {
            return refuse(numbers::TIME, format!("it asked for {time_s} s after {omit_s} s of warm-up"));
        }
        let bytes = match number(text, "len")? {
            0 if transport == Transport::Tcp => DEFAULT_BYTES,
            bytes => bytes,
        };
        let (minimum, maximum) = match transport {
            Transport::Tcp => (1, Iperf3Server::MOST_TCP_BYTES),
            Transport::Udp => (StreamTask::UDP_MINIMUM, StreamTask::UDP_MAXIMUM),
        };
        if !(minimum..=maximum).contains(&bytes) {
            return refuse(numbers::BYTES, format!("it asked for messages of {bytes} bytes"));
        }
        let total = match number(text, "num")? {
            0 => number(text, "blockcount")?.saturating_mul(bytes),
            total => total,
        };
        let window = Some(number(text, "window")?.min(MAX_WINDOW)).filter(|bytes| *bytes > 0).map(ByteCount::new);
        let socket = SocketOptions {
            congestion: text
                .get("congestion")
                .and_then(Value::as_str)
                .filter(|name| transport == Transport::Tcp && SocketOptions::is_congestion_name(name))
                .map(str::to_owned),
            // The upper six bits of the old type of service: RFC 2474 section 3.
            dscp: Some((number(text, "TOS")? as u8) >> 2).filter(|dscp| *dscp > 0),
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
            rate_each: number(text, "bandwidth")?,
            socket,
            wide: flag(text, "udp_counters_64bit"),
            too_long: match text.get("client_version").and_then(Value::as_str) {
                Some(version) if is_from_3_20(version) => numbers::LONGEST_TIME,
                _ => numbers::TIME,
            },
        })
    }

    /// Returns the payload bits per second that this host is to send and to receive. `None` is no limit.
    pub(super) fn rates(&self) -> (Option<u64>, Option<u64>) {
        let rate = Some(self.rate_each.saturating_mul(self.flows.into())).filter(|rate| *rate > 0);
        match self.direction {
            Direction::Send => (Some(0), rate),
            Direction::Receive => (rate, Some(0)),
            Direction::Both => (rate, rate),
        }
    }

    /// Checks the request against `limits`, together with the rates that the `others` send and receive.
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

    /// Returns the resources of this host that a test with `peer` needs.
    pub(super) fn needs(&self, peer: IpAddr) -> Result<Needs, RequestError> {
        let assignment = self.assignment(peer, Nanos::from_secs(1));
        let demand = Streams.demand(&assignment).or_else(|error| refuse(numbers::PARAMETERS, error.message))?;
        let flows = self.ways().len() as u64;
        Ok(Needs {
            // One for the test, and one that watches this host.
            threads: demand.needs.threads.saturating_add(2),
            memory: demand
                .needs
                .memory
                .saturating_add(2 * Needs::THREAD + TEXTS_MEMORY)
                .saturating_add(flows.saturating_mul(RESULT_MEMORY)),
            // One for the control connection, and a second one per flow until the test has ended.
            descriptors: demand.needs.descriptors.saturating_add(flows).saturating_add(1),
            ..demand.needs
        })
    }

    /// Returns number and direction of the flows, in the clients' order of opening. True is back to the client.
    pub(super) fn ways(&self) -> Vec<(u16, bool)> {
        let directions: &[bool] = match self.direction {
            Direction::Send => &[false],
            Direction::Receive => &[true],
            Direction::Both => &[false, true],
        };
        directions.iter().flat_map(|backward| (0..self.flows).map(|number| (number, *backward))).collect()
    }

    /// Returns the stream to or from `peer`, without socket options, which are set when the sockets are made.
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

    /// Returns the stream for the record, as seen from this host, which receives the data of the client.
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

    /// Returns the volume that this host sends.
    ///
    /// Returns `None` if only the client can end the test: datagrams may be lost, and bytes within `-O` do not count.
    /// Clients from iperf3 3.16 on check their bytes once a second and count whole messages only, so each flow may end
    /// within a message.
    pub(super) fn volume(&self) -> Option<ByteCount> {
        let sends_only =
            self.direction == Direction::Receive && self.transport == Transport::Tcp && self.omit.is_zero();
        let bytes = self.bytes.filter(|_| sends_only)?.min(StreamTask::MOST_VOLUME / 2);
        let messages = bytes.div_ceil(self.message_bytes.max(1)) + u64::from(self.flows);
        Some(ByteCount::new(messages * self.message_bytes))
    }

    /// Returns this host's part in a stream to or from `peer`, for at most `time`.
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

/// Reads a boolean, which may be a number.
fn flag(text: &Value, name: &str) -> bool {
    match text.get(name) {
        Some(Value::Bool(flag)) => *flag,
        Some(value) => value.as_f64().is_some_and(|number| number != 0.0),
        None => false,
    }
}

/// Reads a number; zero if it is missing.
fn number(text: &Value, name: &str) -> Result<u64, RequestError> {
    match text.get(name) {
        None | Some(Value::Null) => Ok(0),
        Some(value) => match value.as_u64() {
            Some(number) => Ok(number),
            None => refuse(numbers::PARAMETERS, format!("it asked for `{name}` of {value}")),
        },
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

    /// Returns parameters captured from iperf3 3.12.
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
    fn captured_request_is_read() {
        let request = TestRequest::read(&captured()).expect("valid");
        assert_eq!((request.transport, request.direction, request.flows), (Transport::Tcp, Direction::Both, 2));
        assert_eq!((request.omit, request.time), (Nanos::from_secs(1), Some(Nanos::from_secs(10))));
        assert_eq!((request.socket.dscp, request.socket.congestion.as_deref()), (Some(8), Some("cubic")));
        assert_eq!(request.rates(), (Some(2_000_000), Some(2_000_000)));
        assert_eq!(request.ways(), [(0, false), (1, false), (0, true), (1, true)]);
        assert_eq!(request.check(&limits(), (8_000_000, 0)), Ok(()));
        let udp = json!({"udp": true, "parallel": 1, "len": 1460, "time": 0, "reverse": 1, "udp_counters_64bit": 1});
        let udp = TestRequest::read(&udp).expect("valid");
        assert!(udp.wide && udp.time.is_none() && udp.direction == Direction::Receive && udp.rates().0.is_none());
        assert_eq!(request.bytes, None);
        for (name, bytes) in [("num", 5_000_000), ("blockcount", u64::MAX)] {
            assert_eq!(with(name, json!(bytes)).expect("valid").bytes, Some(bytes));
        }
    }

    #[test]
    fn invalid_and_excessive_requests_are_refused_by_number() {
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
        for (name, value, others, number) in [
            ("parallel", json!(5), (0, 0), numbers::FLOWS),
            ("time", json!(20), (0, 0), numbers::TIME),
            ("bandwidth", json!(0), (0, 0), numbers::RATE),
            ("bandwidth", json!(6_000_000), (0, 0), numbers::RATE),
            ("bandwidth", json!(u64::MAX), (0, 0), numbers::RATE),
            ("bandwidth", json!(1_000_000), (0, 9_000_000), numbers::RATE),
        ] {
            let error = with(name, value).expect("valid").check(&limits(), others).expect_err(name);
            assert_eq!(error.number, number, "{name}");
        }
    }

    #[test]
    fn error_number_of_the_time_limit_depends_on_the_version() {
        for (version, number) in
            [("3.12", 5), ("3.19.1", 5), ("3.20", 37), ("3.21+", 37), ("4.0", 37), ("", 5), ("x", 5)]
        {
            let request = with("client_version", json!(version)).expect("valid");
            let request = TestRequest { time: Some(Nanos::from_secs(20)), ..request };
            assert_eq!(request.check(&limits(), (0, 0)).map_err(|error| error.number), Err(number), "{version}");
        }
    }

    #[test]
    fn invalid_names_of_congestion_controls_are_dropped() {
        let congestion = |name: &str| with("congestion", json!(name)).expect("valid").socket.congestion;
        assert_eq!(congestion("a_name_of_15_by"), Some("a_name_of_15_by".to_owned()));
        for invalid in
            [&"x".repeat(200_000), "a b", "\u{1b}[1m", "", "$(reboot)", "`reboot`", "a;reboot", "a|b", "'", "-R"]
        {
            assert_eq!(congestion(invalid), None, "{invalid:?}");
        }
        let udp = json!({"udp": true, "parallel": 1, "len": 1_460, "congestion": "cubic"});
        assert_eq!(TestRequest::read(&udp).expect("valid").socket.congestion, None);
    }

    /// Attack: four tests of 128 flows each way take more memory and threads than all sessions of the agent may.
    #[test]
    fn needs_grow_with_the_flows() {
        let peer = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let [few, many] =
            [1, 128].map(|flows| with("parallel", json!(flows)).expect("valid").needs(peer).expect("it can be served"));
        assert!(many.threads >= 256 && many.descriptors >= 512 && many.memory >= 128 << 20, "{many:?}");
        assert!(few.threads <= 5 && few.memory <= 8 << 20, "{few:?}");
    }

    #[test]
    fn requested_socket_buffer_is_limited() {
        let request = with("window", json!(u64::MAX)).expect("valid");
        assert_eq!(request.socket.receive_buffer, Some(ByteCount::new(MAX_WINDOW)));
    }
}
