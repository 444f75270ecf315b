//! Corruption: the path changed payload, the receiving host's checksums failed, and it dropped the packets.

use super::Opinion;
use super::facts::{FlowFacts, NOTABLE_LOSS, percent};
use linerate_model::{LimitPlace, Message, Support, message};

/// Where so much of all that is lost failed its checksum, nothing else need be looked for.
const MOST: f64 = 0.5;

fn advice() -> Message {
    message!(
        "corruption-next",
        "Look for a bad cable, optic or memory on the path: each interface that forwards counts CRC errors, \
         unless a device changes packets and computes their checksums anew."
    )
}

pub(super) fn weigh(facts: &FlowFacts) -> Option<Opinion> {
    let (corrupted, lost) = match (facts.udp, &facts.tcp) {
        (Some(udp), _) => (udp.corrupted, facts.lost_behind_sender()),
        (None, Some(tcp)) => (facts.receiver.corrupted, tcp.retransmitted),
        (None, None) => return None,
    };
    let text = message!(
        "corruption-failed",
        "{share} of what arrived failed its checksum at the receiving host.",
        share = percent(corrupted)
    );
    if corrupted <= NOTABLE_LOSS {
        return Some(Opinion::new(Support::Against, text));
    }
    let support = if corrupted >= MOST * lost { Support::Strong } else { Support::For };
    Some(Opinion::new(support, text).at(LimitPlace::ForwardPath).then(advice()).despite_steal().counted())
}
