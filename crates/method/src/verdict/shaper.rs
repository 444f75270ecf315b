//! A shaper or policer: the path lets through less than any link of known speed on it carries, and the hosts are idle.

use super::facts::{
    CopyFacts, End, FAR, FlowFacts, HELD_BACK, INTERRUPTED, InterfaceFacts, LossPattern, MOSTLY_FULL, NEARLY_OCCUPIED,
    NOTABLE_LOSS, OCCUPIED, Pace, RETURN_LOSS, Tcp, TcpCourse, USUAL_LOSS, Work, bits, percent, time,
};
use super::wire::collisions_may_fill;
use super::{Opinion, support};
use crate::terms;
use linerate_model::{CopyStage, LimitPlace, Message, MessageValue, Steadiness, Support, Text, message};

/// No path is so bad that it loses this share by chance, and still carries what it does.
const MOST: f64 = 0.5;
/// The way back takes so many times as long as the way there where a queue on it is clear.
const CLEAR_RETURN: f64 = 4.0;
/// Both ends are sampled within this time of each other, seconds: a shorter queue on the way back cannot be told from one ahead.
const SAMPLING_SKEW: f64 = 0.01;
/// With so much of the line used, the line itself may be what is full.
const NEARLY_FULL: f64 = 0.98;
/// More of the segments with a congestion mark (RFC 3168) than this say that a queue of the path is full.
const MARKED: f64 = 0.001;
/// Filters account for the loss where they dropped so much of it.
const MOST_FILTERED: f64 = 0.5;
/// A filter that drops less than this on the way out does not hold the result back.
const FILTERED_OUT: f64 = 0.005;
/// With more of what leaves the sender lost later, the sender's own queue does not limit alone.
const LOST_LATER: f64 = 0.02;

fn window_full() -> Message {
    message!("shaper-window-full", "The receiver's window was full, so the path's limit is unknown.")
}

/// Returns the evidence of a full path with a queue too short to show in the round trip.
fn pace_of_path(pace: &Pace, tcp: &Tcp) -> Message {
    message!(
        "shaper-pace",
        "The arrivals kept to this rate (standard deviation {deviation}) while the congestion window varied by a factor of {window}; TCP \
         lost {lost} to a full path.",
        deviation = percent(pace.arrivals.deviation),
        window = MessageValue::number(pace.window, 1),
        lost = percent(tcp.retransmitted)
    )
}

fn nothing_arrived() -> Message {
    message!("shaper-nothing-arrived", "Nothing arrived; a shaper lets something through.")
}

fn advice() -> Message {
    message!(
        "shaper-next",
        "Ask the path's operator about a shaper, a policer or a slower link; a run at a lower --rate without \
         loss bounds what it lets through."
    )
}

pub(super) fn weigh(facts: &FlowFacts) -> Option<Opinion> {
    if facts.line.as_ref().is_some_and(|line| line.share >= NEARLY_FULL) {
        return Some(Opinion::new(Support::Against, message!("shaper-line-full", "A link of known speed is full.")));
    }
    let lost_later = facts.lost_behind_sender();
    // Where less is lost than on a bad path, a sender that sends no more is explained by its full line.
    if facts.queue_drains_at_line_speed() && lost_later < USUAL_LOSS {
        return Some(Opinion::new(
            Support::Against,
            message!("shaper-line-speed", "What waits to be sent leaves at the speed of the line."),
        ));
    }
    let own = at_a_host(facts);
    let opinion = match (own, facts.work) {
        (Some(own), Work::Udp) if lost_later > LOST_LATER && own.place == Some(LimitPlace::SenderQueue) => {
            before_a_lossy_path(own, on_path_of_datagrams(facts), lost_later)
        }
        (Some(own), _) => own,
        (None, Work::Udp) => on_path_of_datagrams(facts)?,
        (None, Work::Tcp) => of_tcp(facts)?,
        (None, Work::Transact) => of_requests(facts)?,
    };
    let nearly_met = facts.offer.is_some_and(|offer| offer.is_nearly_met());
    let support =
        if nearly_met || collisions_may_fill(facts) { opinion.support.min(Support::Hint) } else { opinion.support };
    let opinion = Opinion { support, ..opinion }.despite_steal_if(facts.idle_despite_steal());
    // A line whose speed is not what it is said to be may be what is full.
    Some(if facts.declared_too_slow.is_some() { Opinion { place: None, ..opinion.by_elimination() } } else { opinion })
}

