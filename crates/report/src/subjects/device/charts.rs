//! The charts of device tests: RFC 2544 section 26 says which, and over which axes.

use crate::blocks::axis::{Axis, Scale, latency_axis, rate_axis, size_ticks};
use crate::blocks::chart::{Chart, SERIES};
use crate::blocks::columns;
use crate::blocks::drawing::{Drawing, Point, Series};
use crate::blocks::table::{Column, Table};
use crate::column;
use crate::figures::{grouped, nanos, per_second, percent, rate};
use crate::language::Language;
use crate::said;
use crate::subjects::device::bursts::frames;
use crate::subjects::device::cells::{line_frames, streams_together};
use crate::subjects::device::{cpu, line_share, without_empty};
use crate::wording::firmness;
use linerate_model::Text;
use linerate_model::text;
use linerate_model::{
    BackToBack, BufferTime, DeviceFound, DeviceLoad, DevicePlan, Forwarding, ForwardingPoint, FrameLatency, Latency,
    LossPoint, Record, Throughput,
};

const CPU_AT_MFR: Column = column!(
    "column-cpu-at-mfr",
    "CPU at MFR",
    "busy share of the device's CPUs together, and of its busiest, at the maximum forwarding rate"
);
const CPU_AT_MOL: Column = column!("column-cpu-at-mol", "CPU at MOL", "the same at the maximum offered load");

/// Returns all charts that the record supports.
pub(crate) fn all(lang: Language, record: &Record) -> Vec<Chart> {
    let Some((plan, outcome)) = record.device() else { return Vec::new() };
    let mut charts = Vec::new();
    match line_share::chart(lang, plan, outcome) {
        Some(chart) => charts.push(chart),
        // Without the line's rate there are no shares of it.
        None => charts.extend(throughput(lang, plan, outcome, &FRAMES)),
    }
    charts.extend(forwarding(lang, plan, outcome));
    charts.extend(loss(lang, plan, outcome));
    charts.extend(latency(lang, outcome));
    charts.extend(buffer(lang, outcome));
    charts.extend(load(lang, outcome));
    charts.extend(load_by_offered(lang, outcome));
    charts
}

/// Unit in which a throughput is counted.
struct Unit {
    title: &'static Text,
    axis: &'static Text,
    unit: &'static str,
    /// Converts frames per second at a size.
    of: fn(f64, u32) -> f64,
}

const FRAMES: Unit = Unit {
    title: text!("device-charts-title-throughput-frames", "Throughput by frame size, frames"),
    axis: text!("device-charts-axis-frames", "frames a second"),
    unit: "/s",
    of: |frames, _| frames,
};
impl Unit {
    fn show(&self, value: f64) -> String {
        rate(value, self.unit).unwrap_or_else(|| format!("0 {}", self.unit))
    }
}

