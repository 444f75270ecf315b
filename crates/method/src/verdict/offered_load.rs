//! The offered load: all that was asked for arrived.

use super::Opinion;
use super::facts::{FlowFacts, NOTABLE_LOSS, percent};
use linerate_model::{LimitPlace, Support, message};

/// A load is met within the error of the clocks and of the receiver's window.
const MET: f64 = 0.99;

pub(super) fn weigh(facts: &FlowFacts) -> Option<Opinion> {
    let offer = facts.offer?;
    let lost = facts.lost_behind_sender();
    let text = message!(
        "offered-load-sent",
        "{sent} of the load asked for was sent, and {arrived} arrived.",
        sent = percent(offer.sent),
        arrived = percent(offer.arrived)
    );
    Some(if offer.arrived >= MET && lost <= NOTABLE_LOSS {
        Opinion::new(
            Support::Strong,
            message!(
                "offered-load-arrived",
                "{share} of the load asked for arrived.",
                share = percent(offer.arrived.min(1.0))
            ),
        )
        .then(message!("offered-load-next", "Ask for a higher --rate, or for none, to find what the path carries."))
        .at(LimitPlace::SenderApplication)
        .despite_steal()
        .counted()
    } else if offer.is_nearly_met() && lost <= NOTABLE_LOSS {
        Opinion::new(Support::Hint, text)
    } else {
        Opinion::new(Support::Against, text)
    })
}
