//! The wire: a link of known speed that is full.

use super::facts::{Work, percent};
use super::{Facts, Opinion};
use linerate_model::{PathLimit, Stand};

/// A line this full has no room that a better host could use: what is left is within the error of the clock and of the
/// receiver's window.
const FULL: f64 = 0.98;
/// A line this full leaves little to be gained elsewhere.
const NEARLY_FULL: f64 = 0.95;

pub(super) fn weigh(facts: &Facts) -> Option<Opinion> {
    if facts.work == Work::Transact {
        return None;
    }
    let Some(line) = &facts.line else {
        return Some(Opinion::new(
            Stand::Unknown,
            "The speed of no link is known, so a full wire cannot be told from a slow host (tell the agents with \
             --link-speed).",
        ));
    };
    Some(match line.share {
        FULL.. => Opinion::new(Stand::Strong, carried(facts, line))
            .then("A faster link, or larger messages if they are small, carries more."),
        NEARLY_FULL.. => Opinion::new(Stand::Hint, carried(facts, line)),
        _ => Opinion::new(Stand::Against, format!("{} of what the wire can carry was used.", percent(line.share))),
    })
}

fn carried(facts: &Facts, line: &PathLimit) -> String {
    // TCP fills its segments whatever it is handed.
    let carriers = match facts.work {
        Work::Udp => format!("datagrams of {} bytes", facts.message_bytes),
        Work::Tcp | Work::Transact => String::from("full segments"),
    };
    format!(
        "The receiver got {:.1} % of the {} payload that a line of {} can carry in {carriers} at MTU {}.",
        line.share * 100.0,
        line.payload_bps,
        line.line_bps,
        line.mtu
    )
}
