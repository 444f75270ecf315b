//! Decisions of a fleet, without clock, socket or file: which trial is due where, and what to alert.
//!
//! - [`FleetFile`]: the fleet file (TOML): groups, meshes, links and alerts.
//! - [`Planner`]: which orders begin at a moment. [`preview`] answers the same for a span of time without running anything.
//! - [`Monitor`]: results, presence and missed slots in, raised and resolved alerts out.
#![forbid(unsafe_code)]

mod alert;
mod file;
mod plan;

pub use alert::{Alert, AlertKind, Monitor, PairResult, Subject};
pub use file::{
    AlertRules, Budget, BudgetScope, Class, Estimate, FleetFile, FleetFileError, Flow, Group, Hours, Link, Mesh,
    Pattern, Selector, Side, TestWords, Threshold,
};
pub use plan::{
    EndedOrder, FleetHost, LastRun, MissReason, Missed, Moment, Order, OrderId, Outcome, PlanWarning, Planner, Preview,
    PreviewMesh, PreviewRound, Resource, Way, preview,
};
