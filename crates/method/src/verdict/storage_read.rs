//! The source's storage: the stages that list, open and read files waited for it.

use super::facts::{CopyFacts, percent};
use super::storage::{of_disk, stopped};
use super::{Opinion, support};
use crate::terms;
use linerate_model::{CopyStage, LimitPlace, message};

/// The stages that read from storage.
const STAGES: [CopyStage; 3] = [CopyStage::List, CopyStage::Open, CopyStage::Read];

pub(super) fn weigh(facts: &CopyFacts) -> Option<Opinion> {
    if !facts.reads {
        return None;
    }
    if facts.source.is_throttled() {
        return Some(stopped(terms::READING));
    }
    let (stage, share) = facts.most_blocked(&STAGES);
    let stage = stage?;
    let text = message!(
        "storage-read-waited",
        "Stage {stage} waited for the source's storage for {share} of the time.",
        stage,
        share = percent(share)
    );
    let next = message!(
        "storage-read-next",
        "Copy with --from memory to know what the rest of the path can do; a faster disk, a warm cache (--cache \
         warm) or more lanes (--lanes) read more."
    );
    // What the hypervisor took looks like waiting.
    Some(
        Opinion::new(support(share - facts.steal), text.and(of_disk(&facts.source)))
            .at(LimitPlace::Storage)
            .then(next)
            .despite_steal()
            // The stages time every wait.
            .counted(),
    )
}
