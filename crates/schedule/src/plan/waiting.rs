//! Due slots that wait, each in the queue of one obstacle.
//!
//! An event that may clear an obstacle opens its queue. Slots of open queues are examined by precedence. A queue is closed again by its
//! first slot that still has the same obstacle, because an obstacle of a slot also stops all slots that it precedes. So an event examines
//! the slots that it may let begin, and not all that wait.

use super::slot::{Precedence, Slot};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::RangeInclusive;

/// Reason why a slot cannot begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Obstacle {
    /// An absent host, by number.
    Host(u32),
    /// The hours of a mesh, by index.
    Hours(u32),
    /// A resource, by number, that a trial holds or a preceding slot reserves.
    Resource(u32),
    /// The budget of a mesh, by index, as a whole or for a link. Budgets are last in the order of obstacles.
    Budget(u32, Option<u32>),
}

/// The waiting slots.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    slots: HashMap<Precedence, Entry>,
    queues: BTreeMap<Obstacle, BTreeSet<Precedence>>,
    /// Open queues, by their first slot when they were opened.
    open: BTreeSet<(Precedence, Obstacle)>,
    /// Slots to examine apart from their queues: new ones, and those that a timer names.
    fresh: BTreeMap<Precedence, Slot>,
    /// Times at which slots are examined, as Unix time.
    timers: BTreeSet<(u64, Precedence)>,
}

#[derive(Debug)]
struct Entry {
    slot: Slot,
    obstacle: Obstacle,
}

/// A slot to examine.
#[derive(Debug)]
pub(super) struct Candidate {
    pub(super) precedence: Precedence,
    pub(super) slot: Slot,
    /// Obstacle of the open queue that it is the first of.
    queue: Option<Obstacle>,
}

impl Waiting {
    /// Adds a slot that has become due.
    pub(super) fn add(&mut self, precedence: Precedence, slot: Slot) {
        self.fresh.insert(precedence, slot);
    }

    /// Returns the number of waiting slots, apart from new ones that were not examined.
    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Opens the queue of an obstacle that may be gone.
    pub(super) fn open(&mut self, obstacle: Obstacle) {
        if let Some(first) = self.queues.get(&obstacle).and_then(BTreeSet::first) {
            self.open.insert((*first, obstacle));
        }
    }

    /// Opens the queues of the budgets of these meshes.
    pub(super) fn open_budgets(&mut self, meshes: RangeInclusive<u32>) {
        let first = Obstacle::Budget(*meshes.start(), None);
        let last = Obstacle::Budget(*meshes.end(), Some(u32::MAX));
        let heads = self.queues.range(first..=last).filter_map(|(obstacle, queue)| Some((*queue.first()?, *obstacle)));
        self.open.extend(heads);
    }

    /// Marks all slots to be examined.
    pub(super) fn open_all(&mut self) {
        self.fresh.extend(self.slots.iter().map(|(precedence, entry)| (*precedence, entry.slot)));
    }

    /// Marks the slots to be examined that have a timer at `unix_s` or before.
    pub(super) fn fire_timers(&mut self, unix_s: u64) {
        while let Some((at, precedence)) = self.timers.first().copied()
            && at <= unix_s
        {
            self.timers.remove(&(at, precedence));
            if let Some(entry) = self.slots.get(&precedence) {
                self.fresh.insert(precedence, entry.slot);
            }
        }
    }

    /// Returns the first slot to examine. [`Waiting::block`] or [`Waiting::remove`] follows.
    pub(super) fn next(&mut self) -> Option<Candidate> {
        loop {
            let fresh = self.fresh.first_key_value().map(|(precedence, _)| *precedence);
            let Some((first, obstacle)) =
                self.open.first().copied().filter(|open| fresh.is_none_or(|fresh| open.0 < fresh))
            else {
                let (precedence, slot) = self.fresh.pop_first()?;
                return Some(Candidate { precedence, slot, queue: None });
            };
            self.open.remove(&(first, obstacle));
            let Some(precedence) = self.queues.get(&obstacle).and_then(BTreeSet::first).copied() else { continue };
            if precedence != first {
                // The queue has changed since it was opened.
                self.open.insert((precedence, obstacle));
            } else if let Some(entry) = self.slots.get(&precedence) {
                return Some(Candidate { precedence, slot: entry.slot, queue: Some(obstacle) });
            }
        }
    }

    /// Puts an examined slot into the queue of its obstacle.
    pub(super) fn block(&mut self, candidate: &Candidate, obstacle: Obstacle) {
        let Candidate { precedence, slot, queue } = *candidate;
        let before = self.slots.insert(precedence, Entry { slot, obstacle }).map(|entry| entry.obstacle);
        if before != Some(obstacle) {
            if let Some(before) = before {
                self.leave(precedence, before);
            }
            self.queues.entry(obstacle).or_default().insert(precedence);
            if let Some(queue) = queue {
                self.open(queue);
            }
        }
        if before.is_none() {
            self.timers.extend(slot.timers().map(|at| (at, precedence)));
        }
    }

    /// Removes an examined slot that begins or is missed. Returns its obstacle.
    pub(super) fn remove(&mut self, candidate: &Candidate) -> Option<Obstacle> {
        let Candidate { precedence, slot, queue } = *candidate;
        let entry = self.slots.remove(&precedence)?;
        self.leave(precedence, entry.obstacle);
        for at in slot.timers() {
            self.timers.remove(&(at, precedence));
        }
        if let Some(queue) = queue {
            self.open(queue);
        }
        Some(entry.obstacle)
    }

    fn leave(&mut self, precedence: Precedence, obstacle: Obstacle) {
        if let Some(queue) = self.queues.get_mut(&obstacle) {
            queue.remove(&precedence);
            if queue.is_empty() {
                self.queues.remove(&obstacle);
            }
        }
    }

    /// Returns whether a slot is to be examined.
    pub(super) fn has_next(&self) -> bool {
        !self.fresh.is_empty() || !self.open.is_empty()
    }

    /// Returns the Unix time of the first timer.
    pub(super) fn next_timer(&self) -> Option<u64> {
        self.timers.first().map(|(at, _)| *at)
    }

    /// Returns whether a slot waits for a budget.
    pub(super) fn awaits_budget(&self) -> bool {
        self.queues.last_key_value().is_some_and(|(obstacle, _)| matches!(obstacle, Obstacle::Budget(..)))
    }
}
