//! Figures of one run of one tool.

use std::fmt;

/// Unit of a work's figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Payload at the receiver.
    Payload,
    /// Datagrams that reached the receiver.
    Datagrams,
    /// Requests answered.
    Transactions,
}

impl Unit {
    /// Formats a value with a readable unit.
    pub(super) fn show(self, value: f64) -> String {
        match self {
            Self::Payload => format!("{:.2} Gbit/s", value / 1e9),
            Self::Datagrams => format!("{:.3} M/s", value / 1e6),
            Self::Transactions => format!("{:.0} /s", value),
        }
    }

    /// Returns the number of messages for a value: megabytes of payload, datagrams or transactions.
    pub(super) fn messages(self, value: f64) -> f64 {
        match self {
            Self::Payload => value / 8e6,
            Self::Datagrams | Self::Transactions => value,
        }
    }

    /// Returns the name of one message.
    pub(super) fn message(self) -> &'static str {
        match self {
            Self::Payload => "MB of payload",
            Self::Datagrams => "datagram",
            Self::Transactions => "transaction",
        }
    }

    /// Returns the unit of the number in JSON.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Payload => "bit/s",
            Self::Datagrams => "datagrams/s",
            Self::Transactions => "transactions/s",
        }
    }
}

/// Figures of one run.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Figure {
    /// Figure in the work's unit.
    pub(crate) value: f64,
    /// Share of the datagrams sent that never arrived, from 0 to 1. `None` if the tool does not report it.
    pub(crate) lost: Option<f64>,
    /// Median round-trip time of a transaction. `None` if the tool does not report it.
    pub(crate) p50_ns: Option<f64>,
}

/// Median and range of several values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Spread {
    pub(super) median: f64,
    pub(super) low: f64,
    pub(super) high: f64,
}

impl Spread {
    /// Returns the spread of the values, or `None` if there is no value.
    pub(super) fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let low = *values.first()?;
        let high = *values.last()?;
        let upper = values.len() / 2;
        let lower = (values.len() - 1) / 2;
        Some(Self { median: (values[lower] + values[upper]) / 2.0, low, high })
    }
}

impl fmt::Display for Spread {
    /// Formats the spread as a ratio.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{:.2} ({:.2}..{:.2})", self.median, self.low, self.high))
    }
}

/// Returns a number with three significant digits.
pub(super) fn three_digits(number: f64) -> String {
    let digits = if number == 0.0 { 0.0 } else { (2.0 - number.abs().log10().floor()).clamp(0.0, 6.0) };
    format!("{number:.*}", digits as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_the_middle() {
        assert_eq!(Spread::of([]), None);
        assert_eq!(Spread::of([3.0]), Some(Spread { median: 3.0, low: 3.0, high: 3.0 }));
        assert_eq!(Spread::of([9.0, 1.0, 2.0]), Some(Spread { median: 2.0, low: 1.0, high: 9.0 }));
        assert_eq!(Spread::of([4.0, 1.0, 2.0, 9.0]), Some(Spread { median: 3.0, low: 1.0, high: 9.0 }));
    }

    #[test]
    fn shows_readable_units() {
        assert_eq!(Unit::Payload.show(34.26e9), "34.26 Gbit/s");
        assert_eq!(Unit::Datagrams.show(240_183.0), "0.240 M/s");
        assert_eq!(Unit::Transactions.show(18_165.4), "18165 /s");
        assert_eq!(Unit::Payload.messages(8e9), 1000.0);
    }

    #[test]
    fn numbers_have_three_digits() {
        assert_eq!(
            [0.012_345, 1.0, 99.96, 123_456.0, 0.0].map(three_digits),
            ["0.0123", "1.00", "100.0", "123456", "0"]
        );
    }
}
