//! Tests of a device: tables, verdicts and caveats, the same for every form of report.

pub(crate) mod addresses;
pub(crate) mod bursts;
pub(crate) mod cells;
pub(crate) mod charts;
pub(crate) mod line_share;
pub(crate) mod neighbours;
pub(crate) mod switching;

use crate::blocks::columns;
use crate::blocks::section::{Block, Entry, Section};
use crate::blocks::table::{Column, Table};
use crate::column;
use crate::figures::{nanos, per_second, percent, rate};
use crate::language::Language;
use crate::said;
use crate::subjects::contract::Subject;
use crate::subjects::device::cells::{line_frames, named};
use crate::subjects::frames::{self, frames_sent};
use crate::subjects::lines;
use crate::subjects::live::Live;
use crate::wording::{firmness, sentence, verdict};
use linerate_model::{Caveat, DeviceFound, DeviceLoad, DevicePlan, DeviceTest, Firmness, Latency, Record, Verdict};

/// Tests of a device between two ports.
pub(crate) struct DeviceTests;

impl Subject for DeviceTests {
    fn live(&self) -> &'static Live {
        &frames::LIVE
    }

    fn in_common(&self, lang: Language, record: &Record, max_entries: usize) -> Vec<String> {
        in_common(lang, record, max_entries)
    }

    fn entries(&self, lang: Language, record: &Record, max_entries: usize) -> Vec<Entry> {
        entries(lang, record, max_entries)
    }

    fn not_firm(&self, lang: Language, record: &Record) -> Vec<String> {
        firmness::sentences(lang, &figures(lang, record))
    }

    fn section(&self, lang: Language, record: &Record) -> Option<Section> {
        section(lang, record)
    }

    fn verdicts<'a>(&self, lang: Language, record: &'a Record) -> Vec<(String, &'a Verdict)> {
        verdicts(lang, record)
    }

    fn caveats<'a>(&self, record: &'a Record) -> Vec<&'a Caveat> {
        caveats(record).collect()
    }

    fn method(&self, lang: Language, record: &Record) -> Vec<String> {
        record.plan.device().into_iter().flat_map(|plan| method(lang, plan)).collect()
    }

    fn csv_rows(&self, record: &Record) -> Vec<Vec<String>> {
        csv_rows(record)
    }
}

/// The charts, and each test's table.
fn section(lang: Language, record: &Record) -> Option<Section> {
    let tables = tables(lang, record).into_iter().map(Block::Table);
    let charts = charts::all(lang, record).into_iter().map(Block::chart);
    Section::answer("device", said!(lang, "device-section", "Device"), charts.chain(tables).collect())
}

/// Returns the throughput of each frame size and what limited it, or nothing if there are more sizes than `most`.
fn entries(lang: Language, record: &Record, most: usize) -> Vec<Entry> {
    let cells = record.device().map_or(&[][..], |(_, found)| &found.throughput);
    if cells.len() > most {
        return Vec::new();
    }
    let entry = |cell: &linerate_model::Throughput| {
        let share = cell.line_share.and_then(percent).map(|share| {
            said!(lang, "device-answer-share", "This is {share} of what the line carries.", share = share)
        });
        let verdict = sentence(&verdict::statement(lang, &cell.verdict));
        let figure = per_second(cell.frames_per_s).map(|rate| format!("{rate} /s"));
        Entry::new(
            said!(lang, "overview-frames", "{bytes}-byte frames", bytes = named(cell)),
            share.into_iter().chain([verdict]).collect(),
        )
        .with_figure(figure.map(|figure| firmness::shown(figure, cell.firmness)))
    };
    let switching = record.device().map(|(_, found)| switching::entries(lang, found)).unwrap_or_default();
    cells.iter().map(entry).chain(switching).collect()
}

