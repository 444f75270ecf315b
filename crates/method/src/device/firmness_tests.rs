//! Device tests whose tester offers less than the intended load: they never find a firm rate above the device's own.

use super::tests::{frames_of, next, plan};
use super::*;
use crate::simulation::{self, Network, Shortfall};
use linerate_model::{Confidence, Firmness, Limit, SearchGoal};
use linerate_units::BitRate;
use proptest::prelude::*;

/// A device that forwards so many frames/s and holds none back.
fn network(device: u64, shortfall: Option<Shortfall>) -> Network {
    let rate = FrameRate::per_second(device);
    let device = simulation::Device { rate, ..Network::default().device };
    Network { device, shortfall, tester: FrameRate::per_second(100_000_000), ..Network::default() }
}

fn above(rate: u64, share: f64, held_up: bool) -> Shortfall {
    Shortfall { above: FrameRate::per_second(rate), share, held_up }
}

/// One size over a line of 10 Gbit/s: 14,880,952 frames/s.
fn of(test: DeviceTest) -> DevicePlan {
    let mut plan = plan(test, false);
    plan.sizes.truncate(1);
    plan
}

/// What is found where the network may be another one in each trial.
fn found(plan: &DevicePlan, mut in_trial: impl FnMut(u64) -> Network) -> DeviceFound {
    let mut test = Device::new(plan, &[]);
    let mut trials = 0;
    while let Some(trial) = next(&test) {
        assert!(trials < 400, "a test must end");
        let result = in_trial(trials).attempt(&trial, 0).expect("its hosts count");
        test.record(&result);
        trials += 1;
    }
    test.found
}

/// A rate that is firm is what the device carries; one that is not lies below, and is not blamed on the device.
fn check(cell: &Throughput, device: u64) -> Result<(), TestCaseError> {
    // Half a frame that is lost, or not sent, is none.
    let carried = device as f64 + 2.0;
    prop_assert!(cell.frames_per_s <= carried, "{} of {device}: {cell:?}", cell.frames_per_s);
    prop_assert!(cell.lost_at_frames_per_s.is_none_or(|lost| lost > device as f64 - 2.0), "{cell:?}");
    match cell.firmness {
        Firmness::Firm => {
            let at_line = cell.line_share.is_some_and(|share| share >= 0.99);
            prop_assert!(at_line || cell.frames_per_s >= device as f64 * 0.94 - 2.0, "{device}: {cell:?}");
        }
        Firmness::NotFirm { .. } => {
            prop_assert!(matches!(cell.limit, Limit::Tester | Limit::CannotTell), "{cell:?}");
            prop_assert!(cell.verdict.confidence <= Confidence::Medium, "{cell:?}");
        }
    }
    let every = cell.verdict.evidence.iter().any(|text| text.contains("every frame"));
    prop_assert!(!every, "{:?}", cell.verdict);
    Ok(())
}