/// Throughput against frame size, with the line's theoretical rate and the tester limit (RFC 2544 section 26.1).
fn throughput(lang: Language, plan: &DevicePlan, outcome: &DeviceFound, unit: &Unit) -> Option<Chart> {
    let mut cells: Vec<&Throughput> = outcome.throughput.iter().filter(|cell| cell.frames_per_s.is_finite()).collect();
    cells.sort_by_key(|cell| cell.frame_bytes);
    let low = cells.first()?.frame_bytes;
    let high = cells.last()?.frame_bytes;
    let ways = streams_together(lang, plan);
    let title = format!("{}{ways}", lang.text(unit.title));
    let at = |cell: &Throughput, frames: f64| (f64::from(cell.frame_bytes), (unit.of)(frames, cell.frame_bytes));
    let point = |cell: &Throughput, frames: f64, label: &dyn Fn(u32, String) -> String| {
        let (x, y) = at(cell, frames);
        Point { x, y, spread: None, label: label(cell.frame_bytes, unit.show(y)) }
    };

    let mut series = Vec::new();
    let mut legend = Vec::new();
    let theory = |bytes: u32| Some((f64::from(bytes), (unit.of)(line_frames(plan, bytes)?, bytes)));
    let line: Vec<(f64, f64)> = between(low, high).into_iter().filter_map(theory).collect();
    if !line.is_empty() {
        legend.push(("limit", said!(lang, "device-charts-legend-line", "what the line carries")));
        let label = |bytes, rate| {
            said!(
                lang,
                "device-charts-point-line",
                "{bytes}-byte frames: the line carries {rate}",
                bytes = bytes,
                rate = rate
            )
        };
        let points = cells.iter().filter_map(|c| Some(point(c, line_frames(plan, c.frame_bytes)?, &label)));
        series.push(Series { class: "limit", line, points: points.collect() });
    }
    let limits: Vec<(&Throughput, f64)> = cells
        .iter()
        .filter_map(|cell| Some((*cell, cell.tester_limit.as_ref()?.frames_per_s)))
        .filter(|(_, frames)| frames.is_finite())
        .collect();
    if !limits.is_empty() {
        legend
            .push(("tester", said!(lang, "charts-legend-tester-limit", "what the tester reaches without the device")));
        let label = |bytes, rate| {
            said!(
                lang,
                "device-charts-point-tester",
                "{bytes}-byte frames: the tester reaches {rate} without the device",
                bytes = bytes,
                rate = rate
            )
        };
        series.push(Series {
            class: "tester",
            // What lies between two sizes was not measured.
            line: Vec::new(),
            points: limits.iter().map(|(cell, frames)| point(cell, *frames, &label)).collect(),
        });
    }
    legend.push((SERIES[0], said!(lang, "device-charts-legend-throughput", "the highest rate without loss")));
    let found = |cell: &Throughput| {
        let share = cell.line_share.and_then(percent);
        let of_line = share.map(|share| {
            said!(lang, "device-charts-point-of-line", ", {share} of what the line carries", share = share)
        });
        let label = |bytes, rate| {
            said!(
                lang,
                "device-charts-point-throughput",
                "{bytes}-byte frames: throughput {rate}{of_line}; limit: {limit}",
                bytes = bytes,
                rate = firmness::told(lang, rate, cell.firmness),
                of_line = of_line.clone().unwrap_or_default(),
                limit = lang.text(cell.limit.text())
            )
        };
        point(cell, cell.frames_per_s, &label)
    };
    series.push(Series { class: SERIES[0], line: Vec::new(), points: cells.iter().map(|cell| found(cell)).collect() });

    let row = |cell: &&Throughput| {
        let shown = |frames: Option<f64>| Some(unit.show((unit.of)(frames?, cell.frame_bytes)));
        vec![
            Some(cell.frame_bytes.to_string()),
            shown(Some(cell.frames_per_s)).map(|rate| firmness::shown(rate, cell.firmness)),
            shown(line_frames(plan, cell.frame_bytes)),
            shown(cell.tester_limit.as_ref().map(|tester_limit| tester_limit.frames_per_s)),
        ]
    };
    let table = Table {
        caption: title.clone(),
        columns: vec![
            columns::FRAME_B,
            column!("column-throughput", "throughput", "the highest rate without loss, all directions together"),
            column!("column-device-charts-line", "line", "what the lines of all directions carry at this frame size"),
            columns::TESTER,
        ],
        rows: cells.iter().map(row).collect(),
    };
    let x = size_axis(lang, &sizes(&cells, |c| c.frame_bytes));
    let drawing = Drawing::Lines { x, y: reaching(lang, unit, &series), series };
    Some(Chart { title, legend, drawing, table })
}

