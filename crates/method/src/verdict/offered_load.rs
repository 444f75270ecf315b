//! The offered load: all that was asked for arrived.

use super::facts::percent;
use super::{Facts, Opinion};
use linerate_model::Stand;

/// A load is met within the error of the clocks and of the receiver's window.
const MET: f64 = 0.99;
/// Nearly all of it: a limit that is just below what was asked for would be a coincidence.
pub(super) const NEARLY_MET: f64 = 0.95;

pub(super) fn weigh(facts: &Facts) -> Option<Opinion> {
    let offer = facts.offer?;
    let lost = facts.lost_behind_sender();
    let text =
        format!("{} of the load asked for was sent, and {} arrived.", percent(offer.sent), percent(offer.arrived));
    Some(if offer.arrived >= MET && lost <= super::path_loss::NOTABLE {
        Opinion::new(Stand::Strong, format!("{} of the load asked for arrived.", percent(offer.arrived.min(1.0))))
            .then("Ask for a higher --rate, or for none, to find what the path carries.")
            .despite_steal()
    } else if offer.arrived >= NEARLY_MET && lost <= super::path_loss::NOTABLE {
        Opinion::new(Stand::Hint, text)
    } else {
        Opinion::new(Stand::Against, text)
    })
}