fn tests() -> impl Strategy<Value = DeviceTest> {
    let goals = |goals: &[SearchGoal]| DeviceTest::Goals { goals: goals.to_vec() };
    prop_oneof![
        Just(DeviceTest::Throughput),
        Just(goals(&[SearchGoal::Rfc2544])),
        Just(goals(&[SearchGoal::Rfc2544, SearchGoal::Ndr])),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Above some rate the tester offers a share only. The device's limit lies above or below that.
    #[test]
    fn a_firm_rate_is_never_above_what_the_device_carries(
        device in 2_000u64..16_000_000,
        limit in 1_000u64..16_000_000,
        share in 0.02f64..1.0,
        held_up: bool,
        test in tests(),
    ) {
        let short = above(limit, share, held_up);
        for cell in &found(&of(test), |_| network(device, Some(short))).throughput {
            check(cell, device)?;
        }
    }

    /// In some trials, whatever their load, the tester is held up for a part of the time.
    #[test]
    fn nor_is_it_where_trials_are_held_up_by_chance(
        device in 2_000u64..16_000_000,
        seed: u64,
        often in 0u64..=100,
        test in tests(),
    ) {
        let draw = |trial: u64| {
            let mixed = (seed ^ trial).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
            mixed.wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 33
        };
        let in_trial = |trial| {
            let drawn = draw(trial);
            let share = 0.3 + (drawn / 100 % 700) as f64 / 1_000.0;
            network(device, (drawn % 100 < often).then(|| above(0, share, true)))
        };
        for cell in &found(&of(test), in_trial).throughput {
            check(cell, device)?;
        }
    }
}

#[test]
fn a_tester_that_offers_more_than_the_device_carries_finds_it_firmly() {
    for (device, share) in [(100_000, 0.6), (100_000, 0.1), (3_000_000, 0.8)] {
        for test in [DeviceTest::Throughput, DeviceTest::Goals { goals: vec![SearchGoal::Rfc2544] }] {
            let short = above(device * 3 / 2, share, true);
            let found = found(&of(test), |_| network(device, Some(short)));
            let cell = &found.throughput[0];
            assert!(cell.firmness.is_firm() && cell.frames_per_s >= device as f64 * 0.99, "{cell:?}");
        }
    }
}

/// The faulty record: 607,889 of 744,048 frames sent, and 101,182 frames/s through a device of 100,000.
#[test]
fn a_rate_whose_last_trial_was_held_up_is_a_lower_bound_of_what_was_sent() {
    let plan = of(DeviceTest::Throughput);
    let found = {
        let mut test = Device::new(&plan, &[]);
        while let Some(trial) = next(&test) {
            // Short trials are offered, the one that is to confirm their answer is not.
            let long = frames_of(&trial).time >= plan.final_time;
            let short = long.then(|| above(0, 0.6, true));
            test.record(&network(100_000, short).attempt(&trial, 0).expect("its hosts count"));
        }
        test.found
    };
    let cell = &found.throughput[0];
    assert!((cell.frames_per_s / 60_000.0 - 1.0).abs() < 0.005, "{cell:?}");
    assert!(cell.firmness.offered().is_some_and(|share| (share - 0.6).abs() < 0.001), "{:?}", cell.firmness);
    assert_eq!((cell.limit, cell.verdict.confidence), (Limit::Tester, Confidence::Medium));
    // The loss that was seen at loads that were offered is still known.
    assert!(cell.lost_at_frames_per_s.is_some_and(|lost| (lost / 100_000.0 - 1.0).abs() < 0.01), "{cell:?}");
    let text = &cell.verdict.evidence[0];
    assert!(text.contains("the tester sent 119,") && text.contains("60.0 % of the rate"), "{text}");
}

#[test]
fn parts_that_were_not_offered_are_not_firm() {
    let test = DeviceTest::All { step_percent: 10, repeats: 2 };
    let always = |held_up| above(0, 0.9, held_up);
    for held_up in [false, true] {
        let found = found(&of(test.clone()), |_| network(200_000, Some(always(held_up))));
        assert!(!found.throughput[0].firmness.is_firm() && !found.latency[0].firmness.is_firm(), "{found:?}");
        assert!(found.latency[0].verdict.as_ref().is_some_and(|verdict| verdict.limit == Limit::Tester));
        assert_eq!(found.loss[0].points.len(), 10, "no trial counts as one without loss");
        assert!(found.loss[0].points.iter().all(|point| !point.firmness.is_firm()));
        assert!(!found.recovery[0].firmness.is_firm() && !found.burst[0].firmness.is_firm());
        assert!(found.burst[0].frames.is_none(), "no buffer follows from a throughput that is not firm");
        for verdict in [&found.recovery[0].verdict, &found.burst[0].verdict].into_iter().flatten() {
            assert!(verdict.limit == Limit::Tester && verdict.confidence <= Confidence::Medium, "{verdict:?}");
        }
    }
}

#[test]
fn a_calibration_is_as_firm_as_the_tester_is_undisturbed() {
    let of = |held_up| {
        let network = network(u64::MAX / 1_000_000, Some(above(500_000, 0.5, held_up)));
        found(&of(DeviceTest::Calibrate), |_| network.clone()).throughput.remove(0)
    };
    let slow = of(false);
    assert!(slow.firmness.is_firm() && (slow.frames_per_s / 500_000.0 - 1.0).abs() < 0.01, "{slow:?}");
    assert_eq!((slow.limit, slow.verdict.confidence), (Limit::Tester, Confidence::High));
    let busy = of(true);
    assert!(!busy.firmness.is_firm() && busy.verdict.confidence == Confidence::Medium, "{busy:?}");
}

#[test]
fn echoes_are_searched_no_less_firmly() {
    let mut echo = of(DeviceTest::Echo { target: "198.18.0.254".parse().expect("an address") });
    echo.directions[0].to = 0;
    echo.line = Some(BitRate::per_second(1_000_000_000));
    let found = found(&echo, |_| network(5_000, Some(above(2_000, 0.5, true))));
    let cell = &found.echo[0];
    assert!(!cell.firmness.is_firm() && cell.answers_per_s <= 5_000.0, "{cell:?}");
    assert_eq!((cell.limit, cell.lost_at_requests_per_s), (Limit::Tester, None));
}
