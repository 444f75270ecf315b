//! Loss on the path: it takes its share of datagrams, and TCP takes it for congestion and slows down.
//!
//! How fast a loss-based TCP goes at a given loss and round-trip time is known (`facts/tcp.rs`). Where the result is what
//! the formulas allow, loss is the limit; where they allow far more, something else is.
//!
//! What they cannot tell is why segments are lost. A policer drops what exceeds its rate, TCP slows down until little does, and
//! the formulas hold for that too: at one load, a policer and a bad path look the same. So loss is never named with high
//! confidence for TCP until a load without bursts has shown that it stays (--prove).

use super::facts::{
    CopyFacts, FAR, FlowFacts, LIGHT_LOSS, LossPattern, NOTABLE_LOSS, OCCUPIED, Tcp, Waits, Work, bits, percent, time,
};
use super::{Opinion, support};
use linerate_model::{LimitPlace, Message, MessageValue, Support, message};

/// Loss is not the path's where the receiving host counted so much of it.
const MOST_COUNTED: f64 = 0.5;
/// With so much of the time of requests in its slow tail, the tail is what makes them slow.
const MOST_OF_TIME: f64 = 0.5;
const MUCH_OF_TIME: f64 = 0.25;

pub(super) fn weigh(facts: &FlowFacts) -> Option<Opinion> {
    let opinion = match facts.work {
        Work::Transact => of_requests(facts),
        Work::Udp => of_datagrams(facts).map(|opinion| opinion.unless_dropped_uncounted(facts)),
        Work::Tcp => {
            let tcp = facts.tcp.as_ref()?;
            let counted = facts.receiver.corrupted + facts.inbound.filtered;
            if tcp.retransmitted > 0.0 && counted >= MOST_COUNTED * tcp.retransmitted {
                let text = message!(
                    "path-loss-counted",
                    "{retransmitted} of the segments were retransmitted, and the receiving host counted {dropped} of \
                     the packets as damaged or dropped.",
                    retransmitted = percent(tcp.retransmitted),
                    dropped = percent(counted)
                );
                Some(Opinion::new(Support::Against, text))
            } else {
                of_tcp(tcp, facts.queue_on_path(), facts.pace_of_path().is_some(), facts.loss_pattern())
            }
        }
    };
    opinion.map(|opinion| opinion.at(LimitPlace::ForwardPath))
}

/// Loss under a copy, while data waited to be sent and the destination had none.
pub(super) fn of_copy(facts: &CopyFacts) -> Option<Opinion> {
    let tcp = facts.path()?;
    let opinion = of_tcp(tcp, tcp.queued(), false, None)?.at(LimitPlace::ForwardPath);
    let next = message!(
        "path-loss-next-copy",
        "Measure the path alone: `linerate stream --prove` between the same hosts tells a bad path from one that \
         is full."
    );
    let support = opinion.support.min(support(facts.held_on_path()));
    Some(Opinion { support, ..opinion }.despite_steal().then(next))
}

/// Requests of which some were lost, and which waited for time-outs.
fn of_requests(facts: &FlowFacts) -> Option<Opinion> {
    let Waits { repeated, in_tail } = facts.waits?;
    let text = message!(
        "path-loss-requests",
        "{lost} of the requests were lost or sent again, and those slower than the median took {tail} of the \
         total time.",
        lost = percent(repeated),
        tail = percent(in_tail)
    );
    let next = message!(
        "path-loss-next-requests",
        "Look for loss on the path (linerate stream --udp at a low --rate counts it): each lost request waits for \
         a time-out."
    );
    let support = match (repeated > NOTABLE_LOSS, in_tail) {
        (false, _) => Support::Against,
        (true, MOST_OF_TIME..) => Support::Strong,
        (true, MUCH_OF_TIME..) => Support::For,
        (true, _) => Support::Against,
    };
    // A queue that fills loses packets too, and a host without time answers late.
    let own_queue = facts.outbound.is_shaped() || facts.inbound.is_shaped() || facts.outbound.dropped > NOTABLE_LOSS;
    let queued = own_queue || facts.tcp.as_ref().is_some_and(|tcp| tcp.queued());
    let busy =
        [&facts.sender, &facts.receiver].iter().any(|end| end.is_throttled() || end.in_turn().occupied() >= OCCUPIED);
    let support = if queued || busy { support.min(Support::Hint) } else { support };
    Some(Opinion::new(support, text).then(next))
}

