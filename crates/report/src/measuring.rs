//! How a record was measured: the section that a reader needs to repeat it.

use crate::document::{Block, Section};
use crate::figures::{MISSING, percent, plain};
use crate::flow_result::FlowResult;
use crate::language::Language;
use crate::{copy, device, frames, loaded_latency, said, tasks};
use linerate_model::{IpVersion, Record, Repeats, TaskKind, Trial, Warmup};
use std::collections::BTreeSet;

/// How it was measured, and the command.
pub(crate) fn section(lang: Language, record: &Record) -> Option<Section> {
    let mut all = sentences(lang, record);
    all.push(said!(lang, "method-command", command = plain(&record.command.join(" "))));
    Section::full("method", said!(lang, "section-method"), vec![Block::Sentences(all)])
}

/// How it was measured, in sentences.
fn sentences(lang: Language, record: &Record) -> Vec<String> {
    let trials = tasks::trials(record);
    let repeats = record.plan.repeats().map(|repeats| repeated(lang, repeats));
    let mut all: Vec<String> = repeats.into_iter().chain(windows(lang, &trials)).collect();
    all.extend(of_flows(lang, &FlowResult::all(record), &trials));
    all.extend(record.plan.device().into_iter().flat_map(|plan| device::method(lang, plan)));
    all.extend(tasks::copies(record).flat_map(|task| copy::method(lang, task)));
    all.extend(tasks::frames(record).flat_map(|task| frames::method(lang, task)));
    let mut known = BTreeSet::new();
    all.retain(|sentence| known.insert(sentence.clone()));
    all
}

/// How often each trial was run.
fn repeated(lang: Language, repeats: Repeats) -> String {
    match repeats {
        Repeats::Times(1) => said!(lang, "method-one-run"),
        Repeats::Times(times) => said!(lang, "method-median", times = times),
        Repeats::Until { confidence_percent, within, at_least, at_most } => said!(
            lang,
            "method-repeated-until",
            confidence_percent = confidence_percent,
            within = percent(within).unwrap_or_else(|| MISSING.to_owned()),
            at_least = at_least,
            at_most = at_most
        ),
    }
}

/// For how long, where a task does not end by itself.
fn windows(lang: Language, trials: &[&Trial]) -> impl Iterator<Item = String> {
    trials.iter().filter_map(|trial| trial.window()).map(move |window| match window.warmup {
        Warmup::Fixed(none) if none.is_zero() => said!(lang, "method-run", measure = window.measure),
        Warmup::Fixed(warmup) => said!(lang, "method-run-warmed-up", measure = window.measure, warmup = warmup),
        Warmup::Steady { at_most, .. } => {
            said!(lang, "method-run-when-steady", measure = window.measure, at_most = at_most)
        }
    })
}

/// What the figures of streams, transactions, RPC and NFS count.
fn of_flows(lang: Language, results: &[FlowResult<'_>], trials: &[&Trial]) -> Vec<String> {
    let mut all = Vec::new();
    if results.iter().any(|result| result.task == TaskKind::Stream) {
        all.push(said!(lang, "method-throughput"));
    }
    if results.iter().any(|result| result.loss.is_some()) {
        all.push(said!(lang, "method-loss"));
    }
    if results.iter().any(|result| result.loaded_latency.is_some()) {
        all.push(loaded_latency::method(lang));
    }
    let open = |cell: &&Trial| cell.task().requests_per_s().is_some();
    let closed = |cell: &&Trial| cell.task().is_requests() && cell.task().requests_per_s().is_none();
    if trials.iter().any(closed) {
        all.push(said!(lang, "method-latency"));
    }
    if trials.iter().any(open) {
        all.push(said!(lang, "method-set-rate"));
    }
    let ip6 = results.iter().filter(|result| result.ip == IpVersion::V6).count();
    if ip6 > 0 && ip6 < results.len() {
        all.push(said!(lang, "method-some-ipv6"));
    } else if ip6 > 0 {
        all.push(said!(lang, "method-all-ipv6"));
    }
    all
}
