//! Bursts, recovery, echo, goals and the whole suite against simulated devices of known limits.

use super::tests::{frames_of, next, plan};
use super::*;
use crate::simulation::{self, Network};
use linerate_model::{Limit, SearchGoal};

/// A device that forwards 200,000 frames/s, holds none back, and loses frames for 7 ms after an overload; a tester that sends 4
/// million.
fn usual() -> Network {
    let rate = FrameRate::per_second(200_000);
    let device = simulation::Device { rate, recovery: Nanos::from_millis(7), ..Network::default().device };
    Network { device, tester: FrameRate::per_second(4_000_000), ..Network::default() }
}

/// The same of another device.
fn with(change: impl Fn(&mut simulation::Device)) -> Network {
    let mut network = usual();
    change(&mut network.device);
    network
}

/// Device and tester reach so many frames/s.
fn reaching(device: u64, tester: u64) -> Network {
    let rate = FrameRate::per_second(device);
    Network { tester: FrameRate::per_second(tester), ..with(|planted| planted.rate = rate) }
}

fn run(network: &Network, plan: DevicePlan) -> (DeviceFound, Vec<Trial>) {
    let (mut test, mut trials) = (Device::new(&plan, &[]), Vec::new());
    while let Some(trial) = next(&test) {
        assert_eq!(next(&test).as_ref(), Some(&trial), "asking again changes nothing");
        assert!(trials.len() < 2_000, "a test must end");
        test.record(&network.attempt(&trial, 0).expect("its hosts count"));
        trials.push(trial);
    }
    let Progress { done, at_most, known } = test.progress();
    assert_eq!((done, at_most, known.as_deref()), (trials.len(), Some(trials.len()), Some("done")));
    (test.found, trials)
}

/// A burst of B frames at R holds B (1 - T / R) frames back when it ends (RFC 9004 section 5.4).
#[test]
fn the_planted_buffer_is_found() {
    let (found, trials) = run(&with(|device| device.buffer = 1_000), plan(DeviceTest::Burst { repeats: 3 }, false));
    assert_eq!((found.burst.len(), found.throughput.len()), (3, 3), "each size has a throughput and a burst");
    for burst in &found.burst {
        let buffer = burst.buffer.as_ref().unwrap_or_else(|| panic!("{burst:?}"));
        assert!((buffer.frames / 1_000.0 - 1.0).abs() < 0.02, "{burst:?}");
        assert!((buffer.corrected_ns / (1_000.0 / burst.burst_frames_per_s.unwrap() * 1e9) - 1.0).abs() < 0.02);
        let frames = burst.frames.as_ref().unwrap();
        let longest = 1_000.0 / (1.0 - 200_000.0 / burst.burst_frames_per_s.unwrap());
        assert!((frames.mean / longest - 1.0).abs() < 0.01 && frames.values.len() == 3, "{frames:?}");
        // At 1518 bytes the line carries less than the tester sends: there the maximum frame rate is what counts.
        let slower = burst.caveats.iter().any(|caveat| caveat.kind == CaveatKind::BelowOfferedRate);
        assert_eq!(slower, burst.frame_bytes == 64, "{burst:?}");
        assert!(burst.caveats.iter().any(|caveat| caveat.text.contains("--repeats 50")), "{:?}", burst.caveats);
    }
    let bursts = trials.iter().filter(|trial| trial.name.starts_with("burst"));
    assert!(bursts.clone().all(|trial| frames_of(trial).streams[0].count.is_some()));
    assert!(bursts.count() < 3 * 45, "searches go on from the answer before");
}

#[test]
fn bursts_of_both_ways_are_counted_together() {
    let tester = FrameRate::per_second(8_000_000);
    let both = Network { tester, ..with(|device| device.buffer = 1_000) };
    let (found, _) = run(&both, DevicePlan { line: None, ..plan(DeviceTest::Burst { repeats: 1 }, true) });
    let frames = found.burst[0].frames.as_ref().unwrap();
    assert!((frames.mean / 1_025.6 - 1.0).abs() < 0.02, "{frames:?}");
    assert!((found.burst[0].burst_frames_per_s.unwrap() / 8e6 - 1.0).abs() < 0.01, "{:?}", found.burst[0]);
}

