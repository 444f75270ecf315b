//! Which tests a verdict is put to, and what comes of them.

use super::*;
use crate::account::tests::placed;
use crate::measure::tests::host;
use crate::results::measured as measured_of;
use crate::task::{self, stream::proof::BELOW};
use crate::transfer::tests::{spec, stream_of, trial};
use linerate_model::{
    Bypass, Confidence, Detail, Direction, Expects, Limit, LimitPlace, Offered, RecordId, Repeats, StreamFigures,
    StreamTask, Task, TcpSummary, TesterLimit, Transport, Verdict,
};
use linerate_units::{BitRate, ByteCount, Nanos};

const LARGE_MESSAGE: u64 = 128 << 10;

fn tests_of(cell: &Trial, result: &Measurement, runs: &[&TrialResult], hosts: &[Host]) -> Vec<Trial> {
    kind_of(cell.task()).counterproofs(result, cell, runs, hosts)
}

/// A UDP stream of which `lost` of 10,000 datagrams are lost on the wire, as measured for `cell`.
fn run(cell: &Trial, lost: u64) -> TrialResult {
    placed(TrialResult { trial: cell.clone(), ..trial(10_000 - lost, lost) })
}

fn cell() -> Trial {
    let mut cell = spec();
    stream_of(&mut cell).offered = Some(Offered::PayloadBps(BitRate::per_second(80_000_000)));
    cell
}

fn measured(cell: &Trial, lost: u64) -> Measurement {
    results_of(&[cell], &[run(cell, lost)]).remove(0)
}

fn results_of(cells: &[&Trial], trials: &[TrialResult]) -> Vec<Measurement> {
    measured_of(cells, Repeats::Times(1), &[], &[], trials)
}

/// The figures of a stream, to be changed.
fn figures(result: &mut Measurement) -> &mut StreamFigures {
    match &mut result.detail {
        Detail::Stream(figures) => figures,
        other => panic!("no stream: {other:?}"),
    }
}

fn stream(spec: &Trial) -> &StreamTask {
    match spec.task() {
        Task::Stream(stream) => stream,
        _ => panic!("it was a stream"),
    }
}

/// A TCP stream without a rate.
fn tcp_cell() -> Trial {
    let mut cell = spec();
    let plain = StreamTask::plain(Transport::Tcp, ByteCount::new(LARGE_MESSAGE));
    let stream = stream_of(&mut cell);
    *stream = StreamTask { paths: stream.paths.clone(), ..plain };
    cell
}

/// What came of it, of 10,000 segments, with the verdict to be tested.
fn tcp_result(cell: &Trial, congestion: &str, retransmitted: u64, limit: Limit) -> Measurement {
    let tcp = TcpSummary {
        congestion: congestion.into(),
        retransmits: retransmitted,
        timeouts: 0,
        dsacks: 0,
        reorderings: 0,
        segments: 10_000,
        rtt_ns: 20_000_000,
        min_rtt_ns: 20_000_000,
        receive_window_limited: 0.0,
        send_buffer_limited: 0.0,
        mss: 1448,
    };
    let verdict = Verdict::new(limit, Confidence::Medium, Vec::new());
    let mut result = Measurement { name: cell.name.clone(), verdict, ..measured(&spec(), 0) };
    let figures = figures(&mut result);
    (figures.flow.tcp, figures.loss) = (Some(tcp), None);
    result
}

/// The tests of a TCP result between hosts that offer `controls`.
fn tests_between(cell: &Trial, result: &Measurement, controls: &[&str]) -> Vec<Trial> {
    let hosts = ["a", "b"].map(|name| Host {
        congestion_controls: controls.iter().map(|control| (*control).to_owned()).collect(),
        ..host(name, None)
    });
    tests_of(cell, result, &[&run(&spec(), 0)], &hosts)
}

fn proven(lost: u64, lost_at_half: u64) -> Verdict {
    proven_by(lost, lost, lost_at_half)
}

/// The verdict on a stream that lost so much, and so much again when that was measured in turn with half the load.
fn proven_by(lost: u64, lost_again: u64, lost_at_half: u64) -> Verdict {
    let cell = cell();
    let mut trials = vec![run(&cell, lost)];
    let first = results_of(&[&cell], &trials).remove(0);
    // Without a series it is open between a bad path and a full one.
    assert_eq!((first.verdict.limit, first.verdict.leading()), (Limit::CannotTell, Limit::PathLoss), "{first:#?}");
    let test = tests_of(&cell, &first, &[&trials[0]], &[]).remove(0);
    assert_eq!(stream(&test).offered, Some(Offered::PayloadBps(BitRate::per_second(40_000_000))));
    let again = unchanged(&cell, &test).expect("it tests a verdict");
    for _ in 0..3 {
        trials.extend([run(&again, lost_again), run(&test, lost_at_half)]);
    }
    results_of(&[&cell, &test], &trials).remove(0).verdict
}

