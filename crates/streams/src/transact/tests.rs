//! Closed loops whose last answer comes after the window.

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
/// What is asked so long before its end is answered after it.
const BEFORE_NS: u64 = 500_000_000;
/// So long after it.
const AFTER_NS: u64 = 50_000_000;

/// A flow that asks from now on.
fn asking(spec: &TransactTask, link: Link, peer: SocketAddr) -> Shared {
    let (task, measure) = (Task::Transact(spec.clone()), Nanos::new(MEASURE_NS));
    let part = one_path::part(&task, measure, vec![one_path::client_role()], 1);
    let assignment = Assignment { timing: Timing::of(Nanos::default(), measure), ..part };
    let job = Job::check(&assignment).expect("valid");
    let hello = Hello { path: 0, flow: 0, backward: false };
    let flow = Flow { end: 0, hello, client: true, peer, local: peer, link, round_trip_ns: 0 };
    let timeline = job.timeline(clock::now());
    Shared::new(job, timeline, vec![flow], linerate_engine::AllowedPeers::default())
}

/// Waits with the answer to a request that comes when the window of `close` is nearly over.
fn hold_back(close: u64) {
    if clock::now() + BEFORE_NS > close {
        clock::sleep_until(close + AFTER_NS);
    }
}

/// Asks in a closed loop of one request.
fn asked(shared: &Shared, spec: &TransactTask) -> Transactions {
    run(shared, 0, spec, &shared.flows[0].link).expect("asks").transactions.expect("it asks")
}

/// One request was under way when the window closed.
fn check(done: &Transactions) {
    assert!(done.completed > 0 && done.failed == 0, "{done:?}");
    assert_eq!(done.latency.count(), done.completed + 1, "what was under way at the end is timed, and not completed");
    assert!(done.latency.max() >= AFTER_NS, "{} ns", done.latency.max());
}

#[test]
fn over_tcp_the_request_under_way_at_the_end_is_timed() {
    let spec = TransactTask::plain(Transport::Tcp);
    let listener = TcpListener::bind("127.0.0.1:0").expect("listens");
    let peer = listener.local_addr().expect("listens");
    let stream = TcpStream::connect(peer).expect("connects");
    stream.set_read_timeout(Some(Duration::from_millis(100))).expect("sets");
    let (mut answering, _) = listener.accept().expect("accepts");
    let shared = asking(&spec, Link::Tcp(stream), peer);
    let close = shared.timeline.close();
    let server = std::thread::spawn(move || {
        let mut byte = [0; 1];
        while answering.read(&mut byte).is_ok_and(|read| read > 0) {
            hold_back(close);
            answering.write_all(&byte).expect("answers");
        }
    });
    check(&asked(&shared, &spec));
    server.join().expect("serves");
}

#[test]
fn over_udp_the_request_under_way_at_the_end_is_timed() {
    let spec = TransactTask::plain(Transport::Udp);
    let (socket, answering) =
        (UdpSocket::bind("127.0.0.1:0").expect("binds"), UdpSocket::bind("127.0.0.1:0").expect("binds"));
    let peer = answering.local_addr().expect("is bound");
    socket.connect(peer).expect("connects");
    let shared = asking(&spec, Link::Udp(socket), peer);
    let close = shared.timeline.close();
    let server = std::thread::spawn(move || {
        let mut request = [0; 64];
        loop {
            let (length, from) = answering.recv_from(&mut request).expect("receives");
            if length == 0 {
                break;
            }
            hold_back(close);
            answering.send_to(&request[..length], from).expect("answers");
        }
    });
    let done = asked(&shared, &spec);
    // An empty datagram ends the server.
    UdpSocket::bind("127.0.0.1:0").expect("binds").send_to(&[], peer).expect("sends");
    check(&done);
    server.join().expect("serves");
}

#[test]
fn the_connection_under_way_at_the_end_is_timed() {
    let spec = TransactTask { style: TransactStyle::Connect, ..TransactTask::plain(Transport::Tcp) };
    let listener = TcpListener::bind("127.0.0.1:0").expect("listens");
    let peer = listener.local_addr().expect("listens");
    let shared = asking(&spec, Link::Dial, peer);
    let close = shared.timeline.close();
    let server = std::thread::spawn(move || {
        loop {
            let (mut connection, _) = listener.accept().expect("accepts");
            let mut request = [0; hello::BYTES + 1];
            if connection.read_exact(&mut request).is_err() {
                break;
            }
            hold_back(close);
            connection.write_all(&request[..1]).expect("answers");
        }
    });
    let done = asked(&shared, &spec);
    // A connection that asks nothing ends the server.
    drop(TcpStream::connect(peer).expect("connects"));
    check(&done);
    server.join().expect("serves");
}
