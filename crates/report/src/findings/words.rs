//! Numbers in sentences of findings.

use crate::figures::{self, MISSING, grouped, nanos, percent};
use crate::language::Language;
use crate::{said, wording};
use linerate_model::MeasureUnit;

/// A value of a study with the digits it was published with: `129.93 Mbit/s`, `148,809.5/s`.
pub(crate) fn value(value: f64, unit: MeasureUnit) -> String {
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
        MeasureUnit::Share => share(value),
        MeasureUnit::Count => grouped(value.round() as u64),
    }
}

/// The unit in which values up to `most` are printed beside each other: how much one of it is, and its name.
pub(crate) fn unit_of(unit: MeasureUnit, most: f64) -> (f64, String) {
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
pub(crate) fn range(lang: Language, low: f64, high: f64, unit: MeasureUnit) -> String {
    let (low, high) = (value(low, unit), value(high, unit));
    if low == high { high } else { figures::range(lang, &low, &high) }
}

/// Names in a row.
pub(super) fn listed(lang: Language, names: &[String]) -> String {
    wording::listed(lang, names)
}

/// Names of which one holds.
pub(super) fn either(lang: Language, names: &[String]) -> String {
    names.join(&said!(lang, "findings-words-or"))
}

/// The first `most` of these, and how many there are besides, as a sentence.
pub(super) fn some_of(lang: Language, most: usize, all: &[String]) -> String {
    let some = all[..most.min(all.len())].join("; ");
    match all.len().saturating_sub(most) {
        0 => said!(lang, "findings-words-all", each = some),
        more => said!(lang, "findings-words-and-more", each = some, more = more),
    }
}

/// How many times as much.
pub(super) fn times(lang: Language, factor: f64) -> String {
    let places = if factor < 9.995 {
        2
    } else if factor < 99.95 {
        1
    } else {
        0
    };
    said!(lang, "findings-words-times", factor = format!("{factor:.places$}"))
}

/// The same where what is compared may be nothing: what is lost is, on a good path.
pub(super) fn multiple(lang: Language, ratio: f64) -> String {
    match ratio {
        0.0 => said!(lang, "findings-words-nothing-against-something"),
        ratio if ratio.is_infinite() => said!(lang, "findings-words-something-against-nothing"),
        ratio => times(lang, ratio),
    }
}

/// From one factor to another.
pub(super) fn times_range(lang: Language, low: f64, high: f64) -> String {
    let (low, high) = (times(lang, low), times(lang, high));
    if low == high { high } else { figures::range(lang, &low, &high) }
}

/// A share in percent.
pub(super) fn share(share: f64) -> String {
    percent(share).unwrap_or_else(|| MISSING.to_owned())
}

/// A p-value.
pub(super) fn p_value(p: f64) -> String {
    match p {
        p if p < 0.000_1 => "p < 0.0001".to_owned(),
        p if p < 0.01 => format!("p = {p:.4}"),
        p => format!("p = {p:.3}"),
    }
}

/// A sum of money.
pub(super) fn money(amount: f64, currency: Option<&str>) -> String {
    let amount = if amount < 99.5 { decimals(amount, 2) } else { grouped(amount.round() as u64) };
    currency.map_or_else(|| amount.clone(), |currency| format!("{amount} {currency}"))
}

/// The lowest and the highest.
pub(crate) fn extremes(values: impl IntoIterator<Item = f64>) -> Option<(f64, f64)> {
    values.into_iter().fold(None, |known, value| match known {
        None => Some((value, value)),
        Some((low, high)) => Some((low.min(value), high.max(value))),
    })
}

fn decimals(value: f64, places: usize) -> String {
    let text = format!("{value:.places$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}
