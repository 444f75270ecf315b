//! The device test against simulated devices of known limits.

use super::*;
use crate::calibrated;
use crate::simulation::{self, Network};
use linerate_model::{
    Confidence, Counts, Firmness, FrameCounts, FrameEngine, FrameHeaders, FramePayload, Goal, Limit, Mac, Observation,
    Plan, PortPair, RecordId, Standing,
};
use linerate_units::{BitRate, Ratio};
use std::collections::BTreeMap;

fn headers() -> FrameHeaders {
    FrameHeaders {
        source_mac: Mac([2, 0, 0, 0, 0, 1]),
        destination_mac: Mac([2, 0, 0, 0, 0, 2]),
        vlans: Vec::new(),
        priority: 0,
        dscp: 0,
        source: "198.18.0.1".parse().expect("an address"),
        destination: "198.18.0.2".parse().expect("an address"),
        payload: FramePayload::Udp { source_port: 7, destination_port: 7 },
    }
}

pub(crate) fn plan(test: DeviceTest, both: bool) -> DevicePlan {
    let pair = |from, to| PortPair { from, to, copies_to: Vec::new(), headers: headers() };
    DevicePlan {
        test,
        host: "tester".into(),
        ports: vec!["p0".into(), "p1".into()],
        pattern: linerate_model::PortPattern::Pairs,
        directions: if both { vec![pair(0, 1), pair(1, 0)] } else { vec![pair(0, 1)] },
        sizes: [64, 512, 1518].map(|size| FrameSize::with_fcs(size).expect("a size")).to_vec(),
        line: Some(BitRate::per_second(10_000_000_000)),
        search_time: Nanos::from_millis(300),
        final_time: Nanos::from_secs(2),
        settle: Nanos::from_millis(10),
        loss: Ratio::new(0, 1),
        width: Ratio::new(1, 500),
        engine: FrameEngine::Auto,
    }
}

/// Forwards at most `device` frames/s; the tester sends at most `tester`.
pub(crate) fn simulate(trial: Trial, device: u64, tester: u64) -> TrialResult {
    let (rate, latency) = (FrameRate::per_second(device), Nanos::new(1_000));
    let device = simulation::Device { rate, latency, ..Network::default().device };
    let network = Network { device, tester: FrameRate::per_second(tester), ..Network::default() };
    network.attempt(&trial, 0).expect("its hosts count")
}

/// What XDP counted of each stream of `trial`.
pub(crate) fn counted(trial: Trial, streams: Vec<FrameStreamCounts>) -> TrialResult {
    TrialResult {
        trial,
        attempt: 0,
        standing: Standing::Counted,
        started_unix_ns: 0,
        span: None,
        counts: vec![Counts::Frames(FrameCounts { engine: FrameEngine::Xdp, streams })],
        hosts: BTreeMap::from([("tester".into(), Observation::default())]),
        series: Vec::new(),
        clocks: BTreeMap::new(),
        outages: Vec::new(),
        device_load: None,
        caveats: Vec::new(),
    }
}

/// The streams of a result, to be changed.
pub(crate) fn streams_of(result: &mut TrialResult) -> &mut Vec<FrameStreamCounts> {
    match result.counts.first_mut() {
        Some(Counts::Frames(counts)) => &mut counts.streams,
        other => panic!("no frames: {other:?}"),
    }
}

/// What a trial sends.
pub(crate) fn frames_of(trial: &Trial) -> &FramesTask {
    match trial.task() {
        Task::Frames(task) => task,
        other => panic!("no frames: {other:?}"),
    }
}

/// The next trial of a test.
pub(crate) fn next(test: &Device) -> Option<Trial> {
    match test.next() {
        Step::Run { trial, .. } => Some(*trial),
        Step::Done => None,
    }
}

/// Why a trial should be run again.
fn spoilt(result: &TrialResult) -> Option<Caveat> {
    crate::frames::spoilt(&result.frames().expect("frames"))
}

pub(crate) fn run(plan: DevicePlan, device: u64, tester: u64, calibration: &[Calibrated]) -> DeviceFound {
    let mut test = Device::new(&plan, calibration);
    let mut trials = 0;
    while let Some(trial) = next(&test) {
        assert_eq!(next(&test).as_ref(), Some(&trial), "asking again changes nothing");
        test.record(&simulate(trial, device, tester));
        trials += 1;
        assert!(trials < 200, "a test must end");
    }
    test.found
}

/// A record with what the tester reaches at each size.
fn calibration(tester: u64) -> Record {
    let plan = plan(DeviceTest::Calibrate, false);
    let found = run(plan.clone(), u64::MAX / 1_000_000, tester, &[]);
    let outcome = Outcome::Device(Box::new(found));
    Record { outcome, ..Record::new(RecordId("calibration".into()), Plan::of(Goal::Device(plan))) }
}

