//! MLRsearch, RFC 9971: one search for several goals, each of which may allow some loss in some trials.
//!
//! The RFC fixes what a load is for a goal and what is reported; the order of trials is free. Here, every goal is
//! approached in stages, each narrower and longer than the one before, and all goals share all trials:
//!
//! 1. of the goals that are not done, the one in the earliest stage goes first;
//! 2. its stage starts at the bounds found in the stage before, the very first at the maximum load and at what the device
//!    forwarded there;
//! 3. a load, once taken up, is tried until its class is certain; for a goal that allows no high-loss trial, first with a
//!    short one;
//! 4. a stage is done when its relevant bounds are within its width, when the maximum load is a lower bound, or when the
//!    minimum is an upper bound;
//! 5. the search is done when every goal's last stage is, with all trials considered.
//!
//! A trial that the tester did not offer is a high-loss trial, as the RFC has it: it never makes a load a lower bound. But
//! a load that is an upper bound by such trials alone is told apart, since it says nothing of the device.

mod goal;
mod load;
mod steps;

pub use goal::{BadGoal, Goal};

use super::{Bounds, Counted, Probe, Search, UnofferedLoads};
use linerate_units::{FrameRate, Ratio};
use load::{Class, classify, quantile_loss};
use std::collections::BTreeMap;
use steps::{Course, Interval};

/// What a search found for one goal (RFC 9971, goal result).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GoalResult {
    /// The goal.
    pub goal: Goal,
    /// The relevant bounds. No lower bound: the device misses the goal even at the minimum load. No upper bound: it meets
    /// the goal at the maximum load.
    pub bounds: Bounds,
    /// Conditional throughput: the relevant lower bound, less the loss there.
    pub conditional_throughput: Option<FrameRate>,
    /// The loss ratio at the relevant lower bound that conditional throughput rests on.
    pub loss: Option<Ratio>,
}

/// A search for several goals at once.
#[derive(Debug, Clone)]
pub struct Mlr {
    minimum: FrameRate,
    maximum: FrameRate,
    chases: Vec<Chase>,
    trials: Trials,
    in_a_row: UnofferedLoads,
    /// The chase and the trial that are due.
    due: Option<(usize, Probe)>,
}

/// All trials, by load.
type Trials = BTreeMap<FrameRate, Vec<Counted>>;

/// How far the search for one goal has come.
#[derive(Debug, Clone)]
struct Chase {
    /// The goal, last, and coarser goals that lead to it.
    stages: Vec<Goal>,
    stage: usize,
    course: Course,
    /// The load that is being classified.
    load: Option<FrameRate>,
}

impl Mlr {
    /// A search between two loads with no trial run yet. The goal to be found first comes first. The minimum is at least
    /// one frame per second; a minimum above the maximum is taken as the maximum.
    pub fn new(goals: &[Goal], minimum: FrameRate, maximum: FrameRate) -> Result<Self, BadGoal> {
        if goals.is_empty() {
            return Err(BadGoal::None);
        }
        goals.iter().try_for_each(Goal::check)?;
        let maximum = maximum.max(FrameRate::per_second(1));
        let minimum = minimum.clamp(FrameRate::per_second(1), maximum);
        let chase = |goal: &Goal| Chase { stages: goal.stages(), stage: 0, course: Course::START, load: None };
        let chases = goals.iter().map(chase).collect();
        let (trials, in_a_row) = (Trials::new(), UnofferedLoads::default());
        let mut search = Self { minimum, maximum, chases, trials, in_a_row, due: None };
        search.due = search.decide();
        Ok(search)
    }

    /// What the trials so far say for each goal, in the order the goals were given; final once `next` gives none.
    pub fn results(&self) -> Vec<GoalResult> {
        self.chases.iter().map(|chase| self.result(chase.goal())).collect()
    }

    fn result(&self, goal: &Goal) -> GoalResult {
        let bounds = bounds_of_device(&self.trials, goal);
        let loss = bounds.lower.map(|load| quantile_loss(&self.trials[&load], goal));
        // RFC 9971, conditional throughput: the load times the share that was not lost.
        let kept = |load: FrameRate, loss: Ratio| {
            FrameRate::per_second(
                (u128::from(load.get()) * u128::from(loss.of - loss.part) / u128::from(loss.of)) as u64,
            )
        };
        let conditional_throughput = bounds.lower.zip(loss).map(|(load, loss)| kept(load, loss));
        GoalResult { goal: goal.clone(), bounds, conditional_throughput, loss }
    }

    /// Takes stock after a trial: the chase in the earliest stage goes on.
    fn decide(&mut self) -> Option<(usize, Probe)> {
        let next = if self.in_a_row.end_search() { None } else { self.advance() };
        next.or_else(|| self.last_resort())
    }

