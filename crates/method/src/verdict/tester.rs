//! The tester: with the device bypassed it reached no more.

use super::facts::percent;
use super::{Facts, Opinion};
use linerate_model::Stand;

/// A result this close to the calibrated ceiling says nothing of the device. Where the runs scatter more than this, their
/// spread decides.
pub(super) const AT_CEILING: f64 = 0.95;

pub(super) fn weigh(facts: &Facts) -> Option<Opinion> {
    let (ceiling, overlaps) = facts.ceiling.as_ref()?;
    let share = percent(ceiling.share);
    let text = match facts.bypassed {
        true => format!("The result is {share} of what the same hosts reached without the device."),
        false => {
            format!("The result is {share} of what the asking host reaches with a server of its own and no network.")
        }
    };
    Some(match (ceiling.share >= AT_CEILING, overlaps) {
        (true, _) => Opinion::new(Stand::Strong, text).then("Faster hosts can show more of the device."),
        (_, true) => Opinion::new(Stand::Hint, format!("{text} The runs of both overlap.")),
        _ => Opinion::new(Stand::Against, text),
    })
}
