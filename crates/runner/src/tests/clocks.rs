//! The clocks of the hosts are read before and after each trial, and a trial does without them.

use super::fake::{Act, FakeAgents, Step, Told};
use super::{assert_led, execute, plans, run};
use crate::{Event, RunError};
use linerate_model::Plan;
use std::time::Duration;

/// A run of two trials of 10 ms between `a` and `b`.
fn plan() -> Plan {
    plans::sweep(1)
}

#[tokio::test(start_paused = true)]
async fn each_trial_has_the_offset_of_each_host() {
    let agents = FakeAgents::new(&["a", "b"]);
    let ended = run(plan(), &agents, None, &mut |_| ()).await;
    assert_eq!(ended.record.trials.len(), 2);
    for result in &ended.record.trials {
        for (place, host) in ["a", "b"].into_iter().enumerate() {
            let found = result.clocks.get(&host.into()).expect("each host has a clock");
            assert_eq!((found.offset_ns, found.exchanges), (FakeAgents::clock_offset(place), 32), "{host}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn no_clock_is_read_while_a_load_runs() {
    let agents = FakeAgents::new(&["a", "b"]);
    run(plan(), &agents, None, &mut |_| ()).await;
    let (log, exchanges) = (agents.log(), agents.exchanges());
    assert!(!exchanges.is_empty());
    for asked in exchanges {
        let count = |step| log[..asked.entries].iter().filter(|entry| entry.told == Told::Reached(step)).count();
        assert_eq!(count(Step::Open), count(Step::Counts), "{} was asked while a session was open", asked.host);
    }
}

#[tokio::test(start_paused = true)]
async fn exchanges_serve_two_trials_unless_they_are_old() {
    let agents = FakeAgents::new(&["a", "b"]);
    run(plan(), &agents, None, &mut |_| ()).await;
    assert_eq!(agents.exchanges().len(), 3 * 2 * 16, "before, between and after two trials");

    let agents = FakeAgents::new(&["a", "b"]).script(|moment| match moment.step {
        Step::Clock if moment.attempt > 0 => Act::Delay(Duration::from_millis(150)),
        _ => Act::Pass,
    });
    run(plan(), &agents, None, &mut |_| ()).await;
    let after = agents.exchanges().iter().filter(|asked| asked.entries > 0).count();
    assert_eq!(after, 2 * 2 * 2, "200 ms have passed after two exchanges");
}

#[tokio::test(start_paused = true)]
async fn a_host_that_does_not_tell_its_clock_fails_no_trial() {
    for (act, longest) in [(Act::Fail, Duration::from_millis(500)), (Act::Silence, Duration::from_secs(4 * 3 + 1))] {
        let agents = FakeAgents::new(&["a", "b"]).script(move |moment| match (moment.host.0.as_str(), moment.step) {
            ("b", Step::Clock) => act,
            _ => Act::Pass,
        });
        let (ended, time) = execute(plan(), &agents, None, None, None, &mut |_| ()).await;
        assert!(ended.failure.is_none(), "{:?}", ended.failure);
        assert!(time < longest, "it took {time:?}");
        assert_led(&agents.attempts());
        for result in &ended.record.trials {
            assert!(result.is_counted());
            assert_eq!(result.clocks.keys().map(|host| host.0.as_str()).collect::<Vec<_>>(), ["a"]);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_trial_that_is_measured_is_kept_where_the_user_does_not_wait_for_the_clocks() {
    let agents = FakeAgents::new(&["a", "b"]).script(|moment| match moment.step {
        Step::Clock if moment.attempt > 0 => Act::Silence,
        _ => Act::Pass,
    });
    let stops = async {
        while !agents.exchanges().iter().any(|asked| asked.entries > 0) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        agents.interrupt();
    };
    let on_event = &mut |_: Event<'_>| ();
    let ((ended, _), ()) = tokio::join!(execute(plan(), &agents, None, None, None, on_event), stops);
    assert!(matches!(ended.failure, Some(RunError::Interrupted)), "{:?}", ended.failure);
    let [only] = &ended.record.trials[..] else { panic!("{} trials", ended.record.trials.len()) };
    assert!(only.is_counted() && only.clocks.is_empty());
    assert_led(&agents.attempts());
}

/// `b` is given up 3 s after `a` has answered.
#[tokio::test(start_paused = true)]
async fn old_exchanges_are_made_anew() {
    let agents = FakeAgents::new(&["a", "b"]).script(|moment| match (moment.host.0.as_str(), moment.step) {
        ("b", Step::Clock) => Act::Silence,
        _ => Act::Pass,
    });
    run(plan(), &agents, None, &mut |_| ()).await;
    let of_a = agents.exchanges().iter().filter(|asked| asked.host.0 == "a").count();
    assert_eq!(of_a, 4 * 16, "before and after either trial");
}