#[test]
fn the_planted_rate_is_found_and_the_device_named() {
    let tester_limit = calibration(4_000_000);
    for both in [false, true] {
        let found = run(plan(DeviceTest::Throughput, both), 200_000, 4_000_000, &calibrated(&tester_limit));
        for cell in &found.throughput {
            assert!((cell.frames_per_s / 200_000.0 - 1.0).abs() < 0.005, "{cell:?}");
            assert_eq!(cell.limit, Limit::Device, "{:?}", cell.verdict);
            assert_eq!(cell.directions.len(), if both { 2 } else { 1 });
        }
        assert_eq!(found.throughput.len(), 3);
    }
}

/// The tester stumbles just above the device's limit, and has shown far above it that it can send more.
#[test]
fn a_stumble_of_the_tester_does_not_hide_the_device() {
    let tester_limit = calibration(4_000_000);
    let mut test = Device::new(&plan(DeviceTest::Throughput, false), &calibrated(&tester_limit));
    while let Some(trial) = next(&test) {
        let mut result = simulate(trial, 200_000, 4_000_000);
        let time = frames_of(&result.trial).time.get();
        let stream = &mut streams_of(&mut result)[0];
        if (200_001..201_500).contains(&(stream.intended * 1_000_000_000 / time)) {
            stream.sent = stream.intended * 98 / 100;
            stream.received = stream.sent;
        }
        test.record(&result);
    }
    // At the other sizes the search begins where it stumbles.
    let cell = &test.found.throughput[0];
    assert!(cell.frames_per_s <= 200_000.0 && cell.firmness.is_firm(), "{cell:?}");
    assert_eq!(cell.limit, Limit::Device, "{:?}", cell.verdict);
}

#[test]
fn the_testers_own_limit_is_never_the_devices() {
    let tester_limit = calibration(400_000);
    assert!(
        tester_limit
            .device()
            .into_iter()
            .flat_map(|(_, found)| &found.throughput)
            .take(2)
            .all(|cell| cell.limit == Limit::Tester)
    );
    let found = run(plan(DeviceTest::Throughput, false), 100_000_000, 400_000, &calibrated(&tester_limit));
    assert!(found.throughput.iter().all(|cell| cell.limit != Limit::Device), "{found:?}");
    assert_eq!(found.throughput[0].firmness, Firmness::NotFirm { offered: None }, "no trial fell short");
    assert_eq!(found.throughput[0].verdict.confidence, Confidence::Medium);
    // Uncalibrated, the shortfall of the trial that failed gives it away.
    let found = run(plan(DeviceTest::Throughput, false), 100_000_000, 400_000, &[]);
    assert_eq!(found.throughput[0].limit, Limit::Tester, "{:?}", found.throughput[0].verdict);
    let kinds: BTreeMap<_, _> = found.throughput[0].caveats.iter().map(|c| (c.kind, &c.text)).collect();
    assert!(kinds.contains_key(&CaveatKind::NotCalibrated));
}

#[test]
fn a_full_line_is_the_wire() {
    let found = run(plan(DeviceTest::Throughput, false), 100_000_000, 100_000_000, &[]);
    let cell = &found.throughput[2];
    assert_eq!((cell.limit, cell.frames_per_s), (Limit::Wire, 812_744.0));
    assert_eq!(cell.line_share, Some(1.0));
}

#[test]
fn a_rate_that_only_a_queue_took_up_has_a_caveat() {
    let queued = |times| {
        let mut test = Device::new(&plan(DeviceTest::Throughput, false), &[]);
        while let Some(trial) = next(&test) {
            let mut result = simulate(trial, 400_000, 4_000_000);
            for stream in streams_of(&mut result) {
                stream.receive_time = Nanos::new((stream.send_time.get() as f64 * times) as u64);
            }
            test.record(&result);
        }
        test.found.throughput[0].caveats.iter().find(|caveat| caveat.text.contains("queue took up")).cloned()
    };
    assert_eq!(queued(1.0), None);
    let caveat = queued(1.11).expect("they arrived for longer than they were sent");
    assert_eq!(caveat.kind, CaveatKind::ShortTrial);
}

#[test]
fn latency_is_measured_at_the_throughput_or_at_the_rate_given() {
    let found = run(plan(DeviceTest::Latency { rate: None }, false), 200_000, 4_000_000, &[]);
    assert_eq!((found.throughput.len(), found.latency.len()), (3, 3));
    assert!((found.latency[0].frames_per_s / 200_000.0 - 1.0).abs() < 0.005);
    let rate = Some(FrameRate::per_second(1_000));
    let found = run(plan(DeviceTest::Latency { rate }, true), 200_000, 4_000_000, &[]);
    assert_eq!((found.throughput.len(), found.latency[0].frames_per_s), (0, 2_000.0));
}

