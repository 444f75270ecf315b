//! What came of the counterproofs: they raise or lower the confidence in a verdict, or name another limit.

use super::pairs::Pairs;
use crate::verdict::{bits, percent};
use linerate_model::{
    Bypass, Confidence, Counterproof, Detail, Expects, Interval, Limit, Measurement, Message, MessageValue, Proof,
    Quantity, RecordId, TaskKind, Verdict, message,
};

/// Settles the verdicts on `results` that pairs of trials put to the test, and notes where the comparison with a calibration was
/// a test.
pub(crate) fn settle(pairs: &[Pairs], results: &mut [Measurement]) {
    for result in results.iter_mut() {
        // What a loopback reaches is an estimate, and tests nothing; NFS has a tester limit of its own.
        let of_nfs = result.task() == TaskKind::Nfs;
        let limit = result.tester_limit.as_ref().filter(|limit| of_nfs || limit.bypass == Bypass::Cable);
        if let (Some(limit), Limit::Device | Limit::Tester) = (limit, result.verdict.limit) {
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
        false => pairs.figures().map(|figures| figures.median).into(),
    };
    let said = match by_loss {
        true => message!(
            "proof-lost",
            "{after} of {count} {what} were lost instead of {before}",
            after = percent(after),
            count = MessageValue::number(lost_then.of, 0),
            what = lost_then.what,
            before = percent(before)
        ),
        false => {
            let rates = (bits(after), bits(before));
            match (&pairs.unchanged.detail, pairs.unchanged.quantity) {
                (Detail::Copy(_), _) => {
                    message!(
                        "proof-copy",
                        "the copy went at {after} instead of {before}",
                        after = rates.0,
                        before = rates.1
                    )
                }
                _ if pairs.test.expects == Expects::SameOnWire => message!(
                    "proof-with-headers",
                    "the rate with all headers was {after} instead of {before}",
                    after = rates.0,
                    before = rates.1
                ),
                (_, Quantity::PayloadBps) => {
                    message!(
                        "proof-result",
                        "the result was {after} instead of {before}",
                        after = rates.0,
                        before = rates.1
                    )
                }
                _ => message!(
                    "proof-transactions",
                    "there were {after} transactions/s instead of {before}",
                    after = MessageValue::number(after, 0),
                    before = MessageValue::number(before, 0)
                ),
            }
        }
    };
    let (count, decision) = (pairs.count(), pairs.decision());
    let ratio = if by_loss { None } else { pairs.ratio() };
    let proof = Proof { by: pairs.changed.name.clone(), before, after, pairs: count, ratio, held: decision.held() };
    let change = pairs.test.change.clone();
    let said = named(pairs, message!("proof-in-pairs", "{said} ({pairs})", said, pairs = in_words(count, ratio)));
    if verdict.leading() != limit {
        // An earlier test has named another; this one was of the first.
        verdict.proofs.push(proof);
        verdict.evidence.push(message!("proof", "With {change} {said}.", change, said));
        return;
    }
    take(verdict, limit, proof, said, &pairs.test);
}

/// What came out, with what limited the changed measurement where that is what the test is of.
fn named(pairs: &Pairs, said: Message) -> Message {
    match (pairs.test.expects, pairs.changed.verdict.limit) {
        (Expects::Names(_), Limit::CannotTell) => {
            message!("proof-and-cannot-tell", "{said} with an unknown limit", said)
        }
        (Expects::Names(_), limit) => message!("proof-and-limited", "{said} and limited by the {limit}", said, limit),
        _ => said,
    }
}

/// `in 3 pairs, 0.98 to 1.02 times`.
fn in_words(pairs: u32, ratio: Option<Interval>) -> Message {
    let in_pairs = match pairs {
        1 => message!("proof-one-pair", "in 1 pair"),
        _ => message!("proof-pairs", "in {pairs} pairs", pairs),
    };
    match ratio {
        Some(Interval { low, high, .. }) => {
            message!(
                "proof-ratio",
                "{pairs}, {low} to {high} times",
                pairs = in_pairs,
                low = times(low),
                high = times(high)
            )
        }
        None => in_pairs,
    }
}

/// A ratio with two decimals, or one or none where it is large.
fn times(ratio: f64) -> MessageValue {
    match ratio {
        100.0.. => MessageValue::number(ratio, 0),
        10.0.. => MessageValue::number(ratio, 1),
        _ => MessageValue::number(ratio, 2),
    }
}

/// Lets `verdict` take what came of `test`, which is of `limit`, `said` in words.
fn take(verdict: &mut Verdict, limit: Limit, proof: Proof, said: Message, test: &Counterproof) {
    let held = proof.held;
    let judged = match (held, test.contrary.clone()) {
        (Some(true), Some(contrary)) if test.only_excludes => {
            message!("proof-rules-out", "which rules out {contrary}", contrary)
        }
        (Some(true), _) => message!("proof-as-it-must", "as it must be if this is the limit"),
        (Some(false), Some(contrary)) => message!("proof-shows", "which shows {contrary}", contrary),
        (Some(false), None) => message!("proof-against", "which speaks against this limit"),
        (None, _) => message!("proof-inconclusive", "which is inconclusive"),
    };
    // The first test tells most: where it was inconclusive, other limits have not been ruled out.
    let in_doubt = verdict.proofs.iter().any(|proof| proof.held.is_none());
    verdict.proofs.push(proof);
    let change = test.change.clone();
    verdict.evidence.push(message!("proof-judged", "With {change} {said}, {judged}.", change, said, judged));
    match (held, test.otherwise) {
        (Some(true), _) if in_doubt || test.only_excludes => {}
        // It was open: a test that would have named the other limit has excluded it.
        (Some(true), Some(_)) if verdict.limit == Limit::CannotTell => verdict.settle_on(limit, Confidence::High),
        (Some(true), _) => verdict.settle_on(limit, raised(verdict.confidence)),
        // The contrary is another kind of the same limit.
        (Some(false), Some(other)) if other == limit => {}
        (Some(false), Some(other)) => verdict.settle_on(other, Confidence::Medium),
        (Some(false), None) => verdict.confidence = Confidence::Low,
        (None, _) => {}
    }
}

/// One step more confidence.
fn raised(confidence: Confidence) -> Confidence {
    match confidence {
        Confidence::Low => Confidence::Medium,
        Confidence::Medium | Confidence::High => Confidence::High,
    }
}
