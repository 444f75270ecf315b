//! Numbers in sentences of findings.

use linerate_report::parts::figures::{self, MISSING, percent};
use linerate_report::parts::values::decimals;
use linerate_report::parts::wording;
use linerate_report::{Language, said};
use linerate_units::grouped;

/// Formats names as a list: `a, b and c`.
pub(super) fn listed(lang: Language, names: &[String]) -> String {
    wording::listed(lang, names)
}

/// Joins names that stand for one thing, such as the levels of a cell: `a, b`.
pub(crate) fn with_commas(lang: Language, names: &[String]) -> String {
    names.join(&said!(lang, "list-comma", ", "))
}

/// Joins clauses that may hold commas: `a, b: 1; c, d: 2`.
pub(crate) fn with_semicolons(lang: Language, clauses: &[String]) -> String {
    clauses.join(&said!(lang, "list-semicolon", "; "))
}

/// Formats alternatives: `a or b`.
pub(super) fn either(lang: Language, names: &[String]) -> String {
    names.join(&said!(lang, "findings-words-or", " or "))
}

/// Formats the first `most` items and the number of the others.
pub(super) fn some_of(lang: Language, most: usize, all: &[String]) -> String {
    let some = with_semicolons(lang, &all[..most.min(all.len())]);
    match all.len().saturating_sub(most) {
        0 => said!(lang, "findings-words-all", "{each}.", each = some),
        more => said!(lang, "findings-words-and-more", "{each}; and {more} more.", each = some, more = more),
    }
}

/// Formats a ratio: `1.62 times`.
pub(super) fn times(lang: Language, factor: f64) -> String {
    let places = if factor < 9.995 {
        2
    } else if factor < 99.95 {
        1
    } else {
        0
    };
    said!(lang, "findings-words-times", "{factor} times", factor = format!("{factor:.places$}"))
}

/// Formats a ratio of values that may be zero, such as losses on a good path.
pub(super) fn multiple(lang: Language, ratio: f64) -> String {
    match ratio {
        0.0 => said!(lang, "findings-words-nothing-against-something", "nothing against something"),
        ratio if ratio.is_infinite() => {
            said!(lang, "findings-words-something-against-nothing", "something against nothing")
        }
        ratio => times(lang, ratio),
    }
}

/// Formats a range of ratios.
pub(super) fn times_range(lang: Language, low: f64, high: f64) -> String {
    let (low, high) = (times(lang, low), times(lang, high));
    if low == high { high } else { figures::range(lang, &low, &high) }
}

/// Formats a share in percent.
pub(super) fn share(share: f64) -> String {
    percent(share).unwrap_or_else(|| MISSING.to_owned())
}

/// Formats a p-value.
pub(super) fn p_value(p: f64) -> String {
    match p {
        p if p < 0.000_1 => "p < 0.0001".to_owned(),
        p if p < 0.01 => format!("p = {p:.4}"),
        p => format!("p = {p:.3}"),
    }
}

/// Formats a sum of money.
pub(super) fn money(amount: f64, currency: Option<&str>) -> String {
    let amount = if amount < 99.5 { decimals(amount, 2) } else { grouped(amount.round() as u64) };
    currency.map_or_else(|| amount.clone(), |currency| format!("{amount} {currency}"))
}
