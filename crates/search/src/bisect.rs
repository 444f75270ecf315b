//! The throughput search of RFC 2544 section 26.1, in few trials.
//!
//! 1. The first trial runs at the maximum load. If that loses nothing, the maximum is the answer. Where a load is expected,
//!    as from the size before, trials just below and just above that come first: they often close the search at once.
//! 2. A lossy trial tells what the device forwarded. Most devices forward about as much under a little less load, so the
//!    next trials run just below and just above that rate, for the same reason.
//! 3. Some devices forward less the more they are overloaded, and some counters lie. So a guess must be paid for by a
//!    halving: there are never more than three guesses more than halvings.
//! 4. Search trials are short. The rate found is run once more at full length. If that loses frames, short trials do not
//!    show this device's loss: the search goes on downwards with full-length trials only.
//! 5. A load that the tester did not offer bounds nothing, so the search goes on below it. Where it then closes there, and a
//!    higher load is known that was offered and lost frames, that load is tried once more, and then a few between the two.
//!    Where no load was offered, the highest of which nothing was lost is run once at full length, so that this much is known.
//!    If full-length trials go on not being offered, the search ends: they take long.

use super::{Bounds, Counted, Probe, Search, UnofferedLoads, share};
use linerate_units::{FrameRate, Nanos, Ratio};

/// How many guesses may run ahead of the halvings.
const GUESSES_AHEAD: u32 = 3;
/// So many loads that are not offered at full length end the search.
const UNOFFERED_AT_LENGTH: u32 = 3;
/// Trials at and above a load that was not offered, before the search closes there.
const SECOND_CHANCES: u32 = 4;

/// What to search for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BisectGoal {
    /// The highest load to try: the theoretical line rate or the tester's limit, whichever is lower.
    pub maximum: FrameRate,
    /// The lowest load to try. At least one frame per second.
    pub minimum: FrameRate,
    /// How far apart the bounds may lie at the end, as a share of the upper one.
    pub width: Ratio,
    /// The loss ratio that is still allowed; zero for throughput (RFC 1242 section 3.17).
    pub loss: Ratio,
    /// The duration of a search trial.
    pub search_time: Nanos,
    /// The duration of the trial that confirms the answer: at least 60 s (RFC 2544 section 24).
    pub final_time: Nanos,
}

impl BisectGoal {
    /// The width unless the user sets another: 0.2 %.
    pub const WIDTH: Ratio = Ratio::new(2, 1000);
}

/// A search for one load by halving and by guesses from what was forwarded.
#[derive(Debug, Clone)]
pub struct Bisect {
    goal: BisectGoal,
    /// The duration of the trials now: short until the answer of short trials has been refuted.
    time: Nanos,
    /// The highest load that met the goal, and for how long it was run.
    lower: Option<Probe>,
    /// The lowest load that missed the goal, offered by the tester.
    upper: Option<u64>,
    /// The lowest load between the two that the tester did not offer.
    unoffered: Option<u64>,
    in_a_row: UnofferedLoads,
    second_chances: u32,
    /// The highest load that was not offered, and of which no more was lost than allowed.
    carried: Option<Probe>,
    /// Loads that the tester did not offer at full length, the answer of short trials first.
    unconfirmed: u32,
    /// The load that the last lossy trial says the device sustains, or the one expected beforehand.
    estimate: Option<u64>,
    guesses: u32,
    halvings: u32,
}

/// Why a trial is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// The maximum, or the minimum: the ends of the range.
    End,
    /// Near the rate that the device forwarded.
    Guess,
    /// Halfway between the bounds.
    Halve,
    /// At or above a load that was not offered.
    SecondChance,
    /// The answer at full length.
    Confirm,
}

impl Bisect {
    /// A search with no trial run yet. A minimum above the maximum is taken as the maximum.
    pub fn new(goal: BisectGoal) -> Self {
        let minimum = FrameRate::per_second(goal.minimum.get().max(1)).min(goal.maximum);
        let final_time = goal.final_time.max(goal.search_time);
        let goal = BisectGoal { minimum, final_time, ..goal };
        Self {
            goal,
            time: goal.search_time,
            lower: None,
            upper: None,
            unoffered: None,
            in_a_row: UnofferedLoads::default(),
            second_chances: 0,
            carried: None,
            unconfirmed: 0,
            estimate: None,
            guesses: 0,
            halvings: 0,
        }
    }

    /// The same search, where the device is expected to sustain `load`.
    pub fn expecting(self, load: FrameRate) -> Self {
        Self { estimate: Some(load.get()), ..self }
    }

