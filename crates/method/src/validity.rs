//! Checks of one trial before it is believed. A trial the tester spoilt is run again.

use crate::offered::is_whole;
use crate::terms;
use crate::transfer::{rate, transfers};
use linerate_model::{Caveat, CaveatKind, MessageValue, Observation, Offered, Task, Transport, TrialResult, message};
use linerate_units::{BitRate, ByteCount, Nanos};

/// CPU time taken by the hypervisor above which a trial says more of the neighbours than of the path.
pub(crate) const STEAL_BEARABLE: f64 = 0.05;

/// A window that is off the one asked for by more than this part of it says something else than was asked.
const OFF_BEARABLE: f64 = 0.1;

/// A window of fewer round trips says more of single losses and of what was in flight at its edges than of the path.
const FEWEST_ROUND_TRIPS: u64 = 50;

/// A window of fewer packets says more of its edges than of the path: one packet is more than a hundredth of its rate.
const FEWEST_PACKETS: u64 = 100;
/// A window may begin and end with a packet, and so be longer or shorter than asked for by the time of so many.
const EDGE_PACKETS: f64 = 3.0;
/// Largest difference between the rate at a receiver and the rate of what was sent and arrived, as a share.
const EDGE_TOLERANCE: f64 = 0.01;

/// Says that the hypervisor took more of a host's time than a trial bears.
pub(crate) fn stolen(result: &TrialResult) -> Option<Caveat> {
    let (host, steal) = result
        .hosts
        .iter()
        .map(|(host, observation)| (host, steal(observation)))
        .max_by(|left, right| left.1.total_cmp(&right.1))?;
    (steal > STEAL_BEARABLE).then(|| {
        Caveat::new(
            CaveatKind::CpuStolen,
            message!(
                "caveat-cpu-stolen",
                "the hypervisor took {share} of {host}'s CPU time: the figures are lower than this host can do; \
                 measure again when the machine is quiet",
                share = MessageValue::percent(steal, 0),
                host = host
            ),
        )
    })
}

/// Share of all cores' time the hypervisor took, 0 to 1.
pub(crate) fn steal(observation: &Observation) -> f64 {
    let all: u64 = observation.cores.iter().map(|core| (core.busy() + core.steal + core.idle).get()).sum();
    let stolen: u64 = observation.cores.iter().map(|core| core.steal.get()).sum();
    if all == 0 { 0.0 } else { stolen as f64 / all as f64 }
}

/// Senders that fell short of the rate asked for, in words.
pub(crate) fn shortfall(result: &TrialResult) -> Option<Caveat> {
    let Task::Stream(stream) = result.trial.task() else { return unasked(result) };
    let offered = stream.offered?;
    transfers(result).iter().find_map(|transfer| {
        let sent = transfer.sender.sent.as_ref()?;
        let seconds = sent.window.as_secs_f64();
        let (asked, got) = match offered {
            Offered::PayloadBps(rate) => (rate.get() as f64, sent.payload_bytes as f64 * 8.0 / seconds),
            Offered::MessagesPerS(rate) => (rate.get() as f64, sent.messages as f64 / seconds),
        };
        (seconds > 0.0 && !is_whole(got / asked)).then(|| {
            Caveat::new(
                CaveatKind::BelowOfferedRate,
                message!(
                    "caveat-below-rate",
                    "host {host} sent {share} of the rate asked for: the path or the sender does not take more; \
                     ask for a lower rate to measure at a steady load",
                    host = transfer.from,
                    share = MessageValue::percent(got / asked, 1)
                ),
            )
        })
    })
}

