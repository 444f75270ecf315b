//! Feeds: others follow a run while it goes on, and nothing is left of it afterwards, however it ends.

use crate::sample::{folder, open, record, summary, trial};
use linerate_model::{
    EndState, HostLoad, HostName, IntervalReport, RecordId, STREAM_SCHEMA, StreamEvent, TaskKind, Transport, TrialState,
};
use linerate_store::{Ending, Feed, Store, StoreLocation};
use linerate_sys::byte_lock::ByteLock;
use linerate_testsuite::files::{mode, set_mode, symlink};
use linerate_testsuite::wait_until;
use std::fs::{self, OpenOptions};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const CHILD: &str = "LINERATE_TEST_FEED";

pub(crate) fn start(id: &str) -> StreamEvent {
    StreamEvent::Start {
        schema: STREAM_SCHEMA.into(),
        record: RecordId(id.into()),
        version: "0.1.0".into(),
        command: vec!["linerate".into(), "stream".into()],
        started_unix_ns: 1,
    }
}

pub(crate) fn begins(name: &str, number: u32) -> StreamEvent {
    StreamEvent::Trial {
        name: name.into(),
        task: TaskKind::Stream,
        transport: Some(Transport::Tcp),
        number,
        attempt: 0,
        state: TrialState::Begins,
        reason: None,
    }
}

fn interval(received_bytes: u64) -> StreamEvent {
    StreamEvent::Interval(IntervalReport { received_bytes, received_bps: 1.0 / 3.0, ..IntervalReport::default() })
}

const END: StreamEvent = StreamEvent::End { state: EndState::Finished, reason: None };

/// The feed of a run once it is there.
fn feed(store: &Store, id: &str) -> Feed {
    wait_until("the feed is there", || store.feed_of(&RecordId(id.into())))
}

/// The next events, which must be `count` at least.
fn news(feed: &mut Feed, count: usize) -> Vec<StreamEvent> {
    let mut events = Vec::new();
    wait_until("there is news", || {
        events.extend(feed.news());
        (events.len() >= count).then_some(())
    });
    events
}

fn file(store: &Path, name: &str) -> PathBuf {
    store.with_file_name("results.db-live.d").join(name)
}

/// Files in the folder of feeds.
fn left(store: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(file(store, "")).into_iter().flatten();
    entries.map(|entry| entry.expect("an entry").path()).collect()
}

#[test]
fn what_is_told_is_read_as_it_comes_and_nothing_is_left_at_the_end() {
    let folder = folder();
    let path = folder.path().join("results.db");
    let (store, other) = (open(&path), open(&path));
    let mut writer = store.feed(&RecordId("run".into()));
    assert!(other.feeds().is_empty(), "nothing is told yet");
    writer.tell(start("run"));
    let mut feed = feed(&other, "run");
    assert_eq!(news(&mut feed, 1), [start("run")]);
    for event in [begins("tcp", 0), interval(1)] {
        writer.tell(event.clone());
        assert_eq!(news(&mut feed, 1), [event]);
    }
    assert_eq!(feed.news(), []);
    assert!(!feed.has_ended());
    assert_eq!((mode(&file(&path, "run.ndjson")), mode(&file(&path, ""))), (0o600, 0o700));

    writer.tell(StreamEvent::Outcome { outcome: Box::new(linerate_model::Outcome::Sweep) });
    writer.tell(END);
    drop(writer);
    assert_eq!(feed.news(), [END], "without what the store has by then");
    assert!(feed.has_ended() && feed.news().is_empty());
    assert_eq!(left(&path), Vec::<PathBuf>::new());
    assert!(other.feeds().is_empty() && other.feed_of(&RecordId("run".into())).is_none());
}

