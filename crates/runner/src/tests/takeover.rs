//! A run that was killed is continued by another runner under the same name.

use super::fake::{Act, FakeAgents, Step};
use super::{BOUND, new_store, plans};
use crate::{Ended, Keep, Origin, Run};
use linerate_model::{Plan, RecordId, Sampling, TrialResult};
use linerate_store::Store;
use std::collections::BTreeMap;
use tokio::time::timeout;

const NAME: &str = "20261129T150000-4f2a";

async fn run_named(plan: Plan, agents: &FakeAgents, store: &Store, takes_over: bool) -> Ended {
    let run = Run {
        plan,
        origin: Origin::default(),
        sampling_period: Sampling::default().period,
        agents,
        id: Some(RecordId(NAME.to_owned())),
        takes_over,
        keep: Some(store as &dyn Keep),
        password: None,
        device: None,
        bench: None,
        resumed: None,
    };
    timeout(BOUND, run.execute(&mut |_| (), agents.cancel())).await.expect("a run ends")
}

#[tokio::test(start_paused = true)]
async fn counts_of_a_finished_attempt_are_used() {
    let agents = FakeAgents::on(plans::network(), &["a", "c", "b"]);
    let (_folder, killed) = new_store();
    let first = run_named(plans::sweep(1), &agents, &killed, false).await;
    assert!(first.failure.is_none(), "{:?}", first.failure);
    let opened = agents.attempts().len();

    // The first runner was killed before it kept anything.
    let (_folder, store) = new_store();
    let second = run_named(plans::sweep(1), &agents, &store, true).await;
    assert!(second.failure.is_none(), "{:?}", second.failure);
    assert_eq!(second.record.id.0, NAME);
    // The clocks were compared by the runner that was killed.
    let counts = |ended: &Ended| TrialResult { span: None, clocks: BTreeMap::new(), ..ended.record.trials[0].clone() };
    assert_eq!(counts(&second), counts(&first), "the counts of the first runner");
    // Its other attempts are opened again under the names that they had.
    assert_eq!(agents.attempts().len(), opened);
    assert!(agents.closed().is_empty());
}

#[tokio::test(start_paused = true)]
async fn sessions_of_an_unfinished_attempt_are_closed_and_it_is_repeated() {
    let agents = FakeAgents::on(plans::network(), &["a", "c", "b"]);
    let (_folder, killed) = new_store();
    run_named(plans::sweep(1), &agents, &killed, false).await;
    agents.drop_kept(&format!("{NAME}-0-0-1"));
    let entries = agents.log().len();

    let (_folder, store) = new_store();
    let second = run_named(plans::sweep(1), &agents, &store, true).await;
    assert!(second.failure.is_none(), "{:?}", second.failure);
    let closed: Vec<String> = agents.closed().into_iter().map(|id| id.0).collect();
    assert!(closed.contains(&format!("{NAME}-0-0-0")) && closed.contains(&format!("{NAME}-0-0-1")), "{closed:?}");
    let opened_again = agents.log()[entries..].iter().any(|entry| entry.id == format!("{NAME}-0-0-0"));
    assert!(opened_again, "the attempt is made again");
}

#[tokio::test(start_paused = true)]
async fn attempt_that_hosts_finished_unseen_is_counted() {
    let agents = FakeAgents::on(plans::network(), &["a", "c", "b"]).script(|moment| {
        let is_lost = moment.attempt == 1 && moment.host.0 == "b" && moment.step == Step::Counts;
        if is_lost { Act::Lose } else { Act::Pass }
    });
    let (_folder, store) = new_store();
    let ended = run_named(plans::sweep(1), &agents, &store, false).await;
    assert!(ended.failure.is_none(), "{:?}", ended.failure);
    assert!(ended.record.trials[0].is_counted(), "{:?}", ended.record.trials[0].failure());
}
