//! A run that was stopped after any of its attempts goes on to the same end.

use super::fake::{Act, FakeAgents, Step};
use super::{attempts_of, execute, new_store, plans, resume, run};
use crate::Event;
use linerate_model::{CopyOnError, DeviceTest, Plan};

/// Agents whose every third attempt of a run is spoilt, `before` of which were made earlier. What attempts count does not depend
/// on when they are made.
fn agents(before: usize) -> FakeAgents {
    FakeAgents::on(plans::network(), &["a", "c", "b"]).script(move |moment| {
        let spoilt = (before + moment.attempt).is_multiple_of(3) && moment.step == Step::Counts;
        if spoilt { Act::Spoil } else { Act::Pass }
    })
}

async fn resumes_from_every_attempt(goal: &str, plan: Plan) {
    let whole = run(plan.clone(), &agents(0), None, &mut |_| ()).await;
    assert!(whole.failure.is_none(), "{goal}: {:?}", whole.failure);
    let attempts = whole.record.trials.len();
    assert!(attempts > 3, "{goal}: {attempts} attempts");
    for most in 1..attempts {
        let (_folder, store) = new_store();
        let (first, mut ended) = (agents(0), 0);
        let on_event = &mut |event: Event<'_>| {
            ended += usize::from(matches!(event, Event::Ended { .. }));
            if ended == most {
                first.interrupt();
            }
        };
        let (part, _) = execute(plan.clone(), &first, Some(&store), None, None, on_event).await;
        assert_eq!(part.record.trials.len(), most, "{goal}");
        let (record, live) = store.resume(&part.record.id.0).expect("a run that can go on");
        let ended = resume(record, live, &agents(most), &store).await;
        assert!(ended.failure.is_none(), "{goal}, resumed after {most}: {:?}", ended.failure);
        assert_eq!(
            attempts_of(&ended.record.trials),
            attempts_of(&whole.record.trials),
            "{goal}, resumed after {most}"
        );
        assert_eq!(ended.record.results, whole.record.results, "{goal}, resumed after {most}");
        assert_eq!(ended.record.outcome, whole.record.outcome, "{goal}, resumed after {most}");
        let stored = store.load(&ended.record.id.0).expect("the run is kept");
        assert_eq!(stored.trials, ended.record.trials, "{goal}, resumed after {most}");
    }
}

#[tokio::test(start_paused = true)]
async fn sweeps_resume_from_every_attempt() {
    resumes_from_every_attempt("TCP streams", plans::sweep(3)).await;
    resumes_from_every_attempt("latency under load", plans::loaded_latency()).await;
    resumes_from_every_attempt("copies", plans::copy(&["a", "c"], CopyOnError::Stop, 5)).await;
}

#[tokio::test(start_paused = true)]
async fn curves_resume_from_every_attempt() {
    resumes_from_every_attempt("curve", plans::curve()).await;
}

#[tokio::test(start_paused = true)]
async fn device_tests_resume_from_every_attempt() {
    for test in [DeviceTest::Throughput, DeviceTest::All { step_percent: 25, repeats: 2 }] {
        resumes_from_every_attempt("device", plans::device(test)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn ladders_resume_from_every_attempt() {
    resumes_from_every_attempt("ladder", plans::ladder(1)).await;
}
