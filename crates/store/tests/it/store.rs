//! Records come back as they were stored, under names that may be shortened.

use crate::place::{Place, on_both_backends};
use crate::sample::{folder, open, record, summary, trial};
use linerate_model::{Caveat, CaveatKind, Message, RecordId, RunSummary};
use linerate_store::{Ending, Query, State, Store, StoreError, StoreLocation};
use linerate_testsuite::files::mode;
use std::path::Path;

#[test]
fn folders_are_made_for_the_owner_alone() {
    let folder = folder();
    drop(open(&folder.path().join("new/deep/results.db")));
    assert_eq!(mode(&folder.path().join("new/deep")), 0o700);
}

fn a_record_comes_back_as_it_was_stored(place: &Place<'_>) {
    let store = place.open();
    let mut whole = record("20261121T093000-4f2a", 1_795_253_400_123_456_789);
    whole.caveats.push(Caveat::new(CaveatKind::NotCalibrated, Message::untranslated("known before it began")));
    let mut live = store.begin(&whole).expect("begin");
    for number in 0..3 {
        whole.trials.push(trial(number));
        live.trial(&whole.trials[number as usize], &summary(1.0 / 3.0)).expect("trial");
        assert_eq!(store.load("latest").expect("load"), whole, "while it runs");
    }
    whole.caveats = vec![Caveat::new(CaveatKind::FewRuns, Message::untranslated("three runs"))];
    live.end(&whole, Ending::Finished).expect("end");

    assert_eq!(store.load(&whole.id.0).expect("load"), whole);
    drop(store);
    let again = place.open();
    assert_eq!(again.load("latest").expect("load"), whole);
    let rows = again.list(&Query::default(), 0, 10).expect("list");
    let [row] = &rows[..] else { panic!("one row: {rows:?}") };
    assert_eq!((row.state, row.results, row.trials, row.attempts), (State::Finished, 1, 3, 3));
    assert_eq!((&row.command, row.started_unix_ns), (&whole.command, whole.started_unix_ns));
    let RunSummary { headline, verdict, .. } = summary(1.0 / 3.0);
    assert_eq!((&row.headline, &row.verdict), (&headline, &verdict));
}

fn names_may_be_shortened_while_unmistakable(place: &Place<'_>) {
    let store = place.open();
    assert_eq!(store.latest().expect("latest"), None);
    assert!(matches!(store.load("latest"), Err(StoreError::Unknown { .. })));
    for (id, started) in [("20261121-aa", 1), ("20261121-aab", 3), ("20261122-%_", 2)] {
        store.begin(&record(id, started)).expect("begin");
    }
    assert_eq!(store.resolve("20261122").expect("one").0, "20261122-%_");
    assert_eq!(store.resolve("20261121-aa").expect("a whole name").0, "20261121-aa");
    assert_eq!(store.latest().expect("latest"), Some(RecordId("20261121-aab".into())));
    let order: Vec<_> = store.list(&Query::default(), 0, 2).expect("list").into_iter().map(|row| row.id.0).collect();
    assert_eq!(order, ["20261121-aab", "20261122-%_"]);

    let ambiguous = store.resolve("20261121").expect_err("two").to_string();
    assert!(ambiguous.contains("20261121-aa, 20261121-aab"), "{ambiguous}");
    for name in ["", "2027", "%", "2026112_"] {
        let unknown = store.resolve(name).expect_err(name).to_string();
        assert!(unknown.contains("linerate results list"), "{unknown}");
    }
    assert!(matches!(store.begin(&record("20261121-aa", 9)), Err(StoreError::Exists { .. })));
}

fn a_deleted_record_is_gone_with_all_that_belongs_to_it(place: &Place<'_>) {
    let store = place.open();
    for id in ["one", "two"] {
        let mut live = store.begin(&record(id, 1)).expect("begin");
        live.trial(&trial(1), &summary(1.0)).expect("trial");
        live.end(&record(id, 1), Ending::Finished).expect("end");
    }
    assert_eq!(store.delete("on").expect("delete").0, "one");
    assert!(matches!(store.load("one"), Err(StoreError::Unknown { .. })));
    assert!(matches!(store.delete("one"), Err(StoreError::Unknown { .. })));
    assert_eq!(store.load("two").expect("the other stays").trials.len(), 1);
    for table in ["run", "plan", "trial", "found"] {
        assert_eq!(place.selected(&format!("SELECT count(*) FROM {table}")), "1", "{table}");
    }
    // Were trials of the deleted record left, a new one of its name would have them.
    drop(store.begin(&record("one", 1)).expect("begin"));
    assert_eq!(store.load("one").expect("load").trials.len(), 0);
}

#[test]
fn other_files_are_refused_and_left_alone() {
    let folder = folder();
    let text = folder.path().join("notes.txt");
    std::fs::write(&text, "not a database, but long enough to have a header of one hundred bytes. ".repeat(9))
        .expect("write");
    let before = std::fs::read(&text).expect("read");
    let error = Store::open(&StoreLocation::file(&text)).err().expect("no store").to_string();
    assert!(error.contains("notes.txt is not a linerate store") && error.contains("--store"), "{error}");
    assert_eq!(std::fs::read(&text).expect("read"), before);

    let other = folder.path().join("other.db");
    let connection = rusqlite::Connection::open(&other).expect("open");
    connection.execute_batch("CREATE TABLE theirs (x)").expect("create");
    drop(connection);
    let before = std::fs::read(&other).expect("read");
    assert!(matches!(Store::open(&StoreLocation::file(&other)), Err(StoreError::NotAStore { .. })));
    assert_eq!(std::fs::read(&other).expect("read"), before);
}

