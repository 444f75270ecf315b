//! Results of pairs: matrices, histories, changes and sites.

use crate::place::{Place, on_both_backends};
use crate::sample::{record, summary, trial};
use linerate_model::{
    Confidence, Counts, EndCounts, IpVersion, Limit, Net, Path, PathCounts, Plan, Received, Record, Repeats,
    RunSummary, Sent, Standing, StreamTask, Task, Timing, Transport, Trial, TrialResult,
};
use linerate_store::{
    Ending, FleetHost, IngestPart, Level, MatrixQuery, Page, PartOutcome, Query, RetentionPolicy, Selection, State,
    Store,
};
use linerate_units::{ByteCount, Nanos};
use std::collections::BTreeMap;
use std::time::Duration;

const HOUR_NS: u64 = 3_600_000_000_000;
/// A whole hour in November 2026.
const START: u64 = 498_682 * HOUR_NS;
const TEST: &str = "stream --time 5s";

/// A record of one path, with the command of a fleet.
fn pair_record(id: &str, from: &str, to: &str, started_unix_ns: u64) -> Record {
    let task = StreamTask {
        paths: vec![Path::between(from, to)],
        net: Net { ip: IpVersion::V6, ..Net::plain(Transport::Udp) },
        ..StreamTask::plain(Transport::Udp, ByteCount::new(1472))
    };
    let cell = Trial::new("udp 1472", Task::Stream(task), Timing::of(Nanos::from_millis(100), Nanos::from_secs(1)));
    let command = format!("linerate stream fleet:{from} fleet:{to} --time 5s");
    Record {
        command: command.split_whitespace().map(str::to_owned).collect(),
        plan: Plan::sweep(vec![cell], Repeats::Times(1)),
        ..record(id, started_unix_ns)
    }
}

fn keep(store: &Store, record: &Record, value: f64) {
    let mut live = store.begin(record).expect("begin");
    live.trial(&trial(0), &summary(value)).expect("trial");
    live.end(record, Ending::Finished).expect("end");
}

fn host(name: &str, site: &str) -> FleetHost {
    let labels = BTreeMap::from([("site".to_owned(), site.to_owned()), ("role".to_owned(), "edge".to_owned())]);
    FleetHost { name: name.into(), labels, seen_unix_ns: 7 }
}

/// Returns the cells of a matrix as text: from, to, value, pairs, results.
fn cells(store: &Store, by: Level) -> Vec<String> {
    let matrix = store.matrix(&MatrixQuery::all(by)).expect("matrix");
    let cells = matrix.cells.iter().map(|cell| {
        let (row, column) = (&matrix.rows[cell.row], &matrix.columns[cell.column]);
        format!("{row} {column} {} {} {}", cell.value, cell.pairs, cell.results)
    });
    cells.collect()
}

fn newest_results_are_the_cells_of_a_matrix(place: &Place<'_>) {
    let store = place.open();
    assert!(store.tests().expect("tests").is_empty());
    assert_eq!(store.matrix(&MatrixQuery::all(Level::Host)).expect("matrix").test, None);
    keep(&store, &pair_record("1", "a", "b", START), 100.0);
    keep(&store, &pair_record("2", "a", "b", START + 10), 50.0);
    keep(&store, &pair_record("3", "b", "a", START + 5), 70.0);
    // It began before the newest, and comes later.
    keep(&store, &pair_record("4", "a", "b", START + 4), 80.0);
    assert_eq!(store.tests().expect("tests"), [TEST]);
    assert_eq!(cells(&store, Level::Host), ["a b 50 1 3", "b a 70 1 1"]);
    let matrix = store.matrix(&MatrixQuery::all(Level::Host)).expect("matrix");
    let cell = &matrix.cells[0];
    assert_eq!((cell.from.as_str(), cell.to.as_str()), ("a", "b"));
    assert_eq!(cell.record.as_ref().expect("a record").0, "2");
    assert_eq!((cell.limit, cell.confidence), (Some(Limit::Wire), Some(Confidence::High)));
    assert_eq!((cell.link_share, cell.started_unix_ns), (Some(0.5), START + 10));
    assert_eq!(cell.changed_unix_ns, Some(START + 10));

    let other = MatrixQuery { test: Some("transact".into()), ..MatrixQuery::all(Level::Host) };
    assert!(store.matrix(&other).expect("matrix").cells.is_empty());
    let one = MatrixQuery {
        from: Selection::Hosts(vec!["b".into()]),
        columns: Page { skipped: 1, limit: 1 },
        ..MatrixQuery::all(Level::Host)
    };
    let matrix = store.matrix(&one).expect("matrix");
    assert_eq!((&matrix.rows, &matrix.columns), (&vec!["b".to_owned()], &vec!["b".to_owned()]));
    assert_eq!((matrix.all_rows, matrix.all_columns, matrix.cells.len()), (1, 2, 0));
}

