//! Clients of iperf3 and other programs at our server.

use crate::sessions::{client, counts, ended, stream};
use linerate_engine::{AllowedPeers, Reserve, Work};
use linerate_iperf3::{Iperf3Service, Observer, ServedTest, ServiceLimits, TestWatch};
use linerate_model::{
    Direction, HostCounts, Iperf3End, Iperf3Server, Net, Observation, Offered, RoleCounts, Series, StreamTask, Timing,
    Transport,
};
use linerate_testsuite::{server_test, wait_until};
use linerate_units::{BitRate, Nanos};
use serde_json::Value;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

/// A service on loopback, with its reports.
struct Served {
    service: Iperf3Service,
    seen: Arc<Seen>,
}

#[derive(Default)]
struct Seen {
    lines: Mutex<Vec<String>>,
    tests: Mutex<Vec<(ServedTest, HostCounts)>>,
}

/// A running test.
struct RunningTest {
    seen: Arc<Seen>,
    test: ServedTest,
}

impl Observer for Seen {
    fn report(&self, line: &str) {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).push(line.to_owned());
    }

    fn begins(self: Arc<Self>, test: ServedTest) -> Box<dyn TestWatch> {
        Box::new(RunningTest { seen: self, test })
    }
}

impl TestWatch for RunningTest {
    fn watch(&mut self, work: Work) {
        assert!(work.window.is_some() && !work.threads.is_empty());
    }

    fn seen(&mut self) -> (Observation, Series) {
        (Observation::default(), Series::default())
    }

    fn ended(self: Box<Self>, timing: Timing, counts: HostCounts) {
        let test = ServedTest { timing, ..self.test };
        self.seen.tests.lock().unwrap_or_else(PoisonError::into_inner).push((test, counts));
    }
}

fn limits() -> ServiceLimits {
    ServiceLimits {
        max_rate: None,
        max_time: Nanos::from_secs(60),
        max_tests: 4,
        max_flows: 16,
        peers: AllowedPeers::default(),
        reserve: Reserve::default(),
    }
}

impl Served {
    fn with(limits: ServiceLimits) -> Self {
        Self::at(Ipv4Addr::LOCALHOST, limits)
    }

    fn at(address: Ipv4Addr, limits: ServiceLimits) -> Self {
        let seen = Arc::<Seen>::default();
        let observer = Arc::clone(&seen) as Arc<dyn Observer>;
        let service = Iperf3Service::start((address, 0).into(), limits, observer).expect("it listens");
        Self { service, seen }
    }

    fn address(&self) -> SocketAddr {
        self.service.address()
    }

