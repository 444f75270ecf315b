//! What was found about a device: tables, verdicts and doubts, the same for every form of report.

use crate::bursts;
use crate::figures::{nanos, per_second, percent, rate};
use crate::frames;
use crate::sentences;
use crate::tables::{Column, Table};
use linerate_model::{Caveat, DeviceOutcome, DeviceTest, Record};

/// Each test's table.
pub(crate) fn tables(record: &Record) -> Vec<Table> {
    let Some(outcome) = &record.outcome else { return Vec::new() };
    let steady = [throughput(record, outcome), directions(outcome), latency(outcome), loss(outcome)];
    let bursts = bursts::tables(outcome);
    steady.into_iter().chain(bursts).flatten().chain(frames::tables(outcome)).collect()
}

fn throughput(record: &Record, outcome: &DeviceOutcome) -> Option<Table> {
    let calibrates = record.plan.device.as_ref().is_some_and(|plan| plan.test == DeviceTest::Calibrate);
    let caption = if calibrates { "The tester's own ceiling" } else { "Throughput (RFC 2544 section 26.1)" };
    let ranked = |title, meaning, rank| Column { rank, ..Column::new(title, meaning) };
    let columns = vec![
        Column::new("frame", "bytes of a frame, FCS counted; before them the search goal, if one was named (RFC 9971)"),
        Column::new(
            "frames/s",
            "the highest rate at which no frame was lost, all directions together; of a goal, what was forwarded at its bound",
        ),
        ranked("bits/s", "the same in bits of frames, FCS counted, preamble and gap not", 2),
        ranked("of line", "share of what the lines of all directions carry", 1),
        ranked("of tester", "share of what the tester reaches without the device", 3),
        ranked("loses at", "the lowest rate at which frames were lost", 4),
        Column::new("limit", "what limited the rate"),
    ];
    let row = |cell: &linerate_model::Throughput| {
        vec![
            Some(named(cell)),
            per_second(cell.frames_per_s).or_else(|| Some("0".to_owned())),
            rate(cell.bits_per_s, "bit/s"),
            cell.line_share.and_then(percent),
            cell.ceiling.as_ref().and_then(|ceiling| percent(ceiling.share)),
            cell.lost_at_frames_per_s.and_then(per_second),
            Some(cell.limit.to_string()),
        ]
    };
    table(caption, columns, outcome.throughput.iter().map(row).collect())
}

/// The size, and the goal if there is one.
fn named(cell: &linerate_model::Throughput) -> String {
    match &cell.goal {
        Some(goal) => format!("{} {}", goal.name.name(), cell.frame_bytes),
        None => cell.frame_bytes.to_string(),
    }
}

fn directions(outcome: &DeviceOutcome) -> Option<Table> {
    let several = outcome.throughput.iter().any(|cell| cell.directions.len() > 1);
    let columns = vec![
        Column::new("frame, way", "bytes of a frame, and from which port to which"),
        Column::new("frames/s", "frames received a second in the trial that decided"),
        Column::new("sent", "frames sent"),
        Column::new("received", "frames received, duplicates left out"),
        Column::new("reordered", "frames that arrived after one with a higher number"),
    ];
    let rows = outcome.throughput.iter().flat_map(|cell| {
        cell.directions.iter().map(|way| {
            vec![
                Some(format!("{}, {} to {}", named(cell), way.from, way.to)),
                per_second(way.frames_per_s),
                Some(crate::figures::grouped(way.sent)),
                Some(crate::figures::grouped(way.received)),
                Some(crate::figures::grouped(way.reordered)),
            ]
        })
    });
    table("Each direction on its own", columns, rows.collect()).filter(|_| several)
}

fn latency(outcome: &DeviceOutcome) -> Option<Table> {
    let ranked = |title, meaning, rank| Column { rank, ..Column::new(title, meaning) };
    let columns = vec![
        Column::new("frame", "bytes of a frame, FCS counted"),
        Column::new("at", "frames sent a second, all directions together"),
        ranked("shortest", "the quickest frame", 3),
        Column::new("half in", "half of the frames took no longer"),
        ranked("99 % in", "99 % took no longer", 1),
        ranked("99.9 % in", "99.9 % took no longer", 2),
        Column::new("longest", "the slowest frame"),
        ranked("lost", "frames that did not arrive", 1),
    ];
    let row = |cell: &linerate_model::FrameLatency| {
        let took = &cell.latency_ns;
        vec![
            Some(cell.frame_bytes.to_string()),
            per_second(cell.frames_per_s),
            Some(nanos(took.min)),
            Some(nanos(took.p50)),
            Some(nanos(took.p99)),
            Some(nanos(took.p999)),
            Some(nanos(took.max)),
            Some(cell.lost.to_string()),
        ]
    };
    table("Latency, port to port", columns, outcome.latency.iter().map(row).collect())
}

