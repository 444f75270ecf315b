//! What the trials at one load make of it, RFC 9971: its class for a goal, and its loss ratio.
//!
//! All in whole numbers: durations in nanoseconds, ratios as their two counts. So a duration that just equals what is
//! allowed is never lost to rounding.

use super::Goal;
use crate::Counted;
use linerate_units::Ratio;

/// What a load is for a goal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// The goal is met: a lower bound.
    Lower,
    /// The goal is missed: an upper bound.
    Upper,
    /// The trials so far leave both possible.
    Undecided,
}

/// Sums of the durations of trials at one load, in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Sums {
    full_low: u128,
    full_high: u128,
    short_low: u128,
    short_high: u128,
}

impl Sums {
    fn of(trials: &[Counted], goal: &Goal) -> Self {
        let mut sums = Self::default();
        for trial in trials {
            let sum = match (trial.probe.time >= goal.final_time, trial.meets(goal.loss)) {
                (true, true) => &mut sums.full_low,
                (true, false) => &mut sums.full_high,
                (false, true) => &mut sums.short_low,
                (false, false) => &mut sums.short_high,
            };
            *sum += u128::from(trial.probe.time.get());
        }
        sums
    }
}

/// The class of a load, RFC 9971, load classification. With the exceed ratio x and the duration sum D of the goal:
///
/// - balancing sum = short low-loss sum * x / (1 - x), by which low-loss short trials excuse high-loss short ones;
/// - high-loss sum = full-length high-loss sum + max(0, short high-loss sum - balancing sum);
/// - whole sum = max(full-length low-loss sum + high-loss sum, D);
/// - if all that is missing were low-loss: the load is a lower bound when high-loss sum <= whole sum * x;
/// - if all that is missing were high-loss: it is one when whole sum - full-length low-loss sum <= whole sum * x.
///
/// Where both agree, nothing that is missing can change the class. Sums are multiplied by x's denominators here, to stay
/// whole: `part` stands for x, `rest` for 1 - x and `of` for 1.
pub(super) fn classify(trials: &[Counted], goal: &Goal) -> Class {
    let sums = Sums::of(trials, goal);
    let (part, of) = (u128::from(goal.exceed.part), u128::from(goal.exceed.of));
    let rest = of - part;
    // Everything from here on is in units of 1/rest nanoseconds.
    let full_low = sums.full_low * rest;
    let high = sums.full_high * rest + (sums.short_high * rest).saturating_sub(sums.short_low * part);
    let whole = (full_low + high).max(u128::from(goal.duration_sum.get()) * rest);
    let allowed = whole * part;
    match (high * of <= allowed, (whole - full_low) * of <= allowed) {
        (true, true) => Class::Lower,
        (false, false) => Class::Upper,
        // What is pessimistically a lower bound is one optimistically, since high-loss sum <= whole - low-loss sum.
        (true, false) | (false, true) => Class::Undecided,
    }
}

/// The loss ratio of a load for a goal, RFC 9971, quantile loss ratio of conditional throughput: order the full-length
/// trials by their loss, best first, fill up with total loss to the duration sum; the first trial at which the share
/// (1 - exceed ratio) of the whole has passed is the answer. At a lower bound it never exceeds the goal's loss ratio.
pub(super) fn quantile_loss(trials: &[Counted], goal: &Goal) -> Ratio {
    let mut full: Vec<_> = trials.iter().filter(|trial| trial.probe.time >= goal.final_time).collect();
    full.sort_by(|a, b| {
        let (a, b) = (loss(a), loss(b));
        (u128::from(a.part) * u128::from(b.of)).cmp(&(u128::from(b.part) * u128::from(a.of)))
    });
    let time = |trial: &Counted| u128::from(trial.probe.time.get());
    let whole = full.iter().map(|trial| time(trial)).sum::<u128>().max(u128::from(goal.duration_sum.get()));
    let needed = whole * u128::from(goal.exceed.of - goal.exceed.part);
    let mut passed = 0;
    for trial in full {
        passed += time(trial) * u128::from(goal.exceed.of);
        if passed >= needed {
            return loss(trial);
        }
    }
    Ratio::new(1, 1)
}

