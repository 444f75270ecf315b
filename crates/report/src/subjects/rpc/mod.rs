//! RPC results: what calls moved, how many there were, and how long each took.

pub(crate) mod chart;

use crate::blocks::chart::Chart;
use crate::blocks::columns;
use crate::blocks::table::Table;
use crate::column;
use crate::figures::{cost_ns, grouped, nanos, per_second, percent, rate};
use crate::language::Language;
use crate::subjects::contract::Subject;
use crate::subjects::flow_sentences::{self, busiest_threads_of_requests, led, request_costs, requests_per_second};
use crate::subjects::flow_table::{Figure, of_task, results_table};
use crate::subjects::live::{self, Live, LiveChart, LiveColumn, LiveRate};
use crate::{said, wording};
use linerate_model::text;
use linerate_model::{Measurement, Record, TaskKind};

/// Calls of ONC RPC.
pub(crate) struct Rpc;

const LIVE: Live = Live::new(
    LiveRate::Requests,
    text!("live-panel-calls", "Calls"),
    COLUMNS_WHILE_RUNNING,
    &[CALLS, live::RETRANSMITS],
)
.over_udp(COLUMNS_WHILE_RUNNING, &[CALLS, live::SENT_AGAIN]);

const CALLS: LiveChart = live::operations(text!("over-time-calls", "calls"));

const COLUMNS_WHILE_RUNNING: &[LiveColumn] =
    &[LiveColumn::Calls, LiveColumn::P50, LiveColumn::P99, LiveColumn::Retransmits];

impl Subject for Rpc {
    fn live(&self) -> &'static Live {
        &LIVE
    }

    fn sentences(&self, lang: Language, record: &Record, result: &Measurement) -> (Vec<String>, usize) {
        let failed = result.requests().map(|requests| requests.failed).filter(|failed| *failed > 0);
        let costs = request_costs(result);
        let further = [
            flow_sentences::tester_limit(lang, result, requests_per_second),
            failed.map(|failed| {
                said!(
                    lang,
                    "results-calls-failed",
                    if failed == 1 { "1 call failed." } else { "{failed} calls failed." },
                    failed = failed
                )
            }),
            retransmitted(lang, result),
            costs.map(|[sender, receiver]| {
                said!(
                    lang,
                    "results-cpu-call",
                    "CPU time per call: client {sender}, server {receiver}.",
                    sender = sender,
                    receiver = receiver
                )
            }),
            busiest_threads_of_requests(lang, result),
        ];
        led(answer(lang, record, result), further)
    }

    fn table(&self, lang: Language, results: &[&Measurement]) -> Option<Table> {
        results_table(
            lang,
            "RPC".to_owned(),
            column!("column-call", "call", "name of the result"),
            &of_task(results, TaskKind::Rpc),
            &COLUMNS,
        )
    }

    fn further_charts(&self, lang: Language, results: &[&Measurement]) -> Vec<Chart> {
        chart::chart(lang, results).into_iter().collect()
    }
}

/// Columns of a table of RPC results.
const COLUMNS: [Figure; 12] = [
    (column!("column-payload", "payload", "data at the receiving end, median of the runs"), 0, |_, m| {
        rate(m.received()?.payload_bps.median, "bit/s")
    }),
    (column!("column-of-link", "of link", "share of what the link can carry at this call size"), 1, |_, m| {
        percent(m.limit()?.share)
    }),
    (columns::OF_TESTER, 2, |_, m| percent(m.tester_limit.as_ref()?.share)),
    (columns::TESTER, 6, |_, m| per_second(m.tester_limit.as_ref()?.reached.median)),
    (column!("column-calls-s", "calls/s", "calls answered a second, median of the runs"), 0, |_, m| {
        per_second(m.requests().map(|requests| &requests.transactions_per_s)?.median)
    }),
    (columns::SPREAD, 5, |_, m| {
        let done = m.requests().map(|requests| &requests.transactions_per_s)?;
        percent(done.spread()).filter(|_| done.runs > 1)
    }),
    (column!("column-call-p50", "p50", "median response time of calls"), 0, |_, m| Some(nanos(m.latency()?.p50))),
    (columns::P99, 1, |_, m| Some(nanos(m.latency()?.p99))),
    (column!("column-slowest", "slowest", "the slowest reply"), 4, |_, m| Some(nanos(m.latency()?.max))),
    (
        column!("column-sent-again", "sent again", "UDP: calls sent again for want of a reply, over all runs"),
        2,
        |_, m| m.retransmitted().filter(|again| *again > 0).map(grouped),
    ),
    (column!("column-failed", "failed", "calls that were never answered, over all runs"), 2, |_, m| {
        m.requests().map(|requests| requests.failed).filter(|failed| *failed > 0).map(grouped)
    }),
    (column!("column-cpu-a-call", "CPU a call", "CPU time of a call, calling and serving end"), 3, |lang, m| {
        let flows = m.flows()?;
        let [there, back] = [&flows.cpu.sender, &flows.cpu.receiver].map(|end| end.ns_per_packet.and_then(cost_ns));
        Some(said!(lang, "calls-and", "{there} and {back}", there = there?, back = back?))
    }),
];

/// Returns what calls moved, their rate with its spread, and how long they took.
fn answer(lang: Language, record: &Record, result: &Measurement) -> Vec<String> {
    let calls = result.requests().map(|requests| &requests.transactions_per_s);
    let Some((calls, rate_of_calls)) = calls.and_then(|calls| Some((calls, per_second(calls.median)?))) else {
        return vec![said!(lang, "calls-none", "No figure: no call was answered.")];
    };
    let moved = result.received().and_then(|received| rate(received.payload_bps.median, "bit/s"));
    let of_link = moved.as_ref().and_then(|_| flow_sentences::of_link(lang, result));
    let runs = wording::runs(lang, record, calls, per_second);
    let moved =
        moved.map(|payload| said!(lang, "calls-data", "{payload} of data at the receiving end.", payload = payload));
    let rate = said!(lang, "calls-rate", "{rate} calls a second ({runs}).", rate = rate_of_calls, runs = runs);
    moved.into_iter().chain(of_link).chain([rate, flow_sentences::latency(lang, result)]).collect()
}

/// Returns how many calls were sent more than once.
pub(crate) fn retransmitted(lang: Language, result: &Measurement) -> Option<String> {
    let calls = result.retransmitted().filter(|calls| *calls > 0)?;
    Some(said!(
        lang,
        "calls-retransmitted",
        if calls == 1 {
            "1 call was sent again because no reply came in time (200 ms at the least, and twice as long each further \
             time). The time of a call counts from its first sending."
        } else {
            "{calls} calls were sent again because no reply came in time (200 ms at the least, and twice as long each \
             further time). The time of a call counts from its first sending."
        },
        calls = calls
    ))
}
