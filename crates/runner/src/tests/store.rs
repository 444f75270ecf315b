//! A store that fails in the middle of a run costs the store, and not the run.

use super::fake::{Act, FakeAgents};
use super::{assert_led, attempts_of, execute, new_store, plans, resume, run, without_spans};
use crate::{Event, RunError};
use linerate_store::{Query, Store};

/// What SQLite says of a full disk.
const FULL: &str = "database or disk is full";
/// The plan's attempts.
const ATTEMPTS: usize = 4;

/// Lets every change of a kind to one of the store's tables fail, as on a full disk.
fn fill(store: &Store, change: &str) {
    let sql = format!("CREATE TRIGGER full BEFORE {change} BEGIN SELECT RAISE(ABORT, '{FULL}'); END");
    alter(store, &sql);
}

fn alter(store: &Store, sql: &str) {
    let other = rusqlite::Connection::open(store.file().expect("a file")).expect("the store's file");
    other.execute_batch(sql).expect("the change is made");
}

/// The run goes on and is shown whole; what was kept before is still there and can be gone on with.
#[tokio::test(start_paused = true)]
async fn a_store_that_is_full_from_any_attempt_on_costs_the_store_and_not_the_run() {
    let whole = run(plans::sweep(2), &FakeAgents::new(&["a", "b"]), None, &mut |_| ()).await;
    for change in ["INSERT ON run", "INSERT ON trial", "UPDATE ON run", "INSERT ON found"] {
        for full_from in 0..=ATTEMPTS {
            let case = format!("{change} fails after {full_from} attempts");
            let (_folder, store) = new_store();
            let agents = FakeAgents::new(&["a", "b"]);
            let mut begun = 0;
            let on_event = &mut |event: Event<'_>| {
                if matches!(event, Event::Begins { .. }) {
                    if begun == full_from {
                        fill(&store, change);
                    }
                    begun += 1;
                } else if matches!(event, Event::Ended { .. }) && begun == ATTEMPTS && full_from == ATTEMPTS {
                    fill(&store, change);
                }
            };
            let (ended, _) = execute(plans::sweep(2), &agents, Some(&store), None, None, on_event).await;
            assert_led(&agents.attempts());
            assert_eq!(
                without_spans(&ended.record.trials),
                without_spans(&whole.record.trials),
                "{case}: all trials were run"
            );
            assert_eq!(ended.record.results, whole.record.results, "{case}: and are shown");
            // A run's row is made once, with its first attempt, and after the last attempt only its end is written.
            let hit = match change {
                "INSERT ON run" => full_from == 0,
                "INSERT ON trial" => full_from < ATTEMPTS,
                _ => true,
            };
            assert_eq!(ended.failure.is_some(), hit, "{case}");
            if !hit {
                continue;
            }
            let failure = ended.failure.expect("the store failed");
            assert!(matches!(&failure, RunError::Store(_)), "{case}: {failure}");
            // A run that cannot be begun is taken for one that is there already.
            assert!(failure.to_string().contains(FULL) || change == "INSERT ON run", "{case}: {failure}");
            alter(&store, "DROP TRIGGER full");
            let runs = store.count(&Query::default()).expect("the store can be read");
            let Ok((record, live)) = store.resume("latest") else {
                assert_eq!((runs, full_from), (0, 0), "{case}: what was kept can be gone on with");
                continue;
            };
            let made = record.trials.len();
            assert_eq!(without_spans(&record.trials), without_spans(&whole.record.trials[..made]), "{case}");
            let agents = FakeAgents::new(&["a", "b"]);
            let resumed = resume(record, live, &agents, &store).await;
            assert!(resumed.failure.is_none(), "{case}: {:?}", resumed.failure);
            assert_eq!(attempts_of(&resumed.record.trials), attempts_of(&whole.record.trials), "{case}");
            assert_eq!(resumed.record.results, whole.record.results, "{case}");
        }
    }
}

/// Whoever stops it later must not be told that all is kept.
#[tokio::test(start_paused = true)]
async fn a_run_that_ends_early_and_is_not_kept_says_both() {
    let (_folder, store) = new_store();
    let agents = FakeAgents::new(&["a", "b"]).script(|moment| if moment.attempt < 2 { Act::Pass } else { Act::Fail });
    let on_event = &mut |event: Event<'_>| {
        if matches!(event, Event::Begins { .. }) && agents.attempts().len() == 1 {
            fill(&store, "INSERT ON trial");
        }
    };
    let (ended, _) = execute(plans::sweep(2), &agents, Some(&store), None, None, on_event).await;
    let failure = ended.failure.expect("a trial failed");
    let RunError::Unkept { why, .. } = &failure else { panic!("{failure}") };
    let said = failure.to_string();
    assert!(said.starts_with(&why.to_string()) && said.contains("could not be kept") && said.contains(FULL), "{said}");
}

#[tokio::test(start_paused = true)]
async fn a_run_that_counted_nothing_leaves_no_row() {
    let (_folder, store) = new_store();
    let agents = FakeAgents::new(&["a", "b"]).script(|_| Act::Fail);
    let ended = run(plans::sweep(1), &agents, Some(&store), &mut |_| ()).await;
    assert!(ended.failure.is_some());
    assert_eq!(store.count(&Query::default()).expect("a count"), 0);
}
