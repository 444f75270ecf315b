//! Streams to Debian's iperf3.

use crate::sessions::{client, counts, ended, session, stream};
use linerate_engine::testing::Reached;
use linerate_iperf3::Iperf3;
use linerate_model::{
    Direction, EndCounts, Iperf3End, Iperf3Server, Net, Offered, SocketOptions, StreamTask, Transport,
};
use linerate_testsuite::servers::Iperf3 as Witness;
use linerate_testsuite::{server_test, wait_until};
use linerate_units::{BitRate, ByteCount, Nanos};
use std::net::Ipv4Addr;
use std::process::Command;
use std::thread;
use std::time::Duration;

/// Returns the rate of the payload in bit/s.
fn rate(bytes: u64, window: Nanos) -> f64 {
    bytes as f64 * 8.0 / window.as_secs_f64()
}

/// Returns the rate, in bit/s, at which an end received. `None` if it only sent.
fn received_rate(end: &EndCounts) -> Option<f64> {
    end.received.as_ref().map(|received| rate(received.payload_bytes, received.window))
}

/// Returns whether a rate is near the requested one. A stalled sender omits some messages, and a receiver that is
/// stalled when the window opens counts in it what arrived before.
fn is_about(rate: f64, asked: f64) -> bool {
    (asked * 0.4..=asked * 1.6).contains(&rate)
}

#[server_test(Program("iperf3"))]
fn tcp_and_udp_move_at_the_requested_rate_in_each_direction() {
    let witness = Witness::serve(&[]);
    for transport in [Transport::Tcp, Transport::Udp] {
        for direction in [Direction::Send, Direction::Receive, Direction::Both] {
            for flows in [1, 3] {
                let plain = stream(transport, witness.port());
                let task = StreamTask {
                    net: Net { flows, ..plain.net },
                    direction,
                    offered: Some(Offered::PayloadBps(BitRate::per_second(30_000_000))),
                    ..plain
                };
                let case = format!("{transport:?} {direction:?} {flows}");
                let counted = ended(client(task, 1, 1_000)).unwrap_or_else(|error| panic!("{case}: {error}"));
                let (own, told) = counts(counted);
                let here = received_rate(&own);
                let there = received_rate(&told);
                assert_eq!(
                    (here.is_some(), there.is_some()),
                    (direction != Direction::Send, direction != Direction::Receive)
                );
                assert_eq!((own.sent.is_some(), told.sent.is_some()), (there.is_some(), here.is_some()), "{case}");
                for rate in [here, there].into_iter().flatten() {
                    assert!(is_about(rate, 30e6), "{case}: {rate}");
                }
                let ways = if direction == Direction::Both { 2 } else { 1 };
                assert_eq!(
                    (own.flows.len(), told.flows.len()),
                    (flows as usize * ways, flows as usize * ways),
                    "{case}"
                );
                for (from, to) in [(&own, &told), (&told, &own)] {
                    let (Some(sent), Some(received)) = (&from.sent, &to.received) else { continue };
                    if transport == Transport::Udp {
                        assert!(received.arrived <= sent.messages && received.arrived * 2 > sent.messages, "{case}");
                        assert!(received.jitter.is_some(), "{case}");
                    }
                }
                assert!(told.told.is_some_and(|text| text["streams"].is_array()), "{case}");
            }
        }
    }
}

#[server_test(Program("iperf3"))]
fn without_a_rate_both_ends_count_the_same() {
    let witness = Witness::serve(&[]);
    for direction in [Direction::Send, Direction::Receive] {
        let task = StreamTask { direction, ..stream(Transport::Tcp, witness.port()) };
        let (own, told) = counts(ended(client(task, 0, 1_000)).expect("a result"));
        let (sender, receiver) = if direction == Direction::Send { (&own, &told) } else { (&told, &own) };
        let (sent, received) =
            (sender.sent.as_ref().expect("it sends"), receiver.received.as_ref().expect("it receives"));
        let share = rate(received.payload_bytes, received.window) / rate(sent.payload_bytes, sent.window);
        assert!((0.7..1.4).contains(&share), "{sent:?} {received:?}");
        let tcp = own.flows[0].tcp.as_ref().expect("TCP's own account of this end");
        assert!(tcp.segments_out + tcp.segments_in > 0, "{tcp:?}");
    }
}

