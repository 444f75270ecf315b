//! The receiver's processor: its threads always had work, or its kernel dropped what it had no time for.

use super::facts::{Work, percent};
use super::sender_cpu::{of_end, of_requests, of_stages, of_stream};
use super::{CopyFacts, Facts, Opinion, receiver_buffer};
use linerate_model::{CopyStage, Stand};

/// Drops by the NIC or the input queue beyond this are more than a burst now and then. (TCP takes a quarter of the rate away
/// at a loss of this order over any but the shortest path.)
const DROPPED: f64 = 0.0005;
/// A core this busy has no time left.
const CORE_BUSY: f64 = 0.9;

pub(super) fn weigh(facts: &Facts) -> Option<Opinion> {
    // Where calls are answered, the receiver is the server, whatever it has too little of.
    facts.calls.is_none().then(|| of_host(facts))
}

/// The processor of a copy's destination.
pub(super) fn of_copy(facts: &CopyFacts) -> Option<Opinion> {
    const STAGES: [CopyStage; 5] =
        [CopyStage::Receive, CopyStage::Verify, CopyStage::Create, CopyStage::Write, CopyStage::Sync];
    let next = "A faster core, more lanes on more cores (--lanes), or no verification (--no-verify) takes more.";
    of_stages(facts, &facts.destination, &STAGES, "destination's").map(|opinion| opinion.then(next))
}

/// What the receiving host's processor says.
pub(super) fn of_host(facts: &Facts) -> Opinion {
    let end = &facts.receiver;
    let own = match facts.work {
        Work::Transact => of_end(&of_requests(facts, end), "answering"),
        Work::Tcp => of_stream(facts, end, "receiving"),
        Work::Udp => of_end(end, "receiving"),
    };
    let next =
        "A faster core, larger messages, or receiving spread over more cores (--flows, the NIC's queues) takes more.";
    if own.stand < Stand::Strong
        && let Some(thread) = facts.late_kernel_thread()
    {
        let text = format!(
            "The kernel's thread that receives ({}) was on a core for {} of the time and waited for one for {}.",
            thread.name,
            percent(thread.busy),
            percent(thread.waited)
        );
        return Opinion::new(Stand::Strong, text).then(next);
    }
    let overflowed = facts.udp.map_or(0.0, |udp| udp.socket_buffer);
    if own.stand < Stand::Strong && overflowed > DROPPED && receiver_buffer::blames_the_reader(facts) {
        let text = format!(
            "{} Meanwhile {} of the datagrams found no room in the socket's buffer.",
            own.text,
            percent(overflowed)
        );
        return Opinion::new(Stand::Strong, text).then(next);
    }
    let dropped = facts.udp.map_or(end.dropped, |udp| udp.receiver_queue);
    if own.stand < Stand::Strong && dropped > DROPPED {
        let text = format!(
            "The receiving host dropped {} of the packets in its NIC or input queue; its busiest core was busy for {} of the \
             time.",
            percent(dropped),
            percent(end.busiest_core)
        );
        let stand = if end.busiest_core >= CORE_BUSY { Stand::Strong } else { Stand::For };
        return Opinion::new(stand, text).then(next);
    }
    own.then(next)
}
