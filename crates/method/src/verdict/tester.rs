//! The tester: with the device bypassed it reached no more.

use super::Evidence;
use linerate_model::{Confidence, Limit, Measurement};

/// A result this close to the calibrated ceiling says nothing of the device. Where the runs scatter more than this, their
/// spread decides.
const AT_CEILING: f64 = 0.95;

pub(super) fn weigh(result: &Measurement) -> Option<Evidence> {
    let ceiling = result.ceiling.as_ref()?;
    let own = result.received.as_ref().map(|r| &r.payload_bps).or(result.transactions_per_s.as_ref())?;
    let overlaps = own.runs > 1 && ceiling.reached.runs > 1 && own.high >= ceiling.reached.low;
    (ceiling.share >= AT_CEILING || overlaps).then(|| Evidence {
        limit: Limit::Tester,
        confidence: if ceiling.share >= AT_CEILING { Confidence::High } else { Confidence::Low },
        text: format!(
            "The result is {:.0} % of what the same hosts reached without the device.",
            ceiling.share * 100.0
        ),
    })
}