/// A stream that ends by bytes.
fn of_volume(bytes: u64, task: StreamTask) -> StreamTask {
    StreamTask { volume: Some(ByteCount::new(bytes)), ..task }
}

#[server_test(Program("iperf3"))]
fn a_test_with_a_volume_ends_with_the_last_byte() {
    let witness = Witness::serve(&[]);
    let bytes = 20_000_003;
    for direction in [Direction::Send, Direction::Receive, Direction::Both] {
        for flows in [1, 3] {
            let plain = stream(Transport::Tcp, witness.port());
            let task = StreamTask { net: Net { flows, ..plain.net }, direction, ..plain };
            let case = format!("{direction:?} {flows}");
            // The longest time of the test is a minute.
            let counted =
                ended(client(of_volume(bytes, task), 0, 60_000)).unwrap_or_else(|error| panic!("{case}: {error}"));
            let (own, told) = counts(counted);
            let minute = Nanos::from_secs(60);
            if let Some(sent) = &own.sent {
                assert_eq!(sent.payload_bytes, bytes, "{case}");
                assert!(!sent.window.is_zero() && sent.window < minute, "{case}: {sent:?}");
                // The server does not count what it reads after the client's end.
                let received = told.received.as_ref().expect("the server receives");
                assert!(0 < received.payload_bytes && received.payload_bytes <= bytes, "{case}: {received:?}");
            }
            if let Some(received) = &own.received {
                assert_eq!(received.payload_bytes, bytes, "{case}");
                assert!(!received.window.is_zero() && received.window < minute, "{case}: {received:?}");
                let sent = told.sent.as_ref().expect("the server sends");
                assert!(sent.payload_bytes >= bytes, "{case}: {sent:?}");
            }
            assert_eq!(
                (own.sent.is_some(), own.received.is_some()),
                (direction != Direction::Receive, direction != Direction::Send)
            );
        }
    }
}

#[server_test(Program("iperf3"))]
fn a_test_with_a_volume_ends_with_the_last_datagram() {
    let witness = Witness::serve(&[]);
    let offered = Some(Offered::PayloadBps(BitRate::per_second(50_000_000)));
    for direction in [Direction::Send, Direction::Receive] {
        let plain = StreamTask { direction, offered, ..stream(Transport::Udp, witness.port()) };
        let task = of_volume(1_000 * plain.message_bytes.get(), plain);
        let (own, told) = counts(ended(client(task, 0, 60_000)).expect("a result"));
        if direction == Direction::Send {
            let sent = own.sent.expect("it sends");
            let received = told.received.expect("the server receives");
            assert_eq!((sent.messages, sent.not_sent), (1_000, 0));
            assert!(0 < received.messages && received.messages <= 1_000, "{received:?}");
        } else {
            let sent = told.sent.expect("the server sends");
            let received = own.received.expect("it receives");
            // The call that receives the last one may receive others.
            assert!(received.arrived >= 1_000 && sent.messages >= received.arrived, "{sent:?} {received:?}");
        }
    }
}

#[server_test(Program("iperf3"))]
fn every_option_reaches_the_server() {
    let witness = Witness::serve(&[]);
    let socket = SocketOptions {
        congestion: Some("reno".to_owned()),
        dscp: Some(8),
        mss: Some(1_200),
        send_buffer: Some(ByteCount::new(100_000)),
        receive_buffer: Some(ByteCount::new(100_000)),
        ..SocketOptions::default()
    };
    let plain = stream(Transport::Tcp, witness.port());
    let server = Iperf3Server { address: Ipv4Addr::LOCALHOST.into(), port: witness.port(), report: true, login: None };
    let task = StreamTask {
        net: Net { socket, ..plain.net },
        direction: Direction::Receive,
        message_bytes: ByteCount::new(10_000),
        iperf3: Some(Iperf3End::Server(server)),
        ..plain
    };
    let (own, told) = counts(ended(client(task, 0, 1_000)).expect("a result"));
    let text = told.told.expect("the server's results");
    assert_eq!(text["congestion_used"], "reno");
    let report = text["server_output_text"].as_str().expect("its own report");
    assert!(report.contains("sender") && report.contains("Cwnd"), "{report}");
    // Timestamps take 12 bytes of each segment. The server's end divides the data into segments.
    let tcp = own.flows[0].tcp.as_ref().expect("TCP_INFO");
    let segment = own.received.expect("it receives").payload_bytes / tcp.segments_in.max(1);
    assert!((900..=1_200).contains(&segment), "{segment} bytes a segment");
}

