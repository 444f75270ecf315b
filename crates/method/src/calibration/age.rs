//! How old a calibration is.

use linerate_units::Nanos;

/// From this age on a calibration is old: kernels are updated about once a month.
pub(super) const OLD: Nanos = Nanos::from_secs(30 * 86_400);

/// The units, seconds, the largest first.
const UNITS: [(u64, &str); 3] = [(86_400, "day"), (3_600, "hour"), (60, "minute")];

/// Returns an age in words, in the largest unit that it has two of: `3 days`, `30 hours`, `1 minute`.
pub fn in_words(age: Nanos) -> String {
    let seconds = age.get() / 1_000_000_000;
    let (count, unit) = UNITS
        .iter()
        .map(|(length, unit)| (seconds / length, *unit))
        .find(|(count, unit)| *count >= 2 || *unit == "minute")
        .unwrap_or((0, "minute"));
    match count {
        0 => String::from("less than a minute"),
        1 => format!("1 {unit}"),
        _ => format!("{count} {unit}s"),
    }
}
