//! Plain sentences about results: what was found, what it is worth, where the rest went, what it cost.
//!
//! A sentence states what the numbers support and no more. What limited a result is the verdict's to say.

use crate::device;
use crate::figures::{self, MISSING, cost_ns, counted_share, grouped, nanos, per_second, percent, plain, rate, spread};
use linerate_model::{
    Caveat, Confidence, Direction, IpVersion, Latency, Limit, Loss, LossPlaces, Measurement, Record, Repeats, Summary,
    TrialSpec, Verdict, Workload, WorkloadKind,
};
use linerate_units::Ratio;

/// Above this share of a link's calculated limit, the calculation's premises do not hold.
const PAST_LIMIT: f64 = 1.02;
/// Stalls below this share of the busy time are not worth a sentence.
const WORTH_TELLING: f64 = 0.05;

/// What a reader must know of one result: the figure, what it is worth, what went missing, what it cost.
pub(crate) fn main(record: &Record, result: &Measurement) -> Vec<String> {
    let rest = [ceiling(result), loss(result), disorder(result), failures(result), cpu(result)];
    std::iter::once(found(record, result)).chain(rest.into_iter().flatten()).collect()
}

/// What a reader may want to know besides.
pub(crate) fn further(result: &Measurement) -> Vec<String> {
    [layers(result), jitter(result), tcp(result)].into_iter().flatten().collect()
}

/// The result itself, with its spread.
pub(crate) fn found(record: &Record, result: &Measurement) -> String {
    match result.workload {
        WorkloadKind::Stream => stream(record, result),
        WorkloadKind::Transact => transactions(record, result),
    }
}

fn stream(record: &Record, result: &Measurement) -> String {
    let Some(payload) = result.received.as_ref().map(|received| &received.payload_bps) else {
        return "No figure: nothing was counted at the receiver.".to_owned();
    };
    let bits = |value| rate(value, "bit/s");
    let Some(median) = bits(payload.median) else {
        return "No figure: what was counted at the receiver is not a rate.".to_owned();
    };
    let place = match (result.shares.len(), result.direction) {
        (0 | 1, Some(Direction::Both)) => "payload at the receivers, both ways together",
        (0 | 1, _) => "payload at the receiver",
        (_, Some(Direction::Both)) => "payload at the receivers, both ways together",
        (_, _) => "payload at the receivers, all paths together",
    };
    format!("{median} {place}{} ({}).", of_link(result), runs(record, payload, bits))
}

/// `, 99.9 % of what this link can carry at MTU 1500`; nothing where no limit is known.
fn of_link(result: &Measurement) -> String {
    let Some(limit) = &result.limit else { return String::new() };
    let link = match (result.shares.len(), result.direction) {
        (0..=2, Some(Direction::Both)) => "this link can carry both ways",
        (0 | 1, _) => "this link can carry",
        _ => "these links can carry",
    };
    match (percent(limit.share), rate(limit.payload_bps.get() as f64, "bit/s")) {
        (Some(_), Some(most)) if limit.share > PAST_LIMIT => format!(
            ", more than the {most} that a link of {} can carry so at MTU {}: the data did not cross the link in \
             packets of that MTU, or its speed is not what it says",
            limit.line_bps, limit.mtu
        ),
        (Some(share), Some(_)) => format!(", {share} of what {link} at MTU {}", limit.mtu),
        _ => String::new(),
    }
}

/// `3 runs, 940 to 942 Mbit/s`, with the interval where the plan asked for one.
fn runs(record: &Record, summary: &Summary, show: impl Fn(f64) -> Option<String> + Copy) -> String {
    let mut text = spread(summary, show);
    if let (Repeats::Until { .. }, Some(interval)) = (record.plan.repeats, summary.interval)
        && let (Some(low), Some(high)) = (show(interval.low), show(interval.high))
    {
        let range = if low == high { low } else { figures::range(&low, &high) };
        text.push_str(&format!("; mean {range} with {} % confidence", interval.percent));
    }
    text
}

