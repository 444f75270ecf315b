//! Throughput of streams: against message size, and as bars.

use crate::blocks::axis::{Axis, Scale, lowest, rate_axis, size_ticks};
use crate::blocks::chart::{Chart, SERIES};
use crate::blocks::columns;
use crate::blocks::drawing::{Bar, Drawing, Point, Segment, Series, reach};
use crate::blocks::table::Table;
use crate::column;
use crate::figures::{counted_share, grouped, percent, plain, rate, spread};
use crate::language::Language;
use crate::said;
use linerate_model::{Direction, IpVersion, Measurement, PathLimit, StreamFigures, Transport};
use linerate_units::Ratio;

/// Returns a chart of each sweep of message sizes, and one of all other streams.
pub(crate) fn all(lang: Language, results: &[&Measurement]) -> Vec<Chart> {
    let (sweeps, others) = sweeps(results);
    let mut charts: Vec<Chart> = sweeps.iter().map(|results| sweep(lang, results)).collect();
    charts.extend(throughputs(lang, &others));
    charts
}

/// A stream's result and its figures.
#[derive(Clone, Copy)]
struct Stream<'a> {
    result: &'a Measurement,
    figures: &'a StreamFigures,
}

/// Splits results into sweeps, which differ in message size only, and the streams that are in none.
fn sweeps<'a>(flows: &[&'a Measurement]) -> (Vec<Vec<Stream<'a>>>, Vec<Stream<'a>>) {
    type Kind = (Transport, IpVersion, Direction, u16);
    let kind = |m: Stream<'_>| -> Kind {
        let StreamFigures { flow, direction, .. } = m.figures;
        (flow.transport, flow.ip, *direction, flow.flows)
    };
    let streams = flows.iter().filter_map(|result| Some(Stream { result, figures: result.stream()? }));
    let mut kinds: Vec<(Kind, Vec<Stream<'_>>)> = Vec::new();
    for stream in streams.filter(|m| payload(*m) > 0.0) {
        match kinds.iter_mut().find(|(known, _)| *known == kind(stream)) {
            Some((_, members)) => members.push(stream),
            None => kinds.push((kind(stream), vec![stream])),
        }
    }
    let mut curves = Vec::new();
    let mut others = Vec::new();
    for (_, mut members) in kinds {
        members.sort_by_key(|m| m.figures.flow.message_bytes);
        let distinct =
            members.windows(2).all(|pair| pair[0].figures.flow.message_bytes < pair[1].figures.flow.message_bytes);
        if members.len() > 1 && distinct { curves.push(members) } else { others.extend(members) }
    }
    (curves, others)
}