#[test]
fn a_device_that_forwards_nothing_has_no_latency_and_says_so() {
    let rate = Some(FrameRate::per_second(1_000));
    let found = run(plan(DeviceTest::Latency { rate }, false), 0, 4_000_000, &[]);
    let cell = &found.latency[0];
    assert_eq!((found.latency.len(), cell.latency_ns.as_ref(), cell.lost), (3, None, 2_000));
    let why = cell.caveats.iter().find(|caveat| caveat.kind == CaveatKind::NotMeasured).expect("it says so");
    assert!(why.text.contains("none of the 2000 frames"), "{}", why.text);
}

#[test]
fn between_hosts_the_suite_leaves_latency_out() {
    let test = DeviceTest::All { step_percent: 10, repeats: 1 };
    let here = plan(test, false);
    let apart = DevicePlan { ports: vec!["tester:p0".into(), "other:p0".into()], ..here.clone() };
    assert!(!here.has_several_hosts() && apart.has_several_hosts());
    let [timed, untimed] = [&here, &apart].map(|plan| run(plan.clone(), 200_000, 4_000_000, &[]));
    assert_eq!((timed.latency.len(), untimed.latency.len()), (3, 0));
    assert_eq!((left_out(&here), untimed.throughput.len(), untimed.recovery.len()), (None, 3, 3));
    assert!(left_out(&apart).is_some_and(|caveat| caveat.text.contains("ports of one host")));
    assert_eq!(untimed.throughput[0].directions[0].from, "tester:p0");
}

#[test]
fn cpu_time_stolen_on_any_host_spoils_a_trial() {
    let trial = next(&Device::new(&plan(DeviceTest::Throughput, false), &[])).expect("a trial");
    let mut result = simulate(trial, 1_000_000, 100_000_000);
    assert_eq!(spoilt(&result), None);
    let stolen =
        linerate_model::CoreUse { steal: Nanos::from_millis(10), idle: Nanos::from_millis(90), ..Default::default() };
    let seen = Observation { cores: vec![stolen], ..Observation::default() };
    result.hosts.insert("b".into(), seen);
    assert_eq!(spoilt(&result).map(|caveat| caveat.kind), Some(CaveatKind::CpuStolen));
}

#[test]
fn a_loss_curve_ends_after_two_loads_without_loss() {
    let found = run(plan(DeviceTest::Loss { step_percent: 10 }, false), 500_000, 20_000_000, &[]);
    // At 1518 bytes the line carries 812,744: 100, 90, 80 and 70 % lose, 60 and 50 % do not.
    let points = &found.loss[2].points;
    assert_eq!(points.len(), 6);
    assert!((points[0].loss_ratio - (1.0 - 500_000.0 / 812_744.0)).abs() < 0.001);
    assert_eq!((points[4].loss_ratio, points[5].loss_ratio), (0.0, 0.0));
}

#[test]
fn expectations_are_held_against_each_size() {
    let outcome = run(plan(DeviceTest::Throughput, false), 1_000_000, 10_000_000, &[]);
    let judge = |text: &str, test: DeviceTest, outcome: &DeviceFound| {
        let expectation: crate::Expectation = text.parse().expect(text);
        assert!(expectation.metric().is_some_and(|metric| metric.applies_to_device(&test)), "{text}");
        expectation.judge_device(&plan(test, false), outcome).iter().map(|j| j.met).collect::<Vec<_>>()
    };
    // A million frames/s at 64 and 512 bytes, the line's 812,744 at 1518.
    for (text, met) in [
        ("frames>=990000/s", [true, true, false]),
        ("throughput>=1Gbit/s", [false, true, true]),
        ("share>=99%", [false, false, true]),
    ] {
        assert_eq!(judge(text, DeviceTest::Throughput, &outcome), met, "{text}");
    }
    let timed = DeviceTest::Latency { rate: Some(FrameRate::per_second(500_000)) };
    let outcome = run(plan(timed.clone(), false), 250_000, 10_000_000, &[]);
    for (text, met) in [("latency.p99<=2us", true), ("p50<1us", false), ("loss<=50.1%", true), ("loss<=49%", false)] {
        assert_eq!(judge(text, timed.clone(), &outcome), [met; 3], "{text}");
    }
    let curve = DeviceTest::Loss { step_percent: 10 };
    let outcome = run(plan(curve.clone(), false), 1_000_000, 100_000_000, &[]);
    assert_eq!(judge("loss<=1%", curve.clone(), &outcome), [false, false, true]);
    // A figure that is not firm shows nothing, whichever way it is compared.
    let open = run(plan(DeviceTest::Throughput, false), 1_000_000, 400_000, &[]);
    let expectation: crate::Expectation = "frames>=1".parse().expect("valid");
    let judged = expectation.judge_device(&plan(DeviceTest::Throughput, false), &open);
    assert!(judged.iter().all(|judgement| !judgement.met && judgement.text.contains("not firm")), "{judged:?}");
    // Nothing found is nothing met.
    assert_eq!(judge("loss<=100%", curve, &DeviceFound::default()), [false; 3]);
    for (text, test) in
        [("p99<1s", DeviceTest::Throughput), ("jitter<1s", timed), ("packets>=1", DeviceTest::Calibrate)]
    {
        let expectation: crate::Expectation = text.parse().expect(text);
        assert!(!expectation.metric().is_some_and(|metric| metric.applies_to_device(&test)), "{text}");
    }
}

