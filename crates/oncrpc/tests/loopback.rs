//! Callers and servers in one process, over loopback: every kind of call, and what goes wrong with them.

use linerate_engine::testing::one_path::{self, LINK, TIMEOUT, counts, failure, was_stopped};
use linerate_engine::testing::{Reached, Session};
use linerate_engine::{Conductor as _, Engine as _};
use linerate_model::{Arrivals, Assignment, EndCounts, IpVersion, Net, RpcCall, RpcTask, Task, Transport};
use linerate_oncrpc::OncRpc;
use linerate_sys::clock;
use linerate_testsuite::wait_until;
use linerate_units::{ByteCount, Nanos, OpRate};
use std::net::{Ipv4Addr, UdpSocket};
use std::thread;

const MEASURE: u64 = 200_000_000;

fn parts(task: &RpcTask, measure: u64) -> [Assignment; 2] {
    one_path::parts(&Task::Rpc(task.clone()), Nanos::new(measure))
}

/// The sessions of a client and of a server.
fn pair(task: &RpcTask, measure: u64) -> [Session; 2] {
    one_path::pair(parts(task, measure))
}

fn run(task: &RpcTask) -> (EndCounts, EndCounts) {
    let [client, server] = pair(task, MEASURE);
    thread::scope(|scope| {
        let ended = [&client, &server].map(|session| scope.spawn(|| session.run(&OncRpc)));
        let flows = usize::from(task.net.flows);
        assert!(client.wait_for(Reached::Running, TIMEOUT) && server.wait_for(Reached::Running, TIMEOUT));
        assert_eq!(client.threads().len(), flows);
        assert!((1..=flows).contains(&server.threads().len()), "{:?}", server.threads());
        let [client, server] = ended.map(|ended| counts(ended.join().expect("no panic")));
        (client, server)
    })
}

#[test]
fn each_call_moves_its_data_and_both_ends_count_the_same() {
    for transport in [Transport::Tcp, Transport::Udp] {
        for (call, unit, ip) in [
            (RpcCall::Null, 0, IpVersion::V4),
            (RpcCall::Write, 8_192, IpVersion::V4),
            (RpcCall::Read, 1_001, IpVersion::V6),
            (RpcCall::Echo, 64, IpVersion::V4),
            (RpcCall::Read, 60 << 10, IpVersion::V4),
        ] {
            let plain = RpcTask::plain(transport, call, ByteCount::new(unit));
            let net = Net { flows: 2, ip, ..Net::plain(transport) };
            let spec = RpcTask { net, outstanding: 4, ..plain };
            let (client, server) = run(&spec);
            let done = client.transactions.expect("it asks");
            assert!(done.completed > 0, "{transport} {call}");
            assert_eq!((done.failed, done.retransmitted, done.latency.count()), (0, 0, done.completed));
            // Calls in flight at the edges are in one count or the other, and a thread that waits for its core comes late to an edge.
            let near = |count: u64| count.abs_diff(done.completed) as f64 <= done.completed as f64 * 0.5 + 16.0;
            let (served, there, back) = (server.service.expect("it serves"), server.received, client.received);
            assert!(near(served.calls) && served.time.count() == served.calls, "{transport} {call}: {}", served.calls);
            assert_eq!((there.is_some(), back.is_some()), (call.carries_there(), call.carries_back()));
            for received in [there, back].into_iter().flatten() {
                assert_eq!(received.payload_bytes, received.messages * unit, "{transport} {call}");
                assert!(near(received.messages), "{transport} {call}: {} of {}", received.messages, done.completed);
                assert_eq!((received.window.get(), received.duplicates), (MEASURE, 0));
            }
            assert_eq!(client.flows.len(), 2);
            assert_eq!(client.flows[0].tcp.is_some(), transport == Transport::Tcp);
        }
    }
}

#[test]
fn an_open_loop_keeps_its_rate() {
    for transport in [Transport::Tcp, Transport::Udp] {
        for arrivals in [Arrivals::Even, Arrivals::Poisson] {
            let plain = RpcTask::plain(transport, RpcCall::Write, ByteCount::new(1_000));
            let net = Net { flows: 2, ..Net::plain(transport) };
            let (client, _) = run(&RpcTask { net, rate: Some(OpRate::per_second(2_000)), arrivals, ..plain });
            let done = client.transactions.expect("it asks");
            // 400 in 200 ms; five standard deviations of a Poisson count. What a busy host sent too late is told.
            let tolerance = if arrivals == Arrivals::Even { 2 } else { 100 };
            let due = done.latency.count() + done.not_sent;
            assert!(due.abs_diff(400) <= tolerance, "{transport} {arrivals:?}: {due}");
            assert_eq!(done.failed, 0, "{transport} {arrivals:?}");
        }
    }
}

#[test]
fn what_cannot_work_is_named_with_its_remedy() {
    let plain = |transport, unit| RpcTask::plain(transport, RpcCall::Write, ByteCount::new(unit));
    for (spec, needle) in [
        (plain(Transport::Udp, (60 << 10) + 1), "at most 61440"),
        (plain(Transport::Tcp, (1 << 20) + 1), "at most 1048576"),
        (
            RpcTask { net: Net { flows: 0, ..Net::plain(Transport::Tcp) }, ..plain(Transport::Tcp, 1) },
            "choose 1 to 1024",
        ),
        (RpcTask { outstanding: 0, ..plain(Transport::Tcp, 1) }, "choose 1 or more"),
        (RpcTask { rate: Some(OpRate::per_second(0)), ..plain(Transport::Tcp, 1) }, "choose 1 to 100000000"),
    ] {
        let error = OncRpc.demand(&parts(&spec, MEASURE)[0]).expect_err(needle).to_string();
        assert!(error.contains(needle), "{error}");
    }
}

#[test]
fn a_server_that_goes_away_ends_the_trial_with_its_name() {
    for transport in [Transport::Tcp, Transport::Udp] {
        // Long enough for what happens within it.
        let [client, server] = pair(&RpcTask::plain(transport, RpcCall::Read, ByteCount::new(100)), 30_000_000_000);
        thread::scope(|scope| {
            let [calling, serving] = [&client, &server].map(|session| scope.spawn(|| session.run(&OncRpc)));
            wait_until("calls are answered", || client.meter().filter(|meter| meter.operations > 0));
            server.stop("enough");
            assert!(was_stopped(&serving.join().expect("no panic")));
            let error = failure(calling.join().expect("no panic"));
            assert!(error.contains("went away") && error.contains("into the window"), "{transport}: {error}");
        });
    }
}

#[test]
fn a_server_that_does_not_answer_is_told_before_the_start_or_waited_for_until_a_stop() {
    let silent = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("binds");
    let address = silent.local_addr().expect("bound");
    for stops in [false, true] {
        let [client, server] = pair(&RpcTask::plain(Transport::Udp, RpcCall::Read, ByteCount::new(100)), MEASURE);
        thread::scope(|scope| {
            let calling = scope.spawn(|| client.run(&OncRpc));
            server.listening([(LINK, address)].into()).expect("goes on");
            if stops {
                silent.recv(&mut [0; 1_024]).expect("it calls");
                let begun = clock::now();
                client.stop("enough");
                assert!(was_stopped(&calling.join().expect("no panic")));
                assert!(clock::now() - begun < 1_000_000_000);
            } else {
                let error = failure(calling.join().expect("no panic"));
                assert!(error.contains("did not answer a null call within 5 s"), "{error}");
            }
        });
    }
}
