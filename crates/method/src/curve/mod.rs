//! Response time against load: operations at one load after the other, up to what the server holds and a little past it;
//! then the search for the highest load that it does hold, its peak.
//!
//! A load is held where
//! 1. something was answered,
//! 2. of the operations that came due no more were left undone than the plan's shortfall,
//! 3. no more of them failed than that, and
//! 4. the mean response time, which counts from when an operation was due, stayed within the cap.
//!
//! The scale of the loads is the rate of a closed loop with the same operations, which is the plan's cell. Each load is
//! a trial named after it, so that a record has them all and everything said of it can be worked out again.
//! A load that is not held is offered once more before that is believed: a host that stumbles is common, and one such stumble
//! at a low load would hide all of the curve above it.

mod found;
mod load;
mod search;
mod tester_limit;
#[cfg(test)]
mod tests;

pub use crate::tester_limit::TESTER_LIMIT;
pub use found::{firmness, lacks_peak, stands};
pub use tester_limit::calibration;

use crate::contract::{After, Again, Method, Progress, Step};
use crate::results::measurements;
use crate::retry::tell_repeats;
use crate::sweep::Sweep;
use linerate_model::{
    Confidence, CurvePlan, Firmness, Headline, HeadlineVerdict, Host, Limit, Outcome, Plan, Record, RunSummary, Task,
    Timing, Trial, TrialResult, Window,
};
use linerate_units::OpRate;
use load::Loads;
use search::Next;

/// The bisection takes about so many loads more than the steps do.
const USUAL_SEARCH: usize = 6;

/// Runs a closed loop to find the scale, and then the loads of its curve.
#[derive(Debug, Clone)]
pub struct Curve {
    sweep: Sweep,
    loads: Loads,
}

impl Curve {
    /// The curve of `plan`, nothing run yet.
    pub fn new(plan: &Plan, curve: &CurvePlan, hosts: &[Host]) -> Self {
        Self { sweep: Sweep::new(plan, hosts), loads: Loads::new(curve.clone()) }
    }

    /// The trial of a load.
    fn cell(&self, ops: u64) -> Option<Trial> {
        let CurvePlan { cell, time, .. } = &self.loads.plan;
        let mut cell = cell.clone();
        let Task::Nfs(nfs) = cell.task_mut() else { return None };
        nfs.rate = Some(OpRate::per_second(ops));
        cell.name = load::name(&cell);
        let load = cell.loads.first_mut()?;
        load.timing = Timing::Window(Window { measure: *time, ..load.timing.window()? });
        Some(cell)
    }

    fn next_load(&self) -> Next {
        match self.loads.scale() {
            Some(scale) => search::next(scale, &self.loads),
            None => Next::Done,
        }
    }
}

impl Method for Curve {
    fn next(&self) -> Step {
        let step = self.sweep.next();
        if step != Step::Done {
            return step;
        }
        match self.next_load() {
            Next::Offer(ops) => self.cell(ops).map_or(Step::Done, |cell| Step::run(cell, Again::Search)),
            Next::Done => Step::Done,
        }
    }

    fn record(&mut self, result: &TrialResult) -> After {
        self.loads.record(result);
        // A load is repeated as the plan's own cell is.
        if result.failure().is_none() {
            self.sweep.add(&result.trial);
        }
        self.sweep.record(result)
    }

    fn progress(&self) -> Progress {
        let progress = self.sweep.progress();
        let usual = self.loads.plan.steps as usize + USUAL_SEARCH;
        let ended = self.loads.is_probed() && self.next_load() == Next::Done;
        let left = if ended { 0 } else { usual.saturating_sub(self.loads.len()).max(1) };
        Progress { at_most: progress.at_most.map(|known| known + left), ..progress }
    }

    fn summary(&self) -> RunSummary {
        let results = self.sweep.results();
        let found = found::found(&self.loads, &results);
        let stands = found.result.and_then(|name| results.iter().find(|result| result.name == name));
        let summary = RunSummary::of(&results);
        let Some(result) = stands else { return summary };
        let firmness = found.peak.as_ref().map_or(Firmness::Firm, |peak| peak.firmness);
        let headline = Headline::of(result, firmness);
        let verdict = match firmness.is_firm() {
            true => HeadlineVerdict { limit: result.verdict.limit, confidence: result.verdict.confidence },
            false => HeadlineVerdict { limit: Limit::CannotTell, confidence: Confidence::Low },
        };
        RunSummary { headline: Some(headline), verdict: Some(verdict), ..summary }
    }

    fn conclude(&self, record: &mut Record) {
        record.results = measurements(record);
        record.outcome = Outcome::Curve(found::found(&self.loads, &record.results));
        tell_repeats(record);
    }
}
