//! What limited a result: one file for each limit, each weighing the evidence for its own.
//!
//! A rule sees the result and the trials behind it and answers with evidence for its limit, or with nothing. The best
//! supported limit is the verdict. When no rule finds evidence the verdict is `cannot-tell`, and says what was missing.

mod tester;
mod wire;

use linerate_model::{Confidence, Limit, Measurement, Verdict};

/// Evidence for one limit.
#[derive(Debug, Clone, PartialEq)]
struct Evidence {
    limit: Limit,
    confidence: Confidence,
    text: String,
}

/// One rule a limit, in the order of the path.
const RULES: [fn(&Measurement) -> Option<Evidence>; 2] = [wire::weigh, tester::weigh];

/// The verdict on a result.
pub fn verdict(result: &Measurement) -> Verdict {
    let found: Vec<Evidence> = RULES.iter().filter_map(|rule| rule(result)).collect();
    // Of equally sure limits the first of the path rules: a full wire limits the tester too.
    match found.iter().rev().max_by_key(|evidence| evidence.confidence) {
        Some(best) => Verdict {
            limit: best.limit,
            confidence: best.confidence,
            evidence: found.iter().filter(|e| e.limit == best.limit).map(|e| e.text.clone()).collect(),
        },
        None => Verdict { limit: Limit::CannotTell, confidence: Confidence::Low, evidence: missing(result) },
    }
}

/// What it would take to tell.
fn missing(result: &Measurement) -> Vec<String> {
    let mut missing = Vec::new();
    match &result.limit {
        None if result.received.is_some() => {
            missing.push("The link's speed is not known, so a full wire cannot be told from a slow host.".to_owned());
        }
        Some(limit) => {
            missing.push(format!("The wire is not it: {:.0} % of what it can carry was used.", limit.share * 100.0))
        }
        None => {}
    }
    if result.ceiling.is_none() {
        missing.push("The tester was not calibrated with the device bypassed.".to_owned());
    }
    let core = |name: &str, cost: &linerate_model::CpuCost| {
        format!("The {name}'s busiest core was {:.0} % busy.", cost.busiest_core * 100.0)
    };
    missing.push(core("sender", &result.cpu.sender));
    missing.push(core("receiver", &result.cpu.receiver));
    missing
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::measurements;
    use crate::transfer::tests::{spec, trial};
    use linerate_model::{Ceiling, PathLimit, Plan, RecordId, Repeats};
    use linerate_units::BitRate;

    fn result() -> Measurement {
        let plan = Plan { cells: vec![spec()], repeats: Repeats::Times(1), device: None, ladder: None };
        measurements(&plan, &[], &[trial(10_000, 0)]).remove(0)
    }

    fn limited(share: f64) -> Measurement {
        let (line_bps, payload_bps) = (BitRate::per_second(100_000_000), BitRate::per_second(95_000_000));
        Measurement { limit: Some(PathLimit { line_bps, mtu: 1500, payload_bps, share }), ..result() }
    }

    fn at_ceiling(result: Measurement, share: f64) -> Measurement {
        let reached = crate::summary(vec![80e6]).expect("one run");
        Measurement { ceiling: Some(Ceiling { record: RecordId("calibration".into()), reached, share }), ..result }
    }

    #[test]
    fn a_full_line_is_the_wire_even_at_the_ceiling() {
        let verdict = verdict(&at_ceiling(limited(0.998), 1.0));
        assert_eq!((verdict.limit, verdict.confidence), (Limit::Wire, Confidence::High));
        assert!(verdict.evidence[0].contains("99.8 %"), "{:?}", verdict.evidence);
    }

    #[test]
    fn at_the_ceiling_below_the_line_it_is_the_tester() {
        assert_eq!(verdict(&at_ceiling(limited(0.4), 0.99)).limit, Limit::Tester);
        assert_eq!(verdict(&at_ceiling(result(), 0.99)).limit, Limit::Tester);
    }

    #[test]
    fn otherwise_it_cannot_tell_and_says_what_was_missing() {
        let verdict = verdict(&result());
        assert_eq!((verdict.limit, verdict.confidence), (Limit::CannotTell, Confidence::Low));
        assert!(verdict.evidence.iter().any(|text| text.contains("speed is not known")), "{:?}", verdict.evidence);
        assert!(verdict.evidence.iter().any(|text| text.contains("not calibrated")), "{:?}", verdict.evidence);
    }
}
