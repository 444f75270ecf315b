//! Counterproofs: a verdict says what would come out if one thing were changed; here that is changed and looked at.

use crate::measure::main_figure;
use crate::verdict::{bits, percent};
use linerate_model::{
    Confidence, Counterproof, Expects, Limit, Measurement, Offered, Plan, Proof, StreamSpec, TransactSpec,
    TransactStyle, Transport, TrialSpec, Workload,
};
use linerate_units::{BitRate, ByteCount, FrameRate};

/// Flows where there was one.
const FLOWS: u16 = 4;
/// Requests at a time where there was one.
const OUTSTANDING: u16 = 8;
/// A receive buffer that holds tens of milliseconds of any load that a host takes.
const LARGE_BUFFER: u64 = 8 << 20;
/// A result that is this much higher has risen, within the error of what is compared.
const RISEN: f64 = 1.1;
/// A result within this of the other is the same.
const SAME: f64 = 0.05;
/// The share of what came through that a path must carry without loss if that was all it let through.
const BELOW: f64 = 0.9;
/// Loss below this share of what it was has gone; loss above this share of it has stayed.
const GONE: f64 = 0.2;
const STAYED: f64 = 0.5;

/// What would test the verdict on `result`, which `cell` was measured for; none where changing one thing cannot tell.
pub fn counterproof(cell: &TrialSpec, result: &Measurement) -> Option<TrialSpec> {
    let mut changed = cell.clone();
    let test = match &mut changed.workload {
        Workload::Stream(stream) => of_stream(stream, result),
        Workload::Transact(transact) => of_transact(transact, result.verdict.limit),
    }?;
    // What was timed beside the load has been timed.
    changed.probe = None;
    changed.name = format!("{} with {}", cell.name, test.change);
    changed.proves = Some(Counterproof { of: cell.name.clone(), ..test });
    Some(changed)
}

fn test(change: impl Into<String>, expects: Expects) -> Option<Counterproof> {
    Some(Counterproof { of: String::new(), change: change.into(), expects, otherwise: None })
}

fn of_stream(stream: &mut StreamSpec, result: &Measurement) -> Option<Counterproof> {
    let tcp = stream.transport == Transport::Tcp;
    let received = result.received.as_ref()?.payload_bps.median;
    match result.verdict.limit {
        Limit::OfferedLoad => {
            stream.offered = None;
            test("no limit to the load", Expects::Rise)
        }
        Limit::Wire | Limit::Shaper if tcp => more_flows(stream, Expects::Same),
        Limit::PathLoss if tcp => more_flows(stream, Expects::Rise),
        Limit::Window => match (stream.socket.receive_buffer.take(), stream.socket.send_buffer.take()) {
            (None, None) => more_flows(stream, Expects::Rise),
            _ => test("buffers of the system's own size", Expects::Rise),
        },
        Limit::ReceiverBuffer => {
            stream.socket.receive_buffer = Some(ByteCount::new(LARGE_BUFFER));
            test(format!("a receive buffer of {} MiB", LARGE_BUFFER >> 20), Expects::Rise)
        }
        Limit::PathLoss => {
            let half = match stream.offered? {
                Offered::PayloadBps(rate) => Offered::PayloadBps(BitRate::per_second(rate.get() / 2)),
                Offered::MessagesPerS(rate) => Offered::MessagesPerS(FrameRate::per_second(rate.get() / 2)),
            };
            stream.offered = Some(half);
            let test = test("half the load", Expects::LossStays)?;
            Some(Counterproof { otherwise: Some(Limit::Shaper), ..test })
        }
        Limit::Shaper => {
            let below = BitRate::per_second((received * BELOW / f64::from(stream.flows.max(1))) as u64);
            stream.offered = Some(Offered::PayloadBps(below));
            let test = test(format!("a load of {}", bits(received * BELOW)), Expects::LossGoes)?;
            Some(Counterproof { otherwise: Some(Limit::PathLoss), ..test })
        }
        Limit::SenderCpu | Limit::ReceiverCpu if !tcp => {
            let larger = (stream.message_bytes.get() * 2).min(StreamSpec::UDP_MAXIMUM);
            stream.message_bytes = ByteCount::new(larger);
            test(format!("messages of {larger} bytes"), Expects::Rise)
        }
        _ => None,
    }
}

