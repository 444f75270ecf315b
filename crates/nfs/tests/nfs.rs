//! NFS trials over loopback: linerate's load against linerate's own server, in one process.

use linerate_model::{
    Connect, EndResult, EndRole, EndSpec, FileSet, HalfSpec, IpVersion, NfsMix, NfsOperation, NfsSpec, Timing,
    Transport, TrialId, TrialKey, Workload,
};
use linerate_nfs::NfsTrial;
use linerate_nfsd::{NfsService, ServiceTime};
use linerate_oncrpc::{Running, prepare};
use linerate_sys::clock;
use linerate_units::{ByteCount, Nanos, OpRate};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

const LISTENER: EndRole = EndRole::Listener { address: IpAddr::V4(Ipv4Addr::LOCALHOST) };
const LISTENER_V6: EndRole = EndRole::Listener { address: IpAddr::V6(Ipv6Addr::LOCALHOST) };

fn half(spec: &NfsSpec, measure_ms: u64, role: EndRole) -> HalfSpec {
    HalfSpec {
        id: TrialId("test".into()),
        key: TrialKey([5; 16]),
        workload: Workload::Nfs(spec.clone()),
        timing: Timing { warmup: Nanos::from_millis(100), measure: Nanos::from_millis(measure_ms) },
        ends: vec![EndSpec { path: 0, role }],
    }
}

/// NFS with this server of linerate's own.
fn serving(service: NfsService) -> NfsTrial {
    NfsTrial { server: Arc::new(service), paced: false }
}

fn begin(spec: &NfsSpec, measure_ms: u64, serve: &NfsTrial) -> (Running, Running) {
    let listener = if spec.ip == IpVersion::V6 { LISTENER_V6 } else { LISTENER };
    let listener = prepare(&half(spec, measure_ms, listener), Arc::new(serve.clone())).expect("listens");
    let mut opener = prepare(&half(spec, measure_ms, EndRole::Opener), Arc::new(serve.clone())).expect("is prepared");
    opener.connect(&Connect { listeners: listener.prepared().listening }).expect("connects");
    let at = clock::now() + 30_000_000;
    (opener.start(at).expect("starts"), listener.start(at).expect("starts"))
}

fn run(spec: &NfsSpec, measure_ms: u64, serve: &NfsTrial) -> EndResult {
    let (opener, listener) = begin(spec, measure_ms, serve);
    let result = opener.join().expect("opener").remove(0);
    let served = listener.join().expect("listener").remove(0).service.expect("it serves");
    let done = result.transactions.as_ref().expect("it asks").completed;
    assert!(served.calls.abs_diff(done) <= done / 5 + 64, "{} served, {done} completed", served.calls);
    result
}

fn small(transport: Transport, mix: &str) -> NfsSpec {
    let plain = NfsSpec::plain(transport, NfsMix::named(mix).expect("built in"));
    let files = FileSet { files: 24, directories: 4, symlinks: 4, ..plain.files };
    NfsSpec { files, flows: 2, outstanding: 8, ..plain }
}

/// Nothing went wrong; the number of operations.
fn faultless(result: &EndResult) -> u64 {
    let done = result.transactions.as_ref().expect("it asks");
    assert_eq!((&result.broken, &result.remains), (&None, &None));
    assert_eq!((done.failed, done.not_sent), (0, 0), "{:?}", result.operations);
    for (operation, counts) in &result.operations {
        assert!(counts.errors.is_empty(), "{operation}: {:?}", counts.errors);
        assert_eq!(counts.corrupt_bytes, 0, "{operation}");
    }
    assert_eq!(result.operations.values().map(|counts| counts.completed).sum::<u64>(), done.completed);
    done.completed
}

#[test]
fn every_mix_runs_faultlessly_over_both_transports() {
    for transport in [Transport::Tcp, Transport::Udp] {
        for mix in NfsMix::names() {
            let ip = if mix == "laddis-like" { IpVersion::V6 } else { IpVersion::V4 };
            let spec = NfsSpec { ip, ..small(transport, mix) };
            let result = run(&spec, 400, &serving(NfsService::default()));
            let done = faultless(&result);
            assert!(done > 100, "{transport} {mix}: {done}");
            for (operation, counts) in &result.operations {
                let moves = matches!(operation, NfsOperation::Read | NfsOperation::Write);
                assert_eq!(counts.bytes > 0, moves && counts.completed > 0, "{transport} {mix} {operation}");
                assert_eq!(counts.latency.count(), counts.completed, "{transport} {mix} {operation}");
            }
        }
    }
}

#[test]
fn an_open_loop_keeps_its_rate_and_its_mix() {
    let spec = NfsSpec { rate: Some(OpRate::per_second(1_500)), ..small(Transport::Tcp, "sfs97-like") };
    let result = run(&spec, 2_000, &serving(NfsService::default()));
    let done = faultless(&result);
    // Five standard deviations of a Poisson count.
    assert!(done.abs_diff(3_000) < 275, "{done} of 3000");
    for (operation, percent) in &spec.mix.percent {
        let (count, expected) = (result.operations[operation].completed as f64, percent / 100.0 * done as f64);
        // Each flow may have begun and ended within a deck.
        assert!((count - expected).abs() <= expected * 0.01 + 8.0, "{operation}: {count} of {expected}");
    }
}