/// Forwarding rates against frame size, with the theoretical maximum (RFC 2889 sections 5.1.5 to 5.4.5).
fn forwarding(lang: Language, plan: &DevicePlan, outcome: &DeviceFound) -> Option<Chart> {
    let mut cells: Vec<&Forwarding> = outcome.forwarding.iter().collect();
    cells.sort_by_key(|cell| cell.frame_bytes);
    let low = cells.first()?.frame_bytes;
    let high = cells.last()?.frame_bytes;
    let title = said!(lang, "device-charts-title-forwarding", "Forwarding rates by frame size");
    let point = |bytes: u32, frames: f64, name: &str, load: Option<&DeviceLoad>| Point {
        x: f64::from(bytes),
        y: frames,
        spread: None,
        label: said!(
            lang,
            "device-charts-point-forwarding",
            "{bytes}-byte frames: {name} {rate}{cpu}",
            bytes = bytes,
            name = name,
            rate = FRAMES.show(frames),
            cpu = with_cpu(lang, load)
        ),
    };
    let mut series = Vec::new();
    let mut legend = Vec::new();
    let mut line = Vec::new();
    for bytes in between(low, high) {
        line.extend(line_frames(plan, bytes).map(|frames| (f64::from(bytes), frames)));
    }
    if !line.is_empty() {
        legend.push(("limit", said!(lang, "device-charts-legend-line", "what the line carries")));
        let loads =
            cells.iter().filter_map(|cell| Some(point(cell.frame_bytes, cell.maximum_load_frames_per_s?, "MOL", None)));
        series.push(Series { class: "limit", line, points: loads.collect() });
    }
    legend.push((SERIES[0], said!(lang, "device-charts-legend-mfr", "the maximum forwarding rate (MFR)")));
    let highest = cells
        .iter()
        .map(|cell| point(cell.frame_bytes, cell.maximum_frames_per_s, "MFR", load_at_maximum_rate(outcome, cell)));
    series.push(Series { class: SERIES[0], line: Vec::new(), points: highest.collect() });
    legend.push((SERIES[1], said!(lang, "device-charts-legend-frmol", "at the maximum offered load (FRMOL)")));
    let at_maximum = cells.iter().filter_map(|cell| {
        let load = cell.points.first().and_then(|point| point.device_load.as_ref());
        Some(point(cell.frame_bytes, cell.at_maximum_load_frames_per_s?, "FRMOL", load))
    });
    series.push(Series { class: SERIES[1], line: Vec::new(), points: at_maximum.collect() });
    let mut rows = Vec::new();
    for cell in &cells {
        rows.push(vec![
            Some(cell.frame_bytes.to_string()),
            per_second(cell.maximum_frames_per_s).map(|rate| firmness::shown(rate, cell.firmness)),
            load_at_maximum_rate(outcome, cell).and_then(cpu),
            cell.at_maximum_load_frames_per_s.and_then(per_second),
            cell.points.first().and_then(|point| point.device_load.as_ref()).and_then(cpu),
            cell.maximum_load_frames_per_s.and_then(per_second),
        ]);
    }
    let columns = vec![columns::FRAME_B, columns::MFR, CPU_AT_MFR, columns::FRMOL, CPU_AT_MOL, columns::MOL];
    let table = Table { caption: title.clone(), columns, rows };
    let table = without_empty(without_empty(table, &CPU_AT_MFR), &CPU_AT_MOL);
    let x = size_axis(lang, &sizes(&cells, |cell| cell.frame_bytes));
    let drawing = Drawing::Lines { x, y: reaching(lang, &FRAMES, &series), series };
    Some(Chart { title, legend, drawing, table })
}

/// Returns the device's load at the maximum forwarding rate, which may be that of the throughput.
fn load_at_maximum_rate<'a>(outcome: &'a DeviceFound, cell: &'a Forwarding) -> Option<&'a DeviceLoad> {
    let is_highest = |point: &&ForwardingPoint| point.forwarded_frames_per_s >= cell.maximum_frames_per_s;
    if let Some(point) = cell.points.iter().find(is_highest) {
        return point.device_load.as_ref();
    }
    let throughput = outcome.throughput.iter().find(|throughput| throughput.frame_bytes == cell.frame_bytes)?;
    throughput.device_load.as_ref()
}