fn more_flows(stream: &mut StreamSpec, expects: Expects) -> Option<Counterproof> {
    let before = stream.flows;
    stream.flows = before.checked_mul(FLOWS)?;
    test(format!("{} flows instead of {before}", stream.flows), expects)
}

fn of_transact(transact: &mut TransactSpec, limit: Limit) -> Option<Counterproof> {
    match limit {
        Limit::OfferedLoad => {
            transact.rate = None;
            test("one request after the other", Expects::Rise)
        }
        Limit::Latency if transact.style == TransactStyle::Persistent => {
            transact.outstanding = transact.outstanding.checked_mul(OUTSTANDING)?;
            test(format!("{} requests at a time", transact.outstanding), Expects::Rise)
        }
        Limit::Latency => {
            transact.flows = transact.flows.checked_mul(FLOWS)?;
            test(format!("{} flows", transact.flows), Expects::Rise)
        }
        _ => None,
    }
}

/// Settles the verdicts that cells of `plan` put to the test: each grows surer, less sure, or becomes another.
pub(crate) fn settle(plan: &Plan, results: &mut [Measurement]) {
    for cell in &plan.cells {
        let Some(test) = &cell.proves else { continue };
        let Some(changed) = results.iter().find(|result| result.name == cell.name).cloned() else { continue };
        if let Some(result) = results.iter_mut().find(|result| result.name == test.of) {
            weigh(result, test, &changed);
        }
    }
}

fn weigh(result: &mut Measurement, test: &Counterproof, changed: &Measurement) {
    let loss = |result: &Measurement| result.loss.map_or(0.0, |loss| loss.places.wire as f64 / loss.of.max(1) as f64);
    let figure = |result: &Measurement| main_figure(result).map_or(0.0, |figure| figure.median);
    let by_loss = matches!(test.expects, Expects::LossStays | Expects::LossGoes);
    let (before, after) = match by_loss {
        true => (loss(result), loss(changed)),
        false => (figure(result), figure(changed)),
    };
    let ratio = after / before.max(f64::MIN_POSITIVE);
    let held = match test.expects {
        Expects::Rise if ratio >= RISEN => Some(true),
        Expects::Rise => Some(false),
        Expects::Same if (ratio - 1.0).abs() <= SAME => Some(true),
        Expects::Same if ratio >= RISEN => Some(false),
        Expects::LossStays if ratio >= STAYED => Some(true),
        Expects::LossStays if ratio <= GONE => Some(false),
        Expects::LossGoes if ratio <= GONE || after == 0.0 => Some(true),
        Expects::LossGoes if ratio >= STAYED => Some(false),
        _ => None,
    };
    let said = match by_loss {
        true => format!("{} were lost instead of {}", percent(after), percent(before)),
        false => format!("the result was {ratio:.2} times as high"),
    };
    let verdict = &mut result.verdict;
    let judged = match held {
        Some(true) => "as it must be if this is the limit",
        Some(false) => "which speaks against this limit",
        None => "which tells nothing for certain",
    };
    verdict.evidence.push(format!("With {} {said}, {judged}.", test.change));
    verdict.proof = Some(Proof { by: changed.name.clone(), before, after, held });
    match held {
        Some(true) => verdict.confidence = surer(verdict.confidence),
        Some(false) => match test.otherwise {
            Some(other) => (verdict.limit, verdict.confidence) = (other, Confidence::Medium),
            None => verdict.confidence = Confidence::Low,
        },
        None => {}
    }
}

