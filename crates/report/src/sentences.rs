//! Plain sentences about results: what was found, what it is worth, where the rest went, what it cost.
//!
//! A sentence states what the numbers support and no more. What limited a result is the verdict's to say.

use crate::figures::{self, MISSING, cost_ns, counted_share, grouped, nanos, per_second, percent, plain, rate, spread};
use crate::flow_result::FlowResult;
use crate::language::Language;
use crate::said;
use crate::tables::timed;
use crate::{calls, copy, frames, loaded_latency, nfs, tasks};
use linerate_model::{
    Bypass, Caveat, Confidence, Detail, Direction, Latency, Limit, Loss, LossPlaces, Measurement, Message, Record,
    Repeats, Summary, TaskKind,
};
use linerate_units::Ratio;

/// Stalls below this share of the busy time are not worth a sentence.
const WORTH_TELLING: f64 = 0.05;

/// What a reader must know of one result: the figure, what it is worth, what went missing, what it cost; and how many of these
/// sentences are the answer.
pub(crate) fn main(lang: Language, record: &Record, result: &Measurement) -> (Vec<String>, usize) {
    match (&result.detail, FlowResult::of(result)) {
        (_, Some(flows)) => of_flows(lang, record, &flows),
        (Detail::Copy(found), _) => (copy::sentences(lang, tasks::copy(record, &result.name), found), 1),
        _ => (frames::sentences(lang, record, result), 2),
    }
}

