//! The results as tables: the same columns in the terminal, in Markdown and in HTML.

use crate::blocks::section::{Block, Section};
use crate::blocks::table::{Column, Table};
use crate::figures::{counted_share, grouped, nanos, per_second, percent, plain, rate};
use crate::language::Language;
use crate::subjects::flow_table::Figure;
use crate::subjects::stream::loaded_latency;
use crate::subjects::{flow_sentences, rpc, shares};
use crate::{records, said};
use linerate_model::{Measurement, Record, TaskKind, Transport};
use linerate_units::Ratio;

const STREAMS: [Figure; 11] = [
    ("column-charts-payload", 0, |_, m| rate(m.received()?.payload_bps.median, "bit/s")),
    ("column-stream-offered", 2, |_, m| {
        let sent = m.sent().filter(|_| m.flows().is_some_and(|flows| flows.transport == Transport::Udp))?;
        rate(sent.payload_bps.median, "bit/s")
    }),
    ("column-spread", 5, |_, m| {
        let payload = &m.received()?.payload_bps;
        percent(payload.spread()).filter(|_| payload.runs > 1)
    }),
    ("column-tables-of-link", 1, |_, m| percent(m.limit()?.share)),
    ("column-of-tester", 3, |_, m| percent(m.tester_limit.as_ref()?.share)),
    ("column-tester", 8, |_, m| rate(m.tester_limit.as_ref()?.reached.median, "bit/s")),
    ("column-tables-lost", 1, |_, m| {
        let loss = m.loss()?;
        counted_share(Ratio::new(loss.lost, loss.of))
    }),
    ("column-packets-s", 4, |_, m| per_second(m.received()?.packets_per_s.median)),
    ("column-retransmits", 3, |_, m| Some(grouped(m.tcp()?.retransmits))),
    ("column-busiest-thread", 6, flow_sentences::busiest_threads),
    ("column-limit", 1, limit),
];

const TRANSACTIONS: [Figure; 11] = [
    ("column-tables-per-second", 0, |_, m| {
        per_second(m.requests().map(|requests| &requests.transactions_per_s)?.median)
    }),
    ("column-spread", 4, |_, m| {
        let done = m.requests().map(|requests| &requests.transactions_per_s)?;
        percent(done.spread()).filter(|_| done.runs > 1)
    }),
    ("column-of-tester", 2, |_, m| percent(m.tester_limit.as_ref()?.share)),
    ("column-tester", 5, |_, m| per_second(m.tester_limit.as_ref()?.reached.median)),
    ("column-request-p50", 0, |_, m| Some(nanos(m.latency()?.p50))),
    ("column-p90", 4, |_, m| Some(nanos(m.latency()?.p90))),
    ("column-p99", 0, |_, m| Some(nanos(m.latency()?.p99))),
    ("column-p999", 3, |_, m| Some(nanos(m.latency()?.p999))),
    ("column-tables-slowest", 3, |_, m| Some(nanos(m.latency()?.max))),
    ("column-tables-failed", 2, |_, m| {
        m.requests().map(|requests| requests.failed).filter(|failed| *failed > 0).map(grouped)
    }),
    ("column-limit", 2, limit),
];

/// What limited a result, in a word.
pub(crate) fn limit(lang: Language, result: &Measurement) -> Option<String> {
    Some(lang.named("limit", result.verdict.limit))
}

/// The figures of all results, and of each path of those that have several.
pub(crate) fn section(lang: Language, record: &Record) -> Option<Section> {
    let told: Vec<&Measurement> = records::with_entries(record).filter(|result| result.flows().is_some()).collect();
    let shares = told.iter().filter_map(|result| shares::shares(lang, result));
    let tables = results(lang, &told).into_iter().chain(shares);
    let (heading, blocks) = (said!(lang, "section-figures"), tables.map(Block::Table).collect());
    // The answer of a curve and of a ladder is in their own tables.
    match record.curve().is_some() || record.ladder().is_some() {
        true => Section::summary("figures", heading, blocks),
        false => Section::answer("figures", heading, blocks),
    }
}

/// Latency under load, of the results that were probed.
pub(crate) fn loaded_latency(lang: Language, record: &Record) -> Option<Section> {
    let told: Vec<&Measurement> = records::with_entries(record).filter(|result| result.flows().is_some()).collect();
    let probed: Vec<&Measurement> = told.into_iter().filter(|result| result.loaded_latency().is_some()).collect();
    let heading = said!(lang, "tables-latency-under-load");
    let table = results_table(lang, heading.clone(), "column-stream", &probed, &loaded_latency::COLUMNS);
    Section::answer("latency-under-load", heading, table.into_iter().map(Block::Table).collect())
}

/// The record's results: streams and transactions apart, each with the columns it has figures for.
fn results(lang: Language, told: &[&Measurement]) -> Vec<Table> {
    let of = |kind| told.iter().copied().filter(|result| result.task() == kind).collect::<Vec<_>>();
    [
        results_table(lang, said!(lang, "tables-streams"), "column-stream", &of(TaskKind::Stream), &STREAMS),
        results_table(
            lang,
            said!(lang, "tables-transactions"),
            "column-transaction",
            &of(TaskKind::Transact),
            &TRANSACTIONS,
        ),
        results_table(lang, "RPC".to_owned(), "column-call", &of(TaskKind::Rpc), &rpc::COLUMNS),
        results_table(lang, "NFS".to_owned(), "column-load", &of(TaskKind::Nfs), &TRANSACTIONS),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn results_table(
    lang: Language,
    caption: String,
    one: &'static str,
    results: &[&Measurement],
    figures: &[Figure],
) -> Option<Table> {
    if results.is_empty() {
        return None;
    }
    let has = |(index, (.., cell)): &(usize, &Figure)| *index == 0 || results.iter().any(|m| cell(lang, m).is_some());
    let kept: Vec<&Figure> = figures.iter().enumerate().filter(has).map(|(_, figure)| figure).collect();
    let name = Column::new(one);
    let lengths = bars(results);
    let heads = kept.iter().enumerate().map(|(index, (key, rank, _))| {
        let column = Column::new(key).ranked(*rank);
        if index == 0 && results.len() > 1 { column.with_bars(lengths.clone()) } else { column }
    });
    let row = |result: &&Measurement| {
        std::iter::once(Some(plain(&result.name))).chain(kept.iter().map(|(.., cell)| cell(lang, result))).collect()
    };
    Some(Table {
        caption,
        columns: std::iter::once(name).chain(heads).collect(),
        rows: results.iter().map(row).collect(),
    })
}

/// Each result's main figure as a share of the greatest, 0 to 1.
fn bars(results: &[&Measurement]) -> Vec<f64> {
    let figure = |result: &&Measurement| {
        let payload = result.received().map(|received| &received.payload_bps);
        let main = result
            .requests()
            .map(|requests| &requests.transactions_per_s)
            .or(payload)
            .map_or(0.0, |summary| summary.median);
        if main.is_finite() { main.max(0.0) } else { 0.0 }
    };
    let most = results.iter().map(figure).fold(0.0, f64::max);
    results.iter().map(|result| if most > 0.0 { figure(result) / most } else { 0.0 }).collect()
}
