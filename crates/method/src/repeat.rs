//! How often one trial is run: a fixed number of times, or until its mean is known well enough.

use crate::statistics::TwoStage;
use linerate_model::{Detail, Interval, Measurement, Repeats, Summary};

/// The first stage of runs has no fewer: with three, chance alone would ask for many too many or too few.
const FIRST_STAGE: u32 = 5;

/// What the runs so far call for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Need {
    /// Another run.
    More,
    /// No more: as many as asked, or the interval is narrow enough.
    Enough,
    /// No more: the bound is reached with the interval still this wide (half of it, as a share of the mean).
    Exhausted(f64),
}

/// Decides from the figures of the runs so far.
///
/// Until the interval is narrow enough, Stein's two stages ([`TwoStage`]) decide: the spread of the first runs says how many there
/// are to be. So the interval holds the mean as often as it states.
pub(crate) fn need(repeats: &Repeats, figures: &[f64]) -> Need {
    let runs = figures.len() as u32;
    match *repeats {
        Repeats::Times(times) if runs < times => Need::More,
        Repeats::Times(_) => Need::Enough,
        Repeats::Until { confidence_percent, within, at_most, .. } => {
            let first = first_stage(repeats);
            let stage = figures.get(..first).and_then(|first| TwoStage::after(first, confidence_percent));
            let Some(stage) = stage else { return Need::More };
            let asked = stage.repeats(within);
            match () {
                () if f64::from(runs) < asked.min(f64::from(at_most)) => Need::More,
                () if asked <= f64::from(runs) => Need::Enough,
                () => Need::Exhausted(stage.interval(figures).relative_half_width()),
            }
        }
    }
}

/// Gives the figures of a result the intervals of its plan, where that asks for more runs until they are narrow enough. Those of a
/// fixed number of runs stand as they are.
pub(crate) fn state_intervals(repeats: &Repeats, result: &mut Measurement) {
    let Repeats::Until { confidence_percent, .. } = *repeats else { return };
    let first = first_stage(repeats);
    let state = |summary: &mut Summary| summary.interval = interval(confidence_percent, first, &summary.values);
    state(&mut result.main);
    let (flow, received, sent) = match &mut result.detail {
        Detail::Stream(figures) => {
            figures.jitter_ns.iter_mut().for_each(state);
            (&mut figures.flow, Some(&mut figures.received), Some(&mut figures.sent))
        }
        Detail::Transact(figures) => {
            state(&mut figures.requests.transactions_per_s);
            (&mut figures.flow, None, None)
        }
        Detail::Rpc(figures) => {
            state(&mut figures.requests.transactions_per_s);
            (&mut figures.flow, figures.received.as_mut(), figures.sent.as_mut())
        }
        Detail::Nfs(figures) => {
            state(&mut figures.requests.transactions_per_s);
            (&mut figures.flow, figures.received.as_mut(), None)
        }
        Detail::Frames { .. } | Detail::Copy(_) | Detail::Hops { .. } => return,
    };
    flow.shares.iter_mut().for_each(|share| state(&mut share.main));
    if let Some(sent) = sent {
        state(&mut sent.payload_bps);
    }
    if let Some(received) = received {
        state(&mut received.payload_bps);
        state(&mut received.packets_per_s);
        let layers = [&mut received.ip_bps, &mut received.wire_bps, &mut received.messages_per_s];
        layers.into_iter().flatten().for_each(state);
    }
}

/// The interval of the mean of `values`, of which so many are the first stage; none where they are too few.
fn interval(percent: f64, first: usize, values: &[f64]) -> Option<Interval> {
    let first = values.get(..first.min(values.len()))?;
    Some(TwoStage::after(first, percent)?.interval(values))
}

/// The runs of the first stage.
fn first_stage(repeats: &Repeats) -> usize {
    match *repeats {
        Repeats::Times(times) => times as usize,
        Repeats::Until { at_least, at_most, .. } => at_least.max(FIRST_STAGE.min(at_most)).max(3) as usize,
    }
}

