//! Hosts wait for each other, and one that is lost meanwhile is noticed at once.

use super::fake::{Act, FakeAgents, Step, Told};
use super::{assert_led, execute, plans, run};
use linerate_model::{CopyOnError, DeviceTest, Plan};
use std::time::Duration;

/// How long a host is slow, far more than what a trial takes.
const SLOW: Duration = Duration::from_secs(9);
/// From a loss to the end of the run.
const AT_ONCE: Duration = Duration::from_millis(100);

/// `b` is slow to come to `step`, where `a` is lost while it waits.
async fn lost_while_another_is_slow(plan: Plan, step: Step) {
    let agents = FakeAgents::new(&["a", "b"]).script(move |moment| match moment.host.0.as_str() {
        "a" if moment.step == step => Act::LoseAfter(Duration::from_millis(1)),
        "b" if moment.step == step => Act::Delay(SLOW),
        _ => Act::Pass,
    });
    let (ended, time) = execute(plan, &agents, None, None, None, &mut |_| ()).await;
    let failure = ended.failure.expect("a host was lost").to_string();
    assert!(failure.contains("a: lost the agent"), "{step:?}: {failure}");
    assert!(time < AT_ONCE, "{step:?}: it was noticed after {time:?}");
    assert_led(&agents.attempts());
}

#[tokio::test(start_paused = true)]
async fn a_host_that_is_lost_while_it_waits_for_the_others_is_noticed_at_once() {
    for step in [Step::Listening, Step::Ready] {
        lost_while_another_is_slow(plans::sweep(1), step).await;
        lost_while_another_is_slow(plans::copy(&["a"], CopyOnError::Stop, 1), step).await;
    }
}

/// The peer of an agent that is lost sees its connections break, and may tell that first.
#[tokio::test(start_paused = true)]
async fn the_agent_that_was_lost_is_named_where_its_peer_fails_first() {
    for step in [Step::Preparing, Step::Running] {
        let lost_after = |time| {
            FakeAgents::new(&["a", "b"]).script(move |moment| match moment.host.0.as_str() {
                "a" if moment.step == step => Act::Fail,
                "b" if moment.step == step => Act::LoseAfter(time),
                "b" if moment.step > step => Act::Delay(SLOW),
                _ => Act::Pass,
            })
        };
        let ended = run(plans::sweep(1), &lost_after(Duration::from_millis(50)), None, &mut |_| ()).await;
        let failure = ended.failure.expect("a host was lost").to_string();
        assert!(failure.contains("b: lost the agent"), "{step:?}: {failure}");
        // What is lost much later is not the reason.
        let ended = run(plans::sweep(1), &lost_after(SLOW / 2), None, &mut |_| ()).await;
        let failure = ended.failure.expect("a session failed").to_string();
        assert!(failure.contains(": a: "), "{step:?}: {failure}");
    }
}

/// The stages of an agent that was killed are waited for, since it might come back. A check of it fails.
#[tokio::test(start_paused = true)]
async fn an_agent_that_fails_its_check_is_named_where_its_peer_fails_first() {
    for (check, named) in [(Act::Lose, "b: lost the agent"), (Act::Silence, ": a: "), (Act::Pass, ": a: ")] {
        let agents = FakeAgents::new(&["a", "b"]).script(move |moment| match (moment.host.0.as_str(), moment.step) {
            ("a", Step::Running) => Act::Fail,
            ("b", Step::Check) => check,
            ("b", step) if step >= Step::Running => Act::Delay(SLOW),
            _ => Act::Pass,
        });
        let (ended, time) = execute(plans::sweep(1), &agents, None, None, None, &mut |_| ()).await;
        let failure = ended.failure.expect("a session failed").to_string();
        assert!(failure.contains(named) && time < SLOW, "{check:?}: {failure} after {time:?}");
    }
}

