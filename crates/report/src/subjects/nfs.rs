//! NFS: operations and classes, the curve of response time against load, and its peak.

use crate::blocks::axis::{Axis, latency_axis};
use crate::blocks::chart::{Chart, SERIES};
use crate::blocks::columns;
use crate::blocks::drawing::{Drawing, Point, Series};
use crate::blocks::section::{Block, Entry, Section};
use crate::blocks::table::{Column, Table};
use crate::column;
use crate::figures::{grouped, nanos, per_second, percent, plain};
use crate::language::Language;
use crate::said;
use crate::subjects::contract::Subject;
use crate::subjects::flow_sentences::{busiest_threads_of_requests, completed, failures, led, request_costs};
use crate::subjects::flow_table::{REQUESTS, of_task, results_table};
use crate::subjects::live::{self, Live, LiveChart, LiveColumn, LiveRate};
use crate::subjects::rpc;
use crate::wording::firmness;
use linerate_model::text;
use linerate_model::{
    CurveFound, CurvePoint, Limit, Measurement, NfsClass, OperationFigures, Outcome, Record, TaskKind, Verdict,
};

/// Operations of NFS.
pub(crate) struct Nfs;

const LIVE: Live = Live::new(
    LiveRate::Requests,
    text!("live-panel-operations", "Operations"),
    COLUMNS_WHILE_RUNNING,
    &[OPERATIONS, live::RETRANSMITS],
)
.over_udp(COLUMNS_WHILE_RUNNING, &[OPERATIONS, live::SENT_AGAIN]);

const OPERATIONS: LiveChart = live::operations(text!("over-time-operations", "operations"));

const COLUMNS_WHILE_RUNNING: &[LiveColumn] =
    &[LiveColumn::Operations, LiveColumn::P50, LiveColumn::P99, LiveColumn::Retransmits];

impl Subject for Nfs {
    fn live(&self) -> &'static Live {
        &LIVE
    }

    fn sentences(&self, lang: Language, record: &Record, result: &Measurement) -> (Vec<String>, usize) {
        let costs = request_costs(result);
        let further = [
            tester_limit(lang, result),
            failures(lang, result),
            rpc::retransmitted(lang, result),
            corruption(lang, result),
            costs.map(|[sender, receiver]| {
                said!(
                    lang,
                    "results-cpu-operation",
                    "CPU time per operation: client {sender}, server {receiver}.",
                    sender = sender,
                    receiver = receiver
                )
            }),
            busiest_threads_of_requests(lang, result),
        ];
        let answer = completed(lang, record, result, |rate, runs| {
            said!(lang, "results-operations", "{rate} operations a second ({runs}).", rate = rate, runs = runs)
        });
        led(answer, further)
    }

    fn entries(&self, lang: Language, record: &Record, _max_entries: usize) -> Vec<Entry> {
        peak(lang, record).into_iter().collect()
    }

    fn table(&self, lang: Language, results: &[&Measurement]) -> Option<Table> {
        results_table(
            lang,
            "NFS".to_owned(),
            column!("column-load", "load", "name of the result"),
            &of_task(results, TaskKind::Nfs),
            &REQUESTS,
        )
    }

    fn section(&self, lang: Language, record: &Record) -> Option<Section> {
        section(lang, record)
    }

    fn verdicts<'a>(&self, lang: Language, record: &'a Record) -> Vec<(String, &'a Verdict)> {
        verdict_past_peak(lang, record).into_iter().collect()
    }
}

const NS_PER_MS: f64 = 1e6;
/// Past this ratio a linear axis would hide the quickest responses.
const LINEAR_REACH: f64 = 20.0;

/// Milliseconds as a duration.
fn millis(value: f64) -> Option<String> {
    (value.is_finite() && (0.0..1e12).contains(&value)).then(|| nanos((value * NS_PER_MS).round() as u64))
}

/// Returns the peak, and what the curve says of it.
fn peak(lang: Language, record: &Record) -> Option<Entry> {
    let (_, found) = record.curve().filter(|(_, found)| !found.curve.is_empty())?;
    let peak = found.peak.as_ref();
    let peak = peak.and_then(|peak| Some(firmness::shown(per_second(peak.achieved_ops)?, peak.firmness)));
    let entry = Entry::new(said!(lang, "nfs-peak-name", "nfs peak"), sentences(lang, record));
    Some(entry.with_figure(peak.map(|peak| format!("{peak} /s"))))
}

