//! Sentences about flows of any task: their link, latency, tester limit, losses and threads.

use crate::figures::{MISSING, cost_ns, counted_share, grouped, nanos, per_second, percent, plain, rate};
use crate::language::Language;
use crate::said;
use crate::wording::{listed, runs};
use linerate_model::{Bypass, Confidence, Direction, Latency, Limit, Loss, LossPlaces, Measurement, Record, Summary};
use linerate_units::Ratio;

/// Stalls below this share of the busy time are not worth a sentence.
const WORTH_TELLING: f64 = 0.05;

/// Returns `This is 99.9 % of what the link can carry at MTU 1500.`, `None` if no limit is known.
pub(crate) fn of_link(lang: Language, result: &Measurement) -> Option<String> {
    let limit = result.limit()?;
    let share = percent(limit.share)?;
    let most = rate(limit.payload_bps.get() as f64, "bit/s")?;
    let mtu = limit.mtu.to_string();
    if limit.is_declared_too_slow() {
        return Some(said!(
            lang,
            "results-above-link",
            "This is more than the {most} that a link of {line} can carry at MTU {mtu}. Either the data did not cross \
             the link in packets of that MTU, or the link's speed is not what it says.",
            most = most,
            line = limit.line_bps,
            mtu = mtu
        ));
    }
    Some(match (result.shares().len(), result.stream().map(|stream| stream.direction)) {
        (0..=2, Some(Direction::Both)) => said!(
            lang,
            "results-of-link-both",
            "This is {share} of what the link can carry both ways at MTU {mtu}.",
            share = share,
            mtu = mtu
        ),
        (0 | 1, _) => said!(
            lang,
            "results-of-link",
            "This is {share} of what the link can carry at MTU {mtu}.",
            share = share,
            mtu = mtu
        ),
        _ => said!(
            lang,
            "results-of-links",
            "This is {share} of what the links can carry at MTU {mtu}.",
            share = share,
            mtu = mtu
        ),
    })
}

/// Returns what the tester reaches without the device, and whether the result is its limit. `show` writes the tester's rate.
pub(crate) fn tester_limit(
    lang: Language,
    result: &Measurement,
    show: impl FnOnce(f64) -> Option<String>,
) -> Option<String> {
    let tester_limit = result.tester_limit.as_ref()?;
    let share = percent(tester_limit.share)?;
    let limit = show(tester_limit.reached.median)?;
    let limit = match tester_limit.bypass {
        Bypass::Cable => limit,
        Bypass::Loopback => said!(
            lang,
            "results-tester-limit-loopback",
            "{limit}, loopback of each host: an upper estimate",
            limit = limit
        ),
    };
    Some(match (result.verdict.limit, result.verdict.confidence) {
        (Limit::Wire, _) => said!(
            lang,
            "results-tester-limit-wire",
            "This is {share} of the tester limit ({limit}). The link is the limit.",
            share = share,
            limit = limit
        ),
        (Limit::Tester, _) if tester_limit.bypass == Bypass::Loopback => {
            said!(
                lang,
                "results-tester-limit-maybe",
                "This is {share} of the tester limit ({limit}). The tester may be the limit rather than the device.",
                share = share,
                limit = limit
            )
        }
        (Limit::Tester, Confidence::Low) => said!(
            lang,
            "results-tester-limit-maybe",
            "This is {share} of the tester limit ({limit}). The tester may be the limit rather than the device.",
            share = share,
            limit = limit
        ),
        (Limit::Tester, _) => said!(
            lang,
            "results-tester-limit-reached",
            "This is {share} of the tester limit ({limit}). The tester is the limit, not the device.",
            share = share,
            limit = limit
        ),
        _ => said!(
            lang,
            "results-tester-limit",
            "This is {share} of the tester limit ({limit}).",
            share = share,
            limit = limit
        ),
    })
}

/// Returns sentences in a row, and how many of them are the answer: all of `answer`.
pub(crate) fn led(answer: Vec<String>, further: impl IntoIterator<Item = Option<String>>) -> (Vec<String>, usize) {
    let lead = answer.len();
    (answer.into_iter().chain(further.into_iter().flatten()).collect(), lead)
}

/// Returns the CPU time of a request at both ends, `None` if neither was watched.
pub(crate) fn request_costs(result: &Measurement) -> Option<[String; 2]> {
    let cpu = &result.flows()?.cpu;
    let costs = [&cpu.sender, &cpu.receiver].map(|end| end.ns_per_packet.and_then(cost_ns));
    if costs.iter().all(Option::is_none) {
        return None;
    }
    Some(costs.map(|cost| cost.unwrap_or_else(|| MISSING.to_owned())))
}

