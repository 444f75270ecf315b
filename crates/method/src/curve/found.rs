//! What the loads say of a server.

use super::load::Loads;
use crate::offered::is_whole;
use linerate_model::{CurveFound, CurveMiss, CurvePeak, CurvePoint, Firmness, Limit, Measurement, Record};

const NS_PER_MS: f64 = 1e6;

/// What the loads amount to. The result that stands for the server is the peak's; without a peak the closed loop's.
pub(super) fn found(loads: &Loads, results: &[Measurement]) -> CurveFound {
    let peak = peak(loads, results);
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

/// Whether the result of that name is firm: of a curve the peak may be a lower bound.
pub fn firmness(record: &Record, name: &str) -> Firmness {
    record.curve().map_or(Firmness::Firm, |(_, found)| found.firmness_of(name))
}

/// Whether the load that was not held shows what the server holds, rather than what the client sends. Operations that are not
/// sent show nothing of a server that answers the others within the cap, or where the client's processor was at its limit.
fn firmness_below(missed: &CurvePoint, response_cap_ms: f64, results: &[Measurement]) -> Firmness {
    if missed.missed != Some(CurveMiss::Throughput) || is_whole(missed.sent_share) {
        return Firmness::Firm;
    }
    let limit = results.iter().find(|result| result.name == missed.result).map(|result| result.verdict.limit);
    let by_client = matches!(limit, Some(Limit::Tester | Limit::SenderCpu));
    match by_client || missed.mean_ms <= response_cap_ms {
        true => Firmness::NotFirm { offered: Some(missed.sent_share) },
        false => Firmness::Firm,
    }
}

fn peak(loads: &Loads, results: &[Measurement]) -> Option<CurvePeak> {
    let (held, missed) = loads.bracket();
    // A load of which nothing came due is no peak.
    let (_, held) = held.filter(|(_, point)| point.achieved_ops > 0.0)?;
    let missed = missed.map(|(_, point)| point);
    let response_cap_ms = loads.plan.response_cap.get() as f64 / NS_PER_MS;
    Some(CurvePeak {
        result: held.result,
        offered_ops: held.offered_ops,
        achieved_ops: held.achieved_ops,
        firmness: missed.as_ref().map_or(Firmness::Firm, |past| firmness_below(past, response_cap_ms, results)),
        mean_ms: held.mean_ms,
        response_cap_ms,
        missed_at_ops: missed.as_ref().map(|point| point.intended_ops),
        missed: missed.and_then(|point| point.missed),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn past(missed: CurveMiss, sent_share: f64, mean_ms: f64) -> CurvePoint {
        CurvePoint {
            result: "nfs 100 ops/s".to_owned(),
            intended_ops: 100.0,
            offered_ops: 100.0,
            achieved_ops: 90.0,
            mean_ms,
            p50_ms: mean_ms,
            p99_ms: mean_ms,
            undone: 10,
            sent_share,
            classes: BTreeMap::new(),
            missed: Some(missed),
            runs: 2,
        }
    }

    #[test]
    fn operations_that_a_client_did_not_send_show_no_limit_of_the_server() {
        let firm = |missed, sent, mean| firmness_below(&past(missed, sent, mean), 50.0, &[]).is_firm();
        assert!(!firm(CurveMiss::Throughput, 0.9, 2.0), "the others were answered at once");
        assert!(firm(CurveMiss::Throughput, 0.9, 200.0), "the others waited for the server");
        assert!(firm(CurveMiss::Throughput, 1.0, 2.0), "they failed, and were sent");
        assert!(firm(CurveMiss::ResponseTime, 0.9, 200.0));
    }

    #[test]
    fn a_client_at_its_limit_leaves_the_peak_open() {
        let mut result = crate::measure::tests::measure(&[], &[crate::transfer::tests::trial(1_000, 0)]);
        (result.name, result.verdict.limit) = ("nfs 100 ops/s".to_owned(), Limit::SenderCpu);
        let past = past(CurveMiss::Throughput, 0.9, 200.0);
        assert_eq!(firmness_below(&past, 50.0, &[result]), Firmness::NotFirm { offered: Some(0.9) });
    }
}
