//! Rates: bits, frames and operations per second.

use crate::number::{self, ParseError};
use crate::{ByteCount, Nanos};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

macro_rules! rate {
    ($(#[$doc:meta])* $name:ident, $unit:literal, $units:expr, $expected:literal, $example:literal) => {
        $(#[$doc])*
        #[derive(
            Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
        )]
        #[serde(transparent)]
        pub struct $name(u64);

        impl $name {
            /// The rate of `value` per second.
            pub const fn per_second(value: u64) -> Self {
                Self(value)
            }

            /// The number per second.
            pub const fn get(self) -> u64 {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                number::write(f, self.0, $unit)
            }
        }

        impl FromStr for $name {
            type Err = ParseError;

            fn from_str(text: &str) -> Result<Self, ParseError> {
                number::parse(text, &$units, $expected, $example).map(Self)
            }
        }
    };
}

rate!(
    /// Bits per second, of whatever layer the context names.
    BitRate,
    "bit/s",
    [("bit/s", 1), ("bps", 1), ("b/s", 1), ("bit", 1), ("B/s", 8), ("", 1)],
    "a bit rate",
    "100Mbit/s or 9.4Gbit/s"
);
rate!(
    /// Frames, packets or datagrams per second; the context says which.
    FrameRate,
    "/s",
    [("fps", 1), ("pps", 1), ("/s", 1), ("", 1)],
    "a frame or packet rate",
    "200kfps or 10Mpps"
);
rate!(
    /// Operations (transactions, calls) per second.
    OpRate,
    "/s",
    [("ops/s", 1), ("ops", 1), ("/s", 1), ("", 1)],
    "a rate of operations",
    "2000 or 50k/s"
);

impl BitRate {
    /// The rate at which `bytes` pass in `time`; none when no time passed.
    pub fn of(bytes: ByteCount, time: Nanos) -> Option<Self> {
        per_second(u128::from(bytes.get()) * 8, time).map(Self)
    }

    /// How long `bytes` take at this rate, rounded up; none at rate zero.
    pub fn time_for(self, bytes: ByteCount) -> Option<Nanos> {
        let nanos = (u128::from(bytes.get()) * 8 * 1_000_000_000).div_ceil(u128::from(self.0).max(1));
        if self.0 == 0 { None } else { u64::try_from(nanos).ok().map(Nanos::new) }
    }

    /// The rate scaled by the ratio `numerator / denominator`, rounded down: how a payload's share of a frame becomes its
    /// share of a line. A denominator of zero gives zero.
    pub fn scaled(self, numerator: u64, denominator: u64) -> Self {
        let value = (u128::from(self.0) * u128::from(numerator)).checked_div(u128::from(denominator)).unwrap_or(0);
        Self(u64::try_from(value).unwrap_or(u64::MAX))
    }
}

impl FrameRate {
    /// The rate at which `count` frames pass in `time`; none when no time passed.
    pub fn of(count: u64, time: Nanos) -> Option<Self> {
        per_second(u128::from(count), time).map(Self)
    }
}

impl OpRate {
    /// The rate at which `count` operations are done in `time`; none when no time passed.
    pub fn of(count: u64, time: Nanos) -> Option<Self> {
        per_second(u128::from(count), time).map(Self)
    }
}

/// Rounds to the nearest whole number per second.
fn per_second(count: u128, time: Nanos) -> Option<u64> {
    let nanos = u128::from(time.get());
    u64::try_from((count * 1_000_000_000 + nanos / 2).checked_div(nanos)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_the_ways_engineers_write_rates() {
        for (text, bits) in [
            ("100Mbit/s", 100_000_000),
            ("9.4Gbit/s", 9_400_000_000),
            ("10Mbps", 10_000_000),
            ("1G", 1_000_000_000),
            ("64 kbit/s", 64_000),
            ("125MB/s", 1_000_000_000),
            ("7", 7),
        ] {
            assert_eq!(text.parse(), Ok(BitRate(bits)), "{text}");
        }
        assert_eq!("10Mpps".parse(), Ok(FrameRate(10_000_000)));
        assert_eq!("1.5k".parse(), Ok(OpRate(1_500)));
    }

    #[test]
    fn refuses_what_is_not_a_rate_and_says_how_to_write_one() {
        for text in ["", "fast", "-1", "1.2.3M", "10Mpps", "1e9", "99999999999999999999G", "Gbit/s"] {
            let error = text.parse::<BitRate>().expect_err(text);
            assert!(error.to_string().contains("100Mbit/s"), "{error}");
        }
    }

    #[test]
    fn shows_three_digits() {
        for (bits, text) in [
            (9_412_000_000, "9.41 Gbit/s"),
            (100_000_000, "100 Mbit/s"),
            (999_999, "1000 kbit/s"),
            (1_500, "1.5 kbit/s"),
            (12, "12 bit/s"),
        ] {
            assert_eq!(BitRate(bits).to_string(), text);
        }
        assert_eq!(FrameRate(1_488_095).to_string(), "1.49 M/s");
    }

    #[test]
    fn a_rate_is_a_count_over_a_time() {
        assert_eq!(BitRate::of(ByteCount::new(125_000_000), Nanos::new(1_000_000_000)), Some(BitRate(1_000_000_000)));
        assert_eq!(BitRate::of(ByteCount::new(1), Nanos::new(0)), None);
        assert_eq!(BitRate(1_000_000_000).time_for(ByteCount::new(1538)), Some(Nanos::new(12_304)));
    }

    proptest! {
        #[test]
        fn any_whole_rate_survives_text(bits in 0u64..1 << 60) {
            prop_assert_eq!(format!("{bits}bit/s").parse(), Ok(BitRate(bits)));
        }

        #[test]
        fn no_text_panics(text in ".{0,24}") {
            let _ = text.parse::<BitRate>();
            let _ = text.parse::<ByteCount>();
            let _ = text.parse::<Nanos>();
            let _ = text.parse::<crate::Ratio>();
        }
    }
}
