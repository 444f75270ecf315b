//! Throughput: the highest rate at which no frame is lost (RFC 1242 section 3.17, RFC 2544 section 26.1).
//!
//! A rate is firm if the tester offered it, and offered the lowest rate at which frames were lost. Where it did not, the
//! result is a lower bound: the highest load that was really offered, and of which nothing was lost.

mod verdict;

use super::{TesterLimit, bound, directions, doubts, highest_load, load, whole};
use crate::offered::Offer;
use crate::transfer::rate;
use linerate_model::{
    Caveat, CaveatKind, DeviceLoad, DevicePlan, DeviceTest, DirectionCounts, Firmness, FrameTesterLimit, FramesRun,
    GoalBounds, Message, SearchGoal, Throughput, message,
};
use linerate_search::{Bisect, BisectGoal, Bounds, Counted, Goal, GoalResult, Mlr, Probe, Search};
use linerate_units::{FrameRate, FrameSize, Nanos, Ratio};

/// A result within this share of the tester's limit is the tester's own.
pub(super) const AT_TESTER_LIMIT: f64 = 0.97;
/// A result within this share of the line's rate fills it.
pub(crate) const AT_LINE: f64 = 0.997;
/// Where the device, offered more, lets no more than this many times the result through, it is what limits it.
const NEAR: f64 = 1.05;

/// The search at one size.
#[derive(Debug, Clone)]
pub(crate) struct ThroughputTest {
    size: FrameSize,
    by: By,
    tester_limit: Option<TesterLimit>,
    tried: Vec<Tried>,
    caveats: Vec<Caveat>,
}

/// How the rate is searched for.
#[derive(Debug, Clone)]
enum By {
    /// By halving, for the plan's loss.
    Halving(Bisect),
    /// For several goals at once.
    Goals(Vec<SearchGoal>, Mlr),
}

/// A trial: what the search was told of it, and what the tester offered.
#[derive(Debug, Clone)]
struct Tried {
    counted: Counted,
    offer: Offer,
    /// Frames a second as they arrived, all streams together.
    forwarded_per_s: f64,
    directions: Vec<DirectionCounts>,
    device_load: Option<DeviceLoad>,
}

impl Tried {
    fn load(&self) -> FrameRate {
        self.counted.probe.load
    }

    /// Frames a second that were really offered.
    fn offered_per_s(&self) -> f64 {
        self.load().get() as f64 * self.offer.share
    }
}

/// What a rate was searched for.
#[derive(Debug, Clone, Copy)]
struct Sought {
    /// Loss that a trial may have.
    loss: Ratio,
    /// Length of a trial that decides.
    time: Nanos,
}

/// What the trials show.
#[derive(Debug, Clone, Copy)]
struct Shown<'a> {
    /// Frames a second.
    rate: f64,
    firmness: Firmness,
    /// The line carries no higher one.
    at_line: bool,
    /// The trial that showed the rate; none if none did.
    decided: Option<&'a Tried>,
    bounds: Bounds,
}

impl By {
    fn search(&self) -> &dyn Search {
        match self {
            Self::Halving(search) => search,
            Self::Goals(_, search) => search,
        }
    }

    fn search_mut(&mut self) -> &mut dyn Search {
        match self {
            Self::Halving(search) => search,
            Self::Goals(_, search) => search,
        }
    }
}

impl ThroughputTest {
    /// The search at a size; `before` is what was found at the size before it. Many devices forward as many frames a
    /// second of either size.
    pub(crate) fn new(
        plan: &DevicePlan,
        size: FrameSize,
        tester_limit: Option<TesterLimit>,
        before: Option<&Throughput>,
    ) -> Self {
        let highest = highest_load(plan, size, tester_limit.as_ref());
        let slowest = (plan.directions.len() as u64).max(highest.get() / 10_000).max(1);
        let mut test = Self::from(plan, size, tester_limit, FrameRate::per_second(slowest));
        // What lost nothing at all says of other sizes only that they may do as well.
        let limited = before.filter(|before| before.lost_at_frames_per_s.is_some() && before.frames_per_s > 0.0);
        if let (By::Halving(search), Some(before)) = (&mut test.by, limited) {
            *search = search.clone().expecting(FrameRate::per_second(before.frames_per_s as u64));
        }
        test
    }