fn runs_without_one_path_are_no_results_of_pairs(place: &Place<'_>) {
    let store = place.open();
    let run = pair_record("two", "a", "b", START);
    let mut cells = run.plan.cells().to_vec();
    let mut other = pair_record("x", "a", "c", START).plan.cells()[0].clone();
    other.name = "other".into();
    cells.push(other);
    keep(&store, &Record { plan: Plan::sweep(cells, Repeats::Times(1)), ..run }, 1.0);
    let failed = pair_record("failed", "a", "b", START);
    let mut live = store.begin(&failed).expect("begin");
    live.trial(&trial(0), &summary(1.0)).expect("trial");
    live.end(&failed, Ending::Failed).expect("end");
    assert!(store.tests().expect("tests").is_empty());
}

/// Of rates the lowest is the worst.
fn a_cell_of_sites_is_its_worst_pair(place: &Place<'_>) {
    let store = place.open();
    store.put_hosts(&[host("a1", "paris"), host("a2", "paris"), host("b1", "lyon")]).expect("hosts");
    keep(&store, &pair_record("1", "a1", "b1", START), 100.0);
    keep(&store, &pair_record("2", "a2", "b1", START + 1), 50.0);
    keep(&store, &pair_record("3", "b1", "x", START + 2), 7.0);
    assert_eq!(cells(&store, Level::Site), ["lyon  7 1 1", "paris lyon 50 2 2"]);
    keep(&store, &pair_record("4", "a2", "b1", START + 3), 200.0);
    assert_eq!(cells(&store, Level::Site), ["lyon  7 1 1", "paris lyon 100 2 3"], "the worst pair recovered");
    let matrix = store.matrix(&MatrixQuery::all(Level::Site)).expect("matrix");
    let cell = matrix.cells.iter().find(|cell| cell.pairs == 2).expect("two pairs");
    assert_eq!((cell.from.as_str(), cell.last_unix_ns, cell.changed_unix_ns), ("a1", START + 3, Some(START + 3)));

    // A host moves, and another gets its first label.
    store.put_hosts(&[host("a2", "lyon"), host("x", "nice")]).expect("hosts");
    assert_eq!(cells(&store, Level::Site), ["lyon lyon 200 1 2", "lyon nice 7 1 1", "paris lyon 100 1 1"]);
    let within = MatrixQuery { from: Selection::Sites(vec!["lyon".into()]), ..MatrixQuery::all(Level::Host) };
    assert_eq!(store.matrix(&within).expect("matrix").rows, ["a2", "b1"]);
    let hosts = store.fleet_hosts().expect("hosts");
    assert_eq!(
        hosts.iter().map(|host| (host.name.as_str(), host.site())).collect::<Vec<_>>(),
        [("a1", "paris"), ("a2", "lyon"), ("b1", "lyon"), ("x", "nice")]
    );
    store.remove_hosts(&["x"]).expect("removed");
    assert_eq!(store.fleet_hosts().expect("hosts").len(), 3);
}

