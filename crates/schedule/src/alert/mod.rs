//! Alerts of a fleet.

mod cause;
mod message;
mod monitor;
mod series;
#[cfg(test)]
mod tests;

pub use message::{Alert, AlertKind, Subject};
pub use monitor::{Monitor, PairResult};
