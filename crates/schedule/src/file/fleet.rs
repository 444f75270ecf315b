//! The parts of a fleet file.

use super::budget::Budget;
use super::hours::Hours;
use super::test_words::{Class, Estimate, Flow, TestWords};
use linerate_model::{HostName, MeasureUnit};
use linerate_units::{BitRate, Nanos};
use std::collections::{BTreeMap, BTreeSet};

/// A fleet file: groups, meshes, links and alerts. All names that it uses are declared.
#[derive(Debug, Clone, PartialEq)]
pub struct FleetFile {
    /// Groups of hosts.
    pub groups: Vec<Group>,
    /// Meshes, at least one.
    pub meshes: Vec<Mesh>,
    /// Declared links.
    pub links: Vec<Link>,
    /// Rules of alerts.
    pub alerts: AlertRules,
}

/// Hosts by label or by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selector {
    /// Labels that all must match.
    pub labels: BTreeMap<String, String>,
    /// Names of hosts, in addition to those that the labels match.
    pub hosts: BTreeSet<HostName>,
}

impl Selector {
    /// Returns whether a host is selected.
    pub fn matches(&self, name: &HostName, labels: &BTreeMap<String, String>) -> bool {
        let has_labels = self.labels.iter().all(|(key, value)| labels.get(key) == Some(value));
        self.hosts.contains(name) || (!self.labels.is_empty() && has_labels)
    }
}

/// A group of hosts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// Name in the file.
    pub name: String,
    /// Its hosts.
    pub selector: Selector,
}

/// A declared link, such as the uplink of a site.
///
/// Traffic between a host at its site and another host crosses it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// Name in the file.
    pub name: String,
    /// Hosts at its site.
    pub selector: Selector,
    /// Rate of each direction.
    pub rate: Option<BitRate>,
}

/// A test between hosts, repeated.
#[derive(Debug, Clone, PartialEq)]
pub struct Mesh {
    /// Name in the file.
    pub name: String,
    /// Pairs of hosts.
    pub pattern: Pattern,
    /// Whether each pair is measured in both directions, one after the other.
    pub both_ways: bool,
    /// The command.
    pub test: TestWords,
    /// Whether a trial needs its hosts and links for itself.
    pub class: Class,
    /// Time in which each pair has its turn; with `sample`, each host has that number of peers.
    pub every: Nanos,
    /// Peers of a host in a period. `None` is all.
    pub sample: Option<u32>,
    /// Limit of bytes.
    pub budget: Option<Budget>,
    /// Hours of the day.
    pub hours: Hours,
    /// Longest delay of a trial.
    pub slip: Nanos,
    /// Expected throughput, by which bytes are estimated.
    pub expected_rate: Option<BitRate>,
    /// Index of the mesh that measures a pair after its level changed in this one.
    pub suspect: Option<usize>,
}

impl Mesh {
    /// Returns bytes and time of a trial, by the expected rate, or else the lowest rate of a declared link, or else 1 Gbit/s.
    pub fn estimate(&self, links: &[Link]) -> Estimate {
        let slowest = links.iter().filter_map(|link| link.rate).min();
        self.test.estimate(self.expected_rate.or(slowest).unwrap_or(ASSUMED_RATE))
    }

    /// Returns the direction of the data, seen from the first host.
    pub fn flow(&self) -> Flow {
        self.test.flow()
    }
}

/// Rate of a path if the file has none.
const ASSUMED_RATE: BitRate = BitRate::per_second(1_000_000_000);

/// Pairs of a mesh. Numbers are indexes of groups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pattern {
    /// All pairs within a group.
    Within(usize),
    /// Each host of the first group with each of the second.
    Between(usize, usize),
    /// Each hub with each spoke.
    Hub {
        /// Group of the hubs.
        hubs: usize,
        /// Group of the spokes.
        spokes: usize,
    },
    /// Listed pairs.
    Pairs(Vec<(HostName, HostName)>),
}

/// Rules of alerts.
#[derive(Debug, Clone, PartialEq)]
pub struct AlertRules {
    /// Absence after which a host is silent.
    pub silent_after: Nanos,
    /// Least share of due slots that are kept, 0 to 1.
    pub keep: f64,
    /// URLs that get alerts as JSON.
    pub webhooks: Vec<String>,
    /// URLs of Alertmanager.
    pub alertmanagers: Vec<String>,
    /// Limits of results.
    pub thresholds: Vec<Threshold>,
}

/// A limit of a mesh's results.
#[derive(Debug, Clone, PartialEq)]
pub struct Threshold {
    /// Name in the file.
    pub name: String,
    /// Index of the mesh.
    pub mesh: usize,
    /// Side of the limit that raises an alert.
    pub side: Side,
    /// Limit, in `unit`.
    pub value: f64,
    /// Unit. Results of other units are not compared.
    pub unit: MeasureUnit,
    /// Limit as the file has it.
    pub text: String,
}

/// Side of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Results below it raise an alert.
    Below,
    /// Results above it raise an alert.
    Above,
}
