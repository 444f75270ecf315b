//! Decisions of a fleet, without clock, socket or file: which trial is due where, and what to alert.
//!
//! - [`FleetFile`]: the fleet file (TOML): groups, meshes, links and alerts.
#![forbid(unsafe_code)]

mod alert;
mod file;

pub use alert::{Alert, AlertKind, Subject};
pub use file::{
    AlertRules, Budget, BudgetScope, Class, Estimate, FleetFile, FleetFileError, Flow, Group, Hours, Link, Mesh,
    Pattern, Selector, Side, TestWords, Threshold,
};
