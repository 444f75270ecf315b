//! Streams: throughput, loss, latency under load.

pub(crate) mod charts;
pub(crate) mod loaded_latency;
pub(crate) mod loss_waterfall;

use crate::blocks::chart::Chart;
use crate::blocks::columns;
use crate::blocks::table::Table;
use crate::column;
use crate::figures::{MISSING, cost_ns, counted_share, grouped, per_second, percent, plain, rate};
use crate::language::Language;
use crate::said;
use crate::subjects::contract::Subject;
use crate::subjects::flow_sentences::{busiest_threads, led, loss, of_link, tester_limit};
use crate::subjects::flow_table::{Figure, limit, of_task, results_table};
use crate::subjects::live::{self, Live, LiveChart, LiveColumn, LiveRate, ValueKind};
use crate::wording::{listed, runs};
use linerate_model::text;
use linerate_model::{CpuCosts, Direction, Measurement, Record, TaskKind, Transport};
use linerate_units::Ratio;

/// Streams of bytes or datagrams.
pub(crate) struct Stream;

const PAYLOAD: LiveChart = LiveChart {
    what: text!("charts-axis-payload", "payload at the receiver"),
    kind: ValueKind::BitsPerSecond,
    value: |interval| Some(interval.payload_bps()),
};

const LOST: LiveChart = LiveChart {
    what: text!("over-time-loss", "datagrams lost"),
    kind: ValueKind::PerSecond,
    value: |interval| live::per_second(interval, interval.lost),
};

const LIVE: Live = Live::new(
    LiveRate::Payload,
    text!("live-panel-received", "Received"),
    &[LiveColumn::Received, LiveColumn::Rate, LiveColumn::Retransmits, LiveColumn::Srtt],
    &[PAYLOAD, live::RETRANSMITS],
)
.over_udp(&[LiveColumn::Received, LiveColumn::Rate, LiveColumn::Lost], &[PAYLOAD, LOST]);

impl Subject for Stream {
    fn live(&self) -> &'static Live {
        &LIVE
    }

    fn sentences(&self, lang: Language, record: &Record, result: &Measurement) -> (Vec<String>, usize) {
        let busy = busiest_threads(lang, result);
        let further = [
            within(lang, result),
            tester_limit(lang, result, |bps| rate(bps, "bit/s")),
            loss(lang, result),
            disorder(lang, result),
            loaded_latency::sentence(lang, result),
            cpu(lang, result),
            busy.map(|busy| {
                said!(
                    lang,
                    "results-busiest-thread",
                    "Busiest thread of sender and receiver: {busy} of a core.",
                    busy = busy
                )
            }),
        ];
        led(throughput(lang, record, result), further)
    }

    fn table(&self, lang: Language, results: &[&Measurement]) -> Option<Table> {
        let caption = said!(lang, "tables-streams", "Streams");
        results_table(lang, caption, columns::STREAM, &of_task(results, TaskKind::Stream), &COLUMNS)
    }

    fn rate_charts(&self, lang: Language, results: &[&Measurement]) -> Vec<Chart> {
        charts::all(lang, results)
    }
}

const COLUMNS: [Figure; 11] = [
    (columns::CHARTS_PAYLOAD, 0, |_, m| rate(m.received()?.payload_bps.median, "bit/s")),
    (column!("column-stream-offered", "offered", "payload that the senders handed over"), 2, |_, m| {
        let sent = m.sent().filter(|_| m.flows().is_some_and(|flows| flows.transport == Transport::Udp))?;
        rate(sent.payload_bps.median, "bit/s")
    }),
    (columns::SPREAD, 5, |_, m| {
        let payload = &m.received()?.payload_bps;
        percent(payload.spread()).filter(|_| payload.runs > 1)
    }),
    (columns::TABLES_OF_LINK, 1, |_, m| percent(m.limit()?.share)),
    (columns::OF_TESTER, 3, |_, m| percent(m.tester_limit.as_ref()?.share)),
    (columns::TESTER, 8, |_, m| rate(m.tester_limit.as_ref()?.reached.median, "bit/s")),
    (columns::TABLES_LOST, 1, |_, m| {
        let loss = m.loss()?;
        counted_share(Ratio::new(loss.lost, loss.of))
    }),
    (column!("column-packets-s", "packets/s", "IP packets a second at the receiver"), 4, |_, m| {
        per_second(m.received()?.packets_per_s.median)
    }),
    (column!("column-retransmits", "retransmits", "TCP segments retransmitted, over all runs"), 3, |_, m| {
        Some(grouped(m.tcp()?.retransmits))
    }),
    (
        column!(
            "column-busiest-thread",
            "CPU",
            "share of a core that the busiest thread of the test used, sending and receiving end"
        ),
        6,
        busiest_threads,
    ),
    (columns::LIMIT, 1, limit),
];

