//! The address table of a switch (RFC 2889 sections 5.7 and 5.8), the same for every form of report.

use crate::blocks::columns;
use crate::blocks::section::{Block, Section};
use crate::blocks::table::Table;
use crate::column;
use crate::figures::{grouped, per_second};
use crate::language::Language;
use crate::said;
use crate::wording::firmness;
use linerate_model::{AddressIteration, AddressTable, DeviceFound, Record};
use std::collections::BTreeMap;

/// The table.
pub(crate) fn table(lang: Language, outcome: &DeviceFound) -> Option<Table> {
    let columns = vec![
        columns::FRAME,
        column!("column-capacity", "capacity", "addresses that the table holds: those learned and the tester's own"),
        column!("column-learned", "learned", "the most addresses learned from one port of which none flooded"),
        column!("column-own", "own", "addresses of the tester's own ports, known to the device besides").ranked(1),
        column!("column-flooded-at", "flooded at", "the fewest addresses of which some flooded"),
        column!("column-learns", "learns", "the highest rate of new addresses at which all were learned"),
        column!("column-misses-at", "misses at", "the lowest rate of new addresses at which some were not learned")
            .ranked(2),
    ];
    let row = |found: &AddressTable| {
        let learning = found.learning;
        let capacity = grouped(found.capacity.into());
        vec![
            Some(found.frame_bytes.to_string()),
            Some(match found.flooded_at {
                _ if !found.firmness.is_firm() => firmness::shown(capacity, found.firmness),
                Some(_) => capacity,
                None => said!(lang, "device-at-least", "at least {entries}", entries = capacity),
            }),
            Some(firmness::shown(grouped(found.learned.into()), found.firmness)),
            Some(grouped(found.own.into())),
            found.flooded_at.map(|count| grouped(count.into())),
            learning.and_then(|learning| {
                let rate = per_second(learning.frames_per_s)?;
                Some(firmness::shown(format!("{rate}/s"), learning.firmness))
            }),
            learning.and_then(|learning| per_second(learning.flooded_at_frames_per_s?)).map(|rate| format!("{rate}/s")),
        ]
    };
    Table::filled(
        said!(lang, "addresses-caption", "Address table (RFC 2889 sections 5.7 and 5.8)"),
        columns,
        outcome.addresses.iter().map(row).collect(),
    )
}

/// Returns the section with the iterations of the searches, as RFC 2889 sections 5.7.4 and 5.8.4 ask for.
pub(crate) fn iterations(lang: Language, record: &Record) -> Option<Section> {
    let (_, outcome) = record.device()?;
    let table = iteration_table(lang, outcome.addresses.as_ref()?)?;
    let heading = said!(lang, "addresses-iterations", "Iterations of the address test");
    Section::summary("iterations", heading, vec![Block::Table(table)])
}

fn iteration_table(lang: Language, found: &AddressTable) -> Option<Table> {
    let columns = vec![
        column!("column-addresses", "addresses", "number of addresses, shown at the learning port"),
        column!("column-learn-rate", "learned at", "rate at which they were shown, addresses/s"),
        column!("column-test-load", "load", "load of the test frames, frames/s"),
        column!("column-test-frames", "offered", "test frames sent by the test port, one to each address"),
        column!("column-at-learning-port", "received", "test frames received at the learning port, where they belong"),
        column!("column-test-flooded", "flooded", "test frames that flooded, all ports together"),
        column!("column-flooded-to-test", "Tport", "test frames that flooded to the test port"),
        column!("column-flooded-to-learning", "Lport", "test frames that flooded to the learning port"),
        column!("column-flooded-to-monitoring", "Mport", "test frames that flooded to the monitoring port"),
        column!("column-shown", "shown", "learning frames sent by the learning port").ranked(1),
    ];
    let row = |iteration: &AddressIteration| {
        vec![
            Some(grouped(iteration.addresses.into())),
            per_second(iteration.learn_frames_per_s),
            per_second(iteration.test_frames_per_s),
            Some(firmness::shown(grouped(iteration.sent), iteration.firmness)),
            Some(grouped(iteration.received)),
            Some(grouped(iteration.flooded)),
            iteration.flooded_to_test.map(grouped),
            iteration.flooded_to_learning.map(grouped),
            iteration.flooded_to_monitoring.map(grouped),
            Some(grouped(iteration.shown)),
        ]
    };
    let caption = said!(
        lang,
        "addresses-caption-iterations",
        "Each iteration, with the frames that flooded to each port (RFC 2889 sections 5.7 and 5.8)"
    );
    Table::filled(caption, columns, found.iterations.iter().map(row).collect())
}

