//! Plain sentences about results: what was found, what it is worth, where the rest went, what it cost.
//!
//! A sentence states what the numbers support and no more. What limited a result is the verdict's to say.

use crate::figures::{MISSING, cost_ns, grouped, nanos, per_second, percent, plain, rate};
use crate::language::Language;
use crate::records::tasks;
use crate::said;
use crate::subjects::flow_sentences::{busiest_threads, latency, loss, of_link, tester_limit};
use crate::subjects::stream::loaded_latency;
use crate::subjects::{copy, frames, nfs, rpc as calls};
use crate::wording::{listed, runs};
use linerate_model::{Detail, Direction, Measurement, Record, Summary, TaskKind};

/// Stalls below this share of the busy time are not worth a sentence.
const WORTH_TELLING: f64 = 0.05;

/// What a reader must know of one result: the figure, what it is worth, what went missing, what it cost; and how many of these
/// sentences are the answer.
pub(crate) fn main(lang: Language, record: &Record, result: &Measurement) -> (Vec<String>, usize) {
    match &result.detail {
        Detail::Copy(found) => (copy::sentences(lang, tasks::copy(record, &result.name), found), 1),
        Detail::Frames { .. } => (frames::sentences(lang, record, result), 2),
        _ => of_flows(lang, record, result),
    }
}

/// The same of streams, transactions, RPC and NFS.
fn of_flows(lang: Language, record: &Record, result: &Measurement) -> (Vec<String>, usize) {
    let rest = [
        within(lang, result),
        tester_limit(lang, result),
        loss(lang, result),
        disorder(lang, result),
        failures(lang, result),
        calls::retransmitted(lang, result),
        nfs::corruption(lang, result),
        loaded_latency::sentence(lang, result),
        cpu(lang, result),
        busiest_threads(lang, result).map(|busy| match result.task() {
            TaskKind::Stream => said!(lang, "results-busiest-thread", busy = busy),
            _ => said!(lang, "results-busiest-thread-of-requests", busy = busy),
        }),
    ];
    let mut all = found(lang, record, result);
    let lead = all.len();
    all.extend(rest.into_iter().flatten());
    (all, lead)
}

/// What a reader may want to know besides.
pub(crate) fn further(lang: Language, result: &Measurement) -> Vec<String> {
    layers(lang, result).into_iter().chain(jitter(lang, result)).chain(tcp(lang, result)).collect()
}

/// The result itself with its spread, and what it is worth.
fn found(lang: Language, record: &Record, result: &Measurement) -> Vec<String> {
    match result.task() {
        TaskKind::Stream => stream(lang, record, result),
        TaskKind::Rpc => calls::found(lang, record, result),
        _ => transactions(lang, record, result),
    }
}

fn stream(lang: Language, record: &Record, result: &Measurement) -> Vec<String> {
    let Some(summary) = result.received().map(|received| &received.payload_bps) else {
        return vec![said!(lang, "results-nothing-received")];
    };
    let bits = |value| rate(value, "bit/s");
    let Some(payload) = bits(summary.median) else {
        return vec![said!(lang, "results-absurd-rate")];
    };
    let runs = runs(lang, record, summary, bits);
    let found = match (result.shares().len(), result.stream().map(|stream| stream.direction)) {
        (_, Some(Direction::Both)) => said!(lang, "results-stream-both", payload = payload, runs = runs),
        (0 | 1, _) => said!(lang, "results-stream", payload = payload, runs = runs),
        _ => said!(lang, "results-stream-paths", payload = payload, runs = runs),
    };
    std::iter::once(found).chain(of_link(lang, result)).collect()
}

fn transactions(lang: Language, record: &Record, result: &Measurement) -> Vec<String> {
    let done = result.requests().map(|requests| &requests.transactions_per_s).and_then(|summary| {
        let (rate, runs) = (per_second(summary.median)?, runs(lang, record, summary, per_second));
        Some(match result.task() {
            TaskKind::Nfs => said!(lang, "results-operations", rate = rate, runs = runs),
            _ => said!(lang, "results-transactions", rate = rate, runs = runs),
        })
    });
    let done = done.unwrap_or_else(|| said!(lang, "results-no-transactions"));
    vec![done, latency(lang, result)]
}

fn disorder(lang: Language, result: &Measurement) -> Option<String> {
    let loss = result.loss()?;
    let mut parts = Vec::new();
    if loss.duplicates > 0 {
        parts.push(said!(lang, "results-duplicates", duplicates = grouped(loss.duplicates)));
    }
    if loss.reordered > 0 {
        parts.push(said!(lang, "results-reordered", reordered = grouped(loss.reordered)));
    }
    (!parts.is_empty()).then(|| said!(lang, "results-disorder", parts = listed(lang, &parts)))
}

