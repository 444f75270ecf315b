//! NFS trials over loopback: linerate's load against linerate's own server, in one process.

use linerate_engine::testing::one_path::{self, TIMEOUT, counts, failure, was_stopped};
use linerate_engine::testing::{self, Reached, Session};
use linerate_engine::{FailedBy, Stopped};
use linerate_model::{
    Assignment, EndCounts, FileSet, IpVersion, Net, NfsMix, NfsOperation, NfsTask, Task, Timing, Transport,
};
use linerate_nfs::Nfs;
use linerate_nfsd::{NfsService, ServiceTime};
use linerate_sys::clock;
use linerate_testsuite::wait_until;
use linerate_units::{ByteCount, Nanos, OpRate};
use std::sync::Arc;

/// The sessions of a client and of a server.
fn pair(task: &NfsTask, measure_ms: u64) -> [Session; 2] {
    one_path::pair(one_path::parts(&Task::Nfs(task.clone()), Nanos::from_millis(measure_ms)))
}

/// NFS with this server of linerate's own.
fn serving(service: NfsService) -> Nfs {
    Nfs { server: Arc::new(service) }
}

fn run(task: &NfsTask, measure_ms: u64, nfs: &Nfs) -> EndCounts {
    let [client, server] = pair(task, measure_ms);
    let (asked, served, is_whole) = testing::scope(|scope| {
        let ended = [&client, &server].map(|session| scope.spawn(|| session.run(nfs)));
        assert!(server.wait_for(Reached::Running, TIMEOUT));
        // A server that hears late of the start counts from then on only.
        let is_whole = server.window().is_some_and(|window| clock::now() < window.open());
        let [asked, served] = ended.map(|ended| counts(ended.join().expect("no panic")));
        (asked, served, is_whole)
    });
    let result = asked;
    let served = served.service.expect("it serves");
    let done = result.transactions.as_ref().expect("it asks").completed;
    let apart = if is_whole { served.calls.abs_diff(done) } else { served.calls.saturating_sub(done) };
    assert!(apart <= done / 5 + 64, "{} served, {done} completed", served.calls);
    result
}

fn small(transport: Transport, mix: &str) -> NfsTask {
    let plain = NfsTask::plain(transport, NfsMix::named(mix).expect("built in"));
    let files = FileSet { files: 24, directories: 4, symlinks: 4, ..plain.files };
    NfsTask { net: Net { flows: 2, ..Net::plain(transport) }, files, outstanding: 8, ..plain }
}

/// Checks that nothing went wrong. Returns the number of operations.
fn faultless(result: &EndCounts) -> u64 {
    let done = result.transactions.as_ref().expect("it asks");
    assert_eq!(result.broken, None);
    assert_eq!(done.failed, 0, "{:?}", result.operations);
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
            let mut spec = small(transport, mix);
            spec.net.ip = ip;
            let result = run(&spec, 300, &serving(NfsService::default()));
            let done = faultless(&result);
            assert!(done > 0, "{transport} {mix}");
            for (operation, counts) in &result.operations {
                let moves = matches!(operation, NfsOperation::Read | NfsOperation::Write);
                assert_eq!(counts.bytes > 0, moves && counts.completed > 0, "{transport} {mix} {operation}");
                // Eight operations of each flow may be under way when the window closes.
                let timed = counts.latency.count();
                assert!((counts.completed..=counts.completed + 16).contains(&timed), "{transport} {mix} {operation}");
            }
        }
    }
}

