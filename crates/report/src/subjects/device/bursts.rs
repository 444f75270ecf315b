//! Bursts and the buffer they fill, recovery from overload, echo: tables and rows of a CSV file.

use super::{cpu, csv_load, without_empty};
use crate::blocks::columns;
use crate::blocks::table::Table;
use crate::column;
use crate::figures::{grouped, nanos, per_second};
use crate::language::Language;
use crate::said;
use crate::wording::firmness;
use linerate_model::{Caveat, DeviceFound};
use std::collections::BTreeMap;

/// Each test's table, where there is one.
pub(crate) fn tables(lang: Language, outcome: &DeviceFound) -> [Option<Table>; 3] {
    [burst(lang, outcome), recovery(lang, outcome), echo(lang, outcome)]
}

/// Columns of a CSV file beyond those of the steady rates.
pub(crate) const CSV_COLUMNS: [&str; 11] = [
    "goal",
    "burst_frames_mean",
    "burst_frames_min",
    "burst_frames_max",
    "burst_frames_deviation",
    "buffer_implied_ns",
    "buffer_corrected_ns",
    "buffer_frames",
    "overload_frames_per_s",
    "recovery_ns_mean",
    "unrecovered",
];

/// A mean of counts of frames.
pub(crate) fn frames(value: f64) -> String {
    if value < 100.0 { format!("{value:.1}") } else { grouped(value.round() as u64) }
}

fn burst(lang: Language, outcome: &DeviceFound) -> Option<Table> {
    let columns = vec![
        columns::FRAME,
        columns::LONGEST_BURST,
        column!("column-shortest", "shortest", "the shortest of the lengths found").ranked(3),
        column!("column-longest", "longest", "the longest of them").ranked(3),
        column!("column-deviation", "deviation", "their standard deviation, frames").ranked(2),
        column!("column-sent-at", "sent at", "frames a second within the bursts").ranked(1),
        column!("column-implied", "implied", "time that the burst takes to be sent (RFC 9004)").ranked(2),
        column!("column-buffer", "buffer", "the same without what the device forwarded meanwhile (RFC 9004)"),
        columns::IN_FRAMES.ranked(1),
    ];
    let row = |cell: &linerate_model::BackToBack| {
        let burst = cell.frames.as_ref();
        let buffer = cell.buffer.as_ref();
        vec![
            Some(cell.frame_bytes.to_string()),
            burst.map(|burst| firmness::shown(frames(burst.mean), cell.firmness)),
            burst.map(|burst| grouped(burst.min)),
            burst.map(|burst| grouped(burst.max)),
            burst.map(|burst| format!("{:.1}", burst.deviation)),
            cell.burst_frames_per_s.and_then(per_second),
            buffer.map(|buffer| nanos(buffer.implied_ns.round() as u64)),
            buffer.map(|buffer| firmness::shown(nanos(buffer.corrected_ns.round() as u64), cell.firmness)),
            buffer.map(|buffer| firmness::shown(frames(buffer.frames), cell.firmness)),
        ]
    };
    let caption = said!(
        lang,
        "bursts-caption-back-to-back",
        "Back-to-back frames and buffer time (RFC 2544 section 26.4, RFC 9004)"
    );
    Table::filled(caption, columns, outcome.burst.iter().map(row).collect())
}

fn recovery(lang: Language, outcome: &DeviceFound) -> Option<Table> {
    let columns = vec![
        columns::FRAME,
        column!("column-overload", "overload", "frames a second offered first, all directions together").ranked(1),
        column!("column-lost", "lost", "frames lost in the overload, all runs together").ranked(2),
        column!("column-then", "then", "frames a second offered afterwards").ranked(1),
        column!("column-recovery", "recovery", "from the fall of the load to the last loss, mean of the runs"),
        column!("column-bursts-longest", "longest", "the longest of the runs").ranked(2),
        column!("column-runs", "runs", "runs that recovered, of all").ranked(3),
    ];
    let row = |cell: &linerate_model::Recovery| {
        let runs = cell.values_ns.len() as u64 + u64::from(cell.unrecovered);
        vec![
            Some(cell.frame_bytes.to_string()),
            per_second(cell.overload_frames_per_s).filter(|_| runs > 0),
            (runs > 0).then(|| grouped(cell.overload_lost)),
            per_second(cell.reduced_frames_per_s).filter(|_| runs > 0),
            cell.mean_ns.map(|mean| firmness::shown(nanos(mean.round() as u64), cell.firmness)),
            cell.values_ns.iter().max().map(|longest| nanos(*longest)),
            (runs > 0).then(|| {
                said!(
                    lang,
                    "bursts-count-of-runs",
                    "{values_ns} of {runs}",
                    values_ns = cell.values_ns.len(),
                    runs = runs
                )
            }),
        ]
    };
    Table::filled(
        said!(lang, "bursts-caption-recovery", "Recovery from overload (RFC 2544 section 26.5)"),
        columns,
        outcome.recovery.iter().map(row).collect(),
    )
}

fn echo(lang: Language, outcome: &DeviceFound) -> Option<Table> {
    let columns = vec![
        column!("column-frame-target", "frame, target", "bytes of a frame, FCS counted, and who answers"),
        column!("column-answers-s", "answers/s", "the highest rate of echo requests that were all answered"),
        column!("column-loses-at", "loses at", "the lowest rate at which requests went unanswered"),
        columns::DEVICE_CPU.ranked(1),
        columns::LIMIT,
    ];
    let row = |cell: &linerate_model::EchoRate| {
        vec![
            Some(format!("{}, {}", cell.frame_bytes, cell.target)),
            per_second(cell.answers_per_s)
                .or_else(|| Some("0".to_owned()))
                .map(|rate| firmness::shown(rate, cell.firmness)),
            cell.lost_at_requests_per_s.and_then(per_second),
            cell.device_load.as_ref().and_then(cpu),
            Some(lang.text(cell.limit.text())),
        ]
    };
    let rows = outcome.echo.iter().map(row).collect();
    let table = Table::filled(said!(lang, "bursts-caption-echo", "Echo requests answered"), columns, rows)?;
    Some(without_empty(table, &columns::DEVICE_CPU))
}

