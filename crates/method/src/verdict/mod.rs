//! What limited a result: one file for each limit, which weighs the evidence for and against it.
//!
//! A verdict takes three steps:
//! 1. **FlowFacts** (`facts/`) are drawn once from the trials. Thresholds that several rules share stand there too.
//! 2. **Rules**: each weighs its own limit from the facts alone, and never asks what another rule found. What rules of one
//!    kind share is in `processor.rs` and `storage.rs`.
//! 3. **Exclusion** ([`judge`]): the best supported limit is the verdict. Its confidence is high if it meets all conditions of
//!    `confidence.rs`. What is only left over by elimination has medium confidence at
//!    the most, and low confidence beside anything unexplained. Where no limit has good signs, the verdict is `cannot-tell`:
//!    it names the limits that are left, or says what was missing.
//!
//! In a window that is too short for shares of time, only what was counted is evidence ([`Opinion::counted`]).

mod confidence;
mod corruption;
mod device;
mod facts;
mod host_bus;
mod latency;
mod mtu_black_hole;
mod offered_load;
mod outage;
mod path_loss;
mod processor;
mod receiver_buffer;
mod receiver_cpu;
mod send_buffer;
mod sender_cpu;
mod server;
mod shaper;
mod softirq_cpu;
mod start_up;
mod storage;
mod storage_read;
mod storage_write;
mod tester;
mod window;
mod wire;

pub(crate) use confidence::{allowed, interleaved};
pub(crate) use facts::{
    BusUse, CopyEnd, CopyFacts, FlowFacts, NOTABLE_LOSS, ServerEnd, ServerLoad, Tcp, WindowFacts, bits, percent,
};

use confidence::{Waited, checks, is_filled};
use facts::{AMPLE, NEARLY_OCCUPIED, OCCUPIED, Work, time};
use linerate_model::{
    Confidence, ConfidenceCondition, Limit, LimitPlace, Message, Steadiness, Support, Verdict, Weighed, message,
};
use processor::of_requests;
use receiver_cpu::DESTINATION_STAGES;
use sender_cpu::SOURCE_STAGES;

/// What a rule says of its limit.
#[derive(Debug, Clone, PartialEq)]
struct Opinion {
    support: Support,
    text: Message,
    /// Where on the path the limit is; none where that is not known.
    place: Option<LimitPlace>,
    /// What to try, if it is the limit.
    next: Option<Message>,
    /// Nothing was counted that grows with this limit: it is what is left when others are excluded.
    by_elimination: bool,
    /// Share of what this limit allows that was used, 0 to 1; none where it has no measure.
    used: Option<f64>,
    /// Whatever time the hypervisor took, it cannot have caused this.
    despite_steal: bool,
    /// Rests on counts over the window, and on no share of time.
    counted: bool,
}

impl Opinion {
    fn new(support: Support, text: Message) -> Self {
        Self {
            support,
            text,
            place: None,
            next: None,
            by_elimination: false,
            used: None,
            despite_steal: false,
            counted: false,
        }
    }

    fn at(self, place: LimitPlace) -> Self {
        Self { place: Some(place), ..self }
    }

    fn then(self, next: Message) -> Self {
        Self { next: Some(next), ..self }
    }

    /// Lowers the support of a loss on the path where the receiving system does not count what its sockets drop: it may have lost the
    /// datagrams itself, the more so if its threads had hardly time to receive them.
    fn unless_dropped_uncounted(self, facts: &FlowFacts) -> Self {
        let lost = facts.udp.is_some_and(|udp| udp.drops_uncounted && udp.wire > NOTABLE_LOSS);
        if !lost {
            return self;
        }
        let most = if facts.receiver.occupied() < NEARLY_OCCUPIED { Support::For } else { Support::Hint };
        let why = message!(
            "loss-uncounted",
            "The receiving host's system does not count what its sockets drop, so that it may have lost a part of that itself."
        );
        Self { support: self.support.min(most), text: self.text.and(why), ..self }
    }

