//! What the interface of one end of the transfers, and the queue before it, did meanwhile.

use super::median;
use super::window::whole_intervals;
use crate::account;
use crate::statistics;
use crate::transfer::{rate, transfers};
use linerate_model::{
    EndCounts, Host, HostName, InterfaceCounters, IpVersion, Nic, Observation, SeriesQuantity, Task, TrialResult,
};
use linerate_units::Nanos;
use std::collections::BTreeSet;

/// Headers of a frame with UDP, at the most: Ethernet 14, VLAN tag 4, IPv6 40, UDP 8.
const UDP_HEADERS: u64 = 66;
/// Headers of a frame with TCP: Ethernet 14, IPv4 20, TCP with its time stamps 32.
const TCP_HEADERS: u64 = 66;
/// A header of IPv6 has so many bytes more.
const IPV6_MORE: u64 = 20;
/// Bytes of a frame on an Ethernet wire that an interface does not count: FCS 4, preamble 8, gap 12.
const UNCOUNTED: u64 = 24;
/// Addresses and type of an Ethernet frame, in bytes.
const ETHERNET_HEADER: u64 = 14;
/// Fewest intervals that show whether a queue stands, or how many packets came back.
const FEWEST_INTERVALS: usize = 3;
/// Share of its packets that a queue drops when more is sent into it than it lets go.
const OVERFLOWS: f64 = 0.02;
/// A queue that holds packets in so many of the intervals stands.
const STANDING: f64 = 0.8;
/// Less traffic of others than this share is what hosts say at any time.
const NOTABLE: f64 = 0.1;

/// The interface of one end, medians over the runs.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct InterfaceFacts {
    /// Its name; empty where it is not known.
    pub(crate) name: String,
    /// Share of the window's intervals at whose end packets waited in its queueing discipline.
    pub(crate) waiting: f64,
    /// How often a second that discipline held back a packet that was due: it is a shaper.
    pub(crate) held_back_per_s: f64,
    /// Share of the packets that the discipline dropped.
    pub(crate) dropped: f64,
    /// Packets that filters there dropped (tc, netfilter), as a share of those that it carried.
    pub(crate) filtered: f64,
    /// Of the bytes that it carried in the direction of the data, the share that was not of the measured load.
    pub(crate) others: f64,
    /// Share of its declared speed that its frames took in the direction of the data, or in both directions if the line is
    /// half duplex. `None` without a declared speed.
    pub(crate) line_share: Option<f64>,
    /// The same in the other direction: that of answers and acknowledgements.
    pub(crate) return_share: Option<f64>,
}

impl InterfaceFacts {
    pub(super) fn of(runs: &[&TrialResult], sends: bool, hosts: &[Host]) -> Self {
        let each: Vec<Self> = runs.iter().filter_map(|run| Self::of_run(run, sends, hosts)).collect();
        let middle = |of: fn(&Self) -> f64| median(each.iter().map(of));
        Self {
            name: each.first().map(|one| one.name.clone()).unwrap_or_default(),
            waiting: middle(|one| one.waiting),
            held_back_per_s: middle(|one| one.held_back_per_s),
            dropped: middle(|one| one.dropped),
            filtered: middle(|one| one.filtered),
            others: middle(|one| one.others),
            line_share: statistics::median(each.iter().filter_map(|one| one.line_share).collect()),
            return_share: statistics::median(each.iter().filter_map(|one| one.return_share).collect()),
        }
    }

    /// Returns whether the host's own queue let no more go: packets always waited, and were held back or dropped.
    pub(crate) fn is_shaped(&self) -> bool {
        self.waiting >= STANDING && (self.held_back_per_s > 0.0 || self.dropped > OVERFLOWS)
    }

    /// Other programs had a notable share of what it carried.
    pub(crate) fn is_shared(&self) -> bool {
        self.others >= NOTABLE
    }

