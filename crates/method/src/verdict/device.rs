//! The device: with it bypassed the same hosts reached more.

use super::Opinion;
use super::facts::{AT_TESTER_LIMIT, FlowFacts, percent};
use linerate_model::{LimitPlace, Support};

pub(super) fn weigh(facts: &FlowFacts) -> Option<Opinion> {
    let (tester_limit, overlaps) = facts.tester_limit.as_ref().filter(|_| facts.bypassed)?;
    if tester_limit.share >= AT_TESTER_LIMIT || *overlaps {
        return Some(Opinion::new(Support::Against, "With the device bypassed the same hosts reached no more."));
    }
    let text = format!(
        "With the device bypassed the same hosts reached more: this is {} of that.",
        percent(tester_limit.share)
    );
    Some(
        Opinion::new(Support::Strong, text)
            .at(LimitPlace::Device)
            .then("A faster device, or fewer things for it to do, carries more."),
    )
}
