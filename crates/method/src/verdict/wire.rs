//! The wire: a link of known speed that is full.

use super::Evidence;
use linerate_model::{Confidence, Limit, Measurement};

/// A line this full has no room that a better host could use: what is left is within the error of the clock and of the
/// receiver's window.
const FULL: f64 = 0.98;

pub(super) fn weigh(result: &Measurement) -> Option<Evidence> {
    let limit = result.limit.as_ref()?;
    (limit.share >= FULL).then(|| Evidence {
        limit: Limit::Wire,
        confidence: Confidence::High,
        text: format!(
            "the receiver got {:.1} % of the {} payload that a line of {} can carry in messages of {} bytes at MTU {}",
            limit.share * 100.0,
            limit.payload_bps,
            limit.line_bps,
            result.message_bytes,
            limit.mtu
        ),
    })
}
