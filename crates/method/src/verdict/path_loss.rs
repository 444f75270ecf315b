//! Loss on the path: it takes its share of datagrams, and TCP takes it for congestion and slows down.
//!
//! How fast a loss-based TCP goes at a given loss and round-trip time is known: Reno by Mathis et al. 1997 ("The Macroscopic
//! Behavior of the TCP Congestion Avoidance Algorithm", equation 3), CUBIC by RFC 9438 section 5.1. Where the result is
//! what these allow, loss rules; where they allow far more, something else does.
//!
//! What they cannot tell is why segments are lost. A policer drops what exceeds its rate, TCP slows down until little does, and
//! the formulas hold for that too: at one load, a policer and a bad path look the same. So loss is never named with high
//! confidence for TCP until a load without bursts has shown that it stays (--prove).

use super::copied::stand;
use super::facts::{Tcp, Work, bits, percent, time};
use super::{CopyFacts, Facts, Opinion};
use linerate_model::Stand;

/// Share of datagrams whose loss is more than a stumble.
pub(crate) const NOTABLE: f64 = 0.0005;
/// Loss by a path that is bad, and not full, is rarely more than this.
pub(super) const USUAL: f64 = 0.05;
/// Where they allow this many times the result, loss is not what rules: they hold for an average over long times, a run is
/// short and loss comes by chance.
pub(super) const FAR: f64 = 4.0;
/// A round trip this many times the smallest has passed a queue, so the path was full.
pub(super) const QUEUED: f64 = 2.0;
/// A queue that takes less time than this may be the hosts' own.
pub(super) const QUEUE_NOTABLE: f64 = 0.001;
/// With fewer segments in it, it is no queue: an acknowledgement that waits for a second segment, or for one that is resent,
/// takes as long.
const QUEUE_SEGMENTS: f64 = 10.0;
/// Waiting for timeouts for so much of the time is what rules the rate.
const STALLED: f64 = 0.2;

pub(super) fn weigh(facts: &Facts) -> Option<Opinion> {
    match facts.work {
        Work::Transact => None,
        Work::Udp => of_datagrams(facts),
        Work::Tcp => of_tcp(facts.tcp.as_ref()?),
    }
}

/// Loss under a copy, while data waited to be sent and the destination had none.
pub(super) fn of_copy(facts: &CopyFacts) -> Option<Opinion> {
    let opinion = of_tcp(facts.path()?)?;
    let next = "Measure the path alone: `linerate stream --prove` between the same hosts tells a bad path from one that is full.";
    let stand = opinion.stand.min(stand(facts.held_on_path()));
    Some(Opinion { stand, ..opinion }.despite_steal().then(next))
}

fn of_datagrams(facts: &Facts) -> Option<Opinion> {
    let lost = facts.udp?.wire;
    let text = format!("{} of the datagrams were lost between the two hosts.", percent(lost));
    if lost <= NOTABLE {
        return Some(Opinion::new(Stand::Against, text));
    }
    let kept = facts.offer.is_some_and(|offer| offer.sent >= 0.99);
    let stand = match lost <= USUAL {
        true if kept => Stand::For,
        true => Stand::Hint,
        false => Stand::Hint,
    };
    Some(Opinion::new(stand, text).then(
        "The same at half the --rate tells: loss that stays is the path's, loss that goes is of a path that is full.",
    ))
}

fn of_tcp(tcp: &Tcp) -> Option<Opinion> {
    let text = format!("{} of the segments were resent.", percent(tcp.resent));
    if tcp.resent <= 0.0 {
        return Some(Opinion::new(Stand::Against, text));
    }
    let next = "The same rate over UDP tells (--prove): loss that stays is the path's (errors, optics, duplex, radio), and \
                --congestion bbr holds its rate against it; loss that goes is of a path that is full.";
    let text = match tcp.stalled {
        0.0 => text,
        stalled => format!("{text} For {} of the time TCP waited for a timeout.", percent(stalled)),
    };
    if !goes_by_loss(tcp) {
        let text = format!("{text} {} does not take loss for congestion.", tcp.congestion);
        let stand = if is_heavy(tcp) || is_stalled(tcp) { Stand::Hint } else { Stand::Against };
        return Some(Opinion::new(stand, text).then(next));
    }
    let allowed = allowed(tcp, tcp.rtt);
    let text = format!(
        "{text} At that loss and a round trip of {} TCP ({}) goes at about {}.",
        time(tcp.rtt),
        tcp.congestion,
        bits(allowed)
    );
    if queued(tcp) {
        // A queue that fills loses packets too, few if it is long: then the loss follows from the rate.
        let text = format!("{text} But a queue was full: without it a round trip takes {}.", time(tcp.min_rtt));
        let stand = if tcp.resent > NOTABLE { Stand::Hint } else { Stand::Against };
        return Some(Opinion::new(stand, text).then(next));
    }
    let stand = match allowed / active(tcp) {
        _ if is_heavy(tcp) => Stand::Hint,
        ..FAR => Stand::For,
        _ => Stand::Against,
    };
    Some(Opinion::new(stand, text).then(next))
}

/// More is lost than by a path that is bad; the formulas do not hold then either.
pub(super) fn is_heavy(tcp: &Tcp) -> bool {
    tcp.resent > USUAL
}

/// Timeouts rule the rate.
pub(super) fn is_stalled(tcp: &Tcp) -> bool {
    tcp.stalled >= STALLED
}

/// Bit/s of a flow while it did not wait for a timeout, which the formulas do not count.
pub(super) fn active(tcp: &Tcp) -> f64 {
    tcp.flow_bps.max(1.0) / (1.0 - tcp.stalled).max(0.01)
}

/// The congestion control takes every loss for congestion.
pub(super) fn goes_by_loss(tcp: &Tcp) -> bool {
    !tcp.congestion.starts_with("bbr")
}

/// A queue stood on the path.
pub(super) fn queued(tcp: &Tcp) -> bool {
    let longer = tcp.rtt - tcp.min_rtt;
    let segments = longer * tcp.flow_bps / tcp.segment_bits.max(1.0);
    tcp.rtt >= QUEUED * tcp.min_rtt && longer >= QUEUE_NOTABLE && segments >= QUEUE_SEGMENTS && !is_stalled(tcp)
}

/// Bit/s that a loss-based TCP reaches over a path of round-trip time `rtt`.
pub(super) fn allowed(tcp: &Tcp, rtt: f64) -> f64 {
    let (loss, rtt) = (tcp.resent.max(1e-9), rtt.max(1e-6));
    // Segments under way on average: Mathis et al., equation 3 (C = sqrt(3/2)).
    let reno = 1.22 / loss.sqrt();
    // RFC 9438, figure 5: C = 0.4, beta = 0.7.
    let cubic = 1.054 * (rtt / loss).powf(0.75);
    let window = if tcp.congestion == "cubic" { reno.max(cubic) } else { reno };
    window * tcp.segment_bits / rtt
}
