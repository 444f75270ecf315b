//! What is seen of flows while they work.

use crate::hosts::{counts, pair, parts, start, stream};
use linerate_engine::testing::{self, Session};
use linerate_model::{
    Meter, Net, Offered, Readings, SeriesQuantity as Quantity, SocketOptions, StreamTask, Task, TransactStyle,
    TransactTask, Transport,
};
use linerate_testsuite::wait_until;
use linerate_units::{BitRate, ByteCount, FrameRate, OpRate};

/// What was seen of one end when all was over, and of the sessions at work by `look`, once it says something.
struct Watched<T> {
    seen: T,
    client: (Meter, Readings),
    server: (Meter, Readings),
    completed: u64,
}

fn watched<T>(task: &Task, look: impl Fn(&Session, &Session) -> Option<T>) -> Watched<T> {
    let (client, server) = parts(task);
    let (client, server) = pair(client, server);
    testing::scope(|scope| {
        let (one, other) = (start(scope, &client), start(scope, &server));
        let seen = wait_until("something is seen", || look(&client, &server));
        let done = counts(one.join().expect("no panic"));
        counts(other.join().expect("no panic"));
        let after = |session: &Session| (session.meter().expect("it ran"), session.readings().expect("it ran"));
        let completed = done.transactions.map_or(0, |done| done.completed);
        Watched { seen, client: after(&client), server: after(&server), completed }
    })
}

#[test]
fn tcp_says_how_its_connections_are() {
    for task in [Task::Stream(stream(Transport::Tcp)), Task::Transact(TransactTask::plain(Transport::Tcp))] {
        watched(&task, |client, _| {
            let readings = client.readings()?;
            let of = |quantity| readings.get(quantity).unwrap_or_default();
            (of(Quantity::Srtt) > 0 && of(Quantity::CongestionWindow) > 0 && of(Quantity::PeerWindow) > 0).then_some(())
        });
    }
    // A stream's receiver has nothing under way.
    let received = watched(&Task::Stream(stream(Transport::Tcp)), |_, server| server.readings()).seen;
    assert_eq!(received.get(Quantity::CongestionWindow), None);
}

#[test]
fn datagrams_are_counted_from_the_start_with_those_missing() {
    let socket = SocketOptions { receive_buffer: Some(ByteCount::new(4_096)), ..SocketOptions::default() };
    let net = Net { socket, ..Net::plain(Transport::Udp) };
    let spec = StreamTask { net, offload: false, ..stream(Transport::Udp) };
    let watched = watched(&Task::Stream(spec), |client, server| {
        // Before the window opens, 100 ms after the start, or later.
        (client.meter()?.sent_bytes > 0 && server.meter()?.lost > 0).then_some(())
    });
    let (sent, received) = (watched.client, watched.server);
    let datagrams = |end: &(Meter, Readings), quantity| end.1.get(quantity).expect("datagrams are counted");
    let (out, into) = (datagrams(&sent, Quantity::SentMessages), datagrams(&received, Quantity::ReceivedMessages));
    assert_eq!((sent.0.sent_bytes, received.0.received_bytes), (out * 1_448, into * 1_448));
    // What is missing behind the last one that came is not known.
    assert!(received.0.lost > 0 && into + received.0.lost <= out, "{out} sent, {into} received, {:?}", received.0);
}

#[test]
fn every_answer_is_in_a_bucket() {
    for (transport, style) in [
        (Transport::Tcp, TransactStyle::Persistent),
        (Transport::Udp, TransactStyle::Persistent),
        (Transport::Tcp, TransactStyle::Connect),
    ] {
        let spec = TransactTask { style, response_bytes: ByteCount::new(100), ..TransactTask::plain(transport) };
        let watched = watched(&Task::Transact(spec), |client, _| (client.meter()?.operations > 0).then_some(()));
        let (meter, readings) = watched.client;
        let answers: u64 = readings.latency().expect("requests are timed").iter().sum();
        assert_eq!((answers, meter.sent_bytes, meter.received_bytes), (meter.operations, answers, 100 * answers));
        assert!(answers >= watched.completed && watched.completed > 0, "{answers} of {}", watched.completed);
        let (served, readings) = watched.server;
        assert!(readings.latency().is_none() && served.operations == 0);
        assert_eq!((served.received_bytes, served.sent_bytes), (answers, 100 * answers));
    }
}

/// Nothing sends so much.
#[test]
fn a_sender_that_cannot_keep_its_rate_is_seen_to_be_late() {
    let datagrams = Some(Offered::MessagesPerS(FrameRate::per_second(100_000_000)));
    let bytes = Some(Offered::PayloadBps(BitRate::per_second(100_000_000_000_000)));
    let requests = Some(OpRate::per_second(100_000_000));
    for task in [
        Task::Stream(StreamTask { offered: datagrams, ..stream(Transport::Udp) }),
        Task::Stream(StreamTask { offered: bytes, ..stream(Transport::Tcp) }),
        Task::Transact(TransactTask { rate: requests, ..TransactTask::plain(Transport::Udp) }),
        Task::Transact(TransactTask { rate: requests, ..TransactTask::plain(Transport::Tcp) }),
    ] {
        watched(&task, |client, _| {
            let micros = client.readings()?.get(Quantity::Lateness)?;
            (micros > 1_000).then_some(())
        });
    }
    let slow = Task::Stream(StreamTask { offered: None, ..stream(Transport::Udp) });
    let late = watched(&slow, |client, _| client.readings()?.get(Quantity::Lateness)).seen;
    assert_eq!(late, 0, "without a schedule none is late");
}