/// Returns what the throughputs of more sizes have in common: the lowest and the highest share of the line, and how
/// many each limit limits.
fn in_common(lang: Language, record: &Record, most: usize) -> Vec<String> {
    let cells = record.device().map_or(&[][..], |(_, found)| &found.throughput);
    if cells.len() <= most {
        return Vec::new();
    }
    let shares = || cells.iter().filter_map(|cell| Some((cell.line_share.filter(|share| share.is_finite())?, cell)));
    let low = shares().min_by(|one, other| one.0.total_cmp(&other.0));
    let high = shares().max_by(|one, other| one.0.total_cmp(&other.0));
    let shown =
        |share: f64, cell: &linerate_model::Throughput| Some(firmness::told(lang, percent(share)?, cell.firmness));
    let range = low.zip(high).and_then(|((least, lowest), (greatest, highest))| {
        Some(said!(
            lang,
            "device-answer-range",
            "Throughput from {low} of the line ({lowest}-byte frames) to {high} ({highest}-byte frames).",
            low = shown(least, lowest)?,
            lowest = named(lowest),
            high = shown(greatest, highest)?,
            highest = named(highest)
        ))
    });
    range.into_iter().chain(lines::counted(lang, std::slice::from_ref(record))).collect()
}

/// Every figure that can be other than firm, by name.
fn figures(lang: Language, record: &Record) -> Vec<(String, Firmness)> {
    let Some((_, found)) = record.device() else { return Vec::new() };
    let of = |name: String, firmness| (name, firmness);
    let rate =
        |name: String, firmness| of(said!(lang, "firmness-throughput", "rate at {name} bytes", name = name), firmness);
    let throughput = found.throughput.iter().map(|cell| rate(named(cell), cell.firmness));
    let echo = found.echo.iter().map(|cell| rate(cell.frame_bytes.to_string(), cell.firmness));
    let latency = found.latency.iter();
    let latency = latency.map(|cell| {
        of(
            said!(lang, "firmness-latency", "latency at {frame_bytes} bytes", frame_bytes = cell.frame_bytes),
            cell.firmness,
        )
    });
    let burst = found.burst.iter().filter(|cell| cell.frames.is_some());
    let burst = burst.map(|cell| {
        of(
            said!(lang, "firmness-bursts", "bursts of {frame_bytes} bytes", frame_bytes = cell.frame_bytes),
            cell.firmness,
        )
    });
    let recovery = found.recovery.iter().filter(|cell| cell.verdict.is_some());
    let recovery = recovery.map(|cell| {
        of(
            said!(lang, "firmness-recovery", "recovery at {frame_bytes} bytes", frame_bytes = cell.frame_bytes),
            cell.firmness,
        )
    });
    let loss = found.loss.iter().map(|curve| {
        let all = curve.points.iter().fold(Firmness::Firm, |all, point| all.and(point.firmness));
        of(said!(lang, "firmness-loss", "loss at {frame_bytes} bytes", frame_bytes = curve.frame_bytes), all)
    });
    let addresses = found.addresses.iter().map(|table| {
        let learning = table.learning.map_or(Firmness::Firm, |learning| learning.firmness);
        of(said!(lang, "firmness-addresses", "addresses"), table.firmness.and(learning))
    });
    let hosts = found.hosts.iter().map(|table| {
        let past = table.past.iter().fold(Firmness::Firm, |all, past| all.and(past.firmness));
        of(said!(lang, "firmness-hosts", "hosts"), table.firmness.and(past))
    });
    let forwarding = found.forwarding.iter().map(|cell| {
        of(
            said!(
                lang,
                "firmness-forwarding",
                "forwarding rates at {frame_bytes} bytes",
                frame_bytes = cell.frame_bytes
            ),
            cell.firmness,
        )
    });
    let congestion = found.congestion.iter().map(|cell| {
        of(
            said!(lang, "firmness-congestion", "congestion at {frame_bytes} bytes", frame_bytes = cell.frame_bytes),
            cell.firmness,
        )
    });
    let steady = throughput.chain(echo).chain(latency).chain(loss).chain(forwarding).chain(congestion);
    steady.chain(burst).chain(recovery).chain(addresses).chain(hosts).collect()
}

