//! What the disks of one end show: what the rules of reading and writing storage share.

use super::Opinion;
use super::facts::{CopyEnd, percent};
use linerate_model::Support;

/// Threads that a quota stops look as if they waited for what they were about to do.
pub(super) fn stopped(does: &str) -> Opinion {
    let text =
        format!("The host that {does} was stopped by its CPU quota, so waiting for storage cannot be told from that.");
    Opinion::new(Support::Unknown, text)
}

/// What the disk itself counted, where there is one, and what the kernel says of those that wait for it.
pub(super) fn of_disk(end: &CopyEnd) -> String {
    let Some((name, busy)) = &end.disk else { return String::new() };
    let stalled = end
        .stalled
        .map(|share| format!(", and at least one task of that host waited for storage for {}", percent(share)));
    format!("; its disk {name} was busy for {}{}", percent(*busy), stalled.unwrap_or_default())
}
