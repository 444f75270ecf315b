//! Each cell of a plan, repeated. Rounds are interleaved (every cell once, then every cell again), so that a machine that
//! grows slower during the run does not favour the cells that came first.

use crate::repeat::{Need, at_most, need};
use crate::transfer::figure;
use crate::{Method, Step};
use linerate_model::{Plan, TrialResult, TrialSpec};
use std::collections::BTreeSet;

/// Runs a plan's cells in rounds.
#[derive(Debug, Clone)]
pub struct Sweep {
    plan: Plan,
    /// The figures of each cell's runs.
    figures: Vec<Vec<f64>>,
}

impl Sweep {
    /// A sweep over `plan`, nothing run yet. A name that comes twice is one cell.
    pub fn new(mut plan: Plan) -> Self {
        let mut names = BTreeSet::new();
        plan.cells.retain(|cell| names.insert(cell.name.clone()));
        let figures = vec![Vec::new(); plan.cells.len()];
        Self { plan, figures }
    }

    /// One more cell, unless it is known.
    pub(crate) fn add(&mut self, cell: &TrialSpec) {
        if self.plan.cells.iter().all(|known| known.name != cell.name) {
            self.plan.cells.push(cell.clone());
            self.figures.push(Vec::new());
        }
    }

    /// The cell with the fewest runs among those that need more; the first of them in the plan's order.
    fn due(&self) -> Option<usize> {
        let wants = |cell: &usize| need(&self.plan.repeats, &self.figures[*cell]) == Need::More;
        (0..self.figures.len()).filter(wants).min_by_key(|cell| self.figures[*cell].len())
    }
}

impl Method for Sweep {
    fn next(&self) -> Step {
        self.due().map_or(Step::Done, |cell| Step::Run(Box::new(self.plan.cells[cell].clone())))
    }

    fn record(&mut self, result: &TrialResult) {
        if let Some(cell) = self.plan.cells.iter().position(|cell| cell.name == result.spec.name) {
            self.figures[cell].push(figure(result));
        }
    }

    fn progress(&self) -> (usize, usize) {
        let done = self.figures.iter().map(Vec::len).sum();
        let open = |figures: &&Vec<f64>| need(&self.plan.repeats, figures) == Need::More;
        let most = at_most(&self.plan.repeats) as usize;
        let left: usize = self.figures.iter().filter(open).map(|figures| most - figures.len()).sum();
        (done, done + left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transfer::tests::{spec, trial};
    use linerate_model::Repeats;

    fn plan(repeats: Repeats) -> Plan {
        let cells = ["udp 64", "udp 1472"].map(|name| {
            let mut cell = spec();
            cell.name = name.into();
            cell
        });
        Plan::of(cells.to_vec(), repeats)
    }

    /// Runs a sweep against a simulated path that gives each trial the next rate of a list.
    fn run(plan: Plan, mut rates: impl FnMut(&str) -> u64) -> Vec<String> {
        let (mut sweep, mut names) = (Sweep::new(plan), Vec::new());
        while let Step::Run(spec) = sweep.next() {
            assert!(names.len() < 100, "a sweep must end");
            names.push(spec.name.clone());
            let mut result = trial(rates(&spec.name), 0);
            result.spec = *spec;
            sweep.record(&result);
        }
        assert_eq!(sweep.progress(), (names.len(), names.len()));
        names
    }

    #[test]
    fn rounds_are_interleaved() {
        let names = run(plan(Repeats::Times(2)), |_| 1000);
        assert_eq!(names, ["udp 64", "udp 1472", "udp 64", "udp 1472"]);
    }

    #[test]
    fn a_name_that_comes_twice_is_one_cell() {
        let mut plan = plan(Repeats::Times(2));
        plan.cells.push(plan.cells[0].clone());
        assert_eq!(run(plan, |_| 1000).len(), 4);
    }

    #[test]
    fn only_the_unsteady_cell_is_run_on() {
        let until = Repeats::Until { confidence_percent: 95.0, within: 0.02, at_least: 3, at_most: 9 };
        let mut turn = 0;
        let names = run(plan(until), |name| {
            turn += 1;
            if name == "udp 64" && (turn < 3 || turn % 4 == 0) { 500_000 } else { 1_000_000 }
        });
        let count = |cell: &str| names.iter().filter(|name| *name == cell).count();
        assert_eq!(count("udp 1472"), 3);
        assert!(count("udp 64") > 3, "{names:?}");
    }
}