/// Weighs the sender's own queue against a path that loses what the queue lets go: the path is what more data would meet next.
fn before_a_lossy_path(own: Opinion, path: Option<Opinion>, lost: f64) -> Opinion {
    match path {
        // With less loss the path's opinion is that the sender sends no more, which its queue explains.
        Some(path) if lost >= USUAL_LOSS => Opinion { text: path.text.and(own.text), ..path },
        _ => {
            let text = own.text.and(message!(
                "shaper-lost-later",
                "But {lost} of what left that queue was lost later.",
                lost = percent(lost)
            ));
            Opinion { text, support: own.support.min(Support::For), ..own }
        }
    }
}

fn on_path_of_datagrams(facts: &FlowFacts) -> Option<Opinion> {
    let opinion = of_datagrams(facts)?.unless_dropped_uncounted(facts);
    Some(opinion.at(LimitPlace::ForwardPath).then(advice()))
}

/// A shaper at one of the hosts themselves, which its own queue shows.
fn at_a_host(facts: &FlowFacts) -> Option<Opinion> {
    let text = |interface: &InterfaceFacts, whose: &'static Text| {
        message!(
            "shaper-at-host",
            "Packets stood in the queue of interface {interface} of the {whose} host for {share} of the time, and \
             it held them back {per_s} times a second.",
            interface = &interface.name,
            whose,
            share = percent(interface.waiting),
            per_s = MessageValue::number(interface.held_back_per_s, 0)
        )
    };
    if facts.outbound.is_shaped() && !facts.queue_drains_at_line_speed() {
        let next = message!(
            "shaper-next-sender",
            "Look at the sending host's own queueing discipline (tc qdisc): it has a rate set."
        );
        let opinion = Opinion::new(Support::Strong, text(&facts.outbound, terms::SENDING));
        return Some(opinion.at(LimitPlace::SenderQueue).then(next));
    }
    let lost = facts
        .udp
        .map_or_else(|| facts.tcp.as_ref().map_or(0.0, |tcp| tcp.retransmitted), |_| facts.lost_behind_sender());
    let filtered = facts.udp.map_or(facts.inbound.filtered, |udp| udp.receiver_filter);
    if filtered > NOTABLE_LOSS && lost > NOTABLE_LOSS && filtered >= MOST_FILTERED * lost {
        let text = message!(
            "shaper-receiver-filter",
            "Filters of the receiving host dropped {filtered} of the packets that came, and {lost} of all were lost.",
            filtered = percent(filtered),
            lost = percent(lost)
        );
        let next = message!(
            "shaper-next-receiver-filter",
            "Look at the receiving host's packet filters (tc filter, nft list ruleset, iptables -L -v): one has a \
             rate set."
        );
        return Some(Opinion::new(Support::Strong, text).at(LimitPlace::ReceiverHost).then(next).counted());
    }
    if facts.outbound.filtered > FILTERED_OUT {
        let text = message!(
            "shaper-sender-filter",
            "Filters of the sending host dropped {share} of the packets.",
            share = percent(facts.outbound.filtered)
        );
        let next = message!(
            "shaper-next-sender-filter",
            "Look at the sending host's packet filters (tc filter show dev IF egress): one has a rate set."
        );
        return Some(Opinion::new(Support::Strong, text).at(LimitPlace::SenderQueue).then(next).counted());
    }
    // Of a stream nothing but acknowledgements goes back.
    if facts.work == Work::Tcp && facts.inbound.is_shaped() {
        let next = message!(
            "shaper-next-receiver",
            "Look at the receiving host's own queueing discipline (tc qdisc): acknowledgements wait in it."
        );
        let opinion = Opinion::new(Support::Strong, text(&facts.inbound, terms::RECEIVING));
        return Some(opinion.at(LimitPlace::ReturnPath).then(next));
    }
    None
}