    /// Marks an opinion that only says that nothing else explains the result.
    fn by_elimination(self) -> Self {
        Self { by_elimination: true, ..self }
    }

    /// With the share of what the limit allows that was used.
    fn used(self, share: f64) -> Self {
        Self { used: Some(share), ..self }
    }

    /// Marks an opinion that holds whatever time the hypervisor took.
    fn despite_steal(self) -> Self {
        self.despite_steal_if(true)
    }

    /// The same where `holds`.
    fn despite_steal_if(self, holds: bool) -> Self {
        Self { despite_steal: holds, ..self }
    }

    /// Marks an opinion that rests on counts alone, which are exact in a window of any length.
    fn counted(self) -> Self {
        Self { counted: true, ..self }
    }

    /// Lowers an opinion that rests on shares of time to a hint, for a window too short to show them.
    fn within_brief(self, window: &WindowFacts) -> Self {
        if self.counted || self.support <= Support::Hint {
            return self;
        }
        let text = self.text.and(message!(
            "verdict-brief-window",
            "But the window of {time} is too short to show that: measure longer (--time), or send more (--bytes).",
            time = time(window.seconds)
        ));
        Self { support: Support::Hint, text, ..self }
    }
}

/// How a limit is weighed, by the facts that it needs. A function returns none where its limit has no meaning for what was
/// measured.
enum Rule {
    /// Needs the facts of a load of flows.
    Flows(fn(&FlowFacts) -> Option<Opinion>),
    /// Needs the facts of a copy.
    Copy(fn(&CopyFacts) -> Option<Opinion>),
    /// Can be weighed from either.
    Either(fn(&FlowFacts) -> Option<Opinion>, fn(&CopyFacts) -> Option<Opinion>),
}

impl Rule {
    fn of_flows(&self, facts: &FlowFacts) -> Option<Opinion> {
        match self {
            Self::Flows(weigh) | Self::Either(weigh, _) => weigh(facts),
            Self::Copy(_) => None,
        }
    }

    fn of_copy(&self, facts: &CopyFacts) -> Option<Opinion> {
        match self {
            Self::Copy(weigh) | Self::Either(_, weigh) => weigh(facts),
            Self::Flows(_) => None,
        }
    }
}

/// Every limit and its rule, in the order of the path after outages. Of two equally well supported limits the first is the verdict: a load
/// that is met asks no more of the wire, and a full wire asks no more of the hosts. Storage comes before the processors, as
/// a thread that waits for storage does not wait for a core.
const RULES: [(Limit, Rule); 21] = [
    (Limit::Outage, Rule::Either(outage::weigh, outage::of_copy)),
    (Limit::OfferedLoad, Rule::Flows(offered_load::weigh)),
    (Limit::Wire, Rule::Either(wire::weigh, wire::of_copy)),
    (Limit::HostBus, Rule::Either(host_bus::weigh, host_bus::of_copy)),
    (Limit::Tester, Rule::Flows(tester::weigh)),
    (Limit::Server, Rule::Either(server::weigh, server::of_copy)),
    (Limit::StorageRead, Rule::Copy(storage_read::weigh)),
    (Limit::StorageWrite, Rule::Copy(storage_write::weigh)),
    (Limit::ReceiverBuffer, Rule::Flows(receiver_buffer::weigh)),
    (Limit::ReceiverCpu, Rule::Either(receiver_cpu::weigh, receiver_cpu::of_copy)),
    (Limit::SenderCpu, Rule::Either(sender_cpu::weigh, sender_cpu::of_copy)),
    (Limit::SoftirqCpu, Rule::Flows(softirq_cpu::weigh)),
    (Limit::SendBuffer, Rule::Either(send_buffer::weigh, send_buffer::of_copy)),
    (Limit::Window, Rule::Either(window::weigh, window::of_copy)),
    (Limit::StartUp, Rule::Flows(start_up::weigh)),
    (Limit::Corruption, Rule::Flows(corruption::weigh)),
    (Limit::MtuBlackHole, Rule::Flows(mtu_black_hole::weigh)),
    (Limit::PathLoss, Rule::Either(path_loss::weigh, path_loss::of_copy)),
    (Limit::Device, Rule::Flows(device::weigh)),
    (Limit::Shaper, Rule::Either(shaper::weigh, shaper::of_copy)),
    (Limit::Latency, Rule::Flows(latency::weigh)),
];

