//! A shaper or policer: the path lets through less than any link of known speed on it carries, and the hosts are idle.

use super::facts::{
    CopyFacts, End, FAR, FlowFacts, HELD_BACK, INTERRUPTED, InterfaceFacts, LIGHT_LOSS, LossPattern, MOSTLY_FULL,
    NEARLY_OCCUPIED, NOTABLE_LOSS, OCCUPIED, Tcp, TcpCourse, USUAL_LOSS, Work, bits, percent, time,
};
use super::{Opinion, support};
use linerate_model::{CopyStage, LimitPlace, Steadiness, Support};

/// No path is so bad that it loses this share by chance, and still carries what it does.
const MOST: f64 = 0.5;
/// With so much of the line used, the line itself may be what is full.
const NEARLY_FULL: f64 = 0.98;
/// More of the segments with a congestion mark (RFC 3168) than this say that a queue of the path is full.
const MARKED: f64 = 0.001;
/// More lost on the way back than this, while little is lost on the way there, holds acknowledgements up.
const RETURN_LOSS: f64 = 0.1;
/// Filters account for the loss where they dropped so much of it.
const MOST_FILTERED: f64 = 0.5;
/// A filter that drops less than this on the way out does not hold the result back.
const FILTERED_OUT: f64 = 0.005;
/// Why a path is not seen behind a window.
const WINDOW_FULL: &str = "The receiver's window was full: what the path would let through is not seen.";

const NEXT: &str = "Ask who runs the path for a shaper, a policer or a slower link on it; a run at a lower --rate without loss \
                    bounds what it lets through.";

pub(super) fn weigh(facts: &FlowFacts) -> Option<Opinion> {
    if facts.line.as_ref().is_some_and(|line| line.share >= NEARLY_FULL) {
        return Some(Opinion::new(Support::Against, "A link of known speed is full."));
    }
    if facts.queue_drains_at_line_speed() {
        return Some(Opinion::new(Support::Against, "What waits to be sent leaves at the speed of the line."));
    }
    let opinion = match (at_a_host(facts), facts.work) {
        (Some(own), _) => own,
        (None, Work::Udp) => of_datagrams(facts)?.at(LimitPlace::ForwardPath).then(NEXT),
        (None, Work::Tcp) => of_tcp(facts)?,
        (None, Work::Transact) => of_requests(facts)?,
    };
    let nearly_met = facts.offer.is_some_and(|offer| offer.is_nearly_met());
    let support = if nearly_met { opinion.support.min(Support::Hint) } else { opinion.support };
    let opinion = Opinion { support, ..opinion }.despite_steal_if(facts.idle_despite_steal());
    // A line whose speed is not what it is said to be may be what is full.
    Some(if facts.declared_too_slow.is_some() { Opinion { place: None, ..opinion.by_elimination() } } else { opinion })
}

/// A shaper at one of the hosts themselves, which its own queue shows.
fn at_a_host(facts: &FlowFacts) -> Option<Opinion> {
    let text = |interface: &InterfaceFacts, whose: &str| {
        format!(
            "Packets stood in the queue of interface {} of the {whose} host for {} of the time, and it held them back {:.0} times a \
             second.",
            interface.name,
            percent(interface.waiting),
            interface.held_back_per_s
        )
    };
    if facts.outbound.is_shaped() {
        let next = "Look at the sending host's own queueing discipline (tc qdisc): it has a rate set.";
        let opinion = Opinion::new(Support::Strong, text(&facts.outbound, "sending"));
        return Some(opinion.at(LimitPlace::SenderQueue).then(next));
    }
    let lost = facts
        .udp
        .map_or_else(|| facts.tcp.as_ref().map_or(0.0, |tcp| tcp.retransmitted), |_| facts.lost_behind_sender());
    let filtered = facts.udp.map_or(facts.inbound.filtered, |udp| udp.receiver_filter);
    if filtered > NOTABLE_LOSS && lost > NOTABLE_LOSS && filtered >= MOST_FILTERED * lost {
        let text = format!(
            "Filters of the receiving host dropped {} of the packets that came, and {} of all were lost.",
            percent(filtered),
            percent(lost)
        );
        let next = "Look at the receiving host's packet filters (tc filter, nft list ruleset, iptables -L -v): one has a rate set.";
        return Some(Opinion::new(Support::Strong, text).at(LimitPlace::ReceiverHost).then(next));
    }
    if facts.outbound.filtered > FILTERED_OUT {
        let text = format!("Filters of the sending host dropped {} of the packets.", percent(facts.outbound.filtered));
        let next = "Look at the sending host's packet filters (tc filter show dev IF egress): one has a rate set.";
        return Some(Opinion::new(Support::Strong, text).at(LimitPlace::SenderQueue).then(next));
    }
    // Of a stream nothing but acknowledgements goes back.
    if facts.work == Work::Tcp && facts.inbound.is_shaped() {
        let next = "Look at the receiving host's own queueing discipline (tc qdisc): acknowledgements wait in it.";
        let opinion = Opinion::new(Support::Strong, text(&facts.inbound, "receiving"));
        return Some(opinion.at(LimitPlace::ReturnPath).then(next));
    }
    None
}

