//! Figures of a cell of streams, transactions, RPC or NFS: its runs as one figure with spread, cost, loss, caveats and verdict.

mod cost;
mod doubts;
mod path;

use cost::cpu;
use doubts::caveats;
pub(crate) use path::PathFacts;

use crate::context::Context;
use crate::hops;
use crate::latency::latency_of;
use crate::statistics::summary;
use crate::tcp_summary::tcp_summary;
use crate::tester_limit::{self, tester_limit};
use crate::transfer::{Transfer, transactions_per_s, transfers};
use crate::verdict::{self, FlowFacts};
use linerate_model::{
    Caveat, CaveatKind, Confidence, Detail, FlowFigures, Histogram, Latency, Limit, Loss, Measurement, Net, Quantity,
    RequestFigures, Share, Summary, TcpSummary, Transactions, Trial, TrialResult, Verdict, message,
};
use linerate_units::ByteCount;

/// Returns the result of a cell of streams, transactions, RPC or NFS with these figures.
pub(crate) fn measurement(
    cell: &Trial,
    detail: Detail,
    path: &PathFacts<'_>,
    runs: &[&TrialResult],
    with: &Context<'_>,
) -> Measurement {
    let task = cell.task();
    let (quantity, main) = match &detail {
        Detail::Stream(figures) => (Quantity::PayloadBps, figures.received.payload_bps.clone()),
        Detail::Transact(figures) => (Quantity::PerSecond, figures.requests.transactions_per_s.clone()),
        Detail::Rpc(figures) => (Quantity::PerSecond, figures.requests.transactions_per_s.clone()),
        Detail::Nfs(figures) => (Quantity::PerSecond, figures.requests.transactions_per_s.clone()),
        Detail::Frames { .. } | Detail::Copy(_) | Detail::Hops { .. } => unreachable!("they have no flows"),
    };
    let mut result = Measurement {
        name: cell.name.clone(),
        quantity,
        tester_limit: tester_limit(&cell.name, task.kind(), &main, with.calibrated),
        main,
        verdict: Verdict::new(Limit::CannotTell, Confidence::Low, Vec::new()),
        caveats: Vec::new(),
        detail,
    };
    result.caveats = caveats(&result, cell, path, runs, with);
    result.verdict = verdict::of_flows(&FlowFacts::of(&result, runs, with.hosts));
    hops::locate(&mut result, cell);
    if result.verdict.limit == Limit::Tester {
        let text = message!(
            "caveat-tester-limit",
            "the result is at the tester's limit: the device may do more than this tester can show; use \
                 faster hosts"
        );
        result.caveats.push(Caveat::new(CaveatKind::TesterLimit, text));
    }
    if let Some(limit) = &result.tester_limit {
        result.caveats.extend(tester_limit::caveats(task.kind(), limit));
    }
    result
}

/// Returns the figures that every task of flows has. `main` is the figure of a transfer that its share shows.
pub(crate) fn flow_figures(
    net: &Net,
    message_bytes: ByteCount,
    main: fn(&Transfer<'_>) -> f64,
    path: &PathFacts<'_>,
    runs: &[&TrialResult],
) -> FlowFigures {
    FlowFigures {
        transport: net.transport,
        ip: net.ip,
        flows: net.flows,
        message_bytes: message_bytes.get(),
        limit: None,
        shares: shares(runs, main),
        cpu: cpu(runs, path.shared_machine),
        tcp: tcp(runs),
        ways: Vec::new(),
    }
}

/// Returns the figures that every task of requests has.
pub(crate) fn request_figures(runs: &[&TrialResult]) -> RequestFigures {
    RequestFigures {
        transactions_per_s: over_all(runs, |all| all.iter().map(transactions_per_s).sum()),
        failed: requested(runs).map(|requests| requests.failed).sum(),
        latency_ns: latency(runs),
    }
}

/// Returns how many calls were sent again.
pub(crate) fn retransmitted(runs: &[&TrialResult]) -> u64 {
    requested(runs).map(|requests| requests.retransmitted).sum()
}

/// Returns one figure of each run, summarised. There is one run at least.
pub(crate) fn over_all(runs: &[&TrialResult], figure: impl Fn(&[Transfer<'_>]) -> f64) -> Summary {
    let values = runs.iter().map(|run| figure(&transfers(run))).collect();
    summary(values).expect("a cell is summarised only when it has runs")
}

/// Each run's payload with what its packets add, bytes a packet.
pub(crate) fn with_packets(payload_bps: &[f64], packets_per_s: &Summary, overhead: f64) -> Option<Summary> {
    let runs = payload_bps.iter().zip(&packets_per_s.values);
    summary(runs.map(|(payload, packets)| payload + packets * overhead * 8.0).collect())
}

/// Each transfer on its own; nothing if there is only one.
fn shares(runs: &[&TrialResult], main: fn(&Transfer<'_>) -> f64) -> Vec<Share> {
    let first = runs.first().map(|run| transfers(run)).unwrap_or_default();
    if first.len() < 2 {
        return Vec::new();
    }
    let share = |(index, transfer): (usize, &Transfer<'_>)| Share {
        from: transfer.from.0.clone(),
        to: transfer.to.0.clone(),
        main: over_all(runs, |all| all.get(index).map_or(0.0, main)),
        loss: total_loss(runs.iter().filter_map(|run| transfers(run).into_iter().nth(index))),
    };
    first.iter().enumerate().map(share).collect()
}

pub(crate) fn total_loss<'a>(transfers: impl Iterator<Item = Transfer<'a>>) -> Option<Loss> {
    transfers.filter_map(|transfer| transfer.loss.copied()).reduce(|mut total, loss| {
        total += loss;
        total
    })
}

fn latency(runs: &[&TrialResult]) -> Option<Latency> {
    let mut all = Histogram::default();
    for requests in requested(runs) {
        all.merge(&requests.latency);
    }
    (all.count() > 0).then(|| latency_of(&all))
}

/// Returns the counts of requests of all asking ends.
fn requested<'a>(runs: &[&'a TrialResult]) -> impl Iterator<Item = &'a Transactions> {
    runs.iter().flat_map(|run| transfers(run)).filter_map(|transfer| transfer.sender.transactions.as_ref())
}

