//! The tester: with the device bypassed it reached no more.

use super::Opinion;
use super::facts::{AT_TESTER_LIMIT, FlowFacts, percent};
use linerate_model::Support;

pub(super) fn weigh(facts: &FlowFacts) -> Option<Opinion> {
    let (tester_limit, overlaps) = facts.tester_limit.as_ref()?;
    let share = percent(tester_limit.share);
    let text = match facts.bypassed {
        true => format!("The result is {share} of what the same hosts reached without the device."),
        false => {
            format!("The result is {share} of what the asking host reaches with a server of its own and no network.")
        }
    };
    Some(match (tester_limit.share >= AT_TESTER_LIMIT, overlaps) {
        (true, _) => Opinion::new(Support::Strong, text).then("Faster hosts can show more of the device."),
        (_, true) => Opinion::new(Support::Hint, format!("{text} The runs of both overlap.")),
        _ => Opinion::new(Support::Against, text),
    })
}