/// Limits whose used shares differ by less than this are both named.
const BOTH_NAMED: f64 = 0.1;

/// What holds for all limits of one result.
struct Circumstances {
    window: WindowFacts,
    /// The measurement with the device bypassed alternated with this one.
    interleaved: bool,
    /// How long threads of the load waited for a core.
    waited: Waited,
    /// Other traffic on the interfaces of the load, in words. `None` if there was little.
    shared: Option<Message>,
    /// Share of a host's time that the hypervisor took.
    steal: f64,
    /// What was seen besides and nobody explained: with it, what is left over by elimination is hardly known.
    unexplained: Vec<Message>,
    steadiness: Option<Steadiness>,
}

/// The verdict on a load of flows.
pub(crate) fn of_flows(facts: &FlowFacts) -> Verdict {
    let opinions = RULES.iter().filter_map(|(limit, rule)| Some((*limit, rule.of_flows(facts)?))).collect();
    let circumstances = Circumstances {
        window: facts.window,
        interleaved: facts.tester_limit.as_ref().is_some_and(|(limit, _)| limit.interleaved),
        waited: waited(facts),
        shared: facts.other_traffic(),
        steal: facts.steal,
        unexplained: facts.unexplained(),
        steadiness: facts.steadiness,
    };
    judge(opinions, &circumstances)
}

/// How long threads of the load waited for a core. Ends of requests that share a machine wait for each other's turn on a core, which
/// takes no time from the load.
fn waited(facts: &FlowFacts) -> Waited {
    if facts.work == Work::Transact && facts.one_machine {
        let [sender, receiver] = [&facts.sender, &facts.receiver].map(|end| of_requests(facts, end).waited);
        return Waited { sender, receiver };
    }
    Waited { sender: facts.sender.waited, receiver: facts.receiver.waited }
}

/// The verdict on a copy.
pub(crate) fn of_copy(facts: &CopyFacts) -> Verdict {
    let opinions = RULES.iter().filter_map(|(limit, rule)| Some((*limit, rule.of_copy(facts)?))).collect();
    let circumstances = Circumstances {
        window: facts.window,
        interleaved: false,
        waited: Waited { sender: facts.waited(&SOURCE_STAGES), receiver: facts.waited(&DESTINATION_STAGES) },
        shared: None,
        steal: facts.steal,
        unexplained: Vec::new(),
        steadiness: None,
    };
    judge(opinions, &circumstances)
}

/// How well a share of the time at work supports a limit: what has no time to spare is what the others wait for.
fn support(share: f64) -> Support {
    match share {
        OCCUPIED.. => Support::Strong,
        NEARLY_OCCUPIED.. => Support::For,
        AMPLE.. => Support::Hint,
        _ => Support::Against,
    }
}