#[test]
fn runs_at_the_same_time_have_a_feed_each() {
    let folder = folder();
    let store = open(&folder.path().join("results.db"));
    let mut writers = ["b", "a"].map(|id| store.feed(&RecordId(id.into())));
    writers[0].tell(start("b"));
    writers[1].tell(start("a"));
    let mut feeds = wait_until("both are there", || Some(store.feeds()).filter(|feeds| feeds.len() == 2));
    let [a, b] = &mut feeds[..] else { panic!("two") };
    assert_eq!((&a.record().0[..], &b.record().0[..]), ("a", "b"));
    writers[0].tell(interval(7));
    assert_eq!(news(b, 2), [start("b"), interval(7)]);
    assert_eq!(news(a, 1), [start("a")]);
    let [_, writer] = writers;
    drop(writer);
    assert!(a.news().is_empty() && a.has_ended());
}

#[test]
fn a_torn_line_is_waited_for_and_one_of_another_version_is_left_out() {
    let folder = folder();
    let path = folder.path().join("results.db");
    let store = open(&path);
    fs::create_dir(file(&path, "")).expect("a folder");
    let file = file(&path, "run.ndjson");
    let _lock = ByteLock::take(&file, 0).expect("a lock").expect("free");
    let mut writer = OpenOptions::new().append(true).open(&file).expect("opens");
    let line = format!("{}\n", serde_json::to_string(&interval(1)).expect("JSON"));
    let (begin, end) = line.split_at(line.len() / 2);
    let mut feed = feed(&store, "run");
    for (written, expected) in [
        (begin, vec![]),
        (end, vec![interval(1)]),
        ("{\"event\":\"of another version\"}\nno JSON\n\n\u{fffd}\n", vec![]),
        (&[&line, begin].concat(), vec![interval(1)]),
        (&end[..end.len() - 1], vec![]),
        ("\n", vec![interval(1)]),
    ] {
        writer.write_all(written.as_bytes()).expect("written");
        assert_eq!(feed.news(), expected, "{written}");
        assert!(!feed.has_ended());
    }
}

/// What another program does that is killed later; nothing by itself.
#[test]
fn the_other_program() {
    let Some(path) = std::env::var_os(CHILD) else { return };
    let store = open(Path::new(&path));
    let mut writer = store.feed(&RecordId("theirs".into()));
    writer.tell(start("theirs"));
    feed(&store, "theirs");
    println!("told");
    let _ = std::io::stdin().read_line(&mut String::new());
}

#[test]
fn nothing_is_left_of_a_killed_run_once_the_store_is_opened() {
    let folder = folder();
    let path = folder.path().join("results.db");
    let store = open(&path);
    let mut child = Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "feed::the_other_program", "--nocapture"])
        .env(CHILD, &path)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("starts");
    let mut said = BufReader::new(child.stdout.take().expect("piped")).lines();
    assert!(said.any(|line| line.expect("text").ends_with("told")), "it ended early");
    let mut writer = store.feed(&RecordId("ours".into()));
    writer.tell(start("ours"));
    feed(&store, "ours");
    drop(open(&path));
    let mut theirs = feed(&store, "theirs");
    assert_eq!(news(&mut theirs, 1), [start("theirs")]);
    assert_eq!((store.feeds().len(), left(&path).len()), (2, 2), "both are measured: neither is removed");

    child.kill().expect("SIGKILL");
    child.wait().expect("ends");
    assert!(theirs.news().is_empty() && theirs.has_ended());
    assert_eq!(store.feeds().len(), 1, "it is shown no more");
    // As if it had been killed while it began a file anew.
    fs::copy(file(&path, "theirs.ndjson"), file(&path, "other.next")).expect("copied");
    assert_eq!(left(&path).len(), 3);
    drop(open(&path));
    assert_eq!(left(&path), [file(&path, "ours.ndjson")]);
    writer.tell(interval(1));
    assert_eq!(news(&mut feed(&store, "ours"), 2), [start("ours"), interval(1)]);
}

