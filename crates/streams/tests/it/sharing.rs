//! Streams with many flows, which share threads.

use crate::hosts::{
    TIMEOUT, counts, failure, flows, long, pair, parts, run_metered, run_parts, start, stream, was_stopped, window,
};
use linerate_engine::testing::{self, Reached, Session};
use linerate_model::{Assignment, Direction, Meter, Offered, StreamTask, Task, Timing, Transport, Warmup, Window};
use linerate_sys::clock;
use linerate_testsuite::wait_until;
use linerate_units::{BitRate, ByteCount, Nanos};
use std::thread::available_parallelism;

/// More flows than have a thread each.
const MANY: u16 = 200;

fn many(transport: Transport) -> StreamTask {
    StreamTask { net: flows(transport, MANY), ..stream(transport) }
}

fn paced(transport: Transport, bits_per_second: u64) -> StreamTask {
    let offered = Some(Offered::PayloadBps(BitRate::per_second(bits_per_second)));
    StreamTask { offered, message_bytes: ByteCount::new(1_250), ..many(transport) }
}

/// Returns `part` with a window that is long enough for each of 400 flows to have its turn on a busy machine.
fn two_seconds(part: Assignment) -> Assignment {
    Assignment { timing: Timing::of(Nanos::from_millis(100), Nanos::from_secs(2)), ..part }
}

fn has_received(session: &Session) -> Option<()> {
    session.meter().is_some_and(|meter| meter.received_bytes > 0).then_some(())
}

#[test]
fn each_of_many_flows_moves_data_in_each_direction() {
    for task in [many(Transport::Tcp), paced(Transport::Udp, 100_000_000)] {
        let transport = task.net.transport;
        let (client, server) = parts(&Task::Stream(StreamTask { direction: Direction::Both, ..task }));
        let [(client, _), (server, _)] = run_parts(two_seconds(client), two_seconds(server));
        for end in [&client, &server] {
            let sent = end.sent.as_ref().expect("sent");
            let received = end.received.as_ref().expect("received");
            assert_eq!(end.flows.len(), 2 * usize::from(MANY));
            let sent_bytes: u64 = end.flows.iter().map(|flow| flow.sent_bytes).sum();
            let received_bytes: u64 = end.flows.iter().map(|flow| flow.received_bytes).sum();
            assert_eq!((sent_bytes, received_bytes), (sent.payload_bytes, received.payload_bytes), "{transport}");
            let silent = end.flows.iter().filter(|flow| flow.sent_bytes + flow.received_bytes == 0).count();
            assert_eq!(silent, 0, "{transport}: {sent:?} {received:?}");
            assert_eq!(end.flows.iter().all(|flow| flow.tcp.is_some()), transport == Transport::Tcp);
        }
        let (sent, received) = (client.sent.expect("sent"), server.received.expect("received"));
        if transport == Transport::Tcp {
            assert_eq!((sent.io_method.as_str(), received.io_method.as_str()), ("write", "recv"));
        } else {
            assert!(received.arrived <= sent.messages, "{sent:?} {received:?}");
        }
    }
}

#[test]
fn many_flows_of_datagrams_go_at_full_speed() {
    let (client, server) = parts(&Task::Stream(many(Transport::Udp)));
    let [(client, _), (server, _)] = run_parts(two_seconds(client), two_seconds(server));
    let (sent, received) = (client.sent.expect("sent"), server.received.expect("received"));
    assert!(sent.io_method.contains("UDP_SEGMENT") && sent.payload_bytes == sent.messages * 1_448, "{sent:?}");
    assert!(client.flows.iter().all(|flow| flow.sent_bytes > 0), "{sent:?}");
    assert!(received.messages > 0 && received.arrived <= sent.messages, "{sent:?} {received:?}");
}

