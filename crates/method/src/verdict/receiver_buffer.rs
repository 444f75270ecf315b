//! The receiving host's buffers: datagrams found no room in the socket's though the program that reads it had time, or their
//! fragments none in the memory for reassembly.

use super::Opinion;
use super::facts::{FlowFacts, Work, percent, time};
use linerate_model::{LimitPlace, Support, message};

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
    if udp.refused_fragments > lost.max(NOTABLE) {
        return Some(of_reassembly(udp.refused_fragments));
    }
    let (end, share) = (&facts.receiver, percent(lost));
    if lost <= NOTABLE {
        return Some(Opinion::new(
            Support::Against,
            message!("receiver-buffer-little", "{share} of the datagrams found no room in the socket's buffer.", share),
        ));
    }
    let text = message!(
        "receiver-buffer-overflowed",
        "{share} of the datagrams found no room in the socket's buffer, which holds about {time} of what came, \
         while the receiving threads were occupied for {occupied} of the time.",
        share,
        time = time(udp.buffer_time),
        occupied = percent(end.occupied())
    );
    if facts.reader_is_late() {
        return Some(Opinion::new(
            Support::Against,
            text.and(message!("receiver-buffer-too-slow", "They are too slow, or kept from their core.")),
        ));
    }
    if facts.sender.is_throttled() {
        let text = text.and(message!(
            "receiver-buffer-throttled-sender",
            "But the sender, throttled by its CPU quota, sends in bursts."
        ));
        return Some(Opinion::new(Support::Hint, text));
    }
    let asked = facts.offer.is_some_and(|offer| offer.sent >= 0.99);
    let support = if lost > HEAVY || asked { Support::Strong } else { Support::For };
    Some(Opinion::new(support, text).counted().at(LimitPlace::ReceiverApplication).then(message!(
        "receiver-buffer-next",
        "A larger buffer (--receive-buffer, net.core.rmem_max) holds what comes in bursts."
    )))
}

/// Fragments that the receiving host refused.
fn of_reassembly(lost: f64) -> Opinion {
    let text = message!(
        "receiver-buffer-reassembly",
        "{share} of the datagrams were lost as the receiving host refused fragments of them: it had no memory \
         left for their reassembly.",
        share = percent(lost)
    );
    let support = if lost > HEAVY { Support::Strong } else { Support::For };
    Opinion::new(support, text).counted().at(LimitPlace::ReceiverHost).then(message!(
        "receiver-buffer-next-reassembly",
        "Datagrams that fit the MTU need no reassembly; more memory for it (net.ipv4.ipfrag_high_thresh, \
         net.ipv6.ip6frag_high_thresh) holds more fragments."
    ))
}
