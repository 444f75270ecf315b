//! What came of the counterproofs: they raise or lower the confidence in a verdict, or name another limit.

use crate::verdict::{bits, percent};
use linerate_model::{
    Confidence, Counterproof, Detail, Expects, Limit, Measurement, Proof, Quantity, RecordId, Trial, Verdict,
};

/// A result that is this much higher has risen, within the error of what is compared.
pub(super) const RISEN: f64 = 1.1;
/// A result within this of the other is the same.
const SAME: f64 = 0.05;
/// Loss below this share of what it was has gone.
const GONE: f64 = 0.2;
/// Loss within these shares of what it was has stayed; what rises at a lower load has another cause.
const STAYED: std::ops::RangeInclusive<f64> = 0.5..=2.0;
/// So many losses must be due if the share stays: of ten, chance leaves two or fewer in one of 300 cases (Poisson).
const DUE: f64 = 10.0;
/// Fewer may be a stumble.
const COUNTED: f64 = 5.0;

/// Settles the verdicts that some of `cells` put to the test, and notes where the comparison with a calibration was one.
pub(crate) fn settle(cells: &[&Trial], results: &mut [Measurement]) {
    for result in results.iter_mut() {
        if let (Some(limit), Limit::Device | Limit::Tester) = (&result.tester_limit, result.verdict.limit) {
            let proof = bypassed(&limit.record, result.main.median, limit.reached.median);
            result.verdict.proofs.push(proof);
        }
    }
    let named: Vec<Limit> = results.iter().map(|result| result.verdict.leading()).collect();
    for cell in cells {
        let Some(test) = &cell.proves else { continue };
        let Some(changed) = results.iter().find(|result| result.name == cell.name).cloned() else { continue };
        if let Some(index) = results.iter().position(|result| result.name == test.of) {
            weigh(&mut results[index], named[index], test, &changed);
        }
    }
}

/// The comparison of a result with that of the same hosts with the device bypassed, which named the device or the tester.
pub(crate) fn bypassed(calibration: &RecordId, before: f64, after: f64) -> Proof {
    Proof { by: calibration.0.clone(), before, after, held: Some(true) }
}

/// Weighs what came of `test` for the verdict on `result`, which named `limit` before any test.
fn weigh(result: &mut Measurement, limit: Limit, test: &Counterproof, changed: &Measurement) {
    let by_loss = matches!(test.expects, Expects::LossStays | Expects::LossGoes);
    let (lost, lost_then) = (Lost::of(result), Lost::of(changed));
    let (before, after) = match by_loss {
        true => (lost.share, lost_then.share),
        false => (result.main.median, changed.main.median),
    };
    let ratio = after / before.max(f64::MIN_POSITIVE);
    let held = match test.expects {
        Expects::Rise => rises(ratio, &changed.verdict),
        Expects::Same => stays(ratio),
        Expects::LossStays | Expects::LossGoes => {
            let (due, came) = (lost.share * lost_then.of, lost_then.share * lost_then.of);
            let stays = match ratio {
                _ if STAYED.contains(&ratio) && came >= COUNTED => Some(true),
                ..=GONE if due >= DUE => Some(false),
                _ => None,
            };
            stays.map(|stays| stays == (test.expects == Expects::LossStays))
        }
    };
    let said = match by_loss {
        true => format!("{} were lost instead of {}", lost_then.in_words(), percent(before)),
        false => match (&result.detail, result.quantity) {
            (Detail::Copy(_), _) => format!("the copy went at {} instead of {}", bits(after), bits(before)),
            (_, Quantity::PayloadBps) => format!("the result was {} instead of {}", bits(after), bits(before)),
            _ => format!("there were {after:.0} transactions/s instead of {before:.0}"),
        },
    };
    let verdict = &mut result.verdict;
    let proof = Proof { by: changed.name.clone(), before, after, held };
    if verdict.leading() != limit {
        // An earlier test has named another; this one was of the first.
        verdict.proofs.push(proof);
        verdict.evidence.push(format!("With {} {said}.", test.change));
        return;
    }
    take(verdict, limit, proof, &format!("With {} {said}", test.change), test.otherwise);
}

/// Whether a figure that became `ratio` times itself has risen; `changed` is the verdict on what was measured then.
fn rises(ratio: f64, changed: &Verdict) -> Option<bool> {
    match ratio {
        RISEN.. => Some(true),
        // What has another limit right above it cannot rise.
        _ if is_full(changed) => None,
        _ => Some(false),
    }
}

/// Whether a figure that became `ratio` times itself has stayed.
fn stays(ratio: f64) -> Option<bool> {
    match ratio {
        _ if (ratio - 1.0).abs() <= SAME => Some(true),
        RISEN.. => Some(false),
        _ => None,
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
        Some(true) => verdict.settle_on(limit, raised(verdict.confidence)),
        Some(false) => match otherwise {
            Some(other) => verdict.settle_on(other, Confidence::Medium),
            None => verdict.confidence = Confidence::Low,
        },
        None => {}
    }
}

/// A limit that nothing but more of the same can lift.
fn is_full(verdict: &Verdict) -> bool {
    matches!(verdict.limit, Limit::Wire | Limit::SenderCpu | Limit::ReceiverCpu)
}

/// What was lost on the path: datagrams, or segments that were retransmitted.
struct Lost {
    share: f64,
    of: f64,
    what: &'static str,
}

impl Lost {
    fn of(result: &Measurement) -> Self {
        let (loss, tcp) = result.flows().map_or((None, None), |flows| (flows.loss, flows.tcp.as_ref()));
        let (lost, of, what) = match (loss, tcp) {
            // What never left its host was not lost on the path.
            (Some(loss), _) => {
                let sent = loss.of - loss.places.not_sent - loss.places.sender_queue;
                (loss.places.unaccounted, sent, "datagrams")
            }
            (None, Some(tcp)) => (tcp.retransmits, tcp.segments, "segments"),
            (None, None) => (0, 0, "datagrams"),
        };
        Self { share: lost as f64 / of.max(1) as f64, of: of as f64, what }
    }

    fn in_words(&self) -> String {
        format!("{} of {:.0} {}", percent(self.share), self.of, self.what)
    }
}

/// One step more confidence.
fn raised(confidence: Confidence) -> Confidence {
    match confidence {
        Confidence::Low => Confidence::Medium,
        Confidence::Medium | Confidence::High => Confidence::High,
    }
}