fn of_datagrams(facts: &FlowFacts) -> Option<Opinion> {
    let lost = facts.udp?.wire;
    let share = percent(lost);
    if lost <= NOTABLE_LOSS {
        return Some(Opinion::new(Support::Against, lost_between(share)));
    }
    let kept = facts.offer.is_some_and(|offer| offer.sent >= 0.99);
    let (support, text) = match facts.loss_pattern() {
        Some(LossPattern::ByChance) => (
            if kept { Support::For } else { Support::Hint },
            message!(
                "path-loss-by-chance",
                "{share} of the datagrams were lost between the two hosts, one by one as by chance.",
                share
            ),
        ),
        Some(LossPattern::Clustered) => (
            Support::Hint,
            message!(
                "path-loss-clustered",
                "{share} of the datagrams were lost between the two hosts, many at a time as where a queue \
                 overflows.",
                share
            ),
        ),
        Some(LossPattern::Excess) => (
            Support::Against,
            message!(
                "path-loss-excess",
                "{share} of the datagrams were lost between the two hosts, as where a rate is exceeded: the \
                 arrivals kept to a rate and did not vary by chance.",
                share
            ),
        ),
        None => (Support::Hint, lost_between(share)),
    };
    Some(Opinion::new(support, text).then(message!(
        "path-loss-next-datagrams",
        "Measure at half the --rate: if the loss stays, the path loses packets at any load; if it goes, the path \
         was full."
    )))
}

fn lost_between(share: MessageValue) -> Message {
    message!("path-loss-datagrams", "{share} of the datagrams were lost between the two hosts.", share)
}

fn of_tcp(tcp: &Tcp, queued: bool, full: bool, pattern: Option<LossPattern>) -> Option<Opinion> {
    let text = message!(
        "path-loss-retransmitted",
        "{share} of the segments were retransmitted.",
        share = percent(tcp.retransmitted)
    );
    if tcp.retransmitted <= 0.0 {
        return Some(Opinion::new(Support::Against, text));
    }
    if full {
        let full = message!(
            "path-loss-full",
            "But the arrivals kept to one rate whatever the congestion window was: the path was full."
        );
        return Some(Opinion::new(Support::Against, text.and(full)));
    }
    let next = match tcp.goes_by_loss() {
        true => {
            message!(
                "path-loss-next-tcp-bbr",
                "Measure the same rate over UDP (--prove): if the loss stays, the path is bad (errors, optics, \
                 duplex, radio), and --congestion bbr keeps its rate despite it; if it goes, the path was full."
            )
        }
        // It is what was measured with: no advice.
        false => {
            message!(
                "path-loss-next-tcp",
                "Measure the same rate over UDP (--prove): if the loss stays, the path is bad (errors, optics, \
                 duplex, radio); if it goes, the path was full."
            )
        }
    };
    if tcp.is_reordered() {
        let text = text.and(message!(
            "path-loss-reordered",
            "The receiver had already got {share} of these: segments overtook one another, and TCP took that for \
             loss.",
            share = percent(tcp.in_vain)
        ));
        let next = message!(
            "path-loss-next-reordered",
            "Measure over UDP (linerate stream --udp at a low --rate): it counts what overtakes and what is lost."
        );
        return Some(Opinion::new(Support::Hint, text).then(next));
    }
    let text = match tcp.stalled {
        0.0 => text,
        stalled => text.and(message!(
            "path-loss-stalled",
            "For {share} of the time TCP waited for a timeout.",
            share = percent(stalled)
        )),
    };
    if !tcp.goes_by_loss() {
        let text = text.and(message!(
            "path-loss-not-by-loss",
            "{congestion} does not take loss for congestion.",
            congestion = &tcp.congestion
        ));
        let support = match tcp.retransmitted {
            _ if tcp.is_heavy() || tcp.is_stalled() => Support::Hint,
            lost if lost <= NOTABLE_LOSS || queued => Support::Against,
            // A policer makes it lose more, and a path that is not full nothing else explains.
            lost if lost <= LIGHT_LOSS => Support::For,
            _ => Support::Hint,
        };
        return Some(Opinion::new(support, text).then(next));
    }
    let allowed = tcp.allowed(tcp.rtt);
    let text = text.and(message!(
        "path-loss-allowed",
        "At that loss and a round trip of {time} TCP ({congestion}) goes at about {rate}.",
        time = time(tcp.rtt),
        congestion = &tcp.congestion,
        rate = bits(allowed)
    ));
    if queued {
        // A queue that fills loses packets too, few if it is long: then the loss follows from the rate.
        let text = text.and(message!(
            "path-loss-queue",
            "But a queue was full: without it a round trip takes {time}.",
            time = time(tcp.min_rtt)
        ));
        let support = if tcp.retransmitted > NOTABLE_LOSS { Support::Hint } else { Support::Against };
        return Some(Opinion::new(support, text).then(next));
    }
    let support = match allowed / tcp.active() {
        _ if tcp.is_heavy() => Support::Hint,
        // A queue that overflows loses many at a time; errors come one by one.
        _ if pattern == Some(LossPattern::Clustered) || tcp.lost_few() => Support::Hint,
        ..FAR => Support::For,
        _ => Support::Against,
    };
    Some(Opinion::new(support, text).then(next))
}