#[test]
fn a_feed_does_not_grow_for_ever_and_a_reader_misses_nothing() {
    let folder = folder();
    let path = folder.path().join("results.db");
    let store = open(&path);
    let mut writer = store.feed(&RecordId("run".into()));
    writer.tell(start("run"));
    let mut reader = feed(&store, "run");
    news(&mut reader, 1);
    let length = || fs::metadata(file(&path, "run.ndjson")).expect("there").len();
    let name = "x".repeat(100_000);
    let (mut longest, mut starts) = (0, 0);
    let mut tell = |event: StreamEvent| {
        writer.tell(event.clone());
        let mut last = None;
        wait_until("it is told", || {
            let events = reader.news();
            starts += events.iter().filter(|event| matches!(event, StreamEvent::Start { .. })).count();
            last = events.last().cloned().or(last.take());
            (last.as_ref() == Some(&event)).then_some(())
        });
        longest = longest.max(length());
    };
    // Each trial is told of in many bytes, and so is each interval.
    for number in 0..25 {
        tell(begins(&name, number));
    }
    let hosts = vec![HostLoad { host: HostName::from(&name[..20_000]), busiest_thread: None }; 10];
    for received_bytes in 0..50 {
        tell(StreamEvent::Interval(IntervalReport { received_bytes, hosts: hosts.clone(), ..Default::default() }));
    }
    assert!(longest <= 4 << 20, "{longest}");
    // Twice with a trial, and at least twice within the last.
    assert!(starts >= 4, "{starts}");
    let events = feed(&store, "run").news();
    assert_eq!(events[..2], [start("run"), begins(&name, 24)], "whoever comes later understands what follows");
    assert_eq!(left(&path).len(), 1);
}

#[test]
fn where_no_feed_can_be_written_the_run_goes_on() {
    let folder = folder();
    let path = folder.path().join("results.db");
    let store = open(&path);
    fs::write(file(&path, "").to_str().expect("UTF-8").trim_end_matches('/'), "in the way").expect("written");
    let mut writer = store.feed(&RecordId("one".into()));
    let mut live = store.begin(&record("one", 1)).expect("begin");
    for number in 0..1_000 {
        writer.tell(interval(number));
    }
    live.trial(&trial(0), &summary(1.0)).expect("trial");
    live.end(&record("one", 1), Ending::Finished).expect("end");
    drop(writer);
    assert!(store.feeds().is_empty() && open(&path).load("one").is_ok());
}

#[test]
fn a_name_that_no_file_can_have_has_no_feed() {
    let folder = folder();
    let path = folder.path().join("inner/results.db");
    let store = open(&path);
    for name in ["", "../up", "a/b", ".", "a\0b", &"x".repeat(300)] {
        let id = RecordId(name.into());
        let mut writer = store.feed(&id);
        writer.tell(start(name));
        drop(writer);
        assert!(store.feed_of(&id).is_none());
    }
    assert!(!file(&path, "").exists());
}

/// Somebody else may write the folder that the store is in.
#[test]
fn feeds_follow_no_links() {
    let (own, elsewhere) = (folder(), folder());
    let path = own.path().join("results.db");
    let foreign = elsewhere.path().join("x.ndjson");
    fs::write(&foreign, "{}").expect("written");
    // A link in the place of the folder of feeds: nothing is made or removed behind it.
    symlink(elsewhere.path(), own.path().join("results.db-live.d"));
    let store = Store::open(&StoreLocation::file(&path)).expect("opens");
    let mut feed = store.feed(&RecordId("a".into()));
    feed.tell(start("a"));
    drop(feed);
    assert!(foreign.exists(), "nothing is removed behind a link");
    assert_eq!(fs::read_dir(elsewhere.path()).expect("listed").count(), 1);
    assert!(store.feeds().is_empty());
    // A folder that others may write.
    fs::remove_file(own.path().join("results.db-live.d")).expect("removed");
    let feeds = own.path().join("results.db-live.d");
    fs::create_dir(&feeds).expect("made");
    set_mode(&feeds, 0o777);
    symlink(&foreign, feeds.join("a.next"));
    let mut feed = store.feed(&RecordId("a".into()));
    feed.tell(start("a"));
    drop(feed);
    assert_eq!(fs::read_to_string(&foreign).expect("read"), "{}", "nothing is written through a link");
}
