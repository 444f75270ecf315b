//! What the disks of one end show: what the rules of reading and writing storage share.

use super::Opinion;
use super::facts::{CopyEnd, percent};
use linerate_model::{Message, Support, Text, message};

/// Threads that a quota stops look as if they waited for what they were about to do.
pub(super) fn stopped(end: &'static Text) -> Opinion {
    let text = message!(
        "storage-stopped",
        "The {whose} host was stopped by its CPU quota, so waiting for storage cannot be told from that.",
        whose = end
    );
    Opinion::new(Support::Unknown, text)
}

/// What the disk itself counted, where there is one, and what the kernel says of those that wait for it.
pub(super) fn of_disk(end: &CopyEnd) -> Option<Message> {
    let (disk, busy) = end.disk.as_ref()?;
    let busy = message!("storage-disk", "Its disk {disk} was busy for {busy}.", disk, busy = percent(*busy));
    let stalled = end.stalled.map(|share| {
        message!(
            "storage-stalled",
            "At least one task of that host waited for storage for {share}.",
            share = percent(share)
        )
    });
    Some(busy.and(stalled))
}