/// Requests that carry data, and stood in a queue of the path.
fn of_requests(facts: &FlowFacts) -> Option<Opinion> {
    let tcp = facts.tcp.as_ref()?;
    let (least, loaded) = (time(tcp.min_rtt), time(tcp.rtt));
    let course = facts.tcp_course();
    let stands = course.is_some_and(TcpCourse::queue_stands);
    let unsent = course.map(|course| course.unsent).filter(|_| facts.requests_wait_to_be_sent());
    let queued = tcp.queued() || stands;
    if !queued && unsent.is_none() {
        let holds_up = facts.closed_loop.is_some_and(|closed| tcp.holds_up(closed.latency));
        return Some(match holds_up {
            true => Opinion::new(
                Support::Hint,
                message!(
                    "shaper-requests-waited",
                    "Requests waited on the path for a while: a round trip grew from {least} to {loaded}.",
                    least,
                    loaded
                ),
            ),
            false => Opinion::new(
                Support::Against,
                message!(
                    "shaper-no-queue",
                    "No queue stood on the path: a round trip grew from {least} to {loaded}.",
                    least,
                    loaded
                ),
            ),
        });
    }
    if let Some(busy) = hosts_are_busy(facts) {
        return Some(busy);
    }
    let text = match unsent {
        Some(unsent) if !queued => message!(
            "shaper-requests-unsent",
            "On average {unsent} bytes of requests waited in the send buffer of a connection, more than the \
             {window} bytes that TCP had in flight at the most.",
            unsent = MessageValue::number(unsent, 0),
            window = MessageValue::number(tcp.congestion_window, 0)
        ),
        _ => message!(
            "shaper-requests-queued",
            "What requests and answers carry stood in a queue on the path, where a round trip grew from {least} to \
             {loaded}.",
            least,
            loaded
        ),
    };
    let opinion = Opinion::new(if stands { Support::Strong } else { Support::For }, text);
    Some(opinion.at(LimitPlace::ForwardPath).then(advice()))
}

/// A path that lets through less of a copy than its hosts would send and take: data waited to be sent while the other end had none.
pub(super) fn of_copy(facts: &CopyFacts) -> Option<Opinion> {
    if !facts.crosses {
        return None;
    }
    if facts.line.is_some_and(|(_, share)| share >= MOSTLY_FULL) {
        return Some(Opinion::new(Support::Against, message!("shaper-line-full", "A link of known speed is full.")));
    }
    if facts.source.is_throttled() || facts.destination.is_throttled() {
        return Some(Opinion::new(
            Support::Against,
            message!("shaper-busy-host", "A host had no time to spare, so the path's limit is unknown."),
        ));
    }
    let (sending, starved) = (facts.blocked(CopyStage::Send), facts.starved(CopyStage::Receive));
    let text = message!(
        "shaper-copy-waited",
        "Data waited to be sent for {waited} of the time, while the destination had none for {starved}.",
        waited = percent(sending),
        starved = percent(starved)
    );
    let (most, why) = match facts.path() {
        Some(tcp) => of_connections(tcp),
        // Delay, loss and small windows look the same from here: no more than a good sign.
        None => (Support::For, None),
    };
    let next = message!(
        "shaper-next-copy",
        "Measure the path alone: `linerate stream` between the same hosts distinguishes a shaper from loss, delay \
         and windows."
    );
    let opinion = Opinion::new(support(facts.held_on_path()).min(most), text.and(why)).at(LimitPlace::ForwardPath);
    Some(opinion.despite_steal().then(next))
}

