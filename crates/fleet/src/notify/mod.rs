//! Alerts to others: webhooks and Alertmanager.
//!
//! Each target has a queue and a task of its own, so that one that cannot be reached delays no other.

mod alertmanager;
mod links;
mod notifier;
mod outbox;
mod webhook;

pub use links::PageLinks;
pub use notifier::{Notifier, Target, TargetKind};
