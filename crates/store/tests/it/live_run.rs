//! Runs are told apart: measured, ended, killed; and those that did not finish are resumed.

use crate::place::{Place, on_both_backends};
use crate::sample::{folder, open, record, summary, trial};
use linerate_model::{Caveat, CaveatKind, Message, Record, RecordId};
use linerate_store::{Ending, Query, State, Store, StoreError};
use linerate_testsuite::wait_until;
use std::hash::{BuildHasher as _, RandomState};
use std::io::{BufRead as _, BufReader, Lines};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;
use std::time::Duration;

const CHILD: &str = "LINERATE_TEST_STORE";
const TRIALS: &str = "LINERATE_TEST_STORE_TRIALS";

/// Another program that stores the trials 0, 1 ... of a run, and says so after each.
struct Writer {
    child: Child,
    said: Lines<BufReader<ChildStdout>>,
}

impl Writer {
    /// Starts this test binary again, told by [`CHILD`] to write so many trials, and then to wait until it is killed.
    fn start(place: &Place<'_>, trials: u64) -> Self {
        let mut child = Command::new(std::env::current_exe().expect("this program"))
            .args(["--exact", "live_run::the_other_program", "--nocapture"])
            .env(CHILD, place.text())
            .env(TRIALS, trials.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("starts");
        let said = BufReader::new(child.stdout.take().expect("piped")).lines();
        Self { child, said }
    }

    /// Waits until it has stored one more; none when it is gone.
    fn stored(&mut self) -> Option<u64> {
        self.said.by_ref().map(|line| line.expect("text")).find_map(|line| line.strip_prefix("stored ")?.parse().ok())
    }

    /// Kills it with SIGKILL; the answer is the last that it said.
    fn kill(mut self) -> Option<u64> {
        self.child.kill().expect("SIGKILL");
        self.child.wait().expect("ends");
        std::iter::from_fn(|| self.stored()).last()
    }
}

/// What [`Writer`] starts; nothing by itself.
#[test]
fn the_other_program() {
    let Some(path) = std::env::var_os(CHILD) else { return };
    let location = path.to_str().expect("text").parse().expect("a location");
    let store = Store::open(&location).expect("opens");
    let mut live = store.begin(&record("theirs", 1)).expect("begin");
    let trials = std::env::var(TRIALS).expect("it is set").parse().expect("a number");
    for number in 0..trials {
        live.trial(&trial(number), &summary(number as f64)).expect("trial");
        println!("stored {number}");
    }
    let _ = std::io::stdin().read_line(&mut String::new());
}

fn state(store: &Store, name: &str) -> State {
    store.row(name).expect("a row").state
}

/// Waits until a run counts as killed. A server notices the end of a connection a little later than a kernel that of a lock.
fn await_killed(store: &Store, name: &str) {
    wait_until("the run counts as killed", || (state(store, name) == State::Killed).then_some(()));
}

fn a_run_killed_at_any_moment_keeps_every_trial(place: &Place<'_>) {
    for _ in 0..8 {
        let mut writer = Writer::start(place, u64::MAX);
        let random = RandomState::new().hash_one(0);
        let before = (0..=random % 5).map(|_| writer.stored().expect("it writes")).last().expect("one at least");
        // Not to wait for something: so the end falls anywhere between two trials, or within one.
        thread::sleep(Duration::from_micros(random / 5 % 5000));
        let last = writer.kill().unwrap_or(before);

        let store = place.open();
        await_killed(&store, "theirs");
        let row = store.row("theirs").expect("a row");
        let loaded = store.load("theirs").expect("load");
        let begun: Vec<u64> = loaded.trials.iter().map(|trial| trial.started_unix_ns).collect();
        assert!(begun.len() as u64 > last, "{last} was the last of which it knew, but {begun:?} are kept");
        assert_eq!(begun, (0..begun.len() as u64).collect::<Vec<_>>());
        assert_eq!((row.state, row.trials as usize), (State::Killed, begun.len()));
        assert_eq!(row.headline.expect("a headline").value, begun.len() as f64 - 1.0, "the row is the last trial's");

        let (resumed, mut live) = store.resume("theirs").expect("resume");
        assert_eq!(resumed, loaded);
        live.trial(&trial(begun.len() as u64), &summary(0.0)).expect("trial");
        live.end(&resumed, Ending::Finished).expect("end");
        assert_eq!(store.load("theirs").expect("load").trials.len(), begun.len() + 1);
        assert_eq!(state(&store, "theirs"), State::Finished);
        store.delete("theirs").expect("deleted");
    }
}

/// The kernel drops the lock of a file with the program.
#[test]
fn killed_run_in_a_file_is_known_at_once() {
    let place = Place::file();
    let mut writer = Writer::start(&place, 1);
    assert_eq!(writer.stored(), Some(0));
    let store = place.open();
    assert_eq!(state(&store, "theirs"), State::Running);
    writer.kill();
    assert_eq!(state(&store, "theirs"), State::Killed);
}

fn a_run_of_another_program_can_neither_be_resumed_nor_deleted_until_it_is_killed(place: &Place<'_>) {
    // It stores no more, for one that never pauses hardly lets others write.
    let mut writer = Writer::start(place, 1);
    assert_eq!(writer.stored(), Some(0));
    let store = place.open();
    assert_eq!(state(&store, "theirs"), State::Running);
    for refused in [store.resume("theirs").map(drop), store.delete("theirs").map(drop)] {
        let error = refused.expect_err("it is being measured");
        assert!(matches!(error, StoreError::Running { .. }), "{error:?}");
        assert!(error.to_string().contains("theirs") && error.to_string().contains("another program"), "{error}");
    }
    // Meanwhile this program has a run of its own.
    let mut live = store.begin(&record("ours", 2)).expect("begin");
    live.trial(&trial(7), &summary(1.0)).expect("trial");
    let running = Query { states: vec![State::Running], ..Query::default() };
    assert_eq!(store.count(&running).expect("count"), 2);
    writer.kill();
    await_killed(&store, "theirs");
    assert_eq!(store.count(&running).expect("count"), 1);
    assert_eq!(state(&store, "ours"), State::Running);
    live.end(&record("ours", 2), Ending::Failed).expect("end");
    assert_eq!(state(&store, "ours"), State::Failed);
    store.delete("theirs").expect("nobody measures it");
}

fn a_run_ends_as_it_says_or_counts_as_killed(place: &Place<'_>) {
    let store = place.open();
    for (id, ending, expected) in [
        ("a", Some(Ending::Finished), State::Finished),
        ("b", Some(Ending::Interrupted), State::Interrupted),
        ("c", Some(Ending::Failed), State::Failed),
        ("d", None, State::Killed),
    ] {
        let live = store.begin(&record(id, 1)).expect("begin");
        assert_eq!(state(&store, id), State::Running);
        if let Some(ending) = ending {
            live.end(&record(id, 1), ending).expect("end");
        } else {
            drop(live);
        }
        assert_eq!(state(&store, id), expected);
    }
}

fn a_run_that_did_not_finish_is_resumed_as_it_began_with_its_trials(place: &Place<'_>) {
    let store = place.open();
    let begun = record("one", 1);
    let mut live = store.begin(&begun).expect("begin");
    live.trial(&trial(0), &summary(1.0)).expect("trial");
    let interrupted = Record {
        caveats: vec![Caveat::new(CaveatKind::Interrupted, Message::untranslated("by its user"))],
        ..begun.clone()
    };
    live.end(&interrupted, Ending::Interrupted).expect("end");
    assert_eq!(store.load("one").expect("load").caveats, interrupted.caveats);

    let (resumed, mut live) = store.resume("on").expect("resume");
    assert_eq!(resumed, Record { trials: vec![trial(0)], ..begun.clone() }, "what was found follows from the trials");
    assert_eq!(state(&store, "one"), State::Running);
    let error = store.resume("one").map(drop).expect_err("this program measures it");
    assert!(matches!(error, StoreError::Running { .. }), "{error:?}");
    live.trial(&trial(1), &summary(2.0)).expect("trial");
    live.end(&begun, Ending::Finished).expect("end");
    assert_eq!(store.load("one").expect("load"), Record { trials: vec![trial(0), trial(1)], ..begun });

    let error = store.resume("one").map(drop).expect_err("it has finished").to_string();
    assert!(error.contains("one") && error.contains("has finished"), "{error}");
    assert!(matches!(store.resume("none").map(drop), Err(StoreError::Unknown { .. })));
}

fn a_run_taken_over_or_deleted_behind_its_back_takes_no_more_trials(place: &Place<'_>) {
    let store = place.open();
    let mut live = store.begin(&record("one", 1)).expect("begin");
    // As a second program would, where the file system has no locks.
    place.sql("UPDATE run SET attempts = attempts + 1");
    let error = live.trial(&trial(0), &summary(1.0)).expect_err("not as it was left");
    assert!(matches!(error, StoreError::TakenOver { .. }), "{error:?}");
    place.sql("DELETE FROM run");
    let error = live.trial(&trial(0), &summary(1.0)).expect_err("gone");
    assert!(matches!(error, StoreError::Unknown { .. }), "{error:?}");
    assert!(matches!(live.end(&record("one", 1), Ending::Finished), Err(StoreError::Unknown { .. })));
}

#[test]
fn a_lock_that_cannot_be_taken_is_named() {
    let folder = folder();
    let store = open(&folder.path().join("results.db"));
    std::fs::create_dir(folder.path().join("results.db-live")).expect("in the way");
    let error = store.begin(&record("one", 1)).map(drop).expect_err("no lock").to_string();
    assert!(error.contains("results.db-live") && error.contains("--store"), "{error}");
    assert_eq!(store.count(&Query::default()).expect("count"), 0, "nothing is left of it");
}

fn programs_write_at_once(place: &Place<'_>) {
    // Each opens the store itself, all at the moment that it is made.
    let write = |writer: usize| {
        let store = place.open();
        let record = record(&format!("writer-{writer}"), writer as u64);
        let mut live = store.begin(&record).expect("begin");
        for number in 0..20 {
            live.trial(&trial(number), &summary(1.0)).expect("trial");
        }
        live.end(&record, Ending::Finished).expect("end");
    };
    thread::scope(|scope| {
        for writer in 0..8 {
            scope.spawn(move || write(writer));
        }
    });
    let store = place.open();
    let rows = store.list(&Query::default(), 0, 100).expect("list");
    assert_eq!(rows.len(), 8);
    assert!(rows.iter().all(|row| row.trials == 20 && row.state == State::Finished), "{rows:?}");
    let started: Vec<_> =
        store.load("writer-7").expect("load").trials.iter().map(|trial| trial.started_unix_ns).collect();
    assert_eq!(started, (0..20).collect::<Vec<_>>());
    assert_eq!(store.latest().expect("latest"), Some(RecordId("writer-7".into())));
}

on_both_backends!(
    a_run_killed_at_any_moment_keeps_every_trial,
    a_run_of_another_program_can_neither_be_resumed_nor_deleted_until_it_is_killed,
    a_run_ends_as_it_says_or_counts_as_killed,
    a_run_that_did_not_finish_is_resumed_as_it_began_with_its_trials,
    a_run_taken_over_or_deleted_behind_its_back_takes_no_more_trials,
    programs_write_at_once,
);
