//! The source's storage: the stages that list, open and read files waited for it.

use super::Opinion;
use super::copied::{CopyEnd, CopyFacts, stand};
use super::facts::percent;
use linerate_model::{CopyStage, Stand};

/// The stages that read from storage.
const STAGES: [CopyStage; 3] = [CopyStage::List, CopyStage::Open, CopyStage::Read];

pub(super) fn weigh(facts: &CopyFacts) -> Option<Opinion> {
    if !facts.reads {
        return None;
    }
    if facts.source.is_throttled() {
        return Some(stopped("reads"));
    }
    let (stage, share) = facts.most_blocked(&STAGES);
    let stage = stage?;
    let disk = of_disk(&facts.source);
    let text =
        format!("To {} files waited for the source's storage for {} of the time{disk}.", stage.name(), percent(share));
    let next = "Copy with --from memory to know what the rest of the path can do; a faster disk, a warm cache (--cache warm) or \
                more lanes (--lanes) read more.";
    // What the hypervisor took looks like waiting.
    Some(Opinion::new(stand(share - facts.steal), text).then(next).despite_steal())
}

/// Threads that a quota stops look as if they waited for what they were about to do.
pub(super) fn stopped(does: &str) -> Opinion {
    let text =
        format!("The host that {does} was stopped by its CPU quota, so waiting for storage cannot be told from that.");
    Opinion::new(Stand::Unknown, text)
}

/// What the disk itself counted, where there is one, and what the kernel says of those that wait for it.
pub(super) fn of_disk(end: &CopyEnd) -> String {
    let Some((name, busy)) = &end.disk else { return String::new() };
    let stalled =
        end.stalled.map(|share| format!(", and some task of that host waited for storage for {}", percent(share)));
    format!("; its disk {name} had work for {}{}", percent(*busy), stalled.unwrap_or_default())
}
