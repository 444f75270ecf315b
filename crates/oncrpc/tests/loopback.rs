//! Callers and servers in one process, over loopback: every kind of call, and what goes wrong with them.

use linerate_engine::proof::{link_key, proof};
use linerate_engine::testing::one_path::{self, LINK, TIMEOUT, counts, failure, was_stopped};
use linerate_engine::testing::{self, Reached, Session};
use linerate_engine::{Conductor as _, Engine as _};
use linerate_model::{
    Arrivals, Assignment, EndCounts, Endpoints, IpVersion, LatencyBuckets, LinkId, Meter, Net, Readings, Ready,
    RpcCall, RpcTask, SeriesQuantity, SessionKey, Task, Timing, Transport,
};
use linerate_oncrpc::OncRpc;
use linerate_sys::clock;
use linerate_testsuite::wait_until;
use linerate_units::{ByteCount, Nanos, OpRate};
use std::collections::HashSet;
use std::net::{Ipv4Addr, UdpSocket};

/// Longer than a busy machine usually holds up a thread.
const MEASURE: u64 = 600_000_000;
/// No call over UDP is sent again sooner.
const RETRANSMITTED_NS: u64 = 200_000_000;

fn parts(task: &RpcTask, measure: u64) -> [Assignment; 2] {
    one_path::parts(&Task::Rpc(task.clone()), Nanos::new(measure))
}

/// The sessions of a client and of a server.
fn pair(task: &RpcTask, measure: u64) -> [Session; 2] {
    one_path::pair(parts(task, measure))
}

