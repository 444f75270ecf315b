//! Numbers as text: three significant digits, a unit, and nothing where a number is absurd.

pub(crate) mod values;

use crate::language::Language;
use crate::said;
use linerate_model::{Detail, Measurement, Quantity, Summary};
use linerate_units::{Nanos, Ratio};

pub(crate) use linerate_units::grouped;

/// Placeholder of a missing figure.
pub const MISSING: &str = "\u{2013}";

/// Upper bound of rates and ratios; a larger one comes from a broken counter.
const ABSURD: f64 = 1e18;

const PREFIXES: [(f64, &str); 5] = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, "")];

/// A number that can be shown: finite, not negative, not absurdly large.
fn sane(value: f64) -> Option<f64> {
    (value.is_finite() && (0.0..ABSURD).contains(&value)).then_some(value)
}

/// The prefix under which `value` keeps one to three digits before the point.
pub fn prefix(value: f64) -> (f64, &'static str) {
    PREFIXES.into_iter().find(|(step, _)| value >= step * 0.9995).unwrap_or((1.0, ""))
}

/// `value` with as many decimal places as three significant digits of `scale` have.
pub(crate) fn digits(value: f64, scale: f64) -> String {
    let places = match scale {
        s if s >= 99.95 => 0,
        s if s >= 9.995 => 1,
        _ => 2,
    };
    if value == 0.0 { "0".to_owned() } else { format!("{value:.places$}") }
}

/// `9.41 Gbit/s`.
pub(crate) fn rate(value: f64, unit: &str) -> Option<String> {
    let value = sane(value)?;
    let (step, prefix) = prefix(value);
    Some(format!("{} {prefix}{unit}", digits(value / step, value / step)))
}

/// A rate counted in whole things: `96,154`.
pub(crate) fn per_second(value: f64) -> Option<String> {
    let value = sane(value)?;
    if value < 99.95 && value.fract() != 0.0 { Some(digits(value, value)) } else { Some(grouped(value.round() as u64)) }
}

/// A share of something measured, in percent: `99.9 %`.
pub fn percent(share: f64) -> Option<String> {
    let percent = sane(share)? * 100.0;
    Some(match percent {
        0.0 => "0 %".to_owned(),
        p if p < 0.05 => "< 0.1 %".to_owned(),
        p if p < 999.5 => format!("{p:.1} %"),
        p => format!("{} %", grouped(p.round() as u64)),
    })
}

/// A share of things counted, which never rounds something to nothing, nor almost all to all: `1.02 %`.
pub(crate) fn counted_share(ratio: Ratio) -> Option<String> {
    let percent = ratio.as_f64() * 100.0;
    Some(match percent {
        _ if ratio.of == 0 => return None,
        _ if ratio.part == 0 => "0 %".to_owned(),
        _ if ratio.part == ratio.of => "100 %".to_owned(),
        p if p < 0.000_1 => "< 0.0001 %".to_owned(),
        p if p < 0.1 => format!("{p:.4} %"),
        p if p < 9.995 => format!("{p:.2} %"),
        p if p < 99.95 => format!("{p:.1} %"),
        p if p < 100.0 => "> 99.9 %".to_owned(),
        _ => return None,
    })
}

/// `27 us`.
pub(crate) fn nanos(value: u64) -> String {
    Nanos::new(value).to_string()
}

/// A difference of durations: `-120 us`.
pub(crate) fn signed_nanos(value: i64) -> String {
    let sign = if value < 0 { "-" } else { "" };
    format!("{sign}{}", nanos(value.unsigned_abs()))
}

/// A cost of CPU time: `0.11 ns`.
pub(crate) fn cost_ns(value: f64) -> Option<String> {
    let value = sane(value)?;
    Some(match value {
        v if v < 0.0005 => "< 0.001 ns".to_owned(),
        v if v < 0.0995 => format!("{v:.3} ns"),
        v if v < 1_000.0 => format!("{} ns", digits(v, v)),
        v => nanos(v.round() as u64),
    })
}

/// Count and spread of the runs: `3 runs, 940 to 942 Mbit/s`. `show` writes one value with its unit.
pub(crate) fn spread(lang: Language, summary: &Summary, show: impl Fn(f64) -> Option<String>) -> String {
    match (summary.runs, show(summary.low), show(summary.high)) {
        (0 | 1, ..) => said!(lang, "figures-runs", if runs == 1 { "1 run" } else { "{runs} runs" }, runs = 1_u32),
        (runs, Some(low), Some(high)) if low == high => {
            said!(lang, "figures-runs-all", "{runs} runs, all {value}", runs = runs, value = high)
        }
        (runs, Some(low), Some(high)) => {
            said!(lang, "figures-runs-range", "{runs} runs, {range}", runs = runs, range = range(lang, &low, &high))
        }
        (runs, ..) => said!(lang, "figures-runs", if runs == 1 { "1 run" } else { "{runs} runs" }, runs = runs),
    }
}

/// `940 Mbit/s` and `942 Mbit/s` as `940 to 942 Mbit/s`; the unit is said twice only where it differs.
pub fn range(lang: Language, low: &str, high: &str) -> String {
    match (low.split_once(' '), high.split_once(' ')) {
        (Some((number, unit)), Some((_, other))) if unit == other => {
            said!(lang, "figures-to", "{number} to {high}", number = number, high = high)
        }
        _ => said!(lang, "comparison-to", "{low} to {high}", low = low, high = high),
    }
}

