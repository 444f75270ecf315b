//! The wire: a link of known speed that is full.

use super::Opinion;
use super::facts::{CopyFacts, FlowFacts, MOSTLY_FULL, Work, percent};
use linerate_model::{LimitPlace, Message, MessageValue, PathLimit, Support, message};

/// A line this full has no room that a better host could use: what is left is within the error of the clock and of the
/// receiver's window.
const FULL: f64 = 0.98;
/// A line this full leaves little to be gained elsewhere.
const NEARLY_FULL: f64 = 0.95;
/// Share of a half-duplex line that collisions of two busy ports leave: TCP and its acknowledgements carried 85 % in the
/// lab (`--device hub,collisions=true`).
const COLLISIONS: f64 = 0.7;
/// Less traffic of others has no part in filling a line: a line counts as full without it.
const SHARED: f64 = 0.02;
/// Loss after the sender's full line that is within the error of its share.
const LITTLE_LOST: f64 = 0.02;
/// Loss after the sender's full line that limits the result as much as the line does.
const MUCH_LOST: f64 = 0.05;

pub(super) fn weigh(facts: &FlowFacts) -> Option<Opinion> {
    // What requests carry is not known by their size alone: the interfaces have counted it.
    if facts.work == Work::Transact && facts.line.is_none() {
        return of_requests(facts);
    }
    of_flows(facts).map(|opinion| opinion.at(place(facts)))
}

/// The line under requests and answers, in the direction in which it is fullest.
fn of_requests(facts: &FlowFacts) -> Option<Opinion> {
    let line = facts.fullest_line()?;
    let text = message!(
        "wire-requests",
        "Requests, answers and what they are acknowledged by filled {share} of the line at interface {interface} of the {whose} host.",
        share = percent(line.share),
        interface = &line.interface.name,
        whose = line.whose
    );
    let support = match line.share {
        FULL.. => Support::Strong,
        NEARLY_FULL.. => Support::For,
        _ => Support::Against,
    };
    let opinion = Opinion::new(support, text).used(line.share.min(1.0)).then(advice()).despite_steal().at(line.place);
    Some(if support == Support::Strong { opinion.counted() } else { opinion })
}

/// Returns whether requests and answers filled, or nearly filled, a line of declared speed.
pub(super) fn requests_fill_it(facts: &FlowFacts) -> bool {
    facts.fullest_line().is_some_and(|line| line.share >= NEARLY_FULL)
}

/// Place of the line: the sender's own interface if that is full or its queue stands, else a link further on.
fn place(facts: &FlowFacts) -> LimitPlace {
    let is_own = facts.outbound.is_shaped() || facts.outbound.line_share.is_some_and(|share| share >= NEARLY_FULL);
    if is_own { LimitPlace::SenderQueue } else { LimitPlace::ForwardPath }
}

fn of_flows(facts: &FlowFacts) -> Option<Opinion> {
    if let Some(line) = &facts.declared_too_slow {
        let text = message!(
            "wire-declared-wrong",
            "The result is {share} of what a line of {line} can carry: the declared speed of an interface is wrong.",
            share = percent(line.share),
            line = line.line_bps
        );
        return Some(Opinion::new(Support::Against, text));
    }
    let Some(line) = &facts.line else {
        return Some(Opinion::new(
            Support::Unknown,
            message!(
                "wire-unknown",
                "The speed of no link is known, so a full wire cannot be told from a slow host (tell the agents \
                 with --link-speed)."
            ),
        ));
    };
    // Frames that were counted are no less than what the line carried; between two calls there may be a gap.
    // Whatever others sent fills the line too.
    let others = facts.outbound.others.max(facts.inbound.others);
    if facts.work != Work::Transact && others >= SHARED && line.share < FULL && line.share / (1.0 - others) >= FULL {
        let text = carried(facts, line).and(message!(
            "wire-other-traffic",
            "Other traffic was {share} of what the interface carried, so the line was full.",
            share = percent(others)
        ));
        let next = message!("wire-next-shared", "Measure while nothing else uses the line, or use a faster link.");
        return Some(Opinion::new(Support::Strong, text).used(1.0).then(next).despite_steal().counted());
    }
    let line_share = facts.outbound.line_share.filter(|share| *share >= FULL && facts.work != Work::Transact);
    if let Some(share) = line_share.filter(|_| line.share < FULL) {
        return Some(of_full_interface(facts, line, share));
    }
    let full = if facts.calls.as_ref().is_some_and(|calls| calls.nfs) { NEARLY_FULL } else { FULL };
    Some(match line.share {
        share if share >= full => Opinion::new(Support::Strong, carried(facts, line))
            .used(share.min(1.0))
            .then(advice())
            .despite_steal()
            .counted(),
        _ if facts.queue_drains_at_line_speed() => {
            let text = carried(facts, line).and(message!(
                "wire-queue",
                "Packets stood in the queue of interface {interface} for {share} of the time, and left at the \
                 line's speed.",
                interface = &facts.outbound.name,
                share = percent(facts.outbound.waiting)
            ));
            Opinion::new(Support::For, text).used(line.share)
        }
        share if collisions_may_fill(facts) => {
            let text = carried(facts, line).and(message!(
                "wire-collisions",
                "A queue stood on the path: collisions may have taken the rest of the line."
            ));
            let next = message!(
                "wire-next-collisions",
                "Look at the collision counters of the ports (`ip -s -s link`, SNMP EtherLike-MIB), or use a switch."
            );
            Opinion::new(Support::For, text).used(share).then(next)
        }
        NEARLY_FULL.. => Opinion::new(Support::Hint, carried(facts, line)),
        _ => Opinion::new(
            Support::Against,
            message!("wire-used", "{share} of what the wire can carry was used.", share = percent(line.share)),
        ),
    })
}

