//! Limits of Open vSwitch, as the command line and bench files write them.

use crate::linux::limit_field::{LimitField, each_field, field, join_fields};
use linerate_units::{Nanos, ParseError};
use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// Sizes of the table that Open vSwitch takes as they are (lib/mac-learning.c).
const ADDRESSES: RangeInclusive<u32> = 10..=1_000_000;
/// Ages that it takes as they are.
const AGEING: RangeInclusive<Nanos> = Nanos::from_secs(15)..=Nanos::from_secs(3_600);
const SECOND: u64 = Nanos::from_secs(1).get();

/// Limits of Open vSwitch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OpenVswitchLimits {
    /// Number of MAC addresses in its table (`mac-table-size`). `None` takes its default, 8,192.
    pub addresses: Option<u32>,
    /// Time after which it forgets an address that sends nothing (`mac-aging-time`), in whole seconds. `None` takes its
    /// default, 300 s.
    pub ageing: Option<Nanos>,
}

const ADDRESS_COUNT: LimitField =
    field("addresses", "addresses of Open vSwitch: a count, 10 to 1000000", "addresses=256");
const AGEING_TIME: LimitField = field("ageing", "ageing of Open vSwitch: whole seconds, 15s to 3600s", "ageing=60s");

impl OpenVswitchLimits {
    /// Returns the limits as Open vSwitch calls them in `other-config` of a bridge.
    pub(crate) fn settings(&self) -> Vec<String> {
        let addresses = self.addresses.map(|count| format!("mac-table-size={count}"));
        let ageing = self.ageing.map(|time| format!("mac-aging-time={}", time.get() / SECOND));
        addresses.into_iter().chain(ageing).collect()
    }
}

impl FromStr for OpenVswitchLimits {
    type Err = ParseError;

    /// Reads `addresses=256,ageing=60s`.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        const EXPECTED: &str = "a field of Open vSwitch: addresses or ageing";
        const EXAMPLE: &str = "open-vswitch,addresses=256";
        let mut limits = Self::default();
        each_field(text, EXPECTED, EXAMPLE, |name, value| {
            match name {
                "addresses" => {
                    limits.addresses = Some(ADDRESS_COUNT.read(value, |count| ADDRESSES.contains(count))?);
                }
                "ageing" => {
                    limits.ageing = Some(
                        AGEING_TIME
                            .read(value, |time: &Nanos| AGEING.contains(time) && time.get().is_multiple_of(SECOND))?,
                    );
                }
                _ => return Err(ParseError { text: name.to_owned(), expected: EXPECTED, example: EXAMPLE }),
            }
            Ok(())
        })?;
        Ok(limits)
    }
}

impl fmt::Display for OpenVswitchLimits {
    /// Writes the form that [`FromStr`] reads.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&join_fields([
            (&ADDRESS_COUNT, self.addresses.map(|count| count.to_string())),
            (&AGEING_TIME, self.ageing.map(|time| format!("{}s", time.get() / SECOND))),
        ]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read_as_written() {
        for (text, settings) in [
            ("", &[][..]),
            ("addresses=256", &["mac-table-size=256"]),
            ("addresses=1000000,ageing=3600s", &["mac-table-size=1000000", "mac-aging-time=3600"]),
        ] {
            let limits: OpenVswitchLimits = text.parse().expect(text);
            assert_eq!(limits.to_string(), text);
            assert_eq!(limits.settings(), settings);
        }
    }

    #[test]
    fn an_error_names_the_field_and_shows_an_example() {
        for (text, part) in [
            ("addresses=9", "10 to 1000000"),
            ("addresses=many", "addresses=256"),
            ("ageing=14s", "15s to 3600s"),
            ("ageing=15500ms", "whole seconds"),
            ("ageing=never", "ageing=60s"),
            ("queue=1", "addresses or ageing"),
            ("addresses", "open-vswitch,addresses=256"),
        ] {
            let error = text.parse::<OpenVswitchLimits>().expect_err(text).to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