#[test]
fn a_tester_that_was_held_up_is_told_from_one_that_is_too_slow() {
    let trial = next(&Device::new(&plan(DeviceTest::Throughput, false), &[])).expect("a trial");
    let mut result = simulate(trial, u64::MAX / 1_000_000, 10_000);
    assert!(result.frames().expect("frames").offered_share() < 0.5);
    assert_eq!(spoilt(&result), None, "running it again would not make it faster");
    let time = frames_of(&result.trial).time.get();
    for stream in streams_of(&mut result) {
        (stream.sent, stream.received) = (stream.intended, stream.intended);
        (stream.send_time, stream.held_up) = (Nanos::new(time * 10 / 9), Nanos::new(time / 9));
    }
    let reason = spoilt(&result).expect("a tenth of the time was lost");
    assert_eq!(reason.kind, CaveatKind::BelowOfferedRate);
    assert!(reason.text.contains("90.00 %") && reason.text.contains("held up"), "{}", reason.text);
}

/// Nothing sent is nothing lost, and nothing shown.
#[test]
fn a_tester_that_is_held_up_all_the_time_reaches_nothing() {
    let mut device = Device::new(&plan(DeviceTest::Calibrate, false), &[]);
    while let Some(trial) = next(&device) {
        let time = frames_of(&trial).time;
        let mut result = simulate(trial, u64::MAX / 1_000_000, 100_000_000);
        for stream in streams_of(&mut result) {
            (stream.sent, stream.received) = (0, 0);
            stream.held_up = time;
        }
        device.record(&result);
    }
    assert_eq!(device.found.throughput[0].frames_per_s, 0.0);
}

/// A tester that reaches 4,000,000 frames/s and is held up for most of each trial does not reach the line's 14,880,952.
#[test]
fn a_tester_that_is_held_up_may_be_too_slow_as_well() {
    let mut device = Device::new(&plan(DeviceTest::Calibrate, false), &[]);
    while let Some(trial) = next(&device) {
        let mut result = simulate(trial, u64::MAX / 1_000_000, 100_000_000);
        let time = frames_of(&result.trial).time.get();
        for stream in streams_of(&mut result) {
            let reached = 4_000_000 * time / 1_000_000_000;
            stream.sent = stream.intended.min(reached) * 2 / 5;
            (stream.received, stream.send_time) = (stream.sent, Nanos::new(time));
            stream.held_up = Nanos::new(time * 3 / 5);
        }
        assert!(spoilt(&result).is_some(), "a quieter time would tell");
        device.record(&result);
    }
    let found = device.found.throughput[0].frames_per_s;
    assert!(found < 6_000_000.0, "{found}");
}

/// Every trial lasts 3 % longer than it should, for the tester is held up: it never offers the rate that it is to.
#[test]
fn a_tester_that_pauses_in_every_trial_leaves_a_lower_bound() {
    for test in [DeviceTest::Throughput, DeviceTest::Goals { goals: vec![linerate_model::SearchGoal::Rfc2544] }] {
        let mut device = Device::new(&plan(test, false), &[]);
        while let Some(trial) = next(&device) {
            let mut result = simulate(trial, 1_000_000, 100_000_000);
            let time = frames_of(&result.trial).time.get();
            for stream in streams_of(&mut result) {
                (stream.send_time, stream.held_up) = (Nanos::new(time * 100 / 97), Nanos::new(time * 3 / 97));
            }
            let reason = spoilt(&result).expect("each trial is held up");
            result.caveats.push(reason);
            device.record(&result);
        }
        let found = &device.found.throughput[0];
        assert!((900_000.0..=970_000.0).contains(&found.frames_per_s), "{found:?}");
        assert!(found.firmness.offered().is_some_and(|share| (share - 0.97).abs() < 0.001), "{:?}", found.firmness);
        assert_eq!((found.limit, found.verdict.confidence), (Limit::Tester, Confidence::Medium));
        assert!(found.verdict.evidence[0].contains("at 97.0 % of their rate"), "{:?}", found.verdict);
        assert!(found.caveats.iter().any(|caveat| caveat.kind == CaveatKind::BelowOfferedRate));
        assert_eq!((found.trial_time, found.lost_at_frames_per_s), (Nanos::from_secs(2), None));
    }
}
