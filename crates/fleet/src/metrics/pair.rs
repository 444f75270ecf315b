//! Result of a pair of hosts as metrics show it.

use super::family::Family;
use linerate_model::{HeadlineVerdict, HostName, Quantity, RunSummary};

/// Nanoseconds of a second.
const NS_PER_S: f64 = 1e9;

/// Newest attempt of a test from one host to another.
#[derive(Debug, Clone, PartialEq)]
pub struct PairResult {
    /// The sending host.
    pub from: HostName,
    /// The receiving host.
    pub to: HostName,
    /// Name of the test.
    pub test: String,
    /// Time of the attempt's end, in seconds since 1970.
    pub ended_unix_s: u64,
    /// Result of the attempt. `None` if it failed.
    pub figure: Option<PairFigure>,
}

/// Headline figure of a pair with its limit.
#[derive(Debug, Clone, PartialEq)]
pub struct PairFigure {
    /// Quantity that the value counts.
    pub quantity: Quantity,
    /// Value in the unit of the quantity.
    pub value: f64,
    /// Value as a share of the link's rate, 0 to 1. `None` if no rate is known.
    pub link_share: Option<f64>,
    /// Limit and confidence. `None` if nothing was weighed.
    pub verdict: Option<HeadlineVerdict>,
}

impl PairFigure {
    /// Takes the headline of a summary. Returns `None` if the run has no figure.
    pub fn of(summary: &RunSummary) -> Option<Self> {
        let headline = summary.headline.as_ref()?;
        Some(Self {
            quantity: headline.quantity,
            value: headline.value,
            link_share: headline.link_share,
            verdict: summary.verdict,
        })
    }

    /// Returns the metric of the figure, its value in base units, and the `quantity` label if the metric has one.
    pub(super) fn sample(&self) -> (Family, f64, Option<&'static str>) {
        let seconds = self.value / NS_PER_S;
        match self.quantity {
            Quantity::PayloadBps => (Family::PairThroughput, self.value, None),
            Quantity::PerSecond => (Family::PairOperations, self.value, Some("operations")),
            Quantity::FramesPerS => (Family::PairOperations, self.value, Some("frames")),
            Quantity::FilesPerS => (Family::PairOperations, self.value, Some("files")),
            Quantity::LatencyP50Ns => (Family::PairLatency, seconds, Some("latency_p50")),
            Quantity::LatencyP99Ns => (Family::PairLatency, seconds, Some("latency_p99")),
            Quantity::LoadedP99Ns => (Family::PairLatency, seconds, Some("loaded_p99")),
            Quantity::ReadMeanNs => (Family::PairLatency, seconds, Some("read_mean")),
            Quantity::WriteMeanNs => (Family::PairLatency, seconds, Some("write_mean")),
            Quantity::OtherMeanNs => (Family::PairLatency, seconds, Some("other_mean")),
            Quantity::RecoveryNs => (Family::PairDuration, seconds, Some("recovery")),
            Quantity::BufferNs => (Family::PairDuration, seconds, Some("buffer")),
            Quantity::Held => (Family::PairEntries, self.value, None),
            Quantity::LossRatio => (Family::PairLoss, self.value, None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_in_base_units() {
        for quantity in Quantity::ALL {
            let figure = PairFigure { quantity, value: 3e9, link_share: None, verdict: None };
            let (family, value, label) = figure.sample();
            assert!(family.is_per_pair());
            assert_eq!(label.is_some(), family.labels() == ["quantity"], "{family:?}");
            let expected = if quantity.name().ends_with("_ns") { 3.0 } else { 3e9 };
            assert!((value - expected).abs() < 1e-9, "{quantity:?}: {value}");
        }
    }
}