fn transactions(record: &Record, result: &Measurement) -> String {
    let done = result.transactions_per_s.as_ref().and_then(|summary| {
        let count = per_second(summary.median)?;
        Some(format!("{count} transactions a second ({})", runs(record, summary, per_second)))
    });
    let timed = result.latency_ns.as_ref().and_then(answered);
    match (done, timed) {
        (Some(done), Some(timed)) => format!("{done}; {timed}."),
        (Some(done), None) => format!("{done}; none was timed."),
        (None, Some(timed)) => format!("The rate is unknown; {timed}."),
        (None, None) => "No figure: no transaction was completed.".to_owned(),
    }
}

/// `half of the requests were answered within 27 us, 99 % within 81 us`.
fn answered(latency: &Latency) -> Option<String> {
    if latency.count == 0 {
        return None;
    }
    let mut text =
        format!("half of the requests were answered within {}, 99 % within {}", nanos(latency.p50), nanos(latency.p99));
    // With fewer than a thousand timed, the 99.9th percentile is the slowest one.
    if latency.count >= 1_000 {
        text.push_str(&format!(", 99.9 % within {}", nanos(latency.p999)));
    }
    text.push_str(&format!(", the slowest of {} took {}", grouped(latency.count), nanos(latency.max)));
    Some(text)
}

/// What the tester reaches without the device, and whose limit the result is therefore.
pub(crate) fn ceiling(result: &Measurement) -> Option<String> {
    let ceiling = result.ceiling.as_ref()?;
    let share = percent(ceiling.share)?;
    let reached = match result.workload {
        WorkloadKind::Stream => rate(ceiling.reached.median, "bit/s")?,
        WorkloadKind::Transact => format!("{} transactions a second", per_second(ceiling.reached.median)?),
    };
    let of_tester = format!("{share} of what the tester reaches without the device ({reached})");
    Some(match (result.verdict.limit, result.verdict.confidence) {
        (Limit::Wire, _) => format!("{of_tester}: the link is the limit."),
        (Limit::Tester, Confidence::Low) => {
            format!("{of_tester}: this may be the tester's limit rather than the device's.")
        }
        (Limit::Tester, _) => format!("{of_tester}: this is the tester's limit, not the device's."),
        (Limit::Device | Limit::CannotTell, _) => {
            format!("The device passes {share} of what the tester reaches without it ({reached}).")
        }
    })
}

/// What became of the datagrams that did not arrive.
pub(crate) fn loss(result: &Measurement) -> Option<String> {
    let loss = result.loss.as_ref()?;
    if loss.of == 0 {
        return Some("No datagram was offered, so none could be lost.".to_owned());
    }
    if loss.lost == 0 {
        return Some(format!("None of {} datagrams was lost.", grouped(loss.of)));
    }
    let share = counted_share(Ratio::new(loss.lost, loss.of))?;
    let places = places(loss);
    let placed = match places.as_slice() {
        [] => String::new(),
        [(place, _)] => format!(", all of them {place}"),
        several => {
            let parts: Vec<String> =
                several.iter().map(|(place, count)| format!("{} {place}", grouped(*count))).collect();
            format!(": {}", listed(&parts))
        }
    };
    Some(format!("{share} of {} datagrams lost{placed}.", grouped(loss.of)))
}

/// The places where datagrams were lost, each as it stands behind a count; what no place explains comes last.
fn places(loss: &Loss) -> Vec<(&'static str, u64)> {
    let LossPlaces { not_sent, sender_queue, wire, receiver_queue, socket_buffer } = loss.places;
    let unplaced = loss.lost.saturating_sub(loss.places.sum());
    [
        ("never sent, because the sender did not keep up with the offered rate", not_sent),
        ("in the sender's queue or NIC", sender_queue),
        ("on the wire or in a device", wire),
        ("in the receiver's NIC or kernel queue", receiver_queue),
        ("in the receiver's socket buffer", socket_buffer),
        ("in a place that could not be told", unplaced),
    ]
    .into_iter()
    .filter(|(_, count)| *count > 0)
    .collect()
}

