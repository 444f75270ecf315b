//! How busy the processor of one end was: what the rules of the sender's and the receiver's processor and of the server
//! share.

use super::Opinion;
use super::facts::{
    Calls, CopyEnd, CopyFacts, End, FlowFacts, INTERRUPTED, NEARLY_OCCUPIED, OCCUPIED, Work, percent, time,
};
use crate::terms;
use linerate_model::{CopyStage, MessageValue, Support, Text, WorkShare, message};

/// Drops by the NIC or the input queue beyond this are more than a burst now and then. (TCP takes a quarter of the rate away
/// at a loss of this order over any but the shortest path.)
const DROPPED: f64 = 0.0005;
/// A core this busy has no time left.
const CORE_BUSY: f64 = 0.9;

/// What the receiving host's processor says.
pub(super) fn of_receiver(facts: &FlowFacts) -> Opinion {
    let end = &facts.receiver;
    let own = match facts.work {
        Work::Transact => of_end(&of_requests(facts, end), terms::ANSWERING),
        Work::Tcp => of_stream(facts, end, terms::RECEIVING),
        Work::Udp => hint_if_both_wait(facts, of_end(end, terms::RECEIVING)),
    };
    let next = message!(
        "receiver-cpu-next",
        "A faster core, larger messages, or receiving spread over more cores (--flows, the NIC's queues) takes more."
    );
    if own.support < Support::Strong
        && let Some(thread) = facts.late_kernel_thread()
    {
        let text = message!(
            "receiver-cpu-kernel-thread",
            "The kernel's thread that receives ({thread}) was on a core for {busy} of the time and waited for one \
             for {waited}.",
            thread = &thread.name,
            busy = percent(thread.busy),
            waited = percent(thread.waited)
        );
        return Opinion::new(at_most(thread.waited, thread.busy), text).then(next);
    }
    let overflowed = facts.udp.map_or(0.0, |udp| udp.socket_buffer);
    let dropped = facts.udp.map_or(end.dropped, |udp| udp.receiver_queue);
    // A UDP sender does not wait for its receiver, so a receiver that is late and loses nothing costs no rate.
    if facts.work == Work::Udp && own.support >= Support::Hint && overflowed.max(dropped) <= DROPPED {
        let text = own.text.and(message!(
            "receiver-cpu-took-all",
            "But the receiving host lost hardly any of the datagrams that arrived."
        ));
        return Opinion::new(Support::Against, text);
    }
    if own.support < Support::Strong && overflowed > DROPPED && facts.reader_is_late() {
        let text = own.text.and(message!(
            "receiver-cpu-overflowed",
            "Meanwhile {share} of the datagrams found no room in the socket's buffer.",
            share = percent(overflowed)
        ));
        return Opinion::new(at_most(end.waited, end.busy), text).then(next);
    }
    if own.support < Support::Strong && dropped > DROPPED {
        let text = message!(
            "receiver-cpu-dropped",
            "The receiving host dropped {dropped} of the packets in its NIC or input queue; its busiest core was \
             busy for {busy} of the time.",
            dropped = percent(dropped),
            busy = percent(end.busiest_core)
        );
        let support = if end.busiest_core >= CORE_BUSY { Support::Strong } else { Support::For };
        return Opinion::new(support, text).then(next);
    }
    own.then(next)
}

/// How well it is supported that a thread is too slow that `waited` for a core, and was `busy` on one, so much of the time: whoever else
/// has the core may be what it waits for.
fn at_most(waited: f64, busy: f64) -> Support {
    if waited > busy { Support::For } else { Support::Strong }
}

/// What an end of a stream says of its own time: nothing where both ends were ahead of the path, and never surely where soft interrupts
/// took it, which may be anybody's.
pub(super) fn of_stream(facts: &FlowFacts, end: &End, does: &'static Text) -> Opinion {
    let opinion = of_end(end, does);
    if opinion.support < Support::Hint || end.is_throttled() {
        return opinion;
    }
    let opinion = hint_if_both_wait(facts, opinion);
    if !facts.outrun_the_path() {
        // A core that has time for nothing but them is the limit, and not the thread that they ran on top of.
        if facts.sender.is_full_of_interrupts() || facts.receiver.is_full_of_interrupts() {
            let text = opinion
                .text
                .and(message!("cpu-soft-interrupts-filled", "Soft interrupts filled a core of the host meanwhile."));
            return Opinion::new(opinion.support.min(Support::Hint), text);
        }
        return match end.interruptible {
            INTERRUPTED.. => {
                let most = percent(end.interruptible);
                let text = opinion.text.and(message!(
                    "cpu-soft-interrupts-of-that",
                    "Up to {most} of that may have been soft interrupts.",
                    most
                ));
                Opinion::new(opinion.support.min(Support::For), text)
            }
            _ => opinion,
        };
    }
    let why = match &facts.tcp {
        Some(tcp) => message!(
            "cpu-queue-on-path",
            "But what was sent stood in a queue on the path, where a round trip grew from {least} to {loaded}, \
             and the receiver's window was open.",
            least = time(tcp.min_rtt),
            loaded = time(tcp.rtt)
        ),
        None => message!(
            "cpu-queue-lets-go",
            "But at least {share} of that was soft interrupts, from a queue that releases packets.",
            share = percent(facts.sender.interrupted)
        ),
    };
    Opinion::new(Support::Against, opinion.text.and(why))
}

