//! The receiver's processor: its threads always had work, or its kernel dropped what it had no time for.

use super::Opinion;
use super::facts::{CopyFacts, FlowFacts};
use super::processor::{of_receiver, of_stages};
use crate::terms;
use linerate_model::{CopyStage, LimitPlace, message};

pub(super) fn weigh(facts: &FlowFacts) -> Option<Opinion> {
    // Where calls are answered, the receiver is the server, whatever it has too little of.
    facts.calls.is_none().then(|| of_receiver(facts).at(LimitPlace::ReceiverHost))
}

/// Stages of a copy at its destination.
pub(super) const DESTINATION_STAGES: [CopyStage; 5] =
    [CopyStage::Receive, CopyStage::Verify, CopyStage::Create, CopyStage::Write, CopyStage::Sync];

/// The processor of a copy's destination.
pub(super) fn of_copy(facts: &CopyFacts) -> Option<Opinion> {
    let next = message!(
        "receiver-cpu-next-copy",
        "A faster core, more lanes on more cores (--lanes), or no verification (--no-verify) takes more."
    );
    of_stages(facts, &facts.destination, &DESTINATION_STAGES, terms::DESTINATIONS)
        .map(|opinion| opinion.at(LimitPlace::ReceiverHost).then(next))
}
