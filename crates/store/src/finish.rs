//! What follows from the end of a run: marks of changes, and the result of its pair.

use crate::StoreError;
use crate::backend::Session;
use crate::changed::{followers, renew};
use crate::pairs::{self, PairKey, PairResult};
use std::collections::HashMap;

/// A run that finished just now, and the pair that it measured.
pub(crate) struct FinishedRun {
    pub(crate) number: i64,
    pub(crate) pair: Option<PairKey>,
}

/// Brings all up to date that depends on finished runs. The rows of the runs are written before.
pub(crate) fn finish(session: &mut dyn Session, runs: &[FinishedRun]) -> Result<(), StoreError> {
    let mut numbers: Vec<i64> = runs.iter().map(|run| run.number).collect();
    let followers = followers(session, &numbers)?;
    numbers.extend(&followers);
    let (later, finished): (Vec<_>, Vec<_>) =
        renew(session, &numbers)?.into_iter().partition(|run| followers.contains(&run.number));
    pairs::set_changed(session, &later)?;
    let mut pairs: HashMap<i64, &PairKey> =
        runs.iter().filter_map(|run| Some((run.number, run.pair.as_ref()?))).collect();
    let results = finished.into_iter().filter_map(|run| {
        Some(PairResult {
            pair: pairs.remove(&run.number)?.clone(),
            value_before: run.value_before(),
            headline: run.headline?,
            record: run.id,
            started_unix_ns: run.started_unix_ns,
            verdict: run.verdict,
            changed: run.changed,
        })
    });
    pairs::add(session, &results.collect::<Vec<_>>())
}
