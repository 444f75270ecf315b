//! Records survive what happens to programs and disks.

use linerate_model::{
    Caveat, CaveatKind, IpVersion, Path as HostPath, Plan, Record, RecordId, Repeats, StreamSpec, Timing, Transport,
    TrialResult, TrialSpec, Workload,
};
use linerate_store::{Query, Store, StoreError};
use linerate_units::{ByteCount, Nanos};
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};
use std::collections::BTreeMap;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;
use std::thread;
use tempfile::TempDir;

fn spec() -> TrialSpec {
    TrialSpec {
        name: "udp 1472".into(),
        paths: vec![HostPath { opener: "a".into(), listener: "b".into() }],
        workload: Workload::Stream(StreamSpec {
            ip: IpVersion::V6,
            ..StreamSpec::plain(Transport::Udp, ByteCount::new(1472))
        }),
        timing: Timing { warmup: Nanos::from_millis(100), measure: Nanos::from_secs(1) },
        proves: None,
        probe: None,
    }
}

fn record(id: &str, started_unix_ns: u64) -> Record {
    // A third has no exact decimal: it must come back to the last bit.
    let repeats = Repeats::Until { confidence_percent: 95.0, within: 1.0 / 3.0, at_least: 3, at_most: 20 };
    Record {
        version: "0.1.0".into(),
        command: vec!["linerate".into(), "stream".into(), "a \"b\"".into()],
        study: None,
        started_unix_ns,
        ..Record::new(RecordId(id.into()), Plan::of(vec![spec()], repeats))
    }
}

fn trial(started_unix_ns: u64) -> TrialResult {
    let (paths, hosts, caveats) = (Vec::new(), BTreeMap::new(), Vec::new());
    TrialResult { spec: spec(), started_unix_ns, paths, hosts, probe: None, caveats }
}

fn open(folder: &TempDir) -> Store {
    Store::open(Some(&folder.path().join("new/deep/results.db"))).expect("opens")
}

fn folder() -> TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

#[test]
fn a_record_comes_back_as_it_was_stored() {
    let folder = folder();
    let store = open(&folder);
    let mut whole = record("20261121T093000-4f2a", 1_795_253_400_123_456_789);
    store.begin(&whole).expect("begin");
    for number in 0..3 {
        whole.trials.push(trial(number));
        store.trial(&whole.id, &whole.trials[number as usize]).expect("trial");
    }
    whole.caveats.push(Caveat::new(CaveatKind::FewRuns, "three runs"));
    store.finish(&whole, true).expect("finish");

    assert_eq!(store.load(&whole.id.0).expect("load"), whole);
    drop(store);
    let again = open(&folder);
    assert_eq!(again.load("latest").expect("load"), whole);
    let listed = again.list(10).expect("list");
    assert_eq!(listed.len(), 1);
    assert_eq!((listed[0].cells, listed[0].trials, listed[0].finished), (1, 3, true));
    assert_eq!((&listed[0].command, listed[0].started_unix_ns), (&whole.command, whole.started_unix_ns));
    let mode = folder.path().join("new/deep").metadata().expect("the folder").permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
}

#[test]
fn a_killed_run_keeps_its_trials() {
    // The child is this test binary again, told by the variable to store two trials and die without a word.
    let child = |path: &Path| {
        let store = Store::open(Some(path)).expect("opens");
        store.begin(&record("killed", 1)).expect("begin");
        store.trial(&RecordId("killed".into()), &trial(1)).expect("trial");
        store.trial(&RecordId("killed".into()), &trial(2)).expect("trial");
        std::process::abort();
    };
    if let Some(path) = std::env::var_os("LINERATE_TEST_KILLED_STORE") {
        child(Path::new(&path));
    }
    let folder = folder();
    let path = folder.path().join("results.db");
    let status = Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "a_killed_run_keeps_its_trials"])
        .env("LINERATE_TEST_KILLED_STORE", &path)
        .output()
        .expect("runs")
        .status;
    assert!(!status.success(), "the child aborts");

    let store = Store::open(Some(&path)).expect("opens");
    let loaded = store.load("killed").expect("load");
    assert_eq!(loaded, Record { trials: vec![trial(1), trial(2)], ..record("killed", 1) });
    assert!(!store.list(1).expect("list")[0].finished);
}