/// Returns the CPU use of the busiest threads of requests.
pub(crate) fn busiest_threads_of_requests(lang: Language, result: &Measurement) -> Option<String> {
    busiest_threads(lang, result).map(|busy| {
        said!(
            lang,
            "results-busiest-thread-of-requests",
            "Busiest thread of client and server: {busy} of a core.",
            busy = busy
        )
    })
}

/// Returns how many requests failed.
pub(crate) fn failures(lang: Language, result: &Measurement) -> Option<String> {
    let failed = result.requests().map(|requests| requests.failed).filter(|failed| *failed > 0)?;
    Some(said!(
        lang,
        "results-transactions-failed",
        if failed == 1 { "1 transaction failed." } else { "{failed} transactions failed." },
        failed = failed
    ))
}

/// Returns requests per second as the tester's limit.
pub(crate) fn requests_per_second(rate: f64) -> Option<String> {
    Some(format!("{} /s", per_second(rate)?))
}

/// `Response time of 254,311 requests: p50 27 us, p99 81 us, slowest 837 us.`
pub(crate) fn latency(lang: Language, result: &Measurement) -> String {
    let Some(Latency { count, p50, p99, p999, max, .. }) = result.latency() else {
        return said!(lang, "results-untimed", "No response was timed.");
    };
    let [p50, p99, p999, max] = [p50, p99, p999, max].map(|time| nanos(*time));
    // With fewer than a thousand timed, the 99.9th percentile is the slowest one.
    if *count < 1_000 {
        return said!(
            lang,
            "results-latency",
            "Response time of {count} requests: p50 {p50}, p99 {p99}, slowest {max}.",
            count = count,
            p50 = p50,
            p99 = p99,
            max = max
        );
    }
    said!(
        lang,
        "results-latency-p999",
        "Response time of {count} requests: p50 {p50}, p99 {p99}, p99.9 {p999}, slowest {max}.",
        count = count,
        p50 = p50,
        p99 = p99,
        p999 = p999,
        max = max
    )
}

/// Returns where datagrams were lost.
pub(crate) fn loss(lang: Language, result: &Measurement) -> Option<String> {
    let loss = result.loss()?;
    if loss.of == 0 {
        return Some(said!(lang, "results-loss-none-offered", "No datagram was offered, so none could be lost."));
    }
    if loss.lost == 0 {
        return Some(said!(lang, "results-loss-none", "None of {loss} datagrams was lost.", loss = grouped(loss.of)));
    }
    let share = counted_share(Ratio::new(loss.lost, loss.of))?;
    let places = places(lang, loss);
    let placed = match places.as_slice() {
        [] => String::new(),
        [(place, _)] => said!(lang, "results-loss-all-at", ", all of them {place}", place = place),
        several => {
            let parts: Vec<String> =
                several.iter().map(|(place, count)| format!("{} {place}", grouped(*count))).collect();
            format!(": {}", listed(lang, &parts))
        }
    };
    Some(said!(
        lang,
        "results-loss",
        "{share} of {loss} datagrams lost{placed}.",
        share = share,
        loss = grouped(loss.of),
        placed = placed
    ))
}

/// Returns the places where datagrams were lost, each as it follows a count; losses without a place come last.
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
        (said!(lang, "loss-place-not-sent", "never sent (the sender did not keep up with the offered rate)"), not_sent),
        (said!(lang, "loss-place-sender-filter", "by a filter of the sending host"), sender_filter),
        (said!(lang, "loss-place-sender-queue", "in the sender's queue or NIC"), sender_queue),
        (
            said!(
                lang,
                "loss-place-unaccounted",
                "unaccounted for (on a wire, in a device, or where the kernel does not count)"
            ),
            unaccounted,
        ),
        (said!(lang, "loss-place-corrupted", "corrupted on the path (wrong checksum or header)"), corrupted),
        (said!(lang, "loss-place-receiver-queue", "in the receiver's NIC or kernel queue"), receiver_queue),
        (said!(lang, "loss-place-receiver-filter", "by a filter of the receiving host"), receiver_filter),
        (said!(lang, "loss-place-reassembly", "with fragments missing at the receiver"), reassembly),
        (said!(lang, "loss-place-socket-buffer", "in the receiver's socket buffer"), socket_buffer),
        (said!(lang, "loss-place-unknown", "in a place that could not be told"), unplaced),
    ]
    .into_iter()
    .filter(|(_, count)| *count > 0)
    .collect()
}

