//! What limited a result: one file for each limit, each weighing what speaks for and against its own.
//!
//! A rule sees the [`Facts`] and nothing else, and knows nothing of the other rules. The best supported limit is the verdict;
//! it is sure where its sign is strong and nothing speaks for another. Where nothing speaks for any, the verdict is
//! `cannot-tell`, and says what was missing.

mod calls;
mod copied;
mod device;
mod facts;
mod latency;
mod offered_load;
mod path_loss;
mod receiver_buffer;
mod receiver_cpu;
mod sender_cpu;
mod server;
mod shaper;
mod storage_read;
mod storage_write;
mod tester;
mod window;
mod wire;

pub(crate) use copied::CopyFacts;
pub(crate) use facts::{Facts, bits, percent};
pub(crate) use path_loss::NOTABLE as NOTABLE_LOSS;

use linerate_model::{Confidence, Limit, Stand, Verdict, Weighed};

/// What a rule says of its limit.
#[derive(Debug, Clone, PartialEq)]
struct Opinion {
    stand: Stand,
    text: String,
    /// What to try, if it is the limit.
    next: &'static str,
    /// Whatever time the hypervisor took, it cannot have brought this about.
    despite_steal: bool,
}

impl Opinion {
    fn new(stand: Stand, text: impl Into<String>) -> Self {
        Self { stand, text: text.into(), next: "", despite_steal: false }
    }

    fn then(self, next: &'static str) -> Self {
        Self { next, ..self }
    }

    /// Holds whatever time the hypervisor took.
    fn despite_steal(self) -> Self {
        self.despite_steal_if(true)
    }

    /// The same where `sure` says so.
    fn despite_steal_if(self, sure: bool) -> Self {
        Self { despite_steal: sure, ..self }
    }
}

/// A rule; none where its limit has no meaning for this kind of result.
type Rule = fn(&Facts) -> Option<Opinion>;

/// One rule a limit, in the order of the path: what comes first rules where two are equally well supported, since a load
/// that is met asks no more of the wire, a wire that is full no more of the hosts, and so on.
const RULES: [(Limit, Rule); 12] = [
    (Limit::OfferedLoad, offered_load::weigh),
    (Limit::Wire, wire::weigh),
    (Limit::Tester, tester::weigh),
    (Limit::Server, server::weigh),
    (Limit::ReceiverBuffer, receiver_buffer::weigh),
    (Limit::ReceiverCpu, receiver_cpu::weigh),
    (Limit::SenderCpu, sender_cpu::weigh),
    (Limit::Window, window::weigh),
    (Limit::PathLoss, path_loss::weigh),
    (Limit::Device, device::weigh),
    (Limit::Shaper, shaper::weigh),
    (Limit::Latency, latency::weigh),
];

/// A rule of copies.
type CopyRule = fn(&CopyFacts) -> Option<Opinion>;

/// One rule a limit of copies, in the order of the path. Storage comes after the wire, which is known exactly, and before the
/// processors: what waits for storage waits for no core.
const COPY_RULES: [(Limit, CopyRule); 9] = [
    (Limit::Wire, wire::of_copy),
    (Limit::Server, server::of_copy),
    (Limit::StorageRead, storage_read::weigh),
    (Limit::StorageWrite, storage_write::weigh),
    (Limit::ReceiverCpu, receiver_cpu::of_copy),
    (Limit::SenderCpu, sender_cpu::of_copy),
    (Limit::Window, window::of_copy),
    (Limit::PathLoss, path_loss::of_copy),
    (Limit::Shaper, shaper::of_copy),
];

/// With more of a host's time taken by the hypervisor, no verdict is sure that this time could have brought about.
const STEAL_SURE: f64 = 0.05;

/// The verdict on a result.
pub(crate) fn verdict(facts: &Facts) -> Verdict {
    rule(RULES.iter().filter_map(|(limit, weigh)| Some((*limit, weigh(facts)?))).collect(), facts.steal)
}

/// The verdict on a copy.
pub(crate) fn of_copy(facts: &CopyFacts) -> Verdict {
    rule(COPY_RULES.iter().filter_map(|(limit, weigh)| Some((*limit, weigh(facts)?))).collect(), facts.steal)
}

/// The best supported limit of those weighed; `steal` is the share of a host's time that the hypervisor took.
fn rule(opinions: Vec<(Limit, Opinion)>, steal: f64) -> Verdict {
    let weighed = opinions
        .iter()
        .map(|(limit, opinion)| Weighed { limit: *limit, stand: opinion.stand, text: opinion.text.clone() })
        .collect();
    // The first of the equally well supported: `max_by_key` gives the last.
    let best = opinions.iter().rev().filter(|(_, o)| o.stand >= Stand::Hint).max_by_key(|(_, o)| o.stand);
    let Some((limit, best)) = best else {
        // What was missing; if nothing was, what did not hold.
        let missing = opinions.iter().any(|(_, opinion)| opinion.stand == Stand::Unknown);
        let told = opinions.iter().filter(|(_, opinion)| !missing || opinion.stand == Stand::Unknown);
        let evidence = told.map(|(_, opinion)| opinion.text.clone()).collect();
        return Verdict { weighed, ..Verdict::new(Limit::CannotTell, Confidence::Low, evidence) };
    };
    // Where all that was asked for arrived, or all that the line carries, nothing else can have held it back.
    let bound = best.stand == Stand::Strong && matches!(limit, Limit::OfferedLoad | Limit::Wire);
    let speaks = |(other, opinion): &&(Limit, Opinion)| !bound && other != limit && opinion.stand >= Stand::For;
    let rivals: Vec<&(Limit, Opinion)> = opinions.iter().filter(speaks).collect();
    let stolen = steal > STEAL_SURE && !best.despite_steal;
    let confidence = match (best.stand, rivals.is_empty()) {
        (Stand::Strong, true) if !stolen => Confidence::High,
        (Stand::Strong, _) | (Stand::For, true) => Confidence::Medium,
        _ => Confidence::Low,
    };
    let mut evidence = vec![best.text.clone()];
    evidence.extend(rivals.iter().map(|(other, rival)| format!("Nor is the {other} ruled out. {}", rival.text)));
    if stolen {
        evidence.push(format!("The hypervisor took {} of a host's time, which may have part in it.", percent(steal)));
    }
    let next = [best.next].into_iter().filter(|next| !next.is_empty()).map(str::to_owned).collect();
    Verdict { limit: *limit, confidence, evidence, next, weighed, proofs: Vec::new() }
}

#[cfg(test)]
mod copy_tests;
#[cfg(test)]
mod tests;