#[test]
fn programs_write_at_once() {
    let folder = folder();
    let path = folder.path().join("results.db");
    // Each opens the store itself, all at the moment that it is made.
    let write = |writer: usize| {
        let store = Store::open(Some(&path)).expect("opens");
        let record = record(&format!("writer-{writer}"), writer as u64);
        store.begin(&record).expect("begin");
        for number in 0..20 {
            store.trial(&record.id, &trial(number)).expect("trial");
        }
        store.finish(&record, true).expect("finish");
    };
    thread::scope(|scope| {
        for writer in 0..8 {
            scope.spawn(move || write(writer));
        }
    });
    let store = Store::open(Some(&path)).expect("opens");
    let listed = store.list(100).expect("list");
    assert_eq!(listed.len(), 8);
    assert!(listed.iter().all(|record| record.trials == 20 && record.finished), "{listed:?}");
    let started: Vec<_> =
        store.load("writer-7").expect("load").trials.iter().map(|trial| trial.started_unix_ns).collect();
    assert_eq!(started, (0..20).collect::<Vec<_>>());
}

#[test]
fn names_may_be_shortened_while_unmistakable() {
    let folder = folder();
    let store = open(&folder);
    assert_eq!(store.latest().expect("latest"), None);
    assert!(matches!(store.load("latest"), Err(StoreError::Unknown { .. })));
    for (id, started) in [("20261121-aa", 1), ("20261121-aab", 3), ("20261122-%_", 2)] {
        store.begin(&record(id, started)).expect("begin");
    }
    assert_eq!(store.resolve("20261122").expect("one").0, "20261122-%_");
    assert_eq!(store.resolve("20261121-aa").expect("a whole name").0, "20261121-aa");
    assert_eq!(store.latest().expect("latest"), Some(RecordId("20261121-aab".into())));
    let order: Vec<_> = store.list(2).expect("list").into_iter().map(|listed| listed.id.0).collect();
    assert_eq!(order, ["20261121-aab", "20261122-%_"]);

    let ambiguous = store.resolve("20261121").expect_err("two").to_string();
    assert!(ambiguous.contains("20261121-aa, 20261121-aab"), "{ambiguous}");
    for name in ["", "2027", "%", "2026112_"] {
        let unknown = store.resolve(name).expect_err(name).to_string();
        assert!(unknown.contains("linerate results list"), "{unknown}");
    }
    assert!(matches!(store.begin(&record("20261121-aa", 9)), Err(StoreError::Exists { .. })));
}

#[test]
fn a_deleted_record_is_gone_with_its_trials() {
    let folder = folder();
    let store = open(&folder);
    for id in ["one", "two"] {
        store.begin(&record(id, 1)).expect("begin");
        store.trial(&RecordId(id.into()), &trial(1)).expect("trial");
    }
    assert_eq!(store.delete("on").expect("delete").0, "one");
    assert!(matches!(store.load("one"), Err(StoreError::Unknown { .. })));
    assert!(matches!(store.delete("one"), Err(StoreError::Unknown { .. })));
    assert!(matches!(store.trial(&RecordId("one".into()), &trial(2)), Err(StoreError::Unknown { .. })));
    assert!(matches!(store.finish(&record("one", 1), true), Err(StoreError::Unknown { .. })));
    assert_eq!(store.load("two").expect("the other stays").trials.len(), 1);
    // Were trials of the deleted record left, a new one of its name would have them.
    store.begin(&record("one", 1)).expect("begin");
    assert_eq!(store.load("one").expect("load").trials.len(), 0);
}

