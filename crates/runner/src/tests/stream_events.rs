//! What is told of runs, however they end.

use super::fake::{Act, FakeAgents, Step};
use super::{execute, new_store, plans, run};
use crate::{Event, Resumed, Telling};
use linerate_model::{
    DeviceTest, EndState, Meter, Plan, Record, SessionProgress, StreamEvent, TaskKind, Transport, TrialState,
};
use linerate_units::Nanos;

/// Runs `plan` and returns what is told of it.
async fn told(plan: Plan, agents: &FakeAgents) -> (Vec<StreamEvent>, Record) {
    let (mut telling, mut told) = (Telling::new(None), Vec::new());
    let ended = run(plan, agents, None, &mut |event| told.extend(telling.take(&event))).await;
    (told, ended.record)
}

/// Names of events, with the state of trials and of the end.
fn names(told: &[StreamEvent]) -> Vec<String> {
    let name = |event: &StreamEvent| match event {
        StreamEvent::Start { .. } => "start".to_owned(),
        StreamEvent::Host { host } => format!("host {}", host.name),
        StreamEvent::Trial { number, attempt, state, .. } => format!("trial {number} {attempt} {state:?}"),
        StreamEvent::Interval(_) => "interval".to_owned(),
        StreamEvent::Result { result } => format!("result {}", result.name),
        StreamEvent::Verdict { result, .. } => format!("verdict {result}"),
        StreamEvent::Outcome { .. } => "outcome".to_owned(),
        StreamEvent::End { state, reason } => format!("end {state:?}{}", if reason.is_some() { ", why" } else { "" }),
    };
    told.iter().map(name).collect()
}

#[tokio::test(start_paused = true)]
async fn a_run_is_told_in_order_with_its_spoilt_attempts() {
    let agents = FakeAgents::new(&["a", "b"])
        .script(|moment| if moment.attempt == 1 && moment.step == Step::Counts { Act::Spoil } else { Act::Pass });
    let (told, record) = told(plans::sweep(1), &agents).await;
    let expected = [
        "start",
        "host a",
        "host b",
        "trial 0 0 Begins",
        "trial 0 0 Counted",
        "trial 1 0 Begins",
        "trial 1 0 Spoilt",
        "trial 2 1 Begins",
        "trial 2 1 Counted",
        "result tcp 1",
        "verdict tcp 1",
        "result tcp 2",
        "verdict tcp 2",
        "end Finished",
    ];
    assert_eq!(names(&told), expected);
    assert!(matches!(&told[0], StreamEvent::Start { record: id, .. } if *id == record.id));
    let StreamEvent::Trial { name, task, transport, .. } = &told[5] else { panic!("{:?}", told[5]) };
    assert_eq!((name.as_str(), *task, *transport), ("tcp 2", TaskKind::Stream, Some(Transport::Tcp)));
    assert!(
        matches!(&told[6], StreamEvent::Trial { reason: Some(reason), .. } if reason.contains("50 %")),
        "{:?}",
        told[6]
    );
}

#[tokio::test(start_paused = true)]
async fn a_run_that_ends_early_says_how_and_why() {
    let at = |act: Act| {
        FakeAgents::new(&["a", "b"])
            .script(move |moment| if moment.attempt == 1 && moment.step == Step::Running { act } else { Act::Pass })
    };
    let (failed, _) = told(plans::sweep(1), &at(Act::Fail)).await;
    assert_eq!(names(&failed)[5..7], ["trial 1 0 Begins", "trial 1 0 Failed"]);
    assert_eq!(names(&failed).last().map(String::as_str), Some("end Failed, why"));

    let (stopped, _) = told(plans::sweep(1), &at(Act::Interrupt)).await;
    let end = ["trial 1 0 Begins", "result tcp 1", "verdict tcp 1", "end Interrupted, why"];
    assert_eq!(names(&stopped)[5..], end, "what was measured is told");
}

#[tokio::test(start_paused = true)]
async fn what_a_device_test_found_is_told() {
    let (told, record) =
        told(plans::device(DeviceTest::Throughput), &FakeAgents::on(plans::network(), &["a", "b"])).await;
    let [.., StreamEvent::Outcome { outcome }, StreamEvent::End { state: EndState::Finished, .. }] = &told[..] else {
        panic!("{:?}", names(&told))
    };
    assert_eq!(**outcome, record.outcome);
}

#[tokio::test(start_paused = true)]
async fn the_attempts_of_a_resumed_run_are_numbered_on() {
    let (_folder, store) = new_store();
    let first =
        FakeAgents::new(&["a", "b"]).script(|moment| if moment.attempt == 1 { Act::Interrupt } else { Act::Pass });
    let (part, _) = execute(plans::sweep(1), &first, Some(&store), None, None, &mut |_| ()).await;
    let (record, live) = store.resume(&part.record.id.0).expect("a run that can go on");
    let (mut telling, mut told) = (Telling::new(None), Vec::new());
    let resumed = Some(Resumed { record, live: Box::new(live) });
    let on_event = &mut |event: Event<'_>| told.extend(telling.take(&event));
    execute(plans::sweep(1), &FakeAgents::new(&["a", "b"]), Some(&store), None, resumed, on_event).await;
    assert_eq!(names(&told)[3..5], ["trial 1 0 Begins", "trial 1 0 Counted"]);
}

#[tokio::test(start_paused = true)]
async fn intervals_carry_the_number_of_their_attempt_and_the_rest_comes_before_its_end() {
    let (mut telling, mut told) = (Telling::new(Some(Nanos::from_secs(1))), Vec::new());
    // The progress that these agents report is left out.
    let on_event = &mut |event: Event<'_>| match event {
        Event::Progress { .. } => {}
        Event::Starts { .. } => {
            for ms in [0, 1_000, 1_400] {
                let meter = Meter { received_bytes: ms * 1_000, ..Meter::default() };
                let progress = SessionProgress { running: Nanos::from_millis(ms), meter, ..SessionProgress::default() };
                told.extend(telling.take(&Event::Progress { host: &"b".into(), progress: &progress }));
            }
        }
        event => told.extend(telling.take(&event)),
    };
    run(plans::sweep(1), &FakeAgents::new(&["a", "b"]), None, on_event).await;
    let trials: Vec<(u32, u64)> = told
        .iter()
        .filter_map(|event| match event {
            StreamEvent::Interval(report) => Some((report.number, report.received_bytes)),
            StreamEvent::Trial { number, state: TrialState::Counted, .. } => Some((*number, 0)),
            _ => None,
        })
        .collect();
    assert_eq!(trials, [(0, 1_000_000), (0, 400_000), (0, 0), (1, 1_000_000), (1, 400_000), (1, 0)]);
}