    fn advance(&mut self) -> Option<(usize, Probe)> {
        let range = (self.minimum, self.maximum);
        for chase in &mut self.chases {
            chase.take_stock(&self.trials, range);
        }
        let open = |chase: &Chase| !chase.interval(&self.trials, range).is_narrow();
        let chases = self.chases.iter_mut().enumerate();
        let (index, chase) = chases.filter(|(_, chase)| open(chase)).min_by_key(|(_, chase)| chase.stage)?;
        let load = chase.load.unwrap_or_else(|| chase.propose(&self.trials, range));
        chase.load = Some(load);
        let stage = chase.stage();
        // With x = 0 nothing excuses a short trial with high loss: a load that is to be an upper bound is found out cheaply.
        let refute = stage.exceed.part == 0 && !self.trials.contains_key(&load);
        let time = if refute { stage.initial_time } else { stage.final_time };
        Some((index, Probe { load, time }))
    }
}

impl Mlr {
    /// Where no load is a lower bound, and some were not offered: the highest of which no more was lost than allowed, once at
    /// full length, so that this much is known.
    fn last_resort(&self) -> Option<(usize, Probe)> {
        let goal = self.chases.first()?.goal();
        if relevant_bounds(&self.trials, goal).lower.is_some()
            || self.trials.values().flatten().all(Counted::is_offered)
        {
            return None;
        }
        let carried = |trial: &Counted| !trial.loses(goal.loss);
        let (load, of) = self.trials.iter().rfind(|(_, of)| of.iter().all(carried))?;
        let long = of.iter().any(|trial| trial.probe.time >= goal.final_time);
        (!long).then_some((0, Probe { load: *load, time: goal.final_time }))
    }
}

impl Search for Mlr {
    fn next(&self) -> Option<Probe> {
        self.due.map(|(_, probe)| probe)
    }

    fn record(&mut self, counted: &Counted) {
        if self.next() == Some(counted.probe) {
            self.trials.entry(counted.probe.load).or_default().push(*counted);
            self.in_a_row.record(counted);
            self.due = self.decide();
        }
    }

    /// The bounds of the goal that the next trial serves, in its present stage; of the first goal once the search is done.
    fn bounds(&self) -> Bounds {
        match self.due {
            Some((index, _)) => bounds_of_device(&self.trials, self.chases[index].stage()),
            None => bounds_of_device(&self.trials, self.chases[0].goal()),
        }
    }
}

impl Chase {
    fn goal(&self) -> &Goal {
        &self.stages[self.stages.len() - 1]
    }

    fn stage(&self) -> &Goal {
        &self.stages[self.stage]
    }

    fn interval(&self, trials: &Trials, (minimum, maximum): (FrameRate, FrameRate)) -> Interval {
        let bounds = relevant_bounds(trials, self.stage());
        Interval { minimum, maximum, good: bounds.lower, bad: bounds.upper, width: self.stage().width }
    }

    /// Learns from the last trial, whichever goal it was run for.
    fn take_stock(&mut self, trials: &Trials, range: (FrameRate, FrameRate)) {
        if let Some(load) = self.load {
            let class = trials.get(&load).map_or(Class::Undecided, |trials| classify(trials, self.stage()));
            if class != Class::Undecided {
                // The maximum is where every search starts, no guess.
                let start = self.stage == 0 && load == range.1;
                self.course = if start { Course::START } else { self.course.after(class == Class::Lower) };
                self.load = None;
            }
        }
        while self.stage + 1 < self.stages.len() && self.interval(trials, range).is_narrow() {
            (self.stage, self.course, self.load) = (self.stage + 1, Course::START, None);
        }
        // Trials for another goal may have moved the bounds past the load.
        self.load = self.load.filter(|load| self.interval(trials, range).contains(*load));
    }

    /// The next load to classify: the bounds of the stage before, then where the course leads.
    fn propose(&self, trials: &Trials, range: (FrameRate, FrameRate)) -> FrameRate {
        let interval = self.interval(trials, range);
        let before = self.stage.checked_sub(1).map(|stage| relevant_bounds(trials, &self.stages[stage]));
        let known = before.into_iter().flat_map(|bounds| [bounds.lower, bounds.upper]).flatten();
        let hint = || {
            let longest = trials[&interval.bad?].iter().max_by_key(|trial| trial.probe.time)?;
            Some(FrameRate::per_second(longest.sustainable(self.stage().loss)))
        };
        known.into_iter().find(|load| interval.contains(*load)).unwrap_or_else(|| interval.propose(self.course, hint()))
    }
}

