//! Searches are compared as sessions and as pairs, and what is not firm decides only what it can.

use super::judge::{Figure, compared};
use super::runs::Runs;
use super::*;
use crate::device::tests::plan;
use linerate_model::{
    AddressTable, BackToBack, BufferTime, BurstLengths, Change, ComparedFigure, DeviceFound, DeviceTest, Firmness,
    Goal, Outcome, Plan, RecordId, Recovery, Throughput,
};
use linerate_units::{FrameRate, Nanos};

const SHORT: Firmness = Firmness::NotFirm { offered: Some(0.6) };

/// A throughput test that found this rate at one frame size.
fn searched(frames_per_s: f64, firmness: Firmness) -> Record {
    let mut plan = plan(DeviceTest::Throughput, false);
    plan.sizes.truncate(1);
    let found = crate::device::tests::run(plan.clone(), 200_000, 4_000_000, &[]);
    let throughput = found.throughput.iter().take(1).cloned();
    let throughput = throughput.map(|cell| Throughput { frames_per_s, firmness, ..cell }).collect();
    let outcome = Outcome::Device(Box::new(DeviceFound { throughput, ..DeviceFound::default() }));
    Record { outcome, ..Record::new(RecordId("r".into()), Plan::of(Goal::Device(plan))) }
}

fn side(rates: [f64; 4], firmness: Firmness) -> Vec<Record> {
    rates.iter().map(|rate| searched(*rate, firmness)).collect()
}

const LOW: [f64; 4] = [100_000.0, 100_100.0, 99_900.0, 100_050.0];
const HIGH: [f64; 4] = [120_000.0, 120_100.0, 119_900.0, 120_050.0];

fn only(found: Comparison) -> ComparedFigure {
    let [figure] = <[_; 1]>::try_from(found.figures).expect("one figure");
    figure
}

#[test]
fn searches_made_in_turn_are_pairs() {
    let demands = Demands::once(0.02, 95.0);
    let found = |old: Vec<Record>, new: Vec<Record>| only(compare_searches(&old, &new, &demands));
    let firm = Firmness::Firm;
    let rise = found(side(LOW, firm), side(HIGH, firm));
    assert_eq!((rise.change, rise.name.as_str(), rise.before.runs), (Change::Better, "throughput 64", 4));
    assert_eq!(found(side(HIGH, firm), side(LOW, firm)).change, Change::Worse);
    assert_eq!(found(side(LOW, firm), side(LOW, firm)).change, Change::Equivalent);
    // A search without its partner is left out.
    assert_eq!(found(side(LOW, firm), side(HIGH, firm)[..3].to_vec()).before.runs, 3);
}

#[test]
fn several_searches_of_each_side_are_sessions_and_one_shows_no_spread() {
    let demands = Demands::once(0.02, 95.0);
    let (old, new) = (side(LOW, Firmness::Firm), side(HIGH, Firmness::Firm));
    let all = compare(&old, &new, &demands);
    assert_eq!((all.samples, only(all.clone()).change), (Samples::Sessions, Change::Better));
    let one = only(compare(&old[..1], &new[..1], &demands));
    assert_eq!((one.change, one.p, one.before.median), (Change::Undecided, None, 100_000.0));
    assert!(all.remarks.is_empty(), "{:?}", all.remarks);
}

#[test]
fn a_lower_bound_is_never_worse_nor_the_same() {
    let demands = Demands::once(0.02, 95.0);
    let change = |old: ([f64; 4], Firmness), new: ([f64; 4], Firmness)| {
        let figure = only(compare_searches(&side(old.0, old.1), &side(new.0, new.1), &demands));
        assert_eq!((figure.before_firmness, figure.after_firmness), (old.1, new.1));
        assert!(figure.needed.is_none(), "more searches of the same decide nothing: {figure:?}");
        figure.change
    };
    let firm = Firmness::Firm;
    assert_eq!(change((LOW, firm), (HIGH, SHORT)), Change::Better, "it is at least so high");
    assert_eq!(change((HIGH, firm), (LOW, SHORT)), Change::Undecided, "it may be higher");
    assert_eq!(change((LOW, firm), (LOW, SHORT)), Change::Undecided);
    assert_eq!(change((HIGH, SHORT), (LOW, firm)), Change::Worse, "it was at least so high");
    assert_eq!(change((LOW, SHORT), (HIGH, firm)), Change::Undecided, "it may have been higher");
    assert_eq!(change((LOW, SHORT), (HIGH, SHORT)), Change::Undecided);
}

