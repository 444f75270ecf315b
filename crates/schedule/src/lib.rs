//! Decisions of a fleet, without clock, socket or file: which trial is due where, and what to alert.
//!
//! - [`FleetFile`]: the fleet file (TOML): groups, meshes, links and alerts.
//! - [`Planner`]: which orders begin at a moment. [`preview`] answers the same for a span of time without running anything.
//! - [`Monitor`]: results, presence and missed slots in, raised and resolved alerts out.
#![forbid(unsafe_code)]

mod alert;

pub use alert::{Alert, AlertKind, Subject};
