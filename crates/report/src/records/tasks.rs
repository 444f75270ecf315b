//! Trials of a record's results: those of the plan, and those that the method chose as it went.

use linerate_model::{CopyTask, FramesTask, Record, Task, Trial};
use std::collections::BTreeSet;

/// The trials of the plan, then those that other results are of; each once.
pub(crate) fn trials(record: &Record) -> Vec<&Trial> {
    let mut trials: Vec<&Trial> = record.plan.cells().iter().collect();
    let mut known: BTreeSet<&str> = trials.iter().map(|trial| trial.name.as_str()).collect();
    let measured: BTreeSet<&str> = record.results.iter().map(|result| result.name.as_str()).collect();
    for attempt in &record.trials {
        let name = attempt.trial.name.as_str();
        if measured.contains(name) && known.insert(name) {
            trials.push(&attempt.trial);
        }
    }
    trials
}

/// The copies among them.
pub(crate) fn copies(record: &Record) -> impl Iterator<Item = &CopyTask> {
    trials(record).into_iter().filter_map(|trial| match trial.task() {
        Task::Copy(task) => Some(task),
        _ => None,
    })
}

/// Returns the copy of the result with this name, `None` if the record has no such trial.
pub(crate) fn copy<'a>(record: &'a Record, result: &str) -> Option<&'a CopyTask> {
    let cells = record.plan.cells().iter();
    let mut trials = cells.chain(record.trials.iter().map(|attempt| &attempt.trial));
    match trials.find(|trial| trial.name == result)?.task() {
        Task::Copy(task) => Some(task),
        _ => None,
    }
}

/// Returns the trials with raw frames from port to port.
pub(crate) fn frames(record: &Record) -> impl Iterator<Item = &FramesTask> {
    trials(record).into_iter().filter_map(|trial| match trial.task() {
        Task::Frames(task) => Some(task),
        _ => None,
    })
}
