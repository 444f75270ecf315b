//! Parts of a fleet file that do not fit the fleet.

use linerate_units::{ByteCount, Nanos};
use std::collections::BTreeMap;
use std::fmt;

/// A part of the fleet file that does not fit the hosts. Planning goes on without it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlanWarning {
    /// A group or link matches no host.
    NoHost {
        /// `group` or `link`.
        kind: &'static str,
        /// Its name.
        name: String,
        /// Its labels.
        labels: BTreeMap<String, String>,
        /// Values of these labels that hosts have; the names of all labels if no host has one of these.
        existing: Vec<String>,
    },
    /// A host that the file names is not enrolled.
    UnknownHost {
        /// Its name.
        host: String,
        /// Place of the name in the file.
        place: String,
    },
    /// A mesh has no two hosts.
    NoPairs {
        /// Name of the mesh.
        mesh: String,
    },
    /// The trials of a host take longer than the period.
    NoTime {
        /// Name of the mesh.
        mesh: String,
        /// Time of a host's trials in a period.
        needed: Nanos,
        /// Time that a period has.
        period: Nanos,
    },
    /// One trial is larger than the budget.
    NoBudget {
        /// Name of the mesh.
        mesh: String,
        /// Bytes of a trial.
        trial: ByteCount,
        /// Bytes of the budget.
        budget: ByteCount,
    },
}

impl fmt::Display for PlanWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoHost { kind, name, labels, existing } => {
                let labels: Vec<String> = labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
                write!(f, "[[{kind}]] `{name}` matches no host: no host has {}", labels.join(" and "))?;
                if existing.is_empty() {
                    f.write_str("; no host has labels")
                } else {
                    write!(f, "; hosts have {}", existing.join(", "))
                }
            }
            Self::UnknownHost { host, place } => {
                write!(f, "{place} names host `{host}`, which is not enrolled; enrol it or correct the name")
            }
            Self::NoPairs { mesh } => {
                write!(f, "mesh `{mesh}` has no pairs; its groups match fewer than two hosts")
            }
            Self::NoTime { mesh, needed, period } => write!(
                f,
                "mesh `{mesh}`: the trials of one host take about {} s, and a period has {} s; raise `every`, or set or lower `sample`",
                needed.get() / 1_000_000_000,
                period.get() / 1_000_000_000
            ),
            Self::NoBudget { mesh, trial, budget } => write!(
                f,
                "mesh `{mesh}`: one trial is about {trial}, and the budget is {budget} a day, which allows nothing; raise it or shorten `test`"
            ),
        }
    }
}