/// The most runs there can be.
pub(crate) fn at_most(repeats: &Repeats) -> u32 {
    match *repeats {
        Repeats::Times(times) => times,
        Repeats::Until { at_most, .. } => at_most.max(first_stage(repeats) as u32),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::rngs::SmallRng;
    use rand::{RngExt as _, SeedableRng as _};

    const UNTIL: Repeats = Repeats::Until { confidence_percent: 95.0, within: 0.025, at_least: 3, at_most: 6 };

    #[test]
    fn stops_when_narrow_and_not_before_the_first_stage() {
        assert_eq!(need(&UNTIL, &[100.0; 4]), Need::More);
        assert_eq!(need(&UNTIL, &[100.0, 100.1, 99.9, 100.0, 100.0]), Need::Enough);
        assert_eq!(need(&UNTIL, &[100.0, 150.0, 80.0, 100.0, 150.0]), Need::More);
        let few = Repeats::Until { confidence_percent: 95.0, within: 0.025, at_least: 3, at_most: 3 };
        assert_eq!((need(&few, &[100.0, 100.1, 99.9]), at_most(&few), at_most(&UNTIL)), (Need::Enough, 3, 6));
    }

    /// Runs that agree later on do not end it sooner, nor do runs that disagree prolong it.
    #[test]
    fn the_first_stage_alone_decides_how_many() {
        let until = Repeats::Until { confidence_percent: 95.0, within: 0.02, at_least: 5, at_most: 99 };
        // s = 2, t(0.975; 4) = 2.776: (2.776 x 2 / (0.02 x 100))^2 = 7.7.
        let mut runs = vec![98.0, 98.0, 100.0, 102.0, 102.0];
        for more in [100.0, 130.0, 70.0] {
            assert_eq!(need(&until, &runs), Need::More);
            runs.push(more);
        }
        assert_eq!(need(&until, &runs), Need::Enough);
        let interval = interval(95.0, 5, &runs).expect("eight runs");
        assert!((interval.high - 100.0 - 2.776 * 2.0 / 8f64.sqrt()).abs() < 1e-3, "{interval:?}");
    }

    #[test]
    fn gives_up_at_the_bound_and_says_how_wide() {
        let Need::Exhausted(width) = need(&UNTIL, &[100.0, 150.0, 80.0, 100.0, 150.0, 80.0]) else {
            panic!("six runs are the bound")
        };
        assert!(width > 0.2 && width < 0.5, "{width}");
        assert_eq!(need(&UNTIL, &[0.0, 0.0, 0.0, 0.0, 0.0, 0.0]), Need::Exhausted(f64::INFINITY));
    }

    /// How often the interval of runs that were stopped by `need` holds the true mean.
    fn coverage(repeats: &Repeats, spread: f64, seed: u64, interval: impl Fn(&[f64]) -> Interval) -> f64 {
        const TRUTH: f64 = 100.0;
        const TIMES: u32 = 10_000;
        let mut random = SmallRng::seed_from_u64(seed);
        let mut normal = || {
            let (radius, angle) = (1.0 - random.random::<f64>(), random.random::<f64>());
            (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
        };
        let mut held = 0;
        for _ in 0..TIMES {
            let mut runs = Vec::new();
            while need(repeats, &runs) == Need::More {
                runs.push(TRUTH * (1.0 + spread * normal()));
            }
            let interval = interval(&runs);
            held += u32::from((interval.low..=interval.high).contains(&TRUTH));
        }
        f64::from(held) / f64::from(TIMES)
    }

    /// From runs that are steady enough at once to runs that reach the bound.
    #[test]
    fn intervals_of_stopped_runs_hold_the_mean_as_often_as_they_state() {
        let until = Repeats::Until { confidence_percent: 95.0, within: 0.025, at_least: 3, at_most: 30 };
        for (seed, spread) in [(1, 0.005), (2, 0.02), (3, 0.04), (4, 0.1)] {
            let covered = coverage(&until, spread, seed, |runs| super::interval(95.0, 5, runs).expect("five runs"));
            assert!((0.94..=0.96).contains(&covered), "spread {spread}: {covered}");
        }
    }
}
