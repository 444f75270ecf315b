//! Windows that open when the load is steady: all together, in time, and once.

use super::fake::{Act, FakeAgents, FakeWindow, Step, Told};
use super::{assert_led, execute, plans, run};
use crate::{Event, RunError};
use linerate_model::{Goal, Plan, Timing, TrialResult, Warmup, Window};
use linerate_units::Nanos;
use std::cell::Cell;
use std::time::Duration;

/// From the moment at which a load is found steady to the opening of its window: the order's lead, and what progress is late by.
const LEAD: Duration = Duration::from_millis(50);
const MS: Duration = Duration::from_millis(1);

fn plan() -> Plan {
    plans::when_steady(plans::sweep(1))
}

/// Sessions of a trial of one load.
const SESSIONS: usize = 2;

/// Runs `plan`, and returns the warm-up of each trial. The windows of all its sessions have to open together.
async fn warm_ups(agents: &FakeAgents, plan: Plan) -> Vec<Duration> {
    let ended = run(plan, agents, None, &mut |_| ()).await;
    assert!(ended.failure.is_none(), "{:?}", ended.failure);
    assert!(!ended.record.trials.is_empty() && ended.record.trials.iter().all(TrialResult::is_counted));
    assert_led(&agents.attempts());
    let windows = agents.windows();
    assert_eq!(windows.len(), SESSIONS * ended.record.trials.len());
    let together = |trial: &[FakeWindow]| {
        assert!(trial.iter().all(|window| window.opened == trial[0].opened), "{trial:?}");
        trial[0].warm_up
    };
    windows.chunks(SESSIONS).map(together).collect()
}

#[tokio::test(start_paused = true)]
async fn all_windows_open_together_once_the_load_is_steady() {
    let agents = FakeAgents::new(&["a", "b"]);
    for warm_up in warm_ups(&agents, plan()).await {
        assert!((500 * MS..=700 * MS).contains(&warm_up), "a constant rate is steady after {warm_up:?}");
    }
    // The rate grows for 2 s.
    let grows = |seconds: f64| (if seconds < 2.0 { seconds.powi(2) } else { 4.0 * (seconds - 1.0) } * 1e8) as u64;
    let agents = FakeAgents::new(&["a", "b"]).course(Some(Box::new(grows)));
    for warm_up in warm_ups(&agents, plan()).await {
        assert!((2_000 * MS..=3_000 * MS).contains(&warm_up), "the rate is constant after 2 s, not {warm_up:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_load_that_is_never_steady_is_measured_after_ten_seconds() {
    let agents = FakeAgents::new(&["a", "b"]).course(Some(Box::new(|seconds| (1e7 * 2f64.powf(seconds / 0.3)) as u64)));
    for warm_up in warm_ups(&agents, plan()).await {
        assert!((10_000 * MS..=10_100 * MS + LEAD).contains(&warm_up), "{warm_up:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn windows_open_although_no_host_tells_its_progress() {
    let agents = FakeAgents::new(&["a", "b"]).course(None);
    for warm_up in warm_ups(&agents, plan()).await {
        assert!((10_000 * MS..=11_100 * MS + LEAD).contains(&warm_up), "{warm_up:?}");
    }
}

/// Requests run beside the load for less time than it, and begin later.
#[tokio::test(start_paused = true)]
async fn a_load_beside_the_measured_one_opens_its_window_then() {
    let mut plan = plans::when_steady(plans::loaded_latency());
    let later = Nanos::from_millis(300);
    let Goal::Sweep(sweep) = &mut plan.goal else { unreachable!("it is a sweep") };
    for cell in &mut sweep.cells {
        cell.loads[1].timing =
            Timing::Window(Window { warmup: Warmup::STEADY.and(later), measure: Nanos::from_millis(100) });
    }
    let agents = FakeAgents::new(&["a", "b"]);
    let ended = run(plan, &agents, None, &mut |_| ()).await;
    assert!(ended.failure.is_none(), "{:?}", ended.failure);
    let windows = agents.windows();
    let beside = |window: &&FakeWindow| window.id.contains("-1-");
    let load = windows.iter().find(|window| !beside(window)).expect("the load");
    for window in windows.iter().filter(beside).filter(|window| window.attempt() == load.attempt()) {
        assert_eq!(window.opened - load.opened, Duration::from(later), "{window:?}");
    }
    assert!(windows.iter().filter(|window| window.attempt() == load.attempt()).any(|window| beside(&window)));
}

/// The length of the measured load's own warm-up is fixed, so that nobody judges whether it is steady.
#[tokio::test(start_paused = true)]
async fn a_load_beside_one_of_fixed_warm_up_opens_its_window_too() {
    let mut plan = plans::loaded_latency();
    let Goal::Sweep(sweep) = &mut plan.goal else { unreachable!("it is a sweep") };
    sweep.cells.iter_mut().for_each(|cell| cell.loads[1].timing = Timing::when_steady(Nanos::from_millis(100)));
    let agents = FakeAgents::new(&["a", "b"]);
    let ended = run(plan, &agents, None, &mut |_| ()).await;
    assert!(ended.failure.is_none(), "{:?}", ended.failure);
    assert!(!agents.windows().is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_user_stops_a_run_whose_window_is_not_open() {
    let agents = FakeAgents::new(&["a", "b"]);
    let told = Cell::new(0);
    let (ended, time) = execute(plan(), &agents, None, None, None, &mut |event| {
        if matches!(event, Event::Progress { .. }) {
            told.set(told.get() + 1);
            if told.get() == 4 {
                agents.interrupt();
            }
        }
    })
    .await;
    assert!(matches!(ended.failure, Some(RunError::Interrupted)), "{:?}", ended.failure);
    assert!(time < Duration::from_secs(1), "it took {time:?}");
    assert_eq!((ended.record.trials.len(), agents.windows().len()), (0, 0));
    assert_led(&agents.attempts());
}

/// One host does not take the order; the other has taken it.
#[tokio::test(start_paused = true)]
async fn a_host_that_does_not_open_its_window_fails_the_trial_at_once() {
    for act in [Act::Fail, Act::Lose] {
        let agents = FakeAgents::new(&["a", "b"]).script(move |moment| match (moment.host.0.as_str(), moment.step) {
            ("b", Step::Window) => act,
            _ => Act::Pass,
        });
        let (ended, time) = execute(plan(), &agents, None, None, None, &mut |_| ()).await;
        let failure = ended.failure.expect("a window is shut").to_string();
        assert!(failure.starts_with("tcp 1: b: ") && failure.ends_with("(at stage `running`)"), "{act:?}: {failure}");
        assert!(time < Duration::from_secs(1), "{act:?}: it took {time:?}");
        let closed = agents.log().iter().filter(|entry| entry.told == Told::Closed).count();
        assert_eq!(closed, 2, "{act:?}");
    }
}