/// Half of an odd number of frames goes each way, and one frame is left over: that is no burst that ran out of time.
#[test]
fn short_bursts_of_both_ways_end_where_the_buffer_does() {
    let tester = FrameRate::per_second(8_000_000);
    let both = Network { tester, ..with(|device| device.buffer = 100) };
    let (found, _) = run(&both, DevicePlan { line: None, ..plan(DeviceTest::Burst { repeats: 5 }, true) });
    for burst in &found.burst {
        assert!(burst.caveats.iter().all(|caveat| !caveat.text.contains("may be larger")), "{burst:?}");
        let frames = burst.frames.as_ref().expect("bursts were tried");
        let (least, most) = (frames.values.iter().min(), frames.values.iter().max());
        assert!(
            frames.values.len() == 5 && least.zip(most).is_some_and(|(least, most)| most - least <= 4),
            "{burst:?}"
        );
    }
}

#[test]
fn a_burst_no_faster_than_the_device_says_why_it_was_not_tried() {
    let fast = reaching(100_000_000, 100_000_000);
    let (found, trials) = run(&fast, plan(DeviceTest::Burst { repeats: 3 }, false));
    assert!(trials.iter().all(|trial| trial.name.starts_with("throughput")));
    for burst in &found.burst {
        assert!(burst.frames.is_none() && burst.buffer.is_none(), "{burst:?}");
        let why = burst.caveats.iter().find(|caveat| caveat.kind == CaveatKind::NotMeasured).unwrap();
        assert!(why.text.contains("maximum frame rate"), "{why:?}");
    }
    let slow_tester = reaching(100_000_000, 400_000);
    let (found, _) = run(&slow_tester, plan(DeviceTest::Burst { repeats: 3 }, false));
    assert_eq!(found.throughput[0].limit, Limit::Tester);
    assert!(found.burst[0].caveats.iter().any(|caveat| caveat.text.contains("the tester cannot send")));
}

#[test]
fn a_device_without_an_end_to_its_buffer_is_tried_for_two_seconds() {
    // In a minute it overflows, in two seconds it does not.
    let deep = with(|device| device.buffer = 8_000_000);
    let minute = DevicePlan { final_time: Nanos::from_secs(60), ..plan(DeviceTest::Burst { repeats: 2 }, false) };
    let (found, _) = run(&deep, minute);
    let burst = &found.burst[0];
    assert_eq!(burst.frames.as_ref().map(|frames| frames.max), Some(8_000_000), "{burst:?}");
    assert!(burst.caveats.iter().any(|caveat| caveat.text.contains("may be larger")), "{:?}", burst.caveats);
}

#[test]
fn recovery_counts_from_the_fall_of_the_load() {
    let (found, trials) = run(&usual(), plan(DeviceTest::Recovery { repeats: 3 }, true));
    for recovery in &found.recovery {
        assert_eq!((recovery.values_ns.len(), recovery.mean_ns), (3, Some(7e6)), "{recovery:?}");
        let throughput = recovery.throughput_frames_per_s;
        assert!((recovery.overload_frames_per_s / throughput - 1.1).abs() < 0.001, "{recovery:?}");
        assert!((recovery.reduced_frames_per_s / throughput - 0.5).abs() < 0.001, "{recovery:?}");
    }
    let trial = trials.iter().find(|trial| trial.name == "recovery 64").map(frames_of).unwrap();
    assert_eq!((trial.streams.len(), trial.time), (4, Nanos::from_secs(4)));
    assert_eq!(trial.streams[0].time, Some(Nanos::from_secs(2)));
    assert_eq!((trial.streams[3].after, trial.streams[3].from), (Nanos::from_secs(2), 1));
}

#[test]
fn a_device_that_never_recovers_is_told_from_one_that_does_at_once() {
    let at_once = with(|device| device.recovery = Nanos::new(0));
    let (found, _) = run(&at_once, plan(DeviceTest::Recovery { repeats: 1 }, false));
    assert_eq!((found.recovery[0].mean_ns, found.recovery[0].unrecovered), (Some(0.0), 0));
    let never = with(|device| device.recovery = Nanos::from_secs(2));
    let (found, _) = run(&never, plan(DeviceTest::Recovery { repeats: 1 }, false));
    assert_eq!((found.recovery[0].mean_ns, found.recovery[0].unrecovered), (None, 1));
    let fast = reaching(100_000_000, 100_000_000);
    let (found, trials) = run(&fast, plan(DeviceTest::Recovery { repeats: 1 }, false));
    assert!(trials.iter().all(|trial| trial.name.starts_with("throughput")));
    assert!(found.recovery[0].caveats.iter().any(|caveat| caveat.kind == CaveatKind::NotMeasured), "{found:?}");
}

