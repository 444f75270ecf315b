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
    /// Counts a finished trial and its payload: what its flows carried, of streams and of transactions.
    pub(crate) fn finish(&self, result: &HalfResult) {
        self.finished.add(1);
        for flow in result.ends.iter().flat_map(|end| &end.flows) {
            self.sent_bytes.add(flow.sent_bytes);
            self.received_bytes.add(flow.received_bytes);
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
            "Trials by what became of them; each started one ends as finished, failed or aborted, and only once.",
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
            "Requests without the token, and connections from peers that are not allowed or that met too many strangers.",
            &[("", self.turned_away.get())],
        );
        metric(
            "sent_bytes_total",
            "counter",
            "Payload bytes sent in the measured windows of finished trials, transactions included.",
            &[("", self.sent_bytes.get())],
        );
        metric(
            "received_bytes_total",
            "counter",
            "Payload bytes received in the measured windows of finished trials, transactions included.",
            &[("", self.received_bytes.get())],
        );
        page
    }
}
