//! The window: TCP had data to send and might not have more in flight.

use super::facts::{CopyFacts, End, FILLED, FlowFacts, NEARLY_OCCUPIED, Work, bits, percent, time};
use super::{Opinion, support};
use linerate_model::Support;

/// Held back for most of the time with data to send.
const MOSTLY: f64 = 0.5;
const OFTEN: f64 = 0.2;

pub(super) fn weigh(facts: &FlowFacts) -> Option<Opinion> {
    if facts.work != Work::Tcp {
        return None;
    }
    let tcp = facts.tcp.as_ref()?;
    let (by_window, by_buffer) = (tcp.window_limited, tcp.buffer_limited);
    let text = held_back(by_window, by_buffer);
    let most = by_window.max(by_buffer);
    let met = facts.offer.is_some_and(|offer| offer.is_nearly_met());
    let (full, empties) = (tcp.fills_window() && !met, tcp.fills_send_buffer() && !met);
    if most < OFTEN && !full && !empties {
        return Some(Opinion::new(Support::Against, text));
    }
    // A reader or writer without time leaves the same trace.
    let slow = |end: &End| end.occupied() >= NEARLY_OCCUPIED || end.is_throttled();
    if slow(&facts.receiver) || slow(&facts.sender) {
        return Some(Opinion::new(Support::Against, format!("{text} But a host had no time to read or write faster.")));
    }
    let flight = tcp.flight();
    let of_receiver = full || by_window >= by_buffer && !empties;
    // What the window or buffer allows is in flight, and congestion control would let more.
    let filled = match of_receiver {
        true => flight >= FILLED * tcp.peer_window,
        false => flight <= FILLED * tcp.congestion_window,
    };
    let text = format!(
        "{text} At {} and a round trip of {} about {flight:.0} bytes were in flight; the receiver's window was {:.0}, the congestion window {:.0}.",
        bits(tcp.flow_bps),
        time(tcp.rtt),
        tcp.peer_window,
        tcp.congestion_window
    );
    let support = match most {
        _ if full => Support::Strong,
        MOSTLY.. => Support::Strong,
        // What is lost is kept in the buffers until it has been retransmitted.
        OFTEN.. if filled && !facts.loses() => Support::Strong,
        _ => Support::For,
    };
    Some(Opinion::new(support, text).despite_steal_if(facts.idle_despite_steal()).then(if of_receiver {
        "A larger receive buffer (--receive-buffer, or none so that the system grows it), or more flows, fills the path."
    } else {
        "A larger send buffer (--send-buffer, or none so that the system grows it), or more flows, fills the path."
    }))
}

/// The window of a copy's connections, while data waited to be sent and the destination had none.
pub(super) fn of_copy(facts: &CopyFacts) -> Option<Opinion> {
    let tcp = facts.path()?;
    let text = held_back(tcp.window_limited, tcp.buffer_limited);
    let most = match tcp.window_limited.max(tcp.buffer_limited) {
        _ if tcp.fills_window() => Support::Strong,
        MOSTLY.. => Support::Strong,
        OFTEN.. => Support::For,
        _ => Support::Against,
    };
    let next = "More lanes (--lanes), or larger buffers at the system (net.ipv4.tcp_rmem, tcp_wmem), fill the path.";
    Some(Opinion::new(support(facts.held_on_path()).min(most), text).despite_steal().then(next))
}

fn held_back(by_window: f64, by_buffer: f64) -> String {
    format!(
        "The receiver's window held TCP back for {} of the time with data to send, its own send buffer for {}.",
        percent(by_window),
        percent(by_buffer)
    )
}