    /// The search down to `slowest`.
    pub(crate) fn from(
        plan: &DevicePlan,
        size: FrameSize,
        tester_limit: Option<TesterLimit>,
        slowest: FrameRate,
    ) -> Self {
        let highest = highest_load(plan, size, tester_limit.as_ref());
        let named = match &plan.test {
            DeviceTest::Goals { goals } => goals.as_slice(),
            _ => &[],
        };
        let goals: Vec<Goal> = named.iter().map(|goal| within(named_goal(*goal), plan.final_time)).collect();
        let by = match Mlr::new(&goals, slowest, highest) {
            Ok(search) => By::Goals(named.to_vec(), search),
            // No goal is named.
            Err(_) => By::Halving(Bisect::new(BisectGoal {
                maximum: highest,
                minimum: slowest.min(highest),
                width: plan.width,
                loss: plan.loss,
                search_time: plan.search_time,
                final_time: plan.final_time,
            })),
        };
        Self { size, by, tester_limit, tried: Vec::new(), caveats: Vec::new() }
    }

    pub(crate) fn next(&self) -> Option<(FrameRate, Nanos)> {
        self.by.search().next().map(|probe| (probe.load, probe.time))
    }

    /// Takes a trial; true when the search is over.
    pub(crate) fn record(&mut self, run: &FramesRun<'_>) -> bool {
        let Some(probe) = self.by.search().next() else { return true };
        let offer = Offer::of(run);
        let counted = counted(probe, &offer);
        self.tried.push(Tried {
            counted,
            offer,
            directions: directions(run),
            forwarded_per_s: forwarded_per_s(run),
            device_load: run.result.device_load.clone(),
        });
        self.by.search_mut().record(&counted);
        // Of each kind the last: that of the trial nearest to the answer.
        for caveat in &run.result.caveats {
            self.caveats.retain(|known| known.kind != caveat.kind);
            self.caveats.push(caveat.clone());
        }
        self.by.search().next().is_none()
    }

    pub(crate) fn known(&self) -> Message {
        let Bounds { lower, upper, unoffered } = self.by.search().bounds();
        let upper = upper.into_iter().chain(unoffered).min();
        message!("known-between", "between {lower} and {upper}", lower = bound(lower), upper = bound(upper))
    }

    /// What was found: one result, or one for each goal.
    pub(crate) fn outcomes(&self, plan: &DevicePlan) -> Vec<Throughput> {
        match &self.by {
            By::Halving(search) => {
                let (bounds, time) = (search.bounds(), plan.final_time.max(plan.search_time));
                let shown = self.shown(plan, bounds, bounds.lower, Sought { loss: plan.loss, time });
                vec![self.outcome(plan, shown, None)]
            }
            By::Goals(names, search) => {
                let found = names.iter().zip(search.results());
                found
                    .map(|(name, found)| {
                        let sought = Sought { loss: found.goal.loss, time: found.goal.final_time };
                        let shown = self.shown(plan, found.bounds, found.conditional_throughput, sought);
                        self.outcome(plan, shown, Some(bounds_of(*name, found)))
                    })
                    .collect()
            }
        }
    }

