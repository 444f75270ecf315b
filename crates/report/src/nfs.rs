//! What was found of an NFS server: operations and classes, the curve of response time against load, and its peak.

use crate::charts::{Chart, SERIES, latency_axis};
use crate::document::{Block, Entry, Section};
use crate::figures::{grouped, nanos, per_second, percent, plain};
use crate::language::Language;
use crate::said;
use crate::sentences;
use crate::svg::{Axis, Drawing, Point, Series};
use crate::tables::{Column, Table};
use linerate_model::{
    Ceiling, CurvePoint, Limit, Measurement, NfsClass, NfsOutcome, OperationFigures, Record, Verdict,
};

const NS_PER_MS: f64 = 1e6;
/// Past this ratio a linear axis would hide the quickest responses.
const LINEAR_REACH: f64 = 20.0;

/// The results that are told one by one: a curve's loads are told together.
pub(crate) fn told(record: &Record) -> impl Iterator<Item = &Measurement> {
    let curve: &[CurvePoint] = record.nfs().map_or(&[], |found| &found.curve);
    record.results.iter().filter(|result| curve.iter().all(|point| point.result != result.name))
}

/// Milliseconds as a duration.
fn millis(value: f64) -> Option<String> {
    (value.is_finite() && (0.0..1e12).contains(&value)).then(|| nanos((value * NS_PER_MS).round() as u64))
}

/// The peak, and what the curve says of it.
pub(crate) fn answer(lang: Language, record: &Record) -> Option<Entry> {
    let found = record.nfs().filter(|found| !found.curve.is_empty())?;
    let peak = found.peak.as_ref().and_then(|peak| per_second(peak.achieved_ops));
    let entry = Entry::new(said!(lang, "nfs-peak-name"), sentences(lang, record));
    Some(entry.with_figure(peak.map(|peak| format!("{peak} /s"))))
}

/// The curve, and the classes and operations of its peak.
pub(crate) fn section(lang: Language, record: &Record) -> Option<Section> {
    let tables = tables(lang, record).map(Block::Table);
    let blocks = chart(lang, record).map(Block::chart).into_iter().chain(tables).collect();
    Section::summary("curve", said!(lang, "nfs-section"), blocks)
}

/// Curve, classes and operations.
fn tables(lang: Language, record: &Record) -> impl Iterator<Item = Table> {
    record.nfs().into_iter().flat_map(move |found| {
        let classes = found.classes.iter().map(|(class, figures)| (lang.named("class", class), figures));
        let mut operations: Vec<(String, &OperationFigures)> =
            found.operations.iter().map(|(operation, figures)| (operation.to_string(), figures)).collect();
        operations.sort_by_key(|(_, figures)| std::cmp::Reverse(figures.count));
        let of = plain(&found.result);
        [
            curve(lang, found),
            figures(said!(lang, "nfs-classes-of-operations", value = of), "column-class", classes.collect()),
            figures(said!(lang, "nfs-operations", value = of), "column-operation", operations),
        ]
        .into_iter()
        .flatten()
    })
}

fn curve(lang: Language, found: &NfsOutcome) -> Option<Table> {
    if found.curve.is_empty() {
        return None;
    }
    let mut columns = vec![
        Column::new("column-asked-for"),
        Column::new("column-came-due").ranked(3),
        Column::new("column-completed"),
        Column::new("column-mean"),
        Column::new("column-p50").ranked(4),
        Column::new("column-p99").ranked(1),
    ];
    let classes: Vec<NfsClass> = [NfsClass::Read, NfsClass::Write, NfsClass::Other]
        .into_iter()
        .filter(|class| found.curve.iter().any(|point| point.classes.contains_key(class)))
        .collect();
    columns.extend(classes.iter().map(|class| match class {
        NfsClass::Read => Column::new("column-read").ranked(5),
        NfsClass::Write => Column::new("column-write").ranked(5),
        NfsClass::Other => Column::new("column-other").ranked(5),
    }));
    columns.push(Column::new("column-untitled").ranked(2));
    let row = |point: &CurvePoint| {
        let mut row = vec![
            per_second(point.intended_ops),
            per_second(point.offered_ops),
            per_second(point.achieved_ops),
            millis(point.mean_ms),
            millis(point.p50_ms),
            millis(point.p99_ms),
        ];
        row.extend(classes.iter().map(|class| point.classes.get(class).and_then(|class| millis(class.mean_ms))));
        let is_peak = found.peak.as_ref().is_some_and(|peak| peak.result == point.result);
        row.push(Some(match point.missed {
            None if is_peak => said!(lang, "nfs-peak"),
            None => said!(lang, "nfs-held"),
            Some(why) => said!(lang, "nfs-not-held-2", why = lang.named("missed", why)),
        }));
        row
    };
    Some(Table {
        caption: said!(lang, "nfs-response-time-against-load"),
        columns,
        rows: found.curve.iter().map(row).collect(),
    })
}

