//! The destination's storage: the stages that make, write and read back files and make them durable waited for it.

use super::facts::{CopyFacts, percent};
use super::storage::{of_disk, stopped};
use super::{Opinion, support};
use crate::terms;
use linerate_model::{CopyStage, LimitPlace, message};

pub(super) fn weigh(facts: &CopyFacts) -> Option<Opinion> {
    if !facts.writes {
        return None;
    }
    if facts.destination.is_throttled() {
        return Some(stopped(terms::WRITING));
    }
    let mut beside = vec![CopyStage::Create, CopyStage::Write];
    beside.extend(facts.reads_back.then_some(CopyStage::Verify));
    beside.extend(facts.syncs_each.then_some(CopyStage::Sync));
    let (stage, written) = facts.most_blocked(&beside);
    // What is made durable at the end comes after all that is written: there the times add up.
    let synced = if facts.syncs_each { 0.0 } else { facts.blocked(CopyStage::Sync) };
    let share = (written + synced).min(1.0);
    let text = message!(
        "storage-write-waited",
        "Stage {stage} waited for the destination's storage for {written} of the time, stage sync for {synced}.",
        stage = stage?,
        written = percent(written),
        synced = percent(synced)
    );
    let next = message!(
        "storage-write-next",
        "Copy with --to discard to know what the rest of the path can do; a faster disk, or kernel \
         writeback (--sync none), writes more."
    );
    // What the hypervisor took looks like waiting.
    Some(
        Opinion::new(support(share - facts.steal), text.and(of_disk(&facts.destination)))
            .at(LimitPlace::Storage)
            .then(next)
            .despite_steal()
            // The stages time every wait.
            .counted(),
    )
}
