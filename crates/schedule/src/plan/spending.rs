//! Bytes spent of the budgets of a day.

use crate::file::{Budget, BudgetScope};
use std::collections::HashMap;

/// Bytes of each mesh, or of each mesh and link, on the current day.
#[derive(Debug, Default)]
pub(super) struct Spending {
    day: u64,
    bytes: HashMap<(usize, Option<u32>), u64>,
}

impl Spending {
    /// Forgets the days before.
    pub(super) fn advance(&mut self, day: u64) {
        if day > self.day {
            self.day = day;
            self.bytes.clear();
        }
    }

    pub(super) fn day(&self) -> u64 {
        self.day
    }

    /// Returns whether a trial of `bytes` fits into the budget of the day.
    pub(super) fn allows(&self, mesh: usize, budget: Budget, links: &[u32], bytes: u64) -> bool {
        let limit = budget.bytes.get();
        let mut keys = keys(mesh, budget, links);
        keys.all(|key| self.bytes.get(&key).copied().unwrap_or(0).saturating_add(bytes) <= limit)
    }

    /// Adds the bytes of a trial that begins.
    pub(super) fn add(&mut self, mesh: usize, budget: Budget, links: &[u32], bytes: u64) {
        for key in keys(mesh, budget, links) {
            let spent = self.bytes.entry(key).or_default();
            *spent = spent.saturating_add(bytes);
        }
    }

    /// Replaces the estimated bytes of a trial of this day by its actual ones.
    pub(super) fn correct(&mut self, mesh: usize, budget: Budget, links: &[u32], estimated: u64, actual: u64) {
        for key in keys(mesh, budget, links) {
            let spent = self.bytes.entry(key).or_default();
            *spent = spent.saturating_sub(estimated).saturating_add(actual);
        }
    }
}

fn keys(mesh: usize, budget: Budget, links: &[u32]) -> impl Iterator<Item = (usize, Option<u32>)> {
    let whole = (budget.scope == BudgetScope::Mesh).then_some((mesh, None));
    let apart = if budget.scope == BudgetScope::Link { links } else { &[] };
    whole.into_iter().chain(apart.iter().map(move |link| (mesh, Some(*link))))
}
