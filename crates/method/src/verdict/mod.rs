//! What limited a result: one file for each limit, which weighs the evidence for and against it.
//!
//! A verdict takes three steps:
//! 1. **FlowFacts** (`facts/`) are drawn once from the trials. Thresholds that several rules share stand there too.
//! 2. **Rules**: each weighs its own limit from the facts alone, and never asks what another rule found. What rules of one
//!    kind share is in `processor.rs` and `storage.rs`.
//! 3. **Exclusion** ([`judge`]): the best supported limit is the verdict. Its confidence is high where its evidence is strong
//!    and no other limit is supported too. Where no limit is supported, the verdict is `cannot-tell`, and says what was
//!    missing.

mod device;
mod facts;
mod latency;
mod offered_load;
mod path_loss;
mod processor;
mod receiver_buffer;
mod receiver_cpu;
mod sender_cpu;
mod server;
mod shaper;
mod storage;
mod storage_read;
mod storage_write;
mod tester;
mod window;
mod wire;

pub(crate) use facts::{CopyFacts, FlowFacts, NOTABLE_LOSS, bits, percent};

use facts::{AMPLE, NEARLY_OCCUPIED, OCCUPIED};
use linerate_model::{Confidence, Limit, Support, Verdict, Weighed};

/// What a rule says of its limit.
#[derive(Debug, Clone, PartialEq)]
struct Opinion {
    support: Support,
    text: String,
    /// What to try, if it is the limit.
    next: &'static str,
    /// Whatever time the hypervisor took, it cannot have caused this.
    despite_steal: bool,
}

impl Opinion {
    fn new(support: Support, text: impl Into<String>) -> Self {
        Self { support, text: text.into(), next: "", despite_steal: false }
    }

    fn then(self, next: &'static str) -> Self {
        Self { next, ..self }
    }

    /// Marks an opinion that holds whatever time the hypervisor took.
    fn despite_steal(self) -> Self {
        self.despite_steal_if(true)
    }

    /// The same where `holds`.
    fn despite_steal_if(self, holds: bool) -> Self {
        Self { despite_steal: holds, ..self }
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

/// Every limit and its rule, in the order of the path. Of two equally well supported limits the first is the verdict: a load
/// that is met asks no more of the wire, and a full wire asks no more of the hosts. Storage comes before the processors, as
/// a thread that waits for storage does not wait for a core.
const RULES: [(Limit, Rule); 14] = [
    (Limit::OfferedLoad, Rule::Flows(offered_load::weigh)),
    (Limit::Wire, Rule::Either(wire::weigh, wire::of_copy)),
    (Limit::Tester, Rule::Flows(tester::weigh)),
    (Limit::Server, Rule::Either(server::weigh, server::of_copy)),
    (Limit::StorageRead, Rule::Copy(storage_read::weigh)),
    (Limit::StorageWrite, Rule::Copy(storage_write::weigh)),
    (Limit::ReceiverBuffer, Rule::Flows(receiver_buffer::weigh)),
    (Limit::ReceiverCpu, Rule::Either(receiver_cpu::weigh, receiver_cpu::of_copy)),
    (Limit::SenderCpu, Rule::Either(sender_cpu::weigh, sender_cpu::of_copy)),
    (Limit::Window, Rule::Either(window::weigh, window::of_copy)),
    (Limit::PathLoss, Rule::Either(path_loss::weigh, path_loss::of_copy)),
    (Limit::Device, Rule::Flows(device::weigh)),
    (Limit::Shaper, Rule::Either(shaper::weigh, shaper::of_copy)),
    (Limit::Latency, Rule::Flows(latency::weigh)),
];

/// Share of a host's time taken by the hypervisor above which confidence is not high, where that time could have caused the
/// result.
const STEAL_NOTABLE: f64 = 0.05;

/// The verdict on a load of flows.
pub(crate) fn of_flows(facts: &FlowFacts) -> Verdict {
    judge(RULES.iter().filter_map(|(limit, rule)| Some((*limit, rule.of_flows(facts)?))).collect(), facts.steal)
}

/// The verdict on a copy.
pub(crate) fn of_copy(facts: &CopyFacts) -> Verdict {
    judge(RULES.iter().filter_map(|(limit, rule)| Some((*limit, rule.of_copy(facts)?))).collect(), facts.steal)
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

/// The best supported limit of those weighed, and which others it does not exclude. `steal` is the share of a host's time
/// that the hypervisor took.
fn judge(opinions: Vec<(Limit, Opinion)>, steal: f64) -> Verdict {
    let weighed = opinions
        .iter()
        .map(|(limit, opinion)| Weighed { limit: *limit, support: opinion.support, text: opinion.text.clone() })
        .collect();
    // The first of the equally well supported: `max_by_key` gives the last.
    let best = opinions.iter().rev().filter(|(_, o)| o.support >= Support::Hint).max_by_key(|(_, o)| o.support);
    let Some((limit, best)) = best else {
        // What was missing; if nothing was, what did not hold.
        let missing = opinions.iter().any(|(_, opinion)| opinion.support == Support::Unknown);
        let told = opinions.iter().filter(|(_, opinion)| !missing || opinion.support == Support::Unknown);
        let evidence = told.map(|(_, opinion)| opinion.text.clone()).collect();
        return Verdict { weighed, ..Verdict::new(Limit::CannotTell, Confidence::Low, evidence) };
    };
    // A load that was met and a line that is full exclude every other limit: nothing else can have held the result back.
    let excludes = best.support == Support::Strong && matches!(limit, Limit::OfferedLoad | Limit::Wire);
    let supported =
        |(other, opinion): &&(Limit, Opinion)| !excludes && other != limit && opinion.support >= Support::For;
    let rivals: Vec<&(Limit, Opinion)> = opinions.iter().filter(supported).collect();
    let stolen = steal > STEAL_NOTABLE && !best.despite_steal;
    let confidence = match (best.support, rivals.is_empty()) {
        (Support::Strong, true) if !stolen => Confidence::High,
        (Support::Strong, _) | (Support::For, true) => Confidence::Medium,
        _ => Confidence::Low,
    };
    let mut evidence = vec![best.text.clone()];
    evidence.extend(rivals.iter().map(|(other, rival)| format!("The {other} may also limit it. {}", rival.text)));
    if stolen {
        evidence.push(format!("The hypervisor took {} of a host's time, which may have contributed.", percent(steal)));
    }
    let next = [best.next].into_iter().filter(|next| !next.is_empty()).map(str::to_owned).collect();
    Verdict { limit: *limit, confidence, evidence, next, weighed, proofs: Vec::new() }
}

#[cfg(test)]
mod copy_tests;
#[cfg(test)]
mod tests;
