//! Measured values with their units.

use crate::figures::{self, MISSING, grouped, nanos, percent};
use crate::language::Language;
use linerate_model::MeasureUnit;

/// Formats a value with the digits it was published with: `129.93 Mbit/s`, `148,809.5/s`.
pub fn value(value: f64, unit: MeasureUnit) -> String {
    match unit {
        MeasureUnit::PerS => {
            let tenths = decimals(value.fract(), 1);
            match tenths.strip_prefix("0.") {
                Some(tenths) => format!("{}.{tenths}/s", grouped(value.trunc() as u64)),
                None => format!("{}/s", grouped(value.round() as u64)),
            }
        }
        MeasureUnit::BitsPerS => {
            let (step, prefix) = figures::prefix(value);
            format!("{} {prefix}bit/s", decimals(value / step, 2))
        }
        MeasureUnit::Nanos | MeasureUnit::NanosHeld => nanos(value.round() as u64),
        MeasureUnit::Times => format!("{} x", decimals(value, 2)),
        MeasureUnit::Share => percent(value).unwrap_or_else(|| MISSING.to_owned()),
        MeasureUnit::Count => grouped(value.round() as u64),
    }
}

/// Returns the unit in which values up to `most` are printed next to each other: its size and its name.
pub fn unit_of(unit: MeasureUnit, most: f64) -> (f64, String) {
    let prefixed = |name: &str| {
        let (one, prefix) = figures::prefix(most);
        (one, format!("{prefix}{name}"))
    };
    match unit {
        MeasureUnit::BitsPerS => prefixed("bit/s"),
        MeasureUnit::PerS => prefixed("/s"),
        MeasureUnit::Times => (1.0, "x".to_owned()),
        MeasureUnit::Share => (0.01, "%".to_owned()),
        MeasureUnit::Count => (1.0, String::new()),
        MeasureUnit::Nanos | MeasureUnit::NanosHeld => {
            let longer = [(1e9, "s"), (1e6, "ms"), (1e3, "us")].into_iter().find(|(one, _)| most >= *one);
            let (one, name) = longer.unwrap_or((1.0, "ns"));
            (one, name.to_owned())
        }
    }
}

/// From one value to another; one where they are the same.
pub fn range(lang: Language, low: f64, high: f64, unit: MeasureUnit) -> String {
    let low = value(low, unit);
    let high = value(high, unit);
    if low == high { high } else { figures::range(lang, &low, &high) }
}

/// The lowest and the highest.
pub fn extremes(values: impl IntoIterator<Item = f64>) -> Option<(f64, f64)> {
    values.into_iter().fold(None, |known, value| match known {
        None => Some((value, value)),
        Some((low, high)) => Some((low.min(value), high.max(value))),
    })
}

/// Formats a number with at most `places` decimals, without zeros at its end.
pub fn decimals(value: f64, places: usize) -> String {
    let text = format!("{value:.places$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}