/// A sender that the window's longest time kept from sending all of its volume, in words.
pub(crate) fn not_all_sent(result: &TrialResult) -> Option<Caveat> {
    let volume = result.trial.volume()?;
    let longest = result.trial.window()?.measure;
    transfers(result).iter().find_map(|transfer| {
        let sent = transfer.sender.sent.as_ref().map(|sent| sent.payload_bytes);
        // A sender that runs no agent goes on until the receiver has all.
        let sent = match &transfer.sender.told {
            Some(_) => transfer.receiver.received.as_ref().map(|received| received.payload_bytes),
            None => sent,
        };
        let sent = ByteCount::new(sent?);
        (sent < volume).then(|| {
            let text = message!(
                "caveat-volume-not-sent",
                "host {host} sent {sent} of {volume} in {longest}, the maximum time of a run: the figure covers only that \
                 part; send less (--bytes), or measure by time (--time)",
                host = transfer.from,
                sent,
                volume,
                longest
            );
            Caveat::new(CaveatKind::VolumeNotSent, text)
        })
    })
}

/// An end that counted over another time than was asked for, in words.
pub(crate) fn off_window(result: &TrialResult) -> Option<Caveat> {
    // A volume takes the time that it takes.
    if result.trial.volume().is_some() {
        return None;
    }
    let asked = result.trial.window()?.measure.as_secs_f64();
    let is_udp = result.trial.net().is_some_and(|net| net.transport == Transport::Udp);
    transfers(result).iter().find_map(|transfer| {
        // An end that runs no agent counts over a window of its own.
        let [sender, receiver] =
            [transfer.sender, transfer.receiver].map(|end| Some(end).filter(|end| end.told.is_none()));
        let sent = sender.and_then(|end| {
            let sent = end.sent.as_ref()?;
            Some((transfer.from, terms::SENT, sent.window, sent.messages))
        });
        let received = receiver.and_then(|end| {
            let received = end.received.as_ref()?;
            Some((transfer.to, terms::RECEIVED, received.window, received.messages))
        });
        let (host, did, window, _) = [sent, received].into_iter().flatten().find(|(_, _, window, messages)| {
            let seconds = window.as_secs_f64();
            let edges = if is_udp { EDGE_PACKETS * seconds / (*messages).max(1) as f64 } else { 0.0 };
            seconds > 0.0 && (seconds - asked).abs() > (asked * OFF_BEARABLE).max(edges)
        })?;
        let text = message!(
            "caveat-off-window",
            "host {host} {did} for {seconds} s instead of {asked} s, because its threads waited for a core at the \
             edges of the window, or the other host started earlier; the rate is that of this time; measure longer (--time)",
            host = host,
            did,
            seconds = MessageValue::number(window.as_secs_f64(), 2),
            asked = MessageValue::number(asked, 2)
        );
        Some(Caveat::new(CaveatKind::OffWindow, text))
    })
}

/// Returns a caveat if a UDP receiver's rate differs from the rate of what was sent and arrived: a queue or a stalled host moved
/// datagrams into the window or out of it. A sender at full speed fills queues in bursts, so only offered rates are checked.
pub(crate) fn window_edges(result: &TrialResult) -> Option<Caveat> {
    let Task::Stream(stream) = result.trial.task() else { return None };
    if stream.net.transport != Transport::Udp || stream.offered.is_none() || stream.volume.is_some() {
        return None;
    }
    transfers(result).iter().find_map(|transfer| {
        // An end that runs no agent counts over a window of its own.
        if transfer.sender.told.is_some() || transfer.receiver.told.is_some() {
            return None;
        }
        let sent = transfer.sender.sent.as_ref().filter(|sent| sent.messages > 0)?;
        let received = transfer.receiver.received.as_ref()?;
        let arrived = received.arrived as f64 / sent.messages as f64;
        let expected_bps = rate(sent.payload_bytes * 8, sent.window.get()) * arrived;
        let difference = transfer.payload_bps() - expected_bps;
        let tolerance = EDGE_TOLERANCE.max(EDGE_PACKETS / received.arrived.max(1) as f64);
        (difference.abs() > expected_bps * tolerance).then(|| {
            let text = message!(
                "caveat-window-edges",
                "host {host} received {share} {more} in its window than {sender} sent in its own, losses subtracted: \
                 datagrams waited in a queue, or in a stalled host, at an edge of the window; measure longer (--time)",
                host = transfer.to,
                sender = transfer.from,
                share = MessageValue::percent(difference.abs() / expected_bps, 1),
                more = if difference > 0.0 { terms::MORE } else { terms::LESS }
            );
            Caveat::new(CaveatKind::WindowEdges, text)
        })
    })
}

