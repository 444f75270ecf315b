//! What a record's trials say of an NFS server.

use super::load::Loads;
use linerate_model::{CurvePeak, CurvePoint, Measurement, NfsOutcome, Record, WorkloadKind};

const NS_PER_MS: f64 = 1e6;

/// The outcome of a record whose results stand; none if it was made to find out something else.
///
/// Operations and classes are those of the peak; without a peak, or without a curve, those of the record's first NFS result.
pub fn found(record: &Record) -> Option<NfsOutcome> {
    let loads = record.plan.curve.clone().map(|plan| {
        let mut loads = Loads::new(plan);
        record.trials.iter().for_each(|trial| loads.record(trial));
        loads
    });
    // A ladder's rungs are results of their own.
    if loads.is_none() && record.plan.ladder.is_some() {
        return None;
    }
    let curve: Vec<CurvePoint> =
        loads.iter().flat_map(|loads| loads.points().map(|(_, point)| point).collect::<Vec<_>>()).collect();
    let peak = loads.as_ref().and_then(peak);
    let named = |name: &str| record.results.iter().find(|result| result.name == name);
    let probe = || named(&record.plan.curve.as_ref()?.probe);
    let of_nfs = |result: &&Measurement| result.workload == WorkloadKind::Nfs;
    let result = peak.as_ref().and_then(|peak| named(&peak.result));
    let result = result.or_else(probe).or_else(|| record.results.iter().find(of_nfs))?;
    Some(NfsOutcome {
        result: result.name.clone(),
        operations: result.operations.clone(),
        classes: result.classes.clone(),
        curve,
        peak,
    })
}

/// Whether the result of that name stands for itself: of a curve only the peak does.
pub fn stands(record: &Record, name: &str) -> bool {
    let Some(plan) = &record.plan.curve else { return true };
    let found = record.nfs();
    let is_load = found.is_some_and(|found| found.curve.iter().any(|point| point.result == name));
    let peak = found.and_then(|found| found.peak.as_ref());
    peak.is_some_and(|peak| peak.result == name) || (name != plan.probe && !is_load)
}

/// Whether a curve was asked for and none of its loads was held.
pub fn lacks_peak(record: &Record) -> bool {
    record.plan.curve.is_some() && record.nfs().is_none_or(|found| found.peak.is_none())
}

fn peak(loads: &Loads) -> Option<CurvePeak> {
    let (held, missed) = loads.bracket();
    let (_, held) = held?;
    let missed = missed.map(|(_, point)| point);
    Some(CurvePeak {
        result: held.result,
        offered_ops: held.offered_ops,
        achieved_ops: held.achieved_ops,
        mean_ms: held.mean_ms,
        response_cap_ms: loads.plan.response_cap.get() as f64 / NS_PER_MS,
        missed_at_ops: missed.as_ref().map(|point| point.intended_ops),
        missed: missed.and_then(|point| point.missed),
    })
}
