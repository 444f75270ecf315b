//! Plain sentences about results: what was found, what it is worth, where the rest went, what it cost.
//!
//! A sentence states what the numbers support and no more. What limited a result is the verdict's to say.

use crate::figures::{self, cost_ns, counted_share, grouped, nanos, per_second, percent, plain, rate, spread};
use crate::language::Language;
use crate::said;
use crate::{calls, loaded_latency, nfs};
use linerate_model::{
    Caveat, Confidence, Direction, Latency, Limit, Loss, LossPlaces, Measurement, Record, Repeats, Summary,
    WorkloadKind,
};
use linerate_units::Ratio;

/// Above this share of a link's calculated limit, the calculation's premises do not hold.
const PAST_LIMIT: f64 = 1.02;
/// Stalls below this share of the busy time are not worth a sentence.
const WORTH_TELLING: f64 = 0.05;

/// What a reader must know of one result: the figure, what it is worth, what went missing, what it cost.
pub(crate) fn main(lang: Language, record: &Record, result: &Measurement) -> Vec<String> {
    let loaded = loaded_latency::sentence(lang, result);
    let (again, corrupt) = (calls::again(lang, result), nfs::corruption(lang, result));
    let rest = [
        ceiling(lang, result),
        loss(lang, result),
        disorder(lang, result),
        failures(lang, result),
        again,
        corrupt,
        loaded,
        cpu(lang, result),
    ];
    std::iter::once(found(lang, record, result)).chain(rest.into_iter().flatten()).collect()
}

/// What a reader may want to know besides.
pub(crate) fn further(lang: Language, result: &Measurement) -> Vec<String> {
    [layers(lang, result), jitter(lang, result), tcp(lang, result)].into_iter().flatten().collect()
}

/// The result itself, with its spread.
pub(crate) fn found(lang: Language, record: &Record, result: &Measurement) -> String {
    match result.workload {
        WorkloadKind::Stream => stream(lang, record, result),
        WorkloadKind::Rpc => calls::found(lang, record, result),
        WorkloadKind::Transact | WorkloadKind::Nfs => transactions(lang, record, result),
    }
}

fn stream(lang: Language, record: &Record, result: &Measurement) -> String {
    let Some(payload) = result.received.as_ref().map(|received| &received.payload_bps) else {
        return said!(lang, "sentences-no-figure-nothing-was");
    };
    let bits = |value| rate(value, "bit/s");
    let Some(median) = bits(payload.median) else {
        return said!(lang, "sentences-no-figure-what-was");
    };
    let place = match (result.shares.len(), result.direction) {
        (0 | 1, Some(Direction::Both)) => said!(lang, "sentences-payload-at-the-receivers-both-ways"),
        (0 | 1, _) => said!(lang, "charts-payload-at-the-receiver"),
        (_, Some(Direction::Both)) => said!(lang, "sentences-payload-at-the-receivers-both-ways"),
        (_, _) => said!(lang, "sentences-payload-at-the-receivers"),
    };
    format!("{median} {place}{} ({}).", of_link(lang, result), runs(lang, record, payload, bits))
}

/// `, 99.9 % of what this link can carry at MTU 1500`; nothing where no limit is known.
pub(crate) fn of_link(lang: Language, result: &Measurement) -> String {
    let Some(limit) = &result.limit else { return String::new() };
    let link = match (result.shares.len(), result.direction) {
        (0..=2, Some(Direction::Both)) => said!(lang, "sentences-this-link-can-carry-both-ways"),
        (0 | 1, _) => said!(lang, "sentences-this-link-can-carry"),
        _ => said!(lang, "sentences-these-links-can-carry"),
    };
    match (percent(limit.share), rate(limit.payload_bps.get() as f64, "bit/s")) {
        (Some(_), Some(most)) if limit.share > PAST_LIMIT => {
            said!(
                lang,
                "sentences-more-than-the-that",
                most = most,
                line_bps = limit.line_bps,
                mtu = limit.mtu.to_string()
            )
        }
        (Some(share), Some(_)) => {
            said!(lang, "sentences-of-what-at-mtu", share = share, link = link, mtu = limit.mtu.to_string())
        }
        _ => String::new(),
    }
}

