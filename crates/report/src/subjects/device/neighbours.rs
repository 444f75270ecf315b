//! The neighbours that a router holds, and what becomes of more, the same for every form of report.

use crate::blocks::columns;
use crate::blocks::table::Table;
use crate::column;
use crate::figures::{grouped, nanos, per_second, percent};
use crate::language::Language;
use crate::said;
use crate::wording::firmness;
use linerate_model::{DeviceFound, DeviceTest, Latency, NeighbourTable, PastNeighbours};
use std::collections::BTreeMap;

/// Their tables.
pub(crate) fn tables(lang: Language, outcome: &DeviceFound) -> impl Iterator<Item = Table> {
    [held(lang, outcome), past(lang, outcome)].into_iter().flatten()
}

fn time(latency: Option<&Latency>, figure: fn(&Latency) -> u64) -> Option<String> {
    latency.map(|latency| nanos(figure(latency)))
}

fn held(lang: Language, outcome: &DeviceFound) -> Option<Table> {
    let columns = vec![
        columns::FRAME,
        column!("column-held", "held", "the most hosts behind the second port that were all reached without loss"),
        column!("column-lost-at", "lost at", "the fewest of which some were not reached"),
        column!("column-tried", "tried", "the most hosts that were tried").ranked(2),
        column!("column-shown-at", "shown at", "maximum rate at which hosts were shown to the router, hosts a second")
            .ranked(3),
        column!("column-asked-at", "asked at", "rate of the frames that checked them, frames a second").ranked(2),
        column!("column-held-frame-p50", "p50", "median latency of frames to the held hosts").ranked(1),
        columns::FRAME_P99.ranked(1),
        column!("column-neighbours-limit", "limit", "what limited the number"),
    ];
    let row = |found: &NeighbourTable| {
        let hosts = grouped(found.held.into());
        vec![
            Some(found.frame_bytes.to_string()),
            Some(match found.bound {
                _ if !found.firmness.is_firm() => firmness::shown(hosts, found.firmness),
                Some(_) => said!(lang, "device-at-least", "at least {entries}", entries = hosts),
                None => hosts,
            }),
            found.lost_at.map(|count| grouped(count.into())),
            Some(grouped(found.neighbours_tried.into())),
            per_second(found.learn_frames_per_s).map(|rate| format!("{rate}/s")),
            per_second(found.frames_per_s).map(|rate| format!("{rate}/s")),
            time(found.latency_ns.as_ref(), |latency| latency.p50),
            time(found.latency_ns.as_ref(), |latency| latency.p99),
            Some(lang.text(found.limit.text())),
        ]
    };
    Table::filled(
        said!(lang, "neighbours-caption-held", "Neighbours that the router holds"),
        columns,
        outcome.hosts.iter().map(row).collect(),
    )
}

fn past(lang: Language, outcome: &DeviceFound) -> Option<Table> {
    let columns = vec![
        column!("column-hosts", "hosts", "how many were addressed, those held among them"),
        columns::DEVICE_LOST_2,
        column!("column-neighbours-flooded", "flooded", "copies that arrived at the third port").ranked(2),
        column!("column-reached-p50", "p50", "median latency of the frames that arrived"),
        column!("column-reached-p99", "p99", "99th percentile of their latency"),
        column!("column-held-p50", "held: p50", "p50 of the held hosts alone, just before").ranked(3),
        column!("column-held-p99", "held: p99", "p99 of the held hosts alone, just before").ranked(2),
        column!(
            "column-neighbours-recovery",
            "recovery",
            "how long held hosts were still lost after the others had fallen silent"
        ),
        column!("column-lost-then", "lost then", "frames to held hosts that were lost in that time").ranked(1),
    ];
    let row = |past: &PastNeighbours| {
        vec![
            Some(grouped(past.hosts.into())),
            percent(past.loss_ratio).map(|lost| firmness::shown(lost, past.firmness)),
            past.flooded.map(grouped),
            time(past.latency_ns.as_ref(), |latency| latency.p50),
            time(past.latency_ns.as_ref(), |latency| latency.p99),
            time(past.held_latency_ns.as_ref(), |latency| latency.p50),
            time(past.held_latency_ns.as_ref(), |latency| latency.p99),
            past.recovery_ns.map(nanos),
            Some(grouped(past.recovery_lost)),
        ]
    };
    let rows = outcome.hosts.iter().flat_map(|found| &found.past).map(row);
    Table::filled(said!(lang, "neighbours-caption-past", "More hosts than the router holds"), columns, rows.collect())
}

/// Returns the method in a sentence.
pub(crate) fn method(lang: Language, test: &DeviceTest) -> Option<String> {
    let DeviceTest::Hosts { learn_rate, rate, .. } = test else { return None };
    Some(said!(
        lang,
        "neighbours-method",
        "The hosts had consecutive addresses and an Ethernet address each, and the tester answered for them. Each was \
         addressed three times, at most {learn_rate} hosts a second. Then frames were sent to them in turn, {value} \
         frames a second. Hosts count as held if every one of these frames arrived, and none elsewhere.",
        learn_rate = grouped(learn_rate.get()),
        value = grouped(rate.get())
    ))
}

/// Columns that [`csv_rows`] adds to those of every device test.
pub(crate) const CSV_COLUMNS: [&str; 5] = ["hosts", "held_hosts", "lost_at_hosts", "recovery_ns", "recovery_lost"];

