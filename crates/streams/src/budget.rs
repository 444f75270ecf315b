//! The volume of a stream: the exact amount that the flows of one end move together in the window.

use std::sync::atomic::{AtomicU64, Ordering};

/// Remaining volume, in bytes (UDP: datagrams). Flows take from it before each call and settle after it, for a call may
/// move less.
#[derive(Debug)]
pub(crate) struct Budget {
    left: AtomicU64,
    /// Volume that was not moved yet, taken or not.
    unmoved: AtomicU64,
}

impl Budget {
    /// Creates a budget of `all`.
    pub(crate) fn new(all: u64) -> Self {
        Self { left: AtomicU64::new(all), unmoved: AtomicU64::new(all) }
    }

    /// Takes up to `limit`. Returns the amount, zero if other flows have taken the rest.
    pub(crate) fn take(&self, limit: u64) -> u64 {
        let before = self
            .left
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |left| (left > 0).then_some(left.saturating_sub(limit)));
        before.map_or(0, |left| left.min(limit))
    }

    /// Records that `moved` of `taken` units were moved, and gives the rest back.
    pub(crate) fn settle(&self, taken: u64, moved: u64) {
        self.left.fetch_add(taken - moved, Ordering::AcqRel);
        self.unmoved.fetch_sub(moved, Ordering::AcqRel);
    }

    /// Returns whether the whole volume was moved.
    pub(crate) fn is_spent(&self) -> bool {
        self.unmoved.load(Ordering::Acquire) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn units_that_a_call_did_not_move_are_given_back() {
        let budget = Budget::new(100);
        assert_eq!((budget.take(60), budget.take(60), budget.take(60)), (60, 40, 0));
        budget.settle(40, 15);
        assert!(!budget.is_spent());
        assert_eq!((budget.take(60), budget.take(1)), (25, 0));
        budget.settle(60, 60);
        budget.settle(25, 24);
        assert_eq!((budget.take(9), budget.is_spent()), (1, false));
        budget.settle(1, 1);
        assert_eq!((budget.take(9), budget.is_spent()), (0, true));
    }

    #[test]
    fn concurrent_flows_move_exactly_the_volume() {
        let budget = Budget::new(100_003);
        let moved: u64 = thread::scope(|scope| {
            let budget = &budget;
            let flows = [7, 64, 1].map(|limit| scope.spawn(move || move_parts(budget, limit)));
            flows.into_iter().map(|flow| flow.join().expect("no panic")).sum()
        });
        assert_eq!(moved, 100_003);
    }

    /// Moves parts of `budget` until it is spent. Every other call moves only half of what it took.
    fn move_parts(budget: &Budget, limit: u64) -> u64 {
        let mut total = 0;
        while !budget.is_spent() {
            let taken = budget.take(limit);
            let moved = if total % 2 == 0 { taken } else { taken.div_ceil(2) };
            budget.settle(taken, moved);
            total += moved;
        }
        total
    }
}