/// `3 runs, 940 to 942 Mbit/s`, with the interval where the plan asked for one.
pub(crate) fn runs(
    lang: Language,
    record: &Record,
    summary: &Summary,
    show: impl Fn(f64) -> Option<String> + Copy,
) -> String {
    let mut text = spread(lang, summary, show);
    if let (Repeats::Until { .. }, Some(interval)) = (record.plan.repeats, summary.interval)
        && let (Some(low), Some(high)) = (show(interval.low), show(interval.high))
    {
        let range = if low == high { low } else { figures::range(lang, &low, &high) };
        text.push_str(&said!(lang, "sentences-mean-with-confidence", range = range, interval = interval.percent));
    }
    text
}

fn transactions(lang: Language, record: &Record, result: &Measurement) -> String {
    let done = result.transactions_per_s.as_ref().and_then(|summary| {
        let count = per_second(summary.median)?;
        Some(said!(
            lang,
            "sentences-a-second-2",
            count = count,
            workload = requests(lang, result.workload),
            summary = runs(lang, record, summary, per_second)
        ))
    });
    let timed =
        result.latency_ns.as_ref().and_then(|latency| answered(lang, latency, &said!(lang, "sentences-requests")));
    match (done, timed) {
        (Some(done), Some(timed)) => format!("{done}; {timed}."),
        (Some(done), None) => said!(lang, "sentences-none-was-timed", done = done),
        (None, Some(timed)) => said!(lang, "sentences-the-rate-is-unknown", timed = timed),
        (None, None) => said!(lang, "sentences-no-figure-none-was"),
    }
}

/// What a workload's requests are called.
fn requests(lang: Language, workload: WorkloadKind) -> String {
    match workload {
        WorkloadKind::Stream | WorkloadKind::Transact => said!(lang, "charts-transactions"),
        WorkloadKind::Rpc => said!(lang, "calls-calls"),
        WorkloadKind::Nfs => said!(lang, "sentences-operations"),
    }
}

/// `half of the requests were answered within 27 us, 99 % within 81 us`.
pub(crate) fn answered(lang: Language, latency: &Latency, what: &str) -> Option<String> {
    if latency.count == 0 {
        return None;
    }
    let mut text =
        said!(lang, "sentences-half-of-the-were", what = what, p50 = nanos(latency.p50), p99 = nanos(latency.p99));
    // With fewer than a thousand timed, the 99.9th percentile is the slowest one.
    if latency.count >= 1_000 {
        text.push_str(&said!(lang, "sentences-99-9-within", p999 = nanos(latency.p999)));
    }
    text.push_str(&said!(
        lang,
        "sentences-the-slowest-of-took",
        count = grouped(latency.count),
        max = nanos(latency.max)
    ));
    Some(text)
}

/// What the tester reaches without the device, and whose limit the result is therefore.
pub(crate) fn ceiling(lang: Language, result: &Measurement) -> Option<String> {
    let ceiling = result.ceiling.as_ref()?;
    let share = percent(ceiling.share)?;
    let reached = match result.workload {
        WorkloadKind::Stream => rate(ceiling.reached.median, "bit/s")?,
        WorkloadKind::Transact | WorkloadKind::Rpc => {
            said!(
                lang,
                "sentences-a-second",
                median = per_second(ceiling.reached.median)?,
                workload = requests(lang, result.workload)
            )
        }
        WorkloadKind::Nfs => return nfs::ceiling(lang, result, ceiling),
    };
    let of_tester = said!(lang, "sentences-of-what-the-tester", share = share, reached = reached);
    Some(match (result.verdict.limit, result.verdict.confidence) {
        (Limit::Wire, _) => said!(lang, "sentences-the-link-is-the", of_tester = of_tester),
        (Limit::Tester, Confidence::Low) => {
            said!(lang, "sentences-this-may-be-the", of_tester = of_tester)
        }
        (Limit::Tester, _) => said!(lang, "sentences-this-is-the-tester", of_tester = of_tester),
        _ => {
            said!(lang, "sentences-the-device-passes-of", share = share, reached = reached)
        }
    })
}