    fn step(&self) -> Option<(Purpose, Probe)> {
        if self.unconfirmed >= UNOFFERED_AT_LENGTH {
            return None;
        }
        // Without a rate that holds it is still known what was carried of one that was not offered.
        self.approach()
            .or_else(|| self.carried.filter(|_| self.lower.is_none()).and_then(|carried| self.confirm(carried)))
    }

    fn approach(&self) -> Option<(Purpose, Probe)> {
        let short = |purpose, load| Some((purpose, Probe { load: FrameRate::per_second(load), time: self.time }));
        let maximum = self.goal.maximum;
        if self.in_a_row.end_search() {
            return self.lower.and_then(|lower| self.confirm(lower));
        }
        let Some(upper) = self.searched_below() else {
            return match (self.lower.filter(|lower| lower.load >= maximum), self.guess(maximum.get())) {
                (Some(lower), _) => self.confirm(lower),
                (None, Some(load)) => short(Purpose::Guess, load),
                (None, None) => short(Purpose::End, maximum.get()),
            };
        };
        let minimum = self.goal.minimum.get();
        match self.lower {
            Some(lower) if self.close(lower.load.get(), upper) => {
                return match self.second_chance() {
                    Some(load) => short(Purpose::SecondChance, load),
                    None => self.confirm(lower),
                };
            }
            None if upper <= minimum => return None,
            None if self.close(minimum, upper) => return short(Purpose::End, minimum),
            _ => {}
        }
        match self.guess(upper) {
            Some(load) => short(Purpose::Guess, load),
            None => short(Purpose::Halve, self.floor().midpoint(upper)),
        }
    }

    /// The lowest load that the answer is searched below.
    fn searched_below(&self) -> Option<u64> {
        self.upper.into_iter().chain(self.unoffered).min()
    }

    /// The load to try again where the search closes below one that was not offered, though a higher one was: that load itself,
    /// then some above it.
    fn second_chance(&self) -> Option<u64> {
        let (unoffered, upper) = (self.unoffered?, self.upper?);
        let load = match self.second_chances.checked_sub(1) {
            None => unoffered,
            Some(further) => unoffered.saturating_add(share(unoffered, self.goal.width).max(1) << further),
        };
        (load < upper && self.second_chances < SECOND_CHANCES).then_some(load)
    }

    /// The answer at full length, unless it has been run so already.
    fn confirm(&self, lower: Probe) -> Option<(Purpose, Probe)> {
        let time = self.goal.final_time;
        (lower.time < time).then_some((Purpose::Confirm, Probe { load: lower.load, time }))
    }

    /// The first of the loads just below and just above the estimate that lies between the bounds.
    fn guess(&self, upper: u64) -> Option<u64> {
        if self.guesses >= self.halvings + GUESSES_AHEAD {
            return None;
        }
        let estimate = self.estimate?;
        // Half the width on either side, so that the pair is close enough to end the search.
        let side = share(estimate, self.goal.width) / 2;
        let untried = match self.lower {
            Some(lower) => lower.load.get() + 1..upper,
            None => self.goal.minimum.get()..upper,
        };
        [estimate - side, estimate.saturating_add(side.max(1))].into_iter().find(|load| untried.contains(load))
    }

    fn floor(&self) -> u64 {
        self.lower.map_or(self.goal.minimum, |lower| lower.load).get()
    }

    /// Whether two bounds lie within the width of each other. Whole frames per second cannot be closer than one.
    fn close(&self, lower: u64, upper: u64) -> bool {
        upper - lower <= share(upper, self.goal.width).max(1)
    }
}

impl Search for Bisect {
    fn next(&self) -> Option<Probe> {
        self.step().map(|(_, probe)| probe)
    }

    fn record(&mut self, counted: &Counted) {
        let Some((purpose, probe)) = self.step().filter(|(_, probe)| *probe == counted.probe) else { return };
        self.guesses += u32::from(purpose == Purpose::Guess);
        self.halvings += u32::from(purpose == Purpose::Halve);
        self.second_chances += u32::from(purpose == Purpose::SecondChance);
        self.in_a_row.record(counted);
        let load = probe.load.get();
        if counted.meets(self.goal.loss) {
            self.lower = Some(probe);
        } else {
            let bound = if counted.is_offered() { &mut self.upper } else { &mut self.unoffered };
            *bound = Some(bound.map_or(load, |known| known.min(load)));
            self.estimate = Some(counted.sustainable(self.goal.loss));
            let lost = counted.loses(self.goal.loss);
            if !counted.is_offered() && !lost && self.carried.is_none_or(|carried| carried.load < probe.load) {
                self.carried = Some(probe);
            }
            if purpose == Purpose::Confirm {
                (self.lower, self.carried) = (None, None);
                self.time = self.goal.final_time;
                (self.guesses, self.halvings, self.second_chances) = (0, 0, 0);
            }
            let decides = purpose == Purpose::Confirm || self.unconfirmed > 0;
            self.unconfirmed += u32::from(decides && !counted.is_offered());
        }
        let (lower, upper) = (self.lower.map(|lower| lower.load.get()), self.upper);
        let between = |load: &u64| lower.is_none_or(|lower| lower < *load) && upper.is_none_or(|upper| *load < upper);
        self.unoffered = self.unoffered.filter(between);
    }