fn tables(lang: Language, record: &Record) -> Vec<Table> {
    let Some((plan, outcome)) = record.device() else { return Vec::new() };
    let steady =
        [throughput(lang, record, outcome), directions(lang, outcome), latency(lang, outcome), loss(lang, outcome)];
    let bursts = bursts::tables(lang, outcome);
    let mut all = switching::tables(lang, plan, outcome);
    all.extend(steady.into_iter().chain(bursts).flatten());
    all.extend(addresses::table(lang, outcome));
    all.extend(neighbours::tables(lang, outcome));
    all
}

fn throughput(lang: Language, record: &Record, outcome: &DeviceFound) -> Option<Table> {
    let calibrates = record.plan.device().is_some_and(|plan| plan.test == DeviceTest::Calibrate);
    let caption = if calibrates {
        said!(lang, "device-caption-tester-limit", "Tester limit")
    } else {
        said!(lang, "device-caption-throughput", "Throughput (RFC 2544 section 26.1)")
    };
    let columns = vec![
        column!(
            "column-device-frame",
            "frame",
            "bytes of a frame, FCS counted; before them the search goal, if one was named (RFC 9971)"
        ),
        column!(
            "column-frames-s",
            "frames/s",
            "the highest rate at which no frame was lost, all directions together; of a goal, what was forwarded at its \
             bound"
        ),
        column!("column-bits-s", "bits/s", "the same in bits of frames, FCS counted, preamble and gap not").ranked(3),
        column!(
            "column-line",
            "line",
            "what the lines of all directions carry at this frame size, frames/s (RFC 2544 appendix B)"
        )
        .ranked(6),
        columns::OF_LINE.ranked(1),
        columns::OF_TESTER.ranked(4),
        columns::DEVICE_LOSES_AT.ranked(5),
        columns::DEVICE_OFFERED_SHARE,
        columns::DEVICE_CPU.ranked(2),
        columns::LIMIT,
    ];
    let line = |bytes: u32| record.plan.device().and_then(|plan| line_frames(plan, bytes));
    let shown = |cell: &linerate_model::Throughput, figure| firmness::shown(figure, cell.firmness);
    let row = |cell: &linerate_model::Throughput| {
        vec![
            Some(named(cell)),
            per_second(cell.frames_per_s).or_else(|| Some("0".to_owned())).map(|rate| shown(cell, rate)),
            rate(cell.bits_per_s, "bit/s").map(|rate| shown(cell, rate)),
            line(cell.frame_bytes).and_then(per_second),
            cell.line_share.and_then(percent).map(|share| shown(cell, share)),
            cell.tester_limit.as_ref().and_then(|tester_limit| percent(tester_limit.share)),
            cell.lost_at_frames_per_s.and_then(per_second),
            firmness::offered(cell.firmness),
            cell.device_load.as_ref().and_then(cpu),
            Some(lang.text(cell.limit.text())),
        ]
    };
    let rows: Vec<Vec<Option<String>>> = outcome.throughput.iter().map(row).collect();
    let table = Table::filled(caption, columns, rows)?;
    Some(without_empty(without_empty(table, &columns::DEVICE_CPU), &columns::DEVICE_OFFERED_SHARE))
}

/// The busy share of all CPUs, and of the busiest.
fn cpu(load: &DeviceLoad) -> Option<String> {
    let all = percent(load.cpu?)?;
    Some(match load.busiest_cpu.and_then(percent) {
        Some(busiest) => format!("{all}, {busiest}"),
        None => all,
    })
}

/// Returns the table without this column if nothing is in it.
fn without_empty(mut table: Table, empty: &Column) -> Table {
    let at = table.columns.iter().position(|column| column.is(empty));
    if let Some(at) = at.filter(|at| table.rows.iter().all(|row| row[*at].is_none())) {
        table.columns.remove(at);
        table.rows.iter_mut().for_each(|row| drop(row.remove(at)));
    }
    table
}

