//! Stores of formats 1 and 2 become stores of this format, and nothing is lost.

use crate::sample::{folder, open, record, trial};
use linerate_model::{Caveat, CaveatKind, Message, Record};
use linerate_store::{Query, State, Store, StoreError};
use rusqlite::{Connection, params};
use std::path::Path;

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

/// What format 2 added.
const FORMAT_2: &str = "
    ALTER TABLE record ADD COLUMN kind TEXT NOT NULL DEFAULT '';
    ALTER TABLE record ADD COLUMN words TEXT NOT NULL DEFAULT '';
    ALTER TABLE record ADD COLUMN ended INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE record ADD COLUMN changed_unix_ns INTEGER NOT NULL DEFAULT 0;
    CREATE INDEX record_by_kind ON record (kind, started_unix_ns, id);
    PRAGMA user_version = 2;
";

/// Writes a record as the old formats did, with three trials.
fn insert(old: &Connection, id: &str, started_unix_ns: i64, finished: bool, body: &str) {
    old.execute(
        "INSERT INTO record (id, started_unix_ns, command, cells, trials, finished) VALUES (?, ?, ?, 1, 3, ?)",
        params![id, started_unix_ns, r#"["linerate","stream","alpha","beta"]"#, finished],
    )
    .expect("row");
    old.execute("INSERT INTO content VALUES (?, ?)", [id, body]).expect("row");
    for number in 0..3_u64 {
        let body = serde_json::to_string(&trial(number)).expect("JSON");
        old.execute("INSERT INTO trial VALUES (?, ?, ?)", params![id, number as i64, body]).expect("row");
    }
}

/// An old store of three records: one that ended, one that was interrupted, and one that nobody can read.
fn old_store(path: &Path, format: i64) -> [Record; 2] {
    let old = Connection::open(path).expect("open");
    old.execute_batch(FORMAT_1).expect("tables");
    if format == 2 {
        old.execute_batch(FORMAT_2).expect("tables");
    }
    let whole = record("whole", 5);
    let mut stopped = record("stopped", 6);
    stopped.caveats.push(Caveat::new(CaveatKind::Interrupted, Message::untranslated("the run ended early")));
    for (record, finished) in [(&whole, true), (&stopped, false)] {
        let body = serde_json::to_string(record).expect("JSON");
        insert(&old, &record.id.0, record.started_unix_ns as i64, finished, &body);
    }
    insert(&old, "broken", 7, false, "{ broken");
    [whole, stopped].map(|record| Record { trials: (0..3).map(trial).collect(), ..record })
}

#[test]
fn an_old_store_is_taken_over_and_a_copy_of_it_kept() {
    for format in [1, 2] {
        let folder = folder();
        let path = folder.path().join("results.db");
        let [whole, stopped] = old_store(&path, format);
        let store = open(&path);
        assert_eq!(store.load("whole").expect("load"), whole);
        assert_eq!(store.load("stopped").expect("load"), stopped);
        let rows = store.list(&Query::default(), 0, 9).expect("list");
        let rows: Vec<_> = rows.iter().map(|row| (row.id.0.as_str(), row.state, row.trials)).collect();
        let [broken, stopped, whole] = rows[..] else { panic!("three rows: {rows:?}") };
        assert_eq!(broken, ("broken", State::Killed, 3));
        assert_eq!((stopped, whole), (("stopped", State::Interrupted, 3), ("whole", State::Finished, 3)));
        let found = store.list(&Query::text("alpha").expect("a word"), 0, 9).expect("list");
        assert_eq!(found.iter().map(|row| row.id.0.as_str()).collect::<Vec<_>>(), ["broken"], "by its command");
        let error = store.load("broken").expect_err("unreadable").to_string();
        assert!(error.contains("record broken") && error.contains("results.db"), "{error}");

        let copy = Connection::open(folder.path().join(format!("results.db.v{format}-backup"))).expect("the copy");
        let kept: i64 = copy
            .query_row("SELECT count(*) FROM record JOIN trial ON record = id", [], |row| row.get(0))
            .expect("rows");
        let text: String =
            copy.query_row("SELECT body FROM content WHERE record = 'broken'", [], |row| row.get(0)).expect("row");
        assert_eq!((kept, text.as_str()), (9, "{ broken"));
        assert_eq!(copy.pragma_query_value(None, "user_version", |row| row.get::<_, i64>(0)), Ok(format));

        drop(store);
        assert_eq!(open(&path).count(&Query::default()).expect("count"), 3);
        let files = std::fs::read_dir(folder.path()).expect("the folder").count();
        assert_eq!(files, 2, "the store and its copy, made once");
    }
}

/// A store from elsewhere may hold anything. An array where an object was due made the upgrade panic.
#[test]
fn a_record_whose_content_is_no_object_is_kept_and_said_to_be_unreadable() {
    for content in [r#"["a"]"#, "7", "null", r#""text""#] {
        let folder = folder();
        let path = folder.path().join("results.db");
        old_store(&path, 2);
        let old = Connection::open(&path).expect("open");
        old.execute("UPDATE content SET body = ? WHERE record = 'whole'", [content]).expect("a row");
        drop(old);
        let store = open(&path);
        assert_eq!(store.count(&Query::default()).expect("count"), 3, "{content}: nothing is lost");
        let error = store.load("whole").expect_err(content).to_string();
        assert!(error.contains("record whole") && error.contains("results.db"), "{error}");
    }
}

#[test]
fn an_interrupted_run_of_an_old_store_is_resumed() {
    let folder = folder();
    let path = folder.path().join("results.db");
    let [whole, stopped] = old_store(&path, 2);
    let store = open(&path);
    let (resumed, _live) = store.resume("stopped").expect("resume");
    assert_eq!(resumed.trials, stopped.trials);
    assert!(matches!(store.resume(&whole.id.0).map(drop), Err(StoreError::Finished { .. })));
    let error = store.resume("broken").map(drop).expect_err("unreadable");
    assert!(matches!(error, StoreError::Unreadable { .. }), "{error:?}");
    assert_eq!(store.row("broken").expect("a row").state, State::Killed, "as it was");
}

#[test]
fn a_copy_made_before_is_never_written_over() {
    let folder = folder();
    let path = folder.path().join("results.db");
    old_store(&path, 2);
    let first = folder.path().join("results.db.v2-backup");
    std::fs::write(&first, "mine").expect("write");
    open(&path);
    assert_eq!(std::fs::read(&first).expect("read"), b"mine");
    assert!(folder.path().join("results.db.v2-backup-2").exists());
}

#[test]
fn a_store_that_cannot_be_copied_stays_as_it_is() {
    let folder = folder();
    let path = folder.path().join("results.db");
    old_store(&path, 2);
    // In the way of the copy.
    let partial = folder.path().join("results.db.v2-backup.partial");
    std::fs::create_dir(&partial).expect("a folder");
    let error = Store::open(Some(&path)).err().expect("no copy");
    assert!(matches!(error, StoreError::Backup { .. }), "{error:?}");
    assert!(error.to_string().contains("results.db.v2-backup") && error.to_string().contains("--store"), "{error}");
    let old = Connection::open(&path).expect("open");
    assert_eq!(old.pragma_query_value(None, "user_version", |row| row.get::<_, i64>(0)), Ok(2));
    assert_eq!(old.query_row("SELECT count(*) FROM trial", [], |row| row.get::<_, i64>(0)), Ok(9));
    drop(old);
    std::fs::remove_dir(&partial).expect("out of the way");
    assert_eq!(open(&path).count(&Query::default()).expect("count"), 3);
}

#[test]
fn programs_that_open_an_old_store_at_once_upgrade_it_once() {
    let folder = folder();
    let path = folder.path().join("results.db");
    old_store(&path, 2);
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| assert_eq!(open(&path).count(&Query::default()).expect("count"), 3));
        }
    });
    let backups = std::fs::read_dir(folder.path())
        .expect("the folder")
        .filter(|entry| entry.as_ref().expect("an entry").file_name().to_string_lossy().contains("backup"));
    assert_eq!(backups.count(), 1);
}

