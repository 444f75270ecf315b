//! Closed loops with a last answer after the window.

use super::*;
use crate::flow::Flow;
use crate::hello::{self, Hello};
use crate::job::Job;
use linerate_engine::testing::one_path;
use linerate_model::{Assignment, Task, Timing, TransactStyle, Transport};
use linerate_sys::clock;
use linerate_units::Nanos;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

/// The window, all of the time.
const MEASURE_NS: u64 = 1_000_000_000;
/// Requests within this time before the window's end are answered after it.
const BEFORE_NS: u64 = 500_000_000;
/// Time of that answer after the window's end.
const AFTER_NS: u64 = 50_000_000;

/// Creates a flow that sends requests from now on.
fn client(spec: &TransactTask, link: Link, peer: SocketAddr) -> Shared {
    let task = Task::Transact(spec.clone());
    let measure = Nanos::new(MEASURE_NS);
    let part = one_path::part(&task, measure, vec![one_path::client_role()], 1);
    let assignment = Assignment { timing: Timing::of(Nanos::default(), measure), ..part };
    let job = Job::check(&assignment).expect("valid");
    let hello = Hello { path: 0, flow: 0, backward: false };
    let flow = Flow { end: 0, hello, client: true, peer, local: peer, link, round_trip_ns: 0 };
    let timeline = job.timeline(clock::now());
    Shared::new(job, timeline, vec![flow], linerate_engine::AllowedPeers::default())
}

/// Delays the answer to a request that arrives shortly before the window's `close`.
fn delay_last_answer(close: u64) {
    if clock::now() + BEFORE_NS > close {
        clock::sleep_until(close + AFTER_NS);
    }
}

/// Runs a closed loop of one request.
fn ask(shared: &Shared, spec: &TransactTask) -> Transactions {
    run(shared, 0, spec).expect("asks").transactions.expect("it asks")
}

/// Asserts that one request was outstanding when the window closed.
fn check(transactions: &Transactions) {
    let Transactions { completed, failed, latency, .. } = transactions;
    assert!(*completed > 0 && *failed == 0, "{transactions:?}");
    assert_eq!(latency.count(), completed + 1, "the request outstanding at the end is timed, and not completed");
    assert!(latency.max() >= AFTER_NS, "{} ns", latency.max());
}

#[test]
fn request_outstanding_at_the_end_is_timed_over_tcp() {
    let spec = TransactTask::plain(Transport::Tcp);
    let listener = TcpListener::bind("127.0.0.1:0").expect("listens");
    let peer = listener.local_addr().expect("listens");
    let stream = TcpStream::connect(peer).expect("connects");
    stream.set_read_timeout(Some(Duration::from_millis(100))).expect("sets");
    let (mut connection, _) = listener.accept().expect("accepts");
    let shared = client(&spec, Link::Tcp(stream), peer);
    let close = shared.timeline.close();
    let server = std::thread::spawn(move || {
        let mut byte = [0; 1];
        while connection.read(&mut byte).is_ok_and(|bytes| bytes > 0) {
            delay_last_answer(close);
            connection.write_all(&byte).expect("answers");
        }
    });
    check(&ask(&shared, &spec));
    server.join().expect("serves");
}

#[test]
fn request_outstanding_at_the_end_is_timed_over_udp() {
    let spec = TransactTask::plain(Transport::Udp);
    let socket = UdpSocket::bind("127.0.0.1:0").expect("binds");
    let answering = UdpSocket::bind("127.0.0.1:0").expect("binds");
    let peer = answering.local_addr().expect("is bound");
    socket.connect(peer).expect("connects");
    let shared = client(&spec, Link::Udp(socket), peer);
    let close = shared.timeline.close();
    let server = std::thread::spawn(move || {
        let mut request = [0; 64];
        loop {
            let (length, from) = answering.recv_from(&mut request).expect("receives");
            if length == 0 {
                break;
            }
            delay_last_answer(close);
            answering.send_to(&request[..length], from).expect("answers");
        }
    });
    let transactions = ask(&shared, &spec);
    // An empty datagram ends the server.
    UdpSocket::bind("127.0.0.1:0").expect("binds").send_to(&[], peer).expect("sends");
    check(&transactions);
    server.join().expect("serves");
}

#[test]
fn connection_open_at_the_end_is_timed() {
    let spec = TransactTask { style: TransactStyle::Connect, ..TransactTask::plain(Transport::Tcp) };
    let listener = TcpListener::bind("127.0.0.1:0").expect("listens");
    let peer = listener.local_addr().expect("listens");
    let shared = client(&spec, Link::Dial, peer);
    let close = shared.timeline.close();
    let server = std::thread::spawn(move || {
        loop {
            let (mut connection, _) = listener.accept().expect("accepts");
            let mut request = [0; hello::BYTES + 1];
            if connection.read_exact(&mut request).is_err() {
                break;
            }
            delay_last_answer(close);
            connection.write_all(&request[..1]).expect("answers");
        }
    });
    let transactions = ask(&shared, &spec);
    // A connection without a request ends the server.
    drop(TcpStream::connect(peer).expect("connects"));
    check(&transactions);
    server.join().expect("serves");
}