#[test]
fn an_open_loop_keeps_its_rate_and_its_mix() {
    let spec = NfsTask { rate: Some(OpRate::per_second(1_000)), ..small(Transport::Tcp, "sfs97-like") };
    let result = run(&spec, 1_000, &serving(NfsService::default()));
    let done = faultless(&result);
    // What a busy host sent too late is counted as such, and what ended late is timed. Five standard deviations of a
    // Poisson count.
    let asked = result.transactions.as_ref().expect("it asks");
    let timed = asked.latency.count();
    let not_sent = asked.not_sent;
    assert!((timed + not_sent).abs_diff(1_000) < 158, "{timed} timed and {not_sent} not sent of 1000");
    for (operation, percent) in &spec.mix.percent {
        let count = result.operations[operation].completed as f64;
        let expected = percent / 100.0 * done as f64;
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
fn a_set_is_made_no_faster_than_allowed_and_removed_if_stopped_meanwhile() {
    let directory = tempfile::tempdir().expect("a directory");
    let nfs = NfsService { directory: Some(directory.path().to_owned()), ..NfsService::default() };
    let serve = serving(nfs);
    // Three files of 16 KiB, at 10 x 8 KiB a second: 0.6 s, less the last one's share, and some for the other calls.
    let rate = Some(OpRate::per_second(10));
    let mut spec = NfsTask { net: Net::plain(Transport::Tcp), rate, ..small(Transport::Tcp, "read") };
    spec.files = FileSet { files: 3, directories: 1, symlinks: 0, file_bytes: ByteCount::new(16 << 10) };
    let made = || std::fs::read_dir(directory.path()).expect("lists").count();

    // A window in which the test can look at what was made.
    let [client, server] = pair(&spec, 2_000).map(Session::rate_limited);
    let begun = clock::now();
    let took = testing::scope(|scope| {
        let ended = [&client, &server].map(|session| scope.spawn(|| session.run(&serve)));
        assert!(client.wait_for(Reached::Ready, TIMEOUT));
        let took = clock::now() - begun;
        assert_eq!(made(), 1);
        for ended in ended {
            ended.join().expect("no panic").expect("it ends with counts");
        }
        took
    });
    assert!(took > 400_000_000, "{took} ns");
    assert_eq!(made(), 0);

    // These would take more than three minutes.
    spec.files.files = 1_000;
    let [client, server] = pair(&spec, 100).map(Session::rate_limited);
    let ended = testing::scope(|scope| {
        let [asking, _serving] = [&client, &server].map(|session| scope.spawn(|| session.run(&serve)));
        wait_until("the set is begun", || (made() > 0).then_some(()));
        client.stop("enough");
        let ended = asking.join().expect("no panic");
        server.stop("enough");
        ended
    });
    assert!(was_stopped(&ended) && ended.is_err_and(|failure| failure.remains.is_empty()));
    assert_eq!(made(), 0);
    let took = clock::now() - begun;
    assert!(took < 120_000_000_000, "{took} ns");
}

#[test]
fn a_planted_service_time_is_measured_from_when_operations_were_due() {
    let time = ServiceTime { call: Nanos::from_millis(2), ..ServiceTime::default() };
    let serve = serving(NfsService { time, ..NfsService::default() });
    let rate = Some(OpRate::per_second(200));
    let spec = NfsTask { net: Net::plain(Transport::Tcp), rate, ..small(Transport::Tcp, "getattr") };
    let result = run(&spec, 500, &serve);
    faultless(&result);
    let latency = &result.operations[&NfsOperation::Getattr].latency;
    // A busy machine adds to most of them, but not to each; and none is ever sooner.
    assert!((2_000_000..30_000_000).contains(&latency.min()), "{} ns", latency.min());
}

#[test]
fn operations_under_way_at_the_close_are_timed() {
    // Longer than the window, so that operations are under way when it closes. NULL would take no time.
    let time = ServiceTime { call: Nanos::from_millis(400), at_once: Some(16), ..ServiceTime::default() };
    let serve = serving(NfsService { time, ..NfsService::default() });
    let mut spec = small(Transport::Tcp, "getattr");
    spec.files = FileSet { files: 2, directories: 1, symlinks: 0, ..spec.files };
    let [client, server] = pair(&spec, 200);
    let result = testing::scope(|scope| {
        let [asked, _served] = [&client, &server].map(|session| scope.spawn(|| session.run(&serve)));
        counts(asked.join().expect("no panic"))
    });
    // Two flows with eight operations each; the next ones follow at once.
    let done = faultless(&result);
    let under_way = result.operations[&NfsOperation::Getattr].latency.count() - done;
    assert!((1..=16).contains(&under_way), "{under_way} beside {done}");
    assert_eq!(result.transactions.expect("it asks").latency.count(), done + under_way);
}

#[test]
fn a_flow_that_breaks_while_the_warm_up_lasts_ends_with_the_window() {
    let plain = small(Transport::Tcp, "null");
    let [client, server] = one_path::pair(
        one_path::parts(&Task::Nfs(plain), Nanos::from_millis(100))
            .map(|part| Assignment { timing: Timing::when_steady(Nanos::from_millis(100)), ..part }),
    );
    let nfs = serving(NfsService::default());
    let result = testing::scope(|scope| {
        let [asking, serving] = [&client, &server].map(|session| scope.spawn(|| session.run(&nfs)));
        wait_until("operations are done", || client.meter().filter(|meter| meter.operations > 0));
        server.stop("enough");
        assert!(was_stopped(&serving.join().expect("no panic")));
        assert!(client.window().expect("it has one").set_open(clock::now()));
        counts(asking.join().expect("no panic"))
    });
    assert!(result.broken.expect("it broke").contains("127.0.0.1"));
    // Replies that were sent before the server ended may be read within the window: all of those under way.
    let completed = result.transactions.expect("it asked").completed;
    assert!(completed <= 16, "{completed} completed");
    assert!(client.meter().expect("it ran").operations > 0);
}

#[test]
fn what_a_server_that_goes_away_leaves_is_named_and_what_was_counted_is_kept() {
    for transport in [Transport::Tcp, Transport::Udp] {
        let spec = NfsTask { rate: Some(OpRate::per_second(500)), ..small(transport, "sfs97-like") };
        let [client, server] = pair(&spec, 5_000);
        let nfs = serving(NfsService::default());
        let mut counted = testing::scope(|scope| {
            let [asking, serving] = [&client, &server].map(|session| scope.spawn(|| session.run(&nfs)));
            let is_open = || client.window().filter(|window| window.in_window(clock::now()));
            let before = wait_until("the window opens", || is_open().and_then(|_| client.meter())).operations;
            wait_until("50 operations are done", || client.meter().filter(|meter| meter.operations >= before + 50));
            server.stop("enough");
            assert!(was_stopped(&serving.join().expect("no panic")));
            asking.join().expect("no panic").expect("counts all the same")
        });
        let remains = std::mem::take(&mut counted.remains).join(", ");
        let result = counts(Ok(counted));
        let done = result.transactions.expect("it asked");
        assert!(done.completed >= 50, "{transport}: {}", done.completed);
        assert!(done.not_sent + done.failed > 50, "{transport}: {} not sent, {} failed", done.not_sent, done.failed);
        let broken = result.broken.expect("it broke");
        assert!(broken.contains("127.0.0.1") && broken.contains("into the window"), "{broken}");
        assert!(remains.contains("`linerate-test-0` in / of 127.0.0.1 is still there: remove it"), "{remains}");
    }
}

#[test]
fn what_remains_of_a_stopped_session_is_named() {
    let [client, server] = pair(&small(Transport::Tcp, "sfs97-like"), 30_000);
    let nfs = serving(NfsService::default());
    let failure = testing::scope(|scope| {
        let asking = scope.spawn(|| client.run(&nfs));
        let serving = scope.spawn(|| server.run(&nfs));
        assert!(client.wait_for(Reached::Running, TIMEOUT) && server.wait_for(Reached::Running, TIMEOUT));
        // The wrong way round: the server goes first.
        server.stop("enough");
        assert!(was_stopped(&serving.join().expect("no panic")));
        client.stop("enough");
        asking.join().expect("no panic").expect_err("stopped")
    });
    assert!(matches!(failure.error, FailedBy::Stop(Stopped)), "{failure}");
    assert!(failure.remains.join(", ").contains("`linerate-test-0` in / of 127.0.0.1 is still there"), "{failure:?}");
}

#[test]
fn what_cannot_work_is_named_with_its_remedy() {
    let refused = |spec: &NfsTask, nfs: &Nfs| {
        let [client, server] = pair(spec, 100);
        testing::scope(|scope| {
            let [asking, _serving] = [&client, &server].map(|session| scope.spawn(|| session.run(nfs)));
            failure(asking.join().expect("no panic"))
        })
    };
    let nfs = NfsService { memory: ByteCount::new(1 << 20), ..NfsService::default() };
    let no_room = serving(nfs);
    let error = refused(&small(Transport::Tcp, "read"), &no_room);
    assert!(error.contains("NFS3ERR_NOSPC; ask for fewer or smaller files"), "{error}");
    let spec = NfsTask { transfer_bytes: ByteCount::new(60 << 10), ..small(Transport::Udp, "read") };
    let error = refused(&spec, &serving(NfsService::default()));
    assert!(error.contains("--transfer-size 57344"), "{error}");
    let mut spec = small(Transport::Tcp, "read");
    spec.net.flows = 30;
    let error = refused(&spec, &serving(NfsService::default()));
    assert!(error.contains("24 files for 30 connections"), "{error}");
}