    /// The first transfer's: where there are several interfaces, each has its part in the load.
    fn of_run(run: &TrialResult, sends: bool, hosts: &[Host]) -> Option<Self> {
        let all = transfers(run);
        let first = all.first()?;
        let (host, end) = if sends { (first.from, first.sender) } else { (first.to, first.receiver) };
        let name = end.interface.clone()?;
        let seen = run.hosts.get(host)?;
        let ends: Vec<&EndCounts> = all
            .iter()
            .map(|one| if sends { (one.from, one.sender) } else { (one.to, one.receiver) })
            .filter(|(owner, end)| *owner == host && end.interface.as_ref() == Some(&name))
            .map(|(_, end)| end)
            .collect();
        let qdiscs = || seen.qdiscs.iter().filter(|qdisc| qdisc.interface == name);
        let (packets, drops) = qdiscs()
            .filter(|qdisc| qdisc.root)
            .fold((0, 0), |(packets, drops), qdisc| (packets + qdisc.packets, drops + qdisc.drops));
        let overlimits: u64 = qdiscs().map(|qdisc| qdisc.overlimits).sum();
        // Frames, copies and requests say otherwise what they carried.
        let streams = matches!(run.trial.task(), Task::Stream(_));
        let carried = seen.carried.iter().find(|counted| counted.name == name);
        let nics = hosts.iter().filter(|known| known.name == *host).flat_map(|known| &known.nics);
        let nic = nics.clone().find(|nic| nic.name == name && nic.speed.is_some());
        let line_share = |transmits| {
            let (counted, nic) = carried.zip(nic)?;
            let one_way = on_wire(counted, nic, transmits, seen.window);
            // Both directions share a half-duplex line.
            let other_way = if nic.is_half_duplex() { on_wire(counted, nic, !transmits, seen.window) } else { 0.0 };
            Some((one_way + other_way) / nic.speed?.get().max(1) as f64)
        };
        Some(Self {
            line_share: line_share(sends),
            return_share: line_share(!sends),
            waiting: waiting(run, host, &name),
            held_back_per_s: overlimits as f64 / seen.window.as_secs_f64().max(f64::MIN_POSITIVE),
            dropped: drops as f64 / (packets + drops).max(1) as f64,
            others: carried
                .filter(|_| streams)
                .map_or(0.0, |carried| others(carried, seen.window, run.trial.task(), &ends, sends)),
            filtered: filtered(seen, &name, sends),
            name,
        })
    }
}

/// Returns the bit/s that the frames of an interface took on an Ethernet wire within `window`, one way.
fn on_wire(counted: &InterfaceCounters, nic: &Nic, transmits: bool, window: Nanos) -> f64 {
    let (bytes, packets) =
        if transmits { (counted.tx_bytes, counted.tx_packets) } else { (counted.rx_bytes, counted.rx_packets) };
    // veth counts a frame when the other end has taken its Ethernet header off (veth_xmit() in drivers/net/veth.c).
    let header = if nic.driver == "veth" { ETHERNET_HEADER } else { 0 };
    rate((bytes + packets * (header + UNCOUNTED)) * 8, window.get())
}

/// The disciplines that hold filters, and no packets (tc(8)).
const FILTERS: [&str; 2] = ["clsact", "ingress"];

/// Packets that filters dropped at the interface `name`, as a share of those that it carried.
fn filtered(seen: &Observation, name: &str, sends: bool) -> f64 {
    let by_tc = seen.qdiscs.iter().filter(|qdisc| qdisc.interface == name && FILTERS.contains(&qdisc.kind.as_str()));
    let by_tc: u64 = by_tc.map(|qdisc| qdisc.drops).sum();
    let by_netfilter = if sends { 0 } else { account::filtered(seen) };
    let counted = seen.interfaces.iter().find(|counted| counted.name == name);
    let carried = counted.map_or(0, |counted| if sends { counted.tx_packets } else { counted.rx_packets });
    (by_tc + by_netfilter) as f64 / carried.max(1) as f64
}