/// What became of the datagrams that did not arrive.
pub(crate) fn loss(lang: Language, result: &Measurement) -> Option<String> {
    let loss = result.loss.as_ref()?;
    if loss.of == 0 {
        return Some(said!(lang, "sentences-no-datagram-was-offered"));
    }
    if loss.lost == 0 {
        return Some(said!(lang, "sentences-none-of-datagrams-was", loss = grouped(loss.of)));
    }
    let share = counted_share(Ratio::new(loss.lost, loss.of))?;
    let places = places(lang, loss);
    let placed = match places.as_slice() {
        [] => String::new(),
        [(place, _)] => said!(lang, "sentences-all-of-them", place = place),
        several => {
            let parts: Vec<String> =
                several.iter().map(|(place, count)| format!("{} {place}", grouped(*count))).collect();
            format!(": {}", listed(lang, &parts))
        }
    };
    Some(said!(lang, "sentences-of-datagrams-lost", share = share, loss = grouped(loss.of), placed = placed))
}

/// The places where datagrams were lost, each as it stands behind a count; what no place explains comes last.
fn places(lang: Language, loss: &Loss) -> Vec<(String, u64)> {
    let LossPlaces { not_sent, sender_queue, wire, receiver_queue, socket_buffer } = loss.places;
    let unplaced = loss.lost.saturating_sub(loss.places.sum());
    [
        (said!(lang, "sentences-never-sent-because-the"), not_sent),
        (said!(lang, "sentences-in-the-sender-queue"), sender_queue),
        (said!(lang, "sentences-on-the-wire-or"), wire),
        (said!(lang, "sentences-in-the-receiver-nic"), receiver_queue),
        (said!(lang, "sentences-in-the-receiver-socket"), socket_buffer),
        (said!(lang, "sentences-in-a-place-that"), unplaced),
    ]
    .into_iter()
    .filter(|(_, count)| *count > 0)
    .collect()
}

fn disorder(lang: Language, result: &Measurement) -> Option<String> {
    let loss = result.loss.as_ref()?;
    let mut parts = Vec::new();
    if loss.duplicates > 0 {
        parts.push(said!(lang, "sentences-came-more-than-once", duplicates = grouped(loss.duplicates)));
    }
    if loss.reordered > 0 {
        parts.push(said!(lang, "sentences-came-after-one-sent", reordered = grouped(loss.reordered)));
    }
    (!parts.is_empty()).then(|| said!(lang, "sentences-of-the-datagrams", parts = listed(lang, &parts)))
}

fn failures(lang: Language, result: &Measurement) -> Option<String> {
    let failed = result.failed.filter(|failed| *failed > 0)?;
    Some(match result.workload {
        WorkloadKind::Rpc => said!(lang, "results-calls-failed", failed = failed),
        _ => said!(lang, "results-transactions-failed", failed = failed),
    })
}

/// The same traffic by other layers.
fn layers(lang: Language, result: &Measurement) -> Option<String> {
    let received = result.received.as_ref()?;
    let packets = per_second(received.packets_per_s.median).filter(|_| received.packets_per_s.median > 0.0);
    let layer =
        |summary: &Option<Summary>, name: &str| Some(format!("{} {name}", rate(summary.as_ref()?.median, "bit/s")?));
    let parts: Vec<String> = [
        packets.map(|packets| said!(lang, "sentences-ip-packets-a-second", packets = packets)),
        layer(&received.ip_bps, &said!(lang, "sentences-as-ip-packets")),
        layer(&received.wire_bps, &said!(lang, "sentences-on-an-ethernet-wire")),
    ]
    .into_iter()
    .flatten()
    .collect();
    (!parts.is_empty()).then(|| said!(lang, "sentences-the-same-traffic-counts", parts = listed(lang, &parts)))
}

fn tcp(lang: Language, result: &Measurement) -> Option<String> {
    let tcp = result.tcp.as_ref()?;
    let mut text = said!(lang, "sentences-tcp", congestion = plain(&tcp.congestion));
    match tcp.retransmits {
        0 => text.push_str(&said!(lang, "sentences-retransmitted-nothing")),
        some => text.push_str(&said!(
            lang,
            "sentences-retransmitted-of-segments",
            some = grouped(some),
            segments = grouped(tcp.segments)
        )),
    }
    if tcp.rtt_ns > 0 {
        text.push_str(&said!(
            lang,
            "sentences-round-trip-under-load",
            rtt_ns = nanos(tcp.rtt_ns),
            min_rtt_ns = nanos(tcp.min_rtt_ns)
        ));
    }
    for (share, cause) in [
        (tcp.receive_window_limited, said!(lang, "sentences-the-receiver-window")),
        (tcp.send_buffer_limited, said!(lang, "sentences-the-sender-buffer")),
    ] {
        if let Some(shown) = percent(share).filter(|_| share >= WORTH_TELLING) {
            text.push_str(&said!(lang, "sentences-stalled-by-for-of", cause = cause, shown = shown));
        }
    }
    text.push('.');
    Some(text)
}

