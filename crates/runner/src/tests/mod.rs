//! The loop against agents that follow a script: every mishap at every stage, spoilt attempts, a store that fails, and resuming
//! from every point.

mod counting;
mod fake;
mod plans;
mod resuming;

use crate::{Ended, Event, Origin, Run, RunError};
use fake::{Act, FakeAgents, Step, Told};
use linerate_model::{CopyOnError, HostName, Plan, Standing};
use linerate_store::Store;
use std::collections::BTreeMap;

/// Runs `plan` to its end on `agents`.
async fn run(plan: Plan, agents: &FakeAgents, store: Option<&Store>, on_event: &mut dyn FnMut(Event<'_>)) -> Ended {
    let origin = Origin::default();
    let run = Run { plan, origin, agents, store, password: None, device: None, resumed: None };
    run.execute(on_event, agents.cancel()).await
}

/// The log of each attempt, by the part of the sessions' names that they share.
fn attempts(agents: &FakeAgents) -> Vec<Vec<(String, HostName, Told)>> {
    let mut order = Vec::new();
    let mut attempts: BTreeMap<String, Vec<_>> = BTreeMap::new();
    for (id, host, told) in agents.log() {
        let shared = id.split('-').next().unwrap_or_default().to_owned();
        if !order.contains(&shared) {
            order.push(shared.clone());
        }
        attempts.entry(shared).or_default().push((id, host, told));
    }
    order.iter().filter_map(|shared| attempts.remove(shared)).collect()
}

/// Asserts that no session of an attempt was ordered on before all had come to the stage for it.
fn assert_barriers(attempt: &[(String, HostName, Told)]) {
    let sessions: std::collections::BTreeSet<&str> = attempt.iter().map(|(id, _, _)| id.as_str()).collect();
    for (order, needed) in [("connect", Step::Listening), ("start", Step::Ready), ("drain", Step::Sent)] {
        let Some(first) = attempt.iter().position(|(_, _, told)| *told == Told::Ordered(order)) else { continue };
        for session in &sessions {
            let reached = attempt[..first].iter().any(|(id, _, told)| id == session && *told == Told::Reached(needed));
            assert!(reached, "{order} was ordered before {session} was {needed:?}: {attempt:?}");
        }
    }
}

/// Asserts that every session that was opened has been let go, and that those which were closed were closed clients first.
fn assert_let_go(attempt: &[(String, HostName, Told)], client: &str) {
    for (session, ..) in attempt.iter().filter(|(_, _, told)| *told == Told::Reached(Step::Open)) {
        let dropped = attempt.iter().any(|(id, _, told)| id == session && *told == Told::Dropped);
        assert!(dropped, "{session} is still open: {attempt:?}");
    }
    let closed: Vec<&str> =
        attempt.iter().filter(|(_, _, told)| *told == Told::Closed).map(|(_, host, _)| host.0.as_str()).collect();
    let client_at = closed.iter().position(|host| *host == client);
    assert!(client_at.is_none_or(|at| at == 0), "the server was closed before its client: {closed:?}");
}

#[tokio::test]
async fn every_mishap_at_every_stage_ends_the_run_and_keeps_what_was_measured() {
    for step in Step::ALL {
        for unlucky in ["a", "b"] {
            for act in [Act::Fail, Act::Lose, Act::Interrupt] {
                let agents = FakeAgents::new(&["a", "b"]).script(move |attempt, host, at| {
                    if attempt == 1 && host.0 == unlucky && at == step { act } else { Act::Pass }
                });
                let folder = tempfile::tempdir().expect("a folder");
                let store = Store::open(Some(&folder.path().join("results.db"))).expect("a store");
                let ended = run(plans::sweep(2), &agents, Some(&store), &mut |_| ()).await;
                let case = format!("{act:?} at {step:?} of {unlucky}");
                let attempts = attempts(&agents);
                attempts.iter().for_each(|attempt| assert_barriers(attempt));
                attempts.iter().for_each(|attempt| assert_let_go(attempt, "a"));
                // A stream has nothing to drain, so it never comes to `Sent`.
                if step == Step::Sent {
                    assert!(ended.failure.is_none(), "{case}: {:?}", ended.failure);
                    assert_eq!(ended.record.trials.len(), 4, "{case}");
                    continue;
                }
                assert_eq!(attempts.len(), 2, "{case}: nothing runs after it");
                assert_eq!(ended.record.counted().count(), 1, "{case}");
                let stored = store.load("latest").expect("the run was kept");
                assert_eq!(stored.trials, ended.record.trials, "{case}");
                match act {
                    Act::Interrupt => {
                        assert!(matches!(ended.failure, Some(RunError::Interrupted)), "{case}: {:?}", ended.failure);
                        assert_eq!(ended.record.trials.len(), 1, "{case}: no half-measured trial");
                    }
                    _ => {
                        let failure = ended.failure.expect("it failed").to_string();
                        assert!(failure.starts_with(unlucky), "{case}: {failure}");
                        assert_eq!(ended.record.trials[1].failure(), Some(failure.as_str()), "{case}");
                    }
                }
            }
        }
    }
}

#[tokio::test]
async fn hosts_with_frames_count_until_all_have_sent() {
    let agents = FakeAgents::new(&["a", "b"]);
    let ended = run(plans::device(), &agents, None, &mut |_| ()).await;
    assert!(ended.failure.is_none(), "{:?}", ended.failure);
    let attempts = attempts(&agents);
    assert!(attempts.len() > 3, "a search takes several trials");
    for attempt in &attempts {
        assert_barriers(attempt);
        assert_eq!(attempt.iter().filter(|(_, _, told)| *told == Told::Ordered("drain")).count(), 2);
    }
    let found = &ended.record.device().expect("a device test").1.throughput[0];
    let off = found.frames_per_s / counting::DEVICE as f64;
    assert!((0.9..=1.0).contains(&off), "{} of {}", found.frames_per_s, counting::DEVICE);
}

#[tokio::test]
async fn a_spoilt_attempt_is_kept_and_run_again() {
    let agents = FakeAgents::new(&["a", "b"]).counting(|attempt, host, assignment| {
        let mut counts = counting::counts(host, assignment);
        counts.observation = counting::observation(if attempt < 2 { 50 } else { 0 });
        counts
    });
    let mut repeating = 0;
    let ended = run(plans::sweep(1), &agents, None, &mut |event| {
        repeating += u32::from(matches!(event, Event::Repeating { .. }));
    })
    .await;
    assert!(ended.failure.is_none());
    let trials: Vec<(&str, u32, bool)> = ended
        .record
        .trials
        .iter()
        .map(|result| (result.trial.name.as_str(), result.attempt, result.is_counted()))
        .collect();
    assert_eq!(trials, [("tcp 1", 0, false), ("tcp 1", 1, false), ("tcp 1", 2, true), ("tcp 2", 0, true)]);
    assert!(matches!(&ended.record.trials[0].standing, Standing::Spoilt { reason } if reason.text.contains("50 %")));
    assert_eq!(repeating, 2);
    assert_eq!(ended.record.results[0].main.runs, 1, "spoilt attempts are excluded from results");
}

#[tokio::test]
async fn an_attempt_that_is_always_spoilt_counts_with_its_doubt() {
    let agents = FakeAgents::new(&["a", "b"]).counting(|_, host, assignment| {
        let mut counts = counting::counts(host, assignment);
        counts.observation = counting::observation(50);
        counts
    });
    let ended = run(plans::sweep(1), &agents, None, &mut |_| ()).await;
    assert!(ended.failure.is_none());
    let attempts: Vec<u32> = ended.record.counted().map(|result| result.attempt).collect();
    assert_eq!(attempts, [4, 2], "four repeats, and half as many where they did not help");
    for result in ended.record.counted() {
        assert!(result.caveats.iter().any(|caveat| caveat.text.contains("50 %")), "{:?}", result.caveats);
    }
}

#[tokio::test]
async fn a_store_that_fails_costs_the_store_and_not_the_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("results.db");
    let store = Store::open(Some(&path)).expect("a store");
    let agents = FakeAgents::new(&["a", "b"]);
    let mut ended_trials = 0;
    let ended = run(plans::sweep(2), &agents, Some(&store), &mut |event| {
        if matches!(event, Event::Ended { .. }) {
            ended_trials += 1;
            if ended_trials == 2 {
                let other = rusqlite::Connection::open(&path).expect("the store's file");
                other.execute_batch("DROP TABLE trial").expect("the table goes");
            }
        }
    })
    .await;
    assert_eq!(ended.record.counted().count(), 4, "all trials were run");
    assert!(matches!(ended.failure, Some(RunError::Store(_))), "{:?}", ended.failure);
    assert_eq!(ended.record.results.len(), 2, "and are shown");
}