fn failures(lang: Language, result: &Measurement) -> Option<String> {
    let failed = result.requests().map(|requests| requests.failed).filter(|failed| *failed > 0)?;
    Some(match result.task() {
        TaskKind::Rpc => said!(lang, "results-calls-failed", failed = failed),
        _ => said!(lang, "results-transactions-failed", failed = failed),
    })
}

/// The same traffic by other layers.
fn layers(lang: Language, result: &Measurement) -> Option<String> {
    let received = result.received()?;
    let packets = per_second(received.packets_per_s.median).filter(|_| received.packets_per_s.median > 0.0);
    let layer =
        |summary: &Option<Summary>, name: &str| Some(format!("{} {name}", rate(summary.as_ref()?.median, "bit/s")?));
    let parts: Vec<String> = [
        packets.map(|packets| said!(lang, "further-packets", packets = packets)),
        layer(&received.ip_bps, &said!(lang, "further-ip")),
        layer(&received.wire_bps, &said!(lang, "further-wire")),
    ]
    .into_iter()
    .flatten()
    .collect();
    (!parts.is_empty()).then(|| said!(lang, "further-layers", parts = listed(lang, &parts)))
}

fn tcp(lang: Language, result: &Measurement) -> Vec<String> {
    let Some(tcp) = result.tcp() else { return Vec::new() };
    let congestion = plain(&tcp.congestion);
    let mut all = vec![match tcp.retransmits {
        0 => said!(lang, "further-tcp-clean", congestion = congestion),
        some => {
            said!(lang, "further-tcp-retransmits", congestion = congestion, retransmits = some, segments = tcp.segments)
        }
    }];
    if tcp.rtt_ns > 0 {
        let (loaded, least) = (nanos(tcp.rtt_ns), nanos(tcp.min_rtt_ns));
        all.push(said!(lang, "further-tcp-round-trip", loaded = loaded, least = least));
    }
    let worth = |share: f64| percent(share).filter(|_| share >= WORTH_TELLING);
    let window =
        worth(tcp.receive_window_limited).map(|share| said!(lang, "further-tcp-receive-window", share = share));
    let buffer = worth(tcp.send_buffer_limited).map(|share| said!(lang, "further-tcp-send-buffer", share = share));
    all.extend(window.into_iter().chain(buffer));
    all
}

/// How far the rate ranged within the window.
fn within(lang: Language, result: &Measurement) -> Option<String> {
    let range = result.received()?.within?;
    let (low, high) = (rate(range.p5_bps, "bit/s")?, rate(range.p95_bps, "bit/s")?);
    Some(said!(lang, "results-within", low = low, high = high))
}

fn jitter(lang: Language, result: &Measurement) -> Option<String> {
    let jitter = result.stream()?.jitter_ns.as_ref()?.median;
    let shown = (jitter.is_finite() && jitter > 0.0).then(|| nanos(jitter.round() as u64))?;
    Some(said!(lang, "further-jitter", shown = shown))
}

/// What it cost at both ends, with the system call that did it.
fn cpu(lang: Language, result: &Measurement) -> Option<String> {
    let cpu = &result.flows()?.cpu;
    let (sender, receiver) = (&cpu.sender, &cpu.receiver);
    if result.task() == TaskKind::Stream {
        let costs = [sender.ns_per_byte, receiver.ns_per_byte].map(|cost| cost.and_then(cost_ns));
        let methods = [result.sent().map(|sent| &sent.io_method), result.received().map(|all| &all.io_method)];
        let with_method = |cost: &Option<String>, method: Option<&String>| match (cost, method) {
            (Some(cost), Some(method)) if !method.is_empty() => format!("{cost} ({})", plain(method)),
            (cost, _) => cost.clone().unwrap_or_else(|| MISSING.to_owned()),
        };
        let [sender, receiver] = [with_method(&costs[0], methods[0]), with_method(&costs[1], methods[1])];
        let known = costs.iter().any(Option::is_some);
        return known.then(|| said!(lang, "results-cpu-byte", sender = sender, receiver = receiver));
    }
    let costs = [sender.ns_per_packet, receiver.ns_per_packet].map(|cost| cost.and_then(cost_ns));
    if costs.iter().all(Option::is_none) {
        return None;
    }
    let [sender, receiver] = costs.map(|cost| cost.unwrap_or_else(|| MISSING.to_owned()));
    Some(match result.task() {
        TaskKind::Rpc => said!(lang, "results-cpu-call", sender = sender, receiver = receiver),
        TaskKind::Nfs => said!(lang, "results-cpu-operation", sender = sender, receiver = receiver),
        _ => said!(lang, "results-cpu-transaction", sender = sender, receiver = receiver),
    })
}
