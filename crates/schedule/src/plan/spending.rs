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
    /// Forgets the days before. Returns whether a day has begun.
    pub(super) fn advance(&mut self, day: u64) -> bool {
        let has_begun = day > self.day;
        if has_begun {
            self.day = day;
            self.bytes.clear();
        }
        has_begun
    }

    pub(super) fn day(&self) -> u64 {
        self.day
    }

    /// Returns the first link with too little left of its budget of the day for a trial of `bytes`: `Some(None)` if it is the
    /// budget of the whole mesh.
    pub(super) fn spent(&self, mesh: usize, budget: Budget, links: &[u32], bytes: u64) -> Option<Option<u32>> {
        let limit = budget.bytes.get();
        let mut keys = keys(mesh, budget, links);
        let key = keys.find(|key| self.bytes.get(key).copied().unwrap_or(0).saturating_add(bytes) > limit)?;
        Some(key.1)
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