    /// What the trials show, where the search found `rate` at its lower bound.
    fn shown(&self, plan: &DevicePlan, bounds: Bounds, rate: Option<FrameRate>, sought: Sought) -> Shown<'_> {
        let at_lower = |trial: &&Tried| Some(trial.load()) == bounds.lower && trial.counted.is_offered();
        let of_lower = || self.tried.iter().filter(at_lower).filter(|trial| trial.counted.probe.time >= sought.time);
        // Within its tolerance the tester offered a little less.
        let share = of_lower().map(|trial| trial.offer.share).fold(1.0, f64::min);
        let at_line = bounds.lower.zip(lines(plan, self.size));
        let at_line = at_line.is_some_and(|(lower, lines)| lower.get() as f64 >= AT_LINE * lines);
        let firmness = if at_line { Firmness::Firm } else { self.firmness(plan, bounds) };
        // The last trial at the lower bound is the one that decided: a search ends with its validation.
        let decided = of_lower().next_back().or_else(|| self.tried.iter().rfind(at_lower));
        let rate = rate.map_or(0.0, |rate| rate.get() as f64 * share);
        let found = Shown { rate, firmness, at_line, decided, bounds };
        if firmness.is_firm() {
            return found;
        }
        let lost_at = bounds.upper.map_or(f64::INFINITY, |upper| upper.get() as f64);
        let bears = |trial: &&Tried| {
            trial.counted.probe.time >= sought.time
                && !trial.counted.loses(sought.loss)
                && trial.offered_per_s() < lost_at
        };
        let most = self.tried.iter().filter(bears).max_by(|a, b| a.offered_per_s().total_cmp(&b.offered_per_s()));
        match most.filter(|most| most.offered_per_s() > found.rate) {
            Some(most) => Shown {
                rate: most.offered_per_s(),
                firmness: if most.offer.is_whole() { firmness } else { most.offer.firmness() },
                decided: Some(most),
                ..found
            },
            None => found,
        }
    }

    /// Whether the bounds of a search that ended below the line's rate are those of what was searched for.
    fn firmness(&self, plan: &DevicePlan, bounds: Bounds) -> Firmness {
        let Bounds { lower, upper, unoffered } = bounds;
        let rate = |bound: Option<FrameRate>| bound.map(|bound| bound.get() as f64);
        let (low, high) = (rate(lower), rate(upper));
        let calibrates = plan.test == DeviceTest::Calibrate;
        let Some(short) = unoffered.and_then(|load| self.short_at(load)) else {
            // Nothing was lost at the highest load: the tester's limit kept it from more.
            return if high.is_some() || calibrates { Firmness::Firm } else { Firmness::NotFirm { offered: None } };
        };
        let close = low.zip(high).is_some_and(|(low, high)| high <= low * NEAR);
        // The rate that a tester cannot send is what a calibration looks for.
        let too_slow = calibrates && lower.is_some() && short.offer.held_up.is_none();
        if close || too_slow { Firmness::Firm } else { short.offer.firmness() }
    }

    /// The last trial at `load` that the tester did not offer.
    fn short_at(&self, load: FrameRate) -> Option<&Tried> {
        self.tried.iter().rfind(|trial| trial.load() == load && !trial.counted.is_offered())
    }

    fn outcome(&self, plan: &DevicePlan, mut shown: Shown<'_>, goal: Option<GoalBounds>) -> Throughput {
        let lines = lines(plan, self.size);
        let tester_limit = self.tester_limit.as_ref().map(|tester_limit| FrameTesterLimit {
            record: tester_limit.record.clone(),
            interleaved: tester_limit.interleaved,
            frames_per_s: tester_limit.frames_per_s,
            share: if tester_limit.frames_per_s > 0.0 { shown.rate / tester_limit.frames_per_s } else { 0.0 },
        });
        let at_tester_limit = tester_limit.as_ref().is_some_and(|limit| limit.share >= AT_TESTER_LIMIT);
        if shown.firmness.is_firm() && at_tester_limit && !shown.at_line {
            shown.firmness = Firmness::NotFirm { offered: None };
        }
        let verdict = self.verdict(plan, &shown, lines, tester_limit.as_ref());
        let Shown { rate, firmness, decided, bounds, .. } = shown;
        let mut caveats = match &goal {
            None => doubts(plan),
            Some(goal) => shortened(goal),
        };
        caveats.extend(self.caveats.iter().cloned());
        let device_load = decided.and_then(|trial| trial.device_load.clone());
        caveats.extend(load::doubts(device_load.as_ref()));
        caveats.extend(decided.and_then(queued));
        match (&plan.test, &tester_limit) {
            (DeviceTest::Calibrate, _) => caveats.push(Caveat::new(
                CaveatKind::TesterLimit,
                message!(
                    "caveat-is-tester-limit",
                    "this is the tester limit, measured without the device: no result through a device can be higher"
                ),
            )),
            (_, None) => caveats.push(Caveat::new(
                CaveatKind::NotCalibrated,
                message!(
                    "caveat-not-calibrated",
                    "the tester's limit at this size is not known: connect its ports by a cable and run `linerate \
                     device calibrate` with the same ports and sizes, then measure again"
                ),
            )),
            _ => {}
        }
        Throughput {
            frame_bytes: self.size.get(),
            goal,
            frames_per_s: rate,
            firmness,
            bits_per_s: rate * f64::from(self.size.get()) * 8.0,
            line_share: lines.map(|lines| rate / lines),
            lost_at_frames_per_s: bounds.upper.map(|load| load.get() as f64),
            directions: decided.map(|trial| trial.directions.clone()).unwrap_or_default(),
            tester_limit,
            trials: self.tried.len() as u32,
            trial_time: decided.map_or(plan.final_time, |trial| trial.counted.probe.time),
            device_load,
            limit: verdict.limit,
            verdict,
            caveats,
        }
    }
}

