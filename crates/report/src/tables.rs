//! The results as tables: the same columns in the terminal, in Markdown and in HTML.

use crate::figures::{counted_share, grouped, nanos, per_second, percent, plain, rate};
use crate::{loaded_latency, sentences};
use linerate_model::{Latency, Measurement, Record, WorkloadKind};
use linerate_units::Ratio;

/// A table of text cells.
pub(crate) struct Table {
    /// What it shows.
    pub(crate) caption: String,
    /// Its columns; the first names the row.
    pub(crate) columns: Vec<Column>,
    /// Its cells; none where a figure is missing.
    pub(crate) rows: Vec<Vec<Option<String>>>,
}

/// The head of a column.
#[derive(Clone)]
pub(crate) struct Column {
    /// Its short title.
    pub(crate) title: &'static str,
    /// What it counts.
    pub(crate) meaning: &'static str,
    /// Narrow outputs leave out the highest first; 0 stays.
    pub(crate) rank: u8,
}

impl Column {
    /// A column that always stays.
    pub(crate) const fn new(title: &'static str, meaning: &'static str) -> Self {
        Self { title, meaning, rank: 0 }
    }
}

/// A column of results: its head, and how its cell is taken from a result.
pub(crate) type Figure = (&'static str, &'static str, u8, fn(&Measurement) -> Option<String>);

const STREAMS: [Figure; 8] = [
    ("payload", "payload at the receiver, median of the runs", 0, |m| {
        rate(m.received.as_ref()?.payload_bps.median, "bit/s")
    }),
    ("spread", "highest less lowest run, as a share of the median", 4, |m| {
        let payload = &m.received.as_ref()?.payload_bps;
        percent(payload.spread()).filter(|_| payload.runs > 1)
    }),
    ("of link", "share of what the link can carry in such messages", 1, |m| percent(m.limit.as_ref()?.share)),
    ("of tester", "share of what the tester reaches without the device", 2, |m| percent(m.ceiling.as_ref()?.share)),
    ("lost", "datagrams lost, of those offered, over all runs", 1, |m| {
        let loss = m.loss.as_ref()?;
        counted_share(Ratio::new(loss.lost, loss.of))
    }),
    ("packets/s", "IP packets a second at the receiver", 3, |m| per_second(m.received.as_ref()?.packets_per_s.median)),
    ("resent", "TCP segments retransmitted, over all runs", 6, |m| Some(grouped(m.tcp.as_ref()?.retransmits))),
    ("busiest core", "busy share of the busiest core, sending and receiving host", 5, sentences::busiest_cores),
];

const TRANSACTIONS: [Figure; 9] = [
    ("per second", "transactions completed a second, median of the runs", 0, |m| {
        per_second(m.transactions_per_s.as_ref()?.median)
    }),
    ("spread", "highest less lowest run, as a share of the median", 4, |m| {
        let done = m.transactions_per_s.as_ref()?;
        percent(done.spread()).filter(|_| done.runs > 1)
    }),
    ("of tester", "share of what the tester reaches without the device", 2, |m| percent(m.ceiling.as_ref()?.share)),
    ("half in", "half of the requests were answered within this", 0, |m| Some(nanos(timed(m)?.p50))),
    ("90 % in", "90 % were answered within this", 4, |m| Some(nanos(timed(m)?.p90))),
    ("99 % in", "99 % were answered within this", 0, |m| Some(nanos(timed(m)?.p99))),
    ("99.9 % in", "99.9 % were answered within this", 3, |m| Some(nanos(timed(m)?.p999))),
    ("slowest", "the slowest answer", 3, |m| Some(nanos(timed(m)?.max))),
    ("failed", "transactions that failed, over all runs", 2, |m| m.failed.filter(|failed| *failed > 0).map(grouped)),
];

/// Latency, where anything was timed.
fn timed(result: &Measurement) -> Option<&Latency> {
    result.latency_ns.as_ref().filter(|latency| latency.count > 0)
}

/// The record's results: streams, latency under load and transactions apart, each with the columns it has figures for.
pub(crate) fn results(record: &Record) -> Vec<Table> {
    let probed: Vec<&Measurement> = record.results.iter().filter(|result| result.loaded_latency.is_some()).collect();
    let of = |kind| record.results.iter().filter(|result| result.workload == kind).collect::<Vec<_>>();
    [
        results_table("Streams", "stream", &of(WorkloadKind::Stream), &STREAMS),
        results_table("Latency under load", "stream", &probed, &loaded_latency::COLUMNS),
        results_table("Transactions", "transaction", &of(WorkloadKind::Transact), &TRANSACTIONS),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn results_table(caption: &str, one: &'static str, results: &[&Measurement], figures: &[Figure]) -> Option<Table> {
    if results.is_empty() {
        return None;
    }
    let has = |(index, (_, _, _, cell)): &(usize, &Figure)| *index == 0 || results.iter().any(|m| cell(m).is_some());
    let kept: Vec<&Figure> = figures.iter().enumerate().filter(has).map(|(_, figure)| figure).collect();
    let name = Column::new(one, "the name in the plan");
    let heads = kept.iter().map(|(title, meaning, rank, _)| Column { title, meaning, rank: *rank });
    let row = |result: &&Measurement| {
        std::iter::once(Some(plain(&result.name))).chain(kept.iter().map(|(.., cell)| cell(result))).collect()
    };
    Some(Table {
        caption: caption.to_owned(),
        columns: std::iter::once(name).chain(heads).collect(),
        rows: results.iter().map(row).collect(),
    })
}

/// Each path and direction of one result on its own.
pub(crate) fn shares(result: &Measurement) -> Option<Table> {
    if result.shares.len() < 2 {
        return None;
    }
    let rows: Vec<Vec<Option<String>>> = result
        .shares
        .iter()
        .map(|share| {
            vec![
                Some(format!("{} to {}", plain(&share.from), plain(&share.to))),
                match result.workload {
                    WorkloadKind::Stream => share.payload_bps.as_ref().and_then(|s| rate(s.median, "bit/s")),
                    WorkloadKind::Transact => share.transactions_per_s.as_ref().and_then(|s| per_second(s.median)),
                },
                share.loss.as_ref().and_then(|loss| counted_share(Ratio::new(loss.lost, loss.of))),
            ]
        })
        .collect();
    let figure = match result.workload {
        WorkloadKind::Stream => Column::new("payload", "payload at the receiver, median of the runs"),
        WorkloadKind::Transact => Column::new("per second", "transactions completed a second, median of the runs"),
    };
    let mut table = Table {
        caption: format!("{}, each path on its own", plain(&result.name)),
        columns: vec![
            Column::new("path", "from the sending to the receiving host"),
            figure,
            Column::new("lost", "datagrams lost, of those offered, over all runs"),
        ],
        rows,
    };
    if table.rows.iter().all(|row| row[2].is_none()) {
        table.columns.pop();
        table.rows.iter_mut().for_each(|row| {
            row.pop();
        });
    }
    Some(table)
}