/// Share of the window's intervals at whose end packets waited at the interface `name` of `host`; zero if there are too few.
fn waiting(run: &TrialResult, host: &HostName, name: &str) -> f64 {
    let Some(one) = run.series.iter().find(|one| one.load == 0 && one.host == *host) else { return 0.0 };
    if whole_intervals(&one.series) < FEWEST_INTERVALS {
        return 0.0;
    }
    let inside: Vec<bool> = one.series.in_window().collect();
    let mut busy = BTreeSet::new();
    // The subject of a discipline begins with its interface.
    let own = |subject: &str| subject.split_whitespace().next() == Some(name);
    for track in one.series.tracks_of(SeriesQuantity::QdiscBacklog).filter(|track| own(&track.subject)) {
        let waits = track.values.iter().enumerate().filter(|(at, bytes)| inside[*at] && **bytes > 0);
        busy.extend(waits.map(|(at, _)| at));
    }
    busy.len() as f64 / inside.iter().filter(|inside| **inside).count().max(1) as f64
}

/// Of what an interface carried within `seen`, the share that the measured load does not explain, headers included.
fn others(carried: &InterfaceCounters, seen: Nanos, task: &Task, ends: &[&EndCounts], sends: bool) -> f64 {
    let tcp_headers = match task.net().map(|net| net.ip) {
        Some(IpVersion::V6) => TCP_HEADERS + IPV6_MORE,
        _ => TCP_HEADERS,
    };
    // Payload, headers, and what was sent more than once.
    let ours_per_s = |end: &&EndCounts| {
        let tcp = || end.flows.iter().filter_map(|flow| flow.tcp.as_ref());
        // Data of the other direction is acknowledged, at the most segment by segment.
        let segments = || tcp().map(|tcp| tcp.segments_out + tcp.segments_in).sum::<u64>();
        let (bytes, window) = match (sends, &end.sent, &end.received) {
            (true, Some(sent), _) => {
                let again: u64 = tcp().map(|tcp| tcp.retransmits * u64::from(tcp.mss)).sum();
                let headers = (sent.messages * UDP_HEADERS).max(segments() * tcp_headers);
                (sent.payload_bytes + again + headers, sent.window)
            }
            (false, _, Some(received)) => {
                let lost = received.socket_drops.unwrap_or(0) * received.payload_bytes / received.messages.max(1);
                let headers = (received.messages * UDP_HEADERS).max(segments() * tcp_headers);
                (received.payload_bytes + lost + headers, received.window)
            }
            _ => return 0.0,
        };
        bytes as f64 / window.as_secs_f64().max(f64::MIN_POSITIVE)
    };
    let all = if sends { carried.tx_bytes } else { carried.rx_bytes };
    let ours = ends.iter().map(ours_per_s).sum::<f64>() * seen.as_secs_f64();
    (1.0 - ours / all.max(1) as f64).max(0.0)
}

/// Returns the share of the packets that the receiving host sent back and that did not reach the sending one, the median over the
/// runs; zero where that cannot be told: of UDP, of several paths, and without series. It is the rates within the windows that are
/// compared: the hosts count over times of their own.
pub(super) fn lost_on_return(runs: &[&TrialResult]) -> f64 {
    let of_run = |run: &&TrialResult| {
        let [one] = transfers(run)[..] else { return None };
        one.sender.flows.iter().find(|flow| flow.tcp.is_some())?;
        let back = packets_per_s(run, one.to, one.receiver, SeriesQuantity::InterfaceSentPackets)?;
        let came = packets_per_s(run, one.from, one.sender, SeriesQuantity::InterfaceReceivedPackets)?;
        Some(((back - came) / back.max(1.0)).max(0.0))
    };
    median(runs.iter().filter_map(of_run))
}

