//! The loop and the sessions against agents on a simulated network, in simulated time: every mishap at every stage of every kind of
//! run, stores that fail, resumed runs, and results held against what was planted.

mod barriers;
mod bench;
mod clocks;
mod device_load;
mod fake;
mod hostile_agent;
mod matrix;
mod plans;
mod record_size;
mod repeats;
mod resuming;
mod store;
mod stream_events;
mod takeover;
mod truth;
mod warm_up;

use crate::{DeviceWatch, Ended, Event, Keep, Origin, Resumed, Run};
use fake::{Entry, FakeAgents, Step, Told};
use linerate_model::{Plan, Record, Sampling, TrialResult};
use linerate_store::{LiveRun, Store, StoreLocation};
use std::collections::BTreeSet;
use std::time::Duration;
use tempfile::TempDir;
use tokio::time::{Instant, timeout};

/// Simulated time in which any run of these tests ends.
const BOUND: Duration = Duration::from_secs(3_600);

/// Runs `plan` on `agents`.
async fn run(plan: Plan, agents: &FakeAgents, store: Option<&Store>, on_event: &mut dyn FnMut(Event<'_>)) -> Ended {
    execute(plan, agents, store, None, None, on_event).await.0
}

/// Goes on with a run, and keeps it in `store`.
async fn resume(record: Record, live: LiveRun<'_>, agents: &FakeAgents, store: &Store) -> Ended {
    let plan = record.plan.clone();
    execute(plan, agents, Some(store), None, Some(Resumed { record, live: Box::new(live) }), &mut |_| ()).await.0
}

/// The same of any run. Returns also the simulated time that it took.
async fn execute(
    plan: Plan,
    agents: &FakeAgents,
    store: Option<&Store>,
    device: Option<DeviceWatch>,
    resumed: Option<Resumed<'_>>,
    on_event: &mut dyn FnMut(Event<'_>),
) -> (Ended, Duration) {
    let began = Instant::now();
    let sampling_period = Sampling::default().period;
    let run = Run {
        plan,
        origin: Origin::default(),
        sampling_period,
        agents,
        id: None,
        takes_over: false,
        keep: store.map(|store| store as &dyn Keep),
        password: None,
        device,
        bench: None,
        resumed,
    };
    let ended = timeout(BOUND, run.execute(on_event, agents.cancel())).await;
    (ended.expect("a run ends"), began.elapsed())
}

/// A store of its own, in memory where the system has a place for that: its durability is not at stake here.
fn new_store() -> (TempDir, Store) {
    let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a folder");
    let store = Store::open(&StoreLocation::file(folder.path().join("results.db"))).expect("a store");
    (folder, store)
}

/// Attempts without when they were under way: the runner's clock begins at another time in each run.
fn without_spans(results: &[TrialResult]) -> Vec<TrialResult> {
    results.iter().map(|result| TrialResult { span: None, ..result.clone() }).collect()
}

/// What an attempt was, without what it counted.
fn attempts_of(results: &[TrialResult]) -> Vec<(String, u32, bool)> {
    results.iter().map(|result| (result.trial.name.clone(), result.attempt, result.is_counted())).collect()
}

/// Asserts what holds of every attempt, however it ends.
fn assert_led(attempts: &[Vec<Entry>]) {
    for attempt in attempts {
        assert_barriers(attempt);
        assert_let_go(attempt);
    }
}

/// Asserts that no session was ordered on before all had come to the stage for it, and that each order was awaited.
fn assert_barriers(attempt: &[Entry]) {
    let misordered = attempt.iter().find(|entry| matches!(entry.told, Told::Misordered(_)));
    assert_eq!(misordered, None, "{attempt:?}");
    let sessions: BTreeSet<&str> = attempt.iter().map(|entry| entry.id.as_str()).collect();
    for (order, needed) in [
        (Step::Connect, Step::Listening),
        (Step::Start, Step::Ready),
        (Step::Window, Step::Running),
        (Step::Drain, Step::Sent),
    ] {
        let Some(first) = attempt.iter().position(|entry| entry.told == Told::Ordered(order)) else { continue };
        for session in &sessions {
            let reached = |entry: &Entry| entry.id == *session && entry.told == Told::Reached(needed);
            assert!(attempt[..first].iter().any(reached), "{order:?} before {session} was {needed:?}: {attempt:?}");
        }
    }
}

/// Asserts that every session that was opened was let go once. Those that were closed before their end were closed once and
/// clients first; where one was, all were.
fn assert_let_go(attempt: &[Entry]) {
    let count = |session: &str, told| attempt.iter().filter(|entry| entry.id == session && entry.told == told).count();
    let opened: Vec<&Entry> = attempt.iter().filter(|entry| entry.told == Told::Reached(Step::Open)).collect();
    let closed: Vec<&Entry> = attempt.iter().filter(|entry| entry.told == Told::Closed).collect();
    for entry in &opened {
        assert_eq!(count(&entry.id, Told::Dropped), 1, "{} is not let go once: {attempt:?}", entry.id);
        let closes = usize::from(!closed.is_empty());
        assert_eq!(count(&entry.id, Told::Closed), closes, "{} is not closed once: {attempt:?}", entry.id);
    }
    let order: Vec<bool> = closed.iter().map(|entry| !entry.client).collect();
    assert!(order.is_sorted(), "a server was closed before a client: {attempt:?}");
    let finished = |entry: &&&Entry| count(&entry.id, Told::Reached(Step::Counts)) == 1;
    let whole = opened.iter().filter(finished).count() == opened.len();
    assert!(whole || !closed.is_empty(), "an attempt that came to nothing is still open: {attempt:?}");
}