#[test]
fn many_flows_keep_a_set_rate_together() {
    for transport in [Transport::Tcp, Transport::Udp] {
        let rate = 20_000_000;
        let begin = clock::now();
        let [(client, moved), (server, _)] = run_metered(&Task::Stream(paced(transport, rate)));
        let took = Nanos::new(clock::now() - begin);
        let (sent, received) = (client.sent.expect("sent"), server.received.expect("received"));
        // Counts all that was sent, whenever threads ran.
        assert!(moved.sent_bytes as f64 * 8.0 < rate as f64 * took.as_secs_f64(), "{transport}: {moved:?} in {took}");
        assert!(sent.payload_bytes > 0 && received.payload_bytes > 0, "{transport}: {sent:?} {received:?}");
        if transport == Transport::Udp {
            assert_eq!(sent.messages + sent.not_sent + sent.refused, 1_200, "{sent:?}");
            assert!(received.arrived <= sent.messages, "{sent:?} {received:?}");
            assert_eq!((received.duplicates, received.reordered), (0, 0));
        }
    }
}

#[test]
fn many_flows_have_a_thread_for_each_core_and_a_stop_ends_them() {
    let cores = available_parallelism().expect("a number of cores").get();
    for task in [many(Transport::Tcp), many(Transport::Udp), paced(Transport::Tcp, 1_000_000)] {
        let (own, theirs) = parts(&Task::Stream(task));
        let (client, server) = pair(long(own), long(theirs));
        testing::scope(|scope| {
            let client_thread = start(scope, &client);
            let server_thread = start(scope, &server);
            let (_, closes) = window(&client);
            window(&server);
            for (session, sends, verb) in [(&client, true, "send"), (&server, false, "receive")] {
                let threads = session.threads();
                assert!(threads.len() <= cores && threads.iter().all(|thread| thread.sends == sends), "{threads:?}");
                assert!(threads.iter().any(|thread| thread.name == format!("{verb} 0")), "{threads:?}");
            }
            wait_until("the server receives", || has_received(&server));
            client.stop("enough");
            assert!(was_stopped(&client_thread.join().expect("no panic")));
            server.stop("enough");
            server_thread.join().expect("no panic").expect_err("stopped, or its client is gone");
            assert!(client.has_ended() && server.has_ended());
            assert!(clock::now() < closes, "they did not wait for the window's end");
        });
    }
}

#[test]
fn a_peer_of_many_flows_that_disappears_is_named() {
    for task in [
        many(Transport::Tcp),
        StreamTask { direction: Direction::Receive, ..many(Transport::Tcp) },
        paced(Transport::Tcp, 20_000_000),
        many(Transport::Udp),
        paced(Transport::Udp, 20_000_000),
    ] {
        let (own, theirs) = parts(&Task::Stream(task.clone()));
        let (client, server) = pair(long(own), long(theirs));
        testing::scope(|scope| {
            let client_thread = start(scope, &client);
            let server_thread = start(scope, &server);
            let has_traffic = |meter: Meter| (meter.sent_bytes + meter.received_bytes > 0).then_some(());
            wait_until("there is traffic", || client.meter().and_then(has_traffic));
            server.stop("enough");
            assert!(was_stopped(&server_thread.join().expect("no panic")));
            let error = failure(client_thread.join().expect("no panic"));
            assert!(error.contains("127.0.0.1") && error.contains("went away"), "{task:?}: {error}");
        });
    }
}

#[test]
fn a_window_of_many_flows_that_opens_late_is_as_long_as_any_other() {
    for task in [many(Transport::Tcp), many(Transport::Udp), paced(Transport::Tcp, 20_000_000)] {
        let measure = Nanos::from_millis(300);
        let (mut own, mut theirs) = parts(&Task::Stream(task.clone()));
        for part in [&mut own, &mut theirs] {
            part.timing = Timing::Window(Window { warmup: Warmup::STEADY, measure });
        }
        let (client, server) = pair(own, theirs);
        let begin = clock::now();
        let (client, server) = testing::scope(|scope| {
            let client_thread = start(scope, &client);
            let server_thread = start(scope, &server);
            assert!(client.wait_for(Reached::Running, TIMEOUT) && server.wait_for(Reached::Running, TIMEOUT));
            wait_until("the server receives", || has_received(&server));
            let opens = clock::now() + 20_000_000;
            assert!(client.open_window(opens) && server.open_window(opens));
            (counts(client_thread.join().expect("no panic")), counts(server_thread.join().expect("no panic")))
        });
        let took = clock::now() - begin;
        for length in [client.sent.expect("sent").window, server.received.expect("received").window] {
            assert!((measure.get() / 2..=took).contains(&length.get()), "{task:?}: {length} of {took} ns");
        }
    }
}
