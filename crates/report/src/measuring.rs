//! How a record was measured: the section that a reader needs to repeat it.

use crate::document::{Block, Section};
use crate::figures::{MISSING, percent, plain};
use crate::language::Language;
use crate::{copy, device, loaded_latency, said};
use linerate_model::{IpVersion, Record, Repeats, TrialSpec, WorkloadKind};

/// How it was measured, and the command.
pub(crate) fn section(lang: Language, record: &Record) -> Option<Section> {
    let mut all = sentences(lang, record);
    all.push(said!(lang, "method-command", command = plain(&record.command.join(" "))));
    Section::full("method", said!(lang, "section-method"), vec![Block::Sentences(all)])
}

/// How it was measured, in sentences.
fn sentences(lang: Language, record: &Record) -> Vec<String> {
    let streams = if record.plan.cells.is_empty() { Vec::new() } else { streams_method(lang, record) };
    let copied = record.plan.copy.iter().flat_map(|plan| copy::method(lang, plan));
    streams
        .into_iter()
        .chain(record.plan.device.iter().flat_map(|plan| device::method(lang, plan)))
        .chain(copied)
        .collect()
}

fn streams_method(lang: Language, record: &Record) -> Vec<String> {
    let mut all = vec![match record.plan.repeats {
        Repeats::Times(1) => said!(lang, "method-one-run"),
        Repeats::Times(times) => {
            said!(lang, "method-median", times = times)
        }
        Repeats::Until { confidence_percent, within, at_least, at_most } => said!(
            lang,
            "method-repeated-until",
            confidence_percent = confidence_percent,
            within = percent(within).unwrap_or_else(|| MISSING.to_owned()),
            at_least = at_least,
            at_most = at_most
        ),
    }];
    let mut timings: Vec<String> = Vec::new();
    for TrialSpec { timing, .. } in &record.plan.cells {
        let text = match timing.warmup.get() {
            0 => said!(lang, "method-run", measure = timing.measure),
            _ => {
                said!(lang, "method-run-warmed-up", measure = timing.measure, warmup = timing.warmup)
            }
        };
        if !timings.contains(&text) {
            timings.push(text);
        }
    }
    all.extend(timings);
    if record.results.iter().any(|result| result.workload == WorkloadKind::Stream) {
        all.push(said!(lang, "method-throughput"));
    }
    if record.results.iter().any(|result| result.loss.is_some()) {
        all.push(said!(lang, "method-loss"));
    }
    if record.results.iter().any(|result| result.loaded_latency.is_some()) {
        all.push(loaded_latency::method(lang));
    }
    let open = |cell: &TrialSpec| cell.workload.requests_per_s().is_some();
    let closed = |cell: &TrialSpec| cell.workload.is_requests() && cell.workload.requests_per_s().is_none();
    if record.plan.cells.iter().any(closed) {
        all.push(said!(lang, "method-latency"));
    }
    if record.plan.cells.iter().any(open) {
        all.push(said!(lang, "method-set-rate"));
    }
    let ip6 = record.results.iter().filter(|result| result.ip == IpVersion::V6).count();
    if ip6 > 0 && ip6 < record.results.len() {
        all.push(said!(lang, "method-some-ipv6"));
    } else if ip6 > 0 {
        all.push(said!(lang, "method-all-ipv6"));
    }
    all
}
