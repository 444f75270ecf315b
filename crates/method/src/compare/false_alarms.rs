//! How often a comparison claims what is not so, counted over simulated pairs of records.

use super::judge::{Figure, judge};
use super::runs::Runs;
use crate::statistics::level_of_each;
use linerate_model::{Change, Firmness, Quantity};
use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};

const PAIRS: usize = 10_000;
const LEVEL: f64 = 0.05;
/// A rate of 1,000 with a spread of 1 % from run to run.
const RATE: f64 = 1000.0;
const SPREAD: f64 = 10.0;

struct Path(SmallRng);

impl Path {
    fn new(seed: u64) -> Self {
        Self(SmallRng::seed_from_u64(seed))
    }

    /// A normal deviate (Box and Muller, Annals of Mathematical Statistics 29, 1958).
    fn normal(&mut self) -> f64 {
        let (radius, angle) = (1.0 - self.0.random::<f64>(), self.0.random::<f64>());
        (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
    }

    /// A session of so many runs whose mean is `mean`.
    fn session(&mut self, mean: f64, runs: usize) -> Runs {
        Runs {
            values: (0..runs).map(|_| mean + SPREAD * self.normal()).collect(),
            resolution: 0.0,
            firmness: Firmness::Firm,
        }
    }
}

/// The share of simulated pairs that are judged to differ.
fn alarms(tolerance: f64, mut pair: impl FnMut() -> Figure) -> f64 {
    let differs = |change: Change| matches!(change, Change::Better | Change::Worse);
    let alarm = |figure: Figure| judge(&[figure], tolerance, LEVEL).iter().any(|figure| differs(figure.change));
    (0..PAIRS).filter(|_| alarm(pair())).count() as f64 / PAIRS as f64
}

/// Five runs each, no difference, no drift, and no tolerance.
#[test]
fn without_drift_five_in_a_hundred_are_false() {
    let mut path = Path::new(1);
    let rate =
        alarms(0.0, || Figure::of_runs("x", Quantity::PayloadBps, &path.session(RATE, 5), &path.session(RATE, 5)));
    assert!((0.04..=0.06).contains(&rate), "{rate}");
}

/// One session each: a drift of the whole tolerance, upwards or downwards, is the worst that is allowed for.
#[test]
fn a_drift_of_the_tolerance_between_two_records_gives_five_in_a_hundred() {
    let mut path = Path::new(2);
    let rate = alarms(0.02, || {
        let drift = if path.0.random_bool(0.5) { 0.02 } else { -0.02 };
        let (before, after) = (path.session(RATE, 5), path.session(RATE * (1.0 + drift), 5));
        Figure::of_runs("x", Quantity::PayloadBps, &before, &after)
    });
    assert!((0.04..=0.06).contains(&rate), "{rate}");
}

/// Several sessions each, whose means drift by three times the spread of the runs.
#[test]
fn sessions_that_drift_give_five_in_a_hundred() {
    for (seed, sessions) in [(3, (2, 2)), (4, (4, 4)), (5, (5, 1))] {
        let mut path = Path::new(seed);
        let side = |path: &mut Path, sessions: usize| -> Vec<Runs> {
            let drifted: Vec<f64> = (0..sessions).map(|_| RATE + 3.0 * SPREAD * path.normal()).collect();
            drifted.into_iter().map(|mean| path.session(mean, 3)).collect()
        };
        let rate = alarms(0.0, || {
            let (before, after) = (side(&mut path, sessions.0), side(&mut path, sessions.1));
            Figure::of_sessions("x", Quantity::PayloadBps, &before, &after).expect("sessions")
        });
        assert!((0.04..=0.06).contains(&rate), "{sessions:?}: {rate}");
    }
}

/// A session whose mean wanders from pair to pair, by as much as the runs differ each time.
fn wandering(path: &mut Path, pairs: usize) -> (Runs, Runs) {
    let mut mean = RATE;
    let pair = |path: &mut Path, mean: &mut f64| {
        *mean += SPREAD * path.normal();
        (*mean + SPREAD * path.normal(), *mean + SPREAD * path.normal())
    };
    let (before, after) = (0..pairs).map(|_| pair(path, &mut mean)).unzip();
    (
        Runs { values: before, resolution: 0.0, firmness: Firmness::Firm },
        Runs { values: after, resolution: 0.0, firmness: Firmness::Firm },
    )
}

#[test]
fn pairs_in_turn_are_proof_against_drift() {
    for (seed, tolerance) in [(6, 0.0), (7, 0.02)] {
        let mut path = Path::new(seed);
        let rate = alarms(tolerance, || {
            let (before, mut after) = wandering(&mut path, 6);
            after.values.iter_mut().for_each(|value| *value *= 1.0 + tolerance);
            Figure::of_pairs("x", Quantity::PayloadBps, &before, &after)
        });
        assert!((0.04..=0.06).contains(&rate), "tolerance {tolerance}: {rate}");
    }
    // The same runs taken for two separate samples: what pairs have in common counts as spread.
    let mut path = Path::new(8);
    let rate = alarms(0.0, || {
        let (before, after) = wandering(&mut path, 6);
        Figure::of_runs("x", Quantity::PayloadBps, &before, &after)
    });
    assert!(rate < 0.04, "{rate}");
}

/// Three looks, after 6, 12 and 18 pairs; what is decided at one of them is not looked at again.
#[test]
fn looks_at_growing_data_share_one_level() {
    let mut path = Path::new(9);
    let each = level_of_each(LEVEL, 3);
    let mut alarms = |level: f64| {
        let one = |path: &mut Path| {
            let (before, after) = wandering(path, 18);
            [6, 12, 18].into_iter().any(|pairs| {
                let part = |runs: &Runs| Runs {
                    values: runs.values[..pairs].to_vec(),
                    resolution: 0.0,
                    firmness: Firmness::Firm,
                };
                let figure = Figure::of_pairs("x", Quantity::PayloadBps, &part(&before), &part(&after));
                judge(&[figure], 0.0, level)[0].change != Change::Undecided
            })
        };
        (0..PAIRS).filter(|_| one(&mut path)).count() as f64 / PAIRS as f64
    };
    let rate = alarms(each);
    assert!((0.04..=0.06).contains(&rate), "{rate}");
    // Each at the full level would be too many.
    let naive = alarms(LEVEL);
    assert!(naive > 0.08, "{naive}");
}
