//! RPC throughput against the size of a unit of data, UDP and TCP side by side.

use crate::blocks::axis::{Axis, Scale, size_ticks};
use crate::blocks::chart::{Chart, SERIES};
use crate::blocks::drawing::{Drawing, Point, Series};
use crate::blocks::table::Table;
use crate::column;
use crate::figures::{grouped, per_second, plain, rate, spread};
use crate::language::Language;
use crate::said;
use linerate_model::{Measurement, RpcCall, RpcFigures, Summary, Transport};

/// A line: the calls over one transport that do the same.
struct Line<'a> {
    transport: Transport,
    call: RpcCall,
    results: Vec<(&'a Measurement, &'a RpcFigures, &'a Summary)>,
}

/// The chart, where any call was made with units of several sizes.
pub(crate) fn chart(lang: Language, flows: &[&Measurement]) -> Option<Chart> {
    let mut lines: Vec<Line<'_>> = Vec::new();
    for result in flows {
        let Some(calls) = result.rpc().filter(|calls| calls.flow.message_bytes > 0) else { continue };
        let payload = calls.received.as_ref().map(|received| &received.payload_bps);
        let Some(payload) = payload.filter(|payload| payload.median.is_finite()) else { continue };
        let transport = calls.flow.transport;
        let call = calls.call;
        match lines.iter_mut().find(|line| (line.transport, line.call) == (transport, call)) {
            Some(line) => line.results.push((result, calls, payload)),
            None => lines.push(Line { transport, call, results: vec![(result, calls, payload)] }),
        }
    }
    lines.retain(|line| line.results.len() > 1);
    lines.iter_mut().for_each(|line| line.results.sort_by_key(|(_, calls, _)| calls.flow.message_bytes));
    let all = || lines.iter().flat_map(|line| &line.results);
    let mut sizes: Vec<u64> = all().map(|(_, calls, _)| calls.flow.message_bytes).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let low = *sizes.first()? as f64 / 1.12;
    let high = *sizes.last()? as f64 * 1.12;
    let x = Axis {
        title: said!(lang, "rpc-chart-axis-unit", "unit of data, bytes (logarithmic)"),
        scale: Scale::Log(low, high),
        ticks: size_ticks(&sizes, low, high),
    };
    let line_bps = all().filter_map(|(result, ..)| Some(result.limit()?.line_bps.get() as f64)).reduce(f64::min);
    let highest = all().map(|(.., payload)| payload.high).chain(line_bps).fold(0.0, f64::max);
    let y = Axis::rate(lang, said!(lang, "rpc-chart-axis-data", "data of the calls"), "bit/s", highest);
    let mut series = Vec::new();
    let mut legend = Vec::new();
    if let Some(line_bps) = line_bps {
        legend.push((
            "limit",
            said!(lang, "rpc-chart-legend-line", "the line: {line_bps}", line_bps = rate(line_bps, "bit/s")?),
        ));
        series.push(Series { class: "limit", line: vec![(low, line_bps), (high, line_bps)], points: Vec::new() });
    }
    for (class, line) in SERIES.into_iter().zip(&lines) {
        legend.push((
            class,
            said!(
                lang,
                "rpc-chart-legend-calls",
                "{call} over {transport}, median; bars from lowest to highest run",
                call = lang.text(line.call.text()),
                transport = line.transport
            ),
        ));
        let point = |(result, calls, payload): &(&Measurement, &RpcFigures, &Summary)| Point {
            x: calls.flow.message_bytes as f64,
            y: payload.median,
            spread: (payload.runs > 1).then_some((payload.low, payload.high)),
            label: label(lang, result, payload),
        };
        // What lies between two sizes was not measured.
        series.push(Series { class, line: Vec::new(), points: line.results.iter().map(point).collect() });
    }
    let title = said!(lang, "rpc-chart-title", "RPC throughput by unit of data");
    let row = |(result, calls, payload): &(&Measurement, &RpcFigures, &Summary)| {
        vec![
            Some(plain(&result.name)),
            Some(grouped(calls.flow.message_bytes)),
            rate(payload.median, "bit/s"),
            rate(payload.low, "bit/s").filter(|_| payload.runs > 1),
            rate(payload.high, "bit/s").filter(|_| payload.runs > 1),
            per_second(calls.requests.transactions_per_s.median),
        ]
    };
    let table = Table {
        caption: title.clone(),
        columns: vec![
            column!("column-calls", "calls", "name of the result"),
            column!("column-unit-b", "unit, B", "bytes of data that a call carries"),
            column!("column-data", "data", "data of the calls a second, median of the runs"),
            column!("column-rpc-chart-lowest-run", "lowest run", "data of the lowest run"),
            column!("column-rpc-chart-highest-run", "highest run", "data of the highest run"),
            column!("column-rpc-chart-calls-s", "calls/s", "calls answered a second"),
        ],
        rows: all().map(row).collect(),
    };
    Some(Chart { drawing: Drawing::Lines { x, y, series }, table, title, legend })
}

/// Returns the text of a point.
fn label(lang: Language, result: &Measurement, payload: &Summary) -> String {
    let bits = |value| rate(value, "bit/s");
    let shown = bits(payload.median).unwrap_or_else(|| said!(lang, "charts-no-figure", "no figure"));
    said!(
        lang,
        "rpc-chart-point",
        "{name}: {shown} of data ({payload})",
        name = plain(&result.name),
        shown = shown,
        payload = spread(lang, payload, bits)
    )
}