/// Requests that carry data, and stood in a queue of the path.
fn of_requests(facts: &FlowFacts) -> Option<Opinion> {
    let tcp = facts.tcp.as_ref()?;
    let queue = format!("a round trip grew from {} to {}", time(tcp.min_rtt), time(tcp.rtt));
    if !tcp.queued() {
        let holds_up = facts.closed_loop.is_some_and(|closed| tcp.holds_up(closed.latency));
        return Some(match holds_up {
            true => Opinion::new(Support::Hint, format!("Requests waited on the path for a while: {queue}.")),
            false => Opinion::new(Support::Against, format!("No queue stood on the path: {queue}.")),
        });
    }
    if let Some(busy) = hosts_are_busy(facts) {
        return Some(busy);
    }
    let course = facts.tcp_course();
    let stands = course.is_some_and(TcpCourse::queue_stands);
    let text = format!("What requests and answers carry stood in a queue on the path, where {queue}.");
    let opinion = Opinion::new(if stands { Support::Strong } else { Support::For }, text);
    Some(opinion.at(LimitPlace::ForwardPath).then(NEXT))
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
    let opinion = Opinion::new(support(facts.held_on_path()).min(most), text + &why).at(LimitPlace::ForwardPath);
    Some(opinion.despite_steal().then(next))
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
            (Support::For, String::from(" No window, buffer or loss explains it."))
        }
        false if tcp.retransmitted <= LIGHT_LOSS => {
            (Support::Hint, format!(" TCP lost {lost}, as by a policer or a bad path."))
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
    let text = match lost <= USUAL_LOSS {
        true => format!("{} came through", facts.reached_in_words()),
        false => format!(
            "{} of the datagrams were lost between the two hosts; {} came through",
            percent(lost),
            facts.reached_in_words()
        ),
    };
    let room = facts
        .line
        .as_ref()
        .map_or(String::new(), |line| format!(", {} of what the links are known to carry", percent(line.share)));
    let support = match lost {
        MOST.. => Support::Strong,
        USUAL_LOSS.. => Support::For,
        NOTABLE_LOSS.. if facts.loss_pattern() == Some(LossPattern::Regular) => Support::For,
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
    if tcp.fills_window() {
        return Some(Opinion::new(Support::Against, WINDOW_FULL));
    }
    if facts.is_starting_up() {
        let text = "The rate still rose when the window closed: what the path would let through is not seen.";
        return Some(Opinion::new(Support::Against, text));
    }
    if facts.lost_on_return >= RETURN_LOSS && tcp.retransmitted <= facts.lost_on_return / 2.0 {
        let text = format!(
            "{} of the packets that the receiving host sent back did not reach the sending one, and {} of the segments were \
             retransmitted: acknowledgements came too slowly.",
            percent(facts.lost_on_return),
            percent(tcp.retransmitted)
        );
        let next = "Measure the other direction (--direction receive): the return path carries little.";
        return Some(Opinion::new(Support::Strong, text).at(LimitPlace::ReturnPath).then(next));
    }
    let held_back = tcp.window_limited + tcp.buffer_limited;
    if held_back >= HELD_BACK {
        let text = format!("TCP was held back by windows and buffers for {} of the time.", percent(held_back));
        return Some(Opinion::new(Support::Against, text));
    }
    let spare = if busiest < OCCUPIED { "The hosts had time to spare" } else { "The hosts were ahead of the path" };
    let through =
        format!("{spare} (occupied for {}), and the path let through {}", percent(busiest), bits(tcp.flow_bps));
    let opinion = on_path(facts, tcp, &through);
    Some(match facts.queues_on_return() {
        Some(_) if opinion.by_elimination => opinion.then(NEXT),
        Some((there, back)) if opinion.support >= Support::For => {
            let text = format!(
                "{} Data took {} to the receiver, and the rest of the round trip {}: acknowledgements wait on their way back.",
                opinion.text,
                time(there),
                time(back)
            );
            let next = "Measure the other direction (--direction receive): the return path carries little.";
            Opinion { text, ..opinion }.at(LimitPlace::ReturnPath).then(next)
        }
        _ => opinion.at(LimitPlace::ForwardPath).then(NEXT),
    })
}

/// What stands on the path of TCP whose hosts have time: a queue, congestion marks, loss, or nothing that is seen.
fn on_path(facts: &FlowFacts, tcp: &Tcp, through: &str) -> Opinion {
    let busiest = facts.sender.occupied().max(facts.receiver.occupied());
    let course = facts.tcp_course();
    // Of what is lost more often the receiver's acknowledgements come late, which makes round trips grow as well.
    let interrupts = facts.sender.is_full_of_interrupts() || facts.receiver.is_full_of_interrupts();
    let sure = busiest < NEARLY_OCCUPIED && tcp.retransmitted <= NOTABLE_LOSS && !interrupts;
    // An end that waits for a core that others keep busy lets queues grow as well, and its rate varies with them.
    let late = |end: &End| end.is_kept_waiting() && end.busiest_core >= OCCUPIED;
    let steady = facts.steadiness == Some(Steadiness::Steady);
    let kept = !steady && (late(&facts.sender) || late(&facts.receiver));
    let strong = match (sure, kept) {
        (_, true) => Support::Hint,
        (true, _) => Support::Strong,
        (false, _) => Support::For,
    };
    if let Some(course) = course.filter(|course| course.marked > MARKED) {
        let text = format!("{through}, where {} of the segments were marked for congestion.", percent(course.marked));
        return Opinion::new(strong, text);
    }
    if tcp.queued() || course.is_some_and(TcpCourse::queue_stands) {
        let how_long = course.map_or(String::new(), |course| format!(" for {} of the time", percent(course.queued)));
        let text = format!(
            "{through} while a round trip grew from {} to {} in a queue on it{how_long}.",
            time(tcp.min_rtt),
            time(tcp.rtt)
        );
        return Opinion::new(strong, text);
    }
    if tcp.is_reordered() {
        let text = format!("{through}, where segments overtook one another and TCP took that for loss.");
        return Opinion::new(Support::Hint, text);
    }
    let lost = percent(tcp.retransmitted);
    let alike = "as by a policer, which at one load looks like a bad path";
    if tcp.is_stalled() {
        let text = format!("{through}; TCP lost {lost} and waited for timeouts for {}, {alike}.", percent(tcp.stalled));
        return Opinion::new(Support::Hint, text);
    }
    if !tcp.goes_by_loss() {
        return match tcp.retransmitted {
            lost if tcp.is_heavy() => {
                let lost = percent(lost);
                Opinion::new(Support::For, format!("{through} and lost {lost}, more than a bad path does."))
            }
            lost if lost > NOTABLE_LOSS => {
                Opinion::new(Support::Hint, format!("{through} and lost {}, {alike}.", percent(lost)))
            }
            // Who has work for most of the time may have been short of it in each burst.
            _ if busiest >= NEARLY_OCCUPIED => {
                Opinion::new(Support::Hint, format!("{through}, with no window or buffer to explain it."))
                    .by_elimination()
            }
            _ => Opinion::new(Support::For, format!("{through}, with no window, buffer or loss to explain it."))
                .by_elimination(),
        };
    }
    let room = tcp.allowed(tcp.min_rtt) / tcp.active();
    if facts.loss_pattern() == Some(LossPattern::Clustered) && tcp.retransmitted > NOTABLE_LOSS {
        let text = format!(
            "{through} and lost {lost}, in clusters as by a policer, a queue that overflows or bursts of errors."
        );
        return Opinion::new(Support::Hint, text);
    }
    // A TCP that goes by loss grows until something is lost or waits. Where nothing does, it has not met the path's limit.
    if tcp.retransmitted <= 0.0 {
        return Opinion::new(Support::Hint, format!("{through}, and neither a queue nor a loss shows why."));
    }
    if room >= FAR && !tcp.is_heavy() {
        let support = if busiest >= NEARLY_OCCUPIED { Support::Hint } else { Support::For };
        return Opinion::new(support, format!("{through}; the loss of {lost} would allow more.")).by_elimination();
    }
    Opinion::new(Support::Hint, format!("{through}, and lost {lost}, {alike}."))
}
