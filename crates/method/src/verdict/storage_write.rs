//! The destination's storage: the stages that make, write and read back files and make them durable waited for it.

use super::facts::{CopyFacts, percent};
use super::storage::{of_disk, stopped};
use super::{Opinion, support};
use linerate_model::{CopyStage, LimitPlace};

pub(super) fn weigh(facts: &CopyFacts) -> Option<Opinion> {
    if !facts.writes {
        return None;
    }
    if facts.destination.is_throttled() {
        return Some(stopped("writes"));
    }
    let mut beside = vec![CopyStage::Create, CopyStage::Write];
    beside.extend(facts.reads_back.then_some(CopyStage::Verify));
    beside.extend(facts.syncs_each.then_some(CopyStage::Sync));
    let (stage, written) = facts.most_blocked(&beside);
    // What is made durable at the end comes after all that is written: there the times add up.
    let synced = if facts.syncs_each { 0.0 } else { facts.blocked(CopyStage::Sync) };
    let share = (written + synced).min(1.0);
    let disk = of_disk(&facts.destination);
    let text = format!(
        "Stage {} waited for the destination's storage for {} of the time, stage sync for {}{disk}.",
        stage?.name(),
        percent(written),
        percent(synced)
    );
    let next = "Copy with --to discard to know what the rest of the path can do; a faster disk, or leaving it to the system \
                when data is made durable (--sync none), writes more.";
    // What the hypervisor took looks like waiting.
    Some(Opinion::new(support(share - facts.steal), text).at(LimitPlace::Storage).then(next).despite_steal())
}
