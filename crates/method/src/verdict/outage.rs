//! An outage: the path carried nothing for a part of the window.

use super::Opinion;
use super::facts::{CopyFacts, FlowFacts, percent};
use linerate_model::{LimitPlace, Support, message};

/// An outage of this share of the window is what held the result back most.
const LARGE: f64 = 0.05;
/// A smaller one than this is a caveat only.
const NOTABLE: f64 = 0.01;

pub(super) fn weigh(facts: &FlowFacts) -> Option<Opinion> {
    of(facts.outage)
}

pub(super) fn of_copy(facts: &CopyFacts) -> Option<Opinion> {
    of(facts.outage)
}

/// Weighs outages that took `share` of the window.
fn of(share: f64) -> Option<Opinion> {
    if share <= 0.0 {
        return None;
    }
    let support = match share {
        LARGE.. => Support::Strong,
        NOTABLE.. => Support::For,
        _ => Support::Hint,
    };
    let text = message!(
        "outage-share",
        "The path carried nothing for {share} of the window, although it was sent to.",
        share = percent(share)
    );
    let next = message!(
        "outage-next",
        "Look for what was cut or switched over at that moment (link flaps, failover, a firewall's rules), and \
         measure again: without an outage the result is that of the rest of the window."
    );
    Some(Opinion::new(support, text).at(LimitPlace::ForwardPath).then(next).despite_steal())
}