    fn lines(&self) -> Vec<String> {
        self.seen.lines.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits for a line that contains `part`.
    fn wait_for_line(&self, part: &str) {
        let has_line = || self.lines().iter().any(|line| line.contains(part)).then_some(());
        wait_until(&format!("a line with `{part}` in {:?}", self.lines()), has_line);
    }

    /// Runs iperf3 as a client with `options`. Returns its JSON report.
    fn iperf3(&self, options: &[&str]) -> Value {
        let port = self.address().port().to_string();
        let run = Command::new("timeout")
            .args(["30", "iperf3", "-J", "-c", "127.0.0.1", "-p", &port])
            .args(options)
            .stdin(Stdio::null())
            .output()
            .expect("iperf3 starts");
        serde_json::from_slice(&run.stdout).unwrap_or_else(|error| {
            panic!(
                "{options:?}: {error}: {}{}",
                String::from_utf8_lossy(&run.stdout),
                String::from_utf8_lossy(&run.stderr)
            )
        })
    }
}

#[test]
fn the_error_names_a_port_that_another_program_uses() {
    // At a loopback address where no other test uses the same port of the other transport.
    let [.., high, low] = std::process::id().to_be_bytes();
    let here = Ipv4Addr::new(127, 98, high, low);
    let tcp = TcpListener::bind((here, 0)).expect("a port");
    let udp = UdpSocket::bind((here, 0)).expect("a port");
    for (taken, transport) in [(tcp.local_addr(), "TCP"), (udp.local_addr(), "UDP")] {
        let address = taken.expect("an address");
        let error =
            Iperf3Service::start(address, limits(), Arc::<Seen>::default()).expect_err("it is taken").to_string();
        let cause = format!("another program has port {} ({transport}) of {here}", address.port());
        assert!(error.contains(&cause) && error.contains("iperf3 -s") && error.contains("--iperf3 5202"), "{error}");
    }
}

/// Returns the rate of one sum in a report of iperf3, in bit/s.
fn rate(report: &Value, sum: &str) -> f64 {
    report["end"][sum]["bits_per_second"].as_f64().unwrap_or_else(|| panic!("no {sum} in {report}"))
}

fn is_about(rate: f64, asked: f64) -> bool {
    (asked * 0.4..=asked * 1.6).contains(&rate)
}

#[server_test(Program("iperf3"))]
fn clients_of_iperf3_measure_either_way_over_tcp_and_udp() {
    let served = Served::with(limits());
    for (over, rate_each) in [(&[][..], "10M"), (&["-u"], "10M"), (&["-u", "--udp-counters-64bit"], "10M")] {
        for (way, sums) in [
            (&[][..], &["sum_sent", "sum_received"][..]),
            (&["-R"], &["sum_sent", "sum_received"]),
            (&["--bidir"], &["sum_sent", "sum_received", "sum_sent_bidir_reverse", "sum_received_bidir_reverse"]),
        ] {
            let options = [over, way, &["-t", "1", "-O", "1", "-P", "2", "-b", rate_each]].concat();
            let report = served.iperf3(&options);
            assert!(report["error"].is_null(), "{options:?}: {report}");
            for sum in sums {
                assert!(is_about(rate(&report, sum), 20e6), "{options:?}: {sum} {}", rate(&report, sum));
            }
            if over.first() == Some(&"-u") && way.is_empty() {
                let sum = &report["end"]["sum"];
                assert!(sum["packets"].as_u64() > Some(0) && sum["lost_percent"].as_f64() < Some(50.0), "{sum}");
            }
        }
    }
    // The service reports a test when its client has ended it.
    wait_until("all tests are reported", || (served.lines().len() >= 9).then_some(()));
    let lines = served.lines();
    assert_eq!(lines.len(), 9, "{lines:?}");
    for begins in ["127.0.0.1: TCP, 2 flows, ", "127.0.0.1: UDP, 4 flows, "] {
        let time = |line: &String| {
            let (time, rest) = line.strip_prefix(begins)?.split_once(" s: ")?;
            rest.starts_with("received ").then(|| time.parse::<f64>().ok()).flatten()
        };
        // About a second: the service may notice either end of the window late.
        assert!(lines.iter().filter_map(time).any(|time| (0.3..1.8).contains(&time)), "{lines:?}");
    }
}

#[server_test(Program("iperf3"))]
fn options_of_iperf3_clients_are_applied() {
    let served = Served::with(limits());
    let options = ["-C", "reno", "-S", "0x20", "-M", "1200", "-w", "100K", "-l", "10K", "-R", "-t", "1", "-b", "5M"];
    let report = served.iperf3(&options);
    assert_eq!(report["end"]["sender_tcp_congestion"], "reno", "{report}");
    // Tests that end after a number of bytes.
    for way in [&[][..], &["-R"]] {
        let report = served.iperf3(&[&["-n", "1M"][..], way].concat());
        let bytes = report["end"]["sum_received"]["bytes"].as_u64().unwrap_or_default();
        assert!(bytes >= 1 << 20, "{way:?}: {report}");
    }
}

#[server_test(Program("iperf3"))]
fn the_counts_of_both_ends_are_stored() {
    let served = Served::with(limits());
    for (options, direction, bytes) in [
        (&["-b", "20M", "-t", "1", "-P", "2"][..], Direction::Receive, None),
        (&["-b", "20M", "-t", "1", "-R"], Direction::Send, None),
        (&["-n", "2M"], Direction::Receive, Some(2 << 20)),
        (&["-n", "2M", "-R", "-P", "2"], Direction::Send, Some(2 << 20)),
        (&["-u", "-b", "20M", "-t", "1", "-l", "1000"], Direction::Receive, None),
    ] {
        let before = served.lines().len();
        let report = served.iperf3(options);
        wait_until("the test has ended", || (served.lines().len() > before).then_some(()));
        let (test, counts) =
            served.seen.tests.lock().unwrap_or_else(PoisonError::into_inner).pop().expect("it is kept");
        assert_eq!((test.stream.direction, test.bytes), (direction, bytes), "{options:?}");
        assert_eq!((test.peer, test.service), (Ipv4Addr::LOCALHOST.into(), served.address()));
        let [RoleCounts::Flows(own), RoleCounts::Flows(client)] = &counts.roles[..] else { panic!("two ends") };
        assert!(own.told.is_none() && client.told.is_some() && counts.started_unix_ns > 0);
        let end = &report["end"];
        let bytes_of = |sum: &str| end[sum]["bytes"].as_u64();
        // Each end has the counts of the other.
        let (sent, received) = match direction {
            Direction::Send => (own.sent.as_ref(), client.received.as_ref()),
            _ => (client.sent.as_ref(), own.received.as_ref()),
        };
        let (sent, received) = (sent.expect("it was sent"), received.expect("it was received"));
        if let (Direction::Send, Some(bytes)) = (direction, bytes) {
            // At most one message of 128 KiB for each flow, and another one.
            let limit = bytes + (3 << 17);
            assert!((bytes..=limit).contains(&sent.payload_bytes), "{options:?}: {sent:?}");
        }
        if options.contains(&"-u") {
            let all = end["sum"]["packets"].as_u64().expect("a count");
            let lost = end["sum"]["lost_packets"].as_u64();
            // The client's end may overtake its last datagrams, which the service then does not count.
            assert!(sent.messages <= all && sent.messages * 4 > all, "{options:?}: {sent:?} {end}");
            assert_eq!(Some(sent.messages - received.arrived), lost, "{options:?}: {end}");
            // The service reads bytes and datagrams one after the other. A thread may receive a batch in between.
            let datagram_bytes = received.messages * 1_000;
            assert!(received.payload_bytes.abs_diff(datagram_bytes) <= 300_000, "{received:?}");
        } else {
            let counted = (Some(sent.payload_bytes), Some(received.payload_bytes));
            assert_eq!(counted, (bytes_of("sum_sent"), bytes_of("sum_received")), "{options:?}: {end}");
            assert!(own.flows.iter().all(|flow| flow.tcp.is_some()) && client.flows.len() == own.flows.len());
        }
    }
}

#[server_test(Program("iperf3"))]
fn several_clients_are_served_at_once() {
    let served = Served::with(limits());
    std::thread::scope(|scope| {
        let client = |options: &'static [&str]| scope.spawn(|| served.iperf3(options));
        let both = [client(&["-t", "2", "-b", "5M"]), client(&["-u", "-t", "2", "-b", "5M"])];
        for report in both.map(|client| client.join().expect("no panic")) {
            assert!(
                report["error"].is_null() && is_about(rate(&report, "sum_received"), 5e6)
                    || report["end"]["sum"].is_object(),
                "{report}"
            );
        }
    });
}

#[server_test(Program("iperf3"))]
fn tests_beyond_the_limits_are_refused() {
    let rate = Some(BitRate::per_second(20_000_000));
    let served =
        Served::with(ServiceLimits { max_rate: rate, max_time: Nanos::from_secs(5), max_flows: 4, ..limits() });
    for (options, line) in [
        (&["-t", "1"][..], "no limit of rate, and 20 Mbit/s is allowed"),
        (&["-t", "1", "-b", "30M"], "30 Mbit/s"),
        (&["-t", "6", "-b", "1M"], "it asked for 6 s, and 5 s are allowed"),
        (&["-t", "1", "-b", "1M", "-P", "5"], "5 flows, and 4 are allowed"),
    ] {
        let report = served.iperf3(options);
        assert!(report["error"].is_string(), "{options:?}: {report}");
        served.wait_for_line(line);
    }
    assert!(served.iperf3(&["-t", "1", "-b", "1M"])["error"].is_null());
    let nobody = ServiceLimits { peers: AllowedPeers::only(["198.18.0.0/15".parse().expect("a network")]), ..limits() };
    let served = Served::with(nobody);
    assert!(served.iperf3(&["-t", "1"])["error"].is_string());
    assert_eq!(served.lines(), Vec::<String>::new(), "no line about strangers");
}

#[server_test(Program("iperf3"))]
fn a_client_that_is_killed_or_interrupted_frees_its_place() {
    let served = Served::with(ServiceLimits { max_tests: 1, ..limits() });
    let port = served.address().port().to_string();
    for signal in ["-INT", "-KILL"] {
        // The service refuses clients until it notices the end of the previous test.
        let mut other = wait_until("the place is free for a test", || {
            let log = tempfile::NamedTempFile::new().expect("a file");
            let mut other = Command::new("iperf3")
                .args(["-c", "127.0.0.1", "-p", &port, "-t", "60", "-b", "1M", "--forceflush", "--logfile"])
                .arg(log.path())
                .spawn()
                .expect("iperf3 starts");
            let output = || std::fs::read_to_string(log.path()).unwrap_or_default();
            wait_until("a line for the first second, or its end", || {
                let has_ended = other.try_wait().expect("a child").is_some();
                (has_ended || output().contains("bits/sec")).then_some(())
            });
            other.try_wait().expect("a child").is_none().then_some(other)
        });
        let mut second = TcpStream::connect(served.address()).expect("connects");
        second.write_all(&[b'x'; 37]).expect("sent");
        let mut byte = [0];
        second.read_exact(&mut byte).expect("an answer");
        assert_eq!(byte, [0xff], "ACCESS_DENIED");
        let id = other.id().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().expect("kill").success());
        other.wait().expect("it ends");
        let task = || stream(Transport::Tcp, served.address().port());
        wait_until("the place is free", || ended(client(task(), 0, 200)).ok());
    }
    served.wait_for_line("ended early: ");
}