/// Returns how long calls took within the servers that measure it.
pub(crate) fn service(runs: &[&TrialResult]) -> Option<Latency> {
    let mut all = Histogram::default();
    for service in runs.iter().flat_map(|run| transfers(run)).filter_map(|t| t.receiver.service.as_ref()) {
        all.merge(&service.time);
    }
    (all.count() > 0).then(|| latency_of(&all))
}

fn tcp(runs: &[&TrialResult]) -> Option<TcpSummary> {
    let all: Vec<_> = runs.iter().flat_map(|run| transfers(run)).collect();
    let flows: Vec<_> = all.iter().flat_map(|t| &t.sender.flows).filter_map(|flow| flow.tcp.as_ref()).collect();
    tcp_summary(&flows)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::results::measurements;
    use crate::transfer::tests::{paths_of, stream_of, trial};
    use linerate_model::{
        Calibrated, CoreUse, FlowCounts, Host, Nic, Plan, Record, Repeats, StreamFigures, TcpFlow, ThreadUse, Transport,
    };
    use linerate_units::{BitRate, Nanos};
    use std::collections::BTreeMap;

    pub(crate) fn host(name: &str, speed: Option<u64>) -> Host {
        Host {
            name: name.into(),
            version: String::new(),
            protocol: 1,
            system: String::new(),
            cpu_model: String::new(),
            cores: 2,
            core_groups: Vec::new(),
            memory_bytes: 0,
            boot_id: name.to_owned(),
            congestion_controls: Vec::new(),
            nics: vec![Nic {
                name: "eth0".into(),
                driver: "veth".into(),
                speed: speed.map(BitRate::per_second),
                duplex: None,
                mtu: 1500,
                up: true,
                mac: String::new(),
                addresses: Vec::new(),
                offloads: BTreeMap::new(),
                qdisc: String::new(),
                driver_version: String::new(),
                firmware: String::new(),
                slot: None,
            }],
            data_addresses: Vec::new(),
            capabilities: Vec::new(),
        }
    }

    /// A record of these trials, all of which are asked for, each as often as it was run.
    pub(crate) fn record_of(hosts: &[Host], trials: &[TrialResult], calibrated: Vec<Calibrated>) -> Record {
        let plan = Plan::sweep(vec![trials[0].trial.clone()], Repeats::Times(trials.len() as u32));
        let id = linerate_model::RecordId("c".into());
        let plan = Plan { calibrated, ..plan };
        Record { hosts: hosts.to_vec(), trials: trials.to_vec(), ..Record::new(id, plan) }
    }

    pub(crate) fn measure(hosts: &[Host], trials: &[TrialResult]) -> Measurement {
        measurements(&record_of(hosts, trials, Vec::new())).remove(0)
    }

    /// The figures of the same.
    fn figures_of(hosts: &[Host], trials: &[TrialResult]) -> StreamFigures {
        measure(hosts, trials).stream().cloned().expect("a stream")
    }

    fn kinds(result: &Measurement) -> Vec<CaveatKind> {
        result.caveats.iter().map(|caveat| caveat.kind).collect()
    }

    #[test]
    fn median_and_spread_over_the_runs() {
        let result = measure(&[], &[trial(1_000, 0), trial(1_200, 0), trial(1_100, 0)]);
        let payload = result.received().expect("a stream").payload_bps.clone();
        assert_eq!((payload.median, payload.low, payload.high, payload.runs), (8.8e6, 8e6, 9.6e6, 3));
    }

    #[test]
    fn the_slower_side_sets_the_limit() {
        let hosts = [host("a", Some(1_000_000_000)), host("b", Some(100_000_000))];
        let limit = figures_of(&hosts, &[trial(11_000, 0)]).flow.limit.expect("both speeds are known");
        assert_eq!(limit.line_bps.get(), 100_000_000);
        assert_eq!(limit.payload_bps.get(), 100_000_000 * 1000 / 1066);
        assert!((limit.share - 88e6 / 93_808_630.0).abs() < 1e-6, "{}", limit.share);
    }

    #[test]
    fn what_a_host_sends_to_itself_has_no_line() {
        let mut run = trial(11_000, 0);
        stream_of(&mut run.trial).paths = vec![linerate_model::Path::between("a", "a")];
        let result = measure(&[host("a", Some(100_000))], &[run]);
        assert_eq!(result.flows().and_then(|flows| flows.limit.clone()), None);
        assert!(!kinds(&result).contains(&CaveatKind::AboveLimit));
    }

    #[test]
    fn layers_are_told_apart() {
        let received = figures_of(&[], &[trial(1_000, 0)]).received;
        // 1,000 datagrams of 1,000 bytes: 1,028 in the packet, 1,066 on the wire.
        assert_eq!(received.payload_bps.median, 8_000_000.0);
        assert_eq!(received.ip_bps.map(|s| s.median), Some(8_224_000.0));
        assert_eq!(received.wire_bps.map(|s| s.median), Some(8_528_000.0));
    }

    #[test]
    fn small_segments_lower_the_limit() {
        let mut run = trial(1_000, 0);
        stream_of(&mut run.trial).net.transport = Transport::Tcp;
        let tcp = Some(TcpFlow { mss: 524, segments_in: 1_000, ..TcpFlow::default() });
        let flow = FlowCounts { tcp, ..FlowCounts::default() };
        let ends = &mut paths_of(&mut run)[0];
        (ends.client.flows, ends.server.flows) = (vec![flow.clone()], vec![flow]);
        let hosts = [host("a", Some(100_000_000)), host("b", Some(100_000_000))];
        let result = figures_of(&hosts, &[run]);
        assert_eq!(result.flow.limit.map(|limit| limit.payload_bps.get()), Some(100_000_000 * 524 / 614));
        assert_eq!(result.received.wire_bps.map(|s| s.median), Some(8_000_000.0 + 720_000.0));
    }

    #[test]
    fn more_than_the_line_carries_is_doubted() {
        let hosts = [host("a", Some(100_000_000)), host("b", Some(100_000_000))];
        assert!(kinds(&measure(&hosts, &[trial(12_000, 0)])).contains(&CaveatKind::AboveLimit));
        assert!(!kinds(&measure(&hosts, &[trial(11_700, 0)])).contains(&CaveatKind::AboveLimit));
    }

    #[test]
    fn without_a_speed_there_is_no_share_and_it_says_so() {
        let result = measure(&[host("a", None), host("b", None)], &[trial(1, 0)]);
        assert_eq!(result.flows().and_then(|flows| flows.limit.clone()), None);
        assert!(kinds(&result).contains(&CaveatKind::UnknownLinkSpeed));
    }

    #[test]
    fn doubts_come_from_the_runs() {
        let steady = measure(&[], &[trial(1_000, 0), trial(1_001, 0), trial(1_000, 0)]);
        assert!(!kinds(&steady).contains(&CaveatKind::WideSpread) && !kinds(&steady).contains(&CaveatKind::FewRuns));
        let shaky = measure(&[], &[trial(1_000, 0), trial(1_500, 0)]);
        assert!(kinds(&shaky).contains(&CaveatKind::WideSpread) && kinds(&shaky).contains(&CaveatKind::FewRuns));
    }

    #[test]
    fn cost_is_thread_time_over_bytes() {
        let mut run = trial(1_000, 0);
        if let Some(a) = run.hosts.get_mut(&"a".into()) {
            a.window = Nanos::from_secs(1);
            a.threads = vec![ThreadUse {
                name: "send 0".into(),
                cpu: Nanos::from_millis(500),
                sends: true,
                ..ThreadUse::default()
            }];
            a.cores = vec![CoreUse {
                core: 0,
                user: Nanos::from_millis(600),
                idle: Nanos::from_millis(400),
                ..CoreUse::default()
            }];
        }
        let sender = figures_of(&[host("a", None), host("b", None)], &[run]).flow.cpu.sender;
        assert_eq!(sender.ns_per_byte, Some(500.0));
        assert_eq!(sender.host_ns_per_byte, Some(600.0));
        assert!((sender.busiest_core - 0.6).abs() < 1e-9 && (sender.busiest_thread - 0.5).abs() < 1e-9);
    }

    #[test]
    fn a_result_at_the_tester_limit_is_the_testers() {
        let mut calibration = record_of(&[], &[trial(1_000, 0)], Vec::new());
        calibration.results = measurements(&calibration);
        let through =
            |run: TrialResult| measurements(&record_of(&[], &[run], crate::calibrated(&calibration))).remove(0);
        let results = [through(trial(990, 0)), through(trial(500, 0))];
        assert_eq!(results.each_ref().map(|r| r.verdict.limit), [Limit::Tester, Limit::Device]);
        assert!(kinds(&results[0]).contains(&CaveatKind::TesterLimit));
    }
}