/// Returns what the label of a point adds about the device's CPU use, or nothing if that is unknown.
fn with_cpu(lang: Language, load: Option<&DeviceLoad>) -> String {
    let cpu = load.and_then(cpu);
    cpu.map(|cpu| said!(lang, "device-charts-point-with-cpu", ", device CPU {cpu}", cpu = cpu)).unwrap_or_default()
}

/// The sizes of a theoretical line: dense, and those of both ends.
fn between(low: u32, high: u32) -> Vec<u32> {
    const STEPS: i32 = 160;
    let from = f64::from(low);
    let ratio = f64::from(high) / f64::from(low);
    let mut sizes: Vec<u32> =
        (0..=STEPS).map(|step| (from * ratio.powf(f64::from(step) / f64::from(STEPS))).round() as u32).collect();
    sizes.dedup();
    sizes
}

/// From zero, or where the highest value would hide the lowest, logarithmic.
fn reaching(lang: Language, unit: &Unit, series: &[Series]) -> Axis {
    let drawn =
        |s: &Series| s.line.iter().map(|(_, value)| *value).chain(s.points.iter().map(|p| p.y)).collect::<Vec<_>>();
    let values = || series.iter().flat_map(drawn).filter(|value| *value > 0.0);
    let low = values().fold(f64::INFINITY, f64::min);
    let high = values().fold(0.0, f64::max);
    rate_axis(lang, lang.text(unit.axis), unit.unit, low, high)
}

fn sizes<T>(cells: &[T], of: fn(&T) -> u32) -> Vec<u64> {
    cells.iter().map(|cell| u64::from(of(cell))).collect()
}

/// The axis of frame sizes, which are in rising order.
fn size_axis(lang: Language, sizes: &[u64]) -> Axis {
    let first = sizes.first().copied().unwrap_or(64);
    let last = sizes.last().copied().unwrap_or(64);
    let low = first as f64 / 1.12;
    let high = last as f64 * 1.12;
    Axis {
        title: said!(lang, "device-charts-axis-frame-size", "frame, bytes, FCS counted (logarithmic)"),
        scale: Scale::Log(low, high),
        ticks: size_ticks(sizes, low, high),
    }
}