/// The relevant bounds, RFC 9971: the upper one is the smallest load that is an upper bound, the lower one the largest
/// lower bound below that. A load that meets the goal above one that misses it is not believed.
fn relevant_bounds(trials: &Trials, goal: &Goal) -> Bounds {
    let mut bounds = Bounds::default();
    for (load, trials) in trials {
        match classify(trials, goal) {
            Class::Lower => bounds.lower = Some(*load),
            Class::Upper => {
                bounds.upper = Some(*load);
                break;
            }
            Class::Undecided => {}
        }
    }
    bounds
}

/// The relevant bounds, with what the tester did not offer told apart from what the device missed.
fn bounds_of_device(trials: &Trials, goal: &Goal) -> Bounds {
    let bounds = relevant_bounds(trials, goal);
    let misses = |of: &[Counted]| {
        let offered: Vec<Counted> = of.iter().filter(|trial| trial.is_offered()).copied().collect();
        classify(&offered, goal) == Class::Upper
    };
    let upper = trials.iter().find(|(_, of)| misses(of)).map(|(load, _)| *load);
    Bounds { upper, unoffered: bounds.upper.filter(|_| bounds.upper != upper), ..bounds }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_units::Nanos;
    use proptest::prelude::*;
    use rand::rngs::SmallRng;
    use rand::{RngExt, SeedableRng};

    fn rate(frames_per_s: u64) -> FrameRate {
        FrameRate::per_second(frames_per_s)
    }

    fn goals(names: &[&str]) -> Vec<Goal> {
        names.iter().map(|name| Goal::named(name).unwrap()).collect()
    }

    /// Runs a search to its end against a device that says how many of the frames intended by a trial it forwards.
    fn run(goals: &[Goal], range: (u64, u64), mut forwards: impl FnMut(Probe, u64) -> u64) -> (Mlr, Vec<Counted>) {
        let mut search = Mlr::new(goals, rate(range.0), rate(range.1)).unwrap();
        let mut trials = Vec::new();
        while let Some(probe) = search.next() {
            assert_eq!(search.next(), Some(probe), "asking twice");
            assert!(trials.len() < 2000, "does not end: {:?}", &trials[1900..]);
            let intended = frames(probe.load.get(), probe.time);
            let counted = Counted { probe, intended, unsent: 0, forwarded: forwards(probe, intended) };
            search.record(&counted);
            trials.push(counted);
        }
        (search, trials)
    }

    fn frames(frames_per_s: u64, time: Nanos) -> u64 {
        (u128::from(frames_per_s) * u128::from(time.get()) / 1_000_000_000) as u64
    }

    /// A device that forwards at most so many frames a second.
    fn capacity(limit: u64) -> impl Fn(Probe, u64) -> u64 {
        move |probe, intended| intended.min(frames(limit, probe.time))
    }

    #[test]
    fn all_named_goals_find_a_hard_limit_in_one_search() {
        let (search, trials) = run(&goals(&Goal::NAMES), (1000, 10_000_000), capacity(4_000_000));
        for result in search.results() {
            let name = &result.goal.name;
            // A device that forwards no more than its limit reaches the goal's loss at limit / (1 - loss).
            let limit = if name == "pdr" { 4_020_100 } else { 4_000_000 };
            let (lower, upper) = (result.bounds.lower.unwrap().get(), result.bounds.upper.unwrap().get());
            assert!(lower <= limit && limit < upper && (upper - lower) * 200 <= upper, "{name}: {lower} {upper}");
            assert!(result.loss.unwrap() <= result.goal.loss, "{name}");
            let throughput = result.conditional_throughput.unwrap().get();
            assert!((3_980_000..=4_000_000).contains(&throughput), "{name}: {throughput}");
        }
        let secs: u64 = trials.iter().map(|trial| trial.probe.time.get()).sum::<u64>() / 1_000_000_000;
        assert!(trials.len() <= 80 && secs <= 500, "{} trials, {secs} s", trials.len());
    }

    #[test]
    fn a_steady_device_takes_rfc2544_one_long_trial_below_and_none_above() {
        let (search, trials) = run(&goals(&["rfc2544"]), (1, 1_488_095), capacity(700_000));
        assert_eq!(search.bounds().lower, Some(rate(700_000)));
        let long = trials.iter().filter(|trial| trial.probe.time == Nanos::from_secs(60)).count();
        assert!(long == 1 && trials.len() <= 8, "{trials:?}");
    }

    #[test]
    fn the_ends_of_the_range_are_answers() {
        let (search, _) = run(&goals(&Goal::NAMES), (100, 1_000_000), |_, intended| intended);
        for result in search.results() {
            assert_eq!(result.bounds, Bounds { lower: Some(rate(1_000_000)), ..Bounds::default() });
            assert_eq!(result.conditional_throughput, Some(rate(1_000_000)));
        }
        let (search, _) = run(&goals(&Goal::NAMES), (100, 1_000_000), |_, intended| intended - intended.div_ceil(50));
        for result in search.results() {
            assert_eq!(result.bounds, Bounds { upper: Some(rate(100)), ..Bounds::default() });
            assert_eq!((result.conditional_throughput, result.loss), (None, None));
        }
    }

    #[test]
    fn a_device_that_collapses_under_overload_is_searched_all_the_same() {
        let (search, trials) = run(&goals(&["rfc2544", "pdr"]), (1000, 10_000_000), |probe, intended| {
            if probe.load <= rate(3_000_000) { intended } else { intended / 1000 }
        });
        for result in search.results() {
            let lower = result.bounds.lower.unwrap().get();
            assert!((2_985_000..=3_000_000).contains(&lower), "{lower}");
        }
        assert!(trials.len() <= 70, "{}", trials.len());
    }

    #[test]
    fn a_trial_that_loses_now_and_then_is_forgiven_by_ndr_and_not_by_rfc2544() {
        let find = |goal| {
            let mut times = BTreeMap::new();
            let (search, _) = run(&goals(&[goal]), (1000, 1_000_000), |probe, intended| {
                let through = capacity(500_000)(probe, intended);
                let time = times.entry(probe.load).and_modify(|time| *time += 1).or_insert(0);
                if probe.load > rate(200_000) && *time % 4 == 1 { through - 3 } else { through }
            });
            search.bounds().lower.unwrap().get()
        };
        let (ndr, rfc2544) = (find("ndr"), find("rfc2544"));
        assert!((497_500..=500_000).contains(&ndr) && (199_000..=200_000).contains(&rfc2544), "{ndr} {rfc2544}");
    }

    #[test]
    fn a_load_that_meets_the_goal_above_one_that_misses_it_is_not_believed() {
        let goal = Goal::named("rfc2544").unwrap();
        let mut trials = Trials::new();
        for (load, lost) in [(100, 0), (200, 1), (300, 0), (400, 1)] {
            let probe = Probe { load: rate(load), time: Nanos::from_secs(60) };
            let counted = Counted { probe, intended: load * 60, unsent: 0, forwarded: load * 60 - lost };
            trials.entry(probe.load).or_default().push(counted);
        }
        let bounds = relevant_bounds(&trials, &goal);
        assert_eq!(bounds, Bounds { lower: Some(rate(100)), upper: Some(rate(200)), unoffered: None });
    }

    #[test]
    fn refuses_no_goal_and_ignores_the_result_of_another_trial() {
        assert_eq!(Mlr::new(&[], rate(1), rate(10)).unwrap_err(), BadGoal::None);
        let mut search = Mlr::new(&goals(&["ndr"]), rate(1), rate(10)).unwrap();
        let due = search.next();
        let probe = Probe { load: rate(5), time: Nanos::from_secs(1) };
        search.record(&Counted { probe, intended: 5, unsent: 0, forwarded: 0 });
        assert_eq!((search.next(), search.bounds()), (due, Bounds::default()));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// A device may do anything, and differently each time: the search ends, stays within its range, and reports
        /// no load at which the device lost more than the goal allows.
        #[test]
        fn any_device_ends_with_honest_bounds(
            seed: u64,
            limit in 1u64..3_000_000,
            wild in 0u64..100,
            lost in 1u64..100,
            maximum in 1u64..2_000_000,
            minimum in 1u64..2_000,
        ) {
            let goals = goals(&Goal::NAMES);
            let mut random = SmallRng::seed_from_u64(seed);
            let (search, trials) = run(&goals, (minimum, maximum), |probe, intended| {
                let through = capacity(limit)(probe, intended);
                if random.random_range(0..100) < wild { through - through * lost / 100 } else { through }
            });
            for trial in &trials {
                prop_assert!(trial.probe.load.get() <= maximum);
                prop_assert!(trial.probe.load.get() >= minimum.min(maximum));
            }
            for GoalResult { goal, bounds, conditional_throughput, loss } in search.results() {
                prop_assert!(loss.is_none_or(|loss| loss <= goal.loss));
                prop_assert!(conditional_throughput <= bounds.lower);
                match (bounds.lower, bounds.upper) {
                    (Some(lower), Some(upper)) => {
                        let apart = upper.get() - lower.get();
                        prop_assert!(apart == 1 || apart * goal.width.of <= goal.width.part * upper.get());
                    }
                    (Some(lower), None) => prop_assert_eq!(lower.get(), maximum),
                    (None, upper) => prop_assert_eq!(upper.map(FrameRate::get), Some(minimum.min(maximum))),
                }
                // With x = 0, not one lossy trial at the lower bound, of any length.
                if goal.exceed.part == 0 && let Some(lower) = bounds.lower {
                    let at = trials.iter().filter(|trial| trial.probe.load <= lower);
                    prop_assert!(at.into_iter().all(|trial| !trial.exceeds(goal.loss)));
                }
            }
        }
    }
}