fn loss(outcome: &DeviceOutcome) -> Option<Table> {
    let columns = vec![
        Column::new("frame, load", "bytes of a frame, and frames sent a second, all directions together"),
        Column::new("sent", "frames sent"),
        Column::new("received", "frames received"),
        Column::new("lost", "share of the frames sent that did not arrive"),
    ];
    let rows = outcome.loss.iter().flat_map(|curve| {
        curve.points.iter().map(|point| {
            vec![
                Some(format!(
                    "{}, {}",
                    curve.frame_bytes,
                    per_second(point.offered_frames_per_s).unwrap_or_else(|| "0/s".to_owned())
                )),
                Some(crate::figures::grouped(point.sent)),
                Some(crate::figures::grouped(point.received)),
                percent(point.loss_ratio),
            ]
        })
    });
    table("Frame loss against load (RFC 2544 section 26.3)", columns, rows.collect())
}

pub(crate) fn table(caption: &str, columns: Vec<Column>, rows: Vec<Vec<Option<String>>>) -> Option<Table> {
    (!rows.is_empty()).then(|| Table { caption: caption.to_owned(), columns, rows })
}

/// Each size, and what limited it.
pub(crate) fn verdicts(record: &Record) -> Vec<(String, String)> {
    let Some(outcome) = &record.outcome else { return Vec::new() };
    let throughput = outcome.throughput.iter().map(|cell| (named(cell), &cell.verdict));
    let echo = outcome.echo.iter().map(|cell| (cell.frame_bytes.to_string(), &cell.verdict));
    throughput.chain(echo).map(|(name, verdict)| (format!("{name} bytes"), sentences::judgement(verdict))).collect()
}

/// The doubts of every size; the same one may come several times.
pub(crate) fn caveats(record: &Record) -> impl Iterator<Item = &Caveat> {
    record.outcome.iter().flat_map(|outcome| {
        let throughput = outcome.throughput.iter().flat_map(|cell| &cell.caveats);
        let latency = outcome.latency.iter().flat_map(|cell| &cell.caveats);
        let loss = outcome.loss.iter().flat_map(|curve| &curve.caveats);
        let frames = outcome.frames.iter().flat_map(|flow| &flow.caveats);
        let addresses = outcome.addresses.iter().flat_map(|table| &table.caveats);
        throughput.chain(latency).chain(loss).chain(bursts::caveats(outcome)).chain(frames).chain(addresses)
    })
}

/// Rows of a CSV file: one for each size of each test, and for each load of a loss curve.
pub(crate) fn csv_rows(record: &Record) -> Vec<Vec<String>> {
    let Some(outcome) = &record.outcome else { return Vec::new() };
    let head = [
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
    ];
    let head: Vec<&str> = head.into_iter().chain(bursts::CSV_COLUMNS).chain(frames::CSV_COLUMNS).collect();
    let mut rows = vec![head.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()];
    let none = String::new;
    for cell in &outcome.throughput {
        let share = cell.line_share.map(|share| share.to_string()).unwrap_or_default();
        rows.push(vec![
            "throughput".into(),
            cell.frame_bytes.to_string(),
            cell.frames_per_s.to_string(),
            cell.bits_per_s.to_string(),
            share,
            cell.limit.to_string(),
            none(),
            none(),
            none(),
            none(),
            none(),
            none(),
            cell.goal.as_ref().map(|goal| goal.name.name().to_owned()).unwrap_or_default(),
        ]);
    }
    for cell in &outcome.latency {
        let took = &cell.latency_ns;
        rows.push(vec![
            "latency".into(),
            cell.frame_bytes.to_string(),
            cell.frames_per_s.to_string(),
            none(),
            none(),
            none(),
            took.p50.to_string(),
            took.p99.to_string(),
            took.max.to_string(),
            none(),
            none(),
            none(),
        ]);
    }
    for curve in &outcome.loss {
        for point in &curve.points {
            rows.push(vec![
                "loss".into(),
                curve.frame_bytes.to_string(),
                point.offered_frames_per_s.to_string(),
                none(),
                none(),
                none(),
                none(),
                none(),
                none(),
                point.sent.to_string(),
                point.received.to_string(),
                point.loss_ratio.to_string(),
            ]);
        }
    }
    for row in bursts::csv_rows(outcome).into_iter().chain(frames::csv_rows(outcome)) {
        rows.push(head.iter().map(|name| row.get(name).cloned().unwrap_or_default()).collect());
    }
    // Columns of other tests are empty.
    rows.iter_mut().for_each(|row: &mut Vec<String>| row.resize(head.len(), String::new()));
    rows
}