/// Rows of a CSV file by column, one of what is held and one of each number past it; those that are not named are empty.
pub(crate) fn csv_rows(outcome: &DeviceFound) -> Vec<BTreeMap<&'static str, String>> {
    let Some(found) = &outcome.hosts else { return Vec::new() };
    let head = |test: &str, hosts: u32, latency: Option<&Latency>| {
        let timed = |figure: fn(&Latency) -> u64| latency.map(|took| figure(took).to_string()).unwrap_or_default();
        BTreeMap::from([
            ("test", test.to_owned()),
            ("frame_bytes", found.frame_bytes.to_string()),
            ("frames_per_s", found.frames_per_s.to_string()),
            ("hosts", hosts.to_string()),
            ("held_hosts", found.held.to_string()),
            ("latency_ns_p50", timed(|took| took.p50)),
            ("latency_ns_p99", timed(|took| took.p99)),
            ("latency_ns_max", timed(|took| took.max)),
        ])
    };
    let mut held = head("hosts", found.neighbours_tried, found.latency_ns.as_ref());
    held.extend(firmness::csv(found.firmness));
    held.insert("limit", found.limit.to_string());
    held.extend(found.lost_at.map(|count| ("lost_at_hosts", count.to_string())));
    let past = found.past.iter().map(|past| {
        let mut row = head("hosts-past", past.hosts, past.latency_ns.as_ref());
        row.insert("sent", past.sent.to_string());
        row.insert("received", past.received.to_string());
        row.insert("loss_ratio", past.loss_ratio.to_string());
        row.extend(past.flooded.map(|count| ("flooded", count.to_string())));
        row.extend(past.recovery_ns.map(|time| ("recovery_ns", time.to_string())));
        row.insert("recovery_lost", past.recovery_lost.to_string());
        row.extend(firmness::csv(past.firmness));
        row
    });
    std::iter::once(held).chain(past).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_model::{Firmness, Limit};

    fn took(p50: u64) -> Option<Latency> {
        let p99 = p50 * 2;
        let mean = p50 as f64;
        let distribution = Vec::new();
        Some(Latency { p50, p90: p50, p99, p999: p99, max: p99, min: 1_000, mean, count: 5_000, distribution })
    }

    fn outcome() -> DeviceFound {
        let past = PastNeighbours {
            hosts: 2_048,
            sent: 20_480,
            received: 10_240,
            firmness: Firmness::Firm,
            loss_ratio: 0.5,
            flooded: Some(7),
            latency_ns: took(60_000),
            held_latency_ns: took(20_000),
            recovery_lost: 12,
            recovery_ns: Some(30_000),
        };
        let late = PastNeighbours { flooded: None, recovery_ns: None, latency_ns: None, ..past.clone() };
        let hosts = NeighbourTable {
            verdict: None,
            frame_bytes: 64,
            held: 1_024,
            firmness: Firmness::Firm,
            lost_at: Some(1_025),
            neighbours_tried: 1_984,
            bound: None,
            learn_frames_per_s: 1_000.0,
            frames_per_s: 10_000.0,
            latency_ns: took(19_000),
            past: vec![past, late],
            limit: Limit::Device,
            trials: 11,
            caveats: Vec::new(),
        };
        DeviceFound { hosts: Some(hosts), ..DeviceFound::default() }
    }

    fn shown(row: &[Option<String>]) -> Vec<&str> {
        row.iter().map(|cell| cell.as_deref().unwrap_or("")).collect()
    }

    #[test]
    fn tables_show_what_is_held_and_what_becomes_of_more() {
        let tables: Vec<Table> = tables(Language::English, &outcome()).collect();
        let [held, past] = &tables[..] else { panic!("{} tables", tables.len()) };
        let limit = ["64", "1,024", "1,025", "1,984", "1,000/s", "10,000/s", "19 us", "38 us", "device"];
        assert_eq!(shown(&held.rows[0]), limit);
        assert_eq!(shown(&past.rows[0]), ["2,048", "50.0 %", "7", "60 us", "120 us", "20 us", "40 us", "30 us", "12"]);
        assert_eq!(shown(&past.rows[1])[2..8], ["", "", "", "20 us", "40 us", ""]);
        for table in &tables {
            assert!(table.rows.iter().all(|row| row.len() == table.columns.len()), "{}", table.caption);
        }
    }

    #[test]
    fn a_bound_is_no_limit() {
        let mut outcome = outcome();
        let found = outcome.hosts.as_mut().expect("hosts");
        (found.lost_at, found.bound, found.past) = (None, Some(1_024), Vec::new());
        let tables: Vec<Table> = tables(Language::English, &outcome).collect();
        assert_eq!((tables.len(), shown(&tables[0].rows[0])[1]), (1, "at least 1,024"));
    }

    #[test]
    fn rows_of_a_file_have_known_columns() {
        let rows = csv_rows(&outcome());
        let find = |row: usize, name: &str| rows[row].get(name).map(String::as_str);
        assert_eq!((rows.len(), find(0, "held_hosts"), find(0, "lost_at_hosts")), (3, Some("1024"), Some("1025")));
        assert_eq!(
            (find(1, "hosts"), find(1, "recovery_ns"), find(2, "recovery_ns")),
            (Some("2048"), Some("30000"), None)
        );
    }
}
