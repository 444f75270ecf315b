//! What the runs of transactions amount to.

pub(crate) mod proof;

use crate::measure::{PathFacts, flow_figures, request_figures};
use crate::transfer::transactions_per_s;
use linerate_model::{TransactFigures, TransactTask, TrialResult};

/// Returns the figures of the runs of `transact`.
pub(super) fn figures(transact: &TransactTask, path: &PathFacts<'_>, runs: &[&TrialResult]) -> TransactFigures {
    TransactFigures {
        flow: flow_figures(&transact.net, transact.request_bytes, transactions_per_s, path, runs),
        requests: request_figures(runs),
        response_bytes: transact.response_bytes.get(),
    }
}
