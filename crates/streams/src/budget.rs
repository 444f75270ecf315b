//! The volume of a stream: what the flows of one end may move in the window, together and not a unit more.

use std::sync::atomic::{AtomicU64, Ordering};

/// What is left of a volume, in bytes (UDP: datagrams). Flows take from it before each call and settle after it, for a call may move less.
#[derive(Debug)]
pub(crate) struct Budget {
    left: AtomicU64,
    /// What was not moved yet, taken or not.
    unmoved: AtomicU64,
}

impl Budget {
    /// A budget of `all`.
    pub(crate) fn new(all: u64) -> Self {
        Self { left: AtomicU64::new(all), unmoved: AtomicU64::new(all) }
    }

    /// Takes up to `most`. Returns how much; nothing where other flows have the rest.
    pub(crate) fn take(&self, most: u64) -> u64 {
        let less = |left: u64| left.checked_sub(most.min(left)).filter(|_| left > 0);
        let before = self.left.fetch_update(Ordering::AcqRel, Ordering::Acquire, less);
        before.map_or(0, |left| left.min(most))
    }

    /// Of what was `taken`, so much was `moved`; the rest is given back.
    pub(crate) fn settle(&self, taken: u64, moved: u64) {
        self.left.fetch_add(taken - moved, Ordering::AcqRel);
        self.unmoved.fetch_sub(moved, Ordering::AcqRel);
    }

    /// Whether all of it was moved.
    pub(crate) fn is_spent(&self) -> bool {
        self.unmoved.load(Ordering::Acquire) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn what_a_call_did_not_move_is_given_back() {
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
    fn flows_together_move_all_of_it_and_no_more() {
        let budget = Budget::new(100_003);
        let moved: u64 = thread::scope(|scope| {
            let flow = |most: u64| {
                let budget = &budget;
                scope.spawn(move || {
                    let mut all = 0;
                    while !budget.is_spent() {
                        let taken = budget.take(most);
                        // Every other call moves only a part.
                        let moved = if all % 2 == 0 { taken } else { taken.div_ceil(2) };
                        budget.settle(taken, moved);
                        all += moved;
                    }
                    all
                })
            };
            let flows = [7, 64, 1].map(flow);
            flows.into_iter().map(|flow| flow.join().expect("no panic")).sum()
        });
        assert_eq!(moved, 100_003);
    }
}
