//! Response time against load: operations at one load after the other, up to what the server holds and a little past it;
//! then the search for the highest load that it does hold, its peak.
//!
//! A load is held where
//! 1. something was answered,
//! 2. of the operations that came due no more were left undone than the plan's shortfall,
//! 3. no more of them failed than that, and
//! 4. the mean response time, which counts from when an operation was due, stayed within the cap.
//!
//! The scale of the loads is the rate of a closed loop with the same operations, which is an ordinary cell of the plan. Each
//! load becomes a cell too, named after it, so that a record has them all and everything said of it can be worked out again.
//! A load that is not held is offered once more before that is believed: a host that stumbles is common, and one such stumble
//! at a low load would hide all of the curve above it.

mod ceiling;
mod found;
mod load;
mod search;
#[cfg(test)]
mod tests;

pub use ceiling::{CEILING, calibration};
pub use found::{found, lacks_peak, stands};

use crate::{Method, Step, Sweep};
use linerate_model::{Plan, TrialResult, TrialSpec, Workload};
use linerate_units::OpRate;
use load::Loads;
use search::Next;

/// The bisection takes about so many loads more than the steps do.
const USUAL_SEARCH: usize = 6;

/// Runs a plan's cells, and then its curve.
#[derive(Debug, Clone)]
pub struct Curve {
    sweep: Sweep,
    /// The cell that finds the scale; none if the plan names none.
    probe: Option<TrialSpec>,
    loads: Loads,
}

impl Curve {
    /// The curve of `plan`, nothing run yet; none if the plan asks for none.
    pub fn of(plan: &Plan) -> Option<Self> {
        let curve = plan.curve.clone()?;
        let probe = plan.cells.iter().find(|cell| cell.name == curve.probe).cloned();
        Some(Self { sweep: Sweep::new(plan.clone()), probe, loads: Loads::new(curve) })
    }

    /// The trial of a load.
    fn cell(&self, ops: u64) -> Option<TrialSpec> {
        let mut cell = self.probe.clone()?;
        let Workload::Nfs(nfs) = &mut cell.workload else { return None };
        nfs.rate = Some(OpRate::per_second(ops));
        cell.name = load::name(&cell);
        cell.timing.measure = self.loads.plan.time;
        Some(cell)
    }

    fn next_load(&self) -> Next {
        match self.loads.scale() {
            Some(scale) => search::next(scale, &self.loads),
            None => Next::Done,
        }
    }
}

impl Method for Curve {
    fn next(&self) -> Step {
        if let Step::Run(cell) = self.sweep.next() {
            return Step::Run(cell);
        }
        match self.next_load() {
            Next::Offer(ops) => self.cell(ops).map_or(Step::Done, |cell| Step::Run(Box::new(cell))),
            Next::Done => Step::Done,
        }
    }

    fn record(&mut self, result: &TrialResult) {
        self.loads.record(result);
        // A load is repeated as the plan's other cells are.
        self.sweep.add(&result.spec);
        self.sweep.record(result);
    }

    fn progress(&self) -> (usize, usize) {
        let (done, total) = self.sweep.progress();
        let usual = self.loads.plan.steps as usize + USUAL_SEARCH;
        let ended = self.loads.is_probed() && self.next_load() == Next::Done;
        (done, total + if ended { 0 } else { usual.saturating_sub(self.loads.len()).max(1) })
    }
}