fn disorder(result: &Measurement) -> Option<String> {
    let loss = result.loss.as_ref()?;
    let mut parts = Vec::new();
    if loss.duplicates > 0 {
        parts.push(format!("{} came more than once", grouped(loss.duplicates)));
    }
    if loss.reordered > 0 {
        parts.push(format!("{} came after one sent later", grouped(loss.reordered)));
    }
    (!parts.is_empty()).then(|| format!("Of the datagrams {}.", listed(&parts)))
}

fn failures(result: &Measurement) -> Option<String> {
    let failed = result.failed.filter(|failed| *failed > 0)?;
    Some(match failed {
        1 => "1 transaction failed.".to_owned(),
        _ => format!("{} transactions failed.", grouped(failed)),
    })
}

/// The same traffic by other layers.
fn layers(result: &Measurement) -> Option<String> {
    let received = result.received.as_ref()?;
    let packets = per_second(received.packets_per_s.median).filter(|_| received.packets_per_s.median > 0.0);
    let layer =
        |summary: &Option<Summary>, name: &str| Some(format!("{} {name}", rate(summary.as_ref()?.median, "bit/s")?));
    let parts: Vec<String> = [
        packets.map(|packets| format!("{packets} IP packets a second")),
        layer(&received.ip_bps, "as IP packets"),
        layer(&received.wire_bps, "on an Ethernet wire"),
    ]
    .into_iter()
    .flatten()
    .collect();
    (!parts.is_empty()).then(|| format!("The same traffic counts {}.", listed(&parts)))
}

fn tcp(result: &Measurement) -> Option<String> {
    let tcp = result.tcp.as_ref()?;
    let mut text = format!("TCP ({})", plain(&tcp.congestion));
    match tcp.retransmits {
        0 => text.push_str(" retransmitted nothing"),
        some => text.push_str(&format!(" retransmitted {} of {} segments", grouped(some), grouped(tcp.segments))),
    }
    if tcp.rtt_ns > 0 {
        text.push_str(&format!("; round trip {} under load, {} at best", nanos(tcp.rtt_ns), nanos(tcp.min_rtt_ns)));
    }
    for (share, cause) in
        [(tcp.receive_window_limited, "the receiver's window"), (tcp.send_buffer_limited, "the sender's buffer")]
    {
        if let Some(shown) = percent(share).filter(|_| share >= WORTH_TELLING) {
            text.push_str(&format!("; stalled by {cause} for {shown} of the time"));
        }
    }
    text.push('.');
    Some(text)
}

fn jitter(result: &Measurement) -> Option<String> {
    let jitter = result.jitter_ns.as_ref()?.median;
    let shown = (jitter.is_finite() && jitter > 0.0).then(|| nanos(jitter.round() as u64))?;
    Some(format!("Transit times deviated by {shown} on average (RFC 3550)."))
}

/// What it cost at both ends, and by what means.
fn cpu(result: &Measurement) -> Option<String> {
    let (sender, receiver) = (&result.cpu.sender, &result.cpu.receiver);
    let means = |means: Option<&String>| {
        means.filter(|name| !name.is_empty()).map_or(String::new(), |name| format!(" ({})", plain(name)))
    };
    let sent = means(result.sent.as_ref().map(|sent| &sent.means));
    let received = means(result.received.as_ref().map(|received| &received.means));
    let (first, second, unit, costs) = match result.workload {
        WorkloadKind::Stream => (
            format!("sending{sent}"),
            format!("receiving{received}"),
            "byte",
            [sender.ns_per_byte, receiver.ns_per_byte],
        ),
        WorkloadKind::Transact => {
            ("asking".to_owned(), "answering".to_owned(), "transaction", [sender.ns_per_packet, receiver.ns_per_packet])
        }
    };
    let cost = match costs.map(|cost| cost.and_then(cost_ns)) {
        [None, None] => None,
        [Some(a), None] => Some(format!("{first} took {a} a {unit}")),
        [None, Some(b)] => Some(format!("{second} took {b} a {unit}")),
        [Some(a), Some(b)] => Some(format!("{first} took {a} a {unit}, {second} {b}")),
    };
    let busy = busiest_cores(result).map(|busy| format!("busiest core at the two ends {busy}"));
    let parts: Vec<String> = [cost, busy].into_iter().flatten().collect();
    (!parts.is_empty()).then(|| format!("CPU time: {}.", parts.join("; ")))
}

