//! Latency: each request waits for the answer to the one before, so the rate is the number under way over the time one takes
//! (Little's law).

use super::facts::{NEARLY_OCCUPIED, Work, time};
use super::{Facts, Opinion};
use linerate_model::Stand;

pub(super) fn weigh(facts: &Facts) -> Option<Opinion> {
    if facts.work != Work::Transact {
        return None;
    }
    let closed = facts.closed_loop?;
    let text = format!("{:.1} requests under way at a time took {} each.", closed.outstanding, time(closed.latency));
    let occupied = facts.sender.busy.max(facts.receiver.busy);
    // Where the hosts are occupied all the time, it is their time that a request takes.
    let stand = if occupied >= NEARLY_OCCUPIED { Stand::Hint } else { Stand::Strong };
    Some(
        Opinion::new(stand, text)
            .then("More requests at a time (--outstanding, --flows) fill the path; --busy-poll shortens each."),
    )
}