#[server_test(Program("iperf3"))]
fn datagrams_that_the_server_loses_are_counted() {
    // The server's socket has a small buffer.
    let witness = Witness::serve(&[]);
    let plain = stream(Transport::Udp, witness.port());
    let socket = SocketOptions { receive_buffer: Some(ByteCount::new(4_096)), ..SocketOptions::default() };
    let task = StreamTask { net: Net { socket, ..plain.net }, offload: false, ..plain };
    let (own, told) = counts(ended(client(task, 0, 1_000)).expect("a result"));
    let sent = own.sent.expect("it sends");
    let received = told.received.expect("it receives");
    assert!(received.arrived < sent.messages, "at full speed such a buffer overflows: {sent:?} {received:?}");
    assert!(received.payload_bytes / 1_400 == received.messages && received.messages > 0, "{received:?}");
}

#[server_test(Program("iperf3"))]
fn a_busy_server_refuses_and_serves_again_afterwards() {
    let witness = Witness::serve(&[]);
    let port = witness.port().to_string();
    let mut other = Command::new("iperf3")
        .args(["-c", "127.0.0.1", "-p", &port, "-t", "60", "-b", "1M"])
        .stdout(std::process::Stdio::null())
        .spawn()
        .expect("iperf3 starts");
    wait_until("the other test runs", || witness.said().contains("connected to").then_some(()));
    let task = || stream(Transport::Tcp, witness.port());
    let error = ended(client(task(), 0, 200)).expect_err("busy").to_string();
    assert!(error.contains("busy with another test"), "{error}");
    other.kill().expect("it is killed");
    other.wait().expect("it ends");
    // The server notices late that its client has gone.
    wait_until("the server is free", || ended(client(task(), 0, 200)).ok());
}

#[server_test(Program("iperf3"))]
fn the_error_names_a_server_that_ends() {
    for kills in [false, true] {
        let mut witness = Witness::serve(&[]);
        let session = session(client(stream(Transport::Tcp, witness.port()), 0, 60_000));
        let error = thread::scope(|scope| {
            let running = scope.spawn(|| session.run(&Iperf3));
            assert!(session.wait_for(Reached::Running, Duration::from_secs(60)));
            if kills {
                witness.kill()
            } else {
                witness.interrupt()
            }
            running.join().expect("no panic").expect_err("the server has gone").to_string()
        });
        assert!(error.contains(&witness.port().to_string()), "{error}");
        assert!(kills || error.contains("it was ended"), "{error}");
    }
}

#[server_test(Program("iperf3"))]
fn a_test_that_is_stopped_frees_the_server() {
    let witness = Witness::serve(&[]);
    for direction in [Direction::Send, Direction::Receive] {
        let task = StreamTask { direction, ..stream(Transport::Tcp, witness.port()) };
        let session = session(client(task, 0, 60_000));
        thread::scope(|scope| {
            let running = scope.spawn(|| session.run(&Iperf3));
            assert!(session.wait_for(Reached::Running, Duration::from_secs(60)));
            session.stop("enough");
            running.join().expect("no panic").expect_err("it was stopped");
        });
        let next = || ended(client(stream(Transport::Tcp, witness.port()), 0, 200)).ok();
        wait_until("the server is free", next);
    }
}

#[server_test(Program("iperf3"))]
fn a_server_that_refuses_a_rate_silently_is_reported() {
    let witness = Witness::serve(&["--server-bitrate-limit", "1M"]);
    let offered = Some(Offered::PayloadBps(BitRate::per_second(5_000_000)));
    let task = StreamTask { offered, ..stream(Transport::Tcp, witness.port()) };
    let error = ended(client(task, 0, 500)).expect_err("beyond its limit").to_string();
    // iperf3 3.21 reports the reason.
    let is_silent =
        error.contains("closed the control connection while opening the flows") && error.contains("its own output");
    assert!(is_silent || error.contains("ask for a lower --rate"), "{error}");
    wait_until("the server has said why", || witness.said().contains("larger than server limit").then_some(()));
}
