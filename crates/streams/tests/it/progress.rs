//! Meters and samples of flows during the load.

use crate::hosts::{counts, pair, parts, start, stream};
use linerate_engine::testing::{self, Session};
use linerate_model::{
    Meter, Net, Offered, Readings, SeriesQuantity as Quantity, SocketOptions, StreamTask, Task, TransactStyle,
    TransactTask, Transport,
};
use linerate_testsuite::wait_until;
use linerate_units::{BitRate, ByteCount, FrameRate, OpRate};

/// Results of a trial that was observed.
struct Watched<T> {
    /// Observation during the load.
    seen: T,
    /// State of the ends after the trial.
    client: (Meter, Readings),
    server: (Meter, Readings),
    completed: u64,
}

/// Runs a trial. Calls `look` during the load until it returns an observation.
fn watched<T>(task: &Task, look: impl Fn(&Session, &Session) -> Option<T>) -> Watched<T> {
    let (client, server) = parts(task);
    let (client, server) = pair(client, server);
    testing::scope(|scope| {
        let client_thread = start(scope, &client);
        let server_thread = start(scope, &server);
        let seen = wait_until("something is seen", || look(&client, &server));
        let client_counts = counts(client_thread.join().expect("no panic"));
        counts(server_thread.join().expect("no panic"));
        let completed = client_counts.transactions.map_or(0, |transactions| transactions.completed);
        Watched { seen, client: state(&client), server: state(&server), completed }
    })
}

fn state(session: &Session) -> (Meter, Readings) {
    (session.meter().expect("it ran"), session.readings().expect("it ran"))
}

fn value(state: &(Meter, Readings), quantity: Quantity) -> u64 {
    state.1.get(quantity).expect("the quantity is sampled")
}

#[test]
fn tcp_connections_are_sampled() {
    for task in [Task::Stream(stream(Transport::Tcp)), Task::Transact(TransactTask::plain(Transport::Tcp))] {
        watched(&task, |client, _| {
            let readings = client.readings()?;
            [Quantity::Srtt, Quantity::CongestionWindow, Quantity::PeerWindow]
                .iter()
                .all(|&quantity| readings.get(quantity) > Some(0))
                .then_some(())
        });
    }
    // The receiver of a stream has nothing in flight.
    let received = watched(&Task::Stream(stream(Transport::Tcp)), |_, server| server.readings()).seen;
    assert_eq!(received.get(Quantity::CongestionWindow), None);
}

#[test]
fn datagrams_are_counted_from_the_start_with_those_missing() {
    let socket = SocketOptions { receive_buffer: Some(ByteCount::new(4_096)), ..SocketOptions::default() };
    let net = Net { socket, ..Net::plain(Transport::Udp) };
    let spec = StreamTask { net, offload: false, ..stream(Transport::Udp) };
    let watched = watched(&Task::Stream(spec), |client, server| {
        // At any time: the window opens 100 ms after the start.
        (client.meter()?.sent_bytes > 0 && server.meter()?.lost > 0).then_some(())
    });
    let sent = value(&watched.client, Quantity::SentMessages);
    let received = value(&watched.server, Quantity::ReceivedMessages);
    let client = watched.client.0;
    let server = watched.server.0;
    assert_eq!((client.sent_bytes, server.received_bytes), (sent * 1_448, received * 1_448));
    // The receiver does not know of losses after the last datagram that arrived.
    assert!(server.lost > 0 && received + server.lost <= sent, "{sent} sent, {received} received, {server:?}");
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

/// No host reaches these rates.
#[test]
fn a_sender_that_misses_its_rate_is_late() {
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
    assert_eq!(late, 0, "without a schedule");
}
