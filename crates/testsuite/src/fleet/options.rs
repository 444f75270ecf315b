//! Layout of a fleet's lab.

use linerate_units::BitRate;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// A site: hosts on a bridge, with one uplink to the other sites.
#[derive(Debug, Clone)]
pub struct Site {
    /// Its name, at most eight letters.
    pub name: String,
    /// Number of hosts.
    pub hosts: usize,
    /// Rate of the uplink, each way.
    pub uplink: BitRate,
}

impl Site {
    /// Returns the name of a host of the site, counted from 0.
    pub fn host(&self, number: usize) -> String {
        format!("{}-{}", self.name, number + 1)
    }
}

/// A process of `linerate fleet serve`.
#[derive(Debug, Clone)]
pub struct FleetServer {
    /// Name of the process in the lab.
    pub name: String,
    /// Its parts, as in `schedule,control`; all if empty.
    pub roles: String,
    /// Further options, as in `--listen`.
    pub options: Vec<String>,
    /// Library that is loaded first, and its variables, as for a wrong clock.
    pub environment: Vec<(String, String)>,
}

impl FleetServer {
    /// A process with these parts.
    pub fn new(name: &str, roles: &str) -> Self {
        Self { name: name.to_owned(), roles: roles.to_owned(), options: Vec::new(), environment: Vec::new() }
    }
}

/// Where the fleet keeps its records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Database {
    /// A file of SQLite.
    Sqlite,
    /// A PostgreSQL server of the lab.
    PostgreSql,
}

/// Layout of a fleet's lab.
#[derive(Debug, Clone)]
pub struct FleetLabOptions {
    /// The program under test.
    pub program: PathBuf,
    /// Sites.
    pub sites: Vec<Site>,
    /// Rate of each host's own link.
    pub host_rate: BitRate,
    /// Hosts with a link of another rate.
    pub slow_hosts: BTreeMap<String, BitRate>,
    /// Text of the fleet's file.
    pub file: String,
    /// Processes of `linerate fleet serve`. One of them admits members.
    pub servers: Vec<FleetServer>,
    /// Where records are kept.
    pub database: Database,
    /// Size of the file system with the streams of NATS, in bytes. `None` for the ordinary one.
    pub stream_space: Option<u64>,
}