/// A test that found this of all that is beyond rates, each at 64 bytes.
fn beyond_rates(value: f64) -> Record {
    let mut plan = plan(DeviceTest::Throughput, false);
    plan.sizes.truncate(1);
    let (frame_bytes, firmness, caveats) = (64, Firmness::Firm, Vec::new());
    let burst = BackToBack {
        frame_bytes,
        throughput_frames_per_s: 1e5,
        burst_frames_per_s: None,
        line_frames_per_s: None,
        frames: Some(BurstLengths { mean: value, min: 0, max: 0, deviation: 0.0, values: Vec::new() }),
        firmness,
        buffer: Some(BufferTime { implied_ns: value, corrected_ns: value, frames: value }),
        verdict: None,
        caveats: caveats.clone(),
    };
    let recovery = Recovery {
        frame_bytes,
        throughput_frames_per_s: 1e5,
        overload_frames_per_s: 1.1e5,
        firmness,
        overload_lost: 1,
        reduced_frames_per_s: 5e4,
        values_ns: Vec::new(),
        mean_ns: Some(value),
        unrecovered: 0,
        verdict: None,
        caveats,
    };
    let found = DeviceFound { burst: vec![burst], recovery: vec![recovery], ..DeviceFound::default() };
    let outcome = Outcome::Device(Box::new(found));
    Record { outcome, ..Record::new(RecordId("r".into()), Plan::of(Goal::Device(plan))) }
}

#[test]
fn what_is_beyond_rates_is_compared_by_what_is_better_of_it() {
    let side = |scale: f64| -> Vec<Record> { LOW.iter().map(|value| beyond_rates(value * scale)).collect() };
    let found = compare_searches(&side(1.0), &side(1.5), &Demands::once(0.02, 95.0));
    let changes: Vec<_> =
        found.figures.iter().map(|figure| (figure.name.as_str(), figure.quantity, figure.change)).collect();
    let expected = [
        ("burst 64", Quantity::Held, Change::Better),
        ("buffer 64", Quantity::BufferNs, Change::Better),
        ("recovery 64", Quantity::RecoveryNs, Change::Worse),
    ];
    assert_eq!(changes, expected);
}

#[test]
fn a_latency_of_a_load_that_was_not_offered_decides_nothing() {
    let runs = |mean: f64, firmness| Runs { values: vec![mean, mean * 1.01, mean * 0.99], resolution: 0.0, firmness };
    let change = |firmness| {
        let (old, new) = (runs(1e6, Firmness::Firm), runs(2e6, firmness));
        let figure = Figure::of_runs("latency 64", Quantity::LatencyP99Ns, &old, &new);
        compared(vec![figure], 0.02, 0.05).remove(0).change
    };
    assert_eq!((change(Firmness::Firm), change(SHORT)), (Change::Worse, Change::Undecided));
}

#[test]
fn tables_that_held_all_that_was_tried_are_not_shown_to_be_equal() {
    let record = |flooded_at| {
        let test =
            DeviceTest::Addresses { most: 1_000, learn_rate: FrameRate::per_second(10_000), ageing: Nanos::default() };
        let mut plan = plan(test, false);
        plan.sizes.truncate(1);
        let table = AddressTable {
            frame_bytes: 64,
            learned: 1_000,
            firmness: Firmness::Firm,
            own: 3,
            capacity: 1_003,
            flooded_at,
            learn_frames_per_s: 1e4,
            learning: None,
            trials: 2,
            iterations: Vec::new(),
            verdict: None,
            caveats: Vec::new(),
        };
        let outcome = Outcome::Device(Box::new(DeviceFound { addresses: Some(table), ..DeviceFound::default() }));
        Record { outcome, ..Record::new(RecordId("r".into()), Plan::of(Goal::Device(plan))) }
    };
    let change = |at| {
        let side = || [(); 4].map(|()| record(at));
        only(compare(&side(), &side(), &Demands::once(0.02, 95.0))).change
    };
    assert_eq!((change(Some(1_001)), change(None)), (Change::Equivalent, Change::Undecided));
}