/// Throughput against message size, with the theoretical line and the tester's tester_limit.
fn sweep(lang: Language, results: &[Stream<'_>]) -> Chart {
    let first = results[0];
    let way = match first.figures.direction {
        Direction::Receive => said!(lang, "charts-title-receiving", ", receiving"),
        Direction::Both => said!(lang, "charts-title-both-ways", ", both ways"),
        Direction::Send => String::new(),
    };
    let flows = if first.figures.flow.flows > 1 {
        said!(lang, "charts-title-flows", ", {flows} flows", flows = first.figures.flow.flows)
    } else {
        String::new()
    };
    let title = said!(
        lang,
        "charts-title-sweep",
        "{transport} over IPv{ip} by message size{way}{flows}",
        transport = first.figures.flow.transport,
        ip = u8::from(first.figures.flow.ip),
        way = way,
        flows = flows
    );
    let size = |m: Stream<'_>| m.figures.flow.message_bytes as f64;

    let mut series = vec![];
    let mut legend = vec![];
    let theory = theory(results);
    if !theory.is_empty() {
        legend.push(("limit", said!(lang, "charts-legend-link-limit", "what the link can carry at this message size")));
        let point = |m: Stream<'_>| {
            let limit = m.figures.flow.limit.as_ref()?;
            let most = limit.payload_bps.get() as f64;
            let label = said!(
                lang,
                "charts-point-link-limit-at-size",
                "{message_bytes} B messages: a link of {line_bps} can carry {most} payload",
                message_bytes = grouped(m.figures.flow.message_bytes),
                line_bps = limit.line_bps,
                most = bits(most)?
            );
            Some(Point { x: size(m), y: most, spread: None, label })
        };
        series.push(Series {
            class: "limit",
            line: theory,
            points: results.iter().filter_map(|m| point(*m)).collect(),
        });
    }
    let tester_limit =
        |m: Stream<'_>| m.result.tester_limit.as_ref().map(|c| c.reached.median).filter(|reached| reached.is_finite());
    let limits: Vec<(f64, f64)> = results.iter().filter_map(|m| Some((size(*m), tester_limit(*m)?))).collect();
    if !limits.is_empty() {
        legend
            .push(("tester", said!(lang, "charts-legend-tester-limit", "what the tester reaches without the device")));
        let point = |m: Stream<'_>| {
            let reached = tester_limit(m)?;
            let label = said!(
                lang,
                "charts-point-tester-limit-at-size",
                "{message_bytes} B messages: the tester reaches {reached} without the device",
                message_bytes = grouped(m.figures.flow.message_bytes),
                reached = bits(reached)?
            );
            Some(Point { x: size(m), y: reached, spread: None, label })
        };
        // What lies between two sizes was not measured.
        series.push(Series {
            class: "tester",
            line: Vec::new(),
            points: results.iter().copied().filter_map(point).collect(),
        });
    }
    legend.push((
        "s0",
        said!(lang, "charts-legend-payload-line", "payload at the receiver, median; bars from lowest to highest run"),
    ));
    series.push(Series {
        class: SERIES[0],
        line: Vec::new(),
        points: results
            .iter()
            .map(|m| Point { x: size(*m), y: payload(*m), spread: runs(*m), label: said(lang, *m) })
            .collect(),
    });

    let drawn = |s: &Series| s.line.iter().map(|(_, y)| *y).chain(s.points.iter().map(|p| p.y)).collect::<Vec<_>>();
    let highest = series.iter().flat_map(drawn).fold(0.0, f64::max);
    let y = rate_axis(
        lang,
        said!(lang, "charts-axis-payload", "payload at the receiver"),
        "bit/s",
        lowest(results.iter().map(|result| payload(*result))),
        results.iter().filter_map(|m| runs(*m)).map(|(_, high)| high).fold(highest, f64::max),
    );
    let low = size(first) / 1.12;
    let high = size(results[results.len() - 1]) * 1.12;
    let x = Axis {
        title: said!(lang, "charts-axis-message", "message, bytes (logarithmic)"),
        scale: Scale::Log(low, high),
        ticks: size_ticks(&results.iter().map(|m| m.figures.flow.message_bytes).collect::<Vec<_>>(), low, high),
    };
    Chart { drawing: Drawing::Lines { x, y, series }, table: figures_table(&title, results), title, legend }
}