/// Returns whether a half-duplex line may be full although not all of it carried frames: collisions take a part.
pub(super) fn collisions_may_fill(facts: &FlowFacts) -> bool {
    let shared = facts.line.as_ref().is_some_and(|line| line.half_duplex && line.share >= COLLISIONS);
    shared && facts.work == Work::Tcp && facts.queue_on_path()
}

fn advice() -> Message {
    message!("wire-next", "A faster link, or larger messages if they are small, carries more.")
}

/// The sender's line is full of frames that the receiver's payload does not show: retransmits, and datagrams lost later.
fn of_full_interface(facts: &FlowFacts, line: &PathLimit, share: f64) -> Opinion {
    let lost = facts.lost_behind_sender();
    let text = carried(facts, line).and(message!(
        "wire-interface-full",
        "Frames filled {share} of the line of the sending host's interface {interface}.",
        share = percent(share),
        interface = &facts.outbound.name
    ));
    let lost_later =
        message!("wire-lost-later", "But {lost} of the datagrams were lost after it.", lost = percent(lost));
    let opinion = match lost {
        MUCH_LOST.. => Opinion::new(Support::Hint, text.and(lost_later)),
        LITTLE_LOST.. => Opinion::new(Support::For, text.and(lost_later)),
        _ => Opinion::new(Support::Strong, text),
    };
    opinion.used(share.min(1.0)).then(advice()).despite_steal().counted()
}

/// The wire under a copy, by the counters of the interfaces over the whole of it, its beginning and its end too.
pub(super) fn of_copy(facts: &CopyFacts) -> Option<Opinion> {
    if !facts.crosses {
        return None;
    }
    let Some((line, share)) = facts.line else {
        return Some(Opinion::new(
            Support::Unknown,
            message!(
                "wire-unknown-copy",
                "The speed of no link is known, so a full wire cannot be told from a shaper (tell the agents with \
                 --link-speed)."
            ),
        ));
    };
    let text = message!(
        "wire-filled",
        "Frames filled {share} of a line of {line}, by the interface's counters.",
        share = percent(share),
        line
    );
    let support = match share {
        NEARLY_FULL.. => Support::Strong,
        MOSTLY_FULL.. => Support::For,
        _ => Support::Against,
    };
    Some(
        Opinion::new(support, text)
            .then(message!("wire-next-copy", "A faster link carries more."))
            .despite_steal()
            .counted(),
    )
}

fn carried(facts: &FlowFacts, line: &PathLimit) -> Message {
    if facts.calls.as_ref().is_some_and(|calls| calls.nfs) {
        return message!(
            "wire-filled",
            "Frames filled {share} of a line of {line}, by the interface's counters.",
            share = percent(line.share),
            line = line.line_bps
        );
    }
    // TCP fills its segments whatever it is handed.
    let carriers = match facts.work {
        Work::Udp => message!("wire-datagrams", "datagrams of {bytes} bytes", bytes = facts.message_bytes),
        Work::Tcp => message!("wire-segments", "full segments"),
        Work::Transact => message!("wire-calls", "calls of {bytes} bytes", bytes = facts.message_bytes),
    };
    let carried = message!(
        "wire-payload",
        "The receiver got {share} of the {payload} payload that a line of {line} can carry in {carriers} at MTU \
         {mtu}.",
        share = MessageValue::percent(line.share, 1),
        payload = line.payload_bps,
        line = line.line_bps,
        carriers,
        mtu = line.mtu
    );
    match facts.work {
        _ if !line.half_duplex => carried,
        Work::Udp => carried.and(message!("wire-half-duplex", "The line is half duplex: both directions share it.")),
        Work::Tcp | Work::Transact => carried.and(message!(
            "wire-half-duplex-acknowledged",
            "The line is half duplex: an acknowledgement for every two segments is part of this limit."
        )),
    }
}