/// How well what TCP says of a copy's connections supports a shaper at the most, and why.
fn of_connections(tcp: &Tcp) -> (Support, Option<Message>) {
    let held_back = tcp.window_limited + tcp.buffer_limited;
    if held_back >= HELD_BACK {
        let why = message!(
            "shaper-copy-held-back",
            "TCP was held back by windows and buffers for {share}.",
            share = percent(held_back)
        );
        return (Support::Against, Some(why));
    }
    if tcp.fills_window() {
        return (Support::Against, Some(window_full()));
    }
    if tcp.queued() {
        let why = message!(
            "shaper-copy-queue",
            "Meanwhile a round trip grew from {least} to {loaded} in a queue on the path.",
            least = time(tcp.min_rtt),
            loaded = time(tcp.rtt)
        );
        return (if tcp.retransmitted <= NOTABLE_LOSS { Support::Strong } else { Support::For }, Some(why));
    }
    let lost = percent(tcp.retransmitted);
    let why = match tcp.retransmitted {
        _ if tcp.is_stalled() => message!("shaper-copy-stalled", "TCP lost {lost}, and waited for timeouts.", lost),
        // TCP grows until something waits or is lost. Without either it has not met the path's limit: a copy of few round trips ends before.
        ..=NOTABLE_LOSS => message!("shaper-neither", "Neither a queue nor a loss shows why."),
        // Chance and a policer look alike here.
        _ => message!("shaper-copy-like-policer", "TCP lost {lost}, as by a policer or a bad path.", lost),
    };
    (Support::Hint, Some(why))
}

fn of_datagrams(facts: &FlowFacts) -> Option<Opinion> {
    let udp = facts.udp?;
    if facts.vanished.is_some() {
        return Some(Opinion::new(Support::Against, nothing_arrived()));
    }
    let (lost, taken_late) = (udp.wire, udp.receiver_queue + udp.socket_buffer);
    if taken_late > NOTABLE_LOSS && taken_late >= lost {
        let text = message!(
            "shaper-receiver-took-less",
            "The path delivered more than the receiver took: {share} was lost there.",
            share = percent(taken_late)
        );
        return Some(Opinion::new(Support::Against, text));
    }
    let sender = facts.sender.occupied();
    if facts.offer.is_none() && lost < USUAL_LOSS {
        if let Some(busy) = hosts_are_busy(facts) {
            return Some(busy);
        }
        let (occupied, reached) = (percent(sender), bits(facts.reached));
        let (support, text) = match sender < NEARLY_OCCUPIED {
            true => (
                Support::Strong,
                message!(
                    "shaper-sender-had-time",
                    "The sending threads had time to spare (occupied for {occupied}), but could not send more than \
                     {reached}.",
                    occupied,
                    reached
                ),
            ),
            false if facts.outrun_the_path() => (
                Support::For,
                message!(
                    "shaper-sender-held-up",
                    "The sending threads were held up by soft interrupts, those of a queue on the path (occupied \
                     for {occupied}), but could not send more than {reached}.",
                    occupied,
                    reached
                ),
            ),
            false => (
                Support::Hint,
                message!(
                    "shaper-sender-had-little-time",
                    "The sending threads had little time to spare (occupied for {occupied}), but could not send \
                     more than {reached}.",
                    occupied,
                    reached
                ),
            ),
        };
        return Some(Opinion::new(support, text));
    }
    let reached = bits(facts.reached);
    let through = match &facts.line {
        Some(line) => message!(
            "shaper-came-through-of-links",
            "{reached} came through, {share} of what the links are known to carry.",
            reached,
            share = percent(line.share)
        ),
        None => message!("shaper-came-through", "{reached} came through.", reached),
    };
    let text = match lost <= USUAL_LOSS {
        true => through,
        false => message!(
            "shaper-datagrams-lost",
            "{share} of the datagrams were lost between the two hosts.",
            share = percent(lost)
        )
        .and(through),
    };
    // Loss alone does not show a rate: a bad path loses datagrams at any rate. Arrivals that keep to a rate do.
    let support = match (lost, facts.loss_pattern()) {
        (..=NOTABLE_LOSS, _) => Support::Against,
        (MOST.., Some(LossPattern::Excess)) => Support::Strong,
        (_, Some(LossPattern::Excess)) => Support::For,
        (_, Some(LossPattern::ByChance)) => Support::Hint,
        (MOST.., _) => Support::For,
        _ => Support::Hint,
    };
    Some(Opinion::new(support, text))
}

/// A host without time to spare hides what the path would let through.
fn hosts_are_busy(facts: &FlowFacts) -> Option<Opinion> {
    let ends = [&facts.sender, &facts.receiver];
    let busiest = ends.iter().filter(|end| !end.polls).map(|end| end.occupied()).fold(0.0, f64::max);
    // Where soft interrupts may have taken a UDP sender's time, a queue's may have.
    let unsure = facts.work == Work::Udp && facts.sender.interruptible >= INTERRUPTED;
    let busy = busiest >= OCCUPIED && !facts.outrun_the_path() && !unsure
        || ends.iter().any(|end| end.is_throttled())
        || facts.late_kernel_thread().is_some();
    busy.then(|| {
        Opinion::new(
            Support::Against,
            message!("shaper-busy-host", "A host had no time to spare, so the path's limit is unknown."),
        )
    })
}

