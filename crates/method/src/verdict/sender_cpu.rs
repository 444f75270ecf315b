//! The sender's processor: its threads always had work, and not always a core.

use super::Opinion;
use super::facts::{CopyFacts, FlowFacts, Work, percent};
use super::processor::{of_end, of_requests, of_stages, of_stream};
use crate::terms;
use linerate_model::{CopyStage, LimitPlace, Support, message};

/// A sender that kept so much of its load is fast enough for it.
const KEPT: f64 = 0.99;
/// With more of what it sends lost behind it, a faster sender only loses more.
const OUTRUN: f64 = 0.02;

pub(super) fn weigh(facts: &FlowFacts) -> Option<Opinion> {
    of_sender(facts).map(|opinion| opinion.at(LimitPlace::SenderHost))
}

fn of_sender(facts: &FlowFacts) -> Option<Opinion> {
    let end = &facts.sender;
    if facts.work == Work::Transact {
        return Some(of_end(&of_requests(facts, end), terms::ASKING));
    }
    if let Some(offer) = facts.offer.filter(|offer| offer.sent >= KEPT) {
        return Some(Opinion::new(
            Support::Against,
            message!(
                "sender-cpu-kept",
                "The sender kept {share} of the load asked for.",
                share = percent(offer.sent.min(1.0))
            ),
        ));
    }
    let dropped = facts.udp.map_or(0.0, |udp| udp.sender_queue);
    if dropped > OUTRUN && !end.is_throttled() {
        let text = message!(
            "sender-cpu-own-queue",
            "The sending host's own queue dropped {share} of what was sent: a faster sender would lose more there.",
            share = percent(dropped)
        );
        return Some(Opinion::new(Support::Against, text));
    }
    let lost = facts.lost_behind_sender();
    if lost > OUTRUN && end.is_throttled() {
        let text = of_end(end, terms::SENDING).text.and(message!(
            "sender-cpu-lost-at-once",
            "It sends in bursts, of which {share} was lost downstream.",
            share = percent(lost)
        ));
        return Some(Opinion::new(Support::For, text));
    }
    if lost > OUTRUN {
        let text = message!(
            "sender-cpu-lost-behind",
            "{share} of what was sent was lost behind the sender: a faster one would lose more.",
            share = percent(lost)
        );
        return Some(Opinion::new(Support::Against, text));
    }
    Some(of_stream(facts, end, terms::SENDING).then(message!(
        "sender-cpu-next",
        "A faster core, a larger message, offloads, or more flows on more cores (--flows) send more."
    )))
}

/// Stages of a copy at its source.
pub(super) const SOURCE_STAGES: [CopyStage; 5] =
    [CopyStage::List, CopyStage::Open, CopyStage::Read, CopyStage::Hash, CopyStage::Send];

/// The processor of a copy's source.
pub(super) fn of_copy(facts: &CopyFacts) -> Option<Opinion> {
    let next = message!(
        "sender-cpu-next-copy",
        "A faster core, more lanes on more cores (--lanes), or no verification (--no-verify) sends more."
    );
    of_stages(facts, &facts.source, &SOURCE_STAGES, terms::SOURCES)
        .map(|opinion| opinion.at(LimitPlace::SenderHost).then(next))
}