/// Datagrams that arrived with another DSCP than they were sent with.
pub(crate) fn dscp_changed(result: &TrialResult) -> Option<Caveat> {
    let Task::Stream(stream) = result.trial.task() else { return None };
    let sent = stream.net.socket.dscp?;
    transfers(result).iter().find_map(|transfer| {
        let dscp = transfer.receiver.received.as_ref()?.dscp?;
        let other = dscp.changed_to?;
        let text = message!(
            "caveat-dscp-changed",
            "{share} of the datagrams that {from} sent with DSCP {sent} arrived at {to} with another, the last with {other}: \
             a device on the path changes it, and queues after that device see the new one; ask the path's operator which \
             DSCPs it keeps",
            share = MessageValue::percent(dscp.changed as f64 / (dscp.kept + dscp.changed) as f64, 1),
            from = transfer.from,
            sent = sent.to_string(),
            to = transfer.to,
            other = other.to_string()
        );
        Some(Caveat::new(CaveatKind::DscpChanged, text))
    })
}

/// A window of a stream that held few packets, with the range of its rate, in words. Of TCP, segments that came out of order are in
/// none of the receiver's bytes yet.
pub(crate) fn few_packets(result: &TrialResult) -> Option<Caveat> {
    let Task::Stream(stream) = result.trial.task() else { return None };
    let window = result.trial.window().filter(|_| result.trial.volume().is_none())?.measure;
    transfers(result).iter().find_map(|transfer| {
        let received = transfer.receiver.received.as_ref().filter(|_| transfer.receiver.told.is_none())?;
        let (count, bytes) = match stream.net.transport {
            Transport::Udp => (received.messages, stream.message_bytes.get()),
            Transport::Tcp => {
                let connections = || transfer.receiver.flows.iter().filter_map(|flow| flow.tcp.as_ref());
                (connections().map(|tcp| tcp.segments_in).sum(), connections().map(|tcp| u64::from(tcp.mss)).max()?)
            }
        };
        let seconds = received.window.as_secs_f64();
        // A sender with a deep queue ahead of it may hand over nothing within the window.
        let was_sent = count > 0 || transfer.sender.sent.as_ref().is_some_and(|sent| sent.payload_bytes > 0);
        if count >= FEWEST_PACKETS || seconds == 0.0 || !was_sent {
            return None;
        }
        let rate = |bytes: u64| BitRate::per_second((bytes as f64 * 8.0 / seconds) as u64);
        let text = message!(
            "caveat-few-packets",
            "the window of {window} held {count} packets at {host}, fewer than {fewest}: one more or less at its edges \
             weighs in the figure, and the rate is {low} to {high}; measure longer (--time {enough}s)",
            window,
            count = MessageValue::Count(count),
            host = transfer.to,
            fewest = MessageValue::Count(FEWEST_PACKETS),
            low = rate((count.saturating_sub(1) * bytes).min(received.payload_bytes)),
            high = rate(((count + 1) * bytes).max(received.payload_bytes)),
            enough = (window.get().saturating_mul(FEWEST_PACKETS) / count.max(1)).div_ceil(1_000_000_000)
        );
        Some(Caveat::new(CaveatKind::FewPackets, text))
    })
}