/// Busy shares of the busiest core, sending and receiving host: `91 and 54 %`. None where nothing was observed.
pub(crate) fn busiest_cores(result: &Measurement) -> Option<String> {
    let whole = |share: f64| (0.0..=1.05).contains(&share).then(|| format!("{:.0}", share * 100.0));
    let (sender, receiver) = (result.cpu.sender.busiest_core, result.cpu.receiver.busiest_core);
    if sender == 0.0 && receiver == 0.0 {
        return None;
    }
    Some(format!("{} and {} %", whole(sender)?, whole(receiver)?))
}

/// Doubts, the same one of several results once, with the names of those results. The run's own have none, nor have those
/// of all its results.
pub(crate) fn caveats(record: &Record) -> Vec<(Vec<String>, &Caveat)> {
    let mut grouped: Vec<(Vec<String>, &Caveat)> = Vec::new();
    for caveat in record.caveats.iter().chain(device::caveats(record)) {
        if !grouped.iter().any(|(_, known)| *known == caveat) {
            grouped.push((Vec::new(), caveat));
        }
    }
    for result in &record.results {
        for caveat in &result.caveats {
            let name = plain(&result.name);
            match grouped.iter_mut().find(|(_, known)| *known == caveat) {
                // The run's own doubt holds for every result: no name to add.
                Some((names, _)) if names.is_empty() || names.contains(&name) => {}
                Some((names, _)) => names.push(name),
                None => grouped.push((vec![name], caveat)),
            }
        }
    }
    for (names, _) in &mut grouped {
        if names.len() > 1 && names.len() == record.results.len() {
            names.clear();
        }
    }
    grouped
}

/// Verdicts, the same one of several results once.
pub(crate) fn verdicts(record: &Record) -> Vec<(Vec<String>, &Verdict)> {
    let mut grouped: Vec<(Vec<String>, &Verdict)> = Vec::new();
    for result in &record.results {
        match grouped.iter_mut().find(|(_, known)| **known == result.verdict) {
            Some((names, _)) => names.push(plain(&result.name)),
            None => grouped.push((vec![plain(&result.name)], &result.verdict)),
        }
    }
    grouped
}

/// `Limited by the wire (high confidence)`.
pub(crate) fn verdict(verdict: &Verdict) -> String {
    let confidence = match verdict.confidence {
        Confidence::Low => "low",
        Confidence::Medium => "medium",
        Confidence::High => "high",
    };
    match verdict.limit {
        Limit::CannotTell => "What limited it cannot be told".to_owned(),
        named => format!("Limited by the {named} ({confidence} confidence)"),
    }
}

/// What limited a result, with the evidence as sentences.
pub(crate) fn judgement(judged: &Verdict) -> String {
    let evidence = judged.evidence.iter().map(|text| sentence(text));
    std::iter::once(format!("{}.", verdict(judged))).chain(evidence).collect::<Vec<_>>().join(" ")
}

/// A text of a record as a sentence: with a capital and a full stop.
pub(crate) fn sentence(text: &str) -> String {
    let text = plain(text.trim());
    let mut chars = text.chars();
    let mut whole: String = chars.next().into_iter().flat_map(char::to_uppercase).chain(chars).collect();
    if !whole.is_empty() && !whole.ends_with(['.', '!', '?']) {
        whole.push('.');
    }
    whole
}

/// The kind of a doubt as its record writes it: `few-runs`.
pub(crate) fn kind(caveat: &Caveat) -> String {
    serde_json::to_value(caveat.kind).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}

