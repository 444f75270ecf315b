//! Hosts and links, and which orders use them.

use super::order::Resource;
use super::slot::Precedence;
use std::collections::{BTreeSet, HashMap, HashSet};

/// Resources by number, and the trials that hold them.
#[derive(Debug, Default)]
pub(super) struct Resources {
    numbers: HashMap<Resource, u32>,
    entries: Vec<Entry>,
}

#[derive(Debug)]
struct Entry {
    resource: Resource,
    /// Exclusive trials that hold it. More than one only by [`Resources::take`] for another scheduler's orders.
    exclusive: u32,
    /// Keys of the light trials that use it.
    light: HashSet<u64>,
    /// Waiting slots that reserve it.
    reserved: BTreeSet<Precedence>,
}

impl Resources {
    /// Returns the number of a resource.
    pub(super) fn number(&mut self, resource: &Resource) -> u32 {
        if let Some(number) = self.numbers.get(resource) {
            return *number;
        }
        let number = self.entries.len() as u32;
        self.numbers.insert(resource.clone(), number);
        self.entries.push(Entry {
            resource: resource.clone(),
            exclusive: 0,
            light: HashSet::new(),
            reserved: BTreeSet::new(),
        });
        number
    }

    pub(super) fn resource(&self, number: u32) -> &Resource {
        &self.entries[number as usize].resource
    }

    /// Returns whether an exclusive trial holds one of the resources.
    pub(super) fn are_taken(&self, numbers: &[u32]) -> bool {
        numbers.iter().any(|number| self.entries[*number as usize].exclusive > 0)
    }

    /// Returns the first resource that an exclusive trial holds, or that a preceding slot reserves.
    pub(super) fn unavailable(&self, numbers: &[u32], precedence: Precedence) -> Option<u32> {
        numbers.iter().copied().find(|number| {
            let entry = &self.entries[*number as usize];
            entry.exclusive > 0 || entry.reserved.first().is_some_and(|first| *first < precedence)
        })
    }

    /// Keeps resources free for a waiting slot until [`Resources::release`].
    pub(super) fn reserve(&mut self, numbers: &[u32], precedence: Precedence) {
        for number in numbers {
            self.entries[*number as usize].reserved.insert(precedence);
        }
    }

    /// Ends the reservation of a slot. Returns whether it had one.
    pub(super) fn release(&mut self, numbers: &[u32], precedence: Precedence) -> bool {
        let mut had_one = false;
        for number in numbers {
            had_one |= self.entries[*number as usize].reserved.remove(&precedence);
        }
        had_one
    }

    /// Ends all reservations.
    pub(super) fn release_all(&mut self) {
        for entry in &mut self.entries {
            entry.reserved.clear();
        }
    }

    /// Takes resources for an exclusive trial. Returns the light trials that run on them.
    pub(super) fn take(&mut self, numbers: &[u32]) -> Vec<u64> {
        let mut light = Vec::new();
        for number in numbers {
            let entry = &mut self.entries[*number as usize];
            entry.exclusive += 1;
            light.extend(&entry.light);
        }
        light
    }

    /// Gives back the resources of an exclusive trial.
    pub(super) fn give_back(&mut self, numbers: &[u32]) {
        for number in numbers {
            let entry = &mut self.entries[*number as usize];
            entry.exclusive = entry.exclusive.saturating_sub(1);
        }
    }

    /// Adds a light trial to its resources.
    pub(super) fn enter(&mut self, numbers: &[u32], key: u64) {
        for number in numbers {
            self.entries[*number as usize].light.insert(key);
        }
    }

    /// Removes a light trial from its resources.
    pub(super) fn leave(&mut self, numbers: &[u32], key: u64) {
        for number in numbers {
            self.entries[*number as usize].light.remove(&key);
        }
    }
}