    fn bounds(&self) -> Bounds {
        Bounds {
            lower: self.lower.map(|lower| lower.load),
            upper: self.upper.map(FrameRate::per_second),
            unoffered: self.unoffered.map(FrameRate::per_second),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LINE: u64 = 1_488_095;

    fn goal(maximum: u64, final_secs: u64) -> BisectGoal {
        BisectGoal {
            maximum: FrameRate::per_second(maximum),
            minimum: FrameRate::per_second(1),
            width: BisectGoal::WIDTH,
            loss: Ratio::new(0, 1),
            search_time: Nanos::from_secs(2),
            final_time: Nanos::from_secs(final_secs),
        }
    }

    /// Runs a search to its end against a device that says how many of the frames of a trial it forwards.
    fn run(mut search: Bisect, forwards: impl Fn(u64, u64) -> u64) -> (Bounds, Vec<Counted>) {
        let mut trials: Vec<Counted> = Vec::new();
        while let Some(probe) = search.next() {
            assert_eq!(search.next(), Some(probe), "asking twice");
            assert!(trials.len() < 200, "does not end: {trials:?}");
            let seconds = probe.time.get() / 1_000_000_000;
            let forwarded = forwards(probe.load.get(), seconds);
            let counted = Counted { probe, intended: probe.load.get() * seconds, unsent: 0, forwarded };
            search.record(&counted);
            trials.push(counted);
        }
        (search.bounds(), trials)
    }

    fn loads(trials: &[Counted]) -> Vec<(u64, u64)> {
        trials.iter().map(|t| (t.probe.load.get(), t.probe.time.get() / 1_000_000_000)).collect()
    }

    #[test]
    fn a_device_at_line_rate_needs_the_maximum_only() {
        let (bounds, trials) = run(Bisect::new(goal(LINE, 60)), |load, s| load * s);
        assert_eq!(loads(&trials), [(LINE, 2), (LINE, 60)]);
        assert_eq!(bounds, Bounds { lower: Some(FrameRate::per_second(LINE)), ..Bounds::default() });
    }

    #[test]
    fn a_steady_device_is_found_by_what_it_forwards() {
        // Forwards 1,000,000/s. Width 0.2 %: one side is 1,000.
        let (bounds, trials) = run(Bisect::new(goal(LINE, 60)), |load, s| (load * s).min(1_000_000 * s));
        assert_eq!(loads(&trials), [(LINE, 2), (999_000, 2), (1_001_000, 2), (999_000, 60)]);
        assert_eq!(bounds.lower, Some(FrameRate::per_second(999_000)));
        assert_eq!(bounds.upper, Some(FrameRate::per_second(1_001_000)));
    }

    #[test]
    fn an_expected_load_saves_the_way_down() {
        let steady = |load: u64, s: u64| (load * s).min(1_000_000 * s);
        let expecting = |load| Bisect::new(goal(LINE, 60)).expecting(FrameRate::per_second(load));
        let (_, trials) = run(expecting(1_000_000), steady);
        assert_eq!(loads(&trials), [(999_000, 2), (1_001_000, 2), (999_000, 60)]);
        // Expected too much, too little, and more than the line carries: one trial more, two, none.
        let (_, trials) = run(expecting(1_100_000), steady);
        assert_eq!(loads(&trials), [(1_098_900, 2), (999_000, 2), (1_001_000, 2), (999_000, 60)]);
        let (_, trials) = run(expecting(500_000), steady);
        assert_eq!(loads(&trials)[..3], [(499_500, 2), (500_500, 2), (LINE, 2)]);
        assert_eq!(trials.last().map(|last| last.probe.load.get()), Some(999_000));
        let (_, trials) = run(expecting(2 * LINE), |load, s| load * s);
        assert_eq!(loads(&trials), [(LINE, 2), (LINE, 60)]);
    }

    #[test]
    fn a_device_that_collapses_under_overload_is_still_found() {
        let collapse = |load: u64, s: u64| if load <= 1_200_000 { load * s } else { load * s / 50 };
        let (bounds, trials) = run(Bisect::new(goal(LINE, 2)), collapse);
        let (lower, upper) = (bounds.lower.unwrap().get(), bounds.upper.unwrap().get());
        assert!(lower <= 1_200_000 && 1_200_000 < upper && upper - lower <= upper / 500, "{bounds:?}");
        assert!(trials.len() <= 16, "{:?}", loads(&trials));
    }

    #[test]
    fn loss_that_only_long_trials_show_sends_the_search_down_at_full_length() {
        // A buffer of 100,000 frames hides an overload of 50,000/s for two seconds, not for ten.
        let buffered = |load: u64, s: u64| (load * s).min(500_000 * s + 100_000);
        let (bounds, trials) = run(Bisect::new(goal(1_000_000, 10)), buffered);
        let (lower, upper) = (bounds.lower.unwrap().get(), bounds.upper.unwrap().get());
        assert!(lower <= 510_000 && 510_000 < upper && upper - lower <= upper / 500, "{bounds:?}");
        assert!(trials.iter().any(|t| t.probe.time == Nanos::from_secs(10) && t.exceeds(Ratio::new(0, 1))));
    }

    #[test]
    fn a_device_that_forwards_nothing_has_no_lower_bound() {
        let (bounds, _) =
            run(Bisect::new(BisectGoal { minimum: FrameRate::per_second(100), ..goal(LINE, 60) }), |_, _| 0);
        assert_eq!(bounds, Bounds { upper: Some(FrameRate::per_second(100)), ..Bounds::default() });
    }

    #[test]
    fn an_allowed_loss_moves_the_answer_up() {
        // 990,000 forwarded with 1 % allowed: a load of 1,000,000 loses just 1 %.
        let search = Bisect::new(BisectGoal { loss: Ratio::new(1, 100), ..goal(LINE, 2) });
        let (bounds, _) = run(search, |load, s| (load * s).min(990_000 * s));
        let (lower, upper) = (bounds.lower.unwrap().get(), bounds.upper.unwrap().get());
        assert!(lower <= 1_000_000 && 1_000_000 < upper, "{bounds:?}");
    }

    #[test]
    fn the_result_of_another_trial_is_ignored() {
        let mut search = Bisect::new(goal(LINE, 60));
        let probe = Probe { load: FrameRate::per_second(5), time: Nanos::from_secs(2) };
        search.record(&Counted { probe, intended: 10, unsent: 0, forwarded: 0 });
        assert_eq!(search.bounds(), Bounds::default());
    }

    proptest! {
        /// A device may do anything: every count is drawn from a hash of the load and the duration.
        #[test]
        fn any_device_ends_in_few_trials_with_honest_bounds(
            seed: u64,
            capacity in 1u64..3_000_000,
            wild in 0u64..100,
            maximum in 1u64..2_000_000,
            minimum in 1u64..2_000,
            final_secs in 1u64..5,
            allowed in 0u64..50,
            expected in proptest::option::of(0u64..3_000_000),
        ) {
            let allowed = Ratio::new(allowed, 1000);
            let goal = BisectGoal { minimum: FrameRate::per_second(minimum), loss: allowed, ..goal(maximum, final_secs) };
            let device = |load: u64, s: u64| {
                let draw = (load ^ seed ^ (s << 40)).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
                let draw = draw.wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 33;
                if draw % 100 < wild { load * s * (draw % 97) / 96 } else { (load * s).min(capacity * s) }
            };
            let search = Bisect::new(goal);
            let search = expected.map_or(search.clone(), |load| search.expecting(FrameRate::per_second(load)));
            let (bounds, trials) = run(search, device);

            // Each phase halves the range at most log2 + 1 times, with as many guesses and three, and two ends.
            let phase = 2 * (u64::BITS - maximum.leading_zeros() + 1) + GUESSES_AHEAD + 2;
            prop_assert!(trials.len() as u32 <= 2 * phase + 1);
            for trial in &trials {
                prop_assert!(trial.probe.load.get() <= maximum);
                if trial.exceeds(allowed) {
                    prop_assert!(bounds.upper.is_some_and(|upper| upper <= trial.probe.load));
                }
            }
            if let Some(lower) = bounds.lower {
                prop_assert!(bounds.upper.is_none_or(|upper| lower < upper));
                let at = |t: &&Counted| t.probe.load == lower;
                prop_assert!(trials.iter().filter(at).all(|t| !t.exceeds(allowed)));
                prop_assert!(trials.iter().filter(at).any(|t| t.probe.time >= goal.final_time));
            }
        }
    }
}