/// A trial's loss, never out of nothing.
fn loss(trial: &Counted) -> Ratio {
    Ratio::new(trial.lost(), trial.intended.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Probe;
    use linerate_units::{FrameRate, Nanos};
    use proptest::prelude::*;

    /// Trials at 1,000 frames a second, each of so many seconds and frames lost.
    fn trials(list: &[(u64, u64)]) -> Vec<Counted> {
        let trial = |&(secs, lost): &(u64, u64)| {
            let probe = Probe { load: FrameRate::per_second(1000), time: Nanos::from_secs(secs) };
            Counted { probe, intended: 1000 * secs, unsent: 0, forwarded: 1000 * secs - lost }
        };
        list.iter().map(trial).collect()
    }

    fn class(goal: &str, list: &[(u64, u64)]) -> Class {
        classify(&trials(list), &Goal::named(goal).unwrap())
    }

    #[test]
    fn rfc2544_needs_one_full_trial_without_loss_and_no_trial_with() {
        assert_eq!(class("rfc2544", &[]), Class::Undecided);
        assert_eq!(class("rfc2544", &[(59, 0)]), Class::Undecided, "one short of full length");
        assert_eq!(class("rfc2544", &[(60, 0)]), Class::Lower);
        assert_eq!(class("rfc2544", &[(60, 1)]), Class::Upper);
        assert_eq!(class("rfc2544", &[(1, 1)]), Class::Upper, "with x = 0 nothing excuses a short lossy trial");
        assert_eq!(class("rfc2544", &[(60, 0), (1, 1)]), Class::Upper);
    }

    #[test]
    fn tst009_lets_one_trial_of_two_lose() {
        // D = 120 s, x = 0.5: 60 s of high loss are allowed.
        assert_eq!(class("tst009", &[(60, 0)]), Class::Lower, "whole 120 - low 60 <= 60");
        assert_eq!(class("tst009", &[(60, 9)]), Class::Undecided, "high 60 <= 60, but 120 - 0 > 60");
        assert_eq!(class("tst009", &[(60, 9), (60, 0)]), Class::Lower);
        assert_eq!(class("tst009", &[(60, 9), (60, 9)]), Class::Upper);
        // Short trials: 61 s of high loss exceed what is allowed, unless as many of low loss balance them (x/(1-x) = 1).
        assert_eq!(class("tst009", &[(30, 9), (31, 9)]), Class::Upper);
        assert_eq!(class("tst009", &[(30, 9), (31, 9), (1, 0)]), Class::Undecided);
        // high = 60 + (30 - 10) = 80; whole = max(60 + 80, 120) = 140; allowed 70.
        assert_eq!(class("tst009", &[(60, 0), (60, 9), (30, 9), (10, 0)]), Class::Upper);
        // high = 60 + (10 - 10) = 60; whole = 120; allowed 60.
        assert_eq!(class("tst009", &[(60, 0), (60, 9), (10, 9), (10, 0)]), Class::Lower);
    }

    #[test]
    fn ndr_and_pdr_are_decided_by_the_eleventh_trial_of_a_kind() {
        // D = 21 s, x = 0.5: 10.5 s are allowed.
        assert_eq!(class("ndr", &[(1, 0); 10]), Class::Undecided, "21 - 10 = 11 > 10.5");
        assert_eq!(class("ndr", &[(1, 0); 11]), Class::Lower);
        assert_eq!(class("ndr", &[(1, 1); 10]), Class::Undecided);
        assert_eq!(class("ndr", &[(1, 1); 11]), Class::Upper);
        assert_eq!(class("pdr", &[(1, 5); 11]), Class::Lower, "5 of 1000 is allowed");
        assert_eq!(class("pdr", &[(1, 6); 11]), Class::Upper);
        let mixed: Vec<_> = [[(1, 0); 10], [(1, 9); 10]].concat();
        assert_eq!(class("ndr", &mixed), Class::Undecided);
    }

    #[test]
    fn an_exceed_ratio_of_a_quarter_balances_a_third() {
        let goal = Goal {
            final_time: Nanos::from_secs(10),
            duration_sum: Nanos::from_secs(40),
            exceed: Ratio::new(1, 4),
            ..Goal::named("ndr").unwrap()
        };
        // Balancing 9 * (1/3) = 3 s excuse 3 s of loss, leaving 10 of 40: just allowed.
        let just = [(10, 0), (10, 0), (10, 0), (9, 0), (8, 1), (5, 1)];
        assert_eq!(classify(&trials(&just), &goal), Class::Lower);
        let over = [(10, 0), (10, 0), (10, 0), (9, 0), (8, 1), (6, 1)];
        assert_eq!(classify(&trials(&over), &goal), Class::Upper, "11 of 41 is more than a quarter");
    }

    #[test]
    fn the_quantile_is_taken_over_the_duration_sum() {
        let quantile = |goal: &str, list: &[(u64, u64)]| quantile_loss(&trials(list), &Goal::named(goal).unwrap());
        assert_eq!(quantile("ndr", &[]), Ratio::new(1, 1), "all is missing");
        assert_eq!(quantile("ndr", &[(1, 0); 10]), Ratio::new(1, 1), "10 of 21 is no half");
        // The eleventh best trial passes 10.5 s of 21.
        let eleven: Vec<_> = (0..11).map(|lost| (1, lost)).collect();
        assert_eq!(quantile("pdr", &eleven), Ratio::new(10, 1000));
        let all: Vec<_> = (0..30).rev().map(|lost| (1, lost)).collect();
        assert_eq!(quantile("pdr", &all), Ratio::new(14, 1000), "15 of 30 s is just a half");
        // No trial may exceed: the worst counts. Short trials do not.
        assert_eq!(quantile("rfc2544", &[(60, 3), (60, 7), (1, 900)]), Ratio::new(7, 60_000));
    }

    proptest! {
        /// At a lower bound the quantile loss ratio is within the goal; and once enough full-length trials are in,
        /// there is a class.
        #[test]
        fn a_lower_bound_keeps_the_goal(
            list in proptest::collection::vec((1u64..8, 0u64..12), 0..30),
            exceed in 0u64..10,
            full in 1u64..6,
            sum in 6u64..25,
        ) {
            let goal = Goal {
                final_time: Nanos::from_secs(full),
                duration_sum: Nanos::from_secs(sum),
                exceed: Ratio::new(exceed, 10),
                ..Goal::named("pdr").unwrap()
            };
            let trials = trials(&list);
            let class = classify(&trials, &goal);
            if class == Class::Lower {
                prop_assert!(quantile_loss(&trials, &goal) <= goal.loss);
            }
            let full_time: u64 = list.iter().map(|trial| trial.0).filter(|secs| *secs >= full).sum();
            prop_assert!(full_time < sum || class != Class::Undecided);
        }
    }
}
