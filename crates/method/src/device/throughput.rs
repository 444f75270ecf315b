//! Throughput: the highest rate at which no frame is lost (RFC 1242 section 3.17, RFC 2544 section 26.1).

use super::{TesterLimit, directions, doubts, fell_short, highest_load, kept_its_rate, load, sum, whole};
use crate::proof::bypassed;
use crate::search::{Bisect, BisectGoal, Bounds, Counted, Goal, GoalResult, Mlr, Search};
use linerate_model::{
    Caveat, CaveatKind, Confidence, DeviceLoad, DevicePlan, DeviceTest, DirectionCounts, FrameTesterLimit, FramesRun,
    GoalBounds, Limit, SearchGoal, Throughput, Verdict,
};
use linerate_units::{FrameRate, FrameSize, Nanos, Ratio, grouped};

/// A result within this share of the tester's limit is the tester's own.
pub(super) const AT_TESTER_LIMIT: f64 = 0.97;
/// A result within this share of the line's rate fills it.
pub(crate) const AT_LINE: f64 = 0.997;
/// Where the device, offered more, lets no more than this many times the result through, it is what limits it.
const NEAR: f64 = 1.05;
/// With so much, it is the device rather than the tester that gives way, only not quite where.
const NEAR_ENOUGH: f64 = 1.25;

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

