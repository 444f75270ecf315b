//! The device: with it bypassed the same hosts reached more.

use super::Opinion;
use super::facts::{AT_TESTER_LIMIT, FlowFacts, percent};
use linerate_model::Stand;

pub(super) fn weigh(facts: &FlowFacts) -> Option<Opinion> {
    let (ceiling, overlaps) = facts.ceiling.as_ref().filter(|_| facts.bypassed)?;
    if ceiling.share >= AT_TESTER_LIMIT || *overlaps {
        return Some(Opinion::new(Stand::Against, "With the device bypassed the same hosts reached no more."));
    }
    let text =
        format!("With the device bypassed the same hosts reached more: this is {} of that.", percent(ceiling.share));
    Some(Opinion::new(Stand::Strong, text).then("A faster device, or fewer things for it to do, carries more."))
}
