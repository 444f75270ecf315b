//! Records are found by what they are about, in new stores and in those of the format before.

use linerate_model::{Caveat, CaveatKind, Plan, Record, RecordId, Repeats};
use linerate_store::{Query, Stage, Store};
use std::time::{SystemTime, UNIX_EPOCH};
use tempfile::TempDir;

/// The tables as format 1 had them.
const FORMAT_1: &str = "
    CREATE TABLE record (id TEXT PRIMARY KEY, started_unix_ns INTEGER NOT NULL, command TEXT NOT NULL,
        cells INTEGER NOT NULL, trials INTEGER NOT NULL, finished INTEGER NOT NULL) STRICT;
    CREATE INDEX record_by_start ON record (started_unix_ns, id);
    CREATE TABLE content (record TEXT PRIMARY KEY REFERENCES record (id) ON DELETE CASCADE, body TEXT NOT NULL) STRICT;
    CREATE TABLE trial (record TEXT NOT NULL REFERENCES record (id) ON DELETE CASCADE, number INTEGER NOT NULL,
        body TEXT NOT NULL, UNIQUE (record, number)) STRICT;
    PRAGMA application_id = 0x6c6e7274;
    PRAGMA user_version = 1;
";

fn record(id: &str, started_unix_ns: u64, command: &str) -> Record {
    Record {
        version: "0.1.0".into(),
        command: command.split_whitespace().map(str::to_owned).collect(),
        study: None,
        started_unix_ns,
        ..Record::new(RecordId(id.into()), Plan::of(Vec::new(), Repeats::Times(3)))
    }
}

fn folder() -> TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

fn text_query(text: &str) -> Query {
    Query::text(text).expect("few words")
}

fn names(store: &Store, query: &Query) -> Vec<String> {
    let found: Vec<String> = store.find(query, 0, 100).expect("find").into_iter().map(|listed| listed.id.0).collect();
    assert_eq!(store.count(query).expect("count"), found.len());
    found
}

#[test]
fn records_are_found_by_words_kind_time_and_end() {
    let folder = folder();
    let store = Store::open(Some(&folder.path().join("s.db"))).expect("opens");
    for (id, start, command, complete) in [
        ("20261120T01-aaaa", 10, "linerate stream alpha beta --udp", true),
        ("20261120T02-bbbb", 20, "linerate transact Alpha gamma", true),
        ("20261120T03-cccc", 30, "linerate device throughput --ports eth1,100%", false),
        ("20261120T04-dddd", 40, "linerate lab -- stream a b", true),
    ] {
        let record = record(id, start, command);
        store.begin(&record).expect("begin");
        store.finish(&record, complete).expect("finish");
    }
    let all = ["20261120T04-dddd", "20261120T03-cccc", "20261120T02-bbbb", "20261120T01-aaaa"];
    assert_eq!(names(&store, &Query::default()), all, "newest first");
    for (text, expected) in [
        ("alpha", &[all[2], all[3]][..]),
        ("ALPHA udp", &[all[3]]),
        ("udp alpha", &[all[3]]),
        ("alpha nosuch", &[]),
        // Nothing in a word means something to the database.
        ("100%", &[all[1]]),
        ("%", &[all[1]]),
        ("' OR 1=1 --", &[]),
        ("t02-b", &[all[2]]),
    ] {
        assert_eq!(names(&store, &text_query(text)), expected, "{text}");
    }
    let error = Query::text(&"word ".repeat(33)).expect_err("too many").to_string();
    assert!(error.contains("33 words") && error.contains("32"), "{error}");
    assert!(names(&store, &Query::text(&"x ".repeat(32)).expect("as many as may be")).is_empty());
    let kind = Query { kind: Some("stream".into()), ..Query::default() };
    assert_eq!(names(&store, &kind), [all[0], all[3]]);
    assert_eq!(store.kinds().expect("kinds"), ["device", "stream", "transact"]);
    let time = Query { from_unix_ns: Some(20), until_unix_ns: Some(40), ..Query::default() };
    assert_eq!(names(&store, &time), [all[1], all[2]]);
    let unfinished = Query { finished: Some(false), ..Query::default() };
    assert_eq!(names(&store, &unfinished), [all[1]]);
    let page: Vec<_> =
        store.find(&Query::default(), 1, 2).expect("find").into_iter().map(|listed| listed.id.0).collect();
    assert_eq!(page, [all[1], all[2]]);
    assert!(store.find(&Query::default(), usize::MAX, usize::MAX).expect("find").is_empty());
}

#[test]
fn a_run_is_under_way_until_it_ends_or_says_that_it_was_interrupted() {
    let folder = folder();
    let store = Store::open(Some(&folder.path().join("s.db"))).expect("opens");
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_nanos() as u64;
    let stage = || store.listed("one").expect("listed").stage(now());
    let mut run = record("one", 1, "linerate device throughput");
    store.begin(&run).expect("begin");
    assert_eq!(stage(), Stage::UnderWay);
    // A device test writes all it has so far after each trial.
    store.finish(&run, false).expect("finish");
    assert_eq!(stage(), Stage::UnderWay);
    run.caveats.push(Caveat::new(CaveatKind::Interrupted, "the run ended early: interrupted"));
    store.finish(&run, false).expect("finish");
    assert_eq!(stage(), Stage::EndedEarly);
    run.caveats.clear();
    store.finish(&run, true).expect("finish");
    assert_eq!(stage(), Stage::Finished);
}

#[test]
fn a_store_of_format_1_is_taken_over_with_all_its_records() {
    let folder = folder();
    let path = folder.path().join("old.db");
    let old = rusqlite::Connection::open(&path).expect("open");
    old.execute_batch(FORMAT_1).expect("tables");
    for (id, finished, body) in [("whole", 1, Some(())), ("broken", 0, None)] {
        let record = record(id, 5, "linerate stream alpha beta");
        let mut text = serde_json::to_value(&record).expect("JSON");
        text["hosts"] = serde_json::json!([{"name": "Gatehouse"}]);
        text["plan"]["cells"] = serde_json::json!([{"name": "udp 1472"}]);
        let command = serde_json::to_string(&record.command).expect("JSON");
        old.execute("INSERT INTO record VALUES (?, 5, ?, 1, 0, ?)", rusqlite::params![id, command, finished])
            .expect("row");
        let body = body.map_or("{ broken".to_owned(), |()| text.to_string());
        old.execute("INSERT INTO content VALUES (?, ?)", [id, &body]).expect("row");
    }
    drop(old);
    let store = Store::open(Some(&path)).expect("opens");
    assert_eq!(names(&store, &text_query("gatehouse 1472")), ["whole"]);
    let mut both = names(&store, &Query { kind: Some("stream".into()), ..text_query("alpha") });
    both.sort();
    assert_eq!(both, ["broken", "whole"]);
    assert_eq!(store.listed("whole").expect("listed").stage(u64::MAX), Stage::Finished);
    assert_eq!(store.listed("broken").expect("listed").stage(u64::MAX), Stage::EndedEarly);
    drop(store);
    assert_eq!(Store::open(Some(&path)).expect("opens again").list(9).expect("list").len(), 2);
}
