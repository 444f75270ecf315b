//! What RPC calls moved: the data of their units at the receiving end, and what carries it.

pub(crate) mod proof;

use crate::measure::{PathFacts, flow_figures, over_all, request_figures, retransmitted, service, with_packets};
use crate::transfer::{Transfer, rate, transactions_per_s};
use linerate_model::{
    PathLimit, ReceivedRates, RpcFigures, RpcTask, SentRates, TcpSummary, Transport, TrialResult, ip_packets,
    layer_bytes, tcp_overhead, tcp_packet,
};
use linerate_units::BitRate;

/// Returns the figures of the runs of `calls`.
pub(super) fn figures(calls: &RpcTask, path: &PathFacts<'_>, runs: &[&TrialResult]) -> RpcFigures {
    let mut flow = flow_figures(&calls.net, calls.unit_bytes, transactions_per_s, path, runs);
    let received = received(calls, path.mtu, runs);
    flow.limit = received
        .as_ref()
        .zip(path.line)
        .map(|(received, line_bps)| limit(calls, received, flow.tcp.as_ref(), line_bps, path));
    RpcFigures {
        flow,
        requests: request_figures(runs),
        call: calls.call,
        received,
        sent: sent(calls, runs),
        retransmitted: retransmitted(runs),
        service_ns: service(runs),
    }
}

/// What was received; none of calls that carry nothing. Of an echo, what the server received: as much comes back.
fn received(spec: &RpcTask, mtu: u32, runs: &[&TrialResult]) -> Option<ReceivedRates> {
    if !spec.call.carries_there() && !spec.call.carries_back() {
        return None;
    }
    let of = |t: &Transfer<'_>| {
        if spec.call.carries_there() { t.receiver.received.clone() } else { t.sender.received.clone() }
    };
    let payload = |t: &Transfer<'_>| of(t).map_or(0.0, |r| rate(r.payload_bytes * 8, r.window.get()));
    let units = |t: &Transfer<'_>| of(t).map_or(0.0, |r| rate(r.messages, r.window.get()));
    let payload_bps = over_all(runs, |all| all.iter().map(payload).sum());
    let units_per_s = over_all(runs, |all| all.iter().map(units).sum());
    let message = spec.message_bytes();
    let each = ip_packets(spec.net.transport, spec.net.ip, message, mtu).len() as f64;
    let segments = |t: &Transfer<'_>| {
        let window = t.sender.transactions.as_ref().map_or(0, |t| t.window.get());
        let tcp = t.sender.flows.iter().filter_map(|flow| flow.tcp.as_ref());
        let there = spec.call.carries_there();
        rate(tcp.map(|tcp| if there { tcp.segments_out } else { tcp.segments_in }).sum(), window)
    };
    let packets_per_s = match spec.net.transport {
        Transport::Udp => over_all(runs, |all| all.iter().map(|t| units(t) * each).sum()),
        Transport::Tcp => over_all(runs, |all| all.iter().map(segments).sum()),
    };
    // Headers of RPC ride in the transport's payload.
    let whole = |units: f64| units * message as f64 * 8.0;
    let carried: Vec<f64> = units_per_s.values.iter().map(|units| whole(*units)).collect();
    let (ip_overhead, wire_overhead) = match spec.net.transport {
        Transport::Tcp => {
            let (ip, wire) = tcp_overhead(spec.net.ip);
            (f64::from(ip), f64::from(wire))
        }
        Transport::Udp => {
            let (payload, ip, wire) = layer_bytes(spec.net.transport, spec.net.ip, message, mtu);
            ((ip - payload) as f64 / each, (wire - payload) as f64 / each)
        }
    };
    Some(ReceivedRates {
        ip_bps: with_packets(&carried, &packets_per_s, ip_overhead),
        wire_bps: with_packets(&carried, &packets_per_s, wire_overhead),
        packets_per_s,
        messages_per_s: Some(units_per_s),
        io_method: "calls".to_owned(),
        within: None,
        payload_bps,
    })
}

/// What was sent where the data come from: the caller for a write or an echo, the server for a read.
fn sent(spec: &RpcTask, runs: &[&TrialResult]) -> Option<SentRates> {
    let of = |t: &Transfer<'_>| if spec.call.carries_there() { t.sender.sent.clone() } else { t.receiver.sent.clone() };
    let bps = |t: &Transfer<'_>| of(t).map_or(0.0, |s| rate(s.payload_bytes * 8, s.window.get()));
    (spec.call.carries_there() || spec.call.carries_back()).then(|| SentRates {
        payload_bps: over_all(runs, |all| all.iter().map(bps).sum()),
        io_method: "calls".to_owned(),
    })
}