fn of_tcp(facts: &FlowFacts) -> Option<Opinion> {
    let tcp = facts.tcp.as_ref()?;
    if facts.vanished.is_some() {
        return Some(Opinion::new(Support::Against, nothing_arrived()));
    }
    let busiest = facts.sender.occupied().max(facts.receiver.occupied());
    if let Some(busy) = hosts_are_busy(facts) {
        return Some(busy);
    }
    if tcp.fills_window() {
        return Some(Opinion::new(Support::Against, window_full()));
    }
    if facts.is_starting_up() {
        let text =
            message!("shaper-start-up", "The rate still rose when the window closed, so the path's limit is unknown.");
        return Some(Opinion::new(Support::Against, text));
    }
    if facts.lost_on_return >= RETURN_LOSS
        && facts.returns_keep_a_rate
        && tcp.retransmitted <= facts.lost_on_return / 2.0
    {
        let text = message!(
            "shaper-return-loss",
            "{lost} of the packets that the receiving host sent back did not reach the sending one, and \
             {retransmitted} of the segments were retransmitted; those that came back kept to a rate: \
             acknowledgements came too slowly.",
            lost = percent(facts.lost_on_return),
            retransmitted = percent(tcp.retransmitted)
        );
        let next = message!(
            "shaper-next-return",
            "Measure the other direction (--direction receive): the return path carries little."
        );
        return Some(Opinion::new(Support::Strong, text).at(LimitPlace::ReturnPath).then(next));
    }
    let held_back = tcp.window_limited + tcp.buffer_limited;
    if held_back >= HELD_BACK {
        let text = message!(
            "shaper-held-back",
            "TCP was held back by windows and buffers for {share} of the time.",
            share = percent(held_back)
        );
        return Some(Opinion::new(Support::Against, text));
    }
    let (occupied, rate) = (percent(busiest), bits(tcp.flow_bps));
    let through = match busiest < OCCUPIED {
        true => message!(
            "shaper-hosts-had-time",
            "The hosts had time to spare (occupied for {occupied}), and the path let through {rate}.",
            occupied,
            rate
        ),
        false => message!(
            "shaper-hosts-ahead",
            "The hosts were ahead of the path (occupied for {occupied}), and the path let through {rate}.",
            occupied,
            rate
        ),
    };
    let opinion = on_path(facts, tcp);
    let opinion = Opinion { text: through.and(opinion.text), ..opinion };
    Some(match facts.queues_on_return() {
        Some(_) if opinion.by_elimination => opinion.then(advice()),
        Some((there, back)) if opinion.support >= Support::For && back - there >= SAMPLING_SKEW => {
            let text = opinion.text.and(message!(
                "shaper-return-queue",
                "Data took {there} to the receiver, and the rest of the round trip {back}: acknowledgements wait \
                 on their way back.",
                there = time(there),
                back = time(back)
            ));
            let next = message!(
                "shaper-next-return",
                "Measure the other direction (--direction receive): the return path carries little."
            );
            // How long data took is an estimate by both ends' counts: what they miss lets it appear shorter.
            let is_clear = back >= CLEAR_RETURN * there;
            let support = if is_clear { opinion.support } else { opinion.support.min(Support::For) };
            Opinion { text, support, ..opinion }.at(LimitPlace::ReturnPath).then(next)
        }
        // It may stand on either way.
        Some(_) => Opinion { support: opinion.support.min(Support::For), ..opinion }.then(advice()),
        None => opinion.at(LimitPlace::ForwardPath).then(advice()),
    })
}