fn directions(lang: Language, outcome: &DeviceFound) -> Option<Table> {
    let several = outcome.throughput.iter().any(|cell| cell.directions.len() > 1);
    let columns = vec![
        column!("column-frame-way", "frame, way", "bytes of a frame, and from which port to which"),
        column!("column-device-frames-s", "frames/s", "frames received a second in the trial that decided"),
        columns::SENT,
        column!("column-received", "received", "frames received, duplicates left out"),
        columns::REORDERED,
    ];
    let rows = outcome.throughput.iter().flat_map(|cell| {
        cell.directions.iter().map(|way| {
            vec![
                Some(said!(
                    lang,
                    "device-direction",
                    "{cell}, {from} to {to}",
                    cell = named(cell),
                    from = way.from,
                    to = way.to
                )),
                per_second(way.frames_per_s),
                Some(crate::figures::grouped(way.sent)),
                Some(crate::figures::grouped(way.received)),
                Some(crate::figures::grouped(way.reordered)),
            ]
        })
    });
    Table::filled(said!(lang, "device-caption-directions", "Each direction on its own"), columns, rows.collect())
        .filter(|_| several)
}

fn latency(lang: Language, outcome: &DeviceFound) -> Option<Table> {
    let columns = vec![
        columns::FRAME,
        columns::AT,
        columns::DEVICE_SHORTEST.ranked(3),
        columns::FRAME_P50,
        columns::FRAME_P99.ranked(1),
        columns::FRAME_P999.ranked(2),
        columns::DEVICE_LONGEST,
        column!("column-device-lost", "lost", "frames that did not arrive").ranked(1),
        columns::DEVICE_CPU.ranked(2),
    ];
    let row = |cell: &linerate_model::FrameLatency| {
        let time = |of: fn(&Latency) -> u64| cell.latency_ns.as_ref().map(|took| nanos(of(took)));
        vec![
            Some(cell.frame_bytes.to_string()),
            per_second(cell.frames_per_s).map(|rate| firmness::shown(rate, cell.firmness)),
            time(|took| took.min),
            time(|took| took.p50),
            time(|took| took.p99),
            time(|took| took.p999),
            time(|took| took.max),
            Some(cell.lost.to_string()),
            cell.device_load.as_ref().and_then(cpu),
        ]
    };
    let table = Table::filled(
        said!(lang, "device-caption-latency", "Latency, port to port"),
        columns,
        outcome.latency.iter().map(row).collect(),
    )?;
    Some(without_empty(table, &columns::DEVICE_CPU))
}

fn loss(lang: Language, outcome: &DeviceFound) -> Option<Table> {
    let columns = vec![
        column!(
            "column-frame-load",
            "frame, load",
            "bytes of a frame, and frames sent a second, all directions together"
        ),
        columns::SENT,
        column!("column-device-received", "received", "frames received"),
        columns::DEVICE_LOST_2,
        columns::DEVICE_CPU,
    ];
    let rows = outcome.loss.iter().flat_map(|curve| {
        curve.points.iter().map(|point| {
            let load = per_second(point.offered_frames_per_s).unwrap_or_else(|| "0/s".to_owned());
            vec![
                Some(format!("{}, {}", curve.frame_bytes, firmness::shown(load, point.firmness))),
                Some(crate::figures::grouped(point.sent)),
                Some(crate::figures::grouped(point.received)),
                percent(point.loss_ratio).map(|lost| firmness::shown(lost, point.firmness)),
                point.device_load.as_ref().and_then(cpu),
            ]
        })
    });
    let table = Table::filled(
        said!(lang, "device-caption-loss", "Frame loss against load (RFC 2544 section 26.3)"),
        columns,
        rows.collect(),
    )?;
    Some(without_empty(table, &columns::DEVICE_CPU))
}