/// Packets a second of the end's interface within the window; none where they were not sampled.
fn packets_per_s(run: &TrialResult, host: &HostName, end: &EndCounts, quantity: SeriesQuantity) -> Option<f64> {
    let series = &run.series.iter().find(|one| one.load == 0 && one.host == *host)?.series;
    let track = series.tracks_of(quantity).find(|track| Some(&track.subject) == end.interface.as_ref())?;
    if whole_intervals(series) < FEWEST_INTERVALS {
        return None;
    }
    let inside = track.values.iter().zip(series.spans()).zip(series.in_window()).filter(|(_, inside)| *inside);
    let (packets, seconds) =
        inside.fold((0, 0.0), |(packets, seconds), ((count, span), _)| (packets + count, seconds + span.seconds()));
    (seconds > 0.0).then(|| packets as f64 / seconds)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transfer::tests::{paths_of, stream_of, trial};
    use linerate_model::{FlowCounts, QdiscCounters, Series, SessionSeries, TcpFlow, Track, Transport};

    fn run(backlog: Vec<u64>, tx_bytes: u64) -> TrialResult {
        let mut run = trial(9_000, 0);
        let host = run.hosts.get_mut(&"a".into()).expect("host a");
        host.window = Nanos::from_secs(1);
        let interface = || String::from("eth0");
        host.qdiscs = vec![QdiscCounters {
            interface: interface(),
            kind: "tbf".into(),
            root: true,
            packets: 900,
            drops: 100,
            overlimits: 50,
            ..QdiscCounters::default()
        }];
        host.carried = vec![InterfaceCounters { name: interface(), tx_bytes, ..InterfaceCounters::default() }];
        let track = Track { quantity: SeriesQuantity::QdiscBacklog, subject: "eth0 tbf".into(), values: backlog };
        let at_us = (1..=track.values.len() as i64).map(|tenth| tenth * 100_000).collect();
        let series = Series { window: Nanos::from_secs(1), at_us, tracks: vec![track], ..Series::default() };
        run.series = vec![SessionSeries { load: 0, host: "a".into(), series }];
        run
    }

    #[test]
    fn frames_of_veth_are_counted_with_their_ethernet_header() {
        let counted = InterfaceCounters { tx_bytes: 128_000, tx_packets: 1_000, ..InterfaceCounters::default() };
        let nic = |driver: &str| Nic { driver: driver.into(), ..crate::measure::tests::host("a", None).nics.remove(0) };
        let taken = |driver| on_wire(&counted, &nic(driver), true, Nanos::from_secs(1));
        // 100 bytes of UDP take 166 on the wire.
        assert_eq!((taken("veth"), taken("e1000e")), (166.0 * 8_000.0, 152.0 * 8_000.0));
        assert_eq!(on_wire(&counted, &nic("veth"), false, Nanos::from_secs(1)), 0.0);
    }

    #[test]
    fn both_directions_fill_a_half_duplex_line() {
        let mut run = run(vec![0; 10], 0);
        let carried = &mut run.hosts.get_mut(&"a".into()).expect("host a").carried[0];
        // 600 frames there and 300 back, of 1,538 and 90 bytes on the wire.
        (carried.tx_packets, carried.tx_bytes) = (600, 600 * 1_500);
        (carried.rx_packets, carried.rx_bytes) = (300, 300 * 52);
        let mut hosts = [crate::measure::tests::host("a", Some(10_000_000))];
        let shares = |hosts: &[Host]| {
            let facts = InterfaceFacts::of(&[&run], true, hosts);
            [facts.line_share, facts.return_share].map(|share| share.expect("the speed is known"))
        };
        let near = |shares: [f64; 2], bytes: [f64; 2]| {
            shares.iter().zip(bytes).all(|(share, bytes)| (share - bytes * 8.0 / 1e7).abs() < 1e-9)
        };
        let (there, back) = (600.0 * 1_538.0, 300.0 * 90.0);
        assert!(near(shares(&hosts), [there, back]), "{:?}", shares(&hosts));
        hosts[0].nics[0].duplex = Some(linerate_model::Duplex::Half);
        assert!(near(shares(&hosts), [there + back; 2]), "{:?}", shares(&hosts));
    }

    #[test]
    fn a_queue_that_stands_before_an_interface_that_holds_back_is_the_hosts_own_shaper() {
        let stands = InterfaceFacts::of(&[&run(vec![9_000; 10], 0)], true, &[]);
        assert_eq!(
            (stands.name.as_str(), stands.waiting, stands.held_back_per_s, stands.dropped),
            ("eth0", 1.0, 50.0, 0.1)
        );
        assert!(stands.is_shaped());
        let now_and_then = InterfaceFacts::of(&[&run(vec![9_000, 0, 0, 0, 0, 0, 0, 0, 0, 0], 0)], true, &[]);
        assert!(!now_and_then.is_shaped(), "{now_and_then:?}");
        assert_eq!(InterfaceFacts::of(&[&run(vec![9_000; 10], 0)], false, &[]).waiting, 0.0, "the other host has none");
    }

    #[test]
    fn what_the_load_does_not_explain_is_of_others() {
        let payload = trial(9_000, 0).paths()[0].client.sent.as_ref().expect("sent").payload_bytes;
        let of = |bytes| InterfaceFacts::of(&[&run(vec![0; 10], bytes)], true, &[]);
        assert!(!of(payload + 9_000 * 42).is_shared(), "headers are its own");
        assert!(of(3 * payload).is_shared());
    }

    /// On a line that is full a few percent decide.
    #[test]
    fn a_small_share_of_others_is_found_beside_tcp_that_retransmits() {
        let mut run = run(vec![0; 10], 0);
        stream_of(&mut run.trial).net.transport = Transport::Tcp;
        let end = &mut paths_of(&mut run)[0].client;
        let sent = end.sent.as_mut().expect("sent");
        (sent.payload_bytes, sent.messages, sent.window) = (144_800_000, 1_000, Nanos::from_secs(2));
        let tcp = TcpFlow { segments_out: 101_000, retransmits: 1_000, mss: 1_448, ..TcpFlow::default() };
        end.flows = vec![FlowCounts { tcp: Some(tcp), ..FlowCounts::default() }];
        // The host looked for half as long.
        let ours = 101_000 * 1_514 / 2;
        let mut of = |bytes| {
            run.hosts.get_mut(&"a".into()).expect("host a").carried[0].tx_bytes = bytes;
            InterfaceFacts::of(&[&run], true, &[]).others
        };
        assert!(of(ours) < 1e-6, "{}", of(ours));
        let shared = of(ours * 100 / 97);
        assert!((shared - 0.03).abs() < 1e-3, "{shared}");
    }

    #[test]
    fn acknowledgements_of_the_other_direction_are_no_traffic_of_others() {
        let mut run = run(vec![0; 10], 100_000 * 1_514 + 50_000 * 66);
        stream_of(&mut run.trial).net.transport = Transport::Tcp;
        let end = &mut paths_of(&mut run)[0].client;
        let sent = end.sent.as_mut().expect("sent");
        (sent.payload_bytes, sent.messages, sent.window) = (144_800_000, 1_000, Nanos::from_secs(1));
        let flow = |out, into| {
            let tcp = TcpFlow { segments_out: out, segments_in: into, mss: 1_448, ..TcpFlow::default() };
            FlowCounts { tcp: Some(tcp), ..FlowCounts::default() }
        };
        // One acknowledgement for every second segment.
        end.flows = vec![flow(100_000, 0), flow(0, 100_000)];
        assert_eq!(InterfaceFacts::of(&[&run], true, &[]).others, 0.0);
    }

    #[test]
    fn acknowledgements_that_do_not_come_back_are_counted() {
        let mut run = trial(9_000, 0);
        paths_of(&mut run)[0].client.flows =
            vec![FlowCounts { tcp: Some(TcpFlow::default()), ..FlowCounts::default() }];
        let series = |host: &str, quantity, packets: [u64; 6]| {
            let track = Track { quantity, subject: "eth0".into(), values: packets.to_vec() };
            let (from_us, at_us) = (-500_000, vec![0, 250_000, 500_000, 750_000, 1_000_000, 1_500_000]);
            let series =
                Series { window: Nanos::from_secs(1), from_us, at_us, tracks: vec![track], ..Series::default() };
            SessionSeries { load: 0, host: host.into(), series }
        };
        let back = series("b", SeriesQuantity::InterfaceSentPackets, [7_000, 250, 250, 250, 250, 0]);
        let came = series("a", SeriesQuantity::InterfaceReceivedPackets, [100, 200, 200, 200, 200, 900]);
        run.series = vec![back, came];
        assert!((lost_on_return(&[&run]) - 0.2).abs() < 1e-9, "what is outside of the window has no part in it");
        assert_eq!(lost_on_return(&[&trial(9_000, 0)]), 0.0);
    }
}