fn history_and_changes_follow_the_results(place: &Place<'_>) {
    let store = place.open();
    for (id, start, value) in [("1", START, 100.0), ("2", START + 1, 104.0), ("3", START + HOUR_NS, 50.0)] {
        keep(&store, &pair_record(id, "a", "b", start), value);
    }
    let history = store.pair_history("a", "b", TEST, 0, 100).expect("history");
    let points: Vec<(u64, f64, u32)> =
        history.iter().map(|point| (point.unix_ns, point.value, point.changes)).collect();
    assert_eq!(points, [(START, 100.0, 0), (START + 1, 104.0, 0), (START + HOUR_NS, 50.0, 1)]);
    assert_eq!(store.pair_history("a", "b", TEST, 0, 1).expect("history")[0].value, 50.0, "the newest");
    let changes = store.changed_since(START, 10).expect("changes");
    let [change] = &changes[..] else { panic!("one change: {changes:?}") };
    assert_eq!((change.record.0.as_str(), change.value, change.value_before), ("3", 50.0, Some(104.0)));
    assert!(store.changed_since(START + HOUR_NS + 1, 10).expect("changes").is_empty());

    // A run that ends late, and then goes, changes what the next is held against.
    keep(&store, &pair_record("late", "a", "b", START + 2), 50.0);
    let changed = |store: &Store| -> Vec<String> {
        store.changed_since(0, 10).expect("changes").into_iter().map(|change| change.record.0).collect()
    };
    assert_eq!(changed(&store), ["late"]);
    assert_eq!(place.selected("SELECT CAST(sum(changes) AS INTEGER) FROM pair_hour"), "1");
    store.delete("late").expect("deleted");
    assert_eq!(changed(&store), ["3"]);
    assert_eq!(place.selected("SELECT CAST(sum(changes) AS INTEGER) FROM pair_hour"), "1");
    assert_eq!(place.selected("SELECT CAST(sum(results) AS INTEGER) FROM site_hour"), "3");
    store.delete("3").expect("deleted");
    assert_eq!(cells(&store, Level::Host), ["a b 104 1 2"]);
    assert_eq!(cells(&store, Level::Site), ["  104 1 2"]);
    store.delete("2").expect("deleted");
    store.delete("1").expect("deleted");
    assert!(store.tests().expect("tests").is_empty());
}

fn old_records_go_and_their_sums_stay(place: &Place<'_>) {
    let store = place.open();
    let day = 24 * HOUR_NS;
    for (id, start) in [("1", START), ("2", START + 1), ("3", START + 40 * day), ("4", START + 80 * day)] {
        keep(&store, &pair_record(id, "a", "b", start), 100.0);
    }
    keep(&store, &pair_record("old", "b", "a", START), 30.0);
    let now = START + 81 * day;
    let month = Duration::from_nanos(30 * day);
    let keep_month = RetentionPolicy { bodies: Some(month), rollups: None };
    let deleted = store.retain(&keep_month, now).expect("retained");
    assert_eq!((deleted.records, deleted.hours), (4, 0));
    let left: Vec<String> =
        store.list(&Query::default(), 0, 9).expect("list").into_iter().map(|run| run.id.0).collect();
    assert_eq!(left, ["4"]);
    assert_eq!(store.load("4").expect("load").trials.len(), 1);
    for table in ["plan", "trial", "found"] {
        assert_eq!(place.selected(&format!("SELECT count(*) FROM {table}")), "1", "{table}");
    }
    let history = store.pair_history("a", "b", TEST, 0, 9).expect("history");
    let points: Vec<(u64, u32, bool)> =
        history.iter().map(|point| (point.unix_ns, point.results, point.record.is_some())).collect();
    assert_eq!(points, [(START, 2, false), (START + 40 * day, 1, false), (START + 80 * day, 1, true)]);
    let matrix = store.matrix(&MatrixQuery::all(Level::Host)).expect("matrix");
    let records: Vec<bool> = matrix.cells.iter().map(|cell| cell.record.is_some()).collect();
    assert_eq!(records, [true, false], "the newest result stays, without a record");

    let keep_week = RetentionPolicy { bodies: None, rollups: Some(Duration::from_nanos(7 * day)) };
    let deleted = store.retain(&keep_week, now).expect("retained");
    assert_eq!((deleted.records, deleted.hours), (0, 5), "three hours of pairs and two of sites");
}

