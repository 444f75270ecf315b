//! Metrics and alerts of a fleet, kept by the process that schedules.

use crate::endpoint::{Endpoint, EndpointError};
use crate::metrics::{Family, HostRow, Metrics, PairFigure, PairResult, TrialOutcome};
use crate::notify::{Notifier, PageLinks, Target, TargetKind};
use crate::orders::{OrderOutcome, PairEnd};
use crate::presence::PresentAgents;
use linerate_bus::Kept;
use linerate_engine::Report;
use linerate_model::{HostName, RunSummary};
use linerate_schedule::{FleetFile, MissReason, Missed, Monitor};
use std::sync::Arc;
use std::time::Duration;

/// Age after which a pair without trials has no metrics any more.
const PAIRS_SHOWN: Duration = Duration::from_secs(7 * 24 * 3_600);

/// Time to send the alerts that wait when the process ends.
const LAST_ALERTS: Duration = Duration::from_secs(5);

/// Keeps metrics and alerts of a fleet while its process schedules.
pub struct WatchPost {
    file: FleetFile,
    monitor: Monitor,
    metrics: Arc<Metrics>,
    notifier: Notifier,
    report: Report,
}

impl WatchPost {
    /// Watches the meshes of `file` in `fleet`. Alerts link to the pages at `pages`.
    ///
    /// # Errors
    /// A target of alerts in the file has no valid URL, or HTTPS cannot be set up.
    pub fn new(
        fleet: &str,
        file: &FleetFile,
        pages: Option<&PageLinks>,
        metrics: Arc<Metrics>,
        report: Report,
    ) -> Result<Self, EndpointError> {
        let mut targets = Vec::new();
        for (number, url) in file.alerts.webhooks.iter().enumerate() {
            let name = format!("webhook-{}", number + 1);
            targets.push(Target { name, kind: TargetKind::Webhook, endpoint: Endpoint::new(url, None)? });
        }
        for (number, url) in file.alerts.alertmanagers.iter().enumerate() {
            let name = format!("alertmanager-{}", number + 1);
            targets.push(Target { name, kind: TargetKind::Alertmanager, endpoint: Endpoint::new(url, None)? });
        }
        metrics.set(Family::Scheduling, &[], 0.0);
        let notifier = Notifier::start(fleet, pages, targets, Arc::clone(&metrics))?;
        Ok(Self { file: file.clone(), monitor: Monitor::new(file.clone()), metrics, notifier, report })
    }

    /// Sets whether this process holds the lease.
    pub(crate) fn set_leader(&self, leads: bool) {
        self.metrics.set(Family::Scheduling, &[], f64::from(u8::from(leads)));
    }

    /// Begins a term with the agents and the trials that are kept, the oldest first. Alerts that these raise are sent:
    /// the process before may have ended before it could.
    pub(crate) fn begin(&mut self, agents: &PresentAgents, ends: &[Kept<PairEnd>], now_unix_s: u64) {
        self.monitor = Monitor::new(self.file.clone());
        self.set_hosts(agents, now_unix_s);
        for end in ends {
            let ended_unix_s = end.published_unix_ns / 1_000_000_000;
            self.record(&end.value, end.value.order.concurrent, ended_unix_s);
            self.evaluate(ended_unix_s);
        }
    }

    /// Takes the end of a trial, `concurrent` if an exclusive trial ran on its hosts or links. Returns whether the level of the pair
    /// changed.
    pub(crate) fn ended(&mut self, end: &PairEnd, concurrent: bool, now_unix_s: u64) -> bool {
        let outcome = match &end.outcome {
            OrderOutcome::Measured => TrialOutcome::Counted,
            OrderOutcome::Failed { reason } | OrderOutcome::Missed { reason } => {
                let order = &end.order;
                self.report.line(&format!("{}, {} to {}: {reason}", order.mesh, order.from, order.to));
                TrialOutcome::Failed
            }
        };
        self.metrics.count_trial(&end.order.mesh, outcome, end.bytes);
        let is_suspicious = self.record(end, concurrent, now_unix_s);
        self.evaluate(now_unix_s);
        is_suspicious
    }

    /// Takes a result into metrics and alerts. Returns whether the level of the pair changed.
    fn record(&mut self, end: &PairEnd, concurrent: bool, ended_unix_s: u64) -> bool {
        let order = &end.order;
        let summary = RunSummary { results: 1, headline: end.headline.clone(), verdict: end.verdict };
        self.metrics.record_pair(PairResult {
            from: order.from.clone(),
            to: order.to.clone(),
            test: order.mesh.clone(),
            ended_unix_s,
            figure: PairFigure::of(&summary),
        });
        let Some(headline) = &end.headline else { return false };
        self.monitor.result(&linerate_schedule::PairResult {
            mesh: order.mesh.clone(),
            from: order.from.clone(),
            to: order.to.clone(),
            at_unix_s: ended_unix_s,
            value: headline.value,
            unit: headline.unit,
            limit: end.verdict.map(|verdict| verdict.limit),
            concurrent,
        })
    }

    /// Takes slots that were missed.
    pub(crate) fn missed(&mut self, slots: &[Missed]) {
        for slot in slots {
            self.metrics.add(Family::MissedSlots, &[&slot.mesh, reason_name(&slot.reason)], 1.0);
            self.monitor.missed(slot);
        }
    }

    /// Takes the agents and whether they are present.
    pub(crate) fn agents(&mut self, agents: &PresentAgents, now_unix_s: u64) {
        self.set_hosts(agents, now_unix_s);
        self.metrics.forget_pairs(now_unix_s, PAIRS_SHOWN);
        self.evaluate(now_unix_s);
        for error in self.notifier.last_errors() {
            self.report.line(&error);
        }
    }

    fn set_hosts(&mut self, agents: &PresentAgents, now_unix_s: u64) {
        self.monitor.set_hosts(&agents.hosts(), now_unix_s);
        self.metrics.set_hosts(agents.all().map(|(name, labels, present)| HostRow {
            name: HostName(name.to_string()),
            site: labels.get("site").cloned(),
            zone: labels.get("zone").cloned(),
            present,
        }));
    }

    fn evaluate(&mut self, now_unix_s: u64) {
        for alert in self.monitor.evaluate(now_unix_s) {
            let change = if alert.resolved_unix_s.is_some() { "resolved" } else { "raised" };
            self.report.line(&format!("alert {change}: {}", alert.summary));
            self.notifier.send(&alert);
        }
    }

    /// Counts a plan.
    pub(crate) fn planned(&self, took: Duration, outstanding: usize, now_unix_s: u64) {
        self.metrics.count_plan(took, now_unix_s, outstanding);
    }

    /// Returns the alerts that are raised, a sentence each.
    pub(crate) fn raised(&self) -> Vec<String> {
        self.monitor.active().map(|alert| alert.summary.clone()).collect()
    }

    /// Sends the alerts that wait.
    pub(crate) async fn finish(self) {
        let left = self.notifier.finish(LAST_ALERTS).await;
        if left > 0 {
            self.report.line(&format!("{left} alerts were not delivered"));
        }
    }
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
