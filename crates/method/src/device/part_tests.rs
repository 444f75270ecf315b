//! Bursts, recovery, echo, goals and the whole suite against simulated devices of known limits.

use super::tests::{frames_of, next, plan, simulate, streams_of};
use super::*;
use linerate_model::{FrameStreamCounts, Limit, SearchGoal};

/// A device that forwards so many frames a second and holds so many back, and loses frames for so long after an overload.
#[derive(Clone, Copy)]
struct Simulated {
    device: u64,
    tester: u64,
    buffer: u64,
    recovery: Nanos,
}

const USUAL: Simulated =
    Simulated { device: 200_000, tester: 4_000_000, buffer: 1_000, recovery: Nanos::from_millis(7) };

impl Simulated {
    fn answer(&self, trial: Trial) -> TrialResult {
        let task = frames_of(&trial).clone();
        let burst = task.streams[0].count.is_some();
        let mut result = simulate(trial, self.device, self.tester);
        for (wish, stream) in task.streams.iter().zip(streams_of(&mut result)) {
            if burst {
                let rate = u128::from(wish.rate.map_or(self.tester, |rate| rate.get().min(self.tester)));
                let most = (rate * u128::from(task.time.get()) / 1_000_000_000) as u64;
                let sent = wish.count.unwrap_or(most).min(most);
                // While the burst comes in at the tester's rate, the device forwards at its own.
                let forwarded = (u128::from(sent) * u128::from(self.device) / rate) as u64;
                let gaps = u128::from(sent.saturating_sub(1)) * 1_000_000_000 / rate;
                *stream = FrameStreamCounts {
                    intended: sent,
                    sent,
                    received: sent.min(self.buffer + forwarded),
                    send_time: Nanos::new(gaps as u64),
                    ..FrameStreamCounts::default()
                };
            } else if let Some(lasts) = wish.time {
                let frames = |rate: u64| (u128::from(rate) * u128::from(lasts.get()) / 1_000_000_000) as u64;
                let rate = wish.rate.map_or(0, |rate| rate.get());
                let (intended, sent) = (frames(rate), frames(rate.min(self.tester)));
                let after = wish.after.get() > 0;
                let lost = if after { u64::from(self.recovery.get() > 0) } else { 0 };
                *stream = FrameStreamCounts {
                    intended,
                    sent,
                    received: sent.min(frames(self.device)) - lost,
                    send_time: lasts - Nanos::new(1_000),
                    last_gap: (lost > 0).then_some(self.recovery),
                    ..FrameStreamCounts::default()
                };
            }
        }
        result
    }

    fn run(&self, plan: DevicePlan) -> (DeviceFound, Vec<Trial>) {
        let (mut test, mut trials) = (Device::new(&plan, &[]), Vec::new());
        while let Some(trial) = next(&test) {
            assert_eq!(next(&test).as_ref(), Some(&trial), "asking again changes nothing");
            assert!(trials.len() < 2_000, "a test must end");
            trials.push(trial.clone());
            test.record(&self.answer(trial));
        }
        let Progress { done, at_most, known } = test.progress();
        assert_eq!((done, at_most, known.as_str()), (trials.len(), Some(trials.len()), "done"));
        (test.found, trials)
    }
}

/// A burst of B frames at R holds B (1 - T / R) frames back when it ends (RFC 9004 section 5.4).
#[test]
fn the_planted_buffer_is_found() {
    let (found, trials) = USUAL.run(plan(DeviceTest::Burst { repeats: 3 }, false));
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
    let both = Simulated { device: 100_000, buffer: 500, ..USUAL };
    let (found, _) = both.run(DevicePlan { line: None, ..plan(DeviceTest::Burst { repeats: 1 }, true) });
    // Each way of the simulated burst has a device of its own: 500 frames of buffer at 100,000 frames/s.
    let frames = found.burst[0].frames.as_ref().unwrap();
    assert!((frames.mean / 1_025.6 - 1.0).abs() < 0.02, "{frames:?}");
    assert!((found.burst[0].burst_frames_per_s.unwrap() / 8e6 - 1.0).abs() < 0.01, "{:?}", found.burst[0]);
}