/// The best supported limit of those weighed, and which others it does not exclude.
fn judge(mut opinions: Vec<(Limit, Opinion)>, circumstances: &Circumstances) -> Verdict {
    let window = &circumstances.window;
    if window.is_brief() {
        opinions = opinions.into_iter().map(|(limit, opinion)| (limit, opinion.within_brief(window))).collect();
    }
    let weighed = opinions
        .iter()
        .map(|(limit, opinion)| Weighed { limit: *limit, support: opinion.support, text: opinion.text.clone() })
        .collect();
    // The first of the equally well supported, `max_by_key` gives the last; what is left over comes after what was seen.
    let rank = |(_, opinion): &&(Limit, Opinion)| (opinion.support, !opinion.by_elimination);
    let best = opinions.iter().rev().filter(|(_, opinion)| opinion.support >= Support::For).max_by_key(rank);
    let Some((limit, best)) = best else {
        return Verdict { weighed, steadiness: circumstances.steadiness, ..undecided(&opinions) };
    };
    // A load that was met and a line that is full exclude every other limit: nothing else can have held the result back. What is seen of
    // other limits during an outage is mostly its consequence.
    let is_outage = *limit == Limit::Outage && best.support == Support::Strong;
    let excludes = is_outage || is_filled(*limit, best);
    // Where something was seen, nothing is left over.
    let left_over = |opinion: &Opinion| opinion.by_elimination && !best.by_elimination;
    let good = |opinion: &Opinion| opinion.support >= Support::For && !left_over(opinion);
    let others = || opinions.iter().filter(|(other, opinion)| other != limit && good(opinion));
    let rivals: Vec<&(Limit, Opinion)> = others().filter(|_| !excludes).collect();
    let checks = checks(*limit, best, &rivals, circumstances);
    let unexplained = best.by_elimination && !circumstances.unexplained.is_empty();
    let confidence = match (best.support, rivals.is_empty()) {
        _ if unexplained => Confidence::Low,
        (Support::Strong, _) | (_, true) => allowed(&checks),
        _ => Confidence::Low,
    };
    let near = |opinion: &Opinion| match (best.used, opinion.used) {
        (Some(best), Some(other)) => (best - other).abs() <= BOTH_NAMED,
        _ => !excludes,
    };
    let also = others().filter(|(other, opinion)| {
        *limit != Limit::OfferedLoad && *other != Limit::OfferedLoad && opinion.support == best.support && near(opinion)
    });
    let also = also.map(|(other, _)| *other).collect();
    let mut evidence = vec![best.text.clone()];
    evidence.extend(rivals.iter().map(|(other, rival)| {
        message!("verdict-also", "The {other} may also limit it.", other = *other).and(rival.text.clone())
    }));
    if unexplained {
        evidence.extend(circumstances.unexplained.iter().cloned());
    }
    // Rivals are in the evidence already, and without positive evidence the other conditions change nothing.
    if best.support == Support::Strong && !best.by_elimination {
        let missed = checks.iter().filter(|check| !check.met);
        let lowering = missed.filter(|check| rivals.is_empty() || check.condition != ConfidenceCondition::NoOtherSign);
        evidence.extend(lowering.map(|check| check.text.clone()));
    }
    let next = best.next.iter().cloned().collect();
    Verdict {
        limit: *limit,
        place: best.place,
        section: None,
        steadiness: circumstances.steadiness,
        confidence,
        also,
        evidence,
        next,
        weighed,
        checks,
        proofs: Vec::new(),
    }
}

/// That no limit has good signs: between which it is open, or what was missing.
fn undecided(opinions: &[(Limit, Opinion)]) -> Verdict {
    let open: Vec<&(Limit, Opinion)> =
        opinions.iter().filter(|(_, opinion)| opinion.support == Support::Hint).collect();
    // Where there is no sign at all: what was missing; if nothing was, what did not hold.
    let missing = opinions.iter().any(|(_, opinion)| opinion.support == Support::Unknown);
    let told = opinions.iter().filter(|(_, opinion)| match (open.is_empty(), missing) {
        (false, _) => opinion.support == Support::Hint,
        (true, true) => opinion.support == Support::Unknown,
        (true, false) => true,
    });
    let evidence = told.map(|(_, opinion)| opinion.text.clone()).collect();
    let mut next: Vec<Message> = open.iter().filter_map(|(_, opinion)| opinion.next.clone()).collect();
    next.dedup();
    Verdict {
        also: open.iter().map(|(limit, _)| *limit).collect(),
        next,
        ..Verdict::new(Limit::CannotTell, Confidence::Low, evidence)
    }
}

#[cfg(test)]
mod tests;
