//! A path MTU black hole: the path drops large packets without an ICMP message to their sender (RFC 2923 section 2.1).

use super::Opinion;
use super::facts::FlowFacts;
use linerate_model::{LimitPlace, MessageValue, Support, message};

/// The smallest MTU that IPv6 allows (RFC 8200 section 5). A path that drops smaller packets has another fault.
const MINIMUM_MTU: u32 = 1_280;

/// Returns `None` if anything arrived: large packets are then lost at times, and the rules of loss weigh it.
pub(super) fn weigh(facts: &FlowFacts) -> Option<Opinion> {
    let vanished = facts.vanished?;
    let text = message!(
        "mtu-black-hole-vanished",
        "None of the packets of {bytes} bytes arrived ({sent} were sent), while the small packets that opened the flows did.",
        bytes = MessageValue::number(f64::from(vanished.packet_bytes), 0),
        sent = MessageValue::number(vanished.sent as f64, 0)
    );
    if vanished.packet_bytes <= MINIMUM_MTU {
        let small = message!(
            "mtu-black-hole-small",
            "Every path carries packets of {minimum} bytes, so their size is not the cause.",
            minimum = MINIMUM_MTU
        );
        return Some(Opinion::new(Support::Against, text.and(small)));
    }
    let next = message!(
        "mtu-black-hole-next",
        "Measure with packets of at most {minimum} bytes (UDP: --size 1232; TCP: --mss 1208), or with --prove: if they arrive, set the MTU of \
         the hosts or clamp the MSS on the path, and let ICMP messages about packets that are too big pass.",
        minimum = MINIMUM_MTU
    );
    Some(Opinion::new(Support::For, text).at(LimitPlace::ForwardPath).then(next).despite_steal())
}