fn messages_that_come_twice_are_stored_once(place: &Place<'_>) {
    let store = place.open();
    let begun = pair_record("one", "a", "b", START);
    let whole = Record { trials: vec![trial(0), trial(1)], ..begun.clone() };
    let summary = summary(1.0);
    let begin = IngestPart::Begin(&begun);
    let first = trial_part(&whole, 0, &summary);
    let second = trial_part(&whole, 1, &summary);
    let end = IngestPart::End { record: &begun, attempts: 2, ending: Ending::Finished };
    for (part, expected) in [
        // It has not begun.
        (first, PartOutcome::TooEarly),
        (begin, PartOutcome::Stored),
        (begin, PartOutcome::Duplicate),
        (second, PartOutcome::TooEarly),
        (first, PartOutcome::Stored),
        (first, PartOutcome::Duplicate),
        // An end that overtakes the second trial waits for it.
        (end, PartOutcome::TooEarly),
        (second, PartOutcome::Stored),
        (end, PartOutcome::Stored),
        (end, PartOutcome::Duplicate),
        (second, PartOutcome::Duplicate),
    ] {
        assert_eq!(store.ingest_parts(&[part]).expect("ingested"), [expected], "{part:?}");
    }
    assert_eq!(store.load("one").expect("load"), whole);
    let row = store.row("one").expect("row");
    assert_eq!((row.trials, row.attempts), (2, 2));

    let other = Record { trials: vec![trial(5)], ..pair_record("two", "a", "b", START + 1) };
    let batch = [(&other, Ending::Finished), (&whole, Ending::Finished), (&other, Ending::Finished)];
    assert_eq!(store.ingest_records(&batch).expect("batch"), [true, false, false]);
    assert_eq!(store.ingest_records(&batch).expect("batch again"), [false, false, false]);
    assert_eq!(store.load("two").expect("load"), other);
    assert_eq!(store.count(&Query::default()).expect("count"), 2);
}

/// Returns the part of a trial of `record`.
fn trial_part<'a>(record: &'a Record, number: u32, summary: &'a RunSummary) -> IngestPart<'a> {
    IngestPart::Trial { record: &record.id, number, result: &record.trials[number as usize], summary }
}

/// Parts of several runs arrive together: new runs, runs that have begun, parts that come twice or too early.
fn parts_of_a_batch_are_stored_as_one_by_one(place: &Place<'_>) {
    let store = place.open();
    let mut records = Vec::new();
    for (number, id) in (0..).zip(["old", "new", "late"]) {
        let begun = pair_record(id, "a", "b", START + number);
        records.push(Record { trials: vec![trial(number), trial(number + 10)], ..begun });
    }
    let [old, new, late] = &records[..] else { unreachable!("three records") };
    let summary = summary(1.0);
    let begun = [IngestPart::Begin(old), trial_part(old, 0, &summary), IngestPart::Begin(late)];
    assert_eq!(store.ingest_parts(&begun).expect("ingested"), [PartOutcome::Stored; 3]);

    let parts = [
        (trial_part(old, 0, &summary), PartOutcome::Duplicate),
        (IngestPart::Begin(new), PartOutcome::Stored),
        (trial_part(old, 1, &summary), PartOutcome::Stored),
        (trial_part(new, 0, &summary), PartOutcome::Stored),
        (trial_part(late, 0, &summary), PartOutcome::Stored),
        (trial_part(new, 0, &summary), PartOutcome::Duplicate),
        (IngestPart::End { record: old, attempts: 2, ending: Ending::Interrupted }, PartOutcome::Stored),
        (trial_part(new, 1, &summary), PartOutcome::Stored),
        (IngestPart::End { record: late, attempts: 2, ending: Ending::Finished }, PartOutcome::TooEarly),
        (IngestPart::End { record: new, attempts: 2, ending: Ending::Finished }, PartOutcome::Stored),
    ];
    let expected = parts.map(|(_, outcome)| outcome);
    assert_eq!(store.ingest_parts(&parts.map(|(part, _)| part)).expect("ingested"), expected);
    assert_eq!(store.load("old").expect("load"), *old);
    assert_eq!(store.load("new").expect("load"), *new);
    assert_eq!(store.load("late").expect("load").trials, late.trials[..1]);
    let mut rows = Vec::new();
    for id in ["old", "new", "late"] {
        let row = store.row(id).expect("row");
        rows.push((row.state, row.trials, row.attempts));
    }
    assert_eq!(rows, [(State::Interrupted, 2, 2), (State::Finished, 2, 2), (State::Running, 1, 1)]);

    let rest = [trial_part(late, 1, &summary), IngestPart::End { record: late, attempts: 2, ending: Ending::Finished }];
    assert_eq!(store.ingest_parts(&rest).expect("ingested"), [PartOutcome::Stored; 2]);
    assert_eq!(store.load("late").expect("load"), *late);
}