fn jitter(lang: Language, result: &Measurement) -> Option<String> {
    let jitter = result.jitter_ns.as_ref()?.median;
    let shown = (jitter.is_finite() && jitter > 0.0).then(|| nanos(jitter.round() as u64))?;
    Some(said!(lang, "sentences-transit-times-deviated-by", shown = shown))
}

/// What it cost at both ends, and by what means.
fn cpu(lang: Language, result: &Measurement) -> Option<String> {
    let (sender, receiver) = (&result.cpu.sender, &result.cpu.receiver);
    let means = |means: Option<&String>| {
        means.filter(|name| !name.is_empty()).map_or(String::new(), |name| format!(" ({})", plain(name)))
    };
    let sent = means(result.sent.as_ref().map(|sent| &sent.means));
    let received = means(result.received.as_ref().map(|received| &received.means));
    let (first, second, unit, costs) = match result.workload {
        WorkloadKind::Stream => (
            said!(lang, "sentences-sending", sent = sent),
            said!(lang, "sentences-receiving", received = received),
            said!(lang, "sentences-a-byte"),
            [sender.ns_per_byte, receiver.ns_per_byte],
        ),
        WorkloadKind::Transact | WorkloadKind::Rpc | WorkloadKind::Nfs => {
            let request = match result.workload {
                WorkloadKind::Rpc => said!(lang, "sentences-a-call"),
                WorkloadKind::Nfs => said!(lang, "sentences-an-operation"),
                WorkloadKind::Stream | WorkloadKind::Transact => said!(lang, "sentences-a-transaction"),
            };
            (
                said!(lang, "sentences-asking"),
                said!(lang, "sentences-answering"),
                request,
                [sender.ns_per_packet, receiver.ns_per_packet],
            )
        }
    };
    let cost = match costs.map(|cost| cost.and_then(cost_ns)) {
        [None, None] => None,
        [Some(a), None] => Some(said!(lang, "sentences-took-3", first = first, a = a, unit = unit)),
        [None, Some(b)] => Some(said!(lang, "sentences-took-2", second = second, b = b, unit = unit)),
        [Some(a), Some(b)] => {
            Some(said!(lang, "sentences-took", first = first, a = a, unit = unit, second = second, b = b))
        }
    };
    let busy = busiest_cores(lang, result).map(|busy| said!(lang, "sentences-busiest-core-at-the", busy = busy));
    let parts: Vec<String> = [cost, busy].into_iter().flatten().collect();
    (!parts.is_empty()).then(|| said!(lang, "sentences-cpu-time", parts = parts.join("; ")))
}

/// Busy shares of the busiest core, sending and receiving host: `91 and 54 %`. None where nothing was observed.
pub(crate) fn busiest_cores(lang: Language, result: &Measurement) -> Option<String> {
    let whole = |share: f64| (0.0..=1.05).contains(&share).then(|| format!("{:.0}", share * 100.0));
    let (sender, receiver) = (result.cpu.sender.busiest_core, result.cpu.receiver.busiest_core);
    if sender == 0.0 && receiver == 0.0 {
        return None;
    }
    Some(said!(lang, "sentences-and-2", sender = whole(sender)?, receiver = whole(receiver)?))
}

/// A text of a record as a sentence: with a capital and a full stop.
pub(crate) fn sentence(text: &str) -> String {
    let text = plain(text.trim());
    let mut chars = text.chars();
    let mut whole: String = chars.next().into_iter().flat_map(char::to_uppercase).chain(chars).collect();
    if !whole.is_empty() && !whole.ends_with(['.', '!', '?', '\u{3002}']) {
        whole.push(if whole.ends_with(|last: char| last.is_ascii()) { '.' } else { '\u{3002}' });
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
            said!(lang, "sentences-and", first = first.join(&said!(lang, "sentences-comma")), last = last)
        }
    }
}