/// Loss against load, a line for each size. The axes are those that RFC 2544 section 26.3 demands: the load as a share of
/// what the line carries at the size, both from 0 to 100 %. Where the line is unknown, the load is in frames a second.
fn loss(lang: Language, plan: &DevicePlan, outcome: &DeviceFound) -> Option<Chart> {
    let curves: Vec<_> = SERIES.into_iter().zip(outcome.loss.iter().filter(|curve| !curve.points.is_empty())).collect();
    let highest =
        curves.iter().flat_map(|(_, curve)| &curve.points).map(|p| p.offered_frames_per_s).reduce(f64::max)?;
    let of_line = curves.iter().all(|(_, curve)| line_frames(plan, curve.frame_bytes).is_some());
    let tenths = || (0..=10).map(|tenth| (f64::from(tenth) * 10.0, (tenth * 10).to_string())).collect();
    let x = match of_line {
        true => Axis {
            title: said!(lang, "device-charts-axis-load-share", "offered load, % of what the line carries at the size"),
            scale: Scale::Linear(100.0),
            ticks: tenths(),
        },
        false => {
            Axis::rate(lang, said!(lang, "device-charts-axis-load", "offered load, frames a second"), "/s", highest)
        }
    };
    let y = Axis {
        title: said!(lang, "device-charts-axis-lost", "frames lost, % of those sent"),
        scale: Scale::Linear(100.0),
        ticks: tenths(),
    };
    let share = |bytes: u32, point: &LossPoint| Some(point.offered_frames_per_s / line_frames(plan, bytes)? * 100.0);
    let place = |bytes: u32, point: &LossPoint| {
        (share(bytes, point).unwrap_or(point.offered_frames_per_s), point.loss_ratio * 100.0)
    };
    let series: Vec<Series> = curves
        .iter()
        .map(|(class, curve)| {
            let bytes = curve.frame_bytes;
            let point = |point: &LossPoint| {
                let (x, y) = place(bytes, point);
                let lost = percent(point.loss_ratio).unwrap_or_else(|| "0 %".to_owned());
                let load = per_second(point.offered_frames_per_s).unwrap_or_else(|| "0/s".to_owned());
                let of_line = share(bytes, point).and_then(|share| percent(share / 100.0));
                let of_line = of_line
                    .map(|share| {
                        said!(lang, "device-charts-point-of-line", ", {share} of what the line carries", share = share)
                    })
                    .unwrap_or_default();
                let label = said!(
                    lang,
                    "device-charts-point-loss",
                    "{bytes}-byte frames at {load} frames/s{of_line}: {lost} lost",
                    bytes = grouped(bytes.into()),
                    load = load,
                    of_line = of_line,
                    lost = firmness::told(lang, lost, point.firmness)
                );
                Point { x, y, spread: None, label }
            };
            Series {
                class,
                line: curve.points.iter().map(|point| place(bytes, point)).collect(),
                points: curve.points.iter().map(point).collect(),
            }
        })
        .collect();
    let title = if outcome.loss.len() > SERIES.len() {
        said!(
            lang,
            "device-charts-title-loss-first",
            "Frame loss against load (the first {value} sizes; the table has all)",
            value = SERIES.len()
        )
    } else {
        said!(lang, "device-charts-title-loss", "Frame loss against load")
    };
    let row = |bytes: u32, point: &LossPoint| {
        vec![
            Some(bytes.to_string()),
            per_second(point.offered_frames_per_s).map(|load| firmness::shown(load, point.firmness)),
            share(bytes, point).and_then(|share| percent(share / 100.0)),
            percent(point.loss_ratio).map(|lost| firmness::shown(lost, point.firmness)),
        ]
    };
    let rows = outcome.loss.iter().flat_map(|c| c.points.iter().map(|point| row(c.frame_bytes, point)));
    let table = Table {
        caption: title.clone(),
        columns: vec![
            columns::FRAME_B,
            column!("column-device-charts-offered", "offered", "frames sent a second, all directions together"),
            column!("column-device-charts-of-line", "of line", "the same as a share of what the lines carry"),
            columns::DEVICE_LOST_2,
        ],
        rows: rows.collect(),
    };
    let name =
        |bytes: u32| said!(lang, "device-charts-legend-size", "{bytes}-byte frames", bytes = grouped(bytes.into()));
    let legend = curves.iter().map(|(class, curve)| (*class, name(curve.frame_bytes))).collect();
    Some(Chart { drawing: Drawing::Lines { x, y, series }, title, legend, table })
}