/// Three runs like those of `result`.
fn thrice(result: &Measurement) -> Measurement {
    let main = crate::statistics::summary(vec![result.main.median; 3]).expect("three runs");
    Measurement { main, ..result.clone() }
}

/// What three pairs of `before` and `after` make of the verdict of `result`, test by test.
fn settled(result: &Measurement, tests: &[(&Trial, &Measurement, &Measurement)]) -> Verdict {
    let pairs = |(test, before, after): &(&Trial, &Measurement, &Measurement)| {
        let test = test.proves.clone().expect("it tests a verdict");
        Pairs { test, unchanged: thrice(before), changed: thrice(after) }
    };
    let mut results = [result.clone()];
    settle(&tests.iter().map(pairs).collect::<Vec<_>>(), &mut results);
    let [result] = results;
    result.verdict
}

#[test]
fn loss_that_stays_at_half_the_load_is_the_paths() {
    // It was open between two limits, and the test tells them apart.
    let verdict = proven(100, 95);
    assert_eq!((verdict.limit, verdict.confidence), (Limit::PathLoss, Confidence::High), "{verdict:#?}");
    assert_eq!((verdict.proofs[0].held, verdict.proofs[0].pairs), (Some(true), 3));
    let said = "With half the load 0.95 % of 30000 datagrams were lost instead of 1.0 % (in 3 pairs), as it must be";
    assert!(verdict.evidence.last().is_some_and(|text| text.starts_with(said)), "{verdict:#?}");
}

#[test]
fn loss_that_goes_at_half_the_load_is_of_a_full_path() {
    let verdict = proven(100, 0);
    assert_eq!((verdict.limit, verdict.confidence), (Limit::Shaper, Confidence::Medium), "{verdict:#?}");
    assert!(verdict.evidence.last().is_some_and(|text| text.contains("half the load")), "{verdict:#?}");
}

#[test]
fn loss_in_between_or_too_little_to_count_is_inconclusive() {
    let verdict = proven(100, 30);
    assert_eq!((verdict.limit, verdict.confidence), (Limit::CannotTell, Confidence::Low), "{verdict:#?}");
    assert_eq!(verdict.proofs[0].held, None);
    // Of 9 that were due in all pairs none need come.
    assert_eq!(proven_by(100, 3, 0).proofs[0].held, None);
    assert_eq!(proven_by(100, 4, 0).proofs[0].held, Some(false));
}

#[test]
fn even_datagrams_tell_a_policer_from_a_bad_path() {
    let cell = tcp_cell();
    let result = tcp_result(&cell, "cubic", 100, Limit::PathLoss);
    let tests = tests_between(&cell, &result, &["cubic", "bbr"]);
    let [even, bbr] = &tests[..] else { panic!("two tests: {tests:#?}") };
    let received = result.main.median;
    assert_eq!(stream(even).offered, Some(Offered::PayloadBps(BitRate::per_second((received * BELOW) as u64))));
    assert_eq!((stream(even).net.transport, stream(even).message_bytes.get()), (Transport::Udp, 1448));
    assert_eq!(stream(bbr).net.socket.congestion.as_deref(), Some("bbr"));

    let after = |lost, times_with_bbr: f64| {
        let even_result = measured(even, lost);
        let mut with_bbr = tcp_result(bbr, "bbr", 100, Limit::Shaper);
        with_bbr.main.median *= times_with_bbr;
        settled(&result, &[(even, &result, &even_result), (bbr, &result, &with_bbr)])
    };
    let bad = after(90, 20.0);
    assert_eq!((bad.limit, bad.confidence), (Limit::PathLoss, Confidence::High), "{bad:#?}");
    assert_eq!(bad.proofs.iter().map(|proof| proof.held).collect::<Vec<_>>(), [Some(true); 2]);
    // BBR finds a way with a policer too: once its loss has gone, that says nothing for a bad path.
    let policed = after(0, 2.0);
    assert_eq!((policed.limit, policed.confidence), (Limit::Shaper, Confidence::Medium), "{policed:#?}");
    // Too few to count: then BBR alone tells no policer from a bad path.
    let mut few = result.clone();
    if let Some(tcp) = &mut figures(&mut few).flow.tcp {
        tcp.retransmits = 9;
    }
    let mut faster = tcp_result(bbr, "bbr", 0, Limit::Shaper);
    faster.main.median *= 20.0;
    let unsure = settled(&few, &[(even, &few, &measured(even, 0)), (bbr, &few, &faster)]);
    assert_eq!(unsure.confidence, Confidence::Medium, "{unsure:#?}");
    let unmoved = after(90, 1.0);
    assert_eq!((unmoved.limit, unmoved.confidence), (Limit::PathLoss, Confidence::Low), "{unmoved:#?}");
}

