//! Latency under load: its columns, its sentences, its chart.

use crate::blocks::chart::{Chart, distributions};
use crate::column;
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
    (column!("column-idle-p50", "idle p50", "median response time on the idle path"), 1, |_, m| {
        Some(nanos(probed(m)?.idle_ns.p50))
    }),
    (column!("column-loaded-p50", "loaded p50", "median response time while the stream ran"), 1, |_, m| {
        Some(nanos(probed(m)?.loaded_ns.p50))
    }),
    (column!("column-added", "added", "the second less the first"), 0, |_, m| {
        Some(signed_nanos(probed(m)?.added_ns.p50))
    }),
    (column!("column-grade", "grade", "of the delay added at the median"), 0, |_, m| {
        Some(probed(m)?.grade.to_string())
    }),
    (column!("column-added-p99", "added p99", "p99 under load less p99 of the idle path"), 2, |_, m| {
        Some(signed_nanos(probed(m)?.added_ns.p99))
    }),
    (
        column!("column-unanswered", "unanswered", "requests under load that got no answer; they count as the slowest"),
        3,
        |_, m| {
            let probed = probed(m)?;
            counted_share(Ratio::new(probed.loaded_unanswered, probed.loaded_ns.count))
        },
    ),
    (column!("column-trips-min", "trips/min", "round trips a minute under load, of the quicker 95 %"), 4, |_, m| {
        per_second(probed(m)?.rpm.loaded)
    }),
    (
        column!(
            "column-buffer-delay",
            "buffer delay",
            "mean round trip under load less the idle median, as a share of the idle median (RFC 6349)"
        ),
        5,
        |_, m| percent(probed(m)?.buffer_delay_percent / 100.0),
    ),
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
        "Small {transport} requests beside the stream took {loaded} at p50, against {idle} on the idle path. The stream \
         added {added} ({runs}): grade {grade} ({bounds}). At p99 it added {p99}.",
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
        all.push(said!(
            lang,
            "loaded-latency-round-trips",
            "Round trips a minute: {loaded} under load, {idle} idle.",
            loaded = loaded,
            idle = idle
        ));
    }
    if let Some(delay) = percent(probed.buffer_delay_percent / 100.0)
        && probed.buffer_delay_percent < PERCENT_TELLS
    {
        all.push(said!(lang, "loaded-latency-buffer-delay", "Buffer delay: {delay}.", delay = delay));
    }
    if probed.loaded_unanswered + probed.idle_unanswered > 0 {
        all.push(said!(
            lang,
            "loaded-latency-unanswered",
            "{loaded_unanswered} of {loaded} requests under load got no answer, and {idle_unanswered} of {idle} on the \
             idle path. Each counts as {counted_as} or more.",
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
        (None, Some(below)) => said!(lang, "loaded-latency-grade-below", "below {below}", below = below),
        (from, None) => said!(lang, "loaded-latency-grade-above", "{from} or more", from = from.unwrap_or_default()),
    }
}

/// Returns the method, and what the letters mean.
pub(crate) fn method(lang: Language) -> String {
    let grades: Vec<String> =
        DelayGrade::ALL.iter().map(|(grade, _)| format!("{grade} {}", bounds(lang, *grade))).collect();
    said!(
        lang,
        "method-loaded-latency",
        "Latency under load: before each run small requests timed the idle path, and then the path while the stream \
         ran, at random times and from when each was due. A request without an answer counts as {loadedlatency} or as \
         the slowest answer, whichever is longer. Grades are of the delay added at the median: {grades}. Round trips a \
         minute are 60 s over the mean of the quicker 95 % (draft-ietf-ippm-responsiveness, of requests on connections \
         of their own); buffer delay is that of RFC 6349.",
        loadedlatency = LoadedLatency::UNANSWERED,
        grades = lang.list(&grades)
    )
}

/// Idle and loaded distribution of one result over each other.
pub(crate) fn chart(lang: Language, result: &Measurement) -> Option<Chart> {
    let probed = probed(result)?;
    let title = said!(lang, "loaded-latency-title", "Latency under load: {name}", name = plain(&result.name));
    let curves = [
        (said!(lang, "loaded-latency-legend-idle", "idle path"), &probed.idle_ns),
        (said!(lang, "loaded-latency-legend-loaded", "beside the stream"), &probed.loaded_ns),
    ];
    distributions(lang, title, column!("column-timed-path", "path", "what was timed"), curves.into())
}