/// This test needs no other program.
#[test]
fn our_client_measures_to_our_server() {
    let served = Served::with(limits());
    for transport in [Transport::Tcp, Transport::Udp] {
        for direction in [Direction::Send, Direction::Receive, Direction::Both] {
            let plain = stream(transport, served.address().port());
            let task = StreamTask {
                net: Net { flows: 2, ..plain.net },
                direction,
                offered: Some(Offered::PayloadBps(BitRate::per_second(20_000_000))),
                ..plain
            };
            let counted = ended(client(task, 1, 500));
            let (own, told) = counts(counted.unwrap_or_else(|error| panic!("{transport:?} {direction:?}: {error}")));
            for (end, other) in [(&own, &told), (&told, &own)] {
                let (Some(received), Some(sent)) = (&end.received, &other.sent) else { continue };
                let rate = bit_rate(received.payload_bytes, received.window);
                // A stalled sender omits what was due. What it sent arrives.
                let is_near = is_about(rate, bit_rate(sent.payload_bytes, sent.window));
                assert!(rate < 32e6 && is_near, "{transport:?} {direction:?}: {received:?} of {sent:?}");
            }
        }
    }
    served.wait_for_line("TCP, 4 flows");
}

fn bit_rate(bytes: u64, window: Nanos) -> f64 {
    bytes as f64 * 8.0 / window.as_secs_f64()
}

