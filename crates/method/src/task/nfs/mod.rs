//! NFS: what became of each operation and class, and what the server says of its own time.

mod line_use;

use crate::measure::{PathFacts, flow_figures, over_all, request_figures, retransmitted, service};
use crate::transfer::{Transfer, rate, transactions_per_s};
use linerate_model::{
    EndCounts, NfsClass, NfsFigures, NfsOperation, NfsTask, OperationCounts, OperationFigures, ReceivedRates,
    TrialResult,
};
use std::collections::BTreeMap;

const NS_PER_MS: f64 = 1e6;

/// Returns the figures of the runs of `nfs`.
pub(super) fn figures(nfs: &NfsTask, path: &PathFacts<'_>, runs: &[&TrialResult]) -> NfsFigures {
    let mut flow = flow_figures(&nfs.net, nfs.transfer_bytes, transactions_per_s, path, runs);
    flow.limit = path.line.and_then(|line_bps| line_use::limit(nfs, runs, line_bps, path));
    let (operations, classes) = operations(runs);
    NfsFigures {
        flow,
        requests: request_figures(runs),
        received: received(runs),
        retransmitted: retransmitted(runs),
        operations,
        classes,
        service_ns: service(runs),
    }
}

/// Returns the figures of each operation, and of each class.
fn operations(
    runs: &[&TrialResult],
) -> (BTreeMap<NfsOperation, OperationFigures>, BTreeMap<NfsClass, OperationFigures>) {
    let (mut operations, mut classes) = (BTreeMap::new(), BTreeMap::new());
    for (operation, counts) in clients(runs).flat_map(|end| &end.operations) {
        merge(operations.entry(*operation).or_default(), counts);
        merge(classes.entry(operation.class()).or_default(), counts);
    }
    let completed = classes.values().map(|counts| counts.completed).sum();
    // Runs follow each other, and the paths of one run share its time.
    let window = runs.iter().map(|run| window(run)).sum();
    (shares_of(&operations, completed, window), shares_of(&classes, completed, window))
}

/// Counts of the same kind together.
pub(crate) fn merge(sum: &mut OperationCounts, counts: &OperationCounts) {
    sum.completed += counts.completed;
    sum.bytes += counts.bytes;
    sum.corrupt_bytes += counts.corrupt_bytes;
    sum.latency.merge(&counts.latency);
    for (status, count) in &counts.errors {
        *sum.errors.entry(status.clone()).or_default() += count;
    }
}

fn shares_of<Kind: Ord + Copy>(
    all: &BTreeMap<Kind, OperationCounts>,
    completed: u64,
    window_ns: u64,
) -> BTreeMap<Kind, OperationFigures> {
    let figures = |counts: &OperationCounts| OperationFigures {
        count: counts.completed,
        share: if completed == 0 { 0.0 } else { counts.completed as f64 / completed as f64 },
        ops_per_s: rate(counts.completed, window_ns),
        mean_ms: counts.latency.mean() / NS_PER_MS,
        p50_ms: counts.latency.quantile(0.5) as f64 / NS_PER_MS,
        p99_ms: counts.latency.quantile(0.99) as f64 / NS_PER_MS,
        bytes: counts.bytes,
        errors: counts.errors.clone(),
        corrupt_bytes: counts.corrupt_bytes,
    };
    all.iter().map(|(kind, counts)| (*kind, figures(counts))).collect()
}

/// The length of a run's window: the longest of its asking ends.
pub(crate) fn window(run: &TrialResult) -> u64 {
    clients(&[run]).filter_map(|end| Some(end.transactions.as_ref()?.window.get())).max().unwrap_or_default()
}

/// File data that were read and written; none where no operation moves any.
fn received(runs: &[&TrialResult]) -> Option<ReceivedRates> {
    let bytes = |t: &Transfer<'_>| t.sender.operations.values().map(|counts| counts.bytes).sum::<u64>();
    let window = |t: &Transfer<'_>| t.sender.transactions.as_ref().map_or(0, |asked| asked.window.get());
    let payload_bps = over_all(runs, |all| all.iter().map(|t| rate(bytes(t) * 8, window(t))).sum());
    let segments = |t: &Transfer<'_>| {
        let tcp = t.sender.flows.iter().filter_map(|flow| flow.tcp.as_ref());
        rate(tcp.map(|tcp| tcp.segments_in + tcp.segments_out).sum(), window(t))
    };
    (payload_bps.high > 0.0).then(|| ReceivedRates {
        payload_bps,
        ip_bps: None,
        wire_bps: None,
        packets_per_s: over_all(runs, |all| all.iter().map(segments).sum()),
        messages_per_s: None,
        io_method: "calls".to_owned(),
        within: None,
    })
}

fn clients<'a>(runs: &[&'a TrialResult]) -> impl Iterator<Item = &'a EndCounts> {
    runs.iter().flat_map(|run| run.paths().iter().map(|path| &path.client)).collect::<Vec<_>>().into_iter()
}
