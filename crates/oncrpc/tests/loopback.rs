//! Two halves in one process, over loopback: every kind of call, and what goes wrong with them.

use linerate_model::{
    Arrivals, Connect, EndResult, EndRole, EndSpec, HalfSpec, IpVersion, RpcCall, RpcSpec, Timing, Transport, TrialId,
    TrialKey, Workload,
};
use linerate_oncrpc::{RpcError, Running, TestCalls, prepare};
use linerate_sys::clock;
use linerate_units::{ByteCount, Nanos, OpRate};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

const MEASURE: u64 = 300_000_000;

fn half(spec: &RpcSpec, role: EndRole) -> HalfSpec {
    HalfSpec {
        id: TrialId("test".into()),
        key: TrialKey([5; 16]),
        workload: Workload::Rpc(spec.clone()),
        timing: Timing { warmup: Nanos::from_millis(100), measure: Nanos::new(MEASURE) },
        ends: vec![EndSpec { path: 0, role }],
    }
}

fn begin(spec: &RpcSpec) -> (Running, Running) {
    let address = match spec.ip {
        IpVersion::V4 => IpAddr::from(Ipv4Addr::LOCALHOST),
        IpVersion::V6 => IpAddr::from(Ipv6Addr::LOCALHOST),
    };
    let listener = prepare(&half(spec, EndRole::Listener { address }), Arc::new(TestCalls)).expect("listens");
    let mut opener = prepare(&half(spec, EndRole::Opener), Arc::new(TestCalls)).expect("is prepared");
    opener.connect(&Connect { listeners: listener.prepared().listening }).expect("connects");
    let at = clock::now() + 30_000_000;
    // The two ends of a real trial do not start at the same moment either.
    (opener.start(at).expect("starts"), listener.start(at + 3_000_000).expect("starts"))
}

fn run(spec: &RpcSpec) -> (EndResult, EndResult) {
    let (opener, listener) = begin(spec);
    let expected = usize::from(spec.flows);
    assert_eq!(opener.threads().len(), expected);
    assert!((1..=expected).contains(&listener.threads().len()), "{:?}", listener.threads());
    let (opener, listener) = (opener.join().expect("opener"), listener.join().expect("listener"));
    (opener.into_iter().next().expect("one end"), listener.into_iter().next().expect("one end"))
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
            let plain = RpcSpec::plain(transport, call, ByteCount::new(unit));
            let spec = RpcSpec { flows: 2, outstanding: 4, ip, ..plain };
            let (opener, listener) = run(&spec);
            let done = opener.transactions.expect("it asks");
            assert!(done.completed > 20, "{transport} {call}: {}", done.completed);
            assert_eq!((done.failed, done.retransmitted, done.latency.count()), (0, 0, done.completed));
            // Windows 3 ms apart hold a few calls more or less.
            let near = |count: u64| count.abs_diff(done.completed) as f64 <= done.completed as f64 * 0.2 + 16.0;
            let (served, there, back) = (listener.service.expect("it serves"), listener.received, opener.received);
            assert!(near(served.calls) && served.time.count() == served.calls, "{transport} {call}: {}", served.calls);
            assert_eq!((there.is_some(), back.is_some()), (call.carries_there(), call.carries_back()));
            for received in [there, back].into_iter().flatten() {
                assert_eq!(received.payload_bytes, received.messages * unit, "{transport} {call}");
                assert!(near(received.messages), "{transport} {call}: {} of {}", received.messages, done.completed);
                assert_eq!((received.window.get(), received.duplicates), (MEASURE, 0));
            }
            assert_eq!(opener.flows.len(), 2);
            assert_eq!(opener.flows[0].tcp.is_some(), transport == Transport::Tcp);
        }
    }
}

#[test]
fn an_open_loop_keeps_its_rate() {
    for transport in [Transport::Tcp, Transport::Udp] {
        for arrivals in [Arrivals::Even, Arrivals::Poisson] {
            let plain = RpcSpec::plain(transport, RpcCall::Write, ByteCount::new(1_000));
            let (opener, _) = run(&RpcSpec { rate: Some(OpRate::per_second(2_000)), flows: 2, arrivals, ..plain });
            let done = opener.transactions.expect("it asks");
            // 600 in 300 ms; five standard deviations of a Poisson count. What a busy host sent too late is told.
            let tolerance = if arrivals == Arrivals::Even { 2 } else { 123 };
            let due = done.latency.count() + done.not_sent;
            assert!(due.abs_diff(600) <= tolerance, "{transport} {arrivals:?}: {due}");
            assert_eq!(done.failed, 0, "{transport} {arrivals:?}");
        }
    }
}

#[test]
fn what_cannot_work_is_named_with_its_remedy() {
    let plain = |transport, unit| RpcSpec::plain(transport, RpcCall::Write, ByteCount::new(unit));
    for (spec, needle) in [
        (plain(Transport::Udp, (60 << 10) + 1), "at most 61440"),
        (plain(Transport::Tcp, (1 << 20) + 1), "at most 1048576"),
        (RpcSpec { flows: 0, ..plain(Transport::Tcp, 1) }, "choose 1 to 1024"),
        (RpcSpec { outstanding: 0, ..plain(Transport::Tcp, 1) }, "choose 1 or more"),
        (RpcSpec { rate: Some(OpRate::per_second(0)), ..plain(Transport::Tcp, 1) }, "choose 1 to 100000000"),
    ] {
        let error = prepare(&half(&spec, EndRole::Opener), Arc::new(TestCalls)).expect_err(needle).to_string();
        assert!(error.contains(needle), "{error}");
    }
}

#[test]
fn a_server_that_goes_away_ends_the_trial_with_its_name() {
    for transport in [Transport::Tcp, Transport::Udp] {
        let (opener, listener) = begin(&RpcSpec::plain(transport, RpcCall::Read, ByteCount::new(100)));
        std::thread::sleep(Duration::from_millis(200));
        listener.stop();
        assert!(matches!(listener.join(), Err(RpcError::Stopped)));
        let error = opener.join().expect_err("nobody answers").to_string();
        assert!(error.contains("went away") && error.contains("into the window"), "{transport}: {error}");
    }
}

#[test]
fn a_server_that_does_not_answer_is_told_before_the_start() {
    let silent = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("binds");
    let spec = RpcSpec::plain(Transport::Udp, RpcCall::Read, ByteCount::new(100));
    let mut opener = prepare(&half(&spec, EndRole::Opener), Arc::new(TestCalls)).expect("is prepared");
    let listeners = [(0, silent.local_addr().expect("bound"))].into();
    let error = opener.connect(&Connect { listeners }).expect_err("is silent").to_string();
    assert!(error.contains("did not answer a null call within 5 s"), "{error}");
}
