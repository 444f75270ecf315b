//! What came of the counterproofs: they raise or lower the confidence in a verdict, or name another limit.

use super::pairs::Pairs;
use crate::verdict::{bits, percent};
use linerate_model::{Confidence, Detail, Interval, Limit, Measurement, Proof, Quantity, RecordId, Verdict};

/// Settles the verdicts on `results` that pairs of trials put to the test, and notes where the comparison with a calibration was
/// a test.
pub(crate) fn settle(pairs: &[Pairs], results: &mut [Measurement]) {
    for result in results.iter_mut() {
        if let (Some(limit), Limit::Device | Limit::Tester) = (&result.tester_limit, result.verdict.limit) {
            let proof = bypassed(&limit.record, result.main.median, limit.reached.median);
            result.verdict.proofs.push(proof);
        }
    }
    let named: Vec<Limit> = results.iter().map(|result| result.verdict.leading()).collect();
    for pairs in pairs {
        if let Some(index) = results.iter().position(|result| result.name == pairs.test.of) {
            weigh(&mut results[index].verdict, named[index], pairs);
        }
    }
}

/// The comparison of a result with that of the same hosts with the device bypassed, which named the device or the tester.
pub(crate) fn bypassed(calibration: &RecordId, before: f64, after: f64) -> Proof {
    Proof { by: calibration.0.clone(), before, after, pairs: 0, ratio: None, held: Some(true) }
}

/// Weighs what came of a test for the `verdict`, which named `limit` before any test.
fn weigh(verdict: &mut Verdict, limit: Limit, pairs: &Pairs) {
    let (lost, lost_then) = pairs.lost();
    let by_loss = pairs.is_of_loss();
    let (before, after) = match by_loss {
        true => (lost.share, lost_then.share),
        false => (pairs.unchanged.main.median, pairs.changed.main.median),
    };
    let said = match by_loss {
        true => {
            let then = format!("{} of {:.0} {}", percent(after), lost_then.of, lost_then.what);
            format!("{then} were lost instead of {}", percent(before))
        }
        false => match (&pairs.unchanged.detail, pairs.unchanged.quantity) {
            (Detail::Copy(_), _) => format!("the copy went at {} instead of {}", bits(after), bits(before)),
            (_, Quantity::PayloadBps) => format!("the result was {} instead of {}", bits(after), bits(before)),
            _ => format!("there were {after:.0} transactions/s instead of {before:.0}"),
        },
    };
    let (count, decision) = (pairs.count(), pairs.decision());
    let ratio = if by_loss { None } else { pairs.ratio() };
    let proof = Proof { by: pairs.changed.name.clone(), before, after, pairs: count, ratio, held: decision.held() };
    let said = format!("With {} {said} ({})", pairs.test.change, in_words(count, ratio));
    if verdict.leading() != limit {
        // An earlier test has named another; this one was of the first.
        verdict.proofs.push(proof);
        verdict.evidence.push(format!("{said}."));
        return;
    }
    take(verdict, limit, proof, &said, pairs.test.otherwise);
}

/// `in 3 pairs, 0.98 to 1.02 times`.
fn in_words(pairs: u32, ratio: Option<Interval>) -> String {
    let pairs = if pairs == 1 { String::from("in 1 pair") } else { format!("in {pairs} pairs") };
    ratio.map_or(pairs.clone(), |ratio| format!("{pairs}, {} to {} times", times(ratio.low), times(ratio.high)))
}

/// A ratio with two decimals, or one or none where it is large.
fn times(ratio: f64) -> String {
    match ratio {
        100.0.. => format!("{ratio:.0}"),
        10.0.. => format!("{ratio:.1}"),
        _ => format!("{ratio:.2}"),
    }
}

/// Lets `verdict` take what came of a test of `limit`, `said` in words; where the contrary came out, it may be `otherwise`.
fn take(verdict: &mut Verdict, limit: Limit, proof: Proof, said: &str, otherwise: Option<Limit>) {
    let held = proof.held;
    let judged = match held {
        Some(true) => "as it must be if this is the limit",
        Some(false) => "which speaks against this limit",
        None => "which is inconclusive",
    };
    // The first test tells most: where it was inconclusive, other limits have not been ruled out.
    let in_doubt = verdict.proofs.iter().any(|proof| proof.held.is_none());
    verdict.proofs.push(proof);
    verdict.evidence.push(format!("{said}, {judged}."));
    match held {
        Some(true) if in_doubt => {}
        // It was open: a test that would have named the other limit has excluded it.
        Some(true) if verdict.limit == Limit::CannotTell && otherwise.is_some() => {
            verdict.settle_on(limit, Confidence::High);
        }
        Some(true) => verdict.settle_on(limit, raised(verdict.confidence)),
        Some(false) => match otherwise {
            Some(other) => verdict.settle_on(other, Confidence::Medium),
            None => verdict.confidence = Confidence::Low,
        },
        None => {}
    }
}

/// One step more confidence.
fn raised(confidence: Confidence) -> Confidence {
    match confidence {
        Confidence::Low => Confidence::Medium,
        Confidence::Medium | Confidence::High => Confidence::High,
    }
}