/// What stands on the path of TCP whose hosts have time: a queue, congestion marks, loss, or nothing that is seen.
fn on_path(facts: &FlowFacts, tcp: &Tcp) -> Opinion {
    let busiest = facts.sender.occupied().max(facts.receiver.occupied());
    let course = facts.tcp_course();
    // Of what is lost more often the receiver's acknowledgements come late, which makes round trips grow as well.
    let interrupts = facts.sender.is_full_of_interrupts() || facts.receiver.is_full_of_interrupts();
    let sure = busiest < NEARLY_OCCUPIED && tcp.retransmitted <= NOTABLE_LOSS && !interrupts && !facts.is_brief_volume;
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
        let share = percent(course.marked);
        let text = message!("shaper-marked", "{share} of the segments were marked for congestion there.", share);
        return Opinion::new(strong, text);
    }
    if facts.queue_on_path() {
        let while_queued = tcp.min_rtt + course.map_or(0.0, |course| course.queue);
        let (least, loaded) = (time(tcp.min_rtt), time(if tcp.queued() { tcp.rtt } else { while_queued }));
        let text = match course {
            Some(course) => message!(
                "shaper-queue-for",
                "Meanwhile a round trip grew from {least} to {loaded} in a queue on it for {share} of the time.",
                least,
                loaded,
                share = percent(course.queued)
            ),
            None => message!(
                "shaper-queue",
                "Meanwhile a round trip grew from {least} to {loaded} in a queue on it.",
                least,
                loaded
            ),
        };
        return Opinion::new(strong, text);
    }
    if let Some(pace) = facts.pace_of_path() {
        let support = if kept || busiest >= NEARLY_OCCUPIED || interrupts { Support::For } else { Support::Strong };
        return Opinion::new(support, pace_of_path(pace, tcp));
    }
    if tcp.is_reordered() {
        let text = message!("shaper-reordered", "Segments overtook one another there, and TCP took that for loss.");
        return Opinion::new(Support::Hint, text);
    }
    let lost = || percent(tcp.retransmitted);
    let like_policer = || {
        message!(
            "shaper-like-policer",
            "TCP lost {lost}, as by a policer, which at one load looks like a bad path.",
            lost = lost()
        )
    };
    if tcp.is_stalled() {
        let text = message!(
            "shaper-stalled",
            "TCP lost {lost} and waited for timeouts for {share}, as by a policer, which at one load looks like a \
             bad path.",
            lost = lost(),
            share = percent(tcp.stalled)
        );
        return Opinion::new(Support::Hint, text);
    }
    if !tcp.goes_by_loss() {
        return match tcp.retransmitted {
            _ if tcp.is_heavy() => {
                let text = message!("shaper-heavy", "TCP lost {lost}, more than a bad path does.", lost = lost());
                Opinion::new(Support::For, text)
            }
            lost if lost > NOTABLE_LOSS => Opinion::new(Support::Hint, like_policer()),
            // Who has work for most of the time may have been short of it in each burst.
            _ if busiest >= NEARLY_OCCUPIED => {
                let text = message!("shaper-no-window-or-buffer", "No window or buffer explains it.");
                Opinion::new(Support::Hint, text).by_elimination()
            }
            _ => {
                let text = message!("shaper-nothing-else", "No window, buffer or loss explains it.");
                Opinion::new(Support::For, text).by_elimination()
            }
        };
    }
    let room = tcp.allowed(tcp.min_rtt) / tcp.active();
    if facts.loss_pattern() == Some(LossPattern::Clustered) && tcp.retransmitted > NOTABLE_LOSS {
        let text = message!(
            "shaper-clustered",
            "TCP lost {lost}, in clusters as by a policer, a queue that overflows or bursts of errors.",
            lost = lost()
        );
        return Opinion::new(Support::Hint, text);
    }
    // A TCP that goes by loss grows until something is lost or waits. Where nothing does, it has not met the path's limit.
    if tcp.retransmitted <= 0.0 {
        let text = message!("shaper-neither", "Neither a queue nor a loss shows why.");
        return Opinion::new(Support::Hint, text);
    }
    if room >= FAR && !tcp.is_heavy() {
        let support = if busiest >= NEARLY_OCCUPIED { Support::Hint } else { Support::For };
        let text = message!("shaper-allows-more", "The loss of {lost} would allow more.", lost = lost());
        return Opinion::new(support, text).by_elimination();
    }
    Opinion::new(Support::Hint, like_policer())
}
