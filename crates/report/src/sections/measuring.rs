//! Method of a record: the section that a reader needs to repeat it.

use crate::blocks::section::{Block, Section};
use crate::figures::{MISSING, percent, plain};
use crate::language::Language;
use crate::records::tasks;
use crate::said;
use crate::subjects::ALL;
use crate::subjects::stream::loaded_latency;
use linerate_model::{Bypass, IpVersion, Measurement, Record, Repeats, TaskKind, Trial, Warmup, shell_command};
use linerate_units::Nanos;
use std::collections::BTreeSet;

/// Returns the section on the method, with the command.
pub(crate) fn section(lang: Language, record: &Record) -> Option<Section> {
    let mut all = sentences(lang, record);
    all.push(said!(lang, "method-command", command = plain(&shell_command(&record.command))));
    Section::full("method", said!(lang, "section-method"), vec![Block::Sentences(all)]).map(Section::folded)
}

/// Returns sentences on the method.
fn sentences(lang: Language, record: &Record) -> Vec<String> {
    let trials = tasks::trials(record);
    let repeats = record.plan.repeats().map(|repeats| repeated(lang, repeats));
    let mut all: Vec<String> = repeats.into_iter().chain(windows(lang, &trials)).collect();
    all.extend(of_flows(lang, &record.flows().collect::<Vec<_>>(), &trials));
    all.extend(ALL.iter().flat_map(|subject| subject.method(lang, record)));
    all.extend(calibrations(lang, record));
    let mut earlier_sentences = BTreeSet::new();
    all.retain(|sentence| earlier_sentences.insert(sentence.clone()));
    all
}

/// Returns whether the run is a calibration, and which earlier calibrations its results are compared with. A
/// calibration made for the run is named where its record is shown.
fn calibrations(lang: Language, record: &Record) -> Vec<String> {
    let this_run = record.plan.calibration.as_ref().map(|calibration| match calibration.bypass {
        Bypass::Cable => said!(lang, "method-calibration-cable"),
        Bypass::Loopback => said!(lang, "method-calibration-loopback"),
    });
    let earlier = record.plan.calibrated.iter().filter(|limit| !limit.age.is_zero()).map(|limit| {
        let id = plain(&limit.record.0);
        let age = age(lang, limit.age);
        match limit.bypass {
            Bypass::Cable => said!(lang, "method-tester-limit-cable", id = id, age = age),
            Bypass::Loopback => said!(lang, "method-tester-limit-loopback", id = id, age = age),
        }
    });
    this_run.into_iter().chain(earlier).collect()
}

/// An age in the largest unit that it has two of.
fn age(lang: Language, age: Nanos) -> String {
    let minutes = age.get() / 60_000_000_000;
    match minutes {
        2880.. => said!(lang, "method-age-days", count = minutes / 1440),
        120.. => said!(lang, "method-age-hours", count = minutes / 60),
        _ => said!(lang, "method-age-minutes", count = minutes),
    }
}

/// Returns how often each trial was run.
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

/// For how long, or how much, where a task does not end by itself.
fn windows(lang: Language, trials: &[&Trial]) -> impl Iterator<Item = String> {
    let windows = trials.iter().filter_map(|trial| Some((trial.volume(), trial.window()?)));
    windows.map(move |(volume, window)| match (volume, window.warmup) {
        (None, Warmup::Fixed(none)) if none.is_zero() => said!(lang, "method-run", measure = window.measure),
        (None, Warmup::Fixed(warmup)) => said!(lang, "method-run-warmed-up", measure = window.measure, warmup = warmup),
        (None, Warmup::Steady { at_most, .. }) => {
            said!(lang, "method-run-when-steady", measure = window.measure, at_most = at_most)
        }
        (Some(volume), warmup) if warmup.longest().is_zero() => {
            said!(lang, "method-run-volume", volume = volume, longest = window.measure)
        }
        (Some(volume), warmup) => said!(
            lang,
            "method-run-volume-warmed-up",
            volume = volume,
            longest = window.measure,
            warmup = warmup.longest()
        ),
    })
}

/// Returns what the figures of flows count.
fn of_flows(lang: Language, results: &[&Measurement], trials: &[&Trial]) -> Vec<String> {
    let mut all = Vec::new();
    if results.iter().any(|result| result.task() == TaskKind::Stream) {
        all.push(said!(lang, "method-throughput"));
    }
    if results.iter().any(|result| result.loss().is_some()) {
        all.push(said!(lang, "method-loss"));
    }
    if results.iter().any(|result| result.loaded_latency().is_some()) {
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
    let ip6 = results.iter().filter_map(|result| result.flows()).filter(|flows| flows.ip == IpVersion::V6).count();
    if ip6 > 0 && ip6 < results.len() {
        all.push(said!(lang, "method-some-ipv6"));
    } else if ip6 > 0 {
        all.push(said!(lang, "method-all-ipv6"));
    }
    all
}
