//! Method of a record: the section that a reader needs to repeat it.

use crate::blocks::section::{Block, Section};
use crate::figures::{MISSING, percent, plain};
use crate::language::Language;
use crate::records::tasks;
use crate::said;
use crate::subjects::ALL;
use crate::subjects::stream::loaded_latency;
use linerate_model::{Bypass, IpVersion, Measurement, Record, Repeats, TaskKind, Trial, Tuning, Warmup, shell_command};
use linerate_units::Nanos;
use std::collections::BTreeSet;

/// Returns the section on the method, with the command.
pub(crate) fn section(lang: Language, record: &Record) -> Option<Section> {
    let mut all = sentences(lang, record);
    all.push(said!(lang, "method-command", "Command: {command}", command = plain(&shell_command(&record.command))));
    Section::full("method", said!(lang, "section-method", "How it was measured"), vec![Block::Sentences(all)])
        .map(Section::folded)
}

/// Returns sentences on the method.
fn sentences(lang: Language, record: &Record) -> Vec<String> {
    let trials = tasks::trials(record);
    let repeats = record.plan.repeats().map(|repeats| repeated(lang, repeats));
    let mut all: Vec<String> = repeats.into_iter().chain(windows(lang, &trials)).collect();
    all.extend(of_flows(lang, &record.flows().collect::<Vec<_>>(), &trials));
    all.extend(ALL.iter().flat_map(|subject| subject.method(lang, record)));
    all.extend(calibrations(lang, record));
    all.extend(record.plan.tuning.as_ref().map(|tuning| tuned(lang, tuning)));
    let mut earlier_sentences = BTreeSet::new();
    all.retain(|sentence| earlier_sentences.insert(sentence.clone()));
    all
}

/// Returns whether the run is a calibration, and which earlier calibrations its results are compared with. A
/// calibration made for the run is named where its record is shown.
fn calibrations(lang: Language, record: &Record) -> Vec<String> {
    let this_run = record.plan.calibration.as_ref().map(|calibration| match calibration.bypass {
        Bypass::Cable => said!(
            lang,
            "method-calibration-cable",
            "This run is a calibration: it measures the tester limit, with a cable in the device's place."
        ),
        Bypass::Loopback => said!(
            lang,
            "method-calibration-loopback",
            "This run is a calibration: each host was measured against itself, without its interface. The figures are \
             upper estimates of the tester limit."
        ),
    });
    let earlier = record.plan.calibrated.iter().filter(|limit| !limit.age.is_zero()).map(|limit| {
        let id = plain(&limit.record.0);
        let age = age(lang, limit.age);
        match limit.bypass {
            Bypass::Cable => said!(
                lang,
                "method-tester-limit-cable",
                "Tester limits are those of calibration {id}, made {age} before this run with a cable in the device's \
                 place.",
                id = id,
                age = age
            ),
            Bypass::Loopback => said!(
                lang,
                "method-tester-limit-loopback",
                "Tester limits are those of calibration {id}, made {age} before this run on the loopback of each host: \
                 an upper estimate.",
                id = id,
                age = age
            ),
        }
    });
    this_run.into_iter().chain(earlier).collect()
}

/// Returns whether the run is a tuning, or which tuning chose its cores and calls.
fn tuned(lang: Language, tuning: &Tuning) -> String {
    match tuning {
        Tuning::Candidates => said!(
            lang,
            "method-tuning",
            "This run is a tuning: it tries cores and calls for a later run, which uses the fastest."
        ),
        Tuning::ChosenBy(id) => said!(
            lang,
            "method-tuned",
            "Tuning {id} chose the cores of the threads and the calls of the sender (--tune).",
            id = plain(&id.0)
        ),
    }
}

