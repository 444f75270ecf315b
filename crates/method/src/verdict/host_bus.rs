//! The bus: the card of an interface stands in a slot that carries less than its link.

use super::Opinion;
use super::facts::{BusUse, CopyFacts, FlowFacts, percent};
use linerate_model::{MessageValue, Support, message};

/// The most that is calculated leaves out descriptors, doorbells and flow control, which take a tenth and more.
const FULL: f64 = 0.85;
/// With less than this in use the bus has room, whatever else travels on it.
const HALF_FULL: f64 = 0.6;

pub(super) fn weigh(facts: &FlowFacts) -> Option<Opinion> {
    facts.bus.as_ref().map(of)
}

/// The bus under a copy, over the whole of it, its beginning and its end too.
pub(super) fn of_copy(facts: &CopyFacts) -> Option<Opinion> {
    facts.bus.as_ref().filter(|_| facts.crosses).map(of)
}

fn of(used: &BusUse) -> Opinion {
    let on = message!(
        "host-bus-slot",
        "The card of interface {interface} of {host} is on {bus}, which carries less than its link.",
        interface = used.interface.as_str(),
        host = &used.host,
        bus = MessageValue::Name(used.bus.to_string())
    );
    let card = used.card.map(|card| {
        let card = MessageValue::Name(card.to_string());
        message!("host-bus-card", "The card can use {card}.", card)
    });
    let took = message!(
        "host-bus-used",
        "Frames of {frame_bytes} bytes on average took {used} of the most that this bus can carry.",
        frame_bytes = used.frame_bytes,
        used = percent(used.share)
    );
    let support = match used.share {
        FULL.. => Support::Strong,
        HALF_FULL.. => Support::Hint,
        _ => Support::Against,
    };
    let next =
        message!("host-bus-next", "Put the card into a faster slot; `linerate limits --bus` has what each carries.");
    Opinion::new(support, on.and(card).and(took)).used(used.share.min(1.0)).then(next).despite_steal().counted()
}