/// Who talked to whom: `a to b`, `a, b and c to sink`.
pub(crate) fn parties(record: &Record) -> String {
    let mut pairs: Vec<String> = Vec::new();
    for cell in &record.plan.cells {
        let mut openers: Vec<String> = Vec::new();
        let mut listeners: Vec<String> = Vec::new();
        for path in &cell.paths {
            for (names, name) in [(&mut openers, &path.opener), (&mut listeners, &path.listener)] {
                let name = plain(&name.0);
                if !names.contains(&name) {
                    names.push(name);
                }
            }
        }
        let pair = format!("{} to {}", listed(&openers), listed(&listeners));
        if !openers.is_empty() && !pairs.contains(&pair) {
            pairs.push(pair);
        }
    }
    if let Some(device) = &record.plan.device {
        let ports: Vec<String> = device.ports.iter().map(|port| plain(&port.to_string())).collect();
        let of = if device.has_several_hosts() { String::new() } else { format!(" of {}", plain(&device.host.0)) };
        return format!("device between ports {}{of}", listed(&ports));
    }
    match pairs.len() {
        0 => "no path".to_owned(),
        1..=3 => pairs.join("; "),
        more => format!("{}; {} and {} more pairs", pairs[0], pairs[1], more - 2),
    }
}

/// How it was measured, in sentences.
pub(crate) fn method(record: &Record) -> Vec<String> {
    if let Some(plan) = &record.plan.device {
        return device::method(plan);
    }
    let mut all = vec![match record.plan.repeats {
        Repeats::Times(1) => "Each result is one run; its spread is unknown.".to_owned(),
        Repeats::Times(times) => {
            format!("Each result is the median of up to {times} runs; the range of the runs is given.")
        }
        Repeats::Until { confidence_percent, within, at_least, at_most } => format!(
            "Each result was repeated until the {confidence_percent} % confidence interval of its mean was within {} \
             either side, at least {at_least} and at most {at_most} times.",
            percent(within).unwrap_or_else(|| MISSING.to_owned())
        ),
    }];
    let mut timings: Vec<String> = Vec::new();
    for TrialSpec { timing, .. } in &record.plan.cells {
        let text = match timing.warmup.get() {
            0 => format!("A run measured {} without a warm-up.", timing.measure),
            _ => {
                format!("A run measured {} after {} of warm-up that counts for nothing.", timing.measure, timing.warmup)
            }
        };
        if !timings.contains(&text) {
            timings.push(text);
        }
    }
    all.extend(timings);
    if record.results.iter().any(|result| result.workload == WorkloadKind::Stream) {
        all.push(
            "Throughput is payload counted at the receiving program, by its own clock. Limits count Ethernet's \
             preamble, header, FCS and gap, and the IP and transport headers."
                .to_owned(),
        );
    }
    if record.results.iter().any(|result| result.loss.is_some()) {
        all.push(
            "A datagram is lost if it was offered in the measured window and had not arrived when stragglers had been \
             waited for. Each is placed where a counter on the way missed it."
                .to_owned(),
        );
    }
    let open = |cell: &TrialSpec| matches!(&cell.workload, Workload::Transact(spec) if spec.rate.is_some());
    let closed = |cell: &TrialSpec| matches!(&cell.workload, Workload::Transact(spec) if spec.rate.is_none());
    if record.plan.cells.iter().any(closed) {
        all.push(
            "Latency is the time from a request to the last byte of its response, at the asking program.".to_owned(),
        );
    }
    if record.plan.cells.iter().any(open) {
        all.push(
            "At a set rate, latency counts from when a request was due, so that a stall cannot hide its own delay."
                .to_owned(),
        );
    }
    let ip6 = record.results.iter().filter(|result| result.ip == IpVersion::V6).count();
    if ip6 > 0 && ip6 < record.results.len() {
        all.push("Some results are over IPv4, some over IPv6.".to_owned());
    } else if ip6 > 0 {
        all.push("All results are over IPv6.".to_owned());
    }
    all
}

/// `a`, `a and b`, `a, b and c`.
pub(crate) fn listed(items: &[String]) -> String {
    match items {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}