/// The same of streams, transactions, RPC and NFS.
fn of_flows(lang: Language, record: &Record, result: &FlowResult<'_>) -> (Vec<String>, usize) {
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
        busiest_threads(lang, result).map(|busy| match result.task {
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
pub(crate) fn further(lang: Language, result: &FlowResult<'_>) -> Vec<String> {
    layers(lang, result).into_iter().chain(jitter(lang, result)).chain(tcp(lang, result)).collect()
}

/// The result itself with its spread, and what it is worth.
fn found(lang: Language, record: &Record, result: &FlowResult<'_>) -> Vec<String> {
    match result.task {
        TaskKind::Stream => stream(lang, record, result),
        TaskKind::Rpc => calls::found(lang, record, result),
        _ => transactions(lang, record, result),
    }
}

fn stream(lang: Language, record: &Record, result: &FlowResult<'_>) -> Vec<String> {
    let Some(summary) = result.received.as_ref().map(|received| &received.payload_bps) else {
        return vec![said!(lang, "results-nothing-received")];
    };
    let bits = |value| rate(value, "bit/s");
    let Some(payload) = bits(summary.median) else {
        return vec![said!(lang, "results-absurd-rate")];
    };
    let runs = runs(lang, record, summary, bits);
    let found = match (result.shares.len(), result.direction) {
        (_, Some(Direction::Both)) => said!(lang, "results-stream-both", payload = payload, runs = runs),
        (0 | 1, _) => said!(lang, "results-stream", payload = payload, runs = runs),
        _ => said!(lang, "results-stream-paths", payload = payload, runs = runs),
    };
    std::iter::once(found).chain(of_link(lang, result)).collect()
}

/// `This is 99.9 % of what the link can carry at MTU 1500.`; none where no limit is known.
pub(crate) fn of_link(lang: Language, result: &FlowResult<'_>) -> Option<String> {
    let limit = result.limit.as_ref()?;
    let (share, most) = (percent(limit.share)?, rate(limit.payload_bps.get() as f64, "bit/s")?);
    let mtu = limit.mtu.to_string();
    if limit.is_declared_too_slow() {
        return Some(said!(lang, "results-above-link", most = most, line = limit.line_bps, mtu = mtu));
    }
    Some(match (result.shares.len(), result.direction) {
        (0..=2, Some(Direction::Both)) => said!(lang, "results-of-link-both", share = share, mtu = mtu),
        (0 | 1, _) => said!(lang, "results-of-link", share = share, mtu = mtu),
        _ => said!(lang, "results-of-links", share = share, mtu = mtu),
    })
}

/// `3 runs, 940 to 942 Mbit/s`, with the interval where the plan asked for one.
pub(crate) fn runs(
    lang: Language,
    record: &Record,
    summary: &Summary,
    show: impl Fn(f64) -> Option<String> + Copy,
) -> String {
    let mut text = spread(lang, summary, show);
    if let (Some(Repeats::Until { .. }), Some(interval)) = (record.plan.repeats(), summary.interval)
        && let (Some(low), Some(high)) = (show(interval.low), show(interval.high))
    {
        let range = if low == high { low } else { figures::range(lang, &low, &high) };
        text.push_str(&said!(lang, "results-mean-interval", range = range, interval = interval.percent));
    }
    text
}

fn transactions(lang: Language, record: &Record, result: &FlowResult<'_>) -> Vec<String> {
    let done = result.transactions_per_s.as_ref().and_then(|summary| {
        let (rate, runs) = (per_second(summary.median)?, runs(lang, record, summary, per_second));
        Some(match result.task {
            TaskKind::Nfs => said!(lang, "results-operations", rate = rate, runs = runs),
            _ => said!(lang, "results-transactions", rate = rate, runs = runs),
        })
    });
    let done = done.unwrap_or_else(|| said!(lang, "results-no-transactions"));
    vec![done, latency(lang, result)]
}

/// `Response time of 254,311 requests: p50 27 us, p99 81 us, slowest 837 us.`
pub(crate) fn latency(lang: Language, result: &FlowResult<'_>) -> String {
    let Some(Latency { count, p50, p99, p999, max, .. }) = timed(result) else {
        return said!(lang, "results-untimed");
    };
    let [p50, p99, p999, max] = [p50, p99, p999, max].map(|time| nanos(*time));
    // With fewer than a thousand timed, the 99.9th percentile is the slowest one.
    if *count < 1_000 {
        return said!(lang, "results-latency", count = count, p50 = p50, p99 = p99, max = max);
    }
    said!(lang, "results-latency-p999", count = count, p50 = p50, p99 = p99, p999 = p999, max = max)
}

/// What the tester reaches without the device, and whose limit the result is therefore.
pub(crate) fn tester_limit(lang: Language, result: &FlowResult<'_>) -> Option<String> {
    let tester_limit = result.tester_limit?;
    let share = percent(tester_limit.share)?;
    let limit = match result.task {
        TaskKind::Stream => rate(tester_limit.reached.median, "bit/s")?,
        TaskKind::Nfs => return nfs::tester_limit(lang, result, tester_limit),
        _ => format!("{} /s", per_second(tester_limit.reached.median)?),
    };
    let limit = match tester_limit.bypass {
        Bypass::Cable => limit,
        Bypass::Loopback => said!(lang, "results-tester-limit-loopback", limit = limit),
    };
    Some(match (result.verdict.limit, result.verdict.confidence) {
        (Limit::Wire, _) => said!(lang, "results-tester-limit-wire", share = share, limit = limit),
        (Limit::Tester, _) if tester_limit.bypass == Bypass::Loopback => {
            said!(lang, "results-tester-limit-maybe", share = share, limit = limit)
        }
        (Limit::Tester, Confidence::Low) => said!(lang, "results-tester-limit-maybe", share = share, limit = limit),
        (Limit::Tester, _) => said!(lang, "results-tester-limit-reached", share = share, limit = limit),
        _ => said!(lang, "results-tester-limit", share = share, limit = limit),
    })
}

/// What became of the datagrams that did not arrive.
pub(crate) fn loss(lang: Language, result: &FlowResult<'_>) -> Option<String> {
    let loss = result.loss.as_ref()?;
    if loss.of == 0 {
        return Some(said!(lang, "results-loss-none-offered"));
    }
    if loss.lost == 0 {
        return Some(said!(lang, "results-loss-none", loss = grouped(loss.of)));
    }
    let share = counted_share(Ratio::new(loss.lost, loss.of))?;
    let places = places(lang, loss);
    let placed = match places.as_slice() {
        [] => String::new(),
        [(place, _)] => said!(lang, "results-loss-all-at", place = place),
        several => {
            let parts: Vec<String> =
                several.iter().map(|(place, count)| format!("{} {place}", grouped(*count))).collect();
            format!(": {}", listed(lang, &parts))
        }
    };
    Some(said!(lang, "results-loss", share = share, loss = grouped(loss.of), placed = placed))
}

/// The places where datagrams were lost, each as it stands behind a count; what no place explains comes last.
fn places(lang: Language, loss: &Loss) -> Vec<(String, u64)> {
    let LossPlaces {
        not_sent,
        sender_filter,
        sender_queue,
        unaccounted,
        corrupted,
        receiver_queue,
        receiver_filter,
        reassembly,
        socket_buffer,
    } = loss.places;
    let unplaced = loss.lost.saturating_sub(loss.places.sum());
    [
        (said!(lang, "loss-place-not-sent"), not_sent),
        (said!(lang, "loss-place-sender-filter"), sender_filter),
        (said!(lang, "loss-place-sender-queue"), sender_queue),
        (said!(lang, "loss-place-unaccounted"), unaccounted),
        (said!(lang, "loss-place-corrupted"), corrupted),
        (said!(lang, "loss-place-receiver-queue"), receiver_queue),
        (said!(lang, "loss-place-receiver-filter"), receiver_filter),
        (said!(lang, "loss-place-reassembly"), reassembly),
        (said!(lang, "loss-place-socket-buffer"), socket_buffer),
        (said!(lang, "loss-place-unknown"), unplaced),
    ]
    .into_iter()
    .filter(|(_, count)| *count > 0)
    .collect()
}

fn disorder(lang: Language, result: &FlowResult<'_>) -> Option<String> {
    let loss = result.loss.as_ref()?;
    let mut parts = Vec::new();
    if loss.duplicates > 0 {
        parts.push(said!(lang, "results-duplicates", duplicates = grouped(loss.duplicates)));
    }
    if loss.reordered > 0 {
        parts.push(said!(lang, "results-reordered", reordered = grouped(loss.reordered)));
    }
    (!parts.is_empty()).then(|| said!(lang, "results-disorder", parts = listed(lang, &parts)))
}

fn failures(lang: Language, result: &FlowResult<'_>) -> Option<String> {
    let failed = result.failed.filter(|failed| *failed > 0)?;
    Some(match result.task {
        TaskKind::Rpc => said!(lang, "results-calls-failed", failed = failed),
        _ => said!(lang, "results-transactions-failed", failed = failed),
    })
}

/// The same traffic by other layers.
fn layers(lang: Language, result: &FlowResult<'_>) -> Option<String> {
    let received = result.received.as_ref()?;
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

fn tcp(lang: Language, result: &FlowResult<'_>) -> Vec<String> {
    let Some(tcp) = &result.tcp else { return Vec::new() };
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
fn within(lang: Language, result: &FlowResult<'_>) -> Option<String> {
    let range = result.received.as_ref()?.within?;
    let (low, high) = (rate(range.p5_bps, "bit/s")?, rate(range.p95_bps, "bit/s")?);
    Some(said!(lang, "results-within", low = low, high = high))
}

fn jitter(lang: Language, result: &FlowResult<'_>) -> Option<String> {
    let jitter = result.jitter_ns.as_ref()?.median;
    let shown = (jitter.is_finite() && jitter > 0.0).then(|| nanos(jitter.round() as u64))?;
    Some(said!(lang, "further-jitter", shown = shown))
}

/// What it cost at both ends, with the system call that did it.
fn cpu(lang: Language, result: &FlowResult<'_>) -> Option<String> {
    let (sender, receiver) = (&result.cpu.sender, &result.cpu.receiver);
    if result.task == TaskKind::Stream {
        let costs = [sender.ns_per_byte, receiver.ns_per_byte].map(|cost| cost.and_then(cost_ns));
        let methods =
            [result.sent.as_ref().map(|sent| &sent.io_method), result.received.as_ref().map(|all| &all.io_method)];
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
    Some(match result.task {
        TaskKind::Rpc => said!(lang, "results-cpu-call", sender = sender, receiver = receiver),
        TaskKind::Nfs => said!(lang, "results-cpu-operation", sender = sender, receiver = receiver),
        _ => said!(lang, "results-cpu-transaction", sender = sender, receiver = receiver),
    })
}

/// Shares of a core that the busiest thread of the test used, sending and receiving end: `91 and 54 %`. Other programs on the
/// hosts are not in it. None where nothing was observed; a dash for an end that nobody watched.
pub(crate) fn busiest_threads(lang: Language, result: &FlowResult<'_>) -> Option<String> {
    let whole = |share: f64| match share {
        0.0 => Some(MISSING.to_owned()),
        share => (0.0..=1.05).contains(&share).then(|| format!("{:.0}", share * 100.0)),
    };
    let (sender, receiver) = (result.cpu.sender.busiest_thread, result.cpu.receiver.busiest_thread);
    if sender == 0.0 && receiver == 0.0 {
        return None;
    }
    Some(said!(lang, "figures-two-shares", sender = whole(sender)?, receiver = whole(receiver)?))
}

/// What a record says, as sentences in the reader's language.
pub(crate) fn message(lang: Language, message: &Message) -> String {
    sentence(&lang.message(message))
}

/// A text of a record as a sentence: with a capital and a full stop.
pub(crate) fn sentence(text: &str) -> String {
    let text = plain(text.trim());
    let mut chars = text.chars();
    let mut whole: String = chars.next().into_iter().flat_map(char::to_uppercase).chain(chars).collect();
    if !whole.is_empty() && !whole.ends_with(['.', '!', '?', '\u{3002}']) {
        // A Japanese sentence may end with a figure and its unit; then it has hiragana before.
        let is_japanese = !whole.ends_with(|last: char| last.is_ascii())
            || whole.contains(|c| ('\u{3041}'..='\u{309f}').contains(&c));
        whole.push(if is_japanese { '\u{3002}' } else { '.' });
    }
    whole
}

/// The kind of a doubt as its record writes it: `few-runs`.
pub(crate) fn kind(caveat: &Caveat) -> String {
    serde_json::to_value(caveat.kind).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}

/// Sentences in a row: a space between them, but none behind a full-width stop.
pub(crate) fn in_a_row(sentences: &[String]) -> String {
    let mut row = String::new();
    for sentence in sentences {
        if !row.is_empty() && !row.ends_with('\u{3002}') {
            row.push(' ');
        }
        row.push_str(sentence);
    }
    row
}

/// `a`, `a and b`, `a, b and c`.
pub(crate) fn listed(lang: Language, items: &[String]) -> String {
    match items {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => {
            said!(lang, "list-and", first = lang.list(first), last = last)
        }
    }
}