/// The curve, and the classes and operations of its peak, or of each NFS result where there is no curve.
fn section(lang: Language, record: &Record) -> Option<Section> {
    let found = record.curve().map(|(_, found)| found);
    let curve = found.and_then(|found| curve(lang, found));
    let stands = |name: &str| match (found, &record.outcome) {
        (Some(found), _) => found.result.as_deref() == Some(name),
        (None, outcome) => *outcome == Outcome::Sweep,
    };
    let results = record.flows().collect::<Vec<_>>().into_iter().filter(|result| result.task() == TaskKind::Nfs);
    let operations = results.filter(|result| stands(&result.name)).flat_map(|result| operations(lang, result));
    let tables = curve.into_iter().chain(operations).map(Block::Table);
    let blocks = chart(lang, record).map(Block::chart).into_iter().chain(tables).collect();
    Section::answer("curve", said!(lang, "nfs-section", "NFS"), blocks)
}

/// Classes and operations of one result.
fn operations(lang: Language, result: &Measurement) -> Vec<Table> {
    let Some(found) = result.nfs() else { return Vec::new() };
    let classes = found.classes.iter().map(|(class, figures)| (lang.text(class.text()), figures));
    let mut operations: Vec<(String, &OperationFigures)> =
        found.operations.iter().map(|(operation, figures)| (operation.to_string(), figures)).collect();
    operations.sort_by_key(|(_, figures)| std::cmp::Reverse(figures.count));
    let of = plain(&result.name);
    [
        figures(
            said!(lang, "nfs-caption-classes", "Classes of operations, {value}", value = of),
            column!(
                "column-class",
                "class",
                "as NFS version 3 calls it; reads, writes and all others are a class each"
            ),
            classes.collect(),
        ),
        figures(
            said!(lang, "nfs-caption-operations", "Operations, {value}", value = of),
            column!(
                "column-operation",
                "operation",
                "as NFS version 3 calls it; reads, writes and all others are a class each"
            ),
            operations,
        ),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn curve(lang: Language, found: &CurveFound) -> Option<Table> {
    if found.curve.is_empty() {
        return None;
    }
    let mut columns = vec![
        column!("column-asked-for", "asked for", "operations a second"),
        column!("column-came-due", "came due", "operations a second that came due; arrivals are random").ranked(3),
        column!("column-completed", "completed", "operations completed a second"),
        column!("column-mean", "mean", "mean response time, from when an operation was due"),
        columns::P50.ranked(4),
        columns::P99.ranked(1),
    ];
    let classes: Vec<NfsClass> = [NfsClass::Read, NfsClass::Write, NfsClass::Other]
        .into_iter()
        .filter(|class| found.curve.iter().any(|point| point.classes.contains_key(class)))
        .collect();
    columns.extend(classes.iter().map(|class| match class {
        NfsClass::Read => column!("column-read", "read", "mean response time of reads").ranked(5),
        NfsClass::Write => column!("column-write", "write", "mean response time of writes").ranked(5),
        NfsClass::Other => column!("column-other", "other", "mean response time of all other operations").ranked(5),
    }));
    columns.push(column!("column-untitled", "", "whether the load was held").ranked(2));
    let row = |point: &CurvePoint| {
        let mut row = vec![
            per_second(point.intended_ops),
            per_second(point.offered_ops),
            per_second(point.achieved_ops).map(|rate| firmness::shown(rate, found.firmness_of(&point.result))),
            millis(point.mean_ms),
            millis(point.p50_ms),
            millis(point.p99_ms),
        ];
        row.extend(classes.iter().map(|class| point.classes.get(class).and_then(|class| millis(class.mean_ms))));
        let is_peak = found.peak.as_ref().is_some_and(|peak| peak.result == point.result);
        row.push(Some(match point.missed {
            None if is_peak => said!(lang, "nfs-load-peak", "peak"),
            None => said!(lang, "nfs-load-held", "held"),
            Some(why) => said!(lang, "nfs-load-missed-why", "not held: {why}", why = lang.text(why.text())),
        }));
        row
    };
    Some(Table {
        caption: said!(lang, "nfs-caption-curve", "Response time against load"),
        columns,
        rows: found.curve.iter().map(row).collect(),
    })
}

fn figures(caption: String, one: Column, rows: Vec<(String, &OperationFigures)>) -> Option<Table> {
    if rows.is_empty() {
        return None;
    }
    let failed = |figures: &OperationFigures| figures.errors.values().sum::<u64>();
    let row = |(name, figures): &(String, &OperationFigures)| {
        let errors: Vec<String> =
            figures.errors.iter().map(|(status, count)| format!("{} {}", grouped(*count), plain(status))).collect();
        vec![
            Some(name.clone()),
            per_second(figures.ops_per_s),
            percent(figures.share),
            millis(figures.mean_ms),
            millis(figures.p50_ms),
            millis(figures.p99_ms),
            Some(grouped(figures.count)),
            Some(errors.join(", ")).filter(|_| failed(figures) > 0),
        ]
    };
    let mut table = Table {
        caption,
        columns: vec![
            one,
            column!("column-per-second", "per second", "completed a second"),
            column!("column-nfs-share", "share", "share of all operations completed").ranked(3),
            column!("column-nfs-mean", "mean", "mean response time"),
            columns::P50.ranked(2),
            columns::P99.ranked(1),
            column!("column-count", "count", "how many were completed, over all runs").ranked(4),
            column!("column-errors", "errors", "those that failed, by status (RFC 1813 section 2.6)").ranked(1),
        ],
        rows: rows.iter().map(row).collect(),
    };
    if table.rows.iter().all(|row| row[7].is_none()) {
        table.columns.pop();
        table.rows.iter_mut().for_each(|row| drop(row.pop()));
    }
    Some(table)
}

/// Returns the sentences of the curve.
fn sentences(lang: Language, record: &Record) -> Vec<String> {
    let Some((_, found)) = record.curve() else { return Vec::new() };
    let Some(lowest) = found.curve.first() else { return Vec::new() };
    let mut sentences = Vec::new();
    match &found.peak {
        Some(peak) => {
            let text = per_second(peak.achieved_ops).zip(millis(peak.mean_ms)).zip(millis(peak.response_cap_ms)).map(
                |((ops, mean), cap)| {
                    said!(
                        lang,
                        "nfs-peak-found",
                        "The peak is {ops} operations a second, with a mean response time of {mean} (cap: {cap}).",
                        ops = ops,
                        mean = mean,
                        cap = cap
                    )
                },
            );
            sentences.extend(text);
            let figures = [(said!(lang, "nfs-peak-name", "nfs peak"), peak.firmness)];
            sentences.splice(0..0, firmness::sentences(lang, &figures));
            let past = peak.missed_at_ops.and_then(per_second).zip(peak.missed);
            sentences.push(match past {
                Some((ops, why)) => {
                    said!(lang, "nfs-missed-at", "At {ops} a second {why}.", ops = ops, why = lang.text(why.text()))
                }
                None => {
                    said!(lang, "nfs-none-missed", "Every load that was tried was held, so the peak may be higher.")
                }
            });
        }
        None => {
            let why = lowest
                .missed
                .map_or_else(|| said!(lang, "nfs-load-missed", "it was not held"), |why| lang.text(why.text()));
            sentences.extend(per_second(lowest.intended_ops).map(|ops| {
                said!(
                    lang,
                    "nfs-none-held",
                    "No load was held: even at {ops} operations a second {why}.",
                    ops = ops,
                    why = why
                )
            }));
        }
    }
    if let (None, Some(ops), Some(mean)) = (lowest.missed, per_second(lowest.intended_ops), millis(lowest.mean_ms)) {
        sentences.push(said!(
            lang,
            "nfs-lowest-load",
            "At {ops} a second, the lowest load, the mean response time is {mean}.",
            ops = ops,
            mean = mean
        ));
    }
    let of_peak = found.result.as_deref().and_then(|name| record.result(name));
    sentences.extend(of_peak.as_ref().and_then(|result| tester_limit(lang, result)));
    sentences.extend(of_peak.as_ref().and_then(|result| corruption(lang, result)));
    sentences
}

/// Data read that were not what had been written.
fn corruption(lang: Language, result: &Measurement) -> Option<String> {
    let corrupt: u64 = result.nfs()?.classes.values().map(|class| class.corrupt_bytes).sum();
    (corrupt > 0).then(|| {
        said!(
            lang,
            "nfs-corrupt",
            if bytes == 1 {
                "1 byte that was read was not what had been written."
            } else {
                "{bytes} bytes that were read were not what had been written."
            },
            bytes = corrupt
        )
    })
}

/// Returns the limit of the curve: that of the lowest load that was not held.
fn verdict_past_peak(lang: Language, record: &Record) -> Option<(String, &Verdict)> {
    let past = record.curve()?.1.curve.iter().find(|point| point.missed.is_some())?;
    let result = record.result(&past.result)?;
    Some((
        said!(lang, "nfs-verdict-past-peak", "past the peak ({result})", result = plain(&past.result)),
        &result.verdict,
    ))
}

/// Response time against load, a line for all operations and one for each class.
fn chart(lang: Language, record: &Record) -> Option<Chart> {
    let (plan, found) = record.curve().filter(|(_, found)| found.curve.len() > 1)?;
    let title = said!(lang, "nfs-caption-curve", "Response time against load");
    let usable =
        |point: &&CurvePoint| point.achieved_ops.is_finite() && point.mean_ms.is_finite() && point.mean_ms > 0.0;
    let points: Vec<&CurvePoint> = found.curve.iter().filter(usable).collect();
    let mut lines: Vec<(String, Vec<(&CurvePoint, f64)>)> = vec![(
        said!(lang, "nfs-legend-all", "all operations"),
        points.iter().map(|point| (*point, point.mean_ms)).collect(),
    )];
    for class in [NfsClass::Read, NfsClass::Write, NfsClass::Other] {
        let means: Vec<(&CurvePoint, f64)> = points
            .iter()
            .filter_map(|point| Some((*point, point.classes.get(&class)?.mean_ms)))
            .filter(|(_, mean)| mean.is_finite() && *mean > 0.0)
            .collect();
        // With one class alone its line is that of all.
        if !means.is_empty() && points.iter().any(|point| point.classes.len() > 1) {
            lines.push((lang.text(class.text()), means));
        }
    }
    let cap = found.peak.as_ref().map(|peak| peak.response_cap_ms);
    let cap = cap.or(Some(plan.response_cap.get() as f64 / NS_PER_MS));
    let mean_times = || lines.iter().flat_map(|(_, line)| line).map(|(_, mean)| *mean).chain(cap);
    let low = mean_times().fold(f64::INFINITY, f64::min);
    let high = mean_times().fold(0.0, f64::max);
    if !low.is_finite() {
        return None;
    }
    let highest = points.iter().map(|point| point.achieved_ops).fold(0.0, f64::max);
    let x = Axis::rate(lang, said!(lang, "nfs-axis-operations", "operations completed"), "/s", highest);
    let y = match high / low > LINEAR_REACH {
        true => Axis {
            title: said!(lang, "nfs-axis-response-logarithmic", "mean response time (logarithmic)"),
            ..latency_axis(lang, low * NS_PER_MS, high * NS_PER_MS)
        },
        false => Axis::time(said!(lang, "nfs-axis-response", "mean response time"), high * NS_PER_MS),
    };
    let mut series = Vec::new();
    let mut legend = Vec::new();
    if let Some((cap, shown)) = cap.and_then(|cap| Some((cap, millis(cap)?))) {
        legend.push(("limit", said!(lang, "nfs-legend-cap", "response time cap: {shown}", shown = shown)));
        let line = vec![(0.0, cap * NS_PER_MS), (highest, cap * NS_PER_MS)];
        series.push(Series { class: "limit", line, points: Vec::new() });
    }
    for (class, (name, line)) in SERIES.into_iter().zip(&lines) {
        legend.push((class, name.clone()));
        let point = |(point, mean): &(&CurvePoint, f64)| Point {
            x: point.achieved_ops,
            y: mean * NS_PER_MS,
            spread: None,
            label: label(lang, found, name, point, *mean),
        };
        series.push(Series {
            class,
            // Past what is held there is no order of loads: those points stand alone.
            line: line
                .iter()
                .filter(|(point, _)| point.missed.is_none())
                .map(|(point, mean)| (point.achieved_ops, mean * NS_PER_MS))
                .collect(),
            points: line.iter().map(point).collect(),
        });
    }
    Some(Chart { drawing: Drawing::Lines { x, y, series }, table: curve(lang, found)?, title, legend })
}

/// Returns the text of a point of the curve.
fn label(lang: Language, found: &CurveFound, name: &str, point: &CurvePoint, mean_ms: f64) -> String {
    let rate = |value: f64| per_second(value).unwrap_or_default();
    let mut text = said!(
        lang,
        "nfs-point",
        "{achieved_ops} of {intended_ops} operations a second: {name}, mean {mean_ms}",
        achieved_ops = rate(point.achieved_ops),
        intended_ops = rate(point.intended_ops),
        name = name,
        mean_ms = millis(mean_ms).unwrap_or_default()
    );
    if found.peak.as_ref().is_some_and(|peak| peak.result == point.result) {
        text.push_str(&said!(lang, "nfs-point-peak", "; the peak"));
    }
    if let Some(why) = point.missed {
        text.push_str(&said!(lang, "nfs-point-missed", "; not held, {why}", why = lang.text(why.text())));
    }
    text
}

/// Returns what the tester itself can do: the cheapest operations, on its own hosts alone.
fn tester_limit(lang: Language, result: &Measurement) -> Option<String> {
    let tester_limit = result.tester_limit.as_ref()?;
    let limit = per_second(tester_limit.reached.median)?;
    let share = percent(tester_limit.share)?;
    Some(match result.verdict.limit {
        Limit::Tester => said!(
            lang,
            "nfs-tester-limit-reached",
            "This is {share} of the tester limit, {limit} getattr operations a second from a server on the tester's own \
             host. The tester is the limit, not the server.",
            limit = limit,
            share = share
        ),
        _ => said!(
            lang,
            "nfs-tester-limit",
            "This is {share} of the tester limit, {limit} getattr operations a second from a server on the tester's own \
             host.",
            limit = limit,
            share = share
        ),
    })
}