/// Each result, and what limited it.
pub(crate) fn verdicts<'a>(lang: Language, record: &'a Record) -> Vec<(String, &'a Verdict)> {
    let Some((_, outcome)) = record.device() else { return Vec::new() };
    let throughput = outcome.throughput.iter().map(|cell| (named(cell), &cell.verdict));
    let echo = outcome.echo.iter().map(|cell| (cell.frame_bytes.to_string(), &cell.verdict));
    let mut all: Vec<(String, &Verdict)> = throughput
        .chain(echo)
        .map(|(name, verdict)| (said!(lang, "device-verdict-throughput", "{name} bytes", name = name), verdict))
        .collect();
    let mut add =
        |name: String, verdict: &'a Option<Verdict>| all.extend(verdict.as_ref().map(|verdict| (name, verdict)));
    outcome.latency.iter().for_each(|cell| {
        add(
            said!(lang, "device-verdict-latency", "latency, {frame_bytes} bytes", frame_bytes = cell.frame_bytes),
            &cell.verdict,
        )
    });
    outcome.loss.iter().for_each(|curve| {
        add(
            said!(lang, "device-verdict-loss", "highest load, {frame_bytes} bytes", frame_bytes = curve.frame_bytes),
            &curve.verdict,
        )
    });
    outcome.burst.iter().for_each(|cell| {
        add(
            said!(lang, "device-verdict-bursts", "bursts, {frame_bytes} bytes", frame_bytes = cell.frame_bytes),
            &cell.verdict,
        )
    });
    outcome.recovery.iter().for_each(|cell| {
        add(
            said!(lang, "device-verdict-recovery", "recovery, {frame_bytes} bytes", frame_bytes = cell.frame_bytes),
            &cell.verdict,
        )
    });
    outcome.addresses.iter().for_each(|table| add(String::from("addresses"), &table.verdict));
    outcome.hosts.iter().for_each(|table| add(String::from("hosts"), &table.verdict));
    all.extend(switching::verdicts(lang, outcome));
    all
}

/// The doubts of every size; the same one may come several times.
fn caveats(record: &Record) -> impl Iterator<Item = &Caveat> {
    record.device().into_iter().flat_map(|(_, outcome)| {
        let throughput = outcome.throughput.iter().flat_map(|cell| &cell.caveats);
        let latency = outcome.latency.iter().flat_map(|cell| &cell.caveats);
        let loss = outcome.loss.iter().flat_map(|curve| &curve.caveats);
        let addresses = outcome.addresses.iter().flat_map(|table| &table.caveats);
        let hosts = outcome.hosts.iter().flat_map(|table| &table.caveats);
        let steady = throughput.chain(latency).chain(loss).chain(bursts::caveats(outcome));
        steady.chain(addresses).chain(hosts).chain(switching::caveats(outcome))
    })
}

/// Returns the method in sentences: what RFC 2544 section 26 requires next to the figures.
fn method(lang: Language, plan: &DevicePlan) -> Vec<String> {
    let mut all = Vec::new();
    if let Some(pair) = plan.directions.first() {
        all.push(frames_sent(lang, &pair.headers, plan.line, plan.directions.len() > 1));
    }
    all.push(said!(
        lang,
        "device-method-trials", "The trials of a search took {search_time}, those that decide {final_time}; stragglers were waited for {settle} \
         after each.",
        search_time = plan.search_time,
        final_time = plan.final_time,
        settle = plan.settle
    ));
    all.extend(neighbours::method(lang, &plan.test));
    all.push(said!(lang, "device-method-figures", "Throughput is the highest rate at which no frame was lost (RFC 1242 section 3.17); frames and bits count the \
         FCS, not preamble and gap. Latency runs from the moment a frame is given to the sending port to the moment the \
         receiving port has it: the device's store-and-forward latency (RFC 1242 section 3.8) and what the two ports \
         add."));
    all
}

/// The columns of the CSV file.
const COLUMNS: [&str; 20] = [
    "test",
    "frame_bytes",
    "frames_per_s",
    "bits_per_s",
    "line_share",
    "limit",
    "latency_ns_p50",
    "latency_ns_p99",
    "latency_ns_max",
    "sent",
    "received",
    "loss_ratio",
    "line_frames_per_s",
    "tester_frames_per_s",
    "lost_at_frames_per_s",
    "device_cpu",
    "device_busiest_cpu",
    "device_softirq",
    "firm",
    "offered_share",
];

/// Every test's columns; those of other tests are empty.
fn columns() -> impl Iterator<Item = &'static str> {
    COLUMNS
        .into_iter()
        .chain(bursts::CSV_COLUMNS)
        .chain(addresses::CSV_COLUMNS)
        .chain(neighbours::CSV_COLUMNS)
        .chain(switching::CSV_COLUMNS)
}

