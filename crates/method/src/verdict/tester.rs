//! The tester: with the device bypassed it reached no more.

use super::Opinion;
use super::facts::{AT_TESTER_LIMIT, FlowFacts, percent};
use linerate_model::Stand;

pub(super) fn weigh(facts: &FlowFacts) -> Option<Opinion> {
    let (ceiling, overlaps) = facts.ceiling.as_ref()?;
    let share = percent(ceiling.share);
    let text = match facts.bypassed {
        true => format!("The result is {share} of what the same hosts reached without the device."),
        false => {
            format!("The result is {share} of what the asking host reaches with a server of its own and no network.")
        }
    };
    Some(match (ceiling.share >= AT_TESTER_LIMIT, overlaps) {
        (true, _) => Opinion::new(Stand::Strong, text).then("Faster hosts can show more of the device."),
        (_, true) => Opinion::new(Stand::Hint, format!("{text} The runs of both overlap.")),
        _ => Opinion::new(Stand::Against, text),
    })
}
