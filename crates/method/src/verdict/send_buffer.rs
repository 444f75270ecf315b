//! The sender's buffer: it holds what is in flight until that is acknowledged, and had no room for more.

use super::facts::{CopyFacts, FlowFacts, NEARLY_OCCUPIED, Tcp, TcpCourse, Work, bits, percent, time};
use super::{Opinion, support};
use linerate_model::{LimitPlace, Message, MessageValue, Support, message};

/// Held back for most of the time with data to send.
const MOSTLY: f64 = 0.5;
const OFTEN: f64 = 0.2;
/// A buffer from which nearly all is in flight: unsent is less than this share of it. Of a path that is full Linux keeps about as much
/// unsent as in flight, as it grows the buffer to twice the congestion window.
const EMPTIED: f64 = 0.4;
/// So little in flight may be one message.
const SEGMENTS: f64 = 4.0;

fn advice() -> Message {
    message!(
        "send-buffer-next",
        "A larger send buffer (--send-buffer, or none so that the system grows it up to net.ipv4.tcp_wmem), or \
         more flows, fills the path."
    )
}

pub(super) fn weigh(facts: &FlowFacts) -> Option<Opinion> {
    if facts.work != Work::Tcp {
        return None;
    }
    let tcp = facts.tcp.as_ref()?;
    let text = held_back(tcp);
    // A sender that has no time, or sends at a set rate, leaves its buffer empty too.
    let sender = &facts.sender;
    let busy = sender.occupied() >= NEARLY_OCCUPIED || sender.is_kept_waiting() || sender.is_throttled();
    if facts.offer.is_some() || busy {
        let text = text
            .and(message!("send-buffer-not-full", "That does not show a full buffer: the program writes no faster."));
        return Some(Opinion::new(Support::Against, text));
    }
    let emptied = facts.tcp_course().filter(|course| empties(tcp, course));
    let Some(course) = emptied else {
        let support = match tcp.buffer_limited {
            // What waits in a queue, there or back, fills the buffer.
            OFTEN.. if tcp.queued() => Support::Hint,
            MOSTLY.. => Support::Strong,
            OFTEN.. => Support::For,
            _ => Support::Against,
        };
        return Some(Opinion::new(support, text).at(LimitPlace::SenderApplication).then(advice()));
    };
    let text = text.and(message!(
        "send-buffer-in-flight",
        "At {rate} and a round trip of {time} about {flight} bytes of a flow were in flight, and only {unsent} \
         waited to be sent: the program was kept from writing more.",
        rate = bits(tcp.flow_bps),
        time = time(tcp.rtt),
        flight = MessageValue::number(tcp.flight(), 0),
        unsent = MessageValue::number(course.unsent, 0)
    ));
    // What is lost or overtaken keeps all that was sent behind it in the buffer, so what is in flight does not tell. The kernel counts
    // the time.
    let support = match tcp.buffer_limited {
        _ if tcp.retransmits == 0.0 && tcp.reorderings == 0 => Support::Strong,
        OFTEN.. => Support::For,
        _ if !facts.loses() && tcp.reorderings == 0 => Support::For,
        _ => Support::Hint,
    };
    let opinion = Opinion::new(support, text).at(LimitPlace::SenderApplication).used(1.0).then(advice());
    Some(opinion.despite_steal_if(facts.idle_despite_steal()))
}

/// Nearly all that the buffer held was in flight.
fn empties(tcp: &Tcp, course: &TcpCourse) -> bool {
    let flight = tcp.flight();
    let segment = tcp.segment_bits / 8.0;
    let queue = tcp.queued() || course.queue_stands();
    flight >= SEGMENTS * segment && course.unsent <= EMPTIED * flight && !tcp.fills_window() && !queue
}

/// The send buffers of a copy's connections, while data waited to be sent and the destination had none.
pub(super) fn of_copy(facts: &CopyFacts) -> Option<Opinion> {
    let tcp = facts.path()?;
    let most = match tcp.buffer_limited {
        MOSTLY.. => Support::Strong,
        OFTEN.. => Support::For,
        _ => Support::Against,
    };
    let next = message!(
        "send-buffer-next-copy",
        "More lanes (--lanes), or a larger send buffer at the system (net.ipv4.tcp_wmem), fill the path."
    );
    let opinion =
        Opinion::new(support(facts.held_on_path()).min(most), held_back(tcp)).at(LimitPlace::SenderApplication);
    Some(opinion.despite_steal().then(next))
}

fn held_back(tcp: &Tcp) -> Message {
    message!(
        "send-buffer-held-back",
        "The send buffer held TCP back for {share} of the time with data to send.",
        share = percent(tcp.buffer_limited)
    )
}
