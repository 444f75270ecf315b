//! A ratio kept as its two counts.

use crate::number::ParseError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

/// `part` out of `of`, kept as both: 0 of 0 is not the same as 0 of a million.
/// Reads `0.5%`, `1/1000` and `0`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Ratio {
    /// How many.
    pub part: u64,
    /// Out of how many.
    pub of: u64,
}

impl Ratio {
    /// `part` out of `of`.
    pub const fn new(part: u64, of: u64) -> Self {
        Self { part, of }
    }

    /// The quotient, for display and statistics; 0 out of 0 is 0.
    pub fn as_f64(self) -> f64 {
        if self.of == 0 { 0.0 } else { self.part as f64 / self.of as f64 }
    }
}

impl PartialOrd for Ratio {
    /// By value, exactly; a ratio out of nothing compares with none.
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        if self.of == 0 || other.of == 0 {
            return None;
        }
        let left = u128::from(self.part) * u128::from(other.of);
        Some(left.cmp(&(u128::from(other.part) * u128::from(self.of))))
    }
}

impl fmt::Display for Ratio {
    /// As a percentage that never rounds something to nothing, nor almost all to all.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = self.as_f64() * 100.0;
        let text = match percent {
            _ if self.part == 0 => "0 %".to_owned(),
            _ if self.part == self.of => "100 %".to_owned(),
            p if p < 0.000_1 => "< 0.0001 %".to_owned(),
            p if p < 0.1 => format!("{p:.4} %"),
            p if p < 1.0 => format!("{p:.2} %"),
            p if (99.95..100.0).contains(&p) => "> 99.9 %".to_owned(),
            p => format!("{p:.1} %"),
        };
        f.pad(&text)
    }
}

impl FromStr for Ratio {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let fail = || ParseError { text: text.to_owned(), expected: "a ratio", example: "0.5%, 1/1000 or 0" };
        if let Some((part, of)) = text.split_once('/') {
            let (part, of) = (part.trim().parse().map_err(|_| fail())?, of.trim().parse().map_err(|_| fail())?);
            return if of == 0 || part > of { Err(fail()) } else { Ok(Self { part, of }) };
        }
        let (number, hundred) = match text.trim().strip_suffix('%') {
            Some(number) => (number.trim(), 100),
            None => (text.trim(), 1),
        };
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let digits = format!("{whole}{fraction}");
        if whole.is_empty() || fraction.len() > 9 || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return Err(fail());
        }
        let part: u64 = digits.parse().map_err(|_| fail())?;
        Ok(Self { part, of: hundred * 10u64.pow(fraction.len() as u32) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_percentages_and_fractions() {
        assert_eq!("0.5%".parse(), Ok(Ratio::new(5, 1000)));
        assert_eq!("1/1000".parse(), Ok(Ratio::new(1, 1000)));
        assert_eq!("0".parse(), Ok(Ratio::new(0, 1)));
        for text in ["", "%", "1/0", "3/2", "x", "-1%"] {
            assert!(text.parse::<Ratio>().is_err(), "{text}");
        }
    }

    #[test]
    fn one_in_a_million_is_not_shown_as_none() {
        assert_eq!(Ratio::new(1, 100_000).to_string(), "0.0010 %");
        assert_eq!(Ratio::new(1, 10_000_000).to_string(), "< 0.0001 %");
        assert_eq!(Ratio::new(0, 1_000_000).to_string(), "0 %");
        assert_eq!(Ratio::new(999_999, 1_000_000).to_string(), "> 99.9 %");
        assert_eq!(Ratio::new(17, 100).to_string(), "17.0 %");
    }

    #[test]
    fn compares_by_value() {
        assert!(Ratio::new(1, 100) < Ratio::new(1, 50));
        assert_eq!(Ratio::new(0, 0).partial_cmp(&Ratio::new(1, 2)), None);
    }
}