/// Columns that [`csv_rows`] adds to those of every device test.
pub(crate) const CSV_COLUMNS: [&str; 4] = ["addresses", "own_addresses", "flooded_at_addresses", "learned_per_s"];

/// Rows of a CSV file by column; those that are not named are empty.
pub(crate) fn csv_rows(outcome: &DeviceFound) -> Vec<BTreeMap<&'static str, String>> {
    let number = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
    let row = |found: &AddressTable| {
        let mut row = BTreeMap::from([
            ("test", "addresses".to_owned()),
            ("frame_bytes", found.frame_bytes.to_string()),
            ("addresses", found.capacity.to_string()),
            ("own_addresses", found.own.to_string()),
            ("flooded_at_addresses", found.flooded_at.map(|count| count.to_string()).unwrap_or_default()),
            ("learned_per_s", number(found.learning.map(|learning| learning.frames_per_s))),
        ]);
        row.extend(firmness::csv(found.firmness));
        row
    };
    outcome.addresses.iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_model::{Firmness, LearningRate};

    fn iteration(addresses: u32, flooded: Option<u64>) -> AddressIteration {
        AddressIteration {
            addresses,
            learn_frames_per_s: 10_000.0,
            shown: addresses.into(),
            test_frames_per_s: 10_000.0,
            sent: addresses.into(),
            received: addresses.into(),
            flooded: flooded.unwrap_or(1),
            flooded_to_test: flooded.map(|_| 0),
            flooded_to_learning: flooded.map(|_| 0),
            flooded_to_monitoring: flooded,
            firmness: Firmness::Firm,
        }
    }

    fn outcome() -> DeviceFound {
        let firmness = Firmness::Firm;
        let learning = LearningRate { addresses: 997, frames_per_s: 50_000.0, firmness, flooded_at_frames_per_s: None };
        let addresses = AddressTable {
            verdict: None,
            frame_bytes: 64,
            learned: 997,
            firmness,
            own: 3,
            capacity: 1_000,
            flooded_at: Some(998),
            learn_frames_per_s: 10_000.0,
            learning: Some(learning),
            iterations: vec![iteration(2_000, Some(1_003)), iteration(997, Some(0)), iteration(998, None)],
            trials: 6,
            caveats: Vec::new(),
        };
        DeviceFound { addresses: Some(addresses), ..DeviceFound::default() }
    }

    #[test]
    fn the_table_has_capacity_and_learning_rate() {
        let table = table(Language::English, &outcome()).expect("a table");
        let cell = |column: usize| table.rows[0][column].as_deref();
        assert_eq!((table.rows.len(), table.rows[0].len()), (1, table.columns.len()));
        assert_eq!((cell(1), cell(5)), (Some("1,000"), Some("50,000/s")));
    }

    #[test]
    fn a_table_that_never_flooded_may_be_larger() {
        let mut outcome = outcome();
        outcome.addresses.iter_mut().for_each(|table| table.flooded_at = None);
        let shown = table(Language::English, &outcome).expect("a table");
        assert_eq!(shown.rows[0][1].as_deref(), Some("at least 1,000"));
    }

    #[test]
    fn iterations_show_what_flooded_to_each_port() {
        let found = outcome().addresses.expect("a table");
        let table = iteration_table(Language::English, &found).expect("iterations");
        let shown: Vec<Vec<&str>> =
            table.rows.iter().map(|row| row.iter().map(|cell| cell.as_deref().unwrap_or("")).collect()).collect();
        let flooded = ["2,000", "10,000", "10,000", "2,000", "2,000", "1,003", "0", "0", "1,003", "2,000"];
        assert_eq!((shown.len(), &shown[0][..]), (3, &flooded[..]));
        assert_eq!(shown[2][5..9], ["1", "", "", ""], "an agent that counted all ports together");
    }

    #[test]
    fn rows_of_a_file_have_known_columns() {
        let rows = csv_rows(&outcome());
        assert_eq!((rows.len(), rows[0].get("addresses").map(String::as_str)), (1, Some("1000")));
    }
}
