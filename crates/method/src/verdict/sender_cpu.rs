//! The sender's processor: its threads always had work, and not always a core.

use super::calls::Calls;
use super::copied::CopyEnd;
use super::facts::{End, INTERRUPTED, NEARLY_OCCUPIED, OCCUPIED, Work, percent, time};
use super::{CopyFacts, Facts, Opinion};
use linerate_model::{CopyStage, Stand, WorkShare};

/// A sender that kept so much of its load is fast enough for it.
const KEPT: f64 = 0.99;
/// With more of what it sends lost behind it, a faster sender only loses more.
const OUTRUN: f64 = 0.02;

pub(super) fn weigh(facts: &Facts) -> Option<Opinion> {
    let end = &facts.sender;
    if facts.work == Work::Transact {
        return Some(of_end(&of_requests(facts, end), "asking"));
    }
    if let Some(offer) = facts.offer.filter(|offer| offer.sent >= KEPT) {
        return Some(Opinion::new(
            Stand::Against,
            format!("The sender kept {} of the load asked for.", percent(offer.sent.min(1.0))),
        ));
    }
    let lost = facts.lost_behind_sender();
    if lost > OUTRUN && end.is_throttled() {
        let text = format!(
            "{} {} of what it sent at once when it could was lost behind it.",
            of_end(end, "sending").text,
            percent(lost)
        );
        return Some(Opinion::new(Stand::For, text));
    }
    if lost > OUTRUN {
        let text =
            format!("{} of what was sent was lost behind the sender: a faster one would lose more.", percent(lost));
        return Some(Opinion::new(Stand::Against, text));
    }
    Some(
        of_stream(facts, end, "sending")
            .then("A faster core, a larger message, offloads, or more flows on more cores (--flows) send more."),
    )
}

/// What an end of a stream says of its own time: nothing where both ends were ahead of the path, and never surely where soft interrupts
/// took it, which may be anybody's.
pub(super) fn of_stream(facts: &Facts, end: &End, does: &str) -> Opinion {
    let opinion = of_end(end, does);
    if opinion.stand < Stand::Hint || end.is_throttled() {
        return opinion;
    }
    if !facts.outrun_the_path() {
        return match end.interruptible {
            INTERRUPTED.. => {
                let most = percent(end.interruptible);
                let text = format!("{} Up to {most} of that may have been soft interrupts.", opinion.text);
                Opinion::new(opinion.stand.min(Stand::For), text)
            }
            _ => opinion,
        };
    }
    let why = match &facts.tcp {
        Some(tcp) => format!(
            "But what was sent stood in a queue on the path, where a round trip grew from {} to {}, and the receiver's window was open.",
            time(tcp.min_rtt),
            time(tcp.rtt)
        ),
        None => format!(
            "But {} of that at the least were soft interrupts, those of a queue that lets packets go.",
            percent(facts.sender.interrupted)
        ),
    };
    Opinion::new(Stand::Against, format!("{} {why}", opinion.text))
}

/// An end of requests: where each waits for the one before, it works in turn with the other end.
pub(super) fn of_requests(facts: &Facts, end: &End) -> End {
    if facts.calls.as_ref().is_some_and(Calls::overlap) { end.clone() } else { end.in_turn() }
}

/// The processor of a copy's source.
pub(super) fn of_copy(facts: &CopyFacts) -> Option<Opinion> {
    const STAGES: [CopyStage; 5] =
        [CopyStage::List, CopyStage::Open, CopyStage::Read, CopyStage::Hash, CopyStage::Send];
    let next = "A faster core, more lanes on more cores (--lanes), or no verification (--no-verify) sends more.";
    of_stages(facts, &facts.source, &STAGES, "source's").map(|opinion| opinion.then(next))
}

/// What the time says that the stages at one end of a copy took of the processor.
pub(super) fn of_stages(facts: &CopyFacts, end: &CopyEnd, stages: &[CopyStage], whose: &str) -> Option<Opinion> {
    if let Some((share, cores)) = end.throttled.filter(|_| end.is_throttled()) {
        let text =
            format!("The {whose} CPU quota ({cores:.2} of a core) was used up in {} of its periods.", percent(share));
        return Some(Opinion::new(Stand::Strong, text).despite_steal());
    }
    let (stage, WorkShare { cpu, queued, .. }) = facts.computes(stages)?;
    let mut text = format!(
        "Of the {whose} stages, to {} took a core for {} of the time and waited for one for {}.",
        stage.name(),
        percent(cpu),
        percent(queued)
    );
    let mut share = cpu + queued;
    if facts.in_turn {
        let (own, all) = (facts.computed(stages), facts.computed(&CopyStage::ALL));
        text += &format!(
            " A lane does all stages in turn: together they had a core or waited for one for {}.",
            percent(all)
        );
        // The end that takes more of it is what to make faster.
        share = if own >= all / 2.0 { all } else { own };
    }
    let stand = match share {
        OCCUPIED.. => Stand::Strong,
        NEARLY_OCCUPIED.. => Stand::Hint,
        _ => Stand::Against,
    };
    Some(Opinion::new(stand, text))
}

/// What an end's own time says.
pub(super) fn of_end(end: &End, does: &str) -> Opinion {
    if let Some((share, cores)) = end.throttled.filter(|_| end.is_throttled()) {
        let text = format!(
            "The {does} host's CPU quota ({cores:.2} of a core) was used up in {} of its periods.",
            percent(share)
        );
        return Opinion::new(Stand::Strong, text).despite_steal();
    }
    let text = match end.waited {
        0.01.. => format!(
            "The {does} threads were on a core for {} of the time and waited for one for {}.",
            percent(end.busy),
            percent(end.waited)
        ),
        _ => format!("The {does} threads were on a core for {} of the time.", percent(end.busy)),
    };
    let stand = match end.occupied() {
        OCCUPIED.. => Stand::Strong,
        NEARLY_OCCUPIED.. => Stand::Hint,
        _ => Stand::Against,
    };
    Opinion::new(stand, text)
}
