//! Numbers in sentences of findings.

use linerate_report::parts::figures::{self, MISSING, percent};
use linerate_report::parts::values::decimals;
use linerate_report::parts::wording;
use linerate_report::{Language, said};
use linerate_units::grouped;

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
