//! Loads that run next to the measured one, and the trial that runs them alone, on the idle path.

use linerate_model::{Counts, Load, Task, TaskKind, Timing, Trial, TrialResult, Window};
use linerate_units::Nanos;

/// Warm-up of requests on the idle path: the first ones find cold caches.
const IDLE_WARMUP: Nanos = Nanos::from_millis(200);
/// Warm-up of probes of a path: they find out its routers, and how fast these answer.
const DISCOVERY: Nanos = Nanos::from_millis(1_200);
/// Delay of the window after that of the measured load, ...
const LATER: Nanos = Nanos::from_millis(150);
/// ... and its end before the end of that window: the windows of two loads differ by the time of a request to an agent.
const EARLIER: Nanos = Nanos::from_millis(50);

/// Adds `task` to `trial` as a further load. It begins with the measured load, and its window lies within the window of that. A
/// trial without a window is returned as it is.
pub fn with_load(mut trial: Trial, task: Task) -> Trial {
    if let Some(Window { warmup, measure }) = trial.window() {
        let timing = Timing::Window(Window { warmup: warmup.and(LATER), measure: measure - (LATER + EARLIER) });
        trial.loads.push(Load { task, timing });
    }
    trial
}

/// Returns the name of the trial that runs the further loads of `cell` alone, or `None` if it has none. Cells with the same probes
/// of a path, and no other further load, share one.
pub(crate) fn idle_name(cell: &Trial) -> Option<String> {
    let mut tasks = cell.loads.iter().skip(1).map(|load| load.task.kind()).peekable();
    tasks.peek()?;
    if tasks.all(|kind| kind == TaskKind::Hops) {
        return Some(String::from("idle path"));
    }
    Some(format!("{} idle", cell.name))
}

/// Returns the trial that runs the further loads of `cell` alone, for as long as next to the measured load. `None` if it has none.
pub(crate) fn idle_trial(cell: &Trial) -> Option<Trial> {
    let name = idle_name(cell)?;
    let loads: Vec<Load> = cell.loads.iter().skip(1).filter_map(alone).collect();
    (!loads.is_empty()).then_some(Trial { name, loads, proves: None })
}

/// Returns a further load as it runs alone.
fn alone(load: &Load) -> Option<Load> {
    let measure = load.timing.window()?.measure;
    let mut task = load.task.clone();
    let warmup = match &mut task {
        Task::Hops(probes) => {
            // Large probes would add to the load.
            probes.path_mtu = true;
            DISCOVERY
        }
        _ => IDLE_WARMUP,
    };
    Some(Load { task, timing: Timing::of(warmup, measure) })
}

/// Returns the first further load of this kind.
pub(crate) fn load(trial: &Trial, kind: TaskKind) -> Option<&Load> {
    trial.loads.iter().skip(1).find(|load| load.task.kind() == kind)
}

/// Returns the counts of the first load of this kind, whether it is measured or runs next to that.
pub(crate) fn counts(result: &TrialResult, kind: TaskKind) -> Option<&Counts> {
    let index = result.trial.loads.iter().position(|load| load.task.kind() == kind)?;
    result.counts.get(index)
}