#[test]
fn a_window_holds_back_whatever_the_control() {
    let cell = tcp_cell();
    let tests = |congestion, controls: &[&str]| {
        let tests = tests_between(&cell, &tcp_result(&cell, congestion, 0, Limit::Window), controls);
        tests.iter().map(|test| stream(test).clone()).collect::<Vec<_>>()
    };
    let controls = |tests: &[StreamTask]| tests.last().and_then(|test| test.net.socket.congestion.clone());
    assert_eq!(controls(&tests("bbr", &["bbr", "cubic"])).as_deref(), Some("cubic"));
    assert_eq!(controls(&tests("reno", &["reno", "bbr"])).as_deref(), Some("bbr"));
    let alone = tests("cubic", &["cubic"]);
    assert_eq!((alone.len(), alone[0].net.flows), (1, 4), "no host has another");
}

#[test]
fn a_path_without_loss_is_tested_by_more_flows_and_one_with_loss_by_a_load_that_fits() {
    let cell = tcp_cell();
    let of = |retransmitted| {
        tests_between(&cell, &tcp_result(&cell, "bbr", retransmitted, Limit::Shaper), &["bbr"]).remove(0)
    };
    assert_eq!((stream(&of(0)).net.flows, stream(&of(0)).offered), (4, None));
    let lossy = of(1_000);
    assert_eq!(stream(&lossy).net.transport, Transport::Udp);
    assert!(matches!(lossy.proves, Some(Counterproof { expects: Expects::LossGoes, .. })), "{lossy:#?}");
}

#[test]
fn a_processor_is_tested_by_fewer_calls_then_by_more_cores() {
    let mut cell = tcp_cell();
    let result = tcp_result(&cell, "cubic", 0, Limit::SenderCpu);
    let spare = |cores: u32| {
        let mut run = run(&spec(), 0);
        let idle = linerate_model::CoreUse { idle: linerate_units::Nanos::from_secs(1), ..Default::default() };
        for host in run.hosts.values_mut() {
            host.cores = (0..cores).map(|core| linerate_model::CoreUse { core, ..idle }).collect();
        }
        run
    };
    let of = |cell: &Trial, cores| tests_of(cell, &result, &[&spare(cores)], &[]);
    assert_eq!(stream(&of(&cell, 3)[0]).net.flows, 4);
    assert_eq!(stream(&of(&cell, 0)[0]).net.flows, 1, "no core is idle");
    stream_of(&mut cell).message_bytes = ByteCount::new(1_000);
    let larger = of(&cell, 3).remove(0);
    assert_eq!((stream(&larger).message_bytes.get(), stream(&larger).net.flows), (LARGE_MESSAGE, 1));
}

#[test]
fn what_ran_into_another_limit_does_not_speak_against_the_first() {
    let cell = tcp_cell();
    let result = tcp_result(&cell, "cubic", 0, Limit::Window);
    let test = tests_between(&cell, &result, &["cubic"]).remove(0);
    let after = |limit| settled(&result, &[(&test, &result, &tcp_result(&test, "cubic", 0, limit))]).confidence;
    assert_eq!(after(Limit::Window), Confidence::Low);
    assert_eq!(after(Limit::Wire), Confidence::Medium);
}

#[test]
fn the_calibration_is_the_test_of_a_device_and_a_tester() {
    let cell = tcp_cell();
    let mut result = tcp_result(&cell, "cubic", 0, Limit::Device);
    let reached = crate::statistics::summary(vec![1e9]).expect("one run");
    result.tester_limit = Some(TesterLimit {
        record: RecordId("bypassed".into()),
        bypass: Bypass::Cable,
        interleaved: false,
        age: Nanos::default(),
        reached,
        share: 0.1,
    });
    let mut results = [result];
    settle(&[], &mut results);
    let [proof] = &results[0].verdict.proofs[..] else { panic!("{:#?}", results[0].verdict) };
    assert_eq!((proof.by.as_str(), proof.after, proof.held), ("bypassed", 1e9, Some(true)));
}