/// Returns a caveat if TCP segments were smaller than asked for.
pub(crate) fn smaller_segments(result: &TrialResult) -> Option<Caveat> {
    /// The option of timestamps, which the segment size of the SYN includes and that of the connection does not (RFC 6691).
    const TIMESTAMPS: u32 = 12;
    let asked = result.trial.net()?.socket.mss?;
    transfers(result).iter().find_map(|transfer| {
        let connections = transfer.sender.flows.iter().filter_map(|flow| flow.tcp.as_ref());
        let segment = connections.map(|tcp| tcp.mss).filter(|mss| *mss > 0).max()?;
        (segment + TIMESTAMPS < u32::from(asked)).then(|| {
            let text = message!(
                "caveat-smaller-segments",
                "TCP sent segments of at most {segment} bytes from {host}, not of {asked} (--mss): the MTU of an interface or of the \
                 path allows no larger ones",
                segment = MessageValue::Count(segment.into()),
                host = transfer.from,
                asked = MessageValue::Count(asked.into())
            );
            Caveat::new(CaveatKind::Fallback, text)
        })
    })
}

/// A window too short for its path, in words: by TCP's smoothed round-trip time, or by the median latency of requests.
pub(crate) fn few_round_trips(result: &TrialResult) -> Option<Caveat> {
    let volume = result.trial.volume();
    let window = match volume {
        None => result.trial.window()?.measure,
        Some(_) => {
            transfers(result).iter().filter_map(|transfer| Some(transfer.receiver.received.as_ref()?.window)).min()?
        }
    };
    let (round_trip, named) = transfers(result)
        .iter()
        .filter_map(|transfer| match &transfer.sender.transactions {
            Some(asked) => (asked.latency.count() > 0).then(|| (asked.latency.quantile(0.5), terms::RESPONSES)),
            None => {
                let flows = transfer.sender.flows.iter().filter_map(|flow| flow.tcp.as_ref());
                flows.map(|tcp| tcp.rtt.get()).max().map(|rtt| (rtt, terms::ROUND_TRIPS))
            }
        })
        .max_by_key(|(round_trip, _)| *round_trip)?;
    (round_trip.saturating_mul(FEWEST_ROUND_TRIPS) > window.get()).then(|| {
        if let Some(volume) = volume {
            let text = message!(
                "caveat-few-round-trips-of-volume",
                "{volume} took {window}, time for {count} round trips of {time} one after the other, fewer than \
                 {fewest_round_trips}: one loss, or the slow start of TCP, weighs in the figure; send more (--bytes)",
                volume,
                window,
                count = window.get() / round_trip,
                time = Nanos::new(round_trip),
                fewest_round_trips = FEWEST_ROUND_TRIPS
            );
            return Caveat::new(CaveatKind::FewRoundTrips, text);
        }
        let enough = (round_trip.saturating_mul(FEWEST_ROUND_TRIPS)).div_ceil(1_000_000_000);
        let text = message!(
            "caveat-few-round-trips",
            "the window of {window} had time for {count} {named} of {time} one after the other, fewer than \
             {fewest_round_trips}: one loss, or what was in flight at its edges, weighs in the figure; measure \
             longer (--time {enough}s)",
            window = window,
            count = window.get() / round_trip,
            named,
            time = Nanos::new(round_trip),
            fewest_round_trips = FEWEST_ROUND_TRIPS,
            enough = enough
        );
        Caveat::new(CaveatKind::FewRoundTrips, text)
    })
}

