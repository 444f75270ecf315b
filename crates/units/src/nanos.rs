//! Durations.

use crate::number::ParseError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::{Add, Sub};
use std::str::FromStr;
use std::time::Duration;

/// A duration in nanoseconds. Reads `10s`, `1.5s`, `200ms`, `50us`, `800ns`, `2min`; a bare number is seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Nanos(u64);

impl Nanos {
    /// `nanos` nanoseconds.
    pub const fn new(nanos: u64) -> Self {
        Self(nanos)
    }

    /// `millis` milliseconds.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis * 1_000_000)
    }

    /// `seconds` seconds.
    pub const fn from_secs(seconds: u64) -> Self {
        Self(seconds * 1_000_000_000)
    }

    /// The number of nanoseconds.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Whether it is no time at all.
    pub const fn is_zero(&self) -> bool {
        self.0 == 0
    }

    /// In seconds, for display and statistics.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }
}

impl From<Nanos> for Duration {
    fn from(time: Nanos) -> Self {
        Self::from_nanos(time.0)
    }
}

impl From<Duration> for Nanos {
    /// Saturates after 584 years.
    fn from(time: Duration) -> Self {
        Self(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl Add for Nanos {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Sub for Nanos {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (step, unit) = match self.0 {
            0..1_000 => (1.0, "ns"),
            1_000..1_000_000 => (1e3, "us"),
            1_000_000..1_000_000_000 => (1e6, "ms"),
            _ => (1e9, "s"),
        };
        let value = self.0 as f64 / step;
        let places = if step == 1.0 || value >= 99.95 { 0 } else { 1 };
        let mut digits = format!("{value:.places$}");
        if digits.ends_with(".0") {
            digits.truncate(digits.len() - 2);
        }
        f.pad(&format!("{digits} {unit}"))
    }
}

impl FromStr for Nanos {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let fail = || ParseError { text: text.to_owned(), expected: "a duration", example: "10s, 200ms or 2min" };
        let trimmed = text.trim();
        let end = trimmed.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(trimmed.len());
        let (number, unit) = trimmed.split_at(end);
        let one: u128 = match unit {
            "ns" => 1,
            "us" => 1_000,
            "ms" => 1_000_000,
            "s" | "" => 1_000_000_000,
            "min" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            _ => return Err(fail()),
        };
        let number = number.trim();
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let digits = format!("{whole}{fraction}");
        if whole.is_empty() || fraction.len() > 9 || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return Err(fail());
        }
        let value: u128 = digits.parse::<u64>().map_err(|_| fail())?.into();
        u64::try_from(value * one / 10u128.pow(fraction.len() as u32)).map(Self).map_err(|_| fail())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_shows_durations() {
        for (text, nanos, shown) in [
            ("10s", 10_000_000_000, "10 s"),
            ("2", 2_000_000_000, "2 s"),
            ("1.5s", 1_500_000_000, "1.5 s"),
            ("200ms", 200_000_000, "200 ms"),
            ("50us", 50_000, "50 us"),
            ("2min", 120_000_000_000, "120 s"),
        ] {
            assert_eq!(text.parse(), Ok(Nanos(nanos)), "{text}");
            assert_eq!(Nanos(nanos).to_string(), shown);
        }
        for text in ["", "s", "1..2s", "-1s", "1 day", "1e3s", "99999999999h"] {
            assert!(text.parse::<Nanos>().is_err(), "{text}");
        }
    }
}