/// The doubts of every size.
pub(crate) fn caveats(outcome: &DeviceFound) -> impl Iterator<Item = &Caveat> {
    let burst = outcome.burst.iter().flat_map(|cell| &cell.caveats);
    let recovery = outcome.recovery.iter().flat_map(|cell| &cell.caveats);
    burst.chain(recovery).chain(outcome.echo.iter().flat_map(|cell| &cell.caveats))
}

/// Rows of a CSV file, by column.
pub(crate) fn csv_rows(outcome: &DeviceFound) -> Vec<BTreeMap<&'static str, String>> {
    let head = |test: &str, frame_bytes: u32| {
        BTreeMap::from([("test", test.to_owned()), ("frame_bytes", frame_bytes.to_string())])
    };
    let mut rows = Vec::new();
    for cell in &outcome.burst {
        let mut row = head("burst", cell.frame_bytes);
        row.extend(cell.burst_frames_per_s.map(|rate| ("frames_per_s", rate.to_string())));
        if let Some(found) = &cell.frames {
            row.insert("burst_frames_mean", found.mean.to_string());
            row.insert("burst_frames_min", found.min.to_string());
            row.insert("burst_frames_max", found.max.to_string());
            row.insert("burst_frames_deviation", found.deviation.to_string());
        }
        if let Some(buffer) = &cell.buffer {
            row.insert("buffer_implied_ns", buffer.implied_ns.to_string());
            row.insert("buffer_corrected_ns", buffer.corrected_ns.to_string());
            row.insert("buffer_frames", buffer.frames.to_string());
        }
        row.extend(firmness::csv(cell.firmness));
        rows.push(row);
    }
    for cell in &outcome.recovery {
        let mut row = head("recovery", cell.frame_bytes);
        row.insert("frames_per_s", cell.reduced_frames_per_s.to_string());
        row.insert("overload_frames_per_s", cell.overload_frames_per_s.to_string());
        row.extend(cell.mean_ns.map(|mean| ("recovery_ns_mean", mean.to_string())));
        row.insert("unrecovered", cell.unrecovered.to_string());
        row.extend(firmness::csv(cell.firmness));
        rows.push(row);
    }
    for cell in &outcome.echo {
        let mut row = head("echo", cell.frame_bytes);
        row.insert("frames_per_s", cell.answers_per_s.to_string());
        row.insert("limit", cell.limit.to_string());
        row.extend(csv_load(cell.device_load.as_ref()));
        row.extend(firmness::csv(cell.firmness));
        rows.push(row);
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_model::{BackToBack, BufferTime, BurstLengths, Firmness, Recovery};

    fn outcome() -> DeviceFound {
        let frames = BurstLengths { mean: 224.0, min: 223, max: 225, deviation: 1.0, values: vec![223, 224, 225] };
        let buffer = BufferTime { implied_ns: 477_000.0, corrected_ns: 426_000.0, frames: 200.1 };
        let burst = BackToBack {
            verdict: None,
            frame_bytes: 512,
            throughput_frames_per_s: 50_000.0,
            burst_frames_per_s: Some(469_765.0),
            line_frames_per_s: Some(469_925.0),
            frames: Some(frames),
            firmness: Firmness::Firm,
            buffer: Some(buffer),
            caveats: Vec::new(),
        };
        let untried =
            BackToBack { frame_bytes: 1518, frames: None, buffer: None, burst_frames_per_s: None, ..burst.clone() };
        let recovery = Recovery {
            verdict: None,
            frame_bytes: 512,
            throughput_frames_per_s: 50_000.0,
            overload_frames_per_s: 55_000.0,
            firmness: Firmness::Firm,
            overload_lost: 4_986,
            reduced_frames_per_s: 25_000.0,
            values_ns: vec![20_000, 40_000],
            mean_ns: Some(30_000.0),
            unrecovered: 1,
            caveats: Vec::new(),
        };
        DeviceFound { burst: vec![burst, untried], recovery: vec![recovery], ..DeviceFound::default() }
    }

    #[test]
    fn tables_show_what_was_found_and_leave_out_what_was_not() {
        let [burst, recovery, echo] = tables(Language::English, &outcome());
        let rows = burst.map(|table| table.rows).unwrap_or_default();
        let shown: Vec<&str> = rows[0].iter().flatten().map(String::as_str).collect();
        assert_eq!(shown, ["512", "224", "223", "225", "1.0", "469,765", "477 us", "426 us", "200"]);
        assert_eq!(rows[1].iter().flatten().count(), 1, "{:?}", rows[1]);
        let rows = recovery.map(|table| table.rows).unwrap_or_default();
        let shown: Vec<&str> = rows[0].iter().flatten().map(String::as_str).collect();
        assert_eq!(shown[4..], ["30 us", "40 us", "2 of 3"]);
        assert!(echo.is_none());
    }

    #[test]
    fn rows_name_known_columns_only() {
        let known = ["test", "frame_bytes", "frames_per_s", "limit", "firm", "offered_share"];
        for row in csv_rows(&outcome()) {
            let strange = row.keys().find(|name| !CSV_COLUMNS.contains(name) && !known.contains(name));
            assert_eq!(strange, None, "{row:?}");
        }
        assert_eq!(csv_rows(&outcome())[0]["buffer_frames"], "200.1");
    }
}
