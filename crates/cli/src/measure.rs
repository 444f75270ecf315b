//! What every measuring command does once its plan stands: reach the hosts, run, show, judge.

use crate::arguments::Results;
use crate::commands::report::write_report;
use crate::exit::Failure;
use crate::hosts::{HostBook, Parties};
use crate::output::{print, say, style};
use crate::progress::Bar;
use linerate_method::Expectation;
use linerate_model::{Plan, Record};
use linerate_runner::{Outcome, Peers, Run};
use linerate_store::Store;
use tokio::sync::watch;

/// Runs `plan` between `parties` and shows what came of it.
pub(crate) async fn measure(
    plan: Plan,
    parties: &Parties,
    book: HostBook,
    results: &Results,
    cancel: watch::Receiver<bool>,
) -> Result<(), Failure> {
    check_expectations(&results.expect, &plan)?;
    let store = Store::open(results.store.store.as_deref()).map_err(Failure::measure)?;
    let company = book.gather(parties).await?;
    let outcome = run(plan, &company.peers, &store, None, cancel).await;
    company.dismiss().await;
    conclude(outcome, results)
}

/// Runs `plan`, with a progress bar.
pub(crate) async fn run(
    plan: Plan,
    peers: &Peers,
    store: &Store,
    calibration: Option<&Record>,
    cancel: watch::Receiver<bool>,
) -> Outcome {
    let run = Run { plan, command: command(), peers, store: Some(store), calibration };
    let mut bar = Bar::new();
    run.execute(&mut |event| bar.note(&event), cancel).await
}

/// Shows a run's record, writes its report, and judges it.
pub(crate) fn conclude(outcome: Outcome, results: &Results) -> Result<(), Failure> {
    let record = &outcome.record;
    if results.json {
        print(&linerate_report::json(record));
    } else if !record.results.is_empty() {
        print(&linerate_report::text(record, &style()));
    }
    if let Some(file) = &results.out {
        write_report(record, file)?;
    }
    match outcome.failure {
        Some(failure) => Err(Failure::measure(failure)),
        None => judge(&results.expect, record),
    }
}

fn judge(expectations: &[Expectation], record: &Record) -> Result<(), Failure> {
    let mut missed = false;
    for expectation in expectations {
        for judgement in record.results.iter().map(|result| expectation.judge(result)) {
            missed |= !judgement.met;
            say(&format!("expected: {}", judgement.text));
        }
    }
    if missed { Err(Failure::Missed) } else { Ok(()) }
}

/// A threshold that nothing is compared with would pass unseen: refuse it before anything is measured.
pub(crate) fn check_expectations(expectations: &[Expectation], plan: &Plan) -> Result<(), Failure> {
    match expectations.iter().find(|e| plan.cells.iter().any(|cell| !e.applies_to(&cell.workload))) {
        Some(expectation) => Err(Failure::usage(format!(
            "--expect '{expectation}': this command does not measure that for every result; streams give throughput, \
             packets, share, and over UDP loss and jitter; transact gives transactions, p50, p90, p99, p999 and max"
        ))),
        None => Ok(()),
    }
}

/// The command as typed. What stands behind `#` in a join line is secret.
fn command() -> Vec<String> {
    let hide = |argument: String| match argument.split_once('#') {
        Some((address, _)) if address.contains("linerate://") => format!("{address}#..."),
        _ => argument,
    };
    std::env::args_os().map(|argument| hide(argument.to_string_lossy().into_owned())).collect()
}