/// A search that rested on a load which the tester had not offered. Of such a run the trials stay, and no result: today's search asks
/// for other trials.
const NOT_OFFERED: &str = "20261123T022522-6b6f";

/// A store as the program of format 2 wrote it: runs of several kinds, of which three were interrupted and one was killed.
#[test]
fn a_store_that_an_older_program_wrote_keeps_every_run() {
    let folder = folder();
    let path = folder.path().join("results.db");
    let written = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/store-v2.db");
    std::fs::copy(written, &path).expect("the store is in the tree");
    let store = Store::open(Some(&path)).expect("upgraded");
    let rows = store.list(&Query::default(), 0, 100).expect("rows");
    assert_eq!(rows.len(), 13);
    let of = |state| rows.iter().filter(|row| row.state == state).count();
    assert_eq!((of(State::Finished), of(State::Interrupted), of(State::Killed)), (9, 3, 1));
    for row in &rows {
        let record = store.load(&row.id.0).unwrap_or_else(|error| panic!("{}: {error}", row.id));
        assert_eq!(record.trials.len(), row.attempts as usize, "{}", row.id);
        assert!(row.trials > 0, "{}", row.id);
        // A search that was interrupted has no result yet.
        let told = row.results > 0 && row.headline.is_some();
        let may_have_none = row.state != State::Finished || row.id.0 == NOT_OFFERED;
        assert!(told || may_have_none, "{}: {} results, {:?}", row.id, row.results, row.headline);
    }
    assert!(folder.path().join("results.db.v2-backup").exists());
}
