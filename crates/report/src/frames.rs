//! Plain generating and address tables, the same for every form of report.

use crate::device::table;
use crate::figures::{grouped, nanos, per_second, plain, rate};
use crate::language::Language;
use crate::said;
use crate::tables::{Column, Table};
use linerate_model::{AddressTable, DeviceOutcome, FlowRate, FrameFlow};
use std::collections::BTreeMap;

/// Their tables.
pub(crate) fn tables(lang: Language, outcome: &DeviceOutcome) -> impl Iterator<Item = Table> {
    [counts(lang, outcome), rates(lang, outcome), latency(lang, outcome), addresses(lang, outcome)]
        .into_iter()
        .flatten()
}

/// `64, p0 to p1`; of a mix all its sizes.
fn way(lang: Language, flow: &FrameFlow) -> String {
    let size = flow.mix.as_ref().map_or_else(|| flow.frame_bytes.to_string(), ToString::to_string);
    said!(lang, "frames-to", size = size, from = plain(&flow.from), to = plain(&flow.to))
}

const WAY: Column = Column::new("column-frames-frame-way");

fn counts(lang: Language, outcome: &DeviceOutcome) -> Option<Table> {
    let columns = vec![
        WAY,
        Column::new("column-frames-sent"),
        Column::new("column-frames-received"),
        Column::new("column-frames-lost"),
        Column::new("column-duplicates").ranked(2),
        Column::new("column-reordered").ranked(1),
        Column::new("column-flooded").ranked(3),
    ];
    let row = |flow: &FrameFlow| {
        // A port's counter knows no single frame.
        let told = |count: u64| (!flow.by_port_counters).then(|| grouped(count));
        vec![
            Some(way(lang, flow)),
            Some(grouped(flow.sent)),
            Some(grouped(flow.received)),
            Some(grouped(flow.lost)),
            told(flow.duplicates),
            told(flow.reordered),
            told(flow.flooded),
        ]
    };
    table(said!(lang, "frames-frames"), columns, outcome.frames.iter().map(row).collect())
}

fn rates(lang: Language, outcome: &DeviceOutcome) -> Option<Table> {
    let columns = vec![
        WAY,
        Column::new("column-sent-s"),
        Column::new("column-received-s"),
        Column::new("column-frames-bits-s").ranked(1),
        Column::new("column-line-bits-s"),
    ];
    let row = |flow: &FrameFlow| {
        let bits =
            |layer: fn(&FlowRate) -> f64| flow.arrived.as_ref().and_then(|arrived| rate(layer(arrived), "bit/s"));
        vec![
            Some(way(lang, flow)),
            flow.offered.and_then(|offered| per_second(offered.frames_per_s)),
            flow.arrived.and_then(|arrived| per_second(arrived.frames_per_s)),
            bits(|arrived| arrived.frame_bits_per_s),
            bits(|arrived| arrived.wire_bits_per_s),
        ]
    };
    table(said!(lang, "frames-rates"), columns, outcome.frames.iter().map(row).collect())
}

fn latency(lang: Language, outcome: &DeviceOutcome) -> Option<Table> {
    let columns = vec![
        WAY,
        Column::new("column-device-shortest").ranked(2),
        Column::new("column-frame-p50"),
        Column::new("column-frame-p90").ranked(3),
        Column::new("column-frame-p99"),
        Column::new("column-frame-p999").ranked(1),
        Column::new("column-device-longest"),
    ];
    let rows = outcome.frames.iter().filter_map(|flow| {
        let took = flow.latency_ns.as_ref()?;
        let times = [took.min, took.p50, took.p90, took.p99, took.p999, took.max];
        Some([vec![Some(way(lang, flow))], times.map(|time| Some(nanos(time))).to_vec()].concat())
    });
    table(said!(lang, "frames-latency-from-the-sending"), columns, rows.collect())
}

fn addresses(lang: Language, outcome: &DeviceOutcome) -> Option<Table> {
    let columns = vec![
        Column::new("column-frame"),
        Column::new("column-capacity"),
        Column::new("column-learned"),
        Column::new("column-own").ranked(1),
        Column::new("column-flooded-at"),
        Column::new("column-learns"),
        Column::new("column-misses-at").ranked(2),
    ];
    let row = |found: &AddressTable| {
        let learning = found.learning;
        let at_least = if found.flooded_at.is_none() { said!(lang, "frames-at-least") } else { String::new() };
        vec![
            Some(found.frame_bytes.to_string()),
            Some(format!("{at_least}{}", grouped(found.capacity.into()))),
            Some(grouped(found.learned.into())),
            Some(grouped(found.own.into())),
            found.flooded_at.map(|count| grouped(count.into())),
            learning.and_then(|learning| per_second(learning.frames_per_s)).map(|rate| format!("{rate}/s")),
            learning.and_then(|learning| per_second(learning.flooded_at_frames_per_s?)).map(|rate| format!("{rate}/s")),
        ]
    };
    table(said!(lang, "frames-address-table-rfc-2889"), columns, outcome.addresses.iter().map(row).collect())
}

/// What [`csv_rows`] adds to the columns of every device test.
pub(crate) const CSV_COLUMNS: [&str; 11] = [
    "from",
    "to",
    "sizes",
    "duplicates",
    "reordered",
    "flooded",
    "wire_bits_per_s",
    "addresses",
    "own_addresses",
    "flooded_at_addresses",
    "learned_per_s",
];