/// Shares of a core that the busiest thread of the test used, sending and receiving end: `91 and 54 %`. Other programs on the
/// hosts are not in it. None where nothing was observed; a dash for an end that nobody watched.
pub(crate) fn busiest_threads(lang: Language, result: &Measurement) -> Option<String> {
    let whole = |share: f64| match share {
        0.0 => Some(MISSING.to_owned()),
        share => (0.0..=1.05).contains(&share).then(|| format!("{:.0}", share * 100.0)),
    };
    let cpu = &result.flows()?.cpu;
    let sender = cpu.sender.busiest_thread;
    let receiver = cpu.receiver.busiest_thread;
    if sender == 0.0 && receiver == 0.0 {
        return None;
    }
    Some(said!(
        lang,
        "figures-two-shares",
        "{sender} and {receiver} %",
        sender = whole(sender)?,
        receiver = whole(receiver)?
    ))
}

/// Returns further details of a result.
pub(crate) fn further(lang: Language, result: &Measurement) -> Vec<String> {
    layers(lang, result).into_iter().chain(jitter(lang, result)).chain(tcp(lang, result)).collect()
}

/// Returns the traffic counted by other layers.
fn layers(lang: Language, result: &Measurement) -> Option<String> {
    let received = result.received()?;
    let packets = per_second(received.packets_per_s.median).filter(|_| received.packets_per_s.median > 0.0);
    let layer =
        |summary: &Option<Summary>, name: &str| Some(format!("{} {name}", rate(summary.as_ref()?.median, "bit/s")?));
    let parts: Vec<String> = [
        packets.map(|packets| said!(lang, "further-packets", "{packets} IP packets a second", packets = packets)),
        layer(&received.ip_bps, &said!(lang, "further-ip", "as IP packets")),
        layer(&received.wire_bps, &said!(lang, "further-wire", "on an Ethernet wire")),
    ]
    .into_iter()
    .flatten()
    .collect();
    (!parts.is_empty())
        .then(|| said!(lang, "further-layers", "The same traffic counts {parts}.", parts = listed(lang, &parts)))
}

fn jitter(lang: Language, result: &Measurement) -> Option<String> {
    let jitter = result.stream()?.jitter_ns.as_ref()?.median;
    let time = (jitter.is_finite() && jitter > 0.0).then(|| nanos(jitter.round() as u64))?;
    Some(said!(lang, "further-jitter", "Transit times deviated by {shown} on average (RFC 3550).", shown = time))
}

fn tcp(lang: Language, result: &Measurement) -> Vec<String> {
    let Some(tcp) = result.tcp() else { return Vec::new() };
    let congestion = plain(&tcp.congestion);
    let mut all = vec![match tcp.retransmits {
        0 => said!(lang, "further-tcp-clean", "TCP ({congestion}) retransmitted no segment.", congestion = congestion),
        some => {
            said!(
                lang,
                "further-tcp-retransmits",
                "TCP ({congestion}) retransmitted {retransmits} of {segments} segments.",
                congestion = congestion,
                retransmits = some,
                segments = tcp.segments
            )
        }
    }];
    if tcp.rtt_ns > 0 {
        let loaded = nanos(tcp.rtt_ns);
        let least = nanos(tcp.min_rtt_ns);
        all.push(said!(
            lang,
            "further-tcp-round-trip",
            "The round trip took {loaded} under load and {least} at best.",
            loaded = loaded,
            least = least
        ));
    }
    let worth = |share: f64| percent(share).filter(|_| share >= WORTH_TELLING);
    let window = worth(tcp.receive_window_limited).map(|share| {
        said!(
            lang,
            "further-tcp-receive-window",
            "The receiver's window stalled it for {share} of the time.",
            share = share
        )
    });
    let buffer = worth(tcp.send_buffer_limited).map(|share| {
        said!(lang, "further-tcp-send-buffer", "The sender's buffer stalled it for {share} of the time.", share = share)
    });
    all.extend(window.into_iter().chain(buffer));
    all
}

/// Returns completed requests per second, as `text` words them, and how long they took.
pub(crate) fn completed(
    lang: Language,
    record: &Record,
    result: &Measurement,
    text: impl Fn(String, String) -> String,
) -> Vec<String> {
    let done = result
        .requests()
        .map(|requests| &requests.transactions_per_s)
        .and_then(|summary| Some(text(per_second(summary.median)?, runs(lang, record, summary, per_second))));
    vec![
        done.unwrap_or_else(|| said!(lang, "results-no-transactions", "No figure: nothing was completed.")),
        latency(lang, result),
    ]
}