fn figures(caption: String, one: &'static str, rows: Vec<(String, &OperationFigures)>) -> Option<Table> {
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
            Column::new(one),
            Column::new("column-per-second"),
            Column::new("column-nfs-share").ranked(3),
            Column::new("column-nfs-mean"),
            Column::new("column-p50").ranked(2),
            Column::new("column-p99").ranked(1),
            Column::new("column-count").ranked(4),
            Column::new("column-errors").ranked(1),
        ],
        rows: rows.iter().map(row).collect(),
    };
    if table.rows.iter().all(|row| row[7].is_none()) {
        table.columns.pop();
        table.rows.iter_mut().for_each(|row| drop(row.pop()));
    }
    Some(table)
}

/// What the curve says.
fn sentences(lang: Language, record: &Record) -> Vec<String> {
    let Some(found) = record.nfs() else { return Vec::new() };
    let Some(lowest) = found.curve.first() else { return Vec::new() };
    let mut said = Vec::new();
    match &found.peak {
        Some(peak) => {
            let text = per_second(peak.achieved_ops)
                .zip(millis(peak.mean_ms))
                .zip(millis(peak.response_cap_ms))
                .map(|((ops, mean), cap)| said!(lang, "nfs-the-peak-is-operations", ops = ops, mean = mean, cap = cap));
            said.extend(text);
            let past = peak.missed_at_ops.and_then(per_second).zip(peak.missed);
            said.push(match past {
                Some((ops, why)) => said!(lang, "nfs-at-a-second", ops = ops, why = lang.named("missed", why)),
                None => said!(lang, "nfs-no-load-was-found"),
            });
        }
        None => {
            let why = lowest.missed.map_or_else(|| said!(lang, "nfs-it-was-not-held"), |why| lang.named("missed", why));
            said.extend(
                per_second(lowest.intended_ops).map(|ops| said!(lang, "nfs-no-load-was-held", ops = ops, why = why)),
            );
        }
    }
    if let (None, Some(ops), Some(mean)) = (lowest.missed, per_second(lowest.intended_ops), millis(lowest.mean_ms)) {
        said.push(said!(lang, "nfs-at-a-second-the", ops = ops, mean = mean));
    }
    let of_peak = record.results.iter().find(|result| result.name == found.result);
    said.extend(of_peak.and_then(|result| sentences::tester_limit(lang, result)));
    said.extend(of_peak.and_then(|result| corruption(lang, result)));
    said
}

/// What the tester itself can do: the cheapest operations, on its own hosts alone.
pub(crate) fn tester_limit(lang: Language, result: &Measurement, ceiling: &Ceiling) -> Option<String> {
    let (limit, share) = (per_second(ceiling.reached.median)?, percent(ceiling.share)?);
    Some(match result.verdict.limit {
        Limit::Tester => said!(lang, "nfs-tester-limit-reached", limit = limit, share = share),
        _ => said!(lang, "nfs-tester-limit", limit = limit, share = share),
    })
}

/// Data read that were not what had been written.
pub(crate) fn corruption(lang: Language, result: &Measurement) -> Option<String> {
    let corrupt: u64 = result.classes.values().map(|class| class.corrupt_bytes).sum();
    (corrupt > 0).then(|| said!(lang, "nfs-corrupt", bytes = corrupt))
}