/// Connects as a client with a cookie of `cookie`s.
fn connect(served: &Served, cookie: u8) -> TcpStream {
    let mut stream = TcpStream::connect(served.address()).expect("connects");
    stream.write_all(&[cookie; 37]).expect("sent");
    stream
}

/// Returns the port of `address` as the tables in /proc/net show it.
fn port_suffix(address: std::io::Result<SocketAddr>) -> String {
    format!(":{:04X}", address.expect("connected").port())
}

/// Waits until the service has read everything that was sent over a connection, so that the queues are empty.
fn wait_until_read(stream: &TcpStream) {
    let own = port_suffix(stream.local_addr());
    let service = port_suffix(stream.peer_addr());
    wait_until("the service has read it", || {
        let tables =
            ["/proc/net/tcp", "/proc/net/tcp6"].map(|table| std::fs::read_to_string(table).unwrap_or_default());
        // Columns: number, local address, remote address, state, bytes in the send and receive queues.
        // Other tests may have thousands of lines.
        let own_lines =
            tables.iter().flat_map(|table| table.lines()).filter(|end| end.contains(&own) && end.contains(&service));
        let ends = own_lines.map(|end| end.split_whitespace().collect::<Vec<_>>());
        let ends: Vec<_> = ends.filter(|end| end.len() > 4).collect();
        let queues = |local: &str, remote: &str| {
            ends.iter().find(|end| end[1].ends_with(local) && end[2].ends_with(remote)).map(|end| end[4])
        };
        let is_sent = queues(&own, &service).is_some_and(|queues| queues.starts_with("00000000:"));
        let is_read = queues(&service, &own).is_some_and(|queues| queues.ends_with(":00000000"));
        (is_sent && is_read).then_some(())
    });
}

/// Reads exactly these states.
fn expect_states(control: &mut TcpStream, states: &[u8]) {
    for state in states {
        let mut byte = [0];
        control.read_exact(&mut byte).expect("it goes on");
        assert_eq!(byte, [*state]);
    }
}

fn send_json(control: &mut TcpStream, text: &Value) {
    let text = text.to_string();
    control.write_all(&(text.len() as u32).to_be_bytes()).expect("sent");
    control.write_all(text.as_bytes()).expect("sent");
}