#[test]
fn a_counterproof_changes_one_thing() {
    let cell = cell();
    let result = measured(&cell, 0);
    let with = |limit| {
        let verdict = Verdict::new(limit, Confidence::Medium, Vec::new());
        tests_of(&cell, &Measurement { verdict, ..result.clone() }, &[&run(&cell, 0)], &[])
    };
    let own = stream(&cell).clone();
    let buffer = stream(&with(Limit::ReceiverBuffer)[0]).clone();
    assert!(buffer.net.socket.receive_buffer.is_some());
    assert_eq!(StreamTask { net: own.net.clone(), ..buffer }, own);
    let larger = with(Limit::SenderCpu).remove(0);
    assert_eq!(stream(&larger).message_bytes.get(), 2 * own.message_bytes.get());
    assert_eq!(with(Limit::CannotTell), []);
}

#[test]
fn more_calls_at_a_time_are_inconclusive_on_a_line_that_is_nearly_full() {
    use linerate_model::{IpVersion, PathLimit, RpcCall, RpcTask};
    let calls = RpcTask::plain(Transport::Tcp, RpcCall::Write, ByteCount::new(8_192));
    let at = |share| {
        let line_bps = BitRate::per_second(100_000_000);
        let payload_bps = PathLimit::payload_of(line_bps, Transport::Tcp, IpVersion::V4, 8_192, 1500);
        let line = PathLimit { line_bps, mtu: 1500, payload_bps, share, half_duplex: false };
        task::rpc::proof::test(&calls, Limit::Latency, Some(&line))
    };
    let more = at(0.5).expect("there is room");
    assert_eq!(more.task, Task::Rpc(RpcTask { outstanding: 8, ..calls.clone() }));
    assert!(at(0.9).is_none());
}

/// Three pairs of one run each, of the first test that `result` is put to.
fn first_tested(result: &Measurement, test: &Trial, after: &Measurement) -> Verdict {
    settled(result, &[(test, result, after)])
}

#[test]
fn a_starved_return_path_is_slower_in_the_other_direction() {
    let cell = tcp_cell();
    let mut result = tcp_result(&cell, "cubic", 0, Limit::Shaper);
    result.verdict.place = Some(linerate_model::LimitPlace::ReturnPath);
    let tests = tests_between(&cell, &result, &["cubic"]);
    assert_eq!((tests.len(), stream(&tests[0]).direction), (2, Direction::Receive));
    let mut pinned = cell.clone();
    stream_of(&mut pinned).net.socket.sender_cpus = vec![0];
    assert_eq!(stream(&tests_between(&pinned, &result, &["cubic"])[0]).direction, Direction::Send);
    let after = |times: f64| {
        let mut after = tcp_result(&tests[0], "cubic", 0, Limit::Shaper);
        after.main.median *= times;
        first_tested(&result, &tests[0], &after)
    };
    assert_eq!((after(0.1).confidence, after(1.0).confidence), (Confidence::High, Confidence::Low));
    assert!(after(1.0).evidence.concat().contains("which shows that the return path carries as much"));
}

#[test]
fn packets_of_half_the_size_tell_a_limit_of_packets_from_one_of_bits() {
    let mut cell = cell();
    stream_of(&mut cell).message_bytes = ByteCount::new(1_400);
    let verdict = Verdict::new(Limit::Shaper, Confidence::High, Vec::new());
    let result = Measurement { verdict, ..measured(&cell, 5_000) };
    let tests = tests_of(&cell, &result, &[&run(&cell, 5_000)], &[]);
    let [below, smaller] = &tests[..] else { panic!("two tests: {tests:#?}") };
    assert_eq!(below.proves.as_ref().map(|test| test.expects), Some(Expects::LossGoes));
    assert_eq!((stream(smaller).message_bytes.get(), stream(smaller).offered), (700, stream(&cell).offered));
    let on_wire = |bps: f64| {
        let mut result = thrice(&result);
        figures(&mut result).received.wire_bps = crate::statistics::summary(vec![bps; 3]);
        result
    };
    let after = |bps| settled(&result, &[(smaller, &on_wire(50e6), &on_wire(bps))]);
    // Both are shapers: neither outcome speaks against it.
    for (bps, said) in [(51e6, "as it must be"), (27e6, "which shows a limit of packets, not of bits")] {
        let verdict = after(bps);
        assert_eq!((verdict.limit, verdict.confidence), (Limit::Shaper, Confidence::High));
        assert!(verdict.evidence.concat().contains(said), "{verdict:#?}");
    }
    stream_of(&mut cell).message_bytes = ByteCount::new(256);
    assert_eq!(tests_of(&cell, &result, &[&run(&cell, 5_000)], &[]).len(), 1);
}