/// Returns a time in words and in UTC: `21 November 2026, 09:30 UTC`.
pub(crate) fn moment(lang: Language, unix_ns: u64) -> String {
    let format = said!(lang, "moment-format", "%-d %B %Y, %H:%M UTC");
    jiff::Timestamp::from_nanosecond(i128::from(unix_ns))
        .map_or_else(|_| MISSING.to_owned(), |time| time.strftime(&format).to_string())
}

/// Returns a time to the minute, in UTC and sortable: `2026-11-21 09:30`.
pub(crate) fn moment_short(unix_ns: u64) -> String {
    jiff::Timestamp::from_nanosecond(i128::from(unix_ns))
        .map_or_else(|_| MISSING.to_owned(), |time| time.strftime("%Y-%m-%d %H:%M").to_string())
}

/// Returns a time for machines: `2026-11-21T09:30:00Z`.
pub(crate) fn moment_iso(unix_ns: u64) -> String {
    jiff::Timestamp::from_nanosecond(i128::from(unix_ns))
        .map(|time| time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
        .unwrap_or_default()
}

/// Whether a character steers a terminal or turns the direction of writing.
pub fn steers(c: char) -> bool {
    let turns = matches!(c, '\u{61c}' | '\u{200e}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    c.is_control() || turns
}

/// `text` without characters that steer a terminal or turn the direction of writing.
pub fn plain(text: &str) -> String {
    text.chars().map(|c| if steers(c) { '\u{fffd}' } else { c }).collect()
}

/// The words of `text`, a number and its unit as one: `9.41 Gbit/s`, `99.9 %`.
pub(crate) fn words(text: &str) -> Vec<String> {
    let is_unit = |word: &str| {
        let word = word.trim_end_matches([',', '.', ';', ':', ')']);
        matches!(word, "%" | "ns" | "us" | "ms" | "s" | "B" | "kB" | "MB" | "GB") || word.ends_with("bit/s")
    };
    let mut words: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match words.last_mut() {
            Some(number) if is_unit(word) && number.ends_with(|c: char| c.is_ascii_digit()) => {
                number.push(' ');
                number.push_str(word);
            }
            _ => words.push(word.to_owned()),
        }
    }
    words
}

/// Bytes of files a second.
pub(crate) fn bytes_per_s(value: f64) -> Option<String> {
    rate(value, "B/s")
}
/// `20,000 frames/s`.
pub(crate) fn frames_per_s(value: f64) -> Option<String> {
    per_second(value).map(|rate| format!("{rate} frames/s"))
}

/// The one figure of a result.
pub(crate) fn main(result: &Measurement) -> Option<String> {
    match &result.detail {
        Detail::Copy(found) => bytes_per_s(found.bytes_per_s),
        Detail::Frames { .. } => frames_per_s(result.main.median),
        Detail::Hops { .. } => (result.main.median > 0.0).then(|| nanos(result.main.median as u64)),
        _ if result.quantity == Quantity::PayloadBps => rate(result.main.median, "bit/s"),
        _ => Some(format!("{} /s", per_second(result.main.median)?)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_and_the_next_prefix_in_time() {
        for (value, text) in [
            (9_412_000_000.0, "9.41 Gbit/s"),
            (940_400_000.0, "940 Mbit/s"),
            (94_000_000.0, "94.0 Mbit/s"),
            (999_600.0, "1.00 Mbit/s"),
            (0.0, "0 bit/s"),
        ] {
            assert_eq!(rate(value, "bit/s").as_deref(), Some(text));
        }
        assert_eq!(per_second(1_488_095.2).as_deref(), Some("1,488,095"));
        assert_eq!(per_second(4.5).as_deref(), Some("4.50"));
    }

    #[test]
    fn absurd_numbers_are_missing() {
        for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.0, 1e30] {
            assert_eq!(
                (rate(value, "bit/s"), per_second(value), percent(value), cost_ns(value)),
                (None, None, None, None)
            );
        }
        assert_eq!(counted_share(Ratio::new(0, 0)), None);
        assert_eq!(counted_share(Ratio::new(5, 3)), None);
    }

    #[test]
    fn counted_shares_keep_their_extremes() {
        for (part, of, text) in [
            (2594, 254_311, "1.02 %"),
            (1, 10_000_000, "< 0.0001 %"),
            (999_999, 1_000_000, "> 99.9 %"),
            (0, 7, "0 %"),
            (7, 7, "100 %"),
        ] {
            assert_eq!(counted_share(Ratio::new(part, of)).as_deref(), Some(text));
        }
    }

    #[test]
    fn a_spread_names_its_unit_once() {
        let summary = |low, high| Summary { median: low, low, high, runs: 3, values: vec![], interval: None };
        let show = |value| rate(value, "bit/s");
        assert_eq!(spread(Language::English, &summary(940e6, 942e6), show), "3 runs, 940 to 942 Mbit/s");
        assert_eq!(spread(Language::English, &summary(940e6, 1.2e9), show), "3 runs, 940 Mbit/s to 1.20 Gbit/s");
        assert_eq!(spread(Language::English, &summary(940.1e6, 940.2e6), show), "3 runs, all 940 Mbit/s");
    }

    #[test]
    fn a_number_keeps_its_unit() {
        assert_eq!(words("at 9.41 Gbit/s, 99.9 % of b"), ["at", "9.41 Gbit/s,", "99.9 %", "of", "b"]);
    }

    #[test]
    fn names_cannot_steer_a_terminal() {
        assert_eq!(plain("a\u{1b}[2Jb\u{202e}c"), "a\u{fffd}[2Jb\u{fffd}c");
    }
}
