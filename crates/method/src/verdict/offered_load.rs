//! The offered load: all that was asked for arrived.

use super::facts::percent;
use super::{Facts, Opinion};
use linerate_model::Stand;

/// A load is met within the error of the clocks and of the receiver's window.
const MET: f64 = 0.99;

pub(super) fn weigh(facts: &Facts) -> Option<Opinion> {
    let offer = facts.offer?;
    let lost = facts.lost_behind_sender();
    Some(if offer.arrived >= MET && lost <= super::path_loss::NOTABLE {
        Opinion::new(Stand::Strong, format!("{} of the load asked for arrived.", percent(offer.arrived.min(1.0))))
            .then("Ask for a higher --rate, or for none, to find what the path carries.")
    } else {
        let text =
            format!("{} of the load asked for was sent, and {} arrived.", percent(offer.sent), percent(offer.arrived));
        Opinion::new(Stand::Against, text)
    })
}
