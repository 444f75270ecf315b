//! What is shown of latency under load: its columns, its sentences, its chart.

use crate::charts::{Chart, distributions};
use crate::figures::{counted_share, grouped, nanos, per_second, percent, plain, range, signed_nanos, spread};
use crate::tables::Figure;
use linerate_model::{DelayGrade, LoadedLatency, Measurement};
use linerate_units::Ratio;

/// Beyond so many times the idle latency a percentage is no figure that a reader takes in: the delay itself says it.
const PERCENT_TELLS: f64 = 1_000.0;

/// The columns of the table.
pub(crate) const COLUMNS: [Figure; 8] = [
    ("idle, half in", "half of the requests on the idle path were answered within this", 1, |m| {
        Some(nanos(probed(m)?.idle_ns.p50))
    }),
    ("loaded, half in", "the same while the stream ran", 1, |m| Some(nanos(probed(m)?.loaded_ns.p50))),
    ("added", "the second less the first", 0, |m| Some(signed_nanos(probed(m)?.added_ns.p50))),
    ("grade", "of the delay added at the median", 0, |m| Some(probed(m)?.grade.to_string())),
    ("added at 99 %", "the 99th percentile under load less that of the idle path", 2, |m| {
        Some(signed_nanos(probed(m)?.added_ns.p99))
    }),
    ("unanswered", "requests under load that got no answer; they count as the slowest", 3, |m| {
        let probed = probed(m)?;
        counted_share(Ratio::new(probed.loaded_unanswered, probed.loaded_ns.count))
    }),
    ("trips/min", "round trips a minute under load, of the quicker 95 %", 4, |m| per_second(probed(m)?.rpm.loaded)),
    (
        "buffer delay",
        "mean round trip under load less the idle median, as a share of the idle median (RFC 6349)",
        5,
        |m| percent(probed(m)?.buffer_delay_percent / 100.0),
    ),
];

fn probed(result: &Measurement) -> Option<&LoadedLatency> {
    result.loaded_latency.as_ref()
}

/// What the stream did to the latency of others.
pub(crate) fn sentence(result: &Measurement) -> Option<String> {
    let probed = probed(result)?;
    let (idle, loaded, added) = (&probed.idle_ns, &probed.loaded_ns, &probed.added_ns);
    let runs = spread(&added.p50_runs, |value| value.is_finite().then(|| signed_nanos(value as i64)));
    let mut text = format!(
        "Small {} requests beside it took {} at the median, {} on the idle path: {} added ({runs}), grade {} ({}); at 99 % {} \
         added",
        probed.transport,
        nanos(loaded.p50),
        nanos(idle.p50),
        signed_nanos(added.p50),
        probed.grade,
        bounds(probed.grade),
        signed_nanos(added.p99)
    );
    if let (Some(loaded), Some(idle)) = (per_second(probed.rpm.loaded), per_second(probed.rpm.idle)) {
        text.push_str(&format!("; {loaded} round trips a minute, {idle} idle"));
    }
    if let Some(delay) = percent(probed.buffer_delay_percent / 100.0)
        && probed.buffer_delay_percent < PERCENT_TELLS
    {
        text.push_str(&format!("; buffer delay {delay}"));
    }
    text.push('.');
    if probed.loaded_unanswered + probed.idle_unanswered > 0 {
        text.push_str(&format!(
            " {} of {} requests under load got no answer, {} of {} on the idle path: each counts as {} or more.",
            grouped(probed.loaded_unanswered),
            grouped(loaded.count),
            grouped(probed.idle_unanswered),
            grouped(idle.count),
            LoadedLatency::UNANSWERED
        ));
    }
    Some(text)
}

/// What a grade stands for: `30 to 60 ms`.
fn bounds(grade: DelayGrade) -> String {
    match grade.bounds() {
        (Some(from), Some(below)) => range(&from.to_string(), &below.to_string()),
        (None, Some(below)) => format!("below {below}"),
        (from, None) => format!("{} or more", from.unwrap_or_default()),
    }
}

/// How it was measured, and what the letters mean.
pub(crate) fn method() -> String {
    let grades: Vec<String> = DelayGrade::ALL.iter().map(|(grade, _)| format!("{grade} {}", bounds(*grade))).collect();
    format!(
        "Latency under load: before each run small requests timed the idle path, and then the path while the stream ran, at \
         random times and from when each was due. A request without an answer counts as {} or as the slowest answer, whichever \
         is longer. Grades are of the delay added at the median: {}. Round trips a minute are 60 s over the mean of the \
         quicker 95 % (draft-ietf-ippm-responsiveness, of requests on connections of their own); buffer delay is that of \
         RFC 6349.",
        LoadedLatency::UNANSWERED,
        grades.join(", ")
    )
}

/// Idle and loaded distribution of one result over each other.
pub(crate) fn chart(result: &Measurement) -> Option<Chart> {
    let probed = probed(result)?;
    let title = format!("Latency under load: {}", plain(&result.name));
    let curves = [("idle path".to_owned(), &probed.idle_ns), ("beside the stream".to_owned(), &probed.loaded_ns)];
    distributions(title, "path", curves.into())
}
