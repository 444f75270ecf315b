//! The loads that were offered, and what came of each.

use crate::task::figure;
use crate::task::nfs::{merge, window};
use crate::transfer::rate;
use linerate_model::{
    ClassPoint, CurveMiss, CurvePlan, CurvePoint, Histogram, NfsClass, OperationCounts, Task, Trial, TrialResult,
};
use std::collections::BTreeMap;

const NS_PER_MS: f64 = 1e6;
/// Operations that the window's two ends may cut off, whatever the load.
const CUT_OFF: f64 = 2.0;

/// What stands for a status where the server gave none.
const NO_REPLY: &str = "no reply";

/// What a trial of `cell` at its set load is called.
pub(super) fn name(cell: &Trial) -> String {
    format!("nfs {} ops/s", intended(cell).unwrap_or_default())
}

/// Operations per second that a cell asks for on all its paths; none of a closed loop.
fn intended(cell: &Trial) -> Option<u64> {
    Some(cell.task().requests_per_s()?.get() * cell.paths().len() as u64)
}

/// Operations per second that each client was asked for, and what came of it.
pub(super) type Load = (u64, CurvePoint);

/// The loads of a curve, the lowest first.
#[derive(Debug, Clone)]
pub(super) struct Loads {
    pub(super) plan: CurvePlan,
    /// The closed loop's rates, of each client.
    probed: Vec<f64>,
    /// Operations per second of each client, and its runs.
    all: BTreeMap<u64, Vec<CurvePoint>>,
}

impl Loads {
    pub(super) fn new(plan: CurvePlan) -> Self {
        Self { plan, probed: Vec::new(), all: BTreeMap::new() }
    }

    /// Takes a trial, if it is one of the curve's.
    pub(super) fn record(&mut self, result: &TrialResult) {
        let trial = &result.trial;
        let Task::Nfs(nfs) = trial.task() else { return };
        if !result.is_counted() {
            return;
        }
        match nfs.rate {
            None if trial.name == self.plan.cell.name => {
                self.probed.push(figure(result) / nfs.paths.len().max(1) as f64);
            }
            Some(rate) if trial.name == name(trial) && trial.proves.is_none() => {
                self.all.entry(rate.get()).or_default().push(point(result, &self.plan));
            }
            _ => (),
        }
    }

    /// The closed loop has been run.
    pub(super) fn is_probed(&self) -> bool {
        !self.probed.is_empty()
    }

    /// What one client reaches in a closed loop; none before that is known, and where nothing was answered.
    pub(super) fn scale(&self) -> Option<f64> {
        let most = self.probed.iter().copied().fold(0.0, f64::max);
        (most > 0.0).then_some(most)
    }

    /// How many loads were offered.
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// Each load with the run that stands for it, the lowest first.
    pub(super) fn points(&self) -> impl DoubleEndedIterator<Item = Load> {
        self.all.iter().filter_map(|(ops, runs)| Some((*ops, middle(runs)?)))
    }

    /// The highest load that was held below the lowest that was not, and that one.
    pub(super) fn bracket(&self) -> (Option<Load>, Option<Load>) {
        let missed = self.points().find(|(_, point)| point.missed.is_some());
        let below = missed.as_ref().map_or(u64::MAX, |(ops, _)| *ops);
        (self.points().rfind(|(ops, _)| *ops < below), missed)
    }
}

/// The run in the middle: those that were held come first, then by mean response time; of two it is the better.
fn middle(runs: &[CurvePoint]) -> Option<CurvePoint> {
    let mut order: Vec<&CurvePoint> = runs.iter().collect();
    let worse = |point: &CurvePoint| match point.missed {
        // Nothing came due: any other run says more.
        None if point.offered_ops == 0.0 => 3,
        None => 0,
        // Nothing timed has no time.
        Some(CurveMiss::Silence) => 2,
        Some(_) => 1,
    };
    order.sort_by(|left, right| worse(left).cmp(&worse(right)).then(left.mean_ms.total_cmp(&right.mean_ms)));
    let middle = order.get(runs.len().saturating_sub(1) / 2)?;
    Some(CurvePoint { runs: runs.len() as u32, ..(*middle).clone() })
}

/// What came of one run.
fn point(result: &TrialResult, plan: &CurvePlan) -> CurvePoint {
    let window_ns = window(result);
    let (mut latency, mut completed, mut undone, mut not_sent, mut errors) = (Histogram::default(), 0, 0, 0, 0);
    let mut classes: BTreeMap<NfsClass, OperationCounts> = BTreeMap::new();
    for end in result.paths().iter().map(|path| &path.client) {
        if let Some(transactions) = &end.transactions {
            latency.merge(&transactions.latency);
            completed += transactions.completed;
            undone += transactions.failed + transactions.not_sent;
            not_sent += transactions.not_sent;
        }
        for (operation, counts) in &end.operations {
            merge(classes.entry(operation.class()).or_default(), counts);
            let statuses = counts.errors.iter().filter(|(status, _)| *status != NO_REPLY);
            errors += statuses.map(|(_, count)| count).sum::<u64>();
        }
    }
    // Each operation that was due has either been timed, failed, or not been sent.
    let due = latency.count() + undone;
    let allowed = plan.shortfall.as_f64() * due as f64 + CUT_OFF;
    let missed = if due == 0 && errors == 0 {
        // Nothing came due in so short a window, which says nothing of the server.
        None
    } else if completed + errors == 0 {
        Some(CurveMiss::Silence)
    } else if errors as f64 > plan.shortfall.as_f64() * due as f64 {
        Some(CurveMiss::Errors)
    } else if (due as f64 - completed as f64).max(undone as f64) > allowed {
        Some(CurveMiss::Throughput)
    } else if latency.mean() > plan.response_cap.get() as f64 {
        Some(CurveMiss::ResponseTime)
    } else {
        None
    };
    let class = |counts: &OperationCounts| ClassPoint {
        achieved_ops: rate(counts.completed, window_ns),
        mean_ms: counts.latency.mean() / NS_PER_MS,
        p99_ms: counts.latency.quantile(0.99) as f64 / NS_PER_MS,
    };
    CurvePoint {
        result: result.trial.name.clone(),
        intended_ops: intended(&result.trial).unwrap_or_default() as f64,
        offered_ops: rate(due, window_ns),
        achieved_ops: rate(completed, window_ns),
        mean_ms: latency.mean() / NS_PER_MS,
        p50_ms: latency.quantile(0.5) as f64 / NS_PER_MS,
        p99_ms: latency.quantile(0.99) as f64 / NS_PER_MS,
        undone,
        sent_share: 1.0 - not_sent as f64 / due.max(1) as f64,
        classes: classes.iter().map(|(kind, counts)| (*kind, class(counts))).collect(),
        missed,
        runs: 1,
    }
}
