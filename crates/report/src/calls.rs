//! RPC results: what calls moved, how many there were, and how long each took.

use crate::figures::{cost_ns, grouped, nanos, per_second, percent, rate};
use crate::language::Language;
use crate::said;
use crate::sentences;
use crate::tables::{Figure, timed};
use linerate_model::Measurement;

/// The columns of a table of RPC results.
pub(crate) const COLUMNS: [Figure; 11] = [
    ("column-payload", 0, |_, m| rate(m.received.as_ref()?.payload_bps.median, "bit/s")),
    ("column-of-link", 1, |_, m| percent(m.limit.as_ref()?.share)),
    ("column-of-tester", 2, |_, m| percent(m.ceiling.as_ref()?.share)),
    ("column-calls-s", 0, |_, m| per_second(m.transactions_per_s.as_ref()?.median)),
    ("column-spread", 5, |_, m| {
        let done = m.transactions_per_s.as_ref()?;
        percent(done.spread()).filter(|_| done.runs > 1)
    }),
    ("column-half-in", 0, |_, m| Some(nanos(timed(m)?.p50))),
    ("column-99-in", 1, |_, m| Some(nanos(timed(m)?.p99))),
    ("column-slowest", 4, |_, m| Some(nanos(timed(m)?.max))),
    ("column-sent-again", 2, |_, m| m.retransmitted.filter(|again| *again > 0).map(grouped)),
    ("column-failed", 2, |_, m| m.failed.filter(|failed| *failed > 0).map(grouped)),
    ("column-cpu-a-call", 3, |lang, m| {
        let [there, back] = [&m.cpu.sender, &m.cpu.receiver].map(|end| end.ns_per_packet.and_then(cost_ns));
        Some(said!(lang, "calls-and", there = there?, back = back?))
    }),
];

/// The result itself, with its spread.
pub(crate) fn found(lang: Language, record: &linerate_model::Record, result: &Measurement) -> String {
    let runs = |summary| sentences::runs(lang, record, summary, per_second);
    let calls = result.transactions_per_s.as_ref();
    let Some((calls, count)) = calls.and_then(|calls| Some((calls, per_second(calls.median)?))) else {
        return said!(lang, "calls-no-figure-no-call");
    };
    let count = said!(lang, "calls-calls-a-second", count = count, calls = runs(calls));
    let timed =
        result.latency_ns.as_ref().and_then(|latency| sentences::answered(lang, latency, &said!(lang, "calls-calls")));
    let timed = timed.unwrap_or_else(|| said!(lang, "calls-none-was-timed"));
    let moved = result.received.as_ref().and_then(|received| rate(received.payload_bps.median, "bit/s"));
    match moved {
        Some(moved) => {
            said!(
                lang,
                "calls-of-data-at-the",
                moved = moved,
                result = sentences::of_link(lang, result),
                count = count,
                timed = timed
            )
        }
        None => format!("{count}; {timed}."),
    }
}

/// Calls that were sent more than once.
pub(crate) fn again(lang: Language, result: &Measurement) -> Option<String> {
    let again = result.retransmitted.filter(|again| *again > 0)?;
    Some(said!(lang, "calls-retransmitted", calls = again))
}
