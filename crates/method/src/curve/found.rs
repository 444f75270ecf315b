//! What the loads say of a server.

use super::load::Loads;
use linerate_model::{CurveFound, CurvePeak, Measurement, Record};

const NS_PER_MS: f64 = 1e6;

/// What the loads amount to. The result that stands for the server is the peak's; without a peak the closed loop's.
pub(super) fn found(loads: &Loads, results: &[Measurement]) -> CurveFound {
    let peak = peak(loads);
    let named = |name: &str| results.iter().find(|result| result.name == name);
    let of_peak = peak.as_ref().and_then(|peak| named(&peak.result));
    let result = of_peak.or_else(|| named(&loads.plan.cell.name)).map(|result| result.name.clone());
    CurveFound { result, curve: loads.points().map(|(_, point)| point).collect(), peak }
}

/// Whether the result of that name stands for itself: of a curve only the peak does.
pub fn stands(record: &Record, name: &str) -> bool {
    let Some((plan, found)) = record.curve() else { return true };
    let is_load = found.curve.iter().any(|point| point.result == name);
    found.peak.as_ref().is_some_and(|peak| peak.result == name) || (name != plan.cell.name && !is_load)
}

/// Whether a curve was asked for and none of its loads was held.
pub fn lacks_peak(record: &Record) -> bool {
    record.plan.curve().is_some() && record.curve().is_none_or(|(_, found)| found.peak.is_none())
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