#[test]
fn other_files_are_refused_and_left_alone() {
    let folder = folder();
    let text = folder.path().join("notes.txt");
    std::fs::write(&text, "not a database, but long enough to have a header of one hundred bytes. ".repeat(9))
        .expect("write");
    let before = std::fs::read(&text).expect("read");
    let error = Store::open(Some(&text)).err().expect("no store").to_string();
    assert!(error.contains("notes.txt is not a linerate store") && error.contains("--store"), "{error}");
    assert_eq!(std::fs::read(&text).expect("read"), before);

    let other = folder.path().join("other.db");
    let connection = rusqlite::Connection::open(&other).expect("open");
    connection.execute_batch("CREATE TABLE theirs (x)").expect("create");
    drop(connection);
    let before = std::fs::read(&other).expect("read");
    assert!(matches!(Store::open(Some(&other)), Err(StoreError::NotAStore { .. })));
    assert_eq!(std::fs::read(&other).expect("read"), before);
}

#[test]
fn a_newer_format_is_refused() {
    let folder = folder();
    let path = open(&folder).path().to_owned();
    let connection = rusqlite::Connection::open(&path).expect("open");
    connection.pragma_update(None, "user_version", 99).expect("pragma");
    drop(connection);
    let error = Store::open(Some(&path)).err().expect("newer").to_string();
    assert!(error.contains("format is 99, this program knows 2") && error.contains("update linerate"), "{error}");
}

#[test]
fn places_that_cannot_be_written_are_named() {
    // No one may make files there, not even root.
    for path in ["/proc/linerate/results.db", "/proc/results.db"] {
        let error = Store::open(Some(Path::new(path))).err().expect(path).to_string();
        assert!(error.contains("/proc") && error.contains("--store"), "{error}");
    }
    let folder = folder();
    let error = Store::open(Some(folder.path())).err().expect("a folder is no file").to_string();
    assert!(error.contains(&*folder.path().to_string_lossy()), "{error}");
}

/// A small disk in a folder, which could not be removed while there is one.
struct Disk<'a>(&'a Path);

impl<'a> Disk<'a> {
    fn mount(folder: &'a TempDir, size: &str) -> Self {
        mount(Some("tmpfs"), folder.path(), Some("tmpfs"), MsFlags::empty(), Some(size)).expect("a small disk");
        Self(folder.path())
    }
}

impl Drop for Disk<'_> {
    fn drop(&mut self) {
        let _ = umount2(self.0, MntFlags::MNT_DETACH);
    }
}

/// Runs `test` in a thread with mounts of its own; they go with it.
fn with_private_mounts(name: &str, test: impl FnOnce() + Send) {
    thread::scope(|scope| {
        let run = scope.spawn(|| {
            let private = unshare(CloneFlags::CLONE_FS | CloneFlags::CLONE_NEWNS).and_then(|()| {
                mount(None::<&str>, "/", None::<&str>, MsFlags::MS_REC | MsFlags::MS_PRIVATE, None::<&str>)
            });
            match private {
                Ok(()) => test(),
                Err(error) if std::env::var_os("CI").is_some() => panic!("{name} needs root in CI: {error}"),
                // Not eprintln!, which the test harness would swallow.
                Err(error) => {
                    let why = "it mounts a file system, which needs root";
                    writeln!(std::io::stderr(), "SKIPPED: {name}: {why}: {error}").expect("stderr");
                }
            }
        });
        run.join().expect("the test in private mounts passes");
    });
}

#[test]
fn a_full_disk_is_named_and_costs_only_the_trial_at_hand() {
    with_private_mounts("a_full_disk_is_named_and_costs_only_the_trial_at_hand", || {
        let folder = folder();
        let _disk = Disk::mount(&folder, "size=512k");
        let store = open(&folder);
        store.begin(&record("full", 1)).expect("begin");
        let mut stored = 0;
        let error = loop {
            let big =
                TrialResult { caveats: vec![Caveat::new(CaveatKind::Fallback, "x".repeat(20_000))], ..trial(stored) };
            match store.trial(&RecordId("full".into()), &big) {
                Ok(()) => stored += 1,
                Err(error) => break error,
            }
            assert!(stored < 100, "the disk has room for some 20 trials");
        };
        assert!(matches!(error, StoreError::Full { .. }), "{error:?}");
        assert!(error.to_string().contains("free some space"), "{error}");
        assert!(stored > 3, "{stored}");
        let loaded = store.load("full").expect("what was stored is kept");
        assert_eq!(loaded.trials.len() as u64, stored);
        assert_eq!(store.list(1).expect("list")[0].trials as u64, stored);
    });
}

