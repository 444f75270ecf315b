//! Soft interrupts: a core of a host had no time left but for them, whatever programs ran.

use super::Opinion;
use super::facts::{FlowFacts, NEARLY_OCCUPIED, NOTABLE_LOSS, Work, percent};
use crate::terms;
use linerate_model::{LimitPlace, Support, message};

/// A core with so much of its time in interrupts takes no more packets.
const FULL: f64 = 0.9;
/// A core with so much is near that.
const NEARLY_FULL: f64 = 0.75;

pub(super) fn weigh(facts: &FlowFacts) -> Option<Opinion> {
    let (at_sender, at_receiver) = (facts.sender.interrupts, facts.receiver.interrupts);
    let share = at_sender.max(at_receiver);
    let dropped = facts.udp.map_or(facts.receiver.dropped, |udp| udp.receiver_queue) > NOTABLE_LOSS;
    // On one machine both hosts see the same cores.
    let place = match () {
        () if dropped => Some(LimitPlace::ReceiverHost),
        () if facts.one_machine => None,
        () if at_receiver >= at_sender => Some(LimitPlace::ReceiverHost),
        () => Some(LimitPlace::SenderHost),
    };
    let whose = match place {
        Some(LimitPlace::SenderHost) => terms::SENDING_HOST,
        Some(_) => terms::RECEIVING_HOST,
        None => terms::MACHINE,
    };
    let text = message!(
        "softirq-cpu-share",
        "A core of the {whose} spent {share} of its time on soft interrupts.",
        whose,
        share = percent(share)
    );
    // Of requests one after the other an interrupt is part of each, and no queue of them stands.
    let in_turn = facts.work == Work::Transact && facts.closed_loop.is_some_and(|closed| closed.outstanding < 2.0);
    let full = share >= FULL || facts.sender.is_full_of_interrupts() || facts.receiver.is_full_of_interrupts();
    let support = match share {
        _ if full && !in_turn => Support::Strong,
        NEARLY_FULL.. if dropped => Support::For,
        NEARLY_FULL.. if facts.sender.occupied().max(facts.receiver.occupied()) < NEARLY_OCCUPIED => Support::Hint,
        _ => Support::Against,
    };
    let opinion = Opinion::new(support, text).used(share).then(message!(
        "softirq-cpu-next",
        "Spread receiving over more cores (the NIC's queues, RPS), use larger packets, or enable the interface's \
         offloads."
    ));
    Some(Opinion { place, ..opinion })
}
