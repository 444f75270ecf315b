//! Hosts and links, and which orders use them.

use super::order::Resource;
use std::collections::{HashMap, HashSet};

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
    /// Scan in which a waiting trial reserved it.
    reserved: u64,
}

impl Resources {
    /// Returns the number of a resource.
    pub(super) fn number(&mut self, resource: &Resource) -> u32 {
        if let Some(number) = self.numbers.get(resource) {
            return *number;
        }
        let number = self.entries.len() as u32;
        self.numbers.insert(resource.clone(), number);
        self.entries.push(Entry { resource: resource.clone(), exclusive: 0, light: HashSet::new(), reserved: 0 });
        number
    }

    pub(super) fn resource(&self, number: u32) -> &Resource {
        &self.entries[number as usize].resource
    }

    /// Returns whether an exclusive trial holds one of the resources.
    pub(super) fn are_taken(&self, numbers: &[u32]) -> bool {
        numbers.iter().any(|number| self.entries[*number as usize].exclusive > 0)
    }

    /// Returns whether an older waiting trial reserved one of the resources in this scan.
    pub(super) fn are_reserved(&self, numbers: &[u32], scan: u64) -> bool {
        numbers.iter().any(|number| self.entries[*number as usize].reserved == scan)
    }

    /// Keeps resources free for a waiting trial until the end of this scan.
    pub(super) fn reserve(&mut self, numbers: &[u32], scan: u64) {
        for number in numbers {
            self.entries[*number as usize].reserved = scan;
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
