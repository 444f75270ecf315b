//! Streams that end after a number of bytes, and the counts of both ends.

use crate::hosts::{TIMEOUT, counts, flows, pair, parts, start, stream};
use linerate_engine::testing::{self, Reached, Session};
use linerate_model::{Assignment, Direction, EndCounts, Offered, StreamTask, Task, Timing, Transport};
use linerate_testsuite::wait_until;
use linerate_units::{BitRate, ByteCount, Nanos};

/// Bytes of a stream. No multiple of a message or a segment.
const VOLUME: u64 = 20_000_003;
/// Longer than any of these tests takes.
const LONGEST: Nanos = Nanos::from_secs(60);

fn of_volume(bytes: u64, task: StreamTask) -> Task {
    Task::Stream(StreamTask { volume: Some(ByteCount::new(bytes)), ..task })
}

/// Makes the sessions of both ends with a warm-up and a longest time.
fn sessions(task: &Task, warmup: Nanos, longest: Nanos) -> (Session, Session) {
    let (client, server) = parts(task);
    let timing = |part: Assignment| Assignment { timing: Timing::of(warmup, longest), ..part };
    pair(timing(client), timing(server))
}

/// Runs both sessions until all bytes have arrived. Returns the counts of client and server.
fn run(task: &Task, warmup: Nanos) -> [EndCounts; 2] {
    let (client, server) = sessions(task, warmup, LONGEST);
    let ended = testing::scope(|scope| {
        let running = [start(scope, &client), start(scope, &server)];
        running.map(|running| counts(running.join().expect("no panic")))
    });
    for session in [&client, &server] {
        let timeline = session.window().expect("streams have a window");
        assert!(timeline.close() < timeline.open() + LONGEST.get(), "the window closed with the last flow");
    }
    ended
}

/// Returns sender and receiver of each direction with data.
fn ways([client, server]: &[EndCounts; 2]) -> Vec<(&EndCounts, &EndCounts)> {
    [(client, server), (server, client)].into_iter().filter(|(sender, _)| sender.sent.is_some()).collect()
}

#[test]
fn all_flows_of_a_tcp_direction_move_exactly_the_volume() {
    for (direction, count, each) in
        [(Direction::Send, 1, 1), (Direction::Receive, 3, 1), (Direction::Both, 2, 2), (Direction::Both, 200, 2)]
    {
        let task = StreamTask { net: flows(Transport::Tcp, count), direction, ..stream(Transport::Tcp) };
        let ends = run(&of_volume(VOLUME, task), Nanos::default());
        let ways = ways(&ends);
        assert_eq!(ways.len(), each, "{direction:?}");
        for (sender, receiver) in ways {
            let sent = sender.sent.as_ref().expect("sent");
            let received = receiver.received.as_ref().expect("received");
            assert_eq!((sent.payload_bytes, received.payload_bytes), (VOLUME, VOLUME), "{direction:?} {count}");
            assert!(!sent.window.is_zero() && !received.window.is_zero() && received.window < LONGEST, "{received:?}");
            let of_flows = receiver.flows.iter().map(|flow| flow.received_bytes).sum::<u64>();
            assert_eq!((of_flows, receiver.flows.len()), (VOLUME, usize::from(count) * each));
        }
    }
}

#[test]
fn the_window_is_the_time_that_the_bytes_take() {
    let rate = 80_000_000;
    for transport in [Transport::Tcp, Transport::Udp] {
        let offered = Some(Offered::PayloadBps(BitRate::per_second(rate)));
        // 2 MB take 200 ms.
        let task =
            StreamTask { net: flows(transport, 2), offered, message_bytes: ByteCount::new(1_250), ..stream(transport) };
        let ends = run(&of_volume(2_000_000, task), Nanos::default());
        let sent = ends[0].sent.as_ref().expect("sent");
        let received = ends[1].received.as_ref().expect("received");
        // Any host keeps a schedule to a few bursts. A stalled host only takes longer.
        let least = Nanos::from_millis(190);
        assert!(sent.window >= least && received.window >= least, "{transport}: {sent:?} {received:?}");
        assert!(sent.window < LONGEST && received.window < LONGEST, "{transport}: {sent:?} {received:?}");
    }
}

#[test]
fn udp_sends_whole_datagrams_and_marks_the_end() {
    let rate = Some(Offered::PayloadBps(BitRate::per_second(50_000_000)));
    for (direction, count, offered, offload) in [
        (Direction::Send, 1, rate, true),
        (Direction::Both, 3, rate, false),
        (Direction::Receive, 2, None, true),
        (Direction::Send, 200, rate, false),
    ] {
        let task =
            StreamTask { net: flows(Transport::Udp, count), direction, offered, offload, ..stream(Transport::Udp) };
        // 1,448 bytes each.
        let ends = run(&of_volume(1_000_000, task), Nanos::default());
        for (sender, receiver) in ways(&ends) {
            let sent = sender.sent.as_ref().expect("sent");
            let received = receiver.received.as_ref().expect("received");
            assert_eq!((sent.messages, sent.payload_bytes, sent.not_sent), (691, 691 * 1_448, 0), "{direction:?}");
            // Some are lost if the receiver's socket is full.
            assert!(0 < received.arrived && received.arrived <= 691, "{received:?}");
            assert!(received.arrived == 691 || received.socket_drops > Some(0), "{received:?}");
            assert_eq!(
                (received.messages, received.payload_bytes, received.duplicates),
                (received.arrived, received.arrived * 1_448, 0)
            );
        }
    }
}

#[test]
fn a_warm_up_comes_before_the_bytes() {
    let [client, server] = run(&of_volume(VOLUME, stream(Transport::Tcp)), Nanos::from_millis(100));
    let sent = client.sent.expect("sent");
    let received = server.received.expect("received");
    assert_eq!(sent.payload_bytes, VOLUME);
    assert!(received.payload_bytes > 0 && !received.window.is_zero(), "{received:?}");
}

#[test]
fn the_longest_time_ends_what_the_bytes_do_not() {
    let offered = Some(Offered::PayloadBps(BitRate::per_second(8_000_000)));
    for transport in [Transport::Tcp, Transport::Udp] {
        let task = StreamTask { offered, message_bytes: ByteCount::new(1_000), ..stream(transport) };
        let longest = Nanos::from_millis(300);
        let (client, server) = sessions(&of_volume(1 << 40, task), Nanos::default(), longest);
        let [client, server] = testing::scope(|scope| {
            let running = [start(scope, &client), start(scope, &server)];
            running.map(|running| counts(running.join().expect("no panic")))
        });
        let sent = client.sent.expect("sent");
        let received = server.received.expect("received");
        assert!(0 < sent.payload_bytes && sent.payload_bytes < 1 << 40, "{transport}: {sent:?}");
        assert!(received.payload_bytes > 0 && sent.window.get() >= longest.get() / 2, "{transport}: {received:?}");
    }
}

#[test]
fn a_stop_in_the_middle_ends_both_ends() {
    for transport in [Transport::Tcp, Transport::Udp] {
        let (client, server) = sessions(&of_volume(1 << 50, stream(transport)), Nanos::default(), LONGEST);
        testing::scope(|scope| {
            let threads = [start(scope, &client), start(scope, &server)];
            assert!(client.wait_for(Reached::Running, TIMEOUT));
            wait_until("there is traffic", || client.meter().filter(|meter| meter.sent_bytes > 0));
            client.stop("enough");
            server.stop("enough");
            for thread in threads {
                thread.join().expect("no panic").expect_err("it was stopped");
            }
            assert!(client.has_ended() && server.has_ended());
        });
    }
}