/// What limited the curve: what limited the lowest load that was not held.
pub(crate) fn judged(lang: Language, record: &Record) -> Option<(String, &Verdict)> {
    let past = record.nfs()?.curve.iter().find(|point| point.missed.is_some())?;
    let result = record.results.iter().find(|result| result.name == past.result)?;
    Some((said!(lang, "nfs-past-the-peak", result = plain(&past.result)), &result.verdict))
}

/// Response time against load, a line for all operations and one for each class.
fn chart(lang: Language, record: &Record) -> Option<Chart> {
    let found = record.nfs().filter(|found| found.curve.len() > 1)?;
    let title = said!(lang, "nfs-response-time-against-load");
    let usable =
        |point: &&CurvePoint| point.achieved_ops.is_finite() && point.mean_ms.is_finite() && point.mean_ms > 0.0;
    let points: Vec<&CurvePoint> = found.curve.iter().filter(usable).collect();
    let mut lines: Vec<(String, Vec<(&CurvePoint, f64)>)> =
        vec![(said!(lang, "nfs-all-operations"), points.iter().map(|point| (*point, point.mean_ms)).collect())];
    for class in [NfsClass::Read, NfsClass::Write, NfsClass::Other] {
        let own: Vec<(&CurvePoint, f64)> = points
            .iter()
            .filter_map(|point| Some((*point, point.classes.get(&class)?.mean_ms)))
            .filter(|(_, mean)| mean.is_finite() && *mean > 0.0)
            .collect();
        // With one class alone its line is that of all.
        if !own.is_empty() && points.iter().any(|point| point.classes.len() > 1) {
            lines.push((lang.named("class", class), own));
        }
    }
    let cap = found.peak.as_ref().map(|peak| peak.response_cap_ms);
    let cap = cap.or_else(|| Some(record.plan.curve.as_ref()?.response_cap.get() as f64 / NS_PER_MS));
    let means = || lines.iter().flat_map(|(_, line)| line).map(|(_, mean)| *mean).chain(cap);
    let (low, high) = (means().fold(f64::INFINITY, f64::min), means().fold(0.0, f64::max));
    if !low.is_finite() {
        return None;
    }
    let most = points.iter().map(|point| point.achieved_ops).fold(0.0, f64::max);
    let x = Axis::rate(said!(lang, "nfs-operations-completed"), "/s", most);
    let y = match high / low > LINEAR_REACH {
        true => Axis {
            title: said!(lang, "nfs-mean-response-time-logarithmic"),
            ..latency_axis(lang, low * NS_PER_MS, high * NS_PER_MS)
        },
        false => Axis::time(said!(lang, "nfs-mean-response-time"), high * NS_PER_MS),
    };
    let (mut series, mut legend) = (Vec::new(), Vec::new());
    if let Some((cap, shown)) = cap.and_then(|cap| Some((cap, millis(cap)?))) {
        legend.push(("limit", said!(lang, "nfs-what-the-peak-must", shown = shown)));
        let line = vec![(0.0, cap * NS_PER_MS), (most, cap * NS_PER_MS)];
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

/// What a point of the curve says.
fn label(lang: Language, found: &NfsOutcome, name: &str, point: &CurvePoint, mean_ms: f64) -> String {
    let shown = |value: f64| per_second(value).unwrap_or_default();
    let mut text = said!(
        lang,
        "nfs-of-operations-a-second",
        achieved_ops = shown(point.achieved_ops),
        intended_ops = shown(point.intended_ops),
        name = name,
        mean_ms = millis(mean_ms).unwrap_or_default()
    );
    if found.peak.as_ref().is_some_and(|peak| peak.result == point.result) {
        text.push_str(&said!(lang, "nfs-the-peak"));
    }
    if let Some(why) = point.missed {
        text.push_str(&said!(lang, "nfs-not-held", why = lang.named("missed", why)));
    }
    text
}