/// What a line carries of such units: of the transport's payload, the unit's share of its message.
fn limit(
    spec: &RpcTask,
    received: &ReceivedRates,
    tcp: Option<&TcpSummary>,
    line_bps: BitRate,
    path: &PathFacts<'_>,
) -> PathLimit {
    let message = spec.message_bytes();
    let mtu = path.mtu;
    let packet = tcp.map_or(mtu, |tcp| tcp_packet(spec.net.ip, tcp.mss).min(mtu));
    let whole = path.payload_of(line_bps, spec.net.transport, spec.net.ip, message, packet);
    let payload_bps = whole.scaled(spec.unit_bytes.get(), message);
    let share = received.payload_bps.median / (payload_bps.get().max(1) as f64);
    PathLimit { line_bps, mtu, payload_bps, share, half_duplex: path.half_duplex }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::tests::{host, measure};
    use crate::transfer::tests::{paths_of, trial};
    use linerate_model::{Received, RpcCall, Sent, Service, Task, Transactions};
    use linerate_units::{ByteCount, Nanos};

    /// 100 calls of 8,192 bytes in a second over a line of 10 Mbit/s, of which the server answers each in 1 ms.
    fn measured(transport: Transport, call: RpcCall) -> RpcFigures {
        let mut run = trial(0, 0);
        let unit = if call == RpcCall::Null { 0 } else { 8_192 };
        let rpc =
            RpcTask { paths: run.trial.paths().to_vec(), ..RpcTask::plain(transport, call, ByteCount::new(unit)) };
        *run.trial.task_mut() = Task::Rpc(rpc);
        let window = Nanos::from_secs(1);
        let sent = Sent { window, payload_bytes: 100 * unit, messages: 100, ..Sent::default() };
        let received =
            Received { window, payload_bytes: 100 * unit, messages: 100, arrived: 100, ..Received::default() };
        let mut done = Transactions { window, completed: 100, retransmitted: 3, ..Transactions::default() };
        done.latency.record_many(5_000_000, 100);
        let mut service = Service { calls: 100, ..Service::default() };
        service.time.record_many(1_000_000, 100);
        let ends = &mut paths_of(&mut run)[0];
        (ends.forward_loss, ends.client.transactions, ends.server.service) = (None, Some(done), Some(service));
        (ends.client.sent, ends.server.received) = (call.carries_there().then(|| sent.clone()), None);
        ends.client.received = call.carries_back().then(|| received.clone());
        if call.carries_there() {
            ends.server.received = Some(received);
        }
        ends.server.sent = call.carries_back().then_some(sent);
        let result = measure(&[host("a", Some(10_000_000)), host("b", Some(10_000_000))], &[run]);
        result.rpc().cloned().expect("calls")
    }

    #[test]
    fn data_are_counted_where_they_arrive() {
        for call in [RpcCall::Write, RpcCall::Read, RpcCall::Echo] {
            let result = measured(Transport::Udp, call);
            let received = result.received.expect("it carries data");
            assert_eq!(received.payload_bps.median, 100.0 * 8_192.0 * 8.0, "{call}");
            // A call of 8,252 bytes, a reply of 8,220: six packets either way at an MTU of 1,500.
            assert_eq!(received.packets_per_s.median, 600.0, "{call}");
            let head = if call == RpcCall::Read { 28.0 } else { 60.0 };
            // UDP's 8 bytes once, IP's 20 in each packet; 38 more on the wire: Ethernet, FCS, preamble, gap.
            let ip = 8_192.0 + head + 8.0 + 6.0 * 20.0;
            assert_eq!(received.ip_bps.map(|bps| bps.median), Some(100.0 * ip * 8.0), "{call}");
            assert_eq!(received.wire_bps.map(|bps| bps.median), Some(100.0 * (ip + 6.0 * 38.0) * 8.0), "{call}");
            let limit = result.flow.limit.expect("the line is known");
            let wire = ip + 6.0 * 38.0;
            assert!((limit.share - 100.0 * wire * 8.0 / 10e6).abs() < 1e-4, "{call}: {limit:?}");
            assert_eq!((result.call, result.retransmitted), (call, 3));
            let service = result.service_ns.expect("the server tells");
            assert!((990_000..1_010_000).contains(&service.p50) && service.count == 100);
            assert_eq!(result.sent.map(|sent| sent.payload_bps.median), Some(100.0 * 8_192.0 * 8.0));
        }
    }

    #[test]
    fn calls_that_carry_nothing_have_no_rate_of_data() {
        let result = measured(Transport::Tcp, RpcCall::Null);
        assert!(result.received.is_none() && result.sent.is_none() && result.flow.limit.is_none());
        assert_eq!(result.requests.transactions_per_s.median, 100.0);
    }
}
