//! A run that was stopped after any of its attempts goes on to the same end.

use super::fake::FakeAgents;
use super::{counting, plans, run};
use crate::{Ended, Event, Origin, Resumed, Run};
use linerate_model::{CopyOnError, Plan, TrialResult};
use linerate_store::Store;
use tokio::sync::watch;

/// Agents whose every third attempt is spoilt. What attempts count does not depend on when they are made.
fn agents(made_before: usize) -> FakeAgents {
    FakeAgents::new(&["a", "b"]).counting(move |attempt, host, assignment| {
        let mut counts = counting::counts(host, assignment);
        counts.observation = counting::observation(if (made_before + attempt).is_multiple_of(3) { 50 } else { 0 });
        counts
    })
}

/// Runs `plan` until `most` attempts have ended, as Ctrl-C would end it.
async fn run_some(plan: Plan, store: &Store, most: usize) -> Ended {
    let (stop, stopped) = watch::channel(false);
    let agents = agents(0);
    let mut ended = 0;
    let run = Run {
        plan,
        origin: Origin::default(),
        agents: &agents,
        store: Some(store),
        password: None,
        device: None,
        resumed: None,
    };
    let on_event = &mut |event: Event<'_>| {
        ended += usize::from(matches!(event, Event::Ended { .. }));
        if ended == most {
            stop.send_replace(true);
        }
    };
    run.execute(on_event, stopped).await
}

/// What an attempt was, without when it was made.
fn what(results: &[TrialResult]) -> Vec<(String, u32, bool)> {
    results.iter().map(|result| (result.trial.name.clone(), result.attempt, result.is_counted())).collect()
}

async fn resumes_from_every_attempt(goal: &str, plan: Plan) {
    let whole = run(plan.clone(), &agents(0), None, &mut |_| ()).await;
    assert!(whole.failure.is_none(), "{goal}: {:?}", whole.failure);
    let attempts = whole.record.trials.len();
    assert!(attempts > 3, "{goal}: {attempts} attempts");
    for most in 1..attempts {
        let folder = tempfile::tempdir().expect("a folder");
        let store = Store::open(Some(&folder.path().join("results.db"))).expect("a store");
        let part = run_some(plan.clone(), &store, most).await;
        assert_eq!(part.record.trials.len(), most, "{goal}");
        let (record, live) = store.resume(&part.record.id.0).expect("a run that can go on");
        let agents = agents(most);
        let resumed = Some(Resumed { record, live });
        let run = Run {
            plan: plan.clone(),
            origin: Origin::default(),
            agents: &agents,
            store: Some(&store),
            password: None,
            device: None,
            resumed,
        };
        let ended = run.execute(&mut |_| (), agents.cancel()).await;
        assert!(ended.failure.is_none(), "{goal}, resumed after {most}: {:?}", ended.failure);
        assert_eq!(what(&ended.record.trials), what(&whole.record.trials), "{goal}, resumed after {most}");
        assert_eq!(ended.record.results, whole.record.results, "{goal}, resumed after {most}");
        assert_eq!(ended.record.outcome, whole.record.outcome, "{goal}, resumed after {most}");
        let stored = store.load(&ended.record.id.0).expect("the run is kept");
        assert_eq!(stored.trials, ended.record.trials, "{goal}, resumed after {most}");
    }
}

#[tokio::test]
async fn sweeps_resume_from_every_attempt() {
    resumes_from_every_attempt("sweep", plans::sweep(3)).await;
}

#[tokio::test]
async fn copies_resume_from_every_attempt() {
    resumes_from_every_attempt("copy", plans::copy(&["a"], CopyOnError::Stop, 5)).await;
}

#[tokio::test]
async fn curves_resume_from_every_attempt() {
    resumes_from_every_attempt("curve", plans::curve()).await;
}

#[tokio::test]
async fn device_tests_resume_from_every_attempt() {
    resumes_from_every_attempt("device", plans::device()).await;
}