#[test]
fn a_burst_no_faster_than_the_device_says_why_it_was_not_tried() {
    let fast = Simulated { device: 100_000_000, tester: 100_000_000, ..USUAL };
    let (found, trials) = fast.run(plan(DeviceTest::Burst { repeats: 3 }, false));
    assert!(trials.iter().all(|trial| trial.name.starts_with("throughput")));
    for burst in &found.burst {
        assert!(burst.frames.is_none() && burst.buffer.is_none(), "{burst:?}");
        let why = burst.caveats.iter().find(|caveat| caveat.kind == CaveatKind::NotMeasured).unwrap();
        assert!(why.text.contains("maximum frame rate"), "{why:?}");
    }
    let slow_tester = Simulated { device: 100_000_000, tester: 400_000, ..USUAL };
    let (found, _) = slow_tester.run(plan(DeviceTest::Burst { repeats: 3 }, false));
    assert_eq!(found.throughput[0].limit, Limit::Tester);
    assert!(found.burst[0].caveats.iter().any(|caveat| caveat.text.contains("the tester cannot send")));
}

#[test]
fn a_device_without_an_end_to_its_buffer_is_tried_for_two_seconds() {
    let deep = Simulated { buffer: u64::MAX / 2, ..USUAL };
    let (found, _) = deep.run(plan(DeviceTest::Burst { repeats: 2 }, false));
    let burst = &found.burst[0];
    assert_eq!(burst.frames.as_ref().map(|frames| frames.max), Some(8_000_000), "{burst:?}");
    assert!(burst.caveats.iter().any(|caveat| caveat.text.contains("may be larger")), "{:?}", burst.caveats);
}

#[test]
fn recovery_counts_from_the_fall_of_the_load() {
    let (found, trials) = USUAL.run(plan(DeviceTest::Recovery { repeats: 3 }, true));
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
    let at_once = Simulated { recovery: Nanos::new(0), ..USUAL };
    let (found, _) = at_once.run(plan(DeviceTest::Recovery { repeats: 1 }, false));
    assert_eq!((found.recovery[0].mean_ns, found.recovery[0].unrecovered), (Some(0.0), 0));
    let never = Simulated { recovery: Nanos::from_secs(2), ..USUAL };
    let (found, _) = never.run(plan(DeviceTest::Recovery { repeats: 1 }, false));
    assert_eq!((found.recovery[0].mean_ns, found.recovery[0].unrecovered), (None, 1));
    let fast = Simulated { device: 100_000_000, tester: 100_000_000, ..USUAL };
    let (found, trials) = fast.run(plan(DeviceTest::Recovery { repeats: 1 }, false));
    assert!(trials.iter().all(|trial| trial.name.starts_with("throughput")));
    assert!(found.recovery[0].caveats.iter().any(|caveat| caveat.kind == CaveatKind::NotMeasured), "{found:?}");
}

#[test]
fn a_low_limit_of_echoes_is_found_under_a_fast_line() {
    let target = "198.18.0.254".parse().unwrap();
    let mut echo = plan(DeviceTest::Echo { target }, false);
    echo.directions[0].to = 0;
    for limit in [37, 5_000] {
        let (found, _) = Simulated { device: limit, ..USUAL }.run(echo.clone());
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
    let (found, trials) = USUAL.run(asked);
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
    let (found, trials) = USUAL.run(plan(DeviceTest::All { step_percent: 10, repeats: 2 }, false));
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
    let dead = Simulated { device: 0, ..USUAL };
    let (found, trials) = dead.run(plan(DeviceTest::All { step_percent: 50, repeats: 2 }, false));
    assert!(trials.iter().all(|trial| trial.name.starts_with("throughput") || trial.name.starts_with("loss")));
    assert_eq!((found.throughput[0].frames_per_s, found.latency.len()), (0.0, 0));
    assert!(found.burst[0].caveats.iter().any(|caveat| caveat.kind == CaveatKind::NotMeasured));
    assert_eq!(found.recovery[0].mean_ns, None);
}