/// The service sends datagrams from the address that the client uses, also if the kernel would choose another.
#[test]
fn a_client_may_use_any_address_of_the_host() {
    let served = Served::at(Ipv4Addr::UNSPECIFIED, limits());
    for transport in [Transport::Tcp, Transport::Udp] {
        let plain = stream(transport, served.address().port());
        let Some(Iperf3End::Server(server)) = plain.iperf3.clone() else { panic!("a server") };
        let server = Iperf3Server { address: Ipv4Addr::new(127, 0, 0, 2).into(), ..server };
        let task = StreamTask { iperf3: Some(Iperf3End::Server(server)), ..plain };
        let (_, told) = counts(ended(client(task, 0, 200)).unwrap_or_else(|error| panic!("{transport:?}: {error}")));
        assert!(told.received.is_some_and(|received| received.payload_bytes > 0), "{transport:?}");
    }
}

/// The order of the connections determines the directions of several flows, not the order of their first bytes.
#[test]
fn a_late_cookie_does_not_exchange_the_directions() {
    let served = Served::with(limits());
    let mut control = connect(&served, b'c');
    expect_states(&mut control, &[9]);
    send_json(&mut control, &serde_json::json!({"tcp": true, "time": 1, "parallel": 1, "bidirectional": true}));
    expect_states(&mut control, &[10]);
    let mut forward = TcpStream::connect(served.address()).expect("connects");
    let mut backward = connect(&served, b'c');
    wait_until_read(&backward);
    forward.write_all(&[b'c'; 37]).expect("sent");
    expect_states(&mut control, &[1, 2]);
    backward.set_read_timeout(Some(std::time::Duration::from_secs(10))).expect("setsockopt");
    backward.read_exact(&mut [0; 1_000]).expect("the service sends on the second connection");
    forward.set_nonblocking(true).expect("fcntl");
    assert!(forward.read(&mut [0]).is_err(), "the service sends on the first connection");
}

/// The client's end and its last bytes arrive on two connections, in any order.
#[test]
fn a_test_that_ends_after_bytes_waits_for_the_last() {
    let served = Served::with(limits());
    let mut control = connect(&served, b'b');
    expect_states(&mut control, &[9]);
    send_json(
        &mut control,
        &serde_json::json!({"tcp": true, "time": 0, "blockcount": 8, "parallel": 1, "len": 10_000}),
    );
    expect_states(&mut control, &[10]);
    let mut data = connect(&served, b'b');
    expect_states(&mut control, &[1, 2]);
    data.write_all(&[0; 30_000]).expect("sent");
    control.write_all(&[4]).expect("sent");
    wait_until_read(&control);
    data.write_all(&[0; 50_000]).expect("sent");
    expect_states(&mut control, &[13]);
    send_json(&mut control, &serde_json::json!({}));
    let mut length = [0; 4];
    control.read_exact(&mut length).expect("a length");
    let mut text = vec![0; u32::from_be_bytes(length) as usize];
    control.read_exact(&mut text).expect("results");
    let results: Value = serde_json::from_slice(&text).expect("JSON");
    assert_eq!(results["streams"][0]["bytes"], 80_000, "{results}");
}

#[test]
fn garbage_and_silence_cost_a_place_for_seconds_at_most() {
    let served = Served::with(ServiceLimits { max_tests: 1, ..limits() });
    // Clients without a cookie take no place.
    let _silent = TcpStream::connect(served.address()).expect("connects");
    let mut odd = TcpStream::connect(served.address()).expect("connects");
    odd.write_all(b"GET / HTTP/1.1\r\n\r\n").expect("sent");
    for text in [&u32::MAX.to_be_bytes()[..], &[0, 0, 0, 2, b'[', b']'], &[0, 0, 0, 0]] {
        let mut control = wait_until("a place", || {
            let mut control = TcpStream::connect(served.address()).ok()?;
            control.write_all(&[b'a'; 37]).ok()?;
            let mut byte = [0];
            control.read_exact(&mut byte).ok()?;
            (byte[0] == 9).then_some(control)
        });
        control.write_all(text).expect("sent");
        let mut rest = Vec::new();
        control.read_to_end(&mut rest).expect("it closes");
        assert_eq!(rest, [11], "SERVER_TERMINATE");
    }
    served.wait_for_line("4294967295 bytes");
    // The service does not answer a datagram that no test waits for.
    let stranger = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("binds");
    stranger.send_to(b"9876", served.address()).expect("sent");
    let counted = ended(client(stream(Transport::Udp, served.address().port()), 0, 200));
    counted.expect("the service lives");
    stranger.set_nonblocking(true).expect("fcntl");
    assert!(stranger.recv(&mut [0; 8]).is_err(), "no answer");
}
