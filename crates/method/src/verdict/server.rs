//! The server: calls spend their time in it, and not on the path or at their caller.
//!
//! A server that times its calls shows its share of those in flight: its mean time for a call times the calls per second, over the
//! number in flight (Little's law). Its times miss the effect of a CPU quota, because a stopped server takes no call from its
//! socket; so its processor is weighed too. Any other server is judged from outside: calls took far longer than the path's round
//! trip while the link and the caller had time.

use super::facts::{
    Calls, CopyFacts, FlowFacts, MANY_ROUND_TRIPS, MOSTLY_IN_SERVER, NEARLY_OCCUPIED, OCCUPIED, ServerEnd, ServerLoad,
    percent, time,
};
use super::{Opinion, processor, support};
use crate::terms;
use linerate_model::{CopyStage, LimitPlace, Message, MessageValue, NfsClass, Support, message};

/// With so many of the calls in flight in the server, nothing else could make them much faster.
const NEARLY_ALL: f64 = 0.8;
/// A link with so much of it in use may make calls wait.
const LINK_IN_USE: f64 = 0.5;
/// One class takes so many times as long as another: it is for the storage, not for the server as a whole.
const CLASSES_APART: f64 = 3.0;

fn advice() -> Message {
    message!(
        "server-next",
        "Look at the server: its disks (iostat), its threads (nfsstat -s) and its processor. The path has room."
    )
}

pub(super) fn weigh(facts: &FlowFacts) -> Option<Opinion> {
    let calls = facts.calls.as_ref()?;
    let time = match calls.in_server() {
        Some(share) => by_its_account(facts, calls, share),
        None => from_outside(facts, calls),
    };
    let processor = processor::of_receiver(facts);
    let said = if processor.support >= Support::Hint && processor.support >= time.support {
        Opinion::new(processor.support, processor.text.and(time.text))
    } else {
        Opinion::new(time.support, time.text.and(processor.text))
    };
    // A quota that stops it does so whatever else was taken; and where its host had time, a call's time in it is its own.
    let sure = facts.receiver.is_throttled() || facts.idle_despite_steal();
    Some(said.at(LimitPlace::Server).despite_steal_if(sure).then(advice()).counted())
}

/// Whether the server's own agent saw its disk or a core full while its clients waited for it. Nothing else raises confidence: of a
/// server that nobody looks at, what the path to it takes is not told apart.
fn with_load(waited: Support, load: Option<&ServerLoad>) -> (Support, Option<Message>) {
    let Some(load) = load else { return (waited, None) };
    let full = load.fullest() >= OCCUPIED && !load.shared;
    let support = if full && waited >= Support::For { Support::Strong } else { waited };
    (support, Some(load.in_words()))
}

fn by_its_account(facts: &FlowFacts, calls: &Calls, share: f64) -> Opinion {
    // A server that is kept from its core by others has calls for longer than it takes itself.
    let support = match share {
        NEARLY_ALL.. if !facts.receiver.is_kept_waiting() => Support::Strong,
        MOSTLY_IN_SERVER.. => Support::For,
        _ => Support::Against,
    };
    let service = calls.service.unwrap_or_default();
    let text = message!(
        "server-account",
        "Of {calls} calls in flight at a time the server had {own} ({share}), each for {time}.",
        calls = MessageValue::number(calls.under_way, 1),
        own = MessageValue::number(calls.under_way * share, 1),
        share = percent(share),
        time = time(service)
    )
    .and(classes(calls));
    Opinion::new(support, text)
}

/// The opinion on a server that keeps no account of its calls.
fn from_outside(facts: &FlowFacts, calls: &Calls) -> Opinion {
    let response = time(calls.response);
    let Some(round_trip) = calls.round_trip else {
        let text = message!(
            "server-unknown",
            "The server's time per call and the path's round trip (UDP) are unknown; a call took {response}.",
            response
        );
        return Opinion::new(Support::Unknown, text);
    };
    let trips = calls.response / round_trip;
    let text = message!(
        "server-call",
        "A call took {response}, {trips} times the path's round trip of {round_trip}.",
        response,
        trips = MessageValue::number(trips, 1),
        round_trip = time(round_trip)
    )
    .and(classes(calls));
    let in_use = facts.line.as_ref().map(|line| line.share);
    let idle = in_use.is_some_and(|share| share < LINK_IN_USE) && facts.sender.busy < NEARLY_OCCUPIED && !facts.loses();
    let waited = match (trips >= MANY_ROUND_TRIPS, idle) {
        (true, true) => Support::For,
        (true, false) => Support::Hint,
        (false, _) => Support::Against,
    };
    let (support, load) = with_load(waited, calls.server.as_ref());
    Opinion::new(support, text.and(load))
}

/// Which class was slow, where another was not.
fn classes(calls: &Calls) -> Option<Message> {
    let by_time = |a: &&(NfsClass, f64), b: &&(NfsClass, f64)| a.1.total_cmp(&b.1);
    let (slowest, fastest) = (calls.classes.iter().max_by(by_time), calls.classes.iter().min_by(by_time));
    match (slowest, fastest) {
        (Some((slow, longest)), Some((fast, shortest))) if *longest > CLASSES_APART * shortest => {
            let name = |class: &NfsClass| match class {
                NfsClass::Read => terms::READS,
                NfsClass::Write => terms::WRITES,
                NfsClass::Other => terms::OTHER_OPERATIONS,
            };
            Some(message!(
                "server-classes",
                "To their callers {slow} took {slow_time}, {fast} {fast_time}.",
                slow = name(slow),
                slow_time = time(*longest),
                fast = name(fast),
                fast_time = time(*shortest)
            ))
        }
        _ => None,
    }
}

/// The file server that a copy is read from or written to: the stages that ask it waited for its answers. What the path to it
/// takes of that is not told apart, so confidence is high only where an agent on the server saw its disk or a core full.
pub(super) fn of_copy(facts: &CopyFacts) -> Option<Opinion> {
    use CopyStage::{Create, List, Open, Read, Sync, Write};
    let (share, text) = match facts.server? {
        ServerEnd::Read => {
            let (_, share) = facts.most_blocked(&[List, Open, Read]);
            let waited = percent(share);
            (
                share,
                message!("server-reading", "Reading waited for the server's answers for {waited} of the time.", waited),
            )
        }
        ServerEnd::Written => {
            let (_, written) = facts.most_blocked(&[Create, Write]);
            let share = (written + facts.blocked(Sync)).min(1.0);
            let waited = percent(share);
            (
                share,
                message!("server-writing", "Writing waited for the server's answers for {waited} of the time.", waited),
            )
        }
    };
    let next = message!(
        "server-next-copy",
        "More lanes (--lanes) ask more at a time; `linerate nfs` or `linerate stream` to the same host tells a \
         slow server from a slow path."
    );
    let (support, load) = with_load(support(share).min(Support::For), facts.server_load.as_ref());
    Some(Opinion::new(support, text.and(load)).at(LimitPlace::Server).then(next))
}
