//! A shaper or policer: the path lets through less than any link of known speed on it carries, and the hosts are idle.

use super::facts::{NEARLY_OCCUPIED, OCCUPIED, Work, bits, percent, time};
use super::offered_load::NEARLY_MET;
use super::path_loss::{FAR, NOTABLE, USUAL, allowed, goes_by_loss, queued};
use super::{Facts, Opinion};
use linerate_model::Stand;

/// TCP held back by windows or buffers for more than this does not show what the path lets through.
const HELD_BACK: f64 = 0.2;
/// With so much of the line used, the line itself may be what is full.
const NEARLY_FULL: f64 = 0.98;

pub(super) fn weigh(facts: &Facts) -> Option<Opinion> {
    if facts.work == Work::Transact {
        return None;
    }
    if facts.line.as_ref().is_some_and(|line| line.share >= NEARLY_FULL) {
        return Some(Opinion::new(Stand::Against, "A link of known speed is full."));
    }
    let next = "Ask who runs the path for a shaper, a policer or a slower link on it; a run at a lower --rate without loss \
                bounds what it lets through.";
    let opinion = match facts.work {
        Work::Udp => of_datagrams(facts),
        _ => of_tcp(facts),
    }?;
    let nearly_met = facts.offer.is_some_and(|offer| offer.arrived >= NEARLY_MET);
    let stand = if nearly_met { opinion.stand.min(Stand::Hint) } else { opinion.stand };
    Some(Opinion { stand, ..opinion }.then(next))
}

fn of_datagrams(facts: &Facts) -> Option<Opinion> {
    let udp = facts.udp?;
    let (lost, taken_late) = (udp.wire, udp.receiver_queue + udp.socket_buffer);
    if taken_late > NOTABLE && taken_late >= lost {
        let text = format!("The path delivered more than the receiver took: {} was lost there.", percent(taken_late));
        return Some(Opinion::new(Stand::Against, text));
    }
    let sender = facts.sender.occupied();
    if facts.offer.is_none() && lost < USUAL {
        if let Some(busy) = hosts_are_busy(facts) {
            return Some(busy);
        }
        let text = format!(
            "The sending threads had time to spare (occupied for {}), but were not let send more than {}.",
            percent(sender),
            facts.reached_in_words()
        );
        let stand = if sender >= NEARLY_OCCUPIED { Stand::Hint } else { Stand::Strong };
        return Some(Opinion::new(stand, text));
    }
    let text = format!(
        "{} of the datagrams were lost between the two hosts; {} came through",
        percent(lost),
        facts.reached_in_words()
    );
    let room = facts
        .line
        .as_ref()
        .map_or(String::new(), |line| format!(", {} of what the links are known to carry", percent(line.share)));
    let stand = match lost {
        USUAL.. => Stand::Strong,
        NOTABLE.. => Stand::Hint,
        _ => Stand::Against,
    };
    Some(Opinion::new(stand, format!("{text}{room}.")))
}

/// A host without time to spare hides what the path would let through.
fn hosts_are_busy(facts: &Facts) -> Option<Opinion> {
    let ends = [&facts.sender, &facts.receiver];
    let busiest = ends.iter().map(|end| end.occupied()).fold(0.0, f64::max);
    let busy = busiest >= OCCUPIED || ends.iter().any(|end| end.is_throttled()) || facts.late_kernel_thread().is_some();
    busy.then(|| {
        Opinion::new(Stand::Against, "A host had no time to spare, so what the path would let through is not seen.")
    })
}

fn of_tcp(facts: &Facts) -> Option<Opinion> {
    let tcp = facts.tcp.as_ref()?;
    let busiest = facts.sender.occupied().max(facts.receiver.occupied());
    if let Some(busy) = hosts_are_busy(facts) {
        return Some(busy);
    }
    let held_back = tcp.window_limited + tcp.buffer_limited;
    if held_back >= HELD_BACK {
        let text = format!("TCP was held back by windows and buffers for {} of the time.", percent(held_back));
        return Some(Opinion::new(Stand::Against, text));
    }
    let text = format!(
        "The hosts had time to spare (occupied for {}), and nothing held TCP back but the path: it let through {}",
        percent(busiest),
        bits(tcp.flow_bps)
    );
    if queued(tcp) {
        let text =
            format!("{text} while a round trip grew from {} to {} in a queue on it.", time(tcp.min_rtt), time(tcp.rtt));
        let stand = if busiest >= NEARLY_OCCUPIED { Stand::For } else { Stand::Strong };
        return Some(Opinion::new(stand, text));
    }
    if !goes_by_loss(tcp) {
        return Some(Opinion::new(Stand::Strong, format!("{text}, with no window, buffer or loss to explain it.")));
    }
    let room = allowed(tcp, tcp.min_rtt) / tcp.flow_bps.max(1.0);
    if tcp.resent <= 0.0 || room >= FAR {
        let text = format!("{text}; the loss of {} would allow more.", percent(tcp.resent));
        return Some(Opinion::new(Stand::For, text));
    }
    Some(Opinion::new(Stand::Against, format!("{text}, which the loss of {} accounts for.", percent(tcp.resent))))
}
