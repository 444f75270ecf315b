//! A histogram of durations that merges and travels.

mod v2;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize, de};
use std::borrow::Cow;
use std::fmt;

/// Durations in nanoseconds, to three significant digits, from 1 ns to 100 s; what is longer counts as 100 s.
/// Serialised as HdrHistogram V2, base64, so that any HDR tool can read it.
#[derive(Clone, PartialEq)]
pub struct Histogram(hdrhistogram::Histogram<u64>);

impl fmt::Debug for Histogram {
    /// A summary: the counts themselves are tens of thousands of numbers.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Histogram of {}: {} to {} ns, median {} ns",
            self.count(),
            self.min(),
            self.max(),
            self.quantile(0.5)
        )
    }
}

/// Shortest and longest duration told apart, and significant digits.
const SHORTEST_NS: u64 = 1;
const LONGEST_NS: u64 = 100_000_000_000;
const DIGITS: u8 = 3;

impl Default for Histogram {
    fn default() -> Self {
        let counts = hdrhistogram::Histogram::new_with_bounds(SHORTEST_NS, LONGEST_NS, DIGITS);
        Self(counts.expect("the bounds are constants and valid"))
    }
}

impl Histogram {
    /// Counts one duration.
    pub fn record(&mut self, nanos: u64) {
        self.0.saturating_record(nanos.clamp(SHORTEST_NS, LONGEST_NS));
    }

    /// Counts one duration `times` over.
    pub fn record_many(&mut self, nanos: u64, times: u64) {
        // A value counted no times would still become the longest.
        if times > 0 {
            self.0.saturating_record_n(nanos.clamp(SHORTEST_NS, LONGEST_NS), times);
        }
    }

    /// Adds another histogram's counts.
    pub fn merge(&mut self, other: &Self) {
        self.0.add(&other.0).expect("all histograms here have the same bounds");
    }

    /// How many durations were counted.
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// The duration that `share` (0 to 1) of all are at or below; zero if nothing was counted.
    pub fn quantile(&self, share: f64) -> u64 {
        if self.0.is_empty() { 0 } else { self.0.value_at_quantile(share).min(self.max()) }
    }

    /// The mean; zero if nothing was counted.
    pub fn mean(&self) -> f64 {
        self.0.mean()
    }

    /// The mean of the shortest `share` (0 to 1) of all; zero if nothing was counted.
    pub fn trimmed_mean(&self, share: f64) -> f64 {
        let most = ((self.count() as f64 * share) as u64).max(1);
        let (mut taken, mut sum) = (0, 0.0);
        for step in self.0.iter_recorded() {
            let count = step.count_at_value().min(most - taken);
            taken += count;
            sum += self.0.median_equivalent(step.value_iterated_to()) as f64 * count as f64;
        }
        if taken == 0 { 0.0 } else { sum / taken as f64 }
    }

    /// The shortest duration.
    pub fn min(&self) -> u64 {
        if self.0.is_empty() { 0 } else { self.0.min() }
    }

    /// The longest duration, to the histogram's precision.
    pub fn max(&self) -> u64 {
        self.0.max()
    }

    /// Steps of the cumulative distribution for drawing: (duration, share at or below), at most a few hundred.
    pub fn steps(&self) -> Vec<(u64, f64)> {
        self.0.iter_quantiles(5).map(|step| (step.value_iterated_to(), step.quantile())).collect()
    }
}

/// A text that is no histogram.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a base64 HdrHistogram V2 of durations: {0}")]
pub struct BadHistogram(String);

impl TryFrom<&str> for Histogram {
    type Error = BadHistogram;

    fn try_from(text: &str) -> Result<Self, BadHistogram> {
        let bytes = STANDARD.decode(text).map_err(|error| BadHistogram(error.to_string()))?;
        let mut own = Self::default();
        v2::decode(&bytes, &mut own.0).map_err(|why| BadHistogram(why.to_owned()))?;
        Ok(own)
    }
}

impl Serialize for Histogram {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(v2::encode(&self.0)))
    }
}

impl<'de> Deserialize<'de> for Histogram {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        Self::try_from(text.as_ref()).map_err(de::Error::custom)
    }
}

impl JsonSchema for Histogram {
    fn schema_name() -> Cow<'static, str> {
        "Histogram".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "contentEncoding": "base64",
            "description": "HdrHistogram V2 of durations in nanoseconds"
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn quantiles_are_within_three_digits() {
        let mut histogram = Histogram::default();
        (1..=100_000u64).for_each(|n| histogram.record(n * 1_000));
        for (share, expected) in [(0.5, 50_000_000.0), (0.99, 99_000_000.0), (1.0, 100_000_000.0)] {
            let error = (histogram.quantile(share) as f64 - expected).abs() / expected;
            assert!(error < 0.001, "{share}: {}", histogram.quantile(share));
        }
        assert_eq!(histogram.count(), 100_000);
    }

    #[test]
    fn a_trimmed_mean_leaves_out_the_longest() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.trimmed_mean(0.95), 0.0);
        histogram.record(700);
        assert_eq!(histogram.trimmed_mean(0.95), 700.0);
        let mut histogram = Histogram::default();
        // 95 of 1 to 95, and five that are far off.
        (1..=95).for_each(|n| histogram.record(n));
        histogram.record_many(1_000_000, 5);
        assert_eq!(histogram.trimmed_mean(0.95), 48.0);
        let all = histogram.trimmed_mean(1.0);
        assert!((all - 50_045.6).abs() < 50.0, "{all}");
    }

    #[test]
    fn travels_and_merges() {
        let mut histogram = Histogram::default();
        [1, 5_000, 5_000, u64::MAX].into_iter().for_each(|n| histogram.record(n));
        let text = serde_json::to_string(&histogram).expect("serialises");
        let mut back: Histogram = serde_json::from_str(&text).expect("deserialises");
        assert_eq!(back, histogram);
        back.merge(&histogram);
        assert_eq!(back.count(), 8);
        back.record_many(7, 0);
        assert_eq!((back.count(), back.min()), (8, 1));
        let mut short = Histogram::default();
        short.record_many(5_000, 2);
        short.record_many(9_000, 0);
        assert_eq!((short.count(), short.max()), (2, 5_003));
        assert_eq!(Histogram::default().quantile(0.5), 0);
    }

    /// As the library in Java and those made after it write it.
    #[test]
    fn the_encoding_is_that_of_hdr_histogram() {
        let empty = "HISTEwAAAAEAAAAAAAAAAwAAAAAAAAABAAAAF0h26AA/8AAAAAAAAAA=";
        let known = "HISTEwAAAAQAAAAAAAAAAwAAAAAAAAABAAAAF0h26AA/8AAAAAAAAJWrAQI=";
        let read = Histogram::try_from(known).expect("it is one");
        assert_eq!((read.count(), read.0.lowest_equivalent(read.max())), (1, 890_368));
        let mut own = Histogram::default();
        assert_eq!(serde_json::to_string(&own).expect("serialises"), format!("\"{empty}\""));
        own.record(read.max());
        assert_eq!(serde_json::to_string(&own).expect("serialises"), format!("\"{known}\""));
    }

    proptest! {
        #[test]
        fn hostile_text_is_an_error(text in "[A-Za-z0-9+/=]{0,200}") {
            let _ = Histogram::try_from(text.as_str());
        }
    }
}
