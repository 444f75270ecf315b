//! Counts of bytes.

use crate::number::{self, ParseError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub};
use std::str::FromStr;

/// A number of bytes. `64K` reads as 64,000, `64KiB` as 65,536.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct ByteCount(u64);

impl ByteCount {
    /// `bytes` bytes.
    pub const fn new(bytes: u64) -> Self {
        Self(bytes)
    }

    /// The number of bytes.
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl Add for ByteCount {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl AddAssign for ByteCount {
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}

/// Never below zero: counters read in the wrong order must not become exabytes.
impl Sub for ByteCount {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Sum for ByteCount {
    fn sum<I: Iterator<Item = Self>>(counts: I) -> Self {
        counts.fold(Self(0), Add::add)
    }
}

impl fmt::Display for ByteCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        number::write(f, self.0, "B")
    }
}

impl FromStr for ByteCount {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        number::parse(text, &[("bytes", 1), ("byte", 1), ("B", 1), ("", 1)], "a number of bytes", "1472, 64K or 1MiB")
            .map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimal_unless_it_says_binary() {
        for (text, bytes) in
            [("64K", 64_000), ("64k", 64_000), ("64KiB", 65_536), ("1Mi", 1 << 20), ("1472", 1472), ("1.5kB", 1_500)]
        {
            assert_eq!(text.parse(), Ok(ByteCount(bytes)), "{text}");
        }
        assert!("64Kbit".parse::<ByteCount>().is_err());
    }

    #[test]
    fn shows_whole_bytes() {
        assert_eq!(ByteCount(64).to_string(), "64 B");
        assert_eq!(ByteCount(65_536).to_string(), "65.5 kB");
    }
}
