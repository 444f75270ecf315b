//! Alerts of a fleet.

mod message;

pub use message::{Alert, AlertKind, Subject};