/// What client and server counted, and whether the server was there for the whole window: one that hears late of the
/// start counts from then on only.
fn run(task: &RpcTask) -> (EndCounts, EndCounts, bool) {
    let [client, server] = pair(task, MEASURE);
    testing::scope(|scope| {
        let ended = [&client, &server].map(|session| scope.spawn(|| session.run(&OncRpc)));
        let flows = usize::from(task.net.flows);
        assert!(client.wait_for(Reached::Running, TIMEOUT) && server.wait_for(Reached::Running, TIMEOUT));
        let is_whole = server.window().is_some_and(|window| clock::now() < window.open());
        assert_eq!(client.threads().len(), flows);
        assert!((1..=flows).contains(&server.threads().len()), "{:?}", server.threads());
        let [client, server] = ended.map(|ended| counts(ended.join().expect("no panic")));
        (client, server, is_whole)
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
            let (client, server, is_whole) = run(&spec);
            let done = client.transactions.expect("it asks");
            assert!(done.completed > 0, "{transport} {call}");
            assert_eq!(done.failed, 0, "{transport} {call}");
            // Over UDP a call is sent again where an end waits for its core that long, and is timed from its first
            // copy.
            let held_up = transport == Transport::Udp && done.latency.max() >= RETRANSMITTED_NS;
            assert!(done.retransmitted == 0 || held_up, "{transport} {call}: {done:?}");
            // Up to four calls of each flow are under way when the window closes.
            let timed = done.latency.count();
            assert!((done.completed..=done.completed + 8).contains(&timed), "{timed} of {}", done.completed);
            // Calls in flight at the edges are in one count or the other, and a thread that waits for its core comes
            // late to an edge.
            let near = |count: u64| {
                let apart =
                    if is_whole { count.abs_diff(done.completed) } else { count.saturating_sub(done.completed) };
                apart as f64 <= done.completed as f64 * 0.5 + 16.0
            };
            let served = server.service.expect("it serves");
            let there = server.received;
            let back = client.received;
            assert!(near(served.calls) && served.time.count() == served.calls, "{transport} {call}: {}", served.calls);
            assert_eq!((there.is_some(), back.is_some()), (call.carries_there(), call.carries_back()));
            for received in [there, back].into_iter().flatten() {
                assert_eq!(received.payload_bytes, received.messages * unit, "{transport} {call}");
                assert!(near(received.messages), "{transport} {call}: {} of {}", received.messages, done.completed);
                let window = received.window.get();
                assert!(window == MEASURE || !is_whole && window < MEASURE, "{transport} {call}: {window} ns");
                assert!(received.duplicates == 0 || held_up, "{transport} {call}: {received:?}");
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
            let (client, ..) = run(&RpcTask { net, rate: Some(OpRate::per_second(2_000)), arrivals, ..plain });
            let done = client.transactions.expect("it asks");
            // 1,200 in 600 ms; five standard deviations of a Poisson count. What a busy host sent too late is told.
            let tolerance = if arrivals == Arrivals::Even { 2 } else { 180 };
            let due = done.latency.count() + done.not_sent;
            assert!(due.abs_diff(1_200) <= tolerance, "{transport} {arrivals:?}: {due}");
            assert_eq!(done.failed, 0, "{transport} {arrivals:?}");
        }
    }
}

/// The sessions of a client and of a server whose warm-up ends when it is told to.
fn late_pair(task: &RpcTask) -> [Session; 2] {
    let timing = Timing::when_steady(Nanos::new(MEASURE));
    one_path::pair(parts(task, MEASURE).map(|part| Assignment { timing, ..part }))
}

/// Calls whose time is in `readings`.
fn timed(readings: &Readings) -> u64 {
    readings.latency().map_or(0, |counts| LatencyBuckets::of(counts).count())
}

#[test]
fn a_window_opens_late_and_progress_counts_what_came_before_it() {
    const WARM_UP_CALLS: u64 = 300;
    let unit = 1_000;
    for transport in [Transport::Tcp, Transport::Udp] {
        for rate in [None, Some(OpRate::per_second(2_000))] {
            let plain = RpcTask::plain(transport, RpcCall::Echo, ByteCount::new(unit));
            let [client, server] =
                late_pair(&RpcTask { net: Net { flows: 2, ..Net::plain(transport) }, rate, ..plain });
            let [asked, served] = testing::scope(|scope| {
                let ended = [&client, &server].map(|session| scope.spawn(|| session.run(&OncRpc)));
                wait_until("calls of the warm-up", || client.meter().filter(|meter| meter.operations >= WARM_UP_CALLS));
                let readings = client.readings().expect("it runs");
                assert!(timed(&readings) >= WARM_UP_CALLS, "{transport}");
                assert_eq!(readings.get(SeriesQuantity::Lateness).is_some(), rate.is_some(), "{transport}");
                let round_trip = readings.get(SeriesQuantity::Srtt);
                assert_eq!(round_trip.is_some_and(|micros| micros > 0), transport == Transport::Tcp);
                // A server counts a reply when it has been sent, which the client may see first.
                wait_until("the server counts them too", || {
                    let least = |moved: &Meter| moved.received_bytes.min(moved.sent_bytes) >= WARM_UP_CALLS * unit;
                    server.meter().filter(least)
                });
                let opens = clock::now() + 20_000_000;
                for session in [&client, &server] {
                    assert!(session.window().expect("it has one").set_open(opens), "it was not open before");
                }
                ended.map(|ended| counts(ended.join().expect("no panic")))
            });
            let done = asked.transactions.expect("it asks");
            let all = client.meter().expect("it ran");
            let moved = server.meter();
            assert!(done.completed > 0 && done.completed + WARM_UP_CALLS <= all.operations, "{transport}: {done:?}");
            assert_eq!((all.sent_bytes, all.received_bytes), (all.operations * unit, all.operations * unit));
            assert_eq!(asked.received.expect("of replies").payload_bytes, done.completed * unit, "{transport}");
            let received = served.received.expect("of calls");
            assert!(received.messages + WARM_UP_CALLS <= all.operations + 16, "{transport}: {}", received.messages);
            assert_eq!(received.payload_bytes, received.messages * unit, "{transport}");
            assert_eq!(moved.map(|moved| moved.sent_bytes), Some(0), "a server that has ended is not kept");
        }
    }
}

#[test]
fn calls_sent_again_are_seen_while_they_are() {
    let server = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("binds");
    server.set_read_timeout(Some(one_path::TIMEOUT)).expect("sets");
    let address = server.local_addr().expect("bound");
    let task = RpcTask { outstanding: 1, ..RpcTask::plain(Transport::Udp, RpcCall::Null, ByteCount::new(0)) };
    // Long enough for calls that are sent again after a fifth of a second.
    let [client, other] = pair(&task, 3_000_000_000);
    let done = testing::scope(|scope| {
        let calling = scope.spawn(|| client.run(&OncRpc));
        scope.spawn(|| {
            // It answers the greeting, and of each later call only the second copy.
            let mut call = [0; 1_024];
            let mut seen = HashSet::new();
            let answer = |call: &[u8], to, results: &[u8]| {
                // RFC 5531: xid, reply, accepted, a verifier of AUTH_NONE, success.
                let reply = [&call[..4], &[0, 0, 0, 1], &[0; 16], results].concat();
                server.send_to(&reply, to).expect("sends");
            };
            let (_, from) = server.recv_from(&mut call).expect("a greeting");
            // A ticket, and the proof of the key over it and the salt behind the head of the call.
            let key = link_key(&SessionKey([5; 16]), LINK);
            let ticket = [0; 16];
            answer(&call, from, &[ticket, proof(&key, *b"lnrt-ra1", &[&call[40..56], &ticket])].concat());
            while client.reached() < Reached::Ended {
                server.set_read_timeout(Some(std::time::Duration::from_millis(50))).expect("sets");
                match server.recv_from(&mut call) {
                    Ok((_, from)) if !seen.insert(call[..4].to_vec()) => answer(&call, from, &[]),
                    _ => {}
                }
            }
        });
        other.listening([(LINK, address)].into()).expect("goes on");
        other.ready(Ready::default()).expect("goes on");
        let meter = wait_until("a call is sent again", || client.meter().filter(|meter| meter.retransmits > 0));
        assert_eq!(meter.lost, 0);
        counts(calling.join().expect("no panic")).transactions.expect("it asks")
    });
    let all = client.meter().expect("it ran");
    assert!(all.retransmits >= done.retransmitted.max(1), "{} of {}", all.retransmits, done.retransmitted);
    assert!(
        all.retransmits >= all.operations && all.operations > 0,
        "each is answered once it was sent twice: {all:?}"
    );
}

/// The attack: a greeting that was seen on its way to one server of a session is sent to another one.
#[test]
fn a_greeting_to_another_server_of_the_session_is_refused() {
    for transport in [Transport::Tcp, Transport::Udp] {
        let task = RpcTask::plain(transport, RpcCall::Null, ByteCount::new(0));
        let [mut elsewhere, _] = parts(&task, MEASURE);
        elsewhere.roles[0].connects = vec![LinkId(LINK.0 + 1)];
        let [own, server] = pair(&task, MEASURE);
        let [client, other] = one_path::pair([elsewhere.clone(), elsewhere]);
        testing::scope(|scope| {
            let serving = scope.spawn(|| server.run(&OncRpc));
            let address = own.listening(Endpoints::new()).expect("goes on")[&LINK];
            let calling = scope.spawn(|| client.run(&OncRpc));
            other.listening([(LinkId(LINK.0 + 1), address)].into()).expect("goes on");
            let error = failure(calling.join().expect("no panic"));
            assert!(error.contains("credential"), "{transport}: {error}");
            server.stop("enough");
            assert!(was_stopped(&serving.join().expect("no panic")));
        });
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
        testing::scope(|scope| {
            let [calling, serving] = [&client, &server].map(|session| scope.spawn(|| session.run(&OncRpc)));
            wait_until("the window opens", || client.window().filter(|window| window.in_window(clock::now())));
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
        testing::scope(|scope| {
            let calling = scope.spawn(|| client.run(&OncRpc));
            server.listening([(LINK, address)].into()).expect("goes on");
            if stops {
                silent.recv(&mut [0; 1_024]).expect("it calls");
                client.stop("enough");
                assert!(was_stopped(&calling.join().expect("no panic")));
            } else {
                let error = failure(calling.join().expect("no panic"));
                assert!(error.contains("did not answer a greeting within 5 s"), "{error}");
            }
        });
    }
}