/// Latency against frame size: half, most and all of the frames (RFC 2544 section 26.2).
fn latency(lang: Language, outcome: &DeviceFound) -> Option<Chart> {
    const LONGEST: &str = "longest";
    type Percentile = (&'static str, fn(&Latency) -> u64);
    const PERCENTILES: [Percentile; 3] =
        [("p50", |took| took.p50), ("p99", |took| took.p99), (LONGEST, |took| took.max)];
    let mut cells: Vec<(&FrameLatency, &Latency)> =
        outcome.latency.iter().filter_map(|cell| Some((cell, cell.latency_ns.as_ref()?))).collect();
    cells.sort_by_key(|(cell, _)| cell.frame_bytes);
    let low = cells.iter().map(|(_, took)| took.p50.max(1)).min()?;
    let high = cells.iter().map(|(_, took)| took.max.max(1)).max()?;
    let title_of = |name: &str| {
        if name == LONGEST { said!(lang, "device-charts-legend-longest", "longest") } else { name.to_owned() }
    };
    let at = |cell: &FrameLatency| {
        firmness::shown(per_second(cell.frames_per_s).unwrap_or_else(|| "0".to_owned()), cell.firmness)
    };
    let series = SERIES.into_iter().zip(PERCENTILES).map(|(class, (name, of))| {
        let point = |(cell, took): &(&FrameLatency, &Latency)| {
            let x = f64::from(cell.frame_bytes);
            let y = of(took).max(1) as f64;
            let label = said!(
                lang,
                "device-charts-point-latency",
                "{bytes}-byte frames at {rate} frames/s: {percentile} {time}",
                bytes = cell.frame_bytes,
                rate = at(cell),
                percentile = title_of(name),
                time = nanos(of(took))
            );
            Point { x, y, spread: None, label }
        };
        // What lies between two sizes was not measured.
        Series { class, line: Vec::new(), points: cells.iter().map(point).collect() }
    });
    let series: Vec<Series> = series.collect();
    let title = said!(lang, "device-charts-title-latency", "Latency by frame size, port to port");
    let row = |(cell, took): &(&FrameLatency, &Latency)| {
        let times = PERCENTILES.map(|(_, of)| Some(nanos(of(took))));
        [Some(cell.frame_bytes.to_string()), Some(at(cell))].into_iter().chain(times).collect()
    };
    let table = Table {
        caption: title.clone(),
        columns: vec![columns::FRAME_B, columns::AT, columns::FRAME_P50, columns::FRAME_P99, columns::DEVICE_LONGEST],
        rows: cells.iter().map(row).collect(),
    };
    let legend = SERIES.into_iter().zip(PERCENTILES).map(|(class, (name, _))| (class, title_of(name))).collect();
    let x = size_axis(lang, &sizes(&cells, |(cell, _)| cell.frame_bytes));
    Some(Chart {
        drawing: Drawing::Lines { x, y: latency_axis(lang, low as f64, high as f64), series },
        title,
        legend,
        table,
    })
}

/// Buffer time against frame size, without what the device forwarded while the burst arrived (RFC 9004 section 5.4).
fn buffer(lang: Language, outcome: &DeviceFound) -> Option<Chart> {
    let cells_with_buffers = outcome.burst.iter().filter_map(|cell| Some((cell, cell.buffer.as_ref()?)));
    let mut cells: Vec<(&BackToBack, &BufferTime)> = cells_with_buffers
        .filter(|(_, buffer)| buffer.corrected_ns.is_finite() && buffer.corrected_ns >= 0.0)
        .collect();
    cells.sort_by_key(|(cell, _)| cell.frame_bytes);
    let highest = cells.iter().map(|(_, buffer)| buffer.corrected_ns).reduce(f64::max)?;
    let time = |buffer: &BufferTime| nanos(buffer.corrected_ns.round() as u64);
    let point = |(cell, buffer): &(&BackToBack, &BufferTime)| {
        let bytes = grouped(cell.frame_bytes.into());
        let buffered = frames(buffer.frames);
        let label = said!(
            lang,
            "device-charts-point-buffer",
            "{bytes}-byte frames: a buffer of {buffer}, {held} frames",
            bytes = bytes,
            buffer = time(buffer),
            held = buffered
        );
        Point { x: f64::from(cell.frame_bytes), y: buffer.corrected_ns, spread: None, label }
    };
    let points: Vec<Point> = cells.iter().map(point).collect();
    let row = |(cell, buffer): &(&BackToBack, &BufferTime)| {
        let burst = cell.frames.as_ref().map(|found| grouped(found.mean.round() as u64));
        vec![Some(cell.frame_bytes.to_string()), burst, Some(time(buffer)), Some(frames(buffer.frames))]
    };
    let title = said!(lang, "device-charts-title-buffer", "Buffer time by frame size");
    let table = Table {
        caption: title.clone(),
        columns: vec![
            columns::FRAME_B,
            columns::LONGEST_BURST,
            column!(
                "column-device-charts-buffer",
                "buffer",
                "time that the burst takes, without what the device forwards meanwhile (RFC 9004)"
            ),
            columns::IN_FRAMES,
        ],
        rows: cells.iter().map(row).collect(),
    };
    let legend = vec![(
        SERIES[0],
        said!(
            lang,
            "device-charts-legend-buffer",
            "buffer time by the longest burst, corrected (RFC 9004 section 5.4)"
        ),
    )];
    let x = size_axis(lang, &cells.iter().map(|(cell, _)| cell.frame_bytes.into()).collect::<Vec<_>>());
    let series = vec![Series { class: SERIES[0], line: Vec::new(), points }];
    Some(Chart {
        drawing: Drawing::Lines {
            x,
            y: Axis::time(said!(lang, "device-charts-axis-buffer", "buffer time"), highest),
            series,
        },
        title,
        legend,
        table,
    })
}

/// The device's CPU use at the throughput of each frame size.
fn load(lang: Language, outcome: &DeviceFound) -> Option<Chart> {
    type Share = (&'static Text, fn(&DeviceLoad) -> Option<f64>);
    const SHARES: [Share; 3] = [
        (text!("device-charts-legend-busiest-cpu", "busiest CPU"), |load| load.busiest_cpu),
        (text!("device-charts-legend-all-cpus", "all CPUs together"), |load| load.cpu),
        (text!("device-charts-legend-softirq", "of all CPUs in soft interrupts"), |load| load.softirq),
    ];
    let has_load = |cell: &&Throughput| cell.device_load.as_ref().is_some_and(|load| load.cpu.is_some());
    let mut cells: Vec<&Throughput> = outcome.throughput.iter().filter(has_load).collect();
    cells.sort_by_key(|cell| cell.frame_bytes);
    let source = &cells.first()?.device_load.as_ref()?.source;
    let title = said!(
        lang,
        "device-charts-title-cpu",
        "The device's CPU use at the throughput of each frame size ({source})",
        source = crate::figures::plain(source)
    );
    let figure = |cell: &Throughput, of: fn(&DeviceLoad) -> Option<f64>| {
        cell.device_load.as_ref().and_then(of).filter(|share| share.is_finite())
    };
    let drawn: Vec<(&'static str, Share)> = SERIES
        .into_iter()
        .zip(SHARES)
        .filter(|(_, (_, of))| cells.iter().any(|cell| figure(cell, *of).is_some()))
        .collect();
    let series: Vec<Series> = drawn
        .iter()
        .map(|(class, (words, of))| {
            let point = |cell: &&Throughput| {
                let share = figure(cell, *of)?;
                let bytes = grouped(cell.frame_bytes.into());
                let frames = per_second(cell.frames_per_s)?;
                let label = said!(
                    lang,
                    "device-charts-point-cpu",
                    "{bytes}-byte frames at {frames} frames/s: {words} {share} busy",
                    bytes = bytes,
                    frames = frames,
                    words = lang.text(words),
                    share = percent(share)?
                );
                Some(Point { x: f64::from(cell.frame_bytes), y: share * 100.0, spread: None, label })
            };
            Series { class, line: Vec::new(), points: cells.iter().filter_map(point).collect() }
        })
        .collect();
    let row = |cell: &&Throughput| {
        let shares = SHARES.map(|(_, of)| figure(cell, of).and_then(percent));
        [Some(cell.frame_bytes.to_string()), per_second(cell.frames_per_s)].into_iter().chain(shares).collect()
    };
    let table = Table {
        caption: title.clone(),
        columns: vec![
            columns::FRAME_B,
            column!("column-device-charts-frames-s", "frames/s", "the highest rate without loss"),
            column!("column-busiest-cpu", "busiest CPU", "busy share of the device's busiest CPU"),
            column!("column-all-cpus", "all CPUs", "busy share of all its CPUs together"),
            column!("column-soft-interrupts", "soft interrupts", "share of all its CPUs spent in soft interrupts"),
        ],
        rows: cells.iter().map(row).collect(),
    };
    let y = cpu_axis(lang);
    let legend = drawn.iter().map(|(class, (words, _))| (*class, lang.text(words))).collect();
    let x = size_axis(lang, &sizes(&cells, |cell| cell.frame_bytes));
    Some(Chart { drawing: Drawing::Lines { x, y, series }, title, legend, table })
}

/// The device's CPU use at each load of the forwarding tests, a line for each frame size: of its busiest CPU, or of all
/// together if the device does not report each.
fn load_by_offered(lang: Language, outcome: &DeviceFound) -> Option<Chart> {
    let points = outcome.forwarding.iter().flat_map(|cell| &cell.points);
    let loads = points.filter_map(|point| point.device_load.as_ref().filter(|load| load.cpu.is_some()));
    let loads: Vec<&DeviceLoad> = loads.collect();
    let source = crate::figures::plain(&loads.first()?.source);
    let share: fn(&DeviceLoad) -> Option<f64> =
        if loads.iter().all(|load| load.busiest_cpu.is_some()) { |load| load.busiest_cpu } else { |load| load.cpu };
    let title = said!(
        lang,
        "device-charts-title-cpu-by-load",
        "The device's CPU use by offered load ({source})",
        source = source
    );
    let mut series = Vec::new();
    let mut legend = Vec::new();
    let mut rows = Vec::new();
    let mut highest: f64 = 0.0;
    let mut classes = SERIES.into_iter();
    for cell in &outcome.forwarding {
        let mut drawn = Vec::new();
        for point in &cell.points {
            let Some(load) = &point.device_load else { continue };
            let Some(busy) = share(load).filter(|share| share.is_finite()) else { continue };
            let offered = per_second(point.offered_frames_per_s).unwrap_or_else(|| "0".to_owned());
            highest = highest.max(point.offered_frames_per_s);
            rows.push(vec![
                Some(cell.frame_bytes.to_string()),
                Some(firmness::shown(offered.clone(), point.firmness)),
                per_second(point.forwarded_frames_per_s),
                cpu(load),
            ]);
            let label = said!(
                lang,
                "device-charts-point-cpu-by-load",
                "{bytes}-byte frames at {frames} frames/s: {share} busy",
                bytes = grouped(cell.frame_bytes.into()),
                frames = offered,
                share = percent(busy).unwrap_or_default()
            );
            drawn.push(Point { x: point.offered_frames_per_s, y: busy * 100.0, spread: None, label });
        }
        if drawn.is_empty() {
            continue;
        }
        let Some(class) = classes.next() else { continue };
        let bytes = grouped(cell.frame_bytes.into());
        legend.push((class, said!(lang, "device-charts-legend-size", "{bytes}-byte frames", bytes = bytes)));
        series.push(Series { class, line: drawn.iter().map(|point| (point.x, point.y)).collect(), points: drawn });
    }
    let columns = vec![columns::FRAME_B, columns::OLOAD, columns::FORWARDING_RATE, columns::DEVICE_CPU];
    let table = Table::filled(title.clone(), columns, rows)?;
    let offered = said!(lang, "device-charts-axis-load", "offered load, frames a second");
    let x = Axis::rate(lang, offered, "/s", highest);
    Some(Chart { drawing: Drawing::Lines { x, y: cpu_axis(lang), series }, title, legend, table })
}

/// The axis of CPU use, 0 to 100 %.
fn cpu_axis(lang: Language) -> Axis {
    Axis {
        title: said!(lang, "device-charts-axis-cpu", "CPU time in use"),
        scale: Scale::Linear(100.0),
        ticks: (0..=5).map(|fifth| (f64::from(fifth) * 20.0, format!("{} %", fifth * 20))).collect(),
    }
}