#[test]
fn loss_of_nearly_all_large_datagrams_is_tested_with_smaller_ones() {
    let mut cell = cell();
    stream_of(&mut cell).message_bytes = ByteCount::new(1_400);
    let result = measured(&cell, 9_900);
    let verdict = |limit| Verdict::new(limit, Confidence::Medium, Vec::new());
    let lost = |limit| Measurement { verdict: verdict(limit), ..result.clone() };
    let of = |limit| tests_of(&cell, &lost(limit), &[&run(&cell, 9_900)], &[]);
    let small = of(Limit::Shaper).remove(0);
    assert_eq!(stream(&small).message_bytes.get(), 1_232);
    assert!(of(Limit::PathLoss).contains(&small));
    let after = |lost_then| first_tested(&lost(Limit::Shaper), &small, &measured(&small, lost_then));
    // That small ones are lost too says nothing for a shaper.
    let all = after(9_900);
    assert_eq!((all.confidence, all.proofs[0].held), (Confidence::Medium, Some(true)));
    assert!(all.evidence.concat().contains("which rules out that the path loses large packets only"), "{all:#?}");
    let none = after(0);
    assert_eq!((none.limit, none.confidence), (Limit::MtuBlackHole, Confidence::Medium));
    assert_eq!((none.place, none.proofs[0].held), (Some(LimitPlace::ForwardPath), Some(false)));
    assert!(none.evidence.concat().contains("which shows that the path loses large packets only"), "{none:#?}");
}

#[test]
fn a_black_hole_of_large_packets_is_sure_once_smaller_ones_arrive() {
    let mut cell = cell();
    stream_of(&mut cell).message_bytes = ByteCount::new(1_472);
    let verdict = Verdict::new(Limit::MtuBlackHole, Confidence::Medium, Vec::new());
    let result = Measurement { verdict, ..measured(&cell, 10_000) };
    let small = tests_of(&cell, &result, &[&run(&cell, 10_000)], &[]).remove(0);
    assert_eq!(stream(&small).message_bytes.get(), 1_232);
    let after = |lost_then| first_tested(&result, &small, &measured(&small, lost_then));
    assert_eq!((after(0).limit, after(0).confidence), (Limit::MtuBlackHole, Confidence::High));
    assert_eq!(after(10_000).confidence, Confidence::Low);
}

#[test]
fn a_processor_without_a_spare_core_is_tested_in_the_other_role() {
    let cell = tcp_cell();
    let result = tcp_result(&cell, "cubic", 0, Limit::ReceiverCpu);
    let swapped = tests_of(&cell, &result, &[&run(&spec(), 0)], &[]).remove(0);
    assert_eq!(stream(&swapped).direction, Direction::Receive);
    let after = |named| first_tested(&result, &swapped, &tcp_result(&swapped, "cubic", 0, named));
    // The same host sends now.
    let moved = after(Limit::SenderCpu);
    assert_eq!((moved.confidence, moved.proofs[0].held), (Confidence::High, Some(true)));
    assert!(moved.evidence.concat().contains("and limited by the sender's CPU"), "{moved:#?}");
    let other = after(Limit::ReceiverCpu);
    assert_eq!((other.confidence, other.proofs[0].held), (Confidence::Medium, None));
}

#[test]
fn soft_interrupts_carry_more_in_larger_datagrams() {
    let of = |bytes| {
        let mut cell = cell();
        stream_of(&mut cell).message_bytes = ByteCount::new(bytes);
        let verdict = Verdict::new(Limit::SoftirqCpu, Confidence::Medium, Vec::new());
        let result = Measurement { verdict, ..measured(&cell, 0) };
        let tests = tests_of(&cell, &result, &[&run(&cell, 0)], &[]);
        tests.first().map(|test| (stream(test).message_bytes.get(), test.proves.as_ref().map(|test| test.expects)))
    };
    assert_eq!(of(256), Some((512, Some(Expects::Rise))));
    assert_eq!(of(1_000), None, "twice that is cut into fragments");
}
