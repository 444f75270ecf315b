//! The wire: a link of known speed that is full.

use super::Evidence;
use linerate_model::{Confidence, Limit, Measurement, Transport};

/// A line this full has no room that a better host could use: what is left is within the error of the clock and of the
/// receiver's window.
const FULL: f64 = 0.98;

pub(super) fn weigh(result: &Measurement) -> Option<Evidence> {
    let limit = result.limit.as_ref()?;
    (limit.share >= FULL).then(|| Evidence {
        limit: Limit::Wire,
        confidence: Confidence::High,
        text: format!(
            "The receiver got {:.1} % of the {} payload that a line of {} can carry in {} at MTU {}.",
            limit.share * 100.0,
            limit.payload_bps,
            limit.line_bps,
            carriers(result),
            limit.mtu
        ),
    })
}

/// What carries the payload: TCP fills its segments whatever it is handed.
fn carriers(result: &Measurement) -> String {
    match result.transport {
        Transport::Tcp => "full segments".to_owned(),
        Transport::Udp => format!("datagrams of {} bytes", result.message_bytes),
    }
}