/// An age in the largest unit that it has two of.
fn age(lang: Language, age: Nanos) -> String {
    let minutes = age.get() / 60_000_000_000;
    match minutes {
        2880.. => said!(lang, "method-age-days", "{count} days", count = minutes / 1440),
        120.. => said!(lang, "method-age-hours", "{count} hours", count = minutes / 60),
        0 => said!(lang, "method-age-below-a-minute", "less than a minute"),
        _ => {
            said!(lang, "method-age-minutes", if count == 1 { "1 minute" } else { "{count} minutes" }, count = minutes)
        }
    }
}

/// Returns how often each trial was run.
fn repeated(lang: Language, repeats: Repeats) -> String {
    match repeats {
        Repeats::Times(1) => said!(lang, "method-one-run", "Each result is one run; its spread is unknown."),
        Repeats::Times(times) => said!(
            lang,
            "method-median",
            "Each result is the median of up to {times} runs; the range of the runs is given.",
            times = times
        ),
        Repeats::Until { confidence_percent, within, at_least, at_most } => said!(
            lang,
            "method-repeated-until",
            "Each result was repeated until the {confidence_percent} % confidence interval of its mean was within \
             {within} either side, at least {at_least} and at most {at_most} times.",
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
        (None, Warmup::Fixed(none)) if none.is_zero() => {
            said!(lang, "method-run", "Each run measured {measure} without a warm-up.", measure = window.measure)
        }
        (None, Warmup::Fixed(warmup)) => said!(
            lang,
            "method-run-warmed-up",
            "Each run measured {measure} after a warm-up of {warmup}, which is excluded from results.",
            measure = window.measure,
            warmup = warmup
        ),
        (None, Warmup::Steady { at_most, .. }) => {
            said!(
                lang,
                "method-run-when-steady",
                "Each run measured {measure} once its rate was steady, after {at_most} at most. The warm-up before is \
                 excluded from results.",
                measure = window.measure,
                at_most = at_most
            )
        }
        (Some(volume), warmup) if warmup.longest().is_zero() => {
            said!(
                lang,
                "method-run-volume",
                "Each run sent {volume} from each sender in each direction, without a warm-up and within {longest} at \
                 the most.",
                volume = volume,
                longest = window.measure
            )
        }
        (Some(volume), warmup) => said!(
            lang,
            "method-run-volume-warmed-up",
            "Each run sent {volume} from each sender in each direction after a warm-up of {warmup}, which is excluded \
             from results, and within {longest} at the most.",
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
        all.push(said!(
            lang,
            "method-throughput",
            "Throughput is payload counted at the receiving program, by its own clock. Limits count Ethernet's \
             preamble, header, FCS and gap, and the IP and transport headers."
        ));
    }
    if results.iter().any(|result| result.loss().is_some()) {
        all.push(said!(
            lang,
            "method-loss",
            "A datagram is lost if it was offered in the measured window and had not arrived when stragglers had been \
             waited for. Each is placed where a counter on the way missed it."
        ));
    }
    if results.iter().any(|result| result.loaded_latency().is_some()) {
        all.push(loaded_latency::method(lang));
    }
    let open = |cell: &&Trial| cell.task().requests_per_s().is_some();
    let closed = |cell: &&Trial| cell.task().is_requests() && cell.task().requests_per_s().is_none();
    if trials.iter().any(closed) {
        all.push(said!(
            lang,
            "method-latency",
            "Latency is the time from a request to the last byte of its response, at the asking program."
        ));
    }
    if trials.iter().any(open) {
        all.push(said!(
            lang,
            "method-set-rate",
            "At a set rate, latency counts from when a request was due, so that a stall cannot hide its own delay."
        ));
    }
    let ip6 = results.iter().filter_map(|result| result.flows()).filter(|flows| flows.ip == IpVersion::V6).count();
    if ip6 > 0 && ip6 < results.len() {
        all.push(said!(lang, "method-some-ipv6", "Some results are over IPv4, some over IPv6."));
    } else if ip6 > 0 {
        all.push(said!(lang, "method-all-ipv6", "All results are over IPv6."));
    }
    all
}