/// The theoretical line between the sizes measured: dense where one line rate and MTU hold for all.
fn theory(results: &[Stream<'_>]) -> Vec<(f64, f64)> {
    let with_limits: Vec<(Stream<'_>, &PathLimit)> =
        results.iter().filter_map(|m| Some((*m, m.figures.flow.limit.as_ref()?))).collect();
    let Some((first, limit)) = with_limits.first() else { return Vec::new() };
    // Only where the record's own limits come out may what lies between them be drawn.
    let of = |size: u64| {
        PathLimit::payload_of(limit.line_bps, first.figures.flow.transport, first.figures.flow.ip, size, limit.mtu)
    };
    if with_limits.iter().any(|(m, own)| of(m.figures.flow.message_bytes) != own.payload_bps) {
        return with_limits
            .iter()
            .map(|(m, own)| (m.figures.flow.message_bytes as f64, own.payload_bps.get() as f64))
            .collect();
    }
    let (low, high) = (
        first.figures.flow.message_bytes.max(1) as f64,
        with_limits[with_limits.len() - 1].0.figures.flow.message_bytes as f64,
    );
    let mut sizes: Vec<u64> =
        (0..=160).map(|step| (low * (high / low).powf(f64::from(step) / 160.0)).round() as u64).collect();
    sizes.extend(with_limits.iter().map(|(m, _)| m.figures.flow.message_bytes));
    sizes.sort_unstable();
    sizes.dedup();
    sizes.into_iter().map(|size| (size as f64, of(size).get() as f64)).collect()
}

/// Medians, ranges and limits of streams.
fn figures_table(caption: &str, results: &[Stream<'_>]) -> Table {
    let row = |m: Stream<'_>| {
        vec![
            Some(plain(&m.result.name)),
            Some(grouped(m.figures.flow.message_bytes)),
            bits(payload(m)),
            runs(m).and_then(|(low, _)| bits(low)),
            runs(m).and_then(|(_, high)| bits(high)),
            m.figures.flow.limit.as_ref().and_then(|limit| bits(limit.payload_bps.get() as f64)),
            m.result.tester_limit.as_ref().and_then(|tester_limit| bits(tester_limit.reached.median)),
        ]
    };
    Table {
        caption: caption.to_owned(),
        columns: vec![
            columns::STREAM,
            column!("column-message-b", "message, B", "bytes of a message"),
            columns::CHARTS_PAYLOAD,
            column!("column-lowest-run", "lowest run", "payload of the lowest run"),
            column!("column-highest-run", "highest run", "payload of the highest run"),
            column!("column-link-limit", "link limit", "what the link can carry at this message size"),
            columns::TESTER,
        ],
        rows: results.iter().copied().map(row).collect(),
    }
}

/// Streams that are on no curve, as bars.
fn throughputs(lang: Language, results: &[Stream<'_>]) -> Option<Chart> {
    if results.is_empty() {
        return None;
    }
    let title = said!(lang, "charts-title-throughput", "Throughput of streams");
    let mut legend = vec![(
        "s0",
        said!(lang, "charts-legend-payload-bar", "payload at the receiver, median; whisker from lowest to highest run"),
    )];
    if results.iter().any(|m| m.figures.flow.limit.is_some()) {
        legend.push(("limit", said!(lang, "charts-legend-link-limit", "what the link can carry at this message size")));
    }
    if results.iter().any(|m| m.result.tester_limit.is_some()) {
        legend
            .push(("tester", said!(lang, "charts-legend-tester-limit", "what the tester reaches without the device")));
    }
    let bar = |m: Stream<'_>| {
        let limit = m.figures.flow.limit.as_ref().and_then(|limit| {
            let most = limit.payload_bps.get() as f64;
            let label = said!(
                lang,
                "charts-point-link-limit",
                "{name}: a link of {line_bps} can carry {most} payload",
                name = plain(&m.result.name),
                line_bps = limit.line_bps,
                most = bits(most)?
            );
            Some(Segment { class: "limit", value: most, label })
        });
        let tester = m.result.tester_limit.as_ref().and_then(|tester_limit| {
            let label = said!(
                lang,
                "charts-point-tester-limit",
                "{name}: the tester reaches {median} without the device",
                name = plain(&m.result.name),
                median = bits(tester_limit.reached.median)?
            );
            Some(Segment { class: "tester", value: tester_limit.reached.median, label })
        });
        Bar {
            name: plain(&m.result.name),
            segments: vec![Segment { class: SERIES[0], value: payload(m), label: said(lang, m) }],
            spread: runs(m),
            limits: limit.into_iter().chain(tester).collect(),
            figure: bits(payload(m)).unwrap_or_default(),
        }
    };
    let bars: Vec<Bar> = results.iter().copied().map(bar).collect();
    let low = lowest(results.iter().map(|result| payload(*result)));
    let x = rate_axis(lang, said!(lang, "charts-axis-payload", "payload at the receiver"), "bit/s", low, reach(&bars));
    Some(Chart { drawing: Drawing::Bars { x, bars }, table: figures_table(&title, results), title, legend })
}

fn payload(stream: Stream<'_>) -> f64 {
    let payload = stream.figures.received.payload_bps.median;
    if payload.is_finite() { payload } else { 0.0 }
}

/// The spread of a stream's payload, where there are several runs.
fn runs(stream: Stream<'_>) -> Option<(f64, f64)> {
    let summary = &stream.figures.received.payload_bps;
    (summary.runs > 1 && summary.low.is_finite() && summary.high.is_finite()).then_some((summary.low, summary.high))
}

fn bits(value: f64) -> Option<String> {
    rate(value, "bit/s")
}

/// Returns the text of a point of a throughput chart.
fn said(lang: Language, stream: Stream<'_>) -> String {
    let Stream { result, figures } = stream;
    let mut text = plain(&result.name);
    let payload_bps = &figures.received.payload_bps;
    let shown = bits(payload_bps.median).unwrap_or_else(|| said!(lang, "charts-no-figure", "no figure"));
    text.push_str(&said!(
        lang,
        "charts-point-payload",
        ": {shown} payload at the receiver ({payload_bps})",
        shown = shown,
        payload_bps = spread(lang, payload_bps, bits)
    ));
    if let Some(share) = result.limit().and_then(|limit| percent(limit.share)) {
        text.push_str(&said!(lang, "charts-point-of-link", ", {share} of what the link can carry", share = share));
    }
    if let Some(loss) = result.loss().filter(|loss| loss.lost > 0)
        && let Some(share) = counted_share(Ratio::new(loss.lost, loss.of))
    {
        text.push_str(&said!(lang, "charts-point-lost", ", {share} of datagrams lost", share = share));
    }
    text
}