/// Requests that were due and never sent. Their latency, the longest of all, is in no percentile.
fn unasked(result: &TrialResult) -> Option<Caveat> {
    transfers(result).iter().find_map(|transfer| {
        let asked = transfer.sender.transactions.as_ref()?;
        let due = asked.completed + asked.failed + asked.not_sent;
        (due > 0 && !is_whole(1.0 - asked.not_sent as f64 / due as f64)).then(|| {
            Caveat::new(
                CaveatKind::BelowOfferedRate,
                message!(
                    "caveat-requests-not-sent",
                    "{unsent} of {due} requests that were due were never sent: {host} or the path cannot sustain \
                     that rate, and the latencies leave them out; ask for a lower --rate",
                    unsent = asked.not_sent,
                    due = due,
                    host = transfer.from
                ),
            )
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transfer::tests::{paths_of, stream_of, trial};
    use linerate_model::{
        CoreUse, FlowCounts, Histogram, ReceivedDscp, TcpFlow, TransactTask, Transactions, Transport,
    };
    use linerate_units::{BitRate, Nanos, OpRate};

    #[test]
    fn stolen_time_spoils_a_trial() {
        let mut result = trial(1000, 0);
        let core = |steal, idle| CoreUse { steal: Nanos::new(steal), idle: Nanos::new(idle), ..CoreUse::default() };
        if let Some(b) = result.hosts.get_mut(&"b".into()) {
            b.cores = vec![core(4, 96), core(0, 100)];
        }
        assert_eq!(stolen(&result), None);
        if let Some(b) = result.hosts.get_mut(&"b".into()) {
            b.cores = vec![core(40, 60), core(0, 100)];
        }
        let caveat = stolen(&result).expect("a fifth is stolen");
        assert!(caveat.text.contains("20 %") && caveat.text.contains("b's"), "{}", caveat.text);
    }

    #[test]
    fn requests_never_sent_are_told() {
        let mut result = trial(1000, 0);
        let rate = Some(OpRate::per_second(1_000));
        let paths = result.trial.paths().to_vec();
        *result.trial.task_mut() = Task::Transact(TransactTask { paths, rate, ..TransactTask::plain(Transport::Udp) });
        let mut with = |not_sent| {
            let transactions = Transactions { completed: 900, not_sent, ..Transactions::default() };
            paths_of(&mut result)[0].client.transactions = Some(transactions);
            shortfall(&result)
        };
        assert_eq!(with(1), None);
        assert!(with(100).is_some_and(|caveat| caveat.text.starts_with("100 of 1000")));
    }

    #[test]
    fn a_window_of_few_round_trips_is_told() {
        let mut result = trial(1000, 0);
        assert_eq!(few_round_trips(&result), None, "nothing is known");
        let mut with = |rtt| {
            let tcp = Some(TcpFlow { rtt, ..TcpFlow::default() });
            paths_of(&mut result)[0].client.flows = vec![FlowCounts { tcp, ..FlowCounts::default() }];
            few_round_trips(&result)
        };
        assert_eq!(with(Nanos::from_millis(20)), None);
        let told = with(Nanos::from_millis(150)).expect("six of them in a second");
        assert!(told.text.contains("6 round trips of 150 ms") && told.text.ends_with("(--time 8s)"), "{}", told.text);
        assert_eq!(with(Nanos::default()), None);

        let mut latency = Histogram::default();
        latency.record(39_000_000);
        paths_of(&mut result)[0].client.transactions = Some(Transactions { latency, ..Transactions::default() });
        let told = few_round_trips(&result).expect("25 responses in a second");
        assert!(told.text.contains("responses") && told.text.ends_with("(--time 2s)"), "{}", told.text);
    }

    #[test]
    fn datagrams_with_another_dscp_than_sent_are_reported() {
        let mut result = trial(100, 0);
        let arrived = |result: &mut TrialResult, dscp| {
            paths_of(result)[0].server.received.as_mut().expect("it received").dscp = Some(dscp);
        };
        arrived(&mut result, ReceivedDscp { kept: 75, changed: 25, changed_to: Some(0) });
        assert_eq!(dscp_changed(&result), None, "none was set");
        stream_of(&mut result.trial).net.socket.dscp = Some(46);
        let caveat = dscp_changed(&result).expect("a quarter was changed");
        assert_eq!(caveat.kind, CaveatKind::DscpChanged);
        let begin = "25.0 % of the datagrams that a sent with DSCP 46 arrived at b with another, the last with 0: ";
        assert!(caveat.text.starts_with(begin), "{}", caveat.text);
        arrived(&mut result, ReceivedDscp { kept: 100, ..ReceivedDscp::default() });
        assert_eq!(dscp_changed(&result), None);
    }

    #[test]
    fn a_window_of_few_packets_has_a_range() {
        assert_eq!(few_packets(&trial(100, 0)), None);
        let caveat = few_packets(&trial(7, 0)).expect("seven datagrams");
        assert_eq!(caveat.kind, CaveatKind::FewPackets);
        assert!(caveat.text.contains("held 7 packets at b") && caveat.text.contains("48 kbit/s to 64 kbit/s"));
        assert!(caveat.text.ends_with("(--time 15s)"), "{}", caveat.text);

        let mut queued = trial(7, 0);
        paths_of(&mut queued)[0].client.sent.as_mut().expect("it sends").payload_bytes = 0;
        assert!(few_packets(&queued).is_some(), "what arrived had waited in a queue");
        let mut idle = trial(0, 0);
        paths_of(&mut idle)[0].client.sent.as_mut().expect("it sends").payload_bytes = 0;
        assert_eq!(few_packets(&idle), None);

        // Seven segments came, all behind one that was lost.
        let mut result = trial(0, 7);
        stream_of(&mut result.trial).net.transport = Transport::Tcp;
        let tcp = Some(TcpFlow { mss: 1_000, segments_in: 7, ..TcpFlow::default() });
        paths_of(&mut result)[0].server.flows = vec![FlowCounts { tcp, ..FlowCounts::default() }];
        let caveat = few_packets(&result).expect("none of them counts");
        assert!(caveat.text.contains("the rate is 0 bit/s to 64 kbit/s"), "{}", caveat.text);
    }

    #[test]
    fn segments_smaller_than_asked_for_have_a_caveat() {
        let sent = |asked, mss| {
            let mut result = trial(1_000, 0);
            let net = &mut stream_of(&mut result.trial).net;
            (net.transport, net.socket.mss) = (Transport::Tcp, asked);
            let tcp = Some(TcpFlow { mss, ..TcpFlow::default() });
            paths_of(&mut result)[0].client.flows = vec![FlowCounts { tcp, ..FlowCounts::default() }];
            smaller_segments(&result)
        };
        assert_eq!((sent(None, 1_448), sent(Some(1_460), 1_448), sent(Some(500), 488)), (None, None, None));
        let caveat = sent(Some(9_000), 1_448).expect("the MTU is 1,500");
        assert!(caveat.text.contains("at most 1,448 bytes from a, not of 9,000"), "{}", caveat.text);
    }

    #[test]
    fn datagrams_delayed_across_an_edge_have_a_caveat() {
        assert_eq!(edge_caveat(1_000, 0, None), None);
        assert_eq!(edge_caveat(991, 0, None), None);
        assert_eq!(edge_caveat(800, 200, None), None);
        let caveat = edge_caveat(974, 0, None).expect("26 of them arrived later");
        assert!(caveat.text.starts_with("host b received 2.6 % less in its window than a sent"), "{}", caveat.text);
        let caveat = edge_caveat(880, 200, None).expect("80 of them were sent before");
        assert!(caveat.text.contains("10.0 % more"), "{}", caveat.text);
        assert_eq!(edge_caveat(974, 0, Some(ByteCount::new(1_000_000))), None, "a volume has no such edges");
    }

    /// Returns the caveat of a receiver that counts `datagrams` in its window, of 1,000 sent in 1 s with 1,000 bytes each.
    fn edge_caveat(datagrams: u64, lost: u64, volume: Option<ByteCount>) -> Option<Caveat> {
        let mut result = trial(1_000, 0);
        stream_of(&mut result.trial).volume = volume;
        stream_of(&mut result.trial).offered = Some(Offered::PayloadBps(BitRate::per_second(8_000_000)));
        let received = paths_of(&mut result)[0].server.received.as_mut().expect("it receives");
        received.arrived = 1_000 - lost;
        received.messages = datagrams;
        received.payload_bytes = datagrams * 1_000;
        window_edges(&result)
    }

    #[test]
    fn edges_at_packets_are_no_other_window() {
        let mut result = trial(6, 0);
        paths_of(&mut result)[0].server.received.as_mut().expect("it receives").window = Nanos::from_millis(1_190);
        assert_eq!(off_window(&result), None, "one packet takes 200 ms");
        let mut result = trial(1_000, 0);
        paths_of(&mut result)[0].server.received.as_mut().expect("it receives").window = Nanos::from_millis(1_190);
        assert!(off_window(&result).is_some());
    }

    #[test]
    fn a_volume_takes_the_time_that_it_takes() {
        let mut result = trial(1000, 0);
        // 1,000 datagrams of 1,000 bytes, in a window that may have been longer.
        stream_of(&mut result.trial).volume = Some(ByteCount::new(999_500));
        let window = Nanos::from_millis(300);
        let ends = &mut paths_of(&mut result)[0];
        ends.server.received.as_mut().expect("it receives").window = window;
        assert_eq!((off_window(&result), not_all_sent(&result), few_round_trips(&result)), (None, None, None));
        let tcp = Some(TcpFlow { rtt: Nanos::from_millis(10), ..TcpFlow::default() });
        paths_of(&mut result)[0].client.flows = vec![FlowCounts { tcp, ..FlowCounts::default() }];
        let told = few_round_trips(&result).expect("thirty of them in the time that it took");
        assert!(told.text.starts_with("1 MB took 300 ms, time for 30 round trips of 10 ms"), "{}", told.text);
    }

    #[test]
    fn a_volume_that_is_not_all_sent_is_told() {
        let mut result = trial(1000, 0);
        stream_of(&mut result.trial).volume = Some(ByteCount::new(1_100_001));
        let told = not_all_sent(&result).expect("a datagram is missing");
        assert_eq!(told.kind, CaveatKind::VolumeNotSent);
        assert!(told.text.starts_with("host a sent 1 MB of 1.1 MB in 1 s,"), "{}", told.text);
        // What a server of iperf3 has sent is more than what counts here.
        let ends = &mut paths_of(&mut result)[0];
        ends.client.told = Some(serde_json::json!({}));
        ends.server.received.as_mut().expect("it receives").payload_bytes = 1_101_000;
        assert_eq!(not_all_sent(&result), None);
    }

    #[test]
    fn a_count_over_another_time_is_told() {
        let mut result = trial(1000, 0);
        assert_eq!(off_window(&result), None);
        let asked = result.trial.window().expect("a window").measure.get();
        let mut with = |window| {
            if let Some(received) = &mut paths_of(&mut result)[0].server.received {
                received.window = Nanos::new(window);
            }
            off_window(&result)
        };
        assert_eq!(with(asked + asked / 20), None);
        let told = with(asked * 3).expect("three times as long");
        assert!(told.text.starts_with("host b received for 3.00 s instead of 1.00 s"), "{}", told.text);
        assert!(with(asked / 2).is_some());
        let server = &mut paths_of(&mut result)[0].server;
        server.told = Some(serde_json::json!({}));
        assert_eq!(off_window(&result), None, "it counts over a window of its own");
    }

    #[test]
    fn a_sender_that_falls_short_is_named() {
        let mut result = trial(1000, 0);
        let ask = |result: &mut TrialResult, bps| {
            stream_of(&mut result.trial).offered = Some(Offered::PayloadBps(BitRate::per_second(bps)));
        };
        ask(&mut result, 8_000_000);
        assert_eq!(shortfall(&result), None);
        ask(&mut result, 10_000_000);
        assert!(shortfall(&result).is_some_and(|caveat| caveat.text.contains("a sent 80.0 %")));
    }
}
