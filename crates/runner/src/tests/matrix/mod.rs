//! Every event at every stage of every kind of run, at every host: each case is a run of its own, held against one that nothing
//! disturbed.

mod check;
mod events;
mod goals;

use super::fake::{Act, FakeAgents, Step};
use super::{execute, new_store};
use check::Reference;
use events::Event;
use goals::Goal;
use linerate_store::Store;
use std::io::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// The attempt that is disturbed: not the first, so that something is kept before it.
const DISTURBED: usize = 1;

/// Something that happens to a host in a run.
#[derive(Debug, Clone, Copy)]
struct Case {
    host: &'static str,
    event: Event,
}

/// Runs `work` in simulated time.
fn simulated<T>(work: impl Future<Output = T>) -> T {
    let clock = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    clock.expect("a runtime").block_on(work)
}

/// Agents to which a case happens, and how often it did.
fn agents(goal: &Goal, case: Case) -> (FakeAgents, Arc<AtomicUsize>) {
    let happened = Arc::new(AtomicUsize::new(0));
    let times = Arc::clone(&happened);
    let Case { host, event } = case;
    let agents = FakeAgents::on(goal.network.clone(), goal.hosts).script(move |moment| {
        if moment.step == Step::Close {
            return if moment.host.0 == host { event.on_close } else { Act::Pass };
        }
        let here = moment.host.0 == host && moment.step == event.step;
        if !here || (moment.attempt != DISTURBED && !event.always) {
            return Act::Pass;
        }
        times.fetch_add(1, Ordering::Relaxed);
        event.act
    });
    (agents, happened)
}

/// Runs a case. Returns whether its event could happen: a stream has nothing to drain.
async fn runs(goal: &Goal, reference: &Reference, case: Case, store: &Store) -> bool {
    let (agents, happened) = agents(goal, case);
    let (ended, time) = execute(goal.plan.clone(), &agents, Some(store), None, None, &mut |_| ()).await;
    if happened.load(Ordering::Relaxed) == 0 {
        let left_out = matches!(case.event.step, Step::Sent | Step::Drain) && !goal.drains;
        assert!(left_out, "it did not happen");
        return false;
    }
    check::check(goal, reference, case, &ended, time, &agents, store).await;
    true
}

/// Runs all cases of a goal. Returns how many there were, and those that failed.
fn all_cases(goal: &Goal) -> (usize, Vec<String>) {
    let reference = simulated(check::reference(goal));
    let (_folder, store) = new_store();
    let (mut count, mut failed) = (0, Vec::new());
    for (number, event) in events::all().into_iter().enumerate().step_by(goal.one_in) {
        if event.step == Step::Window && !goal.steady {
            continue;
        }
        // What is particular to a kind of run shows at any of its hosts; what is particular to a host, in a few kinds of runs.
        let hosts = if goal.every_host { goal.hosts } else { &goal.hosts[number % goal.hosts.len()..][..1] };
        for host in hosts {
            let case = Case { host, event };
            // To empty a store takes less time than to make one.
            while let Ok(Some(run)) = store.latest() {
                store.delete(&run.0).expect("nobody measures any more");
            }
            match catch_unwind(AssertUnwindSafe(|| simulated(runs(goal, &reference, case, &store)))) {
                Ok(happened) => count += usize::from(happened),
                Err(panic) => {
                    let said = panic.downcast_ref::<String>().map(String::as_str);
                    let said = said.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or_default();
                    failed.push(format!("{}: {event} at {host}: {said}", goal.name));
                }
            }
        }
    }
    (count, failed)
}

#[test]
fn every_event_at_every_stage_of_every_run_leaves_what_it_must() {
    let began = std::time::Instant::now();
    let goals = goals::all();
    let ran: Vec<(usize, Vec<String>)> = thread::scope(|scope| {
        let threads: Vec<_> = goals.iter().map(|goal| scope.spawn(|| all_cases(goal))).collect();
        threads.into_iter().map(|thread| thread.join().expect("cases catch their panics")).collect()
    });
    let count: usize = ran.iter().map(|(count, _)| count).sum();
    // Past the test harness, which shows nothing of tests that pass.
    let line = format!("{count} cases of {} kinds of runs in {:.1} s\n", goals.len(), began.elapsed().as_secs_f64());
    std::io::stderr().write_all(line.as_bytes()).expect("standard error takes a line");
    let failed: Vec<String> = ran.into_iter().flat_map(|(_, failed)| failed).collect();
    assert!(failed.is_empty(), "{} of {count} cases:\n{}", failed.len(), failed.join("\n"));
}
