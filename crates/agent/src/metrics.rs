//! What the agent has done so far, for Prometheus.
//! <https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format>

use linerate_model::HalfResult;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts since the agent started.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    pub(crate) started: Count,
    pub(crate) finished: Count,
    pub(crate) failed: Count,
    pub(crate) aborted: Count,
    pub(crate) refused: Count,
    pub(crate) turned_away: Count,
    sent_bytes: Count,
    received_bytes: Count,
}

/// A number that only grows.
#[derive(Debug, Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    pub(crate) fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Metrics {
    /// Counts a finished trial and its payload. The asking end of transactions counts none: it keeps no bytes.
    pub(crate) fn finish(&self, result: &HalfResult) {
        self.finished.add(1);
        for end in &result.ends {
            self.sent_bytes.add(end.sent.as_ref().map_or(0, |sent| sent.payload_bytes));
            self.received_bytes.add(end.received.as_ref().map_or(0, |received| received.payload_bytes));
        }
    }

    /// The page Prometheus reads.
    pub(crate) fn page(&self, running: usize) -> String {
        let mut page = String::new();
        let mut metric = |name: &str, kind: &str, help: &str, samples: &[(&str, u64)]| {
            let _ = writeln!(page, "# HELP linerate_{name} {help}\n# TYPE linerate_{name} {kind}");
            for (labels, value) in samples {
                let _ = writeln!(page, "linerate_{name}{labels} {value}");
            }
        };
        metric(
            "build_info",
            "gauge",
            "Version of the agent and its protocol.",
            &[(&format!("{{version=\"{}\",protocol=\"{}\"}}", env!("CARGO_PKG_VERSION"), crate::PROTOCOL), 1)],
        );
        metric("trials_running", "gauge", "Trials whose engine is at work.", &[("", running as u64)]);
        metric(
            "trials_total",
            "counter",
            "Trials by what became of them; each started one ends in another state.",
            &[
                ("{state=\"started\"}", self.started.get()),
                ("{state=\"finished\"}", self.finished.get()),
                ("{state=\"failed\"}", self.failed.get()),
                ("{state=\"aborted\"}", self.aborted.get()),
                ("{state=\"refused\"}", self.refused.get()),
            ],
        );
        metric(
            "requests_turned_away_total",
            "counter",
            "Requests from a peer that is not allowed, or without the token.",
            &[("", self.turned_away.get())],
        );
        metric(
            "sent_bytes_total",
            "counter",
            "Payload bytes sent in measured windows.",
            &[("", self.sent_bytes.get())],
        );
        metric(
            "received_bytes_total",
            "counter",
            "Payload bytes received in measured windows.",
            &[("", self.received_bytes.get())],
        );
        page
    }
}