fn surer(confidence: Confidence) -> Confidence {
    match confidence {
        Confidence::Low => Confidence::Medium,
        Confidence::Medium | Confidence::High => Confidence::High,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measurements;
    use crate::transfer::tests::{spec, trial};
    use linerate_model::{Repeats, TrialResult, Verdict};

    /// A UDP stream of which `lost` of 10,000 datagrams are lost on the wire, as measured for `cell`.
    fn run(cell: &TrialSpec, lost: u64) -> TrialResult {
        let mut run = trial(10_000 - lost, lost);
        run.spec = cell.clone();
        crate::place_losses(&mut run);
        run
    }

    fn cell() -> TrialSpec {
        let mut cell = spec();
        if let Workload::Stream(stream) = &mut cell.workload {
            stream.offered = Some(Offered::PayloadBps(BitRate::per_second(80_000_000)));
        }
        cell
    }

    fn proven(lost: u64, lost_at_half: u64) -> Verdict {
        let cell = cell();
        let mut plan = Plan { cells: vec![cell.clone()], repeats: Repeats::Times(1), device: None, ladder: None };
        let mut trials = vec![run(&cell, lost)];
        let first = measurements(&plan, &[], &trials, None).remove(0);
        assert_eq!(
            (first.verdict.limit, first.verdict.confidence),
            (Limit::PathLoss, Confidence::Medium),
            "{first:#?}"
        );
        let test = counterproof(&cell, &first).expect("loss can be tested");
        assert!(matches!(&test.workload, Workload::Stream(stream)
            if stream.offered == Some(Offered::PayloadBps(BitRate::per_second(40_000_000)))));
        trials.push(run(&test, lost_at_half));
        plan.cells.push(test);
        measurements(&plan, &[], &trials, None).remove(0).verdict
    }

    #[test]
    fn loss_that_stays_at_half_the_load_is_the_paths() {
        let verdict = proven(100, 95);
        assert_eq!((verdict.limit, verdict.confidence), (Limit::PathLoss, Confidence::High), "{verdict:#?}");
        assert_eq!(verdict.proof.and_then(|proof| proof.held), Some(true));
    }

    #[test]
    fn loss_that_goes_at_half_the_load_is_of_a_full_path() {
        let verdict = proven(100, 0);
        assert_eq!((verdict.limit, verdict.confidence), (Limit::Shaper, Confidence::Medium), "{verdict:#?}");
        assert!(verdict.evidence.last().is_some_and(|text| text.contains("half the load")), "{verdict:#?}");
    }

    #[test]
    fn loss_in_between_tells_nothing() {
        let verdict = proven(100, 30);
        assert_eq!((verdict.limit, verdict.confidence), (Limit::PathLoss, Confidence::Medium), "{verdict:#?}");
        assert_eq!(verdict.proof.and_then(|proof| proof.held), None);
    }

    #[test]
    fn a_counterproof_changes_one_thing() {
        let cell = cell();
        let plan = Plan { cells: vec![cell.clone()], repeats: Repeats::Times(1), device: None, ladder: None };
        let result = measurements(&plan, &[], &[run(&cell, 0)], None).remove(0);
        let with = |limit| {
            let verdict = Verdict::new(limit, Confidence::Medium, Vec::new());
            counterproof(&cell, &Measurement { verdict, ..result.clone() })
        };
        let stream = |spec: TrialSpec| match spec.workload {
            Workload::Stream(stream) => stream,
            Workload::Transact(_) => panic!("it was a stream"),
        };
        let Workload::Stream(own) = cell.workload.clone() else { panic!("it is a stream") };
        let buffer = stream(with(Limit::ReceiverBuffer).expect("a larger buffer"));
        assert!(buffer.socket.receive_buffer.is_some());
        assert_eq!(StreamSpec { socket: own.socket.clone(), ..buffer }, own);
        let larger = stream(with(Limit::SenderCpu).expect("larger messages"));
        assert_eq!(larger.message_bytes.get(), 2 * own.message_bytes.get());
        assert_eq!(with(Limit::CannotTell), None);
    }
}
