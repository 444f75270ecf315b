//! The tester: with the device bypassed it reached no more.

use super::Opinion;
use super::facts::{AT_TESTER_LIMIT, FlowFacts, TesterAlone, percent};
use linerate_model::{Support, message};

/// A result beyond this share of what a loopback reached shows that the hosts reach more: there one host did the work of both ends.
const BEYOND_LOOPBACK: f64 = 1.05;

pub(super) fn weigh(facts: &FlowFacts) -> Option<Opinion> {
    let (tester_limit, overlaps) = facts.tester_limit.as_ref()?;
    let share = percent(tester_limit.share);
    let text = match facts.tester_alone {
        TesterAlone::Cable => message!(
            "tester-of-bypassed",
            "The result is {share} of what the same hosts reached without the device.",
            share
        ),
        TesterAlone::Loopback => return Some(of_loopback(tester_limit.share)),
        TesterAlone::OwnServer => {
            message!(
                "tester-of-own-server",
                "The result is {share} of what the asking host reaches with a server of its own and no network.",
                share
            )
        }
    };
    Some(match (tester_limit.share >= AT_TESTER_LIMIT, overlaps) {
        (true, _) => Opinion::new(Support::Strong, text)
            .counted()
            .then(message!("tester-next", "Faster hosts can show more of the device.")),
        (_, true) => Opinion::new(Support::Hint, text.and(message!("tester-overlap", "The runs of both overlap."))),
        _ => Opinion::new(Support::Against, text),
    })
}

/// An upper estimate: the tester may be the limit below it too, by its interfaces.
fn of_loopback(share: f64) -> Opinion {
    let text = message!(
        "tester-of-loopback",
        "The result is {share} of what the slower of the hosts reaches against itself, an upper estimate of the \
         tester limit.",
        share = percent(share)
    );
    let support = match share {
        BEYOND_LOOPBACK.. => Support::Unknown,
        AT_TESTER_LIMIT.. => Support::Strong,
        _ => Support::Hint,
    };
    // What a host counted of itself goes before an estimate.
    Opinion::new(support, text).by_elimination().counted().then(message!(
        "tester-next-loopback",
        "Join the hosts by a cable and measure the tester limit with `linerate calibrate`."
    ))
}
