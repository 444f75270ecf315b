//! A shaper or policer: the path lets through less than any link of known speed on it carries, and the hosts are idle.

use super::facts::{
    AMPLE, CopyFacts, FAR, FlowFacts, HELD_BACK, INTERRUPTED, MOSTLY_FULL, NEARLY_OCCUPIED, NOTABLE_LOSS, OCCUPIED,
    Tcp, USUAL_LOSS, Work, bits, percent, time,
};
use super::{Opinion, support};
use linerate_model::{CopyStage, Support};

/// No path is so bad that it loses this share by chance, and still carries what it does.
const MOST: f64 = 0.5;
/// With so much of the line used, the line itself may be what is full.
const NEARLY_FULL: f64 = 0.98;
/// Why a path is not seen behind a window.
const WINDOW_FULL: &str = "The receiver's window was full: what the path would let through is not seen.";

pub(super) fn weigh(facts: &FlowFacts) -> Option<Opinion> {
    if facts.work == Work::Transact {
        return None;
    }
    if facts.line.as_ref().is_some_and(|line| line.share >= NEARLY_FULL) {
        return Some(Opinion::new(Support::Against, "A link of known speed is full."));
    }
    let next = "Ask who runs the path for a shaper, a policer or a slower link on it; a run at a lower --rate without loss \
                bounds what it lets through.";
    let opinion = match facts.work {
        Work::Udp => of_datagrams(facts),
        _ => of_tcp(facts),
    }?;
    let nearly_met = facts.offer.is_some_and(|offer| offer.is_nearly_met());
    let support = if nearly_met { opinion.support.min(Support::Hint) } else { opinion.support };
    Some(Opinion { support, ..opinion }.despite_steal_if(facts.idle_despite_steal()).then(next))
}

/// A path that lets through less of a copy than its hosts would send and take: data waited to be sent while the other end had none.
pub(super) fn of_copy(facts: &CopyFacts) -> Option<Opinion> {
    if !facts.crosses {
        return None;
    }
    if facts.line.is_some_and(|(_, share)| share >= MOSTLY_FULL) {
        return Some(Opinion::new(Support::Against, "A link of known speed is full."));
    }
    if facts.source.is_throttled() || facts.destination.is_throttled() {
        return Some(Opinion::new(
            Support::Against,
            "A host had no time to spare, so what the path would let through is not seen.",
        ));
    }
    let (sending, starved) = (facts.blocked(CopyStage::Send), facts.starved(CopyStage::Receive));
    let text = format!(
        "Data waited to be sent for {} of the time, while the destination had none for {}.",
        percent(sending),
        percent(starved)
    );
    let (most, why) = match facts.path() {
        Some(tcp) => of_connections(tcp),
        // Delay, loss and small windows look the same from here: no more than a good sign.
        None => (Support::For, String::new()),
    };
    let next = "Measure the path alone: `linerate stream` between the same hosts distinguishes a shaper from loss, delay and windows.";
    Some(Opinion::new(support(facts.held_on_path()).min(most), text + &why).despite_steal().then(next))
}

/// How well what TCP says of a copy's connections supports a shaper at the most, and why.
fn of_connections(tcp: &Tcp) -> (Support, String) {
    let held_back = tcp.window_limited + tcp.buffer_limited;
    if held_back >= HELD_BACK {
        return (Support::Against, format!(" TCP was held back by windows and buffers for {}.", percent(held_back)));
    }
    if tcp.fills_window() {
        return (Support::Against, format!(" {WINDOW_FULL}"));
    }
    if tcp.queued() {
        let why = format!(
            " Meanwhile a round trip grew from {} to {} in a queue on the path.",
            time(tcp.min_rtt),
            time(tcp.rtt)
        );
        return (if tcp.retransmitted <= NOTABLE_LOSS { Support::Strong } else { Support::For }, why);
    }
    let lost = percent(tcp.retransmitted);
    let allows_more = tcp.retransmitted <= 0.0 || tcp.allowed(tcp.min_rtt) / tcp.active() >= FAR && !tcp.is_heavy();
    match tcp.goes_by_loss() {
        _ if tcp.is_stalled() => (Support::Hint, format!(" TCP lost {lost}, and waited for timeouts.")),
        true if !allows_more => (Support::Hint, format!(" TCP lost {lost}, as by a policer or a bad path.")),
        false if tcp.retransmitted <= NOTABLE_LOSS => {
            (Support::Strong, String::from(" No window, buffer or loss explains it."))
        }
        _ => (Support::For, format!(" TCP lost {lost}, which would allow more.")),
    }
}

