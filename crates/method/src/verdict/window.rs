//! The receiver's window: TCP had data to send, and the receiver did not allow more in flight.

use super::facts::{CopyFacts, End, FILLED, FlowFacts, NEARLY_OCCUPIED, Tcp, Work, bits, percent, time};
use super::{Opinion, support};
use linerate_model::{LimitPlace, Message, MessageValue, Support, message};

/// Held back for most of the time with data to send.
const MOSTLY: f64 = 0.5;
const OFTEN: f64 = 0.2;
/// Of a window that holds TCP back now and then so much is used on average.
const USED: f64 = 0.4;

pub(super) fn weigh(facts: &FlowFacts) -> Option<Opinion> {
    if facts.work != Work::Tcp {
        return None;
    }
    let tcp = facts.tcp.as_ref()?;
    let text = held_back(tcp);
    let full = tcp.fills_window() && !facts.offer.is_some_and(|offer| offer.is_nearly_met());
    if tcp.window_limited < OFTEN && !full {
        return Some(Opinion::new(Support::Against, text));
    }
    // A reader without time leaves the same trace.
    let slow = |end: &End| end.occupied() >= NEARLY_OCCUPIED || end.is_throttled();
    if slow(&facts.receiver) || slow(&facts.sender) {
        return Some(Opinion::new(
            Support::Against,
            text.and(message!("window-busy-host", "But a host had no time to read or write faster.")),
        ));
    }
    let flight = tcp.flight();
    let text = text.and(message!(
        "window-in-flight",
        "At {rate} and a round trip of {time} about {flight} bytes were in flight; the receiver's window was \
         {window}, the congestion window {congestion}.",
        rate = bits(tcp.flow_bps),
        time = time(tcp.rtt),
        flight = MessageValue::number(flight, 0),
        window = MessageValue::number(tcp.peer_window, 0),
        congestion = MessageValue::number(tcp.congestion_window, 0)
    ));
    let support = match tcp.window_limited {
        _ if full => Support::Strong,
        // While the system still enlarges the receiver's buffer, as at the start, that grows with the rate.
        _ if facts.tcp_course().is_some_and(|course| course.peer_window_rises) => Support::Hint,
        MOSTLY.. => Support::Strong,
        // What is lost is kept in the buffers until it has been retransmitted.
        OFTEN.. if flight >= FILLED * tcp.peer_window && !facts.loses() => Support::Strong,
        // What is allowed now is far more than what is on the way: it held TCP back before it grew.
        _ if flight < USED * tcp.peer_window => Support::Hint,
        _ => Support::For,
    };
    let used = (flight / tcp.peer_window.max(1.0)).min(1.0);
    let next = message!(
        "window-next",
        "A larger receive buffer (--receive-buffer, or none so that the system grows it), or more flows, fills \
         the path."
    );
    let opinion = Opinion::new(support, text).at(LimitPlace::ReceiverApplication).used(used).then(next);
    Some(opinion.despite_steal_if(facts.idle_despite_steal()))
}

/// The window of a copy's connections, while data waited to be sent and the destination had none.
pub(super) fn of_copy(facts: &CopyFacts) -> Option<Opinion> {
    let tcp = facts.path()?;
    let most = match tcp.window_limited {
        _ if tcp.fills_window() => Support::Strong,
        MOSTLY.. => Support::Strong,
        OFTEN.. => Support::For,
        _ => Support::Against,
    };
    let next = message!(
        "window-next-copy",
        "More lanes (--lanes), or a larger receive buffer at the system (net.ipv4.tcp_rmem), fill the path."
    );
    let opinion =
        Opinion::new(support(facts.held_on_path()).min(most), held_back(tcp)).at(LimitPlace::ReceiverApplication);
    Some(opinion.despite_steal().then(next))
}

fn held_back(tcp: &Tcp) -> Message {
    message!(
        "window-held-back",
        "The receiver's window held TCP back for {share} of the time with data to send.",
        share = percent(tcp.window_limited)
    )
}
