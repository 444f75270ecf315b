//! Counterproofs: a verdict predicts the result of changing one thing; here that change is made and measured.
//!
//! The changed measurement alternates with the unchanged one (`pairs.rs`), so that whatever else changes meanwhile is the same
//! for both. `settle.rs` says what it means for the verdict.

mod pairs;
mod settle;

pub(crate) use pairs::{MOST_PAIRS, PAIRS, Pairs};
pub(crate) use settle::{bypassed, settle};

use crate::task::kind_of;
use linerate_model::{Counterproof, Host, Measurement, PairPart, Trial, TrialResult};

/// Returns the trials that test the verdicts on `cells`, given their `results`: pairs of an unchanged and a changed trial.
pub(crate) fn counterproofs(
    cells: &[&Trial],
    results: &[Measurement],
    trials: &[TrialResult],
    hosts: &[Host],
) -> Vec<[Trial; 2]> {
    let asked = cells.iter().filter(|cell| cell.proves.is_none());
    asked
        .flat_map(|cell| {
            let result = results.iter().find(|result| result.name == cell.name);
            let runs: Vec<&TrialResult> =
                trials.iter().filter(|result| result.is_counted() && result.trial.name == cell.name).collect();
            let tests = |result| kind_of(cell.task()).counterproofs(result, cell, &runs, hosts);
            let changed = result.map_or_else(Vec::new, tests);
            changed.into_iter().filter_map(|changed| Some([unchanged(cell, &changed)?, changed])).collect::<Vec<_>>()
        })
        .collect()
}

/// The measurement of `cell` as it was, to be compared with the `changed` one; none if that tests no verdict. As with the
/// changed one, nothing runs beside it.
fn unchanged(cell: &Trial, changed: &Trial) -> Option<Trial> {
    let test = changed.proves.clone()?;
    Some(Trial {
        name: format!("{} again, for {}", cell.name, test.change),
        loads: vec![cell.load().clone()],
        proves: Some(Counterproof { part: PairPart::Unchanged, ..test }),
    })
}

#[cfg(test)]
mod tests;
