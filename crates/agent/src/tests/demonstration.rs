//! A whole engine in a dozen lines of behaviour: it counts to a number. It is led over the wire as any other.

use super::*;
use linerate_engine::{Conductor, Counted, Demand, EngineError, EngineFailure, Meters, Needs, Stopped, Timeline, Work};
use linerate_model::{EndCounts, Meter, Ready, RoleCounts, Transactions, Window};
use linerate_sys::clock;
use linerate_units::BitRate;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts once a millisecond through its window.
struct Count;

struct Counter(AtomicU64);

impl Meters for Counter {
    fn read(&self) -> Meter {
        Meter { operations: self.0.load(Ordering::Relaxed), ..Meter::default() }
    }
}

impl Engine for Count {
    fn name(&self) -> &'static str {
        "count"
    }

    fn takes(&self, task: &Task) -> bool {
        matches!(task, Task::Transact(_))
    }

    fn demand(&self, assignment: &Assignment) -> Result<Demand, EngineError> {
        let window = assignment.timing.window().ok_or_else(|| EngineError::new("counting needs a window"))?;
        let none = Some(BitRate::per_second(0));
        Ok(Demand {
            sends: none,
            receives: none,
            time: Some(window.longest()),
            flows: 0,
            needs: Needs::default(),
            exclusive: None,
            set_up: Nanos::default(),
        })
    }

    fn run(&self, assignment: &Assignment, host: &dyn Conductor) -> Result<Counted, EngineFailure> {
        host.listening(Endpoints::new())?;
        let opens = host.ready(Ready::default())?;
        let measure = assignment.timing.window().map_or(Nanos::default(), |window| window.measure);
        let counter = Arc::new(Counter(AtomicU64::new(0)));
        let timeline = Timeline::new(opens, Window { measure, ..Window::default() });
        let window = Some(timeline.clone());
        host.runs(Work { start: opens, window, threads: Vec::new(), disks: Vec::new(), meters: counter.clone() });
        while clock::now() < timeline.close() {
            let next = opens + (counter.0.load(Ordering::Relaxed) + 1) * 1_000_000;
            if !host.stop().sleep_until(next) {
                return Err(Stopped.into());
            }
            counter.0.fetch_add(1, Ordering::Relaxed);
        }
        let completed = counter.0.load(Ordering::Relaxed);
        let transactions = Some(Transactions { completed, ..Transactions::default() });
        let end = EndCounts { transactions, ..EndCounts::default() };
        let roles = vec![RoleCounts::Flows(Box::new(end))];
        Ok(Counted { roles, started_unix_ns: clock::unix_now(), caveats: Vec::new(), remains: Vec::new() })
    }
}

#[tokio::test]
async fn an_engine_of_a_dozen_lines_counts_over_the_wire() {
    let agent = agent_with(vec![Box::new(Count)], |_| ()).await;
    let client = connect(&agent).await;
    let mut assignment = assignment("count");
    assignment.task = Task::Transact(linerate_model::TransactTask::plain(Transport::Tcp));
    assignment.timing = Timing::of(Nanos::default(), Nanos::from_millis(700));

    let begun = Instant::now();
    let mut session = client.open(&assignment).await.expect("opened");
    until(&mut session, |stage| matches!(stage, Stage::Listening { .. })).await;
    client.order(&assignment.id, &connect_nothing()).await.expect("it listens");
    until(&mut session, |stage| matches!(stage, Stage::Ready(_))).await;
    client.order(&assignment.id, &START).await.expect("it is ready");
    let stages: Vec<Stage> = session.map(|stage| stage.expect("the agent is there")).collect().await;
    let (last, progress) = stages.split_last().expect("stages");
    assert_eq!(*last, Stage::Done);
    let meters: Vec<u64> = progress
        .iter()
        .map(|stage| match stage {
            Stage::Running(progress) => progress.meter.operations,
            other => panic!("{other:?} while it runs"),
        })
        .collect();
    let elapsed = begun.elapsed();
    // Ten times a second, and when the window closes.
    assert!((1..=9).contains(&meters.len()) && meters.is_sorted(), "{meters:?} in 0.7 s");

    let counts = client.counts(&assignment.id).await.expect("counts");
    let RoleCounts::Flows(end) = &counts.roles[0] else { panic!("{counts:?}") };
    let completed = end.transactions.as_ref().expect("it counted").completed;
    assert!((1..=701).contains(&completed) && completed >= meters[meters.len() - 1], "{completed} after {meters:?}");
    // The thread that watches may wake late at either edge.
    let watched = Duration::from(counts.observation.window);
    assert!(!watched.is_zero() && watched <= elapsed, "{watched:?} were watched of {elapsed:?}");

    let error = client.open(&super::assignment("stream")).await.expect_err("it takes another task").to_string();
    assert!(error.contains("no engine for the task `stream`"), "{error}");
}