#[test]
fn a_low_limit_of_echoes_is_found_under_a_fast_line() {
    let target = "198.18.0.254".parse().unwrap();
    let mut echo = plan(DeviceTest::Echo { target }, false);
    echo.directions[0].to = 0;
    for limit in [37, 5_000] {
        let (found, _) = run(&reaching(limit, 4_000_000), echo.clone());
        let cell = &found.echo[0];
        assert!((cell.answers_per_s / limit as f64 - 1.0).abs() < 0.01 || limit < 100, "{cell:?}");
        assert!((cell.answers_per_s - limit as f64).abs() <= (limit as f64 * 0.01).max(1.0), "{cell:?}");
        assert_eq!(cell.target, target);
        assert!(found.throughput.is_empty());
    }
}

#[test]
fn each_goal_has_its_bounds_and_its_throughput() {
    let test = DeviceTest::Goals { goals: SearchGoal::ALL.to_vec() };
    let mut asked = plan(test, false);
    asked.sizes.truncate(1);
    let (found, trials) = run(&usual(), asked);
    let names: Vec<_> = found.throughput.iter().map(|cell| cell.goal.as_ref().unwrap().name).collect();
    assert_eq!(names, SearchGoal::ALL);
    for cell in &found.throughput {
        let goal = cell.goal.as_ref().unwrap();
        let limit = if goal.name == SearchGoal::Pdr { 201_005.0 } else { 200_000.0 };
        let (lower, upper) = (goal.lower.unwrap().get() as f64, goal.upper.unwrap().get() as f64);
        assert!(lower <= limit && limit < upper && upper - lower <= upper * 0.005, "{cell:?}");
        assert!((cell.frames_per_s / 200_000.0 - 1.0).abs() < 0.005, "{cell:?}");
        assert_eq!(cell.frames_per_s, goal.conditional_throughput.unwrap().get() as f64);
        // The plan's 2 s cut the goals of 60 s, not those of 1 s.
        let cut = matches!(goal.name, SearchGoal::Rfc2544 | SearchGoal::Tst009);
        assert_eq!(cell.caveats.iter().any(|caveat| caveat.kind == CaveatKind::ShortTrial), cut, "{:?}", cell.caveats);
        assert!(!cell.directions.is_empty() && cell.lost_at_frames_per_s == Some(upper));
    }
    assert!(trials.iter().all(|trial| frames_of(trial).time <= Nanos::from_secs(2)));
}

#[test]
fn the_whole_suite_finds_the_throughput_once() {
    let (found, trials) = run(&usual(), plan(DeviceTest::All { step_percent: 10, repeats: 2 }, false));
    let lengths =
        [found.throughput.len(), found.latency.len(), found.loss.len(), found.burst.len(), found.recovery.len()];
    assert_eq!(lengths, [3; 5]);
    let order: Vec<&str> = trials.iter().filter_map(|trial| trial.name.strip_suffix(" 64")).collect();
    let mut parts = order.clone();
    parts.dedup();
    assert_eq!(parts, ["throughput", "latency", "loss", "burst", "recovery"]);
    assert_eq!(found.latency[0].frames_per_s.round(), found.throughput[0].frames_per_s.round());
}

#[test]
fn a_device_that_forwards_nothing_has_nothing_else_to_measure() {
    let dead = reaching(0, 4_000_000);
    let (found, trials) = run(&dead, plan(DeviceTest::All { step_percent: 50, repeats: 2 }, false));
    assert!(trials.iter().all(|trial| trial.name.starts_with("throughput") || trial.name.starts_with("loss")));
    assert_eq!((found.throughput[0].frames_per_s, found.latency.len()), (0.0, 0));
    assert!(found.throughput[0].caveats.iter().any(|caveat| caveat.text.starts_with("latency was not measured")));
    assert!(found.burst[0].caveats.iter().any(|caveat| caveat.kind == CaveatKind::NotMeasured));
    assert_eq!(found.recovery[0].mean_ns, None);
}
