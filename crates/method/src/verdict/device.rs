//! The device: with it bypassed the same hosts reached more.

use super::Opinion;
use super::facts::{AT_TESTER_LIMIT, FlowFacts, TesterAlone, percent};
use linerate_model::{LimitPlace, Support, message};

pub(super) fn weigh(facts: &FlowFacts) -> Option<Opinion> {
    let (tester_limit, overlaps) = facts.tester_limit.as_ref()?;
    let share = percent(tester_limit.share);
    if facts.tester_alone == TesterAlone::OwnServer {
        return None;
    }
    let reached_it = tester_limit.share >= AT_TESTER_LIMIT || *overlaps;
    if reached_it && facts.tester_alone == TesterAlone::Loopback {
        return None;
    }
    if reached_it {
        return Some(Opinion::new(
            Support::Against,
            message!("device-reached-no-more", "With the device bypassed the same hosts reached no more."),
        ));
    }
    if facts.tester_alone == TesterAlone::Loopback {
        let text = message!(
            "device-loopback-reached-more",
            "Against themselves, without interfaces or a device, both hosts reached more: this is {share} of the \
             slower one.",
            share
        );
        return Some(Opinion::new(Support::Hint, text).at(LimitPlace::Device));
    }
    let text = message!(
        "device-reached-more",
        "With the device bypassed the same hosts reached more: this is {share} of that.",
        share
    );
    Some(
        Opinion::new(Support::Strong, text)
            .counted()
            .at(LimitPlace::Device)
            .then(message!("device-next", "Use a faster device, or give it less to do.")),
    )
}
