//! Figures of a cell of streams, transactions, RPC or NFS: its runs as one figure with spread, cost, loss, caveats and verdict.

mod cost;
mod doubts;
mod line_use;
pub(crate) mod nfs;
mod path;
mod rpc;

use cost::cpu;
use doubts::caveats;
use path::PathFacts;

use crate::context::Context;
use crate::latency::latency_of;
use crate::loaded_latency::loaded_latency;
use crate::statistics::summary;
use crate::tcp_summary::tcp_summary;
use crate::tester_limit::{self, tester_limit};
use crate::transfer::{Transfer, rate, transactions_per_s, transfers};
use crate::verdict::{self, FlowFacts};
use crate::within_window::rate_range;
use linerate_model::{
    Caveat, CaveatKind, Confidence, Detail, EndCounts, FlowFigures, Histogram, Latency, Limit, Loss, Measurement,
    PathLimit, Quantity, ReceivedRates, SentRates, Share, StreamTask, Summary, Task, TcpFlow, TcpSummary, Transport,
    Trial, TrialResult, Verdict, ip_packets, layer_bytes, message, tcp_overhead, tcp_packet,
};

/// Returns the result of a cell of streams, transactions, RPC or NFS.
pub(crate) fn measurement(cell: &Trial, runs: &[&TrialResult], with: &Context<'_>) -> Measurement {
    let task = cell.task();
    let path = PathFacts::of(with.hosts, runs);
    let figures = figures(cell, runs, with, &path);
    let (quantity, main) = match (&figures.received, &figures.transactions_per_s) {
        (Some(received), None) => (Quantity::PayloadBps, received.payload_bps.clone()),
        (_, Some(per_s)) => (Quantity::PerSecond, per_s.clone()),
        (None, None) => (Quantity::PayloadBps, over_all(runs, |_| 0.0)),
    };
    let mut result = Measurement {
        name: cell.name.clone(),
        quantity,
        tester_limit: tester_limit(&cell.name, task.kind(), &main, with.calibrated),
        main,
        verdict: Verdict::new(Limit::CannotTell, Confidence::Low, Vec::new()),
        caveats: Vec::new(),
        detail: Detail::Flows(Box::new(figures.clone())),
    };
    result.caveats = caveats(&result, &figures, cell, &path, runs, with);
    result.verdict = verdict::of_flows(&FlowFacts::of(&result, &figures, runs, with.hosts));
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

fn figures(cell: &Trial, runs: &[&TrialResult], with: &Context<'_>, path: &PathFacts<'_>) -> FlowFigures {
    let task = cell.task();
    let net = task.net().cloned().unwrap_or_else(|| linerate_model::Net::plain(Transport::Tcp));
    let stream = if let Task::Stream(stream) = task { Some(stream) } else { None };
    let transact = if let Task::Transact(transact) = task { Some(transact) } else { None };
    let calls = if let Task::Rpc(rpc) = task { Some(rpc) } else { None };
    let requests = task.is_requests();
    let message = task.message_bytes().map_or(0, |bytes| bytes.get());
    let received = match task {
        Task::Rpc(rpc) => rpc::received(rpc, path.mtu, runs),
        Task::Nfs(_) => nfs::received(runs),
        _ => stream.map(|stream| received(stream, path.mtu, runs)),
    };
    let tcp = tcp(runs);
    let limit = match task {
        Task::Nfs(nfs) => path.line.and_then(|line_bps| line_use::limit(nfs, runs, line_bps, path.mtu)),
        _ => received.as_ref().zip(path.line).map(|(received, line_bps)| {
            if let Some(calls) = calls {
                return rpc::limit(calls, received, tcp.as_ref(), line_bps, path.mtu);
            }
            // Segments may be smaller than the path allows (--mss).
            let packet = tcp.as_ref().map_or(path.mtu, |tcp| tcp_packet(net.ip, tcp.mss).min(path.mtu));
            let payload_bps = PathLimit::payload_of(line_bps, net.transport, net.ip, message, packet);
            let share = received.payload_bps.median / (payload_bps.get().max(1) as f64);
            PathLimit { line_bps, mtu: path.mtu, payload_bps, share }
        }),
    };
    let (operations, classes) = nfs::operations(runs);
    let probe = cell.loads.get(1).and_then(|probe| probe.task.net());
    FlowFigures {
        task: task.kind(),
        transport: net.transport,
        ip: net.ip,
        message_bytes: message,
        response_bytes: transact.map(|transact| transact.response_bytes.get()),
        direction: stream.map(|stream| stream.direction),
        flows: net.flows,
        received,
        sent: stream.map(|_| sent(runs)).or(calls.and_then(|calls| rpc::sent(calls, runs))),
        shares: shares(runs, stream.is_some()),
        limit,
        transactions_per_s: requests.then(|| over_all(runs, |all| all.iter().map(transactions_per_s).sum())),
        failed: requests.then(|| runs.iter().flat_map(|run| transfers(run)).map(|t| failed(&t)).sum()),
        loss: total_loss(runs.iter().flat_map(|run| transfers(run))),
        jitter_ns: jitter(runs),
        latency_ns: if requests { latency(runs) } else { None },
        call: calls.map(|calls| calls.call),
        retransmitted: (requests && transact.is_none())
            .then(|| runs.iter().flat_map(|run| transfers(run)).map(retransmitted).sum()),
        operations,
        classes,
        service_ns: service(runs),
        loaded_latency: probe.and_then(|probe| loaded_latency(probe.transport, runs, with.idle)),
        cpu: cpu(runs, path.shared_machine),
        tcp,
    }
}

/// One figure of each run, summarised.
fn over(runs: &[&TrialResult], figure: impl Fn(&[Transfer<'_>]) -> f64) -> Option<Summary> {
    summary(runs.iter().map(|run| figure(&transfers(run))).collect())
}

/// As [`over`], for cells that are known to have runs.
fn over_all(runs: &[&TrialResult], figure: impl Fn(&[Transfer<'_>]) -> f64) -> Summary {
    over(runs, figure).expect("a cell is summarised only when it has runs")
}

fn received(stream: &StreamTask, mtu: u32, runs: &[&TrialResult]) -> ReceivedRates {
    let message = stream.message_bytes.get();
    let payload_bps = over_all(runs, |all| all.iter().map(Transfer::payload_bps).sum());
    let messages = |all: &[Transfer<'_>]| {
        all.iter().filter_map(|t| t.receiver.received.as_ref()).map(|r| rate(r.messages, r.window.get())).sum::<f64>()
    };
    let segments = |all: &[Transfer<'_>]| {
        let of = |t: &Transfer<'_>| {
            let window = t.receiver.received.as_ref().map_or(0, |r| r.window.get());
            let tcp = |end: &EndCounts, of: fn(&TcpFlow) -> u64| -> u64 {
                end.flows.iter().filter_map(|flow| flow.tcp.as_ref()).map(of).sum()
            };
            match t.receiver.told {
                None => rate(tcp(t.receiver, |tcp| tcp.segments_in), window),
                // It does not tell them. What was not sent in vain has arrived.
                Some(_) => {
                    let arrived = tcp(t.sender, |tcp| tcp.segments_out.saturating_sub(tcp.retransmits));
                    rate(arrived, t.sender.sent.as_ref().map_or(0, |sent| sent.window.get()))
                }
            }
        };
        all.iter().map(of).sum::<f64>()
    };
    let each = ip_packets(stream.net.transport, stream.net.ip, message, mtu).len() as f64;
    let packets_per_s = match stream.net.transport {
        Transport::Tcp => over_all(runs, segments),
        Transport::Udp => over_all(runs, |all| messages(all) * each),
    };
    let with = |overhead| with_packets(&payload_bps.values, &packets_per_s, overhead);
    let (ip_overhead, wire_overhead) = match stream.net.transport {
        Transport::Tcp => {
            let (ip, wire) = tcp_overhead(stream.net.ip);
            (f64::from(ip), f64::from(wire))
        }
        Transport::Udp => {
            let (payload, ip, wire) = layer_bytes(stream.net.transport, stream.net.ip, message, mtu);
            ((ip - payload) as f64 / each, (wire - payload) as f64 / each)
        }
    };
    let some = runs.iter().flat_map(|run| transfers(run)).find_map(|t| t.receiver.received.as_ref());
    ReceivedRates {
        ip_bps: with(ip_overhead),
        wire_bps: with(wire_overhead),
        packets_per_s,
        messages_per_s: (stream.net.transport == Transport::Udp).then(|| over_all(runs, messages)),
        io_method: some.map(|r| r.io_method.clone()).unwrap_or_default(),
        within: rate_range(runs),
        payload_bps,
    }
}

/// Each run's payload with what its packets add, bytes a packet.
fn with_packets(payload_bps: &[f64], packets_per_s: &Summary, overhead: f64) -> Option<Summary> {
    let runs = payload_bps.iter().zip(&packets_per_s.values);
    summary(runs.map(|(payload, packets)| payload + packets * overhead * 8.0).collect())
}

fn sent(runs: &[&TrialResult]) -> SentRates {
    let sent = |t: &Transfer<'_>| t.sender.sent.as_ref().map_or(0.0, |s| rate(s.payload_bytes * 8, s.window.get()));
    let some = runs.iter().flat_map(|run| transfers(run)).find_map(|t| t.sender.sent.as_ref());
    SentRates {
        payload_bps: over_all(runs, |all| all.iter().map(sent).sum()),
        io_method: some.map(|s| s.io_method.clone()).unwrap_or_default(),
    }
}

/// Each transfer on its own; nothing if there is only one.
fn shares(runs: &[&TrialResult], stream: bool) -> Vec<Share> {
    let first = runs.first().map(|run| transfers(run)).unwrap_or_default();
    if first.len() < 2 {
        return Vec::new();
    }
    let share = |(index, transfer): (usize, &Transfer<'_>)| {
        let own = |figure: fn(&Transfer<'_>) -> f64| over(runs, |all| all.get(index).map_or(0.0, figure));
        Share {
            from: transfer.from.0.clone(),
            to: transfer.to.0.clone(),
            payload_bps: own(|t| t.payload_bps()).filter(|_| stream),
            transactions_per_s: own(transactions_per_s).filter(|_| !stream),
            loss: total_loss(runs.iter().filter_map(|run| transfers(run).into_iter().nth(index))),
        }
    };
    first.iter().enumerate().map(share).collect()
}

fn total_loss<'a>(transfers: impl Iterator<Item = Transfer<'a>>) -> Option<Loss> {
    transfers.filter_map(|transfer| transfer.loss.copied()).reduce(|mut total, loss| {
        total += loss;
        total
    })
}

/// The worst transfer's jitter of each run.
fn jitter(runs: &[&TrialResult]) -> Option<Summary> {
    let of = |run: &&TrialResult| {
        transfers(run).iter().filter_map(|t| t.receiver.received.as_ref()?.jitter).max().map(|j| j.get() as f64)
    };
    summary(runs.iter().filter_map(of).collect())
}

fn failed(transfer: &Transfer<'_>) -> u64 {
    transfer.sender.transactions.as_ref().map_or(0, |t| t.failed)
}

fn latency(runs: &[&TrialResult]) -> Option<Latency> {
    let mut all = Histogram::default();
    for transactions in runs.iter().flat_map(|run| transfers(run)).filter_map(|t| t.sender.transactions.as_ref()) {
        all.merge(&transactions.latency);
    }
    (all.count() > 0).then(|| latency_of(&all))
}

/// Calls sent again.
fn retransmitted(transfer: Transfer<'_>) -> u64 {
    transfer.sender.transactions.as_ref().map_or(0, |t| t.retransmitted)
}

/// How long calls took within the servers that tell it.
fn service(runs: &[&TrialResult]) -> Option<Latency> {
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
    use linerate_model::{Calibrated, CoreUse, FlowCounts, Host, Nic, Plan, Record, Repeats, TcpFlow, ThreadUse};
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
            memory_bytes: 0,
            boot_id: name.to_owned(),
            congestion_controls: Vec::new(),
            nics: vec![Nic {
                name: "eth0".into(),
                driver: "veth".into(),
                speed: speed.map(BitRate::per_second),
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
    fn figures_of(hosts: &[Host], trials: &[TrialResult]) -> FlowFigures {
        measure(hosts, trials).flows().cloned().expect("flows")
    }

    fn kinds(result: &Measurement) -> Vec<CaveatKind> {
        result.caveats.iter().map(|caveat| caveat.kind).collect()
    }

    #[test]
    fn median_and_spread_over_the_runs() {
        let result = measure(&[], &[trial(1_000, 0), trial(1_200, 0), trial(1_100, 0)]);
        let payload = result.flows().and_then(|flows| flows.received.clone()).expect("a stream").payload_bps;
        assert_eq!((payload.median, payload.low, payload.high, payload.runs), (8.8e6, 8e6, 9.6e6, 3));
    }

    #[test]
    fn the_slower_side_sets_the_limit() {
        let hosts = [host("a", Some(1_000_000_000)), host("b", Some(100_000_000))];
        let limit = figures_of(&hosts, &[trial(11_000, 0)]).limit.expect("both speeds are known");
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
        let received = figures_of(&[], &[trial(1_000, 0)]).received.expect("a stream");
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
        assert_eq!(result.limit.map(|limit| limit.payload_bps.get()), Some(100_000_000 * 524 / 614));
        assert_eq!(result.received.and_then(|r| r.wire_bps).map(|s| s.median), Some(8_000_000.0 + 720_000.0));
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
        let sender = figures_of(&[host("a", None), host("b", None)], &[run]).cpu.sender;
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
