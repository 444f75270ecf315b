//! The receiving socket's buffer: datagrams found no room though the program that reads it had time.

use super::facts::{NEARLY_OCCUPIED, Work, percent, time};
use super::{Facts, Opinion};
use linerate_model::Stand;

/// Losing less than this in a buffer is a stumble now and then.
const NOTABLE: f64 = 0.0005;
/// A buffer that is full after less than this asks more of a program than any system promises it.
const TOO_SHORT: f64 = 0.000_2;
/// Losing this much there is what holds the result down.
const HEAVY: f64 = 0.02;

pub(super) fn weigh(facts: &Facts) -> Option<Opinion> {
    if facts.work != Work::Udp {
        return None;
    }
    let udp = facts.udp?;
    let lost = udp.socket_buffer;
    let (end, share) = (&facts.receiver, percent(lost));
    if lost <= NOTABLE {
        return Some(Opinion::new(
            Stand::Against,
            format!("{share} of the datagrams found no room in the socket's buffer."),
        ));
    }
    let text = format!(
        "{share} of the datagrams found no room in the socket's buffer, which holds about {} of what came, while the receiving \
         threads were occupied for {} of the time.",
        time(udp.buffer_time),
        percent(end.occupied())
    );
    if blames_the_reader(facts) {
        return Some(Opinion::new(
            Stand::Against,
            format!("{text} It is they who are too slow, or kept from their core."),
        ));
    }
    if facts.sender.is_throttled() {
        let text = format!("{text} But the sender, let run only now and then, sends all at once when it can.");
        return Some(Opinion::new(Stand::Hint, text));
    }
    let asked = facts.offer.is_some_and(|offer| offer.sent >= 0.99);
    let stand = if lost > HEAVY || asked { Stand::Strong } else { Stand::For };
    Some(
        Opinion::new(stand, text)
            .then("A larger buffer (--receive-buffer, net.core.rmem_max) holds what comes in bursts."),
    )
}

/// The threads that read had no time, or were kept from their core for longer than any buffer could be asked to hold.
pub(super) fn blames_the_reader(facts: &Facts) -> bool {
    let end = &facts.receiver;
    let kept = end.is_kept_waiting() && facts.udp.is_some_and(|udp| udp.buffer_time >= TOO_SHORT);
    end.occupied() >= NEARLY_OCCUPIED || kept || end.is_throttled()
}