/// `b` only receives, so that it has sent as soon as it runs. `a` sends on for 100 ms.
#[tokio::test(start_paused = true)]
async fn a_host_that_is_lost_between_sent_and_drain_is_noticed_while_the_others_send() {
    let agents = FakeAgents::new(&["a", "b"]).script(|moment| match (moment.host.0.as_str(), moment.step) {
        ("b", Step::Sent) => Act::LoseAfter(Duration::from_millis(1)),
        _ => Act::Pass,
    });
    let (ended, time) = execute(plans::frames(), &agents, None, None, None, &mut |_| ()).await;
    let failure = ended.failure.expect("a host was lost").to_string();
    assert!(failure.starts_with("frames 1518: b: lost the agent") && failure.contains("stage `sent`"), "{failure}");
    assert!(time < AT_ONCE, "it was noticed after {time:?}");
    let drained = agents.log().iter().any(|entry| entry.told == Told::Ordered(Step::Drain));
    assert!(!drained, "nobody is to count on");
}

/// The last moments at which a host can be lost: when it is ordered to drain, and before it is done.
#[tokio::test(start_paused = true)]
async fn a_host_that_is_lost_as_it_drains_fails_the_trial() {
    for step in [Step::Drain, Step::Done] {
        let agents = FakeAgents::new(&["a", "b"])
            .script(move |moment| if moment.host.0 == "b" && moment.step == step { Act::Lose } else { Act::Pass });
        let ended = run(plans::frames(), &agents, None, &mut |_| ()).await;
        let failure = ended.failure.expect("a host was lost").to_string();
        assert!(failure.starts_with("frames 1518: b: lost the agent") && failure.contains("stage `sent`"), "{failure}");
        assert_led(&agents.attempts());
    }
}

#[tokio::test(start_paused = true)]
async fn hosts_with_frames_count_until_all_have_sent() {
    let agents = FakeAgents::new(&["a", "b"]);
    let ended = run(plans::device(DeviceTest::Throughput), &agents, None, &mut |_| ()).await;
    assert!(ended.failure.is_none(), "{:?}", ended.failure);
    let attempts = agents.attempts();
    assert!(attempts.len() > 3, "a search takes several trials");
    assert_led(&attempts);
    for attempt in &attempts {
        assert_eq!(attempt.iter().filter(|entry| entry.told == Told::Ordered(Step::Drain)).count(), 2);
    }
}

#[tokio::test(start_paused = true)]
async fn a_failed_device_test_names_the_trial_the_host_and_the_stage() {
    let agents =
        FakeAgents::new(&["a", "b"]).script(|moment| match (moment.attempt, moment.host.0.as_str(), moment.step) {
            (2, "b", Step::Sent) => Act::Fail,
            _ => Act::Pass,
        });
    let ended = run(plans::device(DeviceTest::Throughput), &agents, None, &mut |_| ()).await;
    let failure = ended.failure.expect("a trial failed").to_string();
    assert_eq!(failure, "throughput 64: b: as the script has it (at stage `running`)");
    assert!(ended.record.caveats.iter().any(|caveat| caveat.text.contains(&failure)), "{:?}", ended.record.caveats);
}

#[tokio::test(start_paused = true)]
async fn a_copy_goes_on_without_a_source_that_is_lost_if_asked_to() {
    for (on_error, goes_on) in [(CopyOnError::Continue, true), (CopyOnError::Stop, false)] {
        let agents = FakeAgents::new(&["a", "c", "b"])
            .script(|moment| if moment.host.0 == "c" && moment.step == Step::Done { Act::Lose } else { Act::Pass });
        let ended = run(plans::copy(&["a", "c"], on_error, 1), &agents, None, &mut |_| ()).await;
        assert_eq!(ended.failure.is_none(), goes_on, "{on_error:?}: {:?}", ended.failure);
        let counted = ended.record.counted().next().and_then(|result| result.copy());
        assert_eq!(counted.is_some(), goes_on);
        let told = counted.is_none_or(|parts| parts.sources.iter().any(|part| part.counted.faults_total > 0));
        assert!(told, "the lost source is a fault of the copy: {counted:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_host_without_an_agent_is_named() {
    let agents = FakeAgents::new(&["a"]);
    let ended = run(plans::sweep(1), &agents, None, &mut |_| ()).await;
    let failure = ended.failure.expect("there is no b").to_string();
    assert!(failure.contains("host b"), "{failure}");
}
