//! Which hosts belong to which mesh and link.

use super::order::FleetHost;
use super::rounds::Rounds;
use super::warning::PlanWarning;
use crate::file::{FleetFile, Mesh, Pattern, Selector};
use linerate_model::HostName;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Hosts of the fleet by number. A host keeps its number.
#[derive(Debug, Default)]
pub(super) struct Hosts {
    numbers: HashMap<HostName, u32>,
    entries: Vec<HostEntry>,
}

#[derive(Debug)]
pub(super) struct HostEntry {
    pub(super) name: HostName,
    pub(super) labels: BTreeMap<String, String>,
    /// Whether it is in the fleet.
    pub(super) enrolled: bool,
    /// Whether its agent is connected.
    pub(super) present: bool,
    /// Indexes of the declared links that have it at their site, ascending.
    pub(super) links: Vec<usize>,
}

/// Difference between the hosts of a fleet and those before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HostChange {
    Nothing,
    /// Agents connected or disconnected.
    Presence,
    /// Hosts joined or left, or labels changed.
    Members,
}

impl Hosts {
    pub(super) fn number(&mut self, name: &HostName) -> u32 {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        let number = self.entries.len() as u32;
        self.numbers.insert(name.clone(), number);
        let labels = BTreeMap::new();
        self.entries.push(HostEntry { name: name.clone(), labels, enrolled: false, present: false, links: Vec::new() });
        number
    }

    pub(super) fn find(&self, name: &HostName) -> Option<u32> {
        self.numbers.get(name).copied()
    }

    pub(super) fn count(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn entry(&self, number: u32) -> &HostEntry {
        &self.entries[number as usize]
    }

    /// Replaces the hosts of the fleet.
    pub(super) fn set(&mut self, hosts: Vec<FleetHost>, file: &FleetFile) -> HostChange {
        let before = self.entries.iter().filter(|entry| entry.enrolled).count();
        let mut is_changed = before != hosts.len();
        let mut is_presence_changed = false;
        let mut enrolled = vec![false; self.entries.len()];
        for host in hosts {
            let number = self.number(&host.name) as usize;
            enrolled.resize(self.entries.len(), false);
            enrolled[number] = true;
            let entry = &mut self.entries[number];
            is_changed |= !entry.enrolled || entry.labels != host.labels;
            is_presence_changed |= entry.present != host.present;
            entry.present = host.present;
            entry.labels = host.labels;
            entry.links.clear();
            for (index, link) in file.links.iter().enumerate() {
                if link.selector.matches(&entry.name, &entry.labels) {
                    entry.links.push(index);
                }
            }
        }
        for (entry, enrolled) in self.entries.iter_mut().zip(enrolled) {
            entry.enrolled = enrolled;
            entry.present &= enrolled;
        }
        if is_changed {
            HostChange::Members
        } else if is_presence_changed {
            HostChange::Presence
        } else {
            HostChange::Nothing
        }
    }

    fn enrolled(&self) -> impl Iterator<Item = (u32, &HostEntry)> {
        (0u32..).zip(&self.entries).filter(|(_, entry)| entry.enrolled)
    }

    /// Returns the selected hosts in an order that the seed shuffles, and that keeps when a host is added.
    fn members(&self, selector: &Selector, seed: u64) -> Vec<u32> {
        let mut members: Vec<(u64, &HostName, u32)> = Vec::new();
        for (number, entry) in self.enrolled() {
            if selector.matches(&entry.name, &entry.labels) {
                members.push((hash(seed, entry.name.0.as_bytes()), &entry.name, number));
            }
        }
        members.sort_unstable();
        members.into_iter().map(|(_, _, number)| number).collect()
    }

    /// Returns the rounds of a mesh.
    pub(super) fn rounds(&mut self, file: &FleetFile, mesh: &Mesh, seed: u64) -> Rounds {
        match &mesh.pattern {
            Pattern::Within(group) => Rounds::Circle(self.members(&file.groups[*group].selector, seed)),
            Pattern::Between(one, other) | Pattern::Hub { hubs: one, spokes: other } => Rounds::bipartite(
                self.members(&file.groups[*one].selector, seed),
                self.members(&file.groups[*other].selector, seed),
            ),
            Pattern::Pairs(pairs) => {
                let numbers: Vec<(u32, u32)> =
                    pairs.iter().map(|(from, to)| (self.number(from), self.number(to))).collect();
                Rounds::listed(&numbers)
            }
        }
    }

    /// Returns what of the file matches no host.
    pub(super) fn warnings(&self, file: &FleetFile) -> Vec<PlanWarning> {
        let mut warnings = Vec::new();
        let groups = file.groups.iter().map(|group| ("group", &group.name, &group.selector));
        let links = file.links.iter().map(|link| ("link", &link.name, &link.selector));
        for (kind, name, selector) in groups.chain(links) {
            for host in &selector.hosts {
                self.warn_of_host(host, &format!("[[{kind}]] `{name}`"), &mut warnings);
            }
            let is_empty = !self.enrolled().any(|(_, entry)| selector.matches(&entry.name, &entry.labels));
            if is_empty && !selector.labels.is_empty() {
                let existing = self.existing(&selector.labels);
                warnings.push(PlanWarning::NoHost {
                    kind,
                    name: name.clone(),
                    labels: selector.labels.clone(),
                    existing,
                });
            }
        }
        for mesh in &file.meshes {
            let Pattern::Pairs(pairs) = &mesh.pattern else { continue };
            let names: BTreeSet<&HostName> = pairs.iter().flat_map(|(from, to)| [from, to]).collect();
            for name in names {
                self.warn_of_host(name, &format!("mesh `{}`", mesh.name), &mut warnings);
            }
        }
        warnings
    }

    fn warn_of_host(&self, name: &HostName, place: &str, warnings: &mut Vec<PlanWarning>) {
        if !self.find(name).is_some_and(|number| self.entry(number).enrolled) {
            warnings.push(PlanWarning::UnknownHost { host: name.0.clone(), place: place.to_owned() });
        }
    }

    /// Returns the values that hosts have of the labels, or the names of all labels if no host has one of these.
    fn existing(&self, labels: &BTreeMap<String, String>) -> Vec<String> {
        let mut values = BTreeSet::new();
        let mut names = BTreeSet::new();
        for (_, entry) in self.enrolled() {
            for (key, value) in &entry.labels {
                names.insert(key.clone());
                if labels.contains_key(key) {
                    values.insert(format!("{key}={value}"));
                }
            }
        }
        let existing = if values.is_empty() { names } else { values };
        existing.into_iter().collect()
    }
}

/// Returns a hash of bytes that is the same on every machine: FNV-1a, mixed by the finaliser of SplitMix64.
pub(super) fn hash(seed: u64, bytes: &[u8]) -> u64 {
    let mut state = 0xcbf2_9ce4_8422_2325 ^ seed;
    for byte in bytes {
        state = (state ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    }
    mix(state)
}

/// Returns a number of which each bit depends on all bits of `state`.
pub(super) fn mix(state: u64) -> u64 {
    let state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let state = (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    state ^ (state >> 31)
}
