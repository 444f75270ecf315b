//! How old a calibration is.

use linerate_model::{Message, message};
use linerate_units::Nanos;

/// From this age on a calibration is old: kernels are updated about once a month.
pub(super) const OLD: Nanos = Nanos::from_secs(30 * 86_400);

/// Returns an age in words, in the largest unit that it has two of: `3 days`, `30 hours`, `1 minute`.
pub fn in_words(age: Nanos) -> Message {
    let minutes = age.get() / 60_000_000_000;
    let (hours, days) = (minutes / 60, minutes / (24 * 60));
    match (days, hours, minutes) {
        (2.., ..) => message!("age-days", "{days} days", days),
        (_, 2.., _) => message!("age-hours", "{hours} hours", hours),
        (_, _, 2..) => message!("age-minutes", "{minutes} minutes", minutes),
        (_, _, 1) => message!("age-one-minute", "1 minute"),
        _ => message!("age-less-than-a-minute", "less than a minute"),
    }
}
