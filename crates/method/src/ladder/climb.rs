//! The method of a ladder: the cells of its plan, then raw frames, then copies.

use super::Beside;
use super::found;
use crate::contract::{After, Again, Method, Progress, Step};
use crate::results::measurements;
use crate::retry::tell_repeats;
use crate::sweep::{Sweep, tell, tell_untested};
use linerate_model::{Caveat, CaveatKind, Host, LadderPlan, Outcome, Plan, Record, RunSummary, TrialResult, message};

/// Runs the trials of a ladder. A layer that cannot be measured is no reason to lose the others: it is noted, and the run goes
/// on.
#[derive(Debug, Clone)]
pub struct Climb {
    plan: LadderPlan,
    sweep: Sweep,
    /// Attempts at trials that are no cells of the plan.
    beside: Vec<TrialResult>,
}

impl Climb {
    /// The ladder of `plan`, nothing run yet.
    pub fn new(plan: &Plan, ladder: &LadderPlan, hosts: &[Host]) -> Self {
        Self { plan: ladder.clone(), sweep: Sweep::new(plan, hosts).going_on(), beside: Vec::new() }
    }
}

impl Method for Climb {
    fn next(&self) -> Step {
        let step = self.sweep.next();
        if step != Step::Done {
            return step;
        }
        let beside = Beside::of(&self.plan, &self.beside);
        if let Some(trial) = beside.next_frames() {
            return Step::run(trial.clone(), Again::Decides);
        }
        beside.next_copy(&self.sweep.results()).map_or(Step::Done, |trial| Step::run(trial, Again::Search))
    }

    fn record(&mut self, result: &TrialResult) -> After {
        if Beside::has(&self.plan, &result.trial) {
            self.beside.push(result.clone());
            return After::GoOn;
        }
        self.sweep.record(result)
    }

    fn progress(&self) -> Progress {
        let beside = self.beside.iter().filter(|result| result.is_counted()).count();
        let progress = self.sweep.progress();
        // Which of the trials beside the cells can be run shows as they are.
        Progress { done: progress.done + beside, at_most: None, ..progress }
    }

    fn summary(&self) -> RunSummary {
        RunSummary::of(&self.sweep.results())
    }

    fn conclude(&self, record: &mut Record) {
        record.results = measurements(record);
        record.outcome = match record.results.is_empty() {
            true => Outcome::default(),
            false => Outcome::Ladder(found(&self.plan, &record.hosts, &record.results, &record.trials)),
        };
        let failed = record.trials.iter().filter(|run| run.trial.proves.is_none() && run.trial.net().is_some());
        let unmeasured: Vec<Caveat> = failed
            .filter_map(|run| {
                let text = message!(
                    "caveat-not-measured",
                    "{trial} was not measured: {why}",
                    trial = &run.trial.name,
                    why = run.failure()?
                );
                Some(Caveat::new(CaveatKind::NotMeasured, text))
            })
            .collect();
        tell(record, unmeasured);
        tell_untested(record);
        tell(record, Beside::of(&self.plan, &self.beside).doubts());
        tell_repeats(record);
    }
}
