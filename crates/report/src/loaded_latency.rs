//! What is shown of latency under load: its columns, its sentences, its chart.

use crate::charts::{Chart, distributions};
use crate::figures::{counted_share, grouped, nanos, per_second, percent, plain, range, signed_nanos, spread};
use crate::language::Language;
use crate::said;
use crate::tables::Figure;
use linerate_model::{DelayGrade, LoadedLatency, Measurement};
use linerate_units::Ratio;

/// Beyond so many times the idle latency a percentage is no figure that a reader takes in: the delay itself says it.
const PERCENT_TELLS: f64 = 1_000.0;

/// The columns of the table.
pub(crate) const COLUMNS: [Figure; 8] = [
    ("column-idle-half-in", 1, |_, m| Some(nanos(probed(m)?.idle_ns.p50))),
    ("column-loaded-half-in", 1, |_, m| Some(nanos(probed(m)?.loaded_ns.p50))),
    ("column-added", 0, |_, m| Some(signed_nanos(probed(m)?.added_ns.p50))),
    ("column-grade", 0, |_, m| Some(probed(m)?.grade.to_string())),
    ("column-added-at-99", 2, |_, m| Some(signed_nanos(probed(m)?.added_ns.p99))),
    ("column-unanswered", 3, |_, m| {
        let probed = probed(m)?;
        counted_share(Ratio::new(probed.loaded_unanswered, probed.loaded_ns.count))
    }),
    ("column-trips-min", 4, |_, m| per_second(probed(m)?.rpm.loaded)),
    ("column-buffer-delay", 5, |_, m| percent(probed(m)?.buffer_delay_percent / 100.0)),
];

fn probed(result: &Measurement) -> Option<&LoadedLatency> {
    result.loaded_latency.as_ref()
}

/// What the stream did to the latency of others.
pub(crate) fn sentence(lang: Language, result: &Measurement) -> Option<String> {
    let probed = probed(result)?;
    let (idle, loaded, added) = (&probed.idle_ns, &probed.loaded_ns, &probed.added_ns);
    let runs = spread(lang, &added.p50_runs, |value| value.is_finite().then(|| signed_nanos(value as i64)));
    let mut text = said!(
        lang,
        "loaded-latency-small-requests-beside-it",
        transport = probed.transport,
        p50 = nanos(loaded.p50),
        p502 = nanos(idle.p50),
        p503 = signed_nanos(added.p50),
        runs = runs,
        grade = probed.grade,
        grade2 = bounds(lang, probed.grade),
        p99 = signed_nanos(added.p99)
    );
    if let (Some(loaded), Some(idle)) = (per_second(probed.rpm.loaded), per_second(probed.rpm.idle)) {
        text.push_str(&said!(lang, "loaded-latency-round-trips-a-minute", loaded = loaded, idle = idle));
    }
    if let Some(delay) = percent(probed.buffer_delay_percent / 100.0)
        && probed.buffer_delay_percent < PERCENT_TELLS
    {
        text.push_str(&said!(lang, "loaded-latency-buffer-delay", delay = delay));
    }
    text.push('.');
    if probed.loaded_unanswered + probed.idle_unanswered > 0 {
        text.push_str(&said!(
            lang,
            "loaded-latency-of-requests-under-load",
            loaded_unanswered = grouped(probed.loaded_unanswered),
            count = grouped(loaded.count),
            idle_unanswered = grouped(probed.idle_unanswered),
            count2 = grouped(idle.count),
            loadedlatency = LoadedLatency::UNANSWERED
        ));
    }
    Some(text)
}

/// What a grade stands for: `30 to 60 ms`.
fn bounds(lang: Language, grade: DelayGrade) -> String {
    match grade.bounds() {
        (Some(from), Some(below)) => range(lang, &from.to_string(), &below.to_string()),
        (None, Some(below)) => said!(lang, "loaded-latency-below", below = below),
        (from, None) => said!(lang, "loaded-latency-or-more", from = from.unwrap_or_default()),
    }
}

/// How it was measured, and what the letters mean.
pub(crate) fn method(lang: Language) -> String {
    let grades: Vec<String> =
        DelayGrade::ALL.iter().map(|(grade, _)| format!("{grade} {}", bounds(lang, *grade))).collect();
    said!(
        lang,
        "loaded-latency-latency-under-load-before",
        loadedlatency = LoadedLatency::UNANSWERED,
        grades = grades.join(", ")
    )
}

/// Idle and loaded distribution of one result over each other.
pub(crate) fn chart(lang: Language, result: &Measurement) -> Option<Chart> {
    let probed = probed(result)?;
    let title = said!(lang, "loaded-latency-latency-under-load", name = plain(&result.name));
    let curves = [
        (said!(lang, "loaded-latency-idle-path"), &probed.idle_ns),
        (said!(lang, "loaded-latency-beside-the-stream"), &probed.loaded_ns),
    ];
    distributions(lang, title, "column-timed-path", curves.into())
}