/// Lowers the `opinion` of one end to a hint where both ends share a machine and the threads of both waited for a core: the cores
/// are too few, and either end may be the slower one.
fn hint_if_both_wait(facts: &FlowFacts, opinion: Opinion) -> Opinion {
    let (sender, receiver) = (&facts.sender, &facts.receiver);
    let both_wait = facts.one_machine && sender.is_kept_waiting() && receiver.is_kept_waiting();
    if opinion.support <= Support::Hint || !both_wait || sender.is_throttled() || receiver.is_throttled() {
        return opinion;
    }
    let text = opinion.text.and(message!(
        "cpu-both-wait",
        "Both ends are on one machine, and the threads of both waited for a core ({sender} and {receiver} of the \
         time).",
        sender = percent(sender.waited),
        receiver = percent(receiver.waited)
    ));
    Opinion::new(Support::Hint, text)
}

/// An end of requests: where each waits for the one before, it works in turn with the other end.
pub(super) fn of_requests(facts: &FlowFacts, end: &End) -> End {
    if facts.calls.as_ref().is_some_and(Calls::overlap) { end.clone() } else { end.in_turn() }
}

/// What the time says that the stages at one end of a copy took of the processor.
pub(super) fn of_stages(
    facts: &CopyFacts,
    end: &CopyEnd,
    stages: &[CopyStage],
    whose: &'static Text,
) -> Option<Opinion> {
    if let Some((share, cores)) = end.throttled.filter(|_| end.is_throttled()) {
        let text = message!(
            "cpu-quota-of-copy",
            "The {whose} CPU quota ({cores} of a core) was used up in {share} of its periods.",
            whose,
            cores = MessageValue::number(cores, 2),
            share = percent(share)
        );
        return Some(Opinion::new(Support::Strong, text).despite_steal());
    }
    let (stage, WorkShare { cpu, queued, .. }) = facts.computes(stages)?;
    let mut text = message!(
        "cpu-stage",
        "Of the {whose} stages, {stage} used the CPU most: it was on a core for {busy} of the time and waited for \
         one for {waited}.",
        whose,
        stage,
        busy = percent(cpu),
        waited = percent(queued)
    );
    let mut share = cpu + queued;
    if facts.in_turn {
        let (own, all) = (facts.computed(stages), facts.computed(&CopyStage::ALL));
        text = text.and(message!(
            "cpu-lane",
            "A lane does all stages in turn: together they had a core or waited for one for {share}.",
            share = percent(all)
        ));
        // The end that takes more of it is what to make faster.
        share = if own >= all / 2.0 { all } else { own };
    }
    let support = match share {
        OCCUPIED.. => Support::Strong,
        NEARLY_OCCUPIED.. => Support::Hint,
        _ => Support::Against,
    };
    Some(Opinion::new(support, text))
}

/// What an end's own time says.
pub(super) fn of_end(end: &End, does: &'static Text) -> Opinion {
    if end.unseen {
        return Opinion::new(
            Support::Unknown,
            message!("cpu-unseen", "The {does} host runs no agent, so its processor was not watched.", does),
        );
    }
    if let Some((share, cores)) = end.throttled.filter(|_| end.is_throttled()) {
        let text = message!(
            "cpu-quota",
            "The {does} host's CPU quota ({cores} of a core) was used up in {share} of its periods.",
            does,
            cores = MessageValue::number(cores, 2),
            share = percent(share)
        );
        return Opinion::new(Support::Strong, text).despite_steal();
    }
    if end.polls {
        return Opinion::new(
            Support::Unknown,
            message!(
                "cpu-polls",
                "The {does} threads polled all the time (--busy-poll): that they were on a core does not say that they had work.",
                does
            ),
        );
    }
    let text = match end.waited {
        0.01.. => message!(
            "cpu-busy-and-waited",
            "The {does} threads were on a core for {busy} of the time and waited for one for {waited}.",
            does,
            busy = percent(end.busy),
            waited = percent(end.waited)
        ),
        _ => message!(
            "cpu-busy",
            "The {does} threads were on a core for {busy} of the time.",
            does,
            busy = percent(end.busy)
        ),
    };
    let support = match end.occupied() {
        OCCUPIED.. => at_most(end.waited, end.busy),
        NEARLY_OCCUPIED.. => Support::Hint,
        _ => Support::Against,
    };
    Opinion::new(support, text).used(end.occupied())
}
