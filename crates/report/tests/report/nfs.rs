//! What the reports show of an NFS server and of RPC: the peak in words, the curve, operations and classes, the charts.

use crate::sample;
use linerate_model::{
    Bypass, ClassPoint, CurveFound, CurveMiss, CurvePeak, CurvePlan, CurvePoint, Detail, Goal, Measurement, NfsClass,
    NfsFigures, NfsOperation, OperationFigures, Outcome, Plan, ReceivedRates, Record, RecordId, Repeats, RpcCall,
    RpcFigures, Summary, TesterLimit, TransactFigures, Transport,
};
use linerate_report::{Style, csv, text};
use linerate_units::{Nanos, Ratio};
use std::collections::BTreeMap;

fn figures(count: u64, share: f64, mean_ms: f64) -> OperationFigures {
    OperationFigures {
        count,
        share,
        ops_per_s: count as f64 / 3.0,
        mean_ms,
        p50_ms: mean_ms * 0.8,
        p99_ms: mean_ms * 4.0,
        ..OperationFigures::default()
    }
}

/// One NFS result with its operations.
fn nfs(name: &str, ops: f64, mean_ms: f64) -> Measurement {
    let count = (ops * 3.0) as u64;
    let mut operations = BTreeMap::from([
        (NfsOperation::Read, figures(count * 2 / 10, 0.2, mean_ms * 1.5)),
        (NfsOperation::Write, figures(count / 10, 0.1, mean_ms * 3.0)),
        (NfsOperation::Lookup, figures(count * 7 / 10, 0.7, mean_ms * 0.5)),
    ]);
    operations.entry(NfsOperation::Lookup).and_modify(|lookup| {
        lookup.errors.insert("NFS3ERR_STALE".to_owned(), 3);
    });
    let TransactFigures { mut flow, mut requests, .. } = sample::transacted(Transport::Tcp, (mean_ms * 1e6) as u64);
    flow.message_bytes = 8192;
    requests.transactions_per_s =
        Summary { median: ops, low: ops, high: ops, runs: 1, values: vec![ops], interval: None };
    let figures = NfsFigures {
        flow,
        requests,
        received: None,
        retransmitted: 0,
        classes: operations.iter().map(|(operation, own)| (operation.class(), own.clone())).collect(),
        operations,
        service_ns: None,
    };
    let mut result = sample::of(name, Detail::Nfs(Box::new(figures)));
    result.tester_limit = Some(TesterLimit {
        interleaved: false,
        record: RecordId("20261121T092900-77aa".to_owned()),
        bypass: Bypass::Loopback,
        age: Nanos::default(),
        reached: sample::summary(40_000.0, 0.02),
        share: ops / 40_000.0,
    });
    result
}

fn point(ops: f64, mean_ms: f64, missed: Option<CurveMiss>) -> CurvePoint {
    let class = |share: f64, slower: f64| ClassPoint {
        achieved_ops: ops * share,
        mean_ms: mean_ms * slower,
        p99_ms: mean_ms * slower * 4.0,
    };
    CurvePoint {
        result: format!("nfs {ops} ops/s"),
        intended_ops: ops,
        offered_ops: ops * 1.01,
        achieved_ops: if missed.is_some() { ops * 0.9 } else { ops },
        mean_ms,
        p50_ms: mean_ms * 0.8,
        p99_ms: mean_ms * 4.0,
        undone: 0,
        sent_share: 1.0,
        classes: BTreeMap::from([
            (NfsClass::Read, class(0.2, 1.5)),
            (NfsClass::Write, class(0.1, 3.0)),
            (NfsClass::Other, class(0.7, 0.5)),
        ]),
        missed,
        runs: 1,
    }
}

/// A server that holds 4,000 operations a second and not 5,000.
pub(crate) fn record() -> Record {
    let loads = [(1_000.0, 0.4), (2_000.0, 0.6), (4_000.0, 6.0), (5_000.0, 240.0)];
    let missed = |ops: f64| (ops > 4_500.0).then_some(CurveMiss::ResponseTime);
    let curve: Vec<CurvePoint> = loads.iter().map(|(ops, mean)| point(*ops, *mean, missed(*ops))).collect();
    let mut results = vec![nfs("nfs closed loop", 4_700.0, 6.8)];
    results.extend(loads.iter().map(|(ops, mean)| nfs(&format!("nfs {ops} ops/s"), *ops, *mean)));
    let peak = results[3].name.clone();
    let found = CurveFound {
        result: Some(peak.clone()),
        curve,
        peak: Some(CurvePeak {
            result: peak,
            offered_ops: 4_040.0,
            achieved_ops: 4_000.0,
            firmness: linerate_model::Firmness::Firm,
            mean_ms: 6.0,
            response_cap_ms: 50.0,
            missed_at_ops: Some(5_000.0),
            missed: Some(CurveMiss::ResponseTime),
        }),
    };
    let mut record = sample::record(&["a"], "b", results);
    let cell = record.plan.cells()[0].clone();
    record.plan = Plan::of(Goal::Curve(CurvePlan {
        cell,
        repeats: Repeats::Times(3),
        time: Nanos::from_secs(3),
        response_cap: Nanos::from_millis(50),
        steps: 10,
        shortfall: Ratio::new(2, 100),
        width: Ratio::new(2, 100),
    }));
    record.outcome = Outcome::Curve(found);
    record
}

/// RPC with units of several sizes over both transports.
pub(crate) fn rpc() -> Record {
    let one = |transport: Transport, bytes: u64| {
        let payload_bps = sample::summary(bytes as f64 * if transport == Transport::Udp { 150e3 } else { 120e3 }, 0.02);
        let received = ReceivedRates {
            packets_per_s: sample::summary(20_000.0, 0.01),
            payload_bps,
            ip_bps: None,
            wire_bps: None,
            messages_per_s: None,
            io_method: String::new(),
            within: None,
        };
        let TransactFigures { mut flow, requests, .. } = sample::transacted(transport, 40_000);
        flow.message_bytes = bytes;
        let figures = RpcFigures {
            flow,
            requests,
            call: RpcCall::Write,
            received: Some(received),
            sent: None,
            retransmitted: 0,
            service_ns: None,
        };
        sample::of(&format!("{transport} write {bytes}"), Detail::Rpc(Box::new(figures)))
    };
    let sizes = [64, 1024, 8192];
    let results = sizes.iter().flat_map(|bytes| [one(Transport::Udp, *bytes), one(Transport::Tcp, *bytes)]).collect();
    sample::record(&["a"], "b", results)
}

#[test]
fn a_curve_without_a_peak_says_so() {
    let mut record = record();
    let Outcome::Curve(found) = &mut record.outcome else { panic!("a curve") };
    found.peak = None;
    found.curve.retain(|point| point.missed.is_some());
    let shown = text(&record, &Style { width: 120, ..Style::default() });
    assert!(shown.contains("No load was held: even at 5,000 operations a second"), "{shown}");
}

#[test]
fn the_classes_are_columns() {
    let file = csv(&record());
    let mut lines = file.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let head = lines.next().expect("a header");
    let at = |name: &str| head.iter().position(|column| *column == name).unwrap_or_else(|| panic!("{name}"));
    let peak = lines.find(|line| line[at("name")] == "nfs 4000 ops/s").expect("the peak");
    assert_eq!(
        [peak[at("intended_operations_per_s")], peak[at("nfs_write_mean_ms")], peak[at("nfs_errors")]],
        ["4000.0", "18.0", "3"]
    );
    assert_eq!(peak[at("load_missed")], "");
}
