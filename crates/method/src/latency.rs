//! Summaries of latency histograms.

use linerate_model::{Histogram, Latency};

/// Summarises a histogram of latencies.
pub(crate) fn latency_of(all: &Histogram) -> Latency {
    Latency {
        p50: all.quantile(0.5),
        p90: all.quantile(0.9),
        p99: all.quantile(0.99),
        p999: all.quantile(0.999),
        max: all.max(),
        min: all.min(),
        mean: all.mean(),
        count: all.count(),
        distribution: all.steps(),
    }
}

/// Summarises a histogram of latencies. Returns `None` if it is empty.
pub(crate) fn latency_if_any(all: &Histogram) -> Option<Latency> {
    (all.count() > 0).then(|| latency_of(all))
}