/// A trial: its load, whether the tester sent all of it, and what was lost of what it sent.
#[derive(Debug, Clone)]
struct Tried {
    load: u64,
    time: Nanos,
    short: bool,
    lost_of_sent: u64,
    directions: Vec<DirectionCounts>,
    device_load: Option<DeviceLoad>,
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
        let goals: Vec<Goal> = named.iter().map(|goal| within(Goal::of(*goal), plan.final_time)).collect();
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
        let (intended, sent) = (sum(run, |stream| stream.intended), sum(run, |stream| stream.sent));
        let received = sum(run, |stream| stream.received);
        let too_slow = fell_short(run) && !kept_its_rate(run);
        self.tried.push(Tried {
            load: probe.load.get(),
            time: probe.time,
            // What the tester never sent weighs as much as what did not come back.
            short: too_slow || intended.saturating_sub(sent) > sent.saturating_sub(received),
            lost_of_sent: sent.saturating_sub(received),
            directions: directions(run),
            device_load: run.result.device_load.clone(),
        });
        // Within the tolerance of the offered load, only what was sent can be lost. Beyond it, what was not offered counts as
        // lost too (RFC 9971), so that no rate is reported that the tester cannot offer. One that was held up, however often
        // the trial was repeated, can: between the pauses the load was what it was to be, and its caveat says that they were.
        let (due, offered) = match too_slow {
            true => (intended, (intended as f64 * run.offered_share()) as u64),
            false => (sent, sent),
        };
        self.by.search_mut().record(&Counted { probe, intended: due, forwarded: received.min(offered) });
        // Of each kind the last: that of the trial nearest to the answer.
        for caveat in &run.result.caveats {
            self.caveats.retain(|known| known.kind != caveat.kind);
            self.caveats.push(caveat.clone());
        }
        self.by.search().next().is_none()
    }

    pub(crate) fn known(&self) -> String {
        let rate = |bound: Option<FrameRate>| bound.map_or_else(|| "?".to_owned(), |rate| rate.to_string());
        let bounds = self.by.search().bounds();
        format!("between {} and {}", rate(bounds.lower), rate(bounds.upper))
    }

    /// What was found: one result, or one for each goal.
    pub(crate) fn outcomes(&self, plan: &DevicePlan) -> Vec<Throughput> {
        match &self.by {
            By::Halving(search) => {
                let bounds = search.bounds();
                vec![self.outcome(plan, bounds, bounds.lower, None)]
            }
            By::Goals(names, search) => {
                let found = names.iter().zip(search.results());
                found
                    .map(|(name, found)| {
                        self.outcome(plan, found.bounds, found.conditional_throughput, Some(bounds_of(*name, found)))
                    })
                    .collect()
            }
        }
    }

    fn outcome(
        &self,
        plan: &DevicePlan,
        bounds: Bounds,
        rate: Option<FrameRate>,
        goal: Option<GoalBounds>,
    ) -> Throughput {
        // The last trial at the lower bound is the one that decided: a search ends with its validation.
        let decided = self.tried.iter().rfind(|trial| Some(trial.load) == bounds.lower.map(FrameRate::get));
        let rate = rate.map_or(0.0, |rate| rate.get() as f64);
        let lines = lines(plan, self.size);
        let tester_limit = self.tester_limit.as_ref().map(|tester_limit| FrameTesterLimit {
            record: tester_limit.record.clone(),
            frames_per_s: tester_limit.frames_per_s,
            share: if tester_limit.frames_per_s > 0.0 { rate / tester_limit.frames_per_s } else { 0.0 },
        });
        let verdict = self.verdict(plan, rate, lines, tester_limit.as_ref(), bounds.upper);
        let mut caveats = match &goal {
            None => doubts(plan),
            Some(goal) => shortened(goal),
        };
        caveats.extend(self.caveats.iter().cloned());
        let device_load = decided.and_then(|trial| trial.device_load.clone());
        caveats.extend(load::doubts(device_load.as_ref()));
        match (&plan.test, &tester_limit) {
            (DeviceTest::Calibrate, _) => caveats.push(Caveat::new(
                CaveatKind::TesterLimit,
                "this is the tester limit, measured without the device: no result through a device can be higher",
            )),
            (_, None) => caveats.push(Caveat::new(
                CaveatKind::NotCalibrated,
                "the tester's limit at this size is not known: connect its ports by a cable and run `linerate device \
                 calibrate` with the same ports and sizes, then measure again",
            )),
            _ => {}
        }
        Throughput {
            frame_bytes: self.size.get(),
            goal,
            frames_per_s: rate,
            bits_per_s: rate * f64::from(self.size.get()) * 8.0,
            line_share: lines.map(|lines| rate / lines),
            lost_at_frames_per_s: bounds.upper.map(|load| load.get() as f64),
            directions: decided.map(|trial| trial.directions.clone()).unwrap_or_default(),
            tester_limit,
            trials: self.tried.len() as u32,
            trial_time: decided.map_or(plan.final_time, |trial| trial.time),
            device_load,
            limit: verdict.limit,
            verdict,
            caveats,
        }
    }

    /// What limited the rate: the line, the tester, or what stands between its ports.
    fn verdict(
        &self,
        plan: &DevicePlan,
        rate: f64,
        lines: Option<f64>,
        tester_limit: Option<&FrameTesterLimit>,
        failed: Option<FrameRate>,
    ) -> Verdict {
        let say = Verdict::new;
        if let Some(lines) = lines
            && rate >= AT_LINE * lines
        {
            let text = format!("{} frames/s are {:.1} % of what the line carries", whole(rate), rate / lines * 100.0);
            return say(Limit::Wire, Confidence::High, vec![text]);
        }
        if plan.test == DeviceTest::Calibrate {
            let text = format!("without a device between its ports the tester reached {} frames/s", whole(rate));
            return say(Limit::Tester, Confidence::High, vec![text]);
        }
        // The lowest load that failed tells what gave way first.
        let failed = failed.map(FrameRate::get);
        // A goal may try a load many times, and the tester may have spoilt a trial just there: the device is to blame where,
        // offered that load or more by a tester that was not short, it let hardly more through than the result.
        let let_through = |trial: &Tried| {
            let forwarded: f64 = trial.directions.iter().map(|direction| direction.frames_per_s).sum();
            forwarded.min(trial.load as f64)
        };
        let by_device = self.tried.iter().filter(|trial| !trial.short && trial.lost_of_sent > 0);
        let by_device = by_device.filter(|trial| failed.is_some_and(|failed| trial.load >= failed));
        let gave_way = by_device
            .min_by(|one, other| let_through(one).total_cmp(&let_through(other)))
            .filter(|trial| let_through(trial) <= failed.unwrap_or_default() as f64 * NEAR_ENOUGH);
        if let Some(tester_limit) = tester_limit
            && tester_limit.share >= AT_TESTER_LIMIT
        {
            let text = format!(
                "{} frames/s are {:.1} % of the tester's limit of {} frames/s: the device may carry more",
                whole(rate),
                tester_limit.share * 100.0,
                whole(tester_limit.frames_per_s)
            );
            let proofs = vec![bypassed(&tester_limit.record, rate, tester_limit.frames_per_s)];
            return Verdict { proofs, ..say(Limit::Tester, Confidence::High, vec![text]) };
        }
        let Some(failed) = failed else {
            let text = format!("no frame was lost up to the highest rate tried, {} frames/s", whole(rate));
            return say(Limit::CannotTell, Confidence::Low, vec![text]);
        };
        let Some(gave_way) = gave_way else {
            let text =
                format!("at {} frames/s the tester itself did not send all frames that were due", grouped(failed));
            return say(Limit::Tester, Confidence::Medium, vec![text]);
        };
        let sent = format!(
            "at {} frames/s the tester sent every frame, and {} did not come back",
            grouped(gave_way.load),
            grouped(gave_way.lost_of_sent)
        );
        match tester_limit {
            Some(tester_limit) => {
                let room = format!(
                    "with the device bypassed the tester reached {} frames/s, {:.1} times as many",
                    whole(tester_limit.frames_per_s),
                    tester_limit.frames_per_s / rate.max(1.0)
                );
                let near = let_through(gave_way) <= failed as f64 * NEAR;
                let proofs = vec![bypassed(&tester_limit.record, rate, tester_limit.frames_per_s)];
                let confidence = if near { Confidence::High } else { Confidence::Medium };
                Verdict { proofs, ..say(Limit::Device, confidence, vec![sent, room]) }
            }
            None => {
                let missing =
                    "whether the tester's receiving port could have taken them is not known: it was not calibrated";
                say(Limit::CannotTell, Confidence::Low, vec![sent, missing.to_owned()])
            }
        }
    }
}

/// What the lines of all directions carry, frames per second; none where their rate is unknown.
pub(crate) fn lines(plan: &DevicePlan, size: FrameSize) -> Option<f64> {
    plan.line.map(|line| (size.line_rate(line).get() * plan.directions.len() as u64) as f64)
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

/// A goal whose durations were cut no longer is what its name stands for.
fn shortened(goal: &GoalBounds) -> Vec<Caveat> {
    let whole = Goal::of(goal.name);
    if goal.final_time >= whole.final_time {
        return Vec::new();
    }
    let text = format!(
        "goal {}: trials took {}, {} at a load together, instead of {} and {}: give --time {}s for a figure to be compared \
         with others",
        whole.name,
        goal.final_time,
        goal.duration_sum,
        whole.final_time,
        whole.duration_sum,
        whole.final_time.get() / 1_000_000_000
    );
    vec![Caveat::new(CaveatKind::ShortTrial, text)]
}
