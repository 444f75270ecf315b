//! What the runs of a stream amount to.

pub(crate) mod proof;

use crate::beside;
use crate::context::Context;
use crate::loaded_latency::loaded_latency;
use crate::measure::{PathFacts, flow_figures, over_all, total_loss, with_packets};
use crate::statistics::summary;
use crate::transfer::{Transfer, rate, transfers};
use crate::within_window::rate_range;
use linerate_model::{
    EndCounts, PathLimit, ReceivedRates, SentRates, StreamFigures, StreamTask, Summary, TaskKind, TcpFlow, Transport,
    Trial, TrialResult, ip_packets, layer_bytes, tcp_overhead, tcp_packet,
};

/// Returns the figures of the runs of `cell`, whose task is `stream`.
pub(super) fn figures(
    stream: &StreamTask,
    cell: &Trial,
    path: &PathFacts<'_>,
    runs: &[&TrialResult],
    with: &Context<'_>,
) -> StreamFigures {
    let mut flow = flow_figures(&stream.net, stream.message_bytes, |transfer| transfer.payload_bps(), path, runs);
    let received = received(stream, path.mtu, runs);
    flow.limit = path.line.map(|line_bps| {
        let (transport, ip, mtu) = (flow.transport, flow.ip, path.mtu);
        // Segments may be smaller than the path allows (--mss).
        let packet = flow.tcp.as_ref().map_or(mtu, |tcp| tcp_packet(ip, tcp.mss).min(mtu));
        let payload_bps = path.payload_of(line_bps, transport, ip, flow.message_bytes, packet);
        let share = received.payload_bps.median / (payload_bps.get().max(1) as f64);
        PathLimit { line_bps, mtu, payload_bps, share, half_duplex: path.half_duplex }
    });
    let probe = beside::load(cell, TaskKind::Transact).and_then(|probe| probe.task.net());
    StreamFigures {
        flow,
        direction: stream.direction,
        received,
        sent: sent(runs),
        loss: total_loss(runs.iter().flat_map(|run| transfers(run))),
        jitter_ns: jitter(runs),
        loaded_latency: probe.and_then(|probe| loaded_latency(probe.transport, runs, with.idle)),
    }
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

fn sent(runs: &[&TrialResult]) -> SentRates {
    let sent = |t: &Transfer<'_>| t.sender.sent.as_ref().map_or(0.0, |s| rate(s.payload_bytes * 8, s.window.get()));
    let some = runs.iter().flat_map(|run| transfers(run)).find_map(|t| t.sender.sent.as_ref());
    SentRates {
        payload_bps: over_all(runs, |all| all.iter().map(sent).sum()),
        io_method: some.map(|s| s.io_method.clone()).unwrap_or_default(),
    }
}

/// The worst transfer's jitter of each run.
fn jitter(runs: &[&TrialResult]) -> Option<Summary> {
    let of = |run: &&TrialResult| {
        transfers(run).iter().filter_map(|t| t.receiver.received.as_ref()?.jitter).max().map(|j| j.get() as f64)
    };
    summary(runs.iter().filter_map(of).collect())
}
