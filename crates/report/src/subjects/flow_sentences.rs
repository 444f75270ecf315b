//! Sentences about flows of any task: their link, latency, tester limit, losses and threads.

use crate::figures::{MISSING, counted_share, grouped, nanos, per_second, percent, rate};
use crate::language::Language;
use crate::said;
use crate::wording::listed;
use linerate_model::{
    Bypass, Confidence, Direction, Latency, Limit, Loss, LossPlaces, Measurement, TaskKind, TesterLimit,
};
use linerate_units::Ratio;

/// `This is 99.9 % of what the link can carry at MTU 1500.`; none where no limit is known.
pub(crate) fn of_link(lang: Language, result: &Measurement) -> Option<String> {
    let limit = result.limit()?;
    let (share, most) = (percent(limit.share)?, rate(limit.payload_bps.get() as f64, "bit/s")?);
    let mtu = limit.mtu.to_string();
    if limit.is_declared_too_slow() {
        return Some(said!(lang, "results-above-link", most = most, line = limit.line_bps, mtu = mtu));
    }
    Some(match (result.shares().len(), result.stream().map(|stream| stream.direction)) {
        (0..=2, Some(Direction::Both)) => said!(lang, "results-of-link-both", share = share, mtu = mtu),
        (0 | 1, _) => said!(lang, "results-of-link", share = share, mtu = mtu),
        _ => said!(lang, "results-of-links", share = share, mtu = mtu),
    })
}

/// `Response time of 254,311 requests: p50 27 us, p99 81 us, slowest 837 us.`
pub(crate) fn latency(lang: Language, result: &Measurement) -> String {
    let Some(Latency { count, p50, p99, p999, max, .. }) = result.latency() else {
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
pub(crate) fn tester_limit(lang: Language, result: &Measurement) -> Option<String> {
    let tester_limit = result.tester_limit.as_ref()?;
    let share = percent(tester_limit.share)?;
    let limit = match result.task() {
        TaskKind::Stream => rate(tester_limit.reached.median, "bit/s")?,
        TaskKind::Nfs => return of_operations(lang, result, tester_limit),
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
pub(crate) fn loss(lang: Language, result: &Measurement) -> Option<String> {
    let loss = result.loss()?;
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

/// Shares of a core that the busiest thread of the test used, sending and receiving end: `91 and 54 %`. Other programs on the
/// hosts are not in it. None where nothing was observed; a dash for an end that nobody watched.
pub(crate) fn busiest_threads(lang: Language, result: &Measurement) -> Option<String> {
    let whole = |share: f64| match share {
        0.0 => Some(MISSING.to_owned()),
        share => (0.0..=1.05).contains(&share).then(|| format!("{:.0}", share * 100.0)),
    };
    let cpu = &result.flows()?.cpu;
    let (sender, receiver) = (cpu.sender.busiest_thread, cpu.receiver.busiest_thread);
    if sender == 0.0 && receiver == 0.0 {
        return None;
    }
    Some(said!(lang, "figures-two-shares", sender = whole(sender)?, receiver = whole(receiver)?))
}

/// What the tester itself can do: the cheapest operations, on its own hosts alone.
fn of_operations(lang: Language, result: &Measurement, tester_limit: &TesterLimit) -> Option<String> {
    let (limit, share) = (per_second(tester_limit.reached.median)?, percent(tester_limit.share)?);
    Some(match result.verdict.limit {
        Limit::Tester => said!(lang, "nfs-tester-limit-reached", limit = limit, share = share),
        _ => said!(lang, "nfs-tester-limit", limit = limit, share = share),
    })
}