/// Rows of a CSV file by column; those that are not named are empty.
pub(crate) fn csv_rows(outcome: &DeviceOutcome) -> Vec<BTreeMap<&'static str, String>> {
    let number = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
    let flow = |flow: &FrameFlow| {
        let timed = |figure: fn(&linerate_model::Latency) -> u64| {
            flow.latency_ns.as_ref().map(|took| figure(took).to_string()).unwrap_or_default()
        };
        let loss = if flow.sent == 0 { 0.0 } else { flow.lost as f64 / flow.sent as f64 };
        BTreeMap::from([
            ("test", "frames".to_owned()),
            ("frame_bytes", flow.frame_bytes.to_string()),
            ("frames_per_s", number(flow.arrived.map(|arrived| arrived.frames_per_s))),
            ("bits_per_s", number(flow.arrived.map(|arrived| arrived.frame_bits_per_s))),
            ("latency_ns_p50", timed(|took| took.p50)),
            ("latency_ns_p99", timed(|took| took.p99)),
            ("latency_ns_max", timed(|took| took.max)),
            ("sent", flow.sent.to_string()),
            ("received", flow.received.to_string()),
            ("loss_ratio", loss.to_string()),
            ("from", flow.from.clone()),
            ("to", flow.to.clone()),
            ("sizes", flow.mix.as_ref().map(ToString::to_string).unwrap_or_default()),
            ("duplicates", flow.duplicates.to_string()),
            ("reordered", flow.reordered.to_string()),
            ("flooded", flow.flooded.to_string()),
            ("wire_bits_per_s", number(flow.arrived.map(|arrived| arrived.wire_bits_per_s))),
        ])
    };
    let table = |found: &AddressTable| {
        BTreeMap::from([
            ("test", "addresses".to_owned()),
            ("frame_bytes", found.frame_bytes.to_string()),
            ("addresses", found.capacity.to_string()),
            ("own_addresses", found.own.to_string()),
            ("flooded_at_addresses", found.flooded_at.map(|count| count.to_string()).unwrap_or_default()),
            ("learned_per_s", number(found.learning.map(|learning| learning.frames_per_s))),
        ])
    };
    outcome.frames.iter().map(flow).chain(outcome.addresses.iter().map(table)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_model::{FrameEngine, Latency, LearningRate};
    use linerate_units::Nanos;

    fn outcome() -> DeviceOutcome {
        let rate = FlowRate {
            frames_per_s: 20_000.0,
            frame_bits_per_s: 57.9e6,
            wire_bits_per_s: 61.1e6,
            time: Nanos::from_secs(1),
        };
        let latency = Latency {
            p50: 3_000,
            p90: 4_000,
            p99: 5_000,
            p999: 6_000,
            max: 7_000,
            min: 1_000,
            mean: 3_100.0,
            count: 19_990,
            distribution: Vec::new(),
        };
        let flow = FrameFlow {
            verdict: None,
            from: "p0".into(),
            to: "=p1".into(),
            frame_bytes: 1518,
            mix: Some(linerate_model::FrameMix::imix()),
            engine: FrameEngine::Xdp,
            intended: 20_000,
            sent: 20_000,
            received: 19_990,
            lost: 10,
            duplicates: 0,
            reordered: 2,
            flooded: 0,
            offered: Some(rate),
            arrived: Some(rate),
            sent_bytes: 7_236_666,
            received_bytes: 7_230_000,
            latency_ns: Some(latency),
            by_port_counters: false,
            caveats: Vec::new(),
        };
        let unsigned = FrameFlow { by_port_counters: true, latency_ns: None, arrived: None, mix: None, ..flow.clone() };
        let learning = LearningRate { addresses: 997, frames_per_s: 50_000.0, flooded_at_frames_per_s: None };
        let addresses = AddressTable {
            verdict: None,
            frame_bytes: 64,
            learned: 997,
            own: 3,
            capacity: 1_000,
            flooded_at: Some(998),
            learn_frames_per_s: 10_000.0,
            learning: Some(learning),
            trials: 6,
            caveats: Vec::new(),
        };
        DeviceOutcome { frames: vec![flow, unsigned], addresses: Some(addresses), ..DeviceOutcome::default() }
    }

    #[test]
    fn every_table_is_whole() {
        let tables: Vec<Table> = tables(Language::English, &outcome()).collect();
        assert_eq!(tables.iter().map(|table| table.rows.len()).collect::<Vec<_>>(), [2, 2, 1, 1]);
        for table in &tables {
            assert!(table.rows.iter().all(|row| row.len() == table.columns.len()), "{}", table.caption);
        }
        let cell = |table: usize, row: usize, column: usize| tables[table].rows[row][column].as_deref();
        assert_eq!(cell(0, 0, 0), Some("64:7,594:4,1518:1, p0 to =p1"));
        assert_eq!((cell(0, 0, 5), cell(0, 1, 5)), (Some("2"), None), "a port's counter knows no order");
        assert_eq!((cell(1, 0, 3), cell(1, 0, 4)), (Some("57.9 Mbit/s"), Some("61.1 Mbit/s")));
        assert_eq!((cell(3, 0, 1), cell(3, 0, 5)), (Some("1,000"), Some("50,000/s")));
    }

    #[test]
    fn a_table_that_never_flooded_may_be_larger() {
        let mut outcome = outcome();
        outcome.addresses.iter_mut().for_each(|table| table.flooded_at = None);
        let shown = addresses(Language::English, &outcome).expect("a table");
        assert_eq!(shown.rows[0][1].as_deref(), Some("at least 1,000"));
    }

    #[test]
    fn rows_of_a_file_have_known_columns() {
        let rows = csv_rows(&outcome());
        let find = |row: usize, name: &str| rows[row].get(name).map(String::as_str);
        assert_eq!((rows.len(), find(0, "loss_ratio"), find(2, "addresses")), (3, Some("0.0005"), Some("1000")));
    }
}
