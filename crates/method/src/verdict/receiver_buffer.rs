//! The receiving socket's buffer: datagrams found no room though the program that reads it had time.

use super::Opinion;
use super::facts::{FlowFacts, Work, percent, time};
use linerate_model::{LimitPlace, Support};

/// Losing less than this in a buffer is a stumble now and then.
const NOTABLE: f64 = 0.0005;
/// Losing this much there is what holds the result down.
const HEAVY: f64 = 0.02;

pub(super) fn weigh(facts: &FlowFacts) -> Option<Opinion> {
    if facts.work != Work::Udp {
        return None;
    }
    let udp = facts.udp?;
    let lost = udp.socket_buffer;
    let (end, share) = (&facts.receiver, percent(lost));
    if lost <= NOTABLE {
        return Some(Opinion::new(
            Support::Against,
            format!("{share} of the datagrams found no room in the socket's buffer."),
        ));
    }
    let text = format!(
        "{share} of the datagrams found no room in the socket's buffer, which holds about {} of what came, while the receiving \
         threads were occupied for {} of the time.",
        time(udp.buffer_time),
        percent(end.occupied())
    );
    if facts.reader_is_late() {
        return Some(Opinion::new(Support::Against, format!("{text} They are too slow, or kept from their core.")));
    }
    if facts.sender.is_throttled() {
        let text = format!("{text} But the sender, let run only now and then, sends all at once when it can.");
        return Some(Opinion::new(Support::Hint, text));
    }
    let asked = facts.offer.is_some_and(|offer| offer.sent >= 0.99);
    let support = if lost > HEAVY || asked { Support::Strong } else { Support::For };
    Some(
        Opinion::new(support, text)
            .at(LimitPlace::ReceiverApplication)
            .then("A larger buffer (--receive-buffer, net.core.rmem_max) holds what comes in bursts."),
    )
}
