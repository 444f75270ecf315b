//! Results of a record: the attempts at each cell, measured, and the verdicts that were tested, settled.

use crate::beside::idle_name;
use crate::context::Context;
use crate::proof::{PAIRS, Pairs, settle};
use crate::repeat::state_intervals;
use crate::task::kind_of;
use linerate_model::{Calibrated, Host, Measurement, PairPart, Plan, Record, Repeats, Trial, TrialResult};
use std::collections::BTreeSet;

/// Returns the results of a record: one for each cell with at least one run that counts, in the order of [`cells`].
pub fn measurements(record: &Record) -> Vec<Measurement> {
    let Plan { calibrated, .. } = &record.plan;
    let repeats = record.plan.repeats().unwrap_or(Repeats::Times(1));
    measured(&cells(record), repeats, calibrated, &record.hosts, &record.trials)
}

/// Returns what the results of a record are of: the cells of its plan, then the trials that were chosen as it went, in the order
/// they ran. A device test has none. Nor are the probe alone, a ladder's frames and copies, the unchanged half of a test's pairs,
/// and a test of a verdict that could not be made.
pub fn cells(record: &Record) -> Vec<&Trial> {
    let mut cells: Vec<&Trial> = Vec::new();
    let mut names: BTreeSet<&str> = BTreeSet::new();
    for cell in record.plan.cells() {
        if names.insert(&cell.name) {
            cells.push(cell);
        }
    }
    if record.plan.device().is_some() {
        return cells;
    }
    let idle: BTreeSet<String> = cells.iter().filter_map(|cell| idle_name(cell)).collect();
    let failed = || record.trials.iter().filter(|result| result.failure().is_some());
    let is_left_out = |trial: &Trial| {
        trial.proves.as_ref().is_some_and(|test| {
            let untested = failed().filter_map(|result| result.trial.proves.as_ref()).any(|of| of.is_of(test));
            test.part == PairPart::Unchanged || untested
        })
    };
    let flows_only = record.plan.ladder().is_some();
    for trial in record.trials.iter().map(|result| &result.trial) {
        let of_layer = flows_only && trial.net().is_none();
        if !of_layer && !idle.contains(&trial.name) && !is_left_out(trial) && names.insert(&trial.name) {
            cells.push(trial);
        }
    }
    cells
}

/// The results of `cells`, with the verdicts that were put to the test settled.
pub(crate) fn measured(
    cells: &[&Trial],
    repeats: Repeats,
    calibrated: &[Calibrated],
    hosts: &[Host],
    trials: &[TrialResult],
) -> Vec<Measurement> {
    let runs_of = |name: &str| -> Vec<&TrialResult> {
        trials.iter().filter(|result| result.is_counted() && result.trial.name == name).collect()
    };
    let one = |cell: &&Trial| {
        let runs = runs_of(&cell.name);
        if runs.is_empty() {
            return None;
        }
        let idle = idle_name(cell).map_or_else(Vec::new, |name| runs_of(&name));
        // The plan's number of runs is not that of pairs.
        let repeats = if cell.proves.is_some() { Repeats::Times(PAIRS) } else { repeats };
        let with = Context { hosts, repeats, calibrated, idle: &idle };
        let mut result = kind_of(cell.task()).measure(cell, &runs, &with);
        state_intervals(&repeats, &mut result);
        Some(result)
    };
    let mut results: Vec<Measurement> = cells.iter().filter_map(one).collect();
    let pairs: Vec<Pairs> = cells.iter().filter_map(|cell| Pairs::of(cell, trials, hosts)).collect();
    settle(&pairs, &mut results);
    results
}