/// What a search is told of a trial. Within the tolerance of the offered load, only what was sent can be lost. Beyond it, what
/// was not offered counts as lost too (RFC 9971).
fn counted(probe: Probe, offer: &Offer) -> Counted {
    if offer.is_whole() {
        let (intended, forwarded) = (offer.sent, offer.received.min(offer.sent));
        return Counted { probe, intended, unsent: 0, forwarded };
    }
    let offered = (offer.due as f64 * offer.share) as u64;
    // What was sent too late was not offered either.
    let forwarded = match offer.received < offer.sent {
        true => (offered as f64 * offer.received as f64 / offer.sent as f64) as u64,
        false => offered,
    };
    Counted { probe, intended: offer.due, unsent: offer.due - offered, forwarded }
}

/// What the lines of all directions carry, frames per second; none where their rate is unknown.
pub(crate) fn lines(plan: &DevicePlan, size: FrameSize) -> Option<f64> {
    plan.line_frames(size).map(|line| line as f64)
}

fn named_goal(goal: SearchGoal) -> Goal {
    match goal {
        SearchGoal::Rfc2544 => Goal::rfc2544(),
        SearchGoal::Tst009 => Goal::tst009(),
        SearchGoal::Ndr => Goal::ndr(),
        SearchGoal::Pdr => Goal::pdr(),
    }
}

/// The goal with no trial longer than `longest`, and its duration sum as much shorter.
fn within(goal: Goal, longest: Nanos) -> Goal {
    let (longest, whole) = (longest.get(), goal.final_time.get());
    if longest < whole { goal.scaled(Ratio::new(longest, whole)) } else { goal }
}

fn bounds_of(name: SearchGoal, found: GoalResult) -> GoalBounds {
    GoalBounds {
        name,
        final_time: found.goal.final_time,
        duration_sum: found.goal.duration_sum,
        loss: found.goal.loss,
        exceed: found.goal.exceed,
        lower: found.bounds.lower,
        upper: found.bounds.upper,
        conditional_throughput: found.conditional_throughput,
        loss_at_lower: found.loss,
    }
}

/// Returns the rate at which the frames of a trial arrived, all streams together.
fn forwarded_per_s(run: &FramesRun<'_>) -> f64 {
    run.counts.streams.iter().map(|stream| rate(stream.received.saturating_sub(1), stream.receive_time.get())).sum()
}

/// Returns a caveat if the frames of the trial that decided arrived more slowly than they were sent: a queue took up the rest, and a
/// longer trial fills it.
fn queued(decided: &Tried) -> Option<Caveat> {
    /// Clocks and the first and last frames make less of a difference.
    const QUEUED: f64 = 0.97;
    let (sent, forwarded) = (decided.offered_per_s(), decided.forwarded_per_s);
    (forwarded > 0.0 && forwarded < sent * QUEUED).then(|| {
        let text = message!(
            "caveat-device-queued",
            "frames arrived at {forwarded} frames/s while the tester sent {sent}: the device's queue took up the rest, which a trial of \
             {time} did not fill; its lasting rate is nearer to {forwarded}, and longer trials find it (--time 60s)",
            forwarded = whole(forwarded),
            sent = whole(sent),
            time = decided.counted.probe.time
        );
        Caveat::new(CaveatKind::ShortTrial, text)
    })
}

/// A goal whose durations were cut no longer is what its name stands for.
fn shortened(goal: &GoalBounds) -> Vec<Caveat> {
    let whole = named_goal(goal.name);
    if goal.final_time >= whole.final_time {
        return Vec::new();
    }
    let text = message!(
        "caveat-goal-short",
        "goal {goal}: trials took {time}, {sum} at a load together, instead of {whole_time} and {whole_sum}: give \
         --time {seconds}s for a figure to be compared with others",
        goal = whole.name,
        time = goal.final_time,
        sum = goal.duration_sum,
        whole_time = whole.final_time,
        whole_sum = whole.duration_sum,
        seconds = whole.final_time.get() / 1_000_000_000
    );
    vec![Caveat::new(CaveatKind::ShortTrial, text)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goals_are_searched_for_by_the_names_they_are_asked_by() {
        assert!(SearchGoal::ALL.into_iter().all(|goal| named_goal(goal).name == goal.name()));
    }
}