/// Returns the payload rate with its spread, and its share of the link.
fn throughput(lang: Language, record: &Record, result: &Measurement) -> Vec<String> {
    let Some(summary) = result.received().map(|received| &received.payload_bps) else {
        return vec![said!(lang, "results-nothing-received", "No figure: nothing was counted at the receiver.")];
    };
    let bits = |value| rate(value, "bit/s");
    let Some(payload) = bits(summary.median) else {
        return vec![said!(lang, "results-absurd-rate", "No figure: what was counted at the receiver is not a rate.")];
    };
    let runs = runs(lang, record, summary, bits);
    let sentence = match (result.shares().len(), result.stream().map(|stream| stream.direction)) {
        (_, Some(Direction::Both)) => said!(
            lang,
            "results-stream-both",
            "{payload} payload at the receivers, both ways together ({runs}).",
            payload = payload,
            runs = runs
        ),
        (0 | 1, _) => {
            said!(lang, "results-stream", "{payload} payload at the receiver ({runs}).", payload = payload, runs = runs)
        }
        _ => said!(
            lang,
            "results-stream-paths",
            "{payload} payload at the receivers, all paths together ({runs}).",
            payload = payload,
            runs = runs
        ),
    };
    std::iter::once(sentence).chain(each_way(lang, result)).chain(of_link(lang, result)).collect()
}

/// Returns the rate of each direction of a stream that runs both ways between two hosts.
fn each_way(lang: Language, result: &Measurement) -> Option<String> {
    let [there, back] = result.shares() else { return None };
    if (&there.from, &there.to) != (&back.to, &back.from) {
        return None;
    }
    Some(said!(
        lang,
        "results-stream-each-way",
        "{from} to {to}: {there}. {to} to {from}: {back}.",
        from = plain(&there.from),
        to = plain(&there.to),
        there = rate(there.main.median, "bit/s")?,
        back = rate(back.main.median, "bit/s")?
    ))
}

/// Returns how many datagrams came twice or out of order.
fn disorder(lang: Language, result: &Measurement) -> Option<String> {
    let loss = result.loss()?;
    let mut parts = Vec::new();
    if loss.duplicates > 0 {
        parts.push(said!(lang, "results-duplicates", "{duplicates} duplicated", duplicates = grouped(loss.duplicates)));
    }
    if loss.reordered > 0 {
        parts.push(said!(lang, "results-reordered", "{reordered} reordered", reordered = grouped(loss.reordered)));
    }
    (!parts.is_empty()).then(|| said!(lang, "results-disorder", "Datagrams: {parts}.", parts = listed(lang, &parts)))
}

/// Returns how far the rate ranged within the window.
fn within(lang: Language, result: &Measurement) -> Option<String> {
    let range = result.received()?.within?;
    let low = rate(range.p5_bps, "bit/s")?;
    let high = rate(range.p95_bps, "bit/s")?;
    Some(said!(
        lang,
        "results-within",
        "Within the window the rate ranged from {low} (p5) to {high} (p95).",
        low = low,
        high = high
    ))
}

/// Returns the CPU time of a byte at both ends, with the system call that moved it.
fn cpu(lang: Language, result: &Measurement) -> Option<String> {
    let CpuCosts { sender, receiver, .. } = &result.flows()?.cpu;
    let costs = [sender.ns_per_byte, receiver.ns_per_byte].map(|cost| cost.and_then(cost_ns));
    let methods = [result.sent().map(|sent| &sent.io_method), result.received().map(|all| &all.io_method)];
    let with_method = |cost: &Option<String>, method: Option<&String>| match (cost, method) {
        (Some(cost), Some(method)) if !method.is_empty() => format!("{cost} ({})", plain(method)),
        (cost, _) => cost.clone().unwrap_or_else(|| MISSING.to_owned()),
    };
    let [sender, receiver] = [with_method(&costs[0], methods[0]), with_method(&costs[1], methods[1])];
    let is_watched = costs.iter().any(Option::is_some);
    is_watched.then(|| {
        said!(
            lang,
            "results-cpu-byte",
            "CPU time per byte: sender {sender}, receiver {receiver}.",
            sender = sender,
            receiver = receiver
        )
    })
}