#[test]
fn another_format_is_refused_and_left_alone() {
    let folder = folder();
    let path = open(&folder.path().join("results.db")).file().expect("a file").to_owned();
    for format in [3, 99] {
        let connection = rusqlite::Connection::open(&path).expect("open");
        connection.pragma_update(None, "user_version", format).expect("pragma");
        drop(connection);
        let before = std::fs::read(&path).expect("read");
        let error = Store::open(&StoreLocation::file(&path)).err().expect("another format").to_string();
        assert!(error.contains(&format!("has format {format}, and this linerate reads 5 alone")), "{error}");
        assert!(error.contains("--store: nothing was changed"), "{error}");
        assert_eq!(std::fs::read(&path).expect("read"), before);
    }
}

fn record_of_another_format_is_refused_and_left_alone(place: &Place<'_>) {
    let store = place.open();
    drop(store.begin(&record("20261121-aa", 1)).expect("begin"));
    let other = "linerate.record/1";
    place.sql(&format!("UPDATE plan SET body = replace(body, '{}', '{other}')", linerate_model::SCHEMA));
    let body = place.selected("SELECT body FROM plan");
    for error in [store.load("latest").err(), store.resume("latest").err()] {
        let error = error.expect("another format").to_string();
        let format = format!("has format {other}, and this linerate reads {} alone", linerate_model::SCHEMA);
        assert!(error.contains(&format), "{error}");
        assert!(error.contains("use linerate 0.1.0, which wrote it, or measure again"), "{error}");
        assert_eq!(place.selected("SELECT body FROM plan"), body);
    }
}

/// Format 4 had no results of pairs, and neither the key of a command nor the name of a limit apart.
#[test]
fn store_of_format_4_is_migrated() {
    let place = Place::file();
    let store = place.open();
    for (id, start) in [("one", 1), ("two", 2)] {
        let mut live = store.begin(&record(id, start)).expect("begin");
        live.trial(&trial(1), &summary(1.0)).expect("trial");
        live.end(&record(id, start), Ending::Finished).expect("end");
    }
    drop(store);
    place.sql(
        "DROP TABLE pair_result; DROP TABLE pair_latest; DROP TABLE pair_hour; DROP TABLE pair_axis; DROP TABLE site_latest;
         DROP TABLE site_hour; DROP TABLE fleet_host; DROP INDEX run_by_limit; DROP INDEX run_by_command;
         ALTER TABLE run DROP COLUMN command_key; ALTER TABLE run DROP COLUMN limit_name;
         CREATE INDEX run_by_limit ON run (verdict ->> '$.limit', started_unix_ns, id);
         CREATE INDEX run_by_command ON run (json_remove(command, '$[0]'), started_unix_ns, id);
         PRAGMA user_version = 4",
    );
    let store = place.open();
    assert_eq!(store.load("one").expect("load").trials.len(), 1);
    let two = store.row("two").expect("row");
    assert_eq!(store.before(&two).expect("before").expect("a run").id.0, "one");
    let wire = Query { limit: Some(linerate_model::Limit::Wire), ..Query::default() };
    assert_eq!(store.count(&wire).expect("count"), 2);
    assert!(store.tests().expect("tests").is_empty());
    store.begin(&record("three", 3)).expect("begin").end(&record("three", 3), Ending::Finished).expect("end");
    assert_eq!(place.selected("SELECT user_version FROM pragma_user_version"), "5");
}

#[test]
fn a_file_cut_short_is_refused() {
    let folder = folder();
    let path = folder.path().join("results.db");
    let store = open(&path);
    let mut live = store.begin(&record("one", 1)).expect("begin");
    for number in 0..50 {
        live.trial(&trial(number), &summary(1.0)).expect("trial");
    }
    live.end(&record("one", 1), Ending::Finished).expect("end");
    drop(store);
    let whole = std::fs::read(&path).expect("read");
    assert!(whole.len() > 20_000, "{}", whole.len());
    for length in [whole.len() - 1, whole.len() / 2, 8192, 4096, 1000, 100, 50, 10] {
        let short = folder.path().join(format!("short-{length}.db"));
        std::fs::write(&short, &whole[..length]).expect("write");
        let error = Store::open(&StoreLocation::file(&short))
            .err()
            .unwrap_or_else(|| panic!("{length} of {} bytes", whole.len()));
        let expected = matches!(error, StoreError::Damaged { .. } | StoreError::NotAStore { .. });
        assert!(expected && error.to_string().contains("--store"), "{length}: {error:?}");
        assert_eq!(std::fs::read(&short).expect("read"), whole[..length], "{length}: left alone");
    }
}

#[test]
fn places_that_cannot_be_written_are_named() {
    // No one may make files there, not even root.
    for path in ["/proc/linerate/results.db", "/proc/results.db"] {
        let error = Store::open(&StoreLocation::file(Path::new(path))).err().expect(path).to_string();
        assert!(error.contains("/proc") && error.contains("--store"), "{error}");
    }
    let folder = folder();
    let error = Store::open(&StoreLocation::file(folder.path())).err().expect("a folder is no file").to_string();
    assert!(error.contains(&*folder.path().to_string_lossy()), "{error}");
}

on_both_backends!(
    a_record_comes_back_as_it_was_stored,
    names_may_be_shortened_while_unmistakable,
    a_deleted_record_is_gone_with_all_that_belongs_to_it,
    record_of_another_format_is_refused_and_left_alone,
);