/// Two programs take the same messages at once, as after a lost acknowledgement.
fn two_programs_store_the_same_messages_once(place: &Place<'_>) {
    drop(place.open());
    let mut records = Vec::new();
    for number in 0..60_u64 {
        let (from, to) = (format!("h{}", number % 4), format!("h{}", (number + 1) % 4));
        let measured = pair_record(&format!("run-{number:02}"), &from, &to, START + number * HOUR_NS / 20);
        records.push(Record { trials: vec![trial(number)], ..measured });
    }
    let stored: usize = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..2)
            .map(|writer| {
                let mut records: Vec<&Record> = records.iter().collect();
                if writer == 1 {
                    records.reverse();
                }
                scope.spawn(move || {
                    let store = place.open();
                    let batches = records.chunks(7).map(|batch| {
                        let batch: Vec<(&Record, Ending)> =
                            batch.iter().map(|record| (*record, Ending::Finished)).collect();
                        store.ingest_records(&batch).expect("stored").into_iter().filter(|stored| *stored).count()
                    });
                    batches.sum::<usize>()
                })
            })
            .collect();
        writers.into_iter().map(|writer| writer.join().expect("it ends")).sum()
    });
    assert_eq!(stored, 60);
    for table in ["run", "plan", "trial", "found"] {
        assert_eq!(place.selected(&format!("SELECT count(*) FROM {table}")), "60", "{table}");
    }
}

/// A trial of one path that reached so many bits a second.
fn measured_trial(record: &Record, payload_bps: u64) -> TrialResult {
    let window = Nanos::from_secs(1);
    let payload_bytes = payload_bps / 8;
    let sent = Sent { window, payload_bytes, ..Sent::default() };
    let received = Received { window, payload_bytes, ..Received::default() };
    let path = PathCounts {
        client: EndCounts { sent: Some(sent), ..EndCounts::default() },
        server: EndCounts { received: Some(received), ..EndCounts::default() },
        forward_loss: None,
        backward_loss: None,
    };
    TrialResult {
        standing: Standing::Counted,
        started_unix_ns: 1,
        counts: vec![Counts::Flows(vec![path])],
        ..TrialResult::failed(record.plan.cells()[0].clone(), 0, "")
    }
}

/// The results that are sent with a record decide the value of its pair.
fn ingested_records_are_results_of_pairs(place: &Place<'_>) {
    let store = place.open();
    let mut records = Vec::new();
    for (id, start, payload_bps) in [("one", START, 8_000_000), ("two", START + 1, 4_000_000)] {
        let mut record = pair_record(id, "a", "b", start);
        record.trials.push(measured_trial(&record, payload_bps));
        linerate_method::replay(&mut record);
        records.push(record);
    }
    let begin = [IngestPart::Begin(&records[0])];
    assert_eq!(store.ingest_parts(&begin).expect("begin"), [PartOutcome::Stored]);
    assert!(store.tests().expect("tests").is_empty(), "it has not ended");
    let batch: Vec<(&Record, Ending)> = records.iter().map(|record| (record, Ending::Finished)).collect();
    assert_eq!(store.ingest_records(&batch).expect("stored"), [true, true]);
    assert_eq!(cells(&store, Level::Host), ["a b 4000000 1 2"]);
    let changes = store.changed_since(0, 9).expect("changes");
    let changed: Vec<_> = changes.iter().map(|change| (change.record.0.as_str(), change.value_before)).collect();
    assert_eq!(changed, [("two", Some(8_000_000.0))]);
    let row = store.row("one").expect("row");
    assert_eq!(row.headline.expect("a headline").value, 8_000_000.0);
    assert_eq!(store.load("two").expect("load"), records[1]);
}

on_both_backends!(
    newest_results_are_the_cells_of_a_matrix,
    runs_without_one_path_are_no_results_of_pairs,
    a_cell_of_sites_is_its_worst_pair,
    history_and_changes_follow_the_results,
    old_records_go_and_their_sums_stay,
    messages_that_come_twice_are_stored_once,
    parts_of_a_batch_are_stored_as_one_by_one,
    two_programs_store_the_same_messages_once,
    ingested_records_are_results_of_pairs,
);
