//! Conditions of high confidence. Every verdict is checked against them here, and `linerate explain` lists them.

use super::facts::{WindowFacts, percent, time};
use super::{Circumstances, Opinion};
use linerate_model::{
    Confidence, ConfidenceCheck, ConfidenceCondition, Limit, Message, MessageValue, Support, message,
};

/// Fewest samples within the window. A sign that is absent half of the time is seen in all of seven samples with a probability of
/// 2^-7, below 1 %.
const FEWEST_SAMPLES: f64 = 7.0;
/// Largest difference between the counts of both ends: windows of two clocks are no closer over a second on a busy host.
const MAX_DIFFERENCE: f64 = 0.05;
/// Largest share of the time that threads of the load may wait for a core.
const MAX_WAITED: f64 = 0.1;
/// Share of a host's time taken by the hypervisor above which confidence is not high, where that time could have caused the
/// result.
const MAX_STEAL: f64 = 0.05;

/// Shares of the time that the threads of the load were ready and had no core.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Waited {
    pub(super) sender: f64,
    pub(super) receiver: f64,
}

/// Checks the conditions that apply to `limit`, the best supported one, with `rivals` that have good signs too.
pub(super) fn checks(
    limit: Limit,
    best: &Opinion,
    rivals: &[&(Limit, Opinion)],
    circumstances: &Circumstances,
) -> Vec<ConfidenceCheck> {
    let mut all = vec![positive_evidence(best), sampled(&circumstances.window)];
    all.extend(circumstances.window.difference.map(counts_agree));
    all.push(no_other_sign(limit, best, rivals, circumstances));
    all.extend(matches!(limit, Limit::Device | Limit::Tester).then(|| interleaved(circumstances.interleaved)));
    all.push(load_ran(limit, best, circumstances));
    all
}

/// The confidence that `checks` allow: high if all are met.
pub(crate) fn allowed(checks: &[ConfidenceCheck]) -> Confidence {
    if checks.iter().all(|check| check.met) { Confidence::High } else { Confidence::Medium }
}

/// Whether the two measurements of a comparison were interleaved. Otherwise their difference may be that of the machine at two times.
pub(crate) fn interleaved(is: bool) -> ConfidenceCheck {
    let text = match is {
        true => message!(
            "confidence-interleaved",
            "The measurement without the device alternated with this one, under the same conditions."
        ),
        false => message!(
            "confidence-not-interleaved",
            "The measurement without the device was made at another time, when the machine may have been busier or \
             quieter."
        ),
    };
    ConfidenceCheck { condition: ConfidenceCondition::Interleaved, met: is, text }
}

fn positive_evidence(best: &Opinion) -> ConfidenceCheck {
    let met = best.support == Support::Strong && !best.by_elimination;
    let text = match met {
        true => message!("confidence-counted", "Something was counted that accounts for the result by itself."),
        false => message!("confidence-not-counted", "Nothing was counted that accounts for the result by itself."),
    };
    ConfidenceCheck { condition: ConfidenceCondition::PositiveEvidence, met, text }
}

fn sampled(window: &WindowFacts) -> ConfidenceCheck {
    let text = message!(
        "confidence-sampled",
        "The window of {time} was sampled {samples} times; high confidence takes {fewest}.",
        time = time(window.seconds),
        samples = MessageValue::number(window.samples, 0),
        fewest = MessageValue::number(FEWEST_SAMPLES, 0)
    );
    ConfidenceCheck { condition: ConfidenceCondition::Sampled, met: window.samples >= FEWEST_SAMPLES, text }
}

fn counts_agree(difference: f64) -> ConfidenceCheck {
    let text = message!(
        "confidence-counts",
        "The counts of sender and receiver differ by {difference}, with losses and buffers deducted.",
        difference = percent(difference)
    );
    ConfidenceCheck { condition: ConfidenceCondition::CountsAgree, met: difference <= MAX_DIFFERENCE, text }
}

fn no_other_sign(
    limit: Limit,
    best: &Opinion,
    rivals: &[&(Limit, Opinion)],
    circumstances: &Circumstances,
) -> ConfidenceCheck {
    // On a full line other traffic is part of what fills it.
    let shared = circumstances.shared.as_ref().filter(|_| !is_filled(limit, best));
    let text = match (rivals.first(), shared) {
        (Some((other, _)), _) => {
            message!("confidence-other-sign", "The {other} has a good sign too.", other = *other)
        }
        (None, Some(shared)) => shared.clone(),
        (None, None) => message!("confidence-no-other-sign", "No other limit has a good sign."),
    };
    let met = rivals.is_empty() && shared.is_none();
    ConfidenceCheck { condition: ConfidenceCondition::NoOtherSign, met, text }
}

fn load_ran(limit: Limit, best: &Opinion, circumstances: &Circumstances) -> ConfidenceCheck {
    let Waited { sender, receiver } = circumstances.waited;
    let stolen = stolen(best, circumstances);
    let text = message!(
        "confidence-waited",
        "Threads of the load waited for a core for {sender} of the time at the sender and {receiver} at the receiver.",
        sender = percent(sender),
        receiver = percent(receiver)
    );
    // Waiting at the host that is named is part of its evidence.
    let at_sender = matches!(limit, Limit::SenderCpu | Limit::SoftirqCpu);
    let at_receiver = matches!(limit, Limit::ReceiverCpu | Limit::Server | Limit::SoftirqCpu);
    let ran = (sender <= MAX_WAITED || at_sender) && (receiver <= MAX_WAITED || at_receiver);
    ConfidenceCheck {
        condition: ConfidenceCondition::LoadRan,
        met: stolen.is_none() && (ran || is_filled(limit, best)),
        text: text.and(stolen),
    }
}

/// Whether all of the load arrived or a line was full: then nothing held the load back.
pub(super) fn is_filled(limit: Limit, best: &Opinion) -> bool {
    best.support == Support::Strong && matches!(limit, Limit::OfferedLoad | Limit::Wire)
}

/// The time that the hypervisor took, if it could have caused the result.
fn stolen(best: &Opinion, circumstances: &Circumstances) -> Option<Message> {
    (circumstances.steal > MAX_STEAL && !best.despite_steal).then(|| {
        message!(
            "verdict-stolen",
            "The hypervisor took {took} of a host's time, which may have contributed.",
            took = percent(circumstances.steal)
        )
    })
}