fn of_datagrams(facts: &FlowFacts) -> Option<Opinion> {
    let udp = facts.udp?;
    let (lost, taken_late) = (udp.wire, udp.receiver_queue + udp.socket_buffer);
    if taken_late > NOTABLE_LOSS && taken_late >= lost {
        let text = format!("The path delivered more than the receiver took: {} was lost there.", percent(taken_late));
        return Some(Opinion::new(Support::Against, text));
    }
    let sender = facts.sender.occupied();
    if facts.offer.is_none() && lost < USUAL_LOSS {
        if let Some(busy) = hosts_are_busy(facts) {
            return Some(busy);
        }
        let (support, text) = match sender < NEARLY_OCCUPIED {
            true => (Support::Strong, "had time to spare"),
            false if facts.outrun_the_path() => {
                (Support::For, "were held up by soft interrupts, those of a queue on the path")
            }
            false => (Support::Hint, "had little time to spare"),
        };
        let text = format!(
            "The sending threads {text} (occupied for {}), but were not let send more than {}.",
            percent(sender),
            facts.reached_in_words()
        );
        return Some(Opinion::new(support, text));
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
    let support = match lost {
        MOST.. => Support::Strong,
        USUAL_LOSS.. => Support::For,
        NOTABLE_LOSS.. => Support::Hint,
        _ => Support::Against,
    };
    Some(Opinion::new(support, format!("{text}{room}.")))
}

/// A host without time to spare hides what the path would let through.
fn hosts_are_busy(facts: &FlowFacts) -> Option<Opinion> {
    let ends = [&facts.sender, &facts.receiver];
    let busiest = ends.iter().map(|end| end.occupied()).fold(0.0, f64::max);
    // Where soft interrupts may have taken a UDP sender's time, a queue's may have.
    let unsure = facts.work == Work::Udp && facts.sender.interruptible >= INTERRUPTED;
    let busy = busiest >= OCCUPIED && !facts.outrun_the_path() && !unsure
        || ends.iter().any(|end| end.is_throttled())
        || facts.late_kernel_thread().is_some();
    busy.then(|| {
        Opinion::new(Support::Against, "A host had no time to spare, so what the path would let through is not seen.")
    })
}

fn of_tcp(facts: &FlowFacts) -> Option<Opinion> {
    let tcp = facts.tcp.as_ref()?;
    let busiest = facts.sender.occupied().max(facts.receiver.occupied());
    if let Some(busy) = hosts_are_busy(facts) {
        return Some(busy);
    }
    let held_back = tcp.window_limited + tcp.buffer_limited;
    if held_back >= HELD_BACK {
        let text = format!("TCP was held back by windows and buffers for {} of the time.", percent(held_back));
        return Some(Opinion::new(Support::Against, text));
    }
    if tcp.fills_window() {
        return Some(Opinion::new(Support::Against, WINDOW_FULL));
    }
    let spare = if busiest < OCCUPIED { "The hosts had time to spare" } else { "The hosts were ahead of the path" };
    let text = format!(
        "{spare} (occupied for {}), and nothing held TCP back but the path: it let through {}",
        percent(busiest),
        bits(tcp.flow_bps)
    );
    // Who has work for most of the time may have been short of it in each burst.
    let ample = if busiest < AMPLE { Support::Strong } else { Support::For };
    if tcp.queued() {
        let text =
            format!("{text} while a round trip grew from {} to {} in a queue on it.", time(tcp.min_rtt), time(tcp.rtt));
        // Of what is lost more often the receiver's acknowledgements come late, which makes round trips grow as well.
        let sure = busiest < NEARLY_OCCUPIED && tcp.retransmitted <= NOTABLE_LOSS;
        let support = if sure { Support::Strong } else { Support::For };
        return Some(Opinion::new(support, text));
    }
    let lost = percent(tcp.retransmitted);
    let alike = "as by a policer, which at one load looks like a bad path";
    if tcp.is_stalled() {
        let text = format!("{text}; TCP lost {lost} and waited for timeouts for {}, {alike}.", percent(tcp.stalled));
        return Some(Opinion::new(Support::Hint, text));
    }
    if !tcp.goes_by_loss() {
        let (support, text) = match () {
            () if busiest >= NEARLY_OCCUPIED => {
                (Support::Hint, format!("{text}, with no window or buffer to explain it."))
            }
            () if tcp.is_heavy() => (Support::For, format!("{text} and lost {lost}, more than a bad path does.")),
            () => (ample, format!("{text}, with no window, buffer or loss to explain it.")),
        };
        return Some(Opinion::new(support, text));
    }
    if tcp.fills_send_buffer() {
        return Some(Opinion::new(Support::Hint, format!("{text}; but congestion control would have allowed more.")));
    }
    let room = tcp.allowed(tcp.min_rtt) / tcp.active();
    if tcp.retransmitted <= 0.0 || room >= FAR && !tcp.is_heavy() {
        let support = if busiest >= NEARLY_OCCUPIED { Support::Hint } else { Support::For };
        return Some(Opinion::new(support, format!("{text}; the loss of {lost} would allow more.")));
    }
    Some(Opinion::new(Support::Hint, format!("{text}, and lost {lost}, {alike}.")))
}
