//! Latency under load: its columns, its sentences, its chart.

use crate::blocks::chart::{Chart, distributions};
use crate::figures::{counted_share, nanos, per_second, percent, plain, range, signed_nanos, spread};
use crate::language::Language;
use crate::said;
use crate::subjects::flow_table::Figure;
use crate::wording::in_a_row;
use linerate_model::{DelayGrade, LoadedLatency, Measurement};
use linerate_units::Ratio;

/// Buffer delay above this percentage is not shown: the delay itself is easier to read.
const PERCENT_TELLS: f64 = 1_000.0;

/// The columns of the table.
pub(crate) const COLUMNS: [Figure; 8] = [
    ("column-idle-p50", 1, |_, m| Some(nanos(probed(m)?.idle_ns.p50))),
    ("column-loaded-p50", 1, |_, m| Some(nanos(probed(m)?.loaded_ns.p50))),
    ("column-added", 0, |_, m| Some(signed_nanos(probed(m)?.added_ns.p50))),
    ("column-grade", 0, |_, m| Some(probed(m)?.grade.to_string())),
    ("column-added-p99", 2, |_, m| Some(signed_nanos(probed(m)?.added_ns.p99))),
    ("column-unanswered", 3, |_, m| {
        let probed = probed(m)?;
        counted_share(Ratio::new(probed.loaded_unanswered, probed.loaded_ns.count))
    }),
    ("column-trips-min", 4, |_, m| per_second(probed(m)?.rpm.loaded)),
    ("column-buffer-delay", 5, |_, m| percent(probed(m)?.buffer_delay_percent / 100.0)),
];

fn probed(result: &Measurement) -> Option<&LoadedLatency> {
    result.loaded_latency()
}

/// Returns the effect of the stream on the latency of others.
pub(crate) fn sentence(lang: Language, result: &Measurement) -> Option<String> {
    let probed = probed(result)?;
    let idle = &probed.idle_ns;
    let loaded = &probed.loaded_ns;
    let added = &probed.added_ns;
    let runs = spread(lang, &added.p50_runs, |value| value.is_finite().then(|| signed_nanos(value as i64)));
    let mut all = vec![said!(
        lang,
        "loaded-latency-added",
        transport = probed.transport,
        loaded = nanos(loaded.p50),
        idle = nanos(idle.p50),
        added = signed_nanos(added.p50),
        runs = runs,
        grade = probed.grade,
        bounds = bounds(lang, probed.grade),
        p99 = signed_nanos(added.p99)
    )];
    if let (Some(loaded), Some(idle)) = (per_second(probed.rpm.loaded), per_second(probed.rpm.idle)) {
        all.push(said!(lang, "loaded-latency-round-trips", loaded = loaded, idle = idle));
    }
    if let Some(delay) = percent(probed.buffer_delay_percent / 100.0)
        && probed.buffer_delay_percent < PERCENT_TELLS
    {
        all.push(said!(lang, "loaded-latency-buffer-delay", delay = delay));
    }
    if probed.loaded_unanswered + probed.idle_unanswered > 0 {
        all.push(said!(
            lang,
            "loaded-latency-unanswered",
            loaded_unanswered = probed.loaded_unanswered,
            loaded = loaded.count,
            idle_unanswered = probed.idle_unanswered,
            idle = idle.count,
            counted_as = LoadedLatency::UNANSWERED
        ));
    }
    Some(in_a_row(&all))
}

/// Returns the bounds of a grade: `30 to 60 ms`.
fn bounds(lang: Language, grade: DelayGrade) -> String {
    match grade.bounds() {
        (Some(from), Some(below)) => range(lang, &from.to_string(), &below.to_string()),
        (None, Some(below)) => said!(lang, "loaded-latency-grade-below", below = below),
        (from, None) => said!(lang, "loaded-latency-grade-above", from = from.unwrap_or_default()),
    }
}

/// Returns the method, and what the letters mean.
pub(crate) fn method(lang: Language) -> String {
    let grades: Vec<String> =
        DelayGrade::ALL.iter().map(|(grade, _)| format!("{grade} {}", bounds(lang, *grade))).collect();
    said!(lang, "method-loaded-latency", loadedlatency = LoadedLatency::UNANSWERED, grades = lang.list(&grades))
}

/// Idle and loaded distribution of one result over each other.
pub(crate) fn chart(lang: Language, result: &Measurement) -> Option<Chart> {
    let probed = probed(result)?;
    let title = said!(lang, "loaded-latency-title", name = plain(&result.name));
    let curves = [
        (said!(lang, "loaded-latency-legend-idle"), &probed.idle_ns),
        (said!(lang, "loaded-latency-legend-loaded"), &probed.loaded_ns),
    ];
    distributions(lang, title, "column-timed-path", curves.into())
}
