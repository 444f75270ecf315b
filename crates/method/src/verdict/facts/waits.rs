//! What requests waited for beyond the usual: those that were lost, and sent again or given up.

use crate::transfer::transfers;
use linerate_model::{EndCounts, Measurement, Task, TrialResult};

/// Requests that took longer than most, over all runs.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Waits {
    /// Requests sent again, given up or carried by a retransmitted segment, as a share of all.
    pub(crate) repeated: f64,
    /// Share of the time spent on requests that they would not have taken if each were answered as soon as the median one.
    pub(crate) in_tail: f64,
}

impl Waits {
    /// The waits of requests; none for streams, and at a set rate, where requests wait for one another at their sender.
    pub(super) fn of(result: &Measurement, runs: &[&TrialResult]) -> Option<Self> {
        let task = runs.first()?.trial.task();
        let latency = result.latency()?;
        if task.requests_per_s().is_some() {
            return None;
        }
        let slots = match task {
            Task::Transact(transact) => f64::from(transact.outstanding) * f64::from(transact.net.flows),
            calls => f64::from(calls.outstanding().unwrap_or(1)),
        };
        let (mut all, mut repeated, mut time) = (0, 0, 0.0);
        for transfer in runs.iter().flat_map(|run| transfers(run)) {
            let Some(done) = &transfer.sender.transactions else { continue };
            let segments = |end: &EndCounts| -> u64 {
                end.flows.iter().filter_map(|flow| flow.tcp.as_ref()).map(|tcp| tcp.retransmits).sum()
            };
            all += done.completed + done.failed;
            repeated += done.failed + done.retransmitted + segments(transfer.sender) + segments(transfer.receiver);
            time += done.window.get() as f64 * slots;
        }
        // Who waits for an answer that never comes waits too, but is in no latency.
        let usual = latency.count as f64 * latency.p50 as f64;
        let spent = (latency.count as f64 * latency.mean).max(if repeated > 0 { time } else { 0.0 });
        Some(Self {
            repeated: repeated as f64 / all.max(1) as f64,
            in_tail: ((spent - usual) / spent.max(1.0)).clamp(0.0, 1.0),
        })
    }
}