#[test]
fn a_disk_without_any_room_is_named() {
    with_private_mounts("a_disk_without_any_room_is_named", || {
        let folder = folder();
        let _disk = Disk::mount(&folder, "size=16k");
        let error = Store::open(Some(&folder.path().join("results.db"))).err().expect("no room");
        assert!(matches!(error, StoreError::Full { .. }), "{error:?}");
    });
}

#[test]
fn a_read_only_disk_is_named() {
    with_private_mounts("a_read_only_disk_is_named", || {
        let folder = folder();
        let _disk = Disk::mount(&folder, "size=1m");
        let path = folder.path().join("results.db");
        Store::open(Some(&path)).expect("opens").begin(&record("one", 1)).expect("begin");
        let read_only = MsFlags::MS_REMOUNT | MsFlags::MS_RDONLY;
        mount(None::<&str>, folder.path(), None::<&str>, read_only, None::<&str>).expect("read-only");
        let error = Store::open(Some(&path)).and_then(|store| store.begin(&record("two", 2))).expect_err("read-only");
        assert!(matches!(error, StoreError::NotWritable { .. }), "{error:?}");
        let error = Store::open(Some(&folder.path().join("other/results.db"))).err().expect("read-only");
        assert!(error.to_string().contains("--store"), "{error}");
    });
}

#[test]
fn a_hundred_thousand_records_list_fast() {
    let folder = folder();
    let store = open(&folder);
    store.begin(&record("first", 0)).expect("begin");
    let connection = rusqlite::Connection::open(store.path()).expect("open");
    connection
        .execute_batch(
            "BEGIN;
             WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000)
             INSERT INTO record SELECT printf('%08x', (i * 40503) % 4294967296), i, '[\"linerate\",\"lab\"]', 3, 9, 1,
                    CASE i % 10 WHEN 0 THEN 'device' ELSE 'stream' END, printf('host-%d udp', i % 1000), 1, i FROM n;
             INSERT OR IGNORE INTO content SELECT id, printf('%.2000c', 'x') FROM record;
             COMMIT",
        )
        .expect("fill");
    let start = std::time::Instant::now();
    let newest = store.list(20).expect("list");
    let some = start.elapsed();
    assert_eq!((newest.len(), newest[0].started_unix_ns), (20, 100_000));
    let all = store.list(usize::MAX).expect("list");
    let whole = start.elapsed() - some;
    assert_eq!(all.len(), 100_001);
    let name = &all[5000].id.0;
    let start = std::time::Instant::now();
    assert_eq!(&store.resolve(name).expect("resolve").0, name);
    println!("list of 20: {some:?}, of all: {whole:?}, resolve: {:?}", start.elapsed());
    let (words, kind) =
        (Query::text("HOST-77 udp").expect("few words"), Query { kind: Some("device".into()), ..Query::default() });
    let start = std::time::Instant::now();
    // 77 and 770 to 779 of each thousand.
    assert_eq!((store.count(&words).expect("count"), store.find(&words, 0, 50).expect("find").len()), (1_100, 50));
    println!("count and find by words: {:?}", start.elapsed());
    let start = std::time::Instant::now();
    assert_eq!((store.count(&kind).expect("count"), store.kinds().expect("kinds").len()), (10_000, 2));
    println!("count by kind, and kinds: {:?}", start.elapsed());
    let start = std::time::Instant::now();
    assert_eq!(store.find(&Query::default(), 99_990, 50).expect("find").len(), 11);
    println!("the last page: {:?}", start.elapsed());
    // A scan or a parse of the bodies would take far longer, even here in a debug build.
    assert!(some.as_millis() < 50, "{some:?}");
}
