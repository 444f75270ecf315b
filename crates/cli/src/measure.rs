//! What every measuring command does once its plan stands: reach the hosts, run, show, judge.

use crate::arguments::Results;
use crate::commands::report::{check_report_file, write_report};
use crate::exit::Failure;
use crate::hosts::{Company, HostBook, Parties};
use crate::output::{print, say, style};
use crate::progress::Bar;
use linerate_method::{Expectation, Judgement, curve};
use linerate_model::{Plan, Record};
use linerate_observe::snmp::Target;
use linerate_runner::{Asked, Outcome, Peers, Run};
use linerate_store::Store;
use tokio::sync::watch;

/// Runs `plan` between `parties` and shows what came of it.
pub(crate) async fn measure(
    plan: Plan,
    parties: &Parties,
    book: HostBook,
    results: &Results,
    prove: bool,
    cancel: watch::Receiver<bool>,
) -> Result<(), Failure> {
    check(results, &plan)?;
    let store = Store::open(results.store.store.as_deref()).map_err(Failure::measure)?;
    let company = reach(&book, parties, cancel.clone()).await?;
    let outcome = run(plan, asked(results), &company.peers, Some(&store), None, prove, cancel).await;
    company.dismiss().await;
    conclude(outcome, results)
}

/// Reaches all hosts, unless the user grows tired of waiting for one.
pub(crate) async fn reach(
    book: &HostBook,
    parties: &Parties,
    mut cancel: watch::Receiver<bool>,
) -> Result<Company, Failure> {
    tokio::select! {
        company = book.gather(parties) => company,
        Ok(_) = cancel.wait_for(|asked| *asked) => Err(Failure::measure("interrupted before anything was measured")),
    }
}

/// Runs `plan`, with a progress bar, and keeps its record in `store`, if there is one; `prove` puts its verdicts to the test.
pub(crate) async fn run(
    plan: Plan,
    asked: Asked,
    peers: &Peers,
    store: Option<&Store>,
    calibration: Option<&Record>,
    prove: bool,
    cancel: watch::Receiver<bool>,
) -> Outcome {
    let run = Run { plan, asked, peers, store, calibration, prove };
    let mut bar = Bar::new();
    run.execute(&mut |event| bar.note(&event), cancel).await
}

/// Shows a run's record, writes its report, and judges it; all that is the study's where it is part of one.
pub(crate) fn conclude(outcome: Outcome, results: &Results) -> Result<(), Failure> {
    let record = &outcome.record;
    if results.of_study.is_some() {
        return outcome.failure.map_or(Ok(()), |failure| Err(Failure::measure(failure)));
    }
    if results.json {
        print(&linerate_report::json(record));
    } else if !record.results.is_empty() || record.outcome.is_some() {
        print(&linerate_report::text(record, &style()));
    }
    let written = match &results.out {
        Some(file) if !record.results.is_empty() || record.outcome.is_some() => write_report(record, file),
        _ => Ok(()),
    };
    // Why the run ended early matters more than a report that could not be written.
    match outcome.failure {
        Some(failure) => Err(Failure::measure(failure)),
        None => written.and_then(|()| judge(&results.expect, record)),
    }
}

/// Holds each expectation against the results that have its figure.
fn judge(expectations: &[Expectation], record: &Record) -> Result<(), Failure> {
    let mut missed = false;
    let mut take = |judgement: Judgement| {
        missed |= !judgement.met;
        say(&format!("expected: {}", judgement.text));
    };
    for expectation in expectations {
        // Beside streams, which the demonstration measures too, an expectation is about those.
        if let (Some((plan, outcome)), []) = (record.device(), &record.plan.cells[..]) {
            expectation.judge_device(plan, outcome).into_iter().for_each(&mut take);
        }
        if let Some((_, found)) = record.copy() {
            take(expectation.judge_copy(found));
        }
        let cells = record.plan.cells.iter().filter(|cell| expectation.applies_to(cell));
        // What tests a verdict was not asked for itself, and of a curve it is the peak that counts.
        let cells = cells.filter(|cell| cell.proves.is_none() && curve::stands(record, &cell.name));
        let names: Vec<&str> = cells.map(|cell| cell.name.as_str()).collect();
        for result in record.results.iter().filter(|result| names.contains(&result.name.as_str())) {
            take(expectation.judge(result));
        }
        if curve::lacks_peak(record) && !expectation.is_of_streams() {
            take(expectation.missed("no load was held"));
        }
    }
    if missed { Err(Failure::Missed) } else { Ok(()) }
}

/// Refuses before anything is measured what could not be done afterwards: a threshold that nothing would be compared with
/// and that so would pass unseen, a report of no known form.
pub(crate) fn check(results: &Results, plan: &Plan) -> Result<(), Failure> {
    results.out.as_deref().map_or(Ok(()), check_report_file)?;
    let applies = |e: &&Expectation| plan.cells.iter().any(|cell| e.applies_to(cell));
    match results.expect.iter().find(|expectation| !applies(expectation)) {
        Some(expectation) => Err(Failure::usage(format!(
            "--expect '{expectation}': this command does not measure that; streams give throughput, packets, share, and \
             over UDP loss and jitter, with --loaded-latency added.p50, added.p90, added.p99 and rpm; transact gives transactions, p50, p90, p99, p999 and max"
        ))),
        None => Ok(()),
    }
}

/// What asks for a measurement: a study, or the command as typed, without its secrets.
pub(crate) fn asked(results: &Results) -> Asked {
    let typed = || std::env::args_os().map(|argument| without_secrets(&argument.to_string_lossy())).collect();
    results.of_study.clone().unwrap_or_else(|| Asked { command: typed(), study: None })
}

/// Secret are what stands behind `#` in a join line, and the community and passwords of an SNMP target.
pub(crate) fn without_secrets(argument: &str) -> String {
    if let Some(at) = ["snmp://", "snmp+v3://"].iter().filter_map(|scheme| argument.find(scheme)).min() {
        let (option, target) = argument.split_at(at);
        return match target.parse::<Target>() {
            Ok(target) => format!("{option}{target}"),
            Err(_) => format!("{option}snmp://***"),
        };
    }
    match argument.split_once('#') {
        Some((address, _)) if address.contains("linerate://") => format!("{address}#..."),
        _ => argument.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_kept_without_its_secrets() {
        for (typed, kept) in [
            ("--sizes", "--sizes"),
            ("linerate://h:1#token.key", "linerate://h:1#..."),
            ("snmp://s3cret@192.0.2.1", "snmp://***@192.0.2.1"),
            ("--device-snmp=snmp://s3cret@192.0.2.1:1161", "--device-snmp=snmp://***@192.0.2.1:1161"),
            (
                "snmp+v3://ann@192.0.2.1?auth=sha256:s3cretword&priv=aes128:s3cretword",
                "snmp+v3://ann@192.0.2.1?auth=sha256:***&priv=aes128:***",
            ),
            ("snmp://s3cret@[broken", "snmp://***"),
        ] {
            assert_eq!(without_secrets(typed), kept);
        }
    }
}