#[test]
fn what_a_set_was_made_for_is_removed_with_it() {
    let directory = tempfile::tempdir().expect("a directory");
    std::fs::write(directory.path().join("theirs"), "not ours").expect("writes");
    let nfs = NfsService { directory: Some(directory.path().to_owned()), ..NfsService::default() };
    for mix in ["sfs97-like", "metadata"] {
        faultless(&run(&small(Transport::Tcp, mix), 300, &serving(nfs.clone())));
        let left: Vec<_> =
            std::fs::read_dir(directory.path()).expect("lists").flatten().map(|e| e.file_name()).collect();
        assert_eq!(left, ["theirs"], "{mix}");
    }
}

#[test]
fn a_set_is_made_no_faster_than_allowed_and_not_at_all_once_cancelled() {
    let directory = tempfile::tempdir().expect("a directory");
    let nfs = NfsService { directory: Some(directory.path().to_owned()), ..NfsService::default() };
    let serve = NfsTrial { paced: true, ..serving(nfs) };
    // Three files of 16 KiB, at 10 x 8 KiB a second: 0.6 s, less the last one's share, and some for the other calls.
    let mut spec = NfsSpec { rate: Some(OpRate::per_second(10)), flows: 1, ..small(Transport::Tcp, "read") };
    spec.files = FileSet { files: 3, directories: 1, symlinks: 0, file_bytes: ByteCount::new(16 << 10) };
    let connect = |spec: &NfsSpec, cancel_after_ms: Option<u64>| {
        let listener = prepare(&half(spec, 100, LISTENER), Arc::new(serve.clone())).expect("listens");
        let mut opener = prepare(&half(spec, 100, EndRole::Opener), Arc::new(serve.clone())).expect("is prepared");
        if let Some(after) = cancel_after_ms {
            let canceller = opener.canceller();
            std::thread::spawn(move || {
                std::thread::sleep(Duration::from_millis(after));
                canceller.store(true, Ordering::Relaxed);
            });
        }
        let begun = clock::now();
        let connected = opener.connect(&Connect { listeners: listener.prepared().listening });
        let made = std::fs::read_dir(directory.path()).expect("lists").count();
        (connected.map_err(|error| error.to_string()), made, clock::now() - begun)
    };
    let (connected, made, took) = connect(&spec, None);
    assert_eq!((connected, made), (Ok(()), 1));
    assert!(took > 400_000_000, "{took} ns");
    // These would take more than three minutes.
    spec.files.files = 1_000;
    let (connected, made, _) = connect(&spec, Some(300));
    assert!(connected.expect_err("cancelled").contains("stopped"));
    assert_eq!(made, 0);
}

#[test]
fn a_planted_service_time_is_measured_from_when_operations_were_due() {
    let time = ServiceTime { call: Nanos::from_millis(2), ..ServiceTime::default() };
    let serve = serving(NfsService { time, ..NfsService::default() });
    let spec = NfsSpec { rate: Some(OpRate::per_second(100)), flows: 1, ..small(Transport::Tcp, "getattr") };
    let result = run(&spec, 1_000, &serve);
    faultless(&result);
    let latency = &result.operations[&NfsOperation::Getattr].latency;
    // A busy machine adds to most of them, but not to each; and none is ever sooner.
    assert!((2_000_000..2_300_000).contains(&latency.min()), "{} ns", latency.min());
}

#[test]
fn what_a_server_that_goes_away_leaves_is_named_and_what_was_counted_is_kept() {
    for transport in [Transport::Tcp, Transport::Udp] {
        let spec = NfsSpec { rate: Some(OpRate::per_second(500)), ..small(transport, "sfs97-like") };
        let (opener, listener) = begin(&spec, 1_000, &serving(NfsService::default()));
        while opener.progress().transactions < 50 {
            std::thread::sleep(Duration::from_millis(10));
        }
        drop(listener);
        let result = opener.join().expect("a result all the same").remove(0);
        let done = result.transactions.expect("it asked");
        assert!(done.completed >= 50 && done.completed < 450, "{transport}: {}", done.completed);
        assert!(done.not_sent + done.failed > 50, "{transport}: {} not sent, {} failed", done.not_sent, done.failed);
        let (broken, remains) = (result.broken.expect("it broke"), result.remains.expect("files remain"));
        assert!(broken.contains("127.0.0.1") && broken.contains("into the window"), "{broken}");
        assert!(remains.contains("`linerate-test-0` in / of 127.0.0.1 is still there: remove it"), "{remains}");
    }
}

#[test]
fn what_cannot_work_is_named_with_its_remedy() {
    let refused = |spec: &NfsSpec, serve: &NfsTrial| {
        let listener =
            prepare(&half(spec, 100, LISTENER), Arc::new(serve.clone())).map_err(|error| error.to_string())?;
        let mut opener = prepare(&half(spec, 100, EndRole::Opener), Arc::new(serve.clone())).expect("is prepared");
        let connect = Connect { listeners: listener.prepared().listening };
        opener.connect(&connect).map_err(|error| error.to_string())
    };
    let nfs = NfsService { memory: ByteCount::new(1 << 20), ..NfsService::default() };
    let no_room = serving(nfs);
    let error = refused(&small(Transport::Tcp, "read"), &no_room).expect_err("no room");
    assert!(error.contains("NFS3ERR_NOSPC; ask for fewer or smaller files"), "{error}");
    let spec = NfsSpec { transfer_bytes: ByteCount::new(60 << 10), ..small(Transport::Udp, "read") };
    let error = refused(&spec, &serving(NfsService::default())).expect_err("too large");
    assert!(error.contains("--transfer-size 57344"), "{error}");
    let spec = NfsSpec { flows: 30, ..small(Transport::Tcp, "read") };
    let error = refused(&spec, &serving(NfsService::default())).expect_err("too few files");
    assert!(error.contains("24 files for 30 connections"), "{error}");
}
