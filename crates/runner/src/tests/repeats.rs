//! Attempts that the tester spoilt.

use super::fake::{Act, FakeAgents, Step};
use super::{attempts_of, plans, run};
use crate::Event;
use linerate_model::Standing;

#[tokio::test(start_paused = true)]
async fn a_spoilt_attempt_is_kept_and_run_again() {
    let agents = FakeAgents::new(&["a", "b"])
        .script(|moment| if moment.attempt < 2 && moment.step == Step::Counts { Act::Spoil } else { Act::Pass });
    let mut repeating = 0;
    let ended = run(plans::sweep(1), &agents, None, &mut |event| {
        repeating += u32::from(matches!(event, Event::Repeating { .. }));
    })
    .await;
    assert!(ended.failure.is_none());
    let expected = [("tcp 1", 0, false), ("tcp 1", 1, false), ("tcp 1", 2, true), ("tcp 2", 0, true)];
    let attempts = attempts_of(&ended.record.trials);
    let attempts: Vec<_> =
        attempts.iter().map(|(name, attempt, counted)| (name.as_str(), *attempt, *counted)).collect();
    assert_eq!(attempts, expected);
    assert!(matches!(&ended.record.trials[0].standing, Standing::Spoilt { reason } if reason.text.contains("50 %")));
    assert_eq!(repeating, 2);
    assert_eq!(ended.record.results[0].main.runs, 1, "spoilt attempts are excluded from results");
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_is_always_spoilt_counts_with_its_doubt() {
    let agents =
        FakeAgents::new(&["a", "b"]).script(|moment| if moment.step == Step::Counts { Act::Spoil } else { Act::Pass });
    let ended = run(plans::sweep(1), &agents, None, &mut |_| ()).await;
    assert!(ended.failure.is_none());
    let attempts: Vec<u32> = ended.record.counted().map(|result| result.attempt).collect();
    assert_eq!(attempts, [4, 2], "four repeats, and half as many where they did not help");
    for result in ended.record.counted() {
        assert!(result.caveats.iter().any(|caveat| caveat.text.contains("50 %")), "{:?}", result.caveats);
    }
}

/// The attempts follow each other on the runner's clock, the failed one too.
#[tokio::test(start_paused = true)]
async fn each_attempt_keeps_when_it_began_and_ended() {
    let agents = FakeAgents::new(&["a", "b"]).script(|moment| match (moment.attempt, moment.step) {
        (0, Step::Counts) => Act::Spoil,
        (2, Step::Counts) => Act::Fail,
        _ => Act::Pass,
    });
    let ended = run(plans::sweep(2), &agents, None, &mut |_| ()).await;
    assert!(ended.failure.is_some());
    let record = ended.record;
    assert!(record.trials.len() >= 2 && record.trials.last().is_some_and(|last| last.failure().is_some()));
    let mut last = record.started_unix_ns;
    for result in &record.trials {
        let span = result.span.expect("when it was under way");
        assert!(last <= span.began_unix_ns && span.began_unix_ns < span.ended_unix_ns, "{last}: {span:?}");
        last = span.ended_unix_ns;
    }
}