#[tokio::test]
async fn a_run_that_counted_nothing_leaves_no_row() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::open(Some(&folder.path().join("results.db"))).expect("a store");
    let agents = FakeAgents::new(&["a", "b"]).script(|_, _, _| Act::Fail);
    let ended = run(plans::sweep(1), &agents, Some(&store), &mut |_| ()).await;
    assert!(ended.failure.is_some());
    assert_eq!(store.count(&linerate_store::Query::default()).expect("a count"), 0);
}

#[tokio::test]
async fn a_copy_goes_on_without_a_source_that_is_lost_if_asked_to() {
    for (on_error, goes_on) in [(CopyOnError::Continue, true), (CopyOnError::Stop, false)] {
        let agents = FakeAgents::new(&["a", "b", "c"])
            .script(|_, host, step| if host.0 == "c" && step == Step::Done { Act::Lose } else { Act::Pass });
        let ended = run(plans::copy(&["a", "c"], on_error, 1), &agents, None, &mut |_| ()).await;
        assert_eq!(ended.failure.is_none(), goes_on, "{on_error:?}: {:?}", ended.failure);
        let counted = ended.record.counted().next().and_then(|result| result.copy());
        assert_eq!(counted.is_some(), goes_on);
        let told = counted.is_none_or(|parts| parts.sources.iter().any(|part| part.counted.faults_total > 0));
        assert!(told, "the lost source is a fault of the copy: {counted:?}");
    }
}

#[tokio::test]
async fn a_host_without_an_agent_is_named() {
    let agents = FakeAgents::new(&["a"]);
    let ended = run(plans::sweep(1), &agents, None, &mut |_| ()).await;
    let failure = ended.failure.expect("there is no b").to_string();
    assert!(failure.contains('b'), "{failure}");
}
