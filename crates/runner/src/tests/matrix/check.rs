//! What must hold of every case.

use super::super::fake::FakeAgents;
use super::super::{assert_led, attempts_of, execute, resume, without_spans};
use super::events::Consequence;
use super::{Case, DISTURBED, Goal};
use crate::{Ended, RunError};
use linerate_model::{CaveatKind, Record, Standing};
use linerate_store::{Query, State, Store};
use std::time::Duration;

/// What one disturbed attempt may cost: an agent that is silent, and two that are silent while they are closed.
const DISTURBANCE: Duration = Duration::from_secs(60);

/// A run that nothing disturbed.
pub(super) struct Reference {
    record: Record,
    time: Duration,
}

pub(super) async fn reference(goal: &Goal) -> Reference {
    let agents = FakeAgents::on(goal.network.clone(), goal.hosts);
    let (Ended { record, failure, .. }, time) =
        execute(goal.plan.clone(), &agents, None, None, None, &mut |_| ()).await;
    assert!(failure.is_none(), "{}: {failure:?}", goal.name);
    assert!(record.trials.len() > DISTURBED, "{}: {:?}", goal.name, attempts_of(&record.trials));
    assert!(record.trials.iter().all(|result| result.is_counted()), "{}", goal.name);
    assert_led(&agents.attempts());
    Reference { record, time }
}

/// Asserts what must hold of a run in which the event of `case` happened.
pub(super) async fn check(
    goal: &Goal,
    reference: &Reference,
    case: Case,
    ended: &Ended,
    time: Duration,
    agents: &FakeAgents,
    store: &Store,
) {
    assert_led(&agents.attempts());
    assert_kept(ended, store);
    let Ended { record, failure, .. } = ended;
    if !case.event.always {
        assert!(time <= reference.time + DISTURBANCE, "it took {time:?}, and {:?} undisturbed", reference.time);
    }
    match case.event.consequence() {
        Consequence::None => {
            assert!(failure.is_none(), "{failure:?}");
            assert_eq!(without_spans(&record.trials), without_spans(&reference.record.trials));
            assert_same(record, reference);
            assert_eq!(state(store), Some(State::Finished));
        }
        Consequence::Repeated => {
            assert!(failure.is_none(), "{failure:?}");
            assert_spoilt(goal, reference, case, record);
            assert_eq!(state(store), Some(State::Finished));
        }
        Consequence::Interrupted => {
            assert!(matches!(failure, Some(RunError::Interrupted)), "{failure:?}");
            assert_eq!(
                without_spans(&record.trials),
                without_spans(&reference.record.trials[..DISTURBED]),
                "no half-measured trial"
            );
            assert_eq!(state(store), Some(State::Interrupted));
            assert_resumes(goal, reference, record, store).await;
        }
        Consequence::Failed(stage) => {
            let failed = &record.trials[DISTURBED];
            let reason = failed.failure().expect("the trial failed");
            assert!(reason.starts_with(&format!("{}: ", case.host)), "it does not name {}: {reason}", case.host);
            let at = stage.map(|stage| format!("(at stage `{stage}`)"));
            assert!(reason.contains(at.as_deref().unwrap_or("(at stage `")), "it does not name {at:?}: {reason}");
            assert_eq!(
                without_spans(&record.trials[..DISTURBED]),
                without_spans(&reference.record.trials[..DISTURBED])
            );
            if goal.goes_on {
                assert!(failure.is_none(), "{failure:?}");
                assert_eq!(record.trials.len(), reference.record.trials.len());
                assert!(record.caveats.iter().any(|caveat| caveat.text.contains(reason)), "{:?}", record.caveats);
                assert_eq!(state(store), Some(State::Finished));
                return;
            }
            let said = failure.as_ref().map(ToString::to_string).unwrap_or_default();
            assert_eq!(said, format!("{}: {reason}", failed.trial.name));
            assert_eq!(record.trials.len(), DISTURBED + 1, "nothing runs after it");
            assert_eq!(state(store), Some(State::Failed));
            assert_resumes(goal, reference, record, store).await;
        }
    }
}

/// The state of the only run in a store.
fn state(store: &Store) -> Option<State> {
    assert!(store.count(&Query::default()).expect("the store can be read") <= 1);
    store.row("latest").ok().map(|run| run.state)
}

/// Asserts that the store has every attempt of the record, in order, and what they came to.
fn assert_kept(ended: &Ended, store: &Store) {
    let kept = store.load("latest").expect("the run was kept");
    assert_eq!(attempts_of(&kept.trials), attempts_of(&ended.record.trials));
    assert_eq!(kept.results, ended.record.results);
    assert_eq!(kept.outcome, ended.record.outcome);
}

fn assert_same(record: &Record, reference: &Reference) {
    assert_eq!(record.results, reference.record.results);
    assert_eq!(record.outcome, reference.record.outcome);
}

/// Asserts that what was kept can be gone on with, and comes to the same.
async fn assert_resumes(goal: &Goal, reference: &Reference, so_far: &Record, store: &Store) {
    let (record, live) = store.resume(&so_far.id.0).expect("a run that can go on");
    let agents = FakeAgents::on(goal.network.clone(), goal.hosts);
    let ended = resume(record, live, &agents, store).await;
    assert!(ended.failure.is_none(), "resumed: {:?}", ended.failure);
    assert_led(&agents.attempts());
    assert_kept(&ended, store);
    let counted = |record: &Record| without_spans(&record.counted().cloned().collect::<Vec<_>>());
    assert_eq!(counted(&ended.record), counted(&reference.record), "resumed");
    assert_same(&ended.record, reference);
    assert_eq!(state(store), Some(State::Finished));
    let made = agents.attempts().len();
    assert_eq!(made, reference.record.trials.len() - so_far.counted().count(), "nothing is measured twice");
}

/// Asserts that spoilt attempts were repeated as often as allowed, and that what counts is as it would have been or says so.
fn assert_spoilt(goal: &Goal, reference: &Reference, case: Case, record: &Record) {
    let repeated: Vec<_> =
        record.trials.iter().filter(|result| matches!(result.standing, Standing::Spoilt { .. })).collect();
    let stolen = |kind: CaveatKind| kind == CaveatKind::CpuStolen;
    if !goal.repeats {
        assert!(repeated.is_empty());
    } else if case.event.always {
        // At most four repeats of each trial.
        assert!(record.trials.iter().all(|result| result.attempt <= 4));
        assert!(!repeated.is_empty());
    } else {
        assert_eq!(repeated.len(), 1);
        assert_eq!(record.trials.len(), reference.record.trials.len() + 1);
        assert_same(record, reference);
        return;
    }
    let spoilt = record.counted().filter(|result| result.hosts.contains_key(&case.host.into()));
    let said = |result: &linerate_model::TrialResult| result.caveats.iter().any(|caveat| stolen(caveat.kind));
    assert!(spoilt.filter(|result| said(result)).count() > 0, "{:?}", attempts_of(&record.trials));
}
