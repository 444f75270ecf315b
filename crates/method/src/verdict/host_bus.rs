//! The bus: the card of an interface stands in a slot that carries less than its link.

use super::Opinion;
use super::facts::{BusUse, CopyFacts, FlowFacts, percent};
use linerate_model::Support;

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
    let better = used.card.map(|card| format!("; the card can use {card}")).unwrap_or_default();
    let text = format!(
        "The card of interface {} of {} is on {}, which carries less than its link{better}. Frames of {} bytes on average took {} of \
         the most that this bus can carry.",
        used.interface,
        used.host,
        used.bus,
        used.frame_bytes,
        percent(used.share)
    );
    let support = match used.share {
        FULL.. => Support::Strong,
        HALF_FULL.. => Support::Hint,
        _ => Support::Against,
    };
    let next = "Put the card into a faster slot; `linerate limits --bus` has what each carries.";
    Opinion::new(support, text).used(used.share.min(1.0)).then(next).despite_steal()
}
