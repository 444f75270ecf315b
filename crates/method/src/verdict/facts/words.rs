//! Quantities in the sentences of verdicts.

use linerate_model::MessageValue;

/// A rate for people.
pub(crate) fn bits(bps: f64) -> MessageValue {
    MessageValue::BitsPerS(bps.max(0.0) as u64)
}

/// A time for people.
pub(crate) fn time(seconds: f64) -> MessageValue {
    MessageValue::Ns((seconds.max(0.0) * 1e9) as u64)
}

/// A share for people, with as many digits as it takes.
pub(crate) fn percent(share: f64) -> MessageValue {
    MessageValue::share(share)
}
