//! Latency: each request waits for the answer to the one before, so the rate is the number in flight over the time one takes
//! (Little's law).

use super::Opinion;
use super::facts::{
    Calls, ClosedLoop, FlowFacts, MANY_ROUND_TRIPS, MOSTLY_IN_SERVER, NEARLY_OCCUPIED, NOTABLE_LOSS, TcpCourse, Work,
    percent, time,
};
use super::wire::requests_fill_it;
use linerate_model::{MessageValue, Support, message};

/// With so much of the time in the slow tail, a request takes what the loss costs.
const TAIL: f64 = 0.25;
/// Where the path's shortest round trip and the server leave more of a call's time open, a queue may have taken it.
const EXPLAINED: f64 = 0.9;

/// Fewer requests in flight than this are one after the other.
const ONE_AFTER_THE_OTHER: f64 = 1.5;
/// A request and its answer of at most this many bytes fit into a packet of Ethernet each.
const ONE_PACKET: u64 = 1_472;

/// Returns whether the requests leave the path empty: one small request at a time.
fn is_light(facts: &FlowFacts, closed: ClosedLoop) -> bool {
    closed.outstanding < ONE_AFTER_THE_OTHER && facts.message_bytes.max(facts.response_bytes) <= ONE_PACKET
}

/// Returns whether TCP's shortest round trip is most of what a request took.
fn is_mostly_path(facts: &FlowFacts, closed: ClosedLoop) -> bool {
    facts.tcp.as_ref().is_some_and(|tcp| tcp.min_rtt >= 0.5 * closed.latency)
}

pub(super) fn weigh(facts: &FlowFacts) -> Option<Opinion> {
    if facts.work != Work::Transact {
        return None;
    }
    let closed = facts.closed_loop?;
    let text = match MessageValue::number(closed.outstanding, 1) {
        one if one.to_string() == "1.0" => {
            message!("latency-one-request", "1 request in flight at a time took {time}.", time = time(closed.latency))
        }
        several => message!(
            "latency-requests",
            "{several} requests in flight at a time took {time} each.",
            several,
            time = time(closed.latency)
        ),
    };
    if facts.waits.is_some_and(|waits| waits.repeated > NOTABLE_LOSS && waits.in_tail >= TAIL) {
        let text = text.and(message!("latency-lost", "Much of that went to requests that were lost or sent again."));
        return Some(Opinion::new(Support::Hint, text));
    }
    let waits = facts.tcp.as_ref().is_some_and(|tcp| tcp.queued() || tcp.holds_up(closed.latency));
    let at_interface = requests_fill_it(facts) || facts.outbound.is_shaped() || facts.inbound.is_shaped();
    if waits
        || at_interface
        || facts.tcp_course().is_some_and(TcpCourse::queue_stands)
        || facts.requests_wait_to_be_sent()
    {
        return Some(Opinion::new(
            Support::Hint,
            text.and(message!("latency-queue", "Part of that was spent in a queue on the path.")),
        ));
    }
    if facts.sender.is_throttled() || facts.receiver.is_throttled() {
        return Some(Opinion::new(
            Support::Against,
            text.and(message!("latency-quota", "A host was stopped by its CPU quota meanwhile.")),
        ));
    }
    if let Some(calls) = &facts.calls {
        let elsewhere = match (calls.in_server(), calls.round_trip) {
            (Some(share), _) => share >= MOSTLY_IN_SERVER,
            (None, Some(round_trip)) => calls.response >= MANY_ROUND_TRIPS * round_trip,
            (None, None) => return Some(Opinion::new(Support::Hint, text)),
        };
        let waits = calls.overlap() && (facts.sender.is_kept_waiting() || facts.receiver.is_kept_waiting());
        if waits {
            return Some(Opinion::new(
                Support::Hint,
                text.and(message!("latency-core", "Part of that was spent waiting for a core.")),
            ));
        }
        if elsewhere {
            return Some(Opinion::new(
                Support::Against,
                text.and(message!("latency-elsewhere", "Most of that is not the path's time.")),
            ));
        }
    }
    // What the hypervisor took, it may have taken while they were at work.
    let occupied = facts.sender.known_busy().max(facts.receiver.known_busy()) + facts.steal;
    let next = message!(
        "latency-next",
        "More requests at a time (--outstanding, --flows) fill the path; --busy-poll shortens each."
    );
    // Where the hosts are occupied all the time, it is their time that a request takes. Of hosts that poll it is not known whether they
    // are, unless the path alone explains what a request takes.
    let polls = facts.sender.polls || facts.receiver.polls;
    let is_path = facts.tcp.as_ref().is_some_and(|tcp| tcp.min_rtt >= EXPLAINED * closed.latency);
    if occupied >= NEARLY_OCCUPIED || (polls && !is_path) {
        return Some(Opinion::new(Support::Hint, text).then(next));
    }
    let has_round_trip = facts.calls.as_ref().is_some_and(|calls| calls.round_trip.is_some());
    Some(match facts.calls.as_ref().and_then(Calls::explained) {
        // The round trip of the empty path is not known of requests over UDP, and may explain little.
        None if !has_round_trip && !is_light(facts, closed) && !is_mostly_path(facts, closed) => {
            let text = text.and(message!(
                "latency-several-unknown",
                "Whether they waited in a queue or for the path alone is not known: measure one small request at a time \
                 (--outstanding 1)."
            ));
            Opinion::new(Support::For, text).then(next).despite_steal()
        }
        Some(share) if share < EXPLAINED => {
            let text = text.and(message!(
                "latency-explained",
                "The shortest round trip and the server explain {share} of that.",
                share = percent(share)
            ));
            Opinion::new(Support::For, text).then(next).despite_steal()
        }
        _ => Opinion::new(Support::Strong, text).then(next).despite_steal(),
    })
}