/// A row from the columns it has.
fn csv_row(cells: Vec<(&str, String)>) -> Vec<String> {
    let cell = |name: &&str| cells.iter().find(|(known, _)| known == name).map(|(_, text)| text.clone());
    columns().map(|name| cell(&name).unwrap_or_default()).collect()
}

fn csv_number(value: Option<f64>) -> String {
    value.filter(|value| value.is_finite()).map(|value| value.to_string()).unwrap_or_default()
}

fn csv_load(load: Option<&DeviceLoad>) -> [(&'static str, String); 3] {
    [
        ("device_cpu", csv_number(load.and_then(|load| load.cpu))),
        ("device_busiest_cpu", csv_number(load.and_then(|load| load.busiest_cpu))),
        ("device_softirq", csv_number(load.and_then(|load| load.softirq))),
    ]
}

/// Rows of a CSV file: one for each size of each test, and for each load of a loss curve.
fn csv_rows(record: &Record) -> Vec<Vec<String>> {
    let Some((_, outcome)) = record.device() else { return Vec::new() };
    let line = |bytes: u32| csv_number(record.plan.device().and_then(|plan| line_frames(plan, bytes)));
    let mut rows = vec![columns().map(str::to_owned).collect::<Vec<_>>()];
    for cell in &outcome.throughput {
        let mut row = vec![
            ("test", "throughput".to_owned()),
            ("frame_bytes", cell.frame_bytes.to_string()),
            ("frames_per_s", csv_number(Some(cell.frames_per_s))),
            ("bits_per_s", csv_number(Some(cell.bits_per_s))),
            ("line_share", csv_number(cell.line_share)),
            ("limit", cell.limit.to_string()),
            ("line_frames_per_s", line(cell.frame_bytes)),
            (
                "tester_frames_per_s",
                csv_number(cell.tester_limit.as_ref().map(|tester_limit| tester_limit.frames_per_s)),
            ),
            ("lost_at_frames_per_s", csv_number(cell.lost_at_frames_per_s)),
            ("goal", cell.goal.as_ref().map(|goal| goal.name.name().to_owned()).unwrap_or_default()),
        ];
        row.extend(csv_load(cell.device_load.as_ref()));
        row.extend(firmness::csv(cell.firmness));
        rows.push(csv_row(row));
    }
    for cell in &outcome.latency {
        let time =
            |of: fn(&Latency) -> u64| cell.latency_ns.as_ref().map(|took| of(took).to_string()).unwrap_or_default();
        let mut row = vec![
            ("test", "latency".to_owned()),
            ("frame_bytes", cell.frame_bytes.to_string()),
            ("frames_per_s", csv_number(Some(cell.frames_per_s))),
            ("latency_ns_p50", time(|took| took.p50)),
            ("latency_ns_p99", time(|took| took.p99)),
            ("latency_ns_max", time(|took| took.max)),
            ("line_frames_per_s", line(cell.frame_bytes)),
        ];
        row.extend(csv_load(cell.device_load.as_ref()));
        row.extend(firmness::csv(cell.firmness));
        rows.push(csv_row(row));
    }
    for curve in &outcome.loss {
        for point in &curve.points {
            let mut row = vec![
                ("test", "loss".to_owned()),
                ("frame_bytes", curve.frame_bytes.to_string()),
                ("frames_per_s", csv_number(Some(point.offered_frames_per_s))),
                ("sent", point.sent.to_string()),
                ("received", point.received.to_string()),
                ("loss_ratio", csv_number(Some(point.loss_ratio))),
                ("line_frames_per_s", line(curve.frame_bytes)),
            ];
            row.extend(csv_load(point.device_load.as_ref()));
            row.extend(firmness::csv(point.firmness));
            rows.push(csv_row(row));
        }
    }
    let others = bursts::csv_rows(outcome).into_iter().chain(addresses::csv_rows(outcome));
    let others = others.chain(neighbours::csv_rows(outcome)).chain(switching::csv_rows(outcome));
    rows.extend(others.map(|row| csv_row(row.into_iter().collect())));
    rows
}
