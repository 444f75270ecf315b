//! Runs are found by what they are about.

use crate::place::{Place, on_both_backends};
use crate::sample::{folder, open, record};
use linerate_model::{Record, StudyRun};
use linerate_store::{Ending, Query, RunRow, State, Store};
use std::collections::BTreeMap;

fn text_query(text: &str) -> Query {
    Query::text(text).expect("few words")
}

fn names(store: &Store, query: &Query) -> Vec<String> {
    let found: Vec<String> = store.list(query, 0, 100).expect("find").into_iter().map(|listed| listed.id.0).collect();
    assert_eq!(store.count(query).expect("count"), found.len());
    found
}

fn records_are_found_by_words_kind_time_and_end(place: &Place<'_>) {
    let store = place.open();
    for (id, start, command, complete) in [
        ("20261120T01-aaaa", 10, "linerate stream alpha beta --zerocopy", true),
        ("20261120T02-bbbb", 20, "linerate transact Alpha gamma", true),
        ("20261120T03-cccc", 30, "linerate device throughput --ports eth1,100%", false),
        ("20261120T04-dddd", 40, "linerate lab -- stream a b", true),
    ] {
        let record = Record { command: command.split_whitespace().map(str::to_owned).collect(), ..record(id, start) };
        let live = store.begin(&record).expect("begin");
        live.end(&record, if complete { Ending::Finished } else { Ending::Failed }).expect("end");
    }
    let all = ["20261120T04-dddd", "20261120T03-cccc", "20261120T02-bbbb", "20261120T01-aaaa"];
    assert_eq!(names(&store, &Query::default()), all, "newest first");
    for (text, expected) in [
        ("alpha", &[all[2], all[3]][..]),
        ("ALPHA zerocopy", &[all[3]]),
        ("zerocopy alpha", &[all[3]]),
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
    let unfinished = Query { states: vec![State::Failed, State::Killed], ..Query::default() };
    assert_eq!(names(&store, &unfinished), [all[1]]);
    let page: Vec<_> =
        store.list(&Query::default(), 1, 2).expect("find").into_iter().map(|listed| listed.id.0).collect();
    assert_eq!(page, [all[1], all[2]]);
    assert!(store.list(&Query::default(), usize::MAX, usize::MAX).expect("find").is_empty());
}

fn a_study_has_its_finished_runs_alone(place: &Place<'_>) {
    let store = place.open();
    let of = |study: &str| {
        Some(StudyRun { study: study.into(), levels: BTreeMap::new(), repeat: 1, test: None, set: Vec::new() })
    };
    for (id, study, ending) in [
        ("a", of("lab"), Ending::Finished),
        ("b", of("lab-devices"), Ending::Finished),
        ("c", of("lab"), Ending::Interrupted),
        ("d", None, Ending::Finished),
        ("e", of("lab"), Ending::Finished),
    ] {
        let record = Record { study, ..record(id, 5) };
        store.begin(&record).expect("begin").end(&record, ending).expect("end");
    }
    let found = |name, limit| -> Vec<String> {
        store.of_study(name, limit).expect("reads").into_iter().map(|record| record.id.0).collect()
    };
    assert_eq!(found("lab", usize::MAX), ["e", "a"]);
    assert_eq!(found("lab", 1), ["e"]);
    assert_eq!(found("lab-devices", 9), ["b"]);
    assert!(found("la", 9).is_empty());
    assert_eq!(store.row("c").expect("a row").study.as_deref(), Some("lab"));
    assert_eq!(names(&store, &text_query("study:lab")), ["e", "c", "b", "a"], "as words, any that begins so");
}

/// The newest finished runs with the same arguments, with what measured them; the program's own path does not matter.
fn the_runs_of_a_command_come_in_their_order_with_what_measured_them(place: &Place<'_>) {
    let store = place.open();
    let keep = |id: &str, start, command: &str, ending| {
        let command = command.split_whitespace().map(str::to_owned).collect();
        let record = Record { version: format!("0.{start}.0"), command, ..record(id, start) };
        store.begin(&record).expect("begin").end(&record, ending).expect("end");
    };
    keep("b", 20, "/opt/linerate stream a b", Ending::Finished);
    keep("a", 10, "linerate stream a b", Ending::Finished);
    keep("other", 15, "linerate stream a b --udp", Ending::Finished);
    keep("stopped", 17, "linerate stream a b", Ending::Interrupted);
    keep("c", 30, "linerate stream a b", Ending::Finished);
    keep("later", 40, "linerate stream a b", Ending::Finished);
    let change = |id: &str, body: &str| {
        place.sql(&format!("UPDATE plan SET body = '{body}' WHERE run = (SELECT number FROM run WHERE id = '{id}')"));
    };
    let hosts = r#"[{"name":"alpha","system":"Linux 6.1"},{"name":"beta"},{"system":"x"},7]"#;
    change("b", &format!(r#"{{"version":"9","hosts":{hosts}}}"#));
    change("later", "no JSON");
    let runs = store.of_command(&store.row("stopped").expect("a row"), 3).expect("runs");
    let found: Vec<(&str, &str)> = runs.iter().map(|run| (run.row.id.0.as_str(), run.version.as_str())).collect();
    assert_eq!(found, [("b", "9"), ("c", "0.30.0"), ("later", "")], "the newest three, the oldest of them first");
    let systems: Vec<String> = runs[0].systems.iter().map(|(host, system)| format!("{host}: {system}")).collect();
    assert_eq!(systems, ["alpha: Linux 6.1"]);
}

/// A later version of linerate may write figures, limits and formats that this one does not know into a store of the same format.
fn what_a_later_version_wrote_is_listed_and_refused_in_words(place: &Place<'_>) {
    let store = place.open();
    let record = record("run", 1);
    store.begin(&record).expect("begin").end(&record, Ending::Finished).expect("end");
    let body = place.selected("SELECT body FROM plan").replace(linerate_model::SCHEMA, "linerate.record/99");
    place.sql(&format!(
        r#"UPDATE run SET headline = '{{"result":"x","quantity":"colour"}}', verdict = '{{"limit":"moon","confidence":"high"}}';
           UPDATE plan SET body = '{body}'"#
    ));
    let row = store.row("run").expect("it is listed");
    assert_eq!((row.headline, row.verdict), (None, None));
    let error = store.load("run").expect_err("of a later format").to_string();
    for part in ["record run", "linerate.record/99", "this linerate reads linerate.record/2", "use linerate"] {
        assert!(error.contains(part), "{part}: {error}");
    }
}

#[test]
fn a_hundred_thousand_records_are_listed() {
    let folder = folder();
    let store = open(&folder.path().join("results.db"));
    drop(store.begin(&record("first", 0)).expect("begin"));
    let connection = rusqlite::Connection::open(store.file().expect("a file")).expect("open");
    connection
        .execute_batch(
            "BEGIN;
             WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000)
             INSERT INTO run (id, started_unix_ns, changed_unix_ns, command, kind, search_text, state, locked, boot, results, trials,
                              attempts, changed, command_key)
             SELECT printf('%08x', (i * 40503) % 4294967296), i, i, command, CASE i % 10 WHEN 0 THEN 'device' ELSE 'stream' END,
                    printf('host-%d udp', i % 1000), 'finished', 1, '', 3, 9, 9, i % 10 = 0, command_key
             FROM n, run WHERE id = 'first';
             INSERT OR IGNORE INTO plan SELECT number, printf('%.2000c', 'x') FROM run;
             COMMIT",
        )
        .expect("fill");
    let start = std::time::Instant::now();
    let newest = store.list(&Query::default(), 0, 20).expect("list");
    println!("list of 20: {:?}", start.elapsed());
    assert_eq!((newest.len(), newest[0].started_unix_ns), (20, 100_000));
    let start = std::time::Instant::now();
    let all = store.list(&Query::default(), 0, usize::MAX).expect("list");
    println!("list of all: {:?}", start.elapsed());
    assert_eq!(all.len(), 100_001);
    let name = &all[5000].id.0;
    let start = std::time::Instant::now();
    assert_eq!(&store.resolve(name).expect("resolve").0, name);
    println!("resolve: {:?}", start.elapsed());
    let (words, kind) =
        (Query::text("HOST-77 udp").expect("few words"), Query { kind: Some("device".into()), ..Query::default() });
    let start = std::time::Instant::now();
    // 77 and 770 to 779 of each thousand.
    assert_eq!((store.count(&words).expect("count"), store.list(&words, 0, 50).expect("find").len()), (1_100, 50));
    println!("count and find by words: {:?}", start.elapsed());
    let start = std::time::Instant::now();
    assert_eq!((store.count(&kind).expect("count"), store.kinds().expect("kinds").len()), (10_000, 2));
    println!("count by kind, and kinds: {:?}", start.elapsed());
    let start = std::time::Instant::now();
    let changed = Query { changed: true, ..kind };
    assert_eq!(
        (store.count(&changed).expect("count"), store.list(&changed, 9_990, 50).expect("find").len()),
        (10_000, 10)
    );
    println!("count and last page of those that changed: {:?}", start.elapsed());
    let start = std::time::Instant::now();
    assert_eq!(store.list(&Query::default(), 99_990, 50).expect("find").len(), 11);
    println!("the last page: {:?}", start.elapsed());
    let start = std::time::Instant::now();
    // Only runs of a kind are neighbours, and every tenth is of another one.
    let alike = |run: &RunRow, at: u64| at.is_multiple_of(10) == run.started_unix_ns.is_multiple_of(10);
    for run in &all[..50] {
        let begun = |run: &RunRow| run.started_unix_ns;
        let (earlier, later) = ((0..begun(run)).rev(), begun(run) + 1..=100_000);
        let earlier: Vec<u64> = earlier.filter(|at| alike(run, *at)).take(3).collect();
        let found = store.earlier(run, 3).expect("earlier");
        assert_eq!(found.iter().map(begun).collect::<Vec<_>>(), earlier);
        assert_eq!(store.before(run).expect("before").as_ref().map(begun), earlier.first().copied());
        let next = later.into_iter().find(|at| alike(run, *at));
        assert_eq!(store.after(run).expect("after").as_ref().map(begun), next);
    }
    println!("neighbours of 50: {:?}", start.elapsed());
}

/// Plans that are damaged, too long, or of another version have no hosts, and do not prevent the list.
fn hosts_of_listed_runs_are_read_from_their_plans(place: &Place<'_>) {
    let store = place.open();
    for id in ["both", "none", "damaged", "other", "long"] {
        drop(store.begin(&record(id, 1)).expect("begin"));
    }
    let write = |id: &str, body: &str| {
        place.sql(&format!("UPDATE plan SET body = '{body}' WHERE run = (SELECT number FROM run WHERE id = '{id}')"));
    };
    write("both", r#"{"hosts":[{"name":"zeta"},{"name":"alpha"}]}"#);
    write("none", r#"{"hosts":[]}"#);
    write("damaged", r#"{"hosts":[{"name":"x"}"#);
    write("other", r#"{"hosts":[7,{"name":8},{"title":"x"},{"name":"kept"}]}"#);
    write("long", &format!(r#"{{"hosts":[{{"name":"x"}}],"y":"{}"}}"#, "y".repeat(128 << 10)));
    let runs = store.list(&Query::default(), 0, 10).expect("list");
    let hosts: Vec<(String, Vec<String>)> =
        store.hosts(&runs).expect("hosts").into_iter().map(|(id, names)| (id.0, names)).collect();
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    assert_eq!(hosts, [("both".to_owned(), names(&["zeta", "alpha"])), ("other".to_owned(), names(&["kept"]))]);
    assert!(store.hosts(&[]).expect("no runs").is_empty());
}

on_both_backends!(
    records_are_found_by_words_kind_time_and_end,
    a_study_has_its_finished_runs_alone,
    the_runs_of_a_command_come_in_their_order_with_what_measured_them,
    what_a_later_version_wrote_is_listed_and_refused_in_words,
    hosts_of_listed_runs_are_read_from_their_plans,
);
