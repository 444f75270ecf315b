//! A number with a prefix and a unit, read and written exactly.

use std::fmt;

/// Why a text is not the quantity asked for. The message names the text, what was expected, and gives an example.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not {expected}; write it like {example}")]
pub struct ParseError {
    /// The text as given.
    pub text: String,
    /// What was expected, with its article.
    pub expected: &'static str,
    /// One or more valid examples.
    pub example: &'static str,
}

/// A whole number in groups of three digits: `254,311`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// One, a thousand, a million ... as decimal and binary prefixes. Longest first, so that `Ki` is not read as `K`.
const PREFIXES: [(&str, u64); 13] = [
    ("Ki", 1 << 10),
    ("Mi", 1 << 20),
    ("Gi", 1 << 30),
    ("Ti", 1 << 40),
    ("k", 1_000),
    ("K", 1_000),
    ("M", 1_000_000),
    ("m", 1_000_000),
    ("G", 1_000_000_000),
    ("g", 1_000_000_000),
    ("T", 1_000_000_000_000),
    ("t", 1_000_000_000_000),
    ("", 1),
];

/// Splits `9.4Gbit/s` into its number (mantissa and decimal places) and the rest.
fn mantissa(text: &str) -> Option<(u64, u32, &str)> {
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_')).unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    let digits = digits.replace('_', "");
    let (whole, fraction) = digits.split_once('.').unwrap_or((&digits, ""));
    if whole.is_empty() || fraction.contains('.') || fraction.len() > 9 {
        return None;
    }
    let value = format!("{whole}{fraction}").parse().ok()?;
    Some((value, fraction.len() as u32, rest.trim_start()))
}

/// Scales `mantissa / 10^places` by `factor`, rounding to the nearest whole; none on overflow.
fn scale(mantissa: u64, places: u32, factor: u64) -> Option<u64> {
    let divisor = 10u128.pow(places);
    let value = (u128::from(mantissa) * u128::from(factor) + divisor / 2) / divisor;
    u64::try_from(value).ok()
}

/// Reads a number, an optional prefix and one of `units` (the empty unit must be listed to be allowed).
/// Each unit carries what one of it counts, in the quantity's own unit.
pub(crate) fn parse(
    text: &str,
    units: &[(&str, u64)],
    expected: &'static str,
    example: &'static str,
) -> Result<u64, ParseError> {
    let fail = || ParseError { text: text.to_owned(), expected, example };
    let (value, places, rest) = mantissa(text.trim()).ok_or_else(fail)?;
    for (unit, one) in units {
        let Some(prefix) = rest.strip_suffix(unit) else { continue };
        if let Some((_, factor)) = PREFIXES.iter().find(|(name, _)| *name == prefix) {
            return scale(value, places, one.checked_mul(*factor).ok_or_else(fail)?).ok_or_else(fail);
        }
    }
    Err(fail())
}

/// Writes `value` with a decimal prefix and three to four significant digits: `9.41 G`, `100 M`, `1,488 k` as `1.488 M`.
pub(crate) fn write(f: &mut fmt::Formatter<'_>, value: u64, unit: &str) -> fmt::Result {
    const STEPS: [(u64, &str); 5] =
        [(1_000_000_000_000, "T"), (1_000_000_000, "G"), (1_000_000, "M"), (1_000, "k"), (1, "")];
    let (step, prefix) = STEPS.into_iter().find(|(step, _)| value >= *step).unwrap_or((1, ""));
    let scaled = value as f64 / step as f64;
    let places = match scaled {
        _ if step == 1 => 0,
        s if s < 9.995 => 2,
        s if s < 99.95 => 1,
        _ => 0,
    };
    let mut digits = format!("{scaled:.places$}");
    if digits.contains('.') {
        digits.truncate(digits.trim_end_matches('0').trim_end_matches('.').len());
    }
    let gap = if unit.is_empty() && prefix.is_empty() { "" } else { " " };
    f.pad(&format!("{digits}{gap}{prefix}{unit}"))
}
