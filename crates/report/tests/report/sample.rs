//! Records as runs of linerate leave them, built by hand.

use linerate_model::{
    AddedDelay, Caveat, CaveatKind, Ceiling, Confidence, CpuCost, CpuCosts, DelayGrade, Direction, Host, HostName,
    Interval, IpVersion, Latency, Limit, LoadedLatency, Loss, LossPlaces, Measurement, NfsMix, NfsSpec, Nic, Path,
    PathLimit, Plan, ReceivedRates, Record, RecordId, Repeats, RoundTripsPerMinute, RpcCall, RpcSpec, SentRates, Share,
    SocketOptions, StreamSpec, Summary, TcpSummary, Timing, TransactSpec, Transport, TrialSpec, Verdict, Workload,
    WorkloadKind, layer_bytes,
};
use linerate_units::{BitRate, ByteCount, Nanos};
use std::collections::BTreeMap;

pub(crate) const GIGABIT: BitRate = BitRate::per_second(1_000_000_000);
const MTU: u32 = 1500;

/// Three runs around `median`, `spread` of it apart.
pub(crate) fn summary(median: f64, spread: f64) -> Summary {
    let (low, high) = (median * (1.0 - spread / 2.0), median * (1.0 + spread / 2.0));
    let interval = Some(Interval { percent: 95.0, low, high });
    Summary { median, low, high, runs: 3, values: vec![low, median, high], interval }
}

/// A cost at one end.
fn cost(busiest_core: f64, ns_per_byte: f64) -> CpuCost {
    CpuCost {
        busiest_core,
        busiest_core_softirq: busiest_core / 4.0,
        busiest_thread: busiest_core * 0.9,
        ns_per_byte: Some(ns_per_byte),
        ns_per_packet: Some(ns_per_byte * 1472.0),
        host_ns_per_byte: None,
        steal: 0.001,
    }
}

/// A stream of messages at a share of a gigabit link's limit, with no doubts and no verdict.
pub(crate) fn stream(name: &str, transport: Transport, message_bytes: u64, share: f64) -> Measurement {
    let most = PathLimit::payload_of(GIGABIT, transport, IpVersion::V4, message_bytes, MTU);
    let payload = most.get() as f64 * share;
    let (payload_bytes, ip_bytes, wire_bytes) = layer_bytes(transport, IpVersion::V4, message_bytes, MTU);
    let scaled = |bytes: u64| Some(summary(payload * bytes as f64 / payload_bytes as f64, 0.01));
    let packets = summary(payload / 8.0 / payload_bytes as f64, 0.01);
    let udp = transport == Transport::Udp;
    let of = (packets.median * 6.0) as u64;
    Measurement {
        name: name.to_owned(),
        workload: WorkloadKind::Stream,
        transport,
        ip: IpVersion::V4,
        message_bytes,
        response_bytes: None,
        direction: Some(Direction::Send),
        flows: 1,
        received: Some(ReceivedRates {
            payload_bps: summary(payload, 0.01),
            ip_bps: scaled(ip_bytes),
            wire_bps: scaled(wire_bytes),
            messages_per_s: udp.then(|| packets.clone()),
            packets_per_s: packets,
            means: if udp { "recvmmsg" } else { "recv" }.to_owned(),
        }),
        sent: Some(SentRates {
            payload_bps: summary(payload, 0.01),
            means: if udp { "sendmmsg" } else { "sendfile" }.to_owned(),
        }),
        shares: vec![],
        limit: Some(PathLimit { line_bps: GIGABIT, mtu: MTU, payload_bps: most, share }),
        ceiling: None,
        transactions_per_s: None,
        failed: None,
        loss: udp.then_some(Loss { of, ..Loss::default() }),
        jitter_ns: udp.then(|| summary(4_200.0, 0.2)),
        latency_ns: None,
        call: None,
        retransmitted: None,
        operations: Default::default(),
        classes: Default::default(),
        service_ns: None,
        loaded_latency: None,
        cpu: CpuCosts { sender: cost(0.91, 0.112), receiver: cost(0.54, 0.087) },
        tcp: (!udp).then(|| TcpSummary {
            congestion: "cubic".to_owned(),
            retransmits: 12,
            timeouts: 0,
            segments: 1_200_300,
            rtt_ns: 310_000,
            min_rtt_ns: 41_000,
            receive_window_limited: 0.31,
            send_buffer_limited: 0.0,
            mss: 1448,
        }),
        caveats: vec![],
        verdict: Verdict::new(Limit::CannotTell, Confidence::Low, vec![]),
    }
}

/// Transactions with a long tail.
pub(crate) fn transact(name: &str, transport: Transport, p50: u64) -> Measurement {
    let base = stream(name, transport, 1, 0.5);
    // A tail that grows with the nines of the share.
    let within = |nines: f64| (p50 as f64 * (0.7 + 0.93 * nines + 0.11 * nines.powi(3))) as u64;
    let mut distribution: Vec<(u64, f64)> =
        (0..=100).map(|step| f64::from(step) / 20.0).map(|nines| (within(nines), 1.0 - 10f64.powf(-nines))).collect();
    distribution.push((p50 * 31, 1.0));
    Measurement {
        workload: WorkloadKind::Transact,
        response_bytes: Some(1),
        direction: None,
        received: None,
        sent: None,
        limit: None,
        loss: None,
        jitter_ns: None,
        transactions_per_s: Some(summary(0.8e9 / p50 as f64, 0.04)),
        failed: Some(0),
        latency_ns: Some(Latency {
            p50: within(0.301),
            p90: within(1.0),
            p99: within(2.0),
            p999: within(3.0),
            max: p50 * 31,
            min: p50 * 7 / 10,
            mean: p50 as f64 * 1.1,
            count: 254_311,
            distribution,
        }),
        ..base
    }
}

/// RPC calls that move units of data at a share of a gigabit link's limit.
pub(crate) fn calls(name: &str, transport: Transport, call: RpcCall, unit_bytes: u64, share: f64) -> Measurement {
    let moved = stream(name, transport, unit_bytes, share);
    let per_second =
        moved.received.as_ref().map_or(0.0, |received| received.payload_bps.median) / 8.0 / unit_bytes as f64;
    Measurement {
        workload: WorkloadKind::Rpc,
        call: Some(call),
        retransmitted: Some(if transport == Transport::Udp { 17 } else { 0 }),
        transactions_per_s: Some(summary(per_second, 0.02)),
        direction: None,
        loss: None,
        jitter_ns: None,
        received: moved.received,
        sent: moved.sent,
        limit: moved.limit,
        ..transact(name, transport, 90_000)
    }
}

/// A host with one NIC.
pub(crate) fn host(name: &str, speed: Option<BitRate>) -> Host {
    Host {
        name: HostName(name.to_owned()),
        version: "0.1.0".to_owned(),
        protocol: 1,
        system: "Linux 6.18.44".to_owned(),
        cpu_model: "Example CPU @ 2.60GHz".to_owned(),
        cores: 2,
        memory_bytes: 8 << 30,
        boot_id: "b1".to_owned(),
        congestion_controls: vec!["cubic".to_owned(), "reno".to_owned()],
        nics: vec![Nic {
            name: "eth0".to_owned(),
            driver: "veth".to_owned(),
            speed,
            mtu: MTU,
            up: true,
            mac: "02:00:00:00:00:01".to_owned(),
            addresses: vec!["198.18.0.1".parse().expect("an address")],
            offloads: BTreeMap::from([("rx-gro".to_owned(), true), ("tx-tcp-segmentation".to_owned(), false)]),
            qdisc: "tbf".to_owned(),
        }],
        data_addresses: vec!["198.18.0.1".parse().expect("an address")],
        capabilities: vec![],
    }
}

fn cell(result: &Measurement, openers: &[&str], listener: &str) -> TrialSpec {
    let path = |opener: &&str| Path { opener: (*opener).into(), listener: listener.into() };
    let message_bytes = ByteCount::new(result.message_bytes);
    let workload = match result.workload {
        WorkloadKind::Stream => Workload::Stream(StreamSpec {
            transport: result.transport,
            ip: result.ip,
            message_bytes,
            flows: result.flows,
            direction: result.direction.unwrap_or_default(),
            offered: None,
            offload: false,
            send_by: Default::default(),
            receive_by: Default::default(),
            socket: SocketOptions::default(),
        }),
        WorkloadKind::Transact => Workload::Transact(TransactSpec {
            transport: result.transport,
            ip: result.ip,
            style: Default::default(),
            request_bytes: message_bytes,
            response_bytes: message_bytes,
            flows: result.flows,
            outstanding: 1,
            rate: None,
            arrivals: Default::default(),
            busy_poll: false,
            socket: SocketOptions::default(),
        }),
        WorkloadKind::Rpc => {
            let call = result.call.unwrap_or_default();
            Workload::Rpc(RpcSpec { flows: result.flows, ..RpcSpec::plain(result.transport, call, message_bytes) })
        }
        WorkloadKind::Nfs => {
            let mix = NfsMix::named("sfs97-like").expect("it is built in");
            Workload::Nfs(NfsSpec { flows: result.flows, ..NfsSpec::plain(result.transport, mix) })
        }
    };
    TrialSpec {
        name: result.name.clone(),
        paths: openers.iter().map(path).collect(),
        workload,
        timing: Timing { warmup: Nanos::from_millis(500), measure: Nanos::from_secs(2) },
        proves: None,
        probe: None,
    }
}

/// A record of these results between `openers` and `listener`.
pub(crate) fn record(openers: &[&str], listener: &str, results: Vec<Measurement>) -> Record {
    let hosts = openers.iter().chain([&listener]).map(|name| host(name, Some(GIGABIT))).collect();
    let plan = Plan::of(results.iter().map(|result| cell(result, openers, listener)).collect(), Repeats::Times(3));
    Record {
        version: "0.1.0".to_owned(),
        command: ["linerate", "stream", "a", "b", "--udp"].map(str::to_owned).to_vec(),
        study: None,
        started_unix_ns: 1_795_253_400_000_000_000,
        hosts,
        results,
        caveats: vec![Caveat::new(
            CaveatKind::SharedMachine,
            "Both hosts are this machine (2 cores), so sending and receiving shared its cores; measure between two machines \
             to know what one of them can do.",
        )],
        ..Record::new(RecordId("20261121T093000-4f2a".to_owned()), plan)
    }
}

fn with_ceiling(mut result: Measurement, reached: f64) -> Measurement {
    let median = match (&result.received, &result.transactions_per_s) {
        (Some(received), _) => received.payload_bps.median,
        (None, Some(done)) => done.median,
        (None, None) => 0.0,
    };
    result.ceiling = Some(Ceiling {
        record: RecordId("20261121T092900-77aa".to_owned()),
        reached: summary(reached, 0.02),
        share: median / reached,
    });
    result
}

fn judged(mut result: Measurement, limit: Limit, evidence: &str) -> Measurement {
    result.verdict = Verdict::new(limit, Confidence::High, vec![evidence.to_owned()]);
    result
}

/// UDP at four sizes through a device, with limits and ceilings: small datagrams stop at the tester, large ones at the wire.
pub(crate) fn udp_sweep() -> Record {
    let mut results = vec![
        judged(
            with_ceiling(stream("udp 64", Transport::Udp, 64, 0.562), 279e6),
            Limit::Tester,
            "The device passed 99 % of what the tester reaches without it; the sender's busiest core was 91 % busy.",
        ),
        with_ceiling(stream("udp 512", Transport::Udp, 512, 0.62), 890e6),
        judged(
            with_ceiling(stream("udp 1024", Transport::Udp, 1024, 0.998), 955e6),
            Limit::Wire,
            "the link of 1 Gbit/s was 99.8 % full",
        ),
        judged(
            with_ceiling(stream("udp 1472", Transport::Udp, 1472, 0.999), 957e6),
            Limit::Wire,
            "the link of 1 Gbit/s was 99.9 % full",
        ),
    ];
    let noisy = Caveat::new(
        CaveatKind::WideSpread,
        "The runs differ by more than 5 %; repeat with a longer --time or more --repeats on a quiet machine.",
    );
    results[0].caveats.push(noisy.clone());
    results[1].caveats.push(noisy);
    results[1].loss = Some(Loss {
        lost: 2_594,
        of: 254_311,
        places: LossPlaces { wire: 2_594, ..LossPlaces::default() },
        ..Loss::default()
    });
    record(&["a"], "b", results)
}

/// TCP one way, the other way, and both ways at once.
pub(crate) fn tcp_directions() -> Record {
    let way = |name, direction, share| Measurement {
        direction: Some(direction),
        ..stream(name, Transport::Tcp, 131_072, share)
    };
    record(
        &["a"],
        "b",
        vec![
            way("tcp send", Direction::Send, 0.999),
            way("tcp receive", Direction::Receive, 0.997),
            way("tcp both", Direction::Both, 0.95),
        ],
    )
}

/// TCP and UDP transactions.
pub(crate) fn transactions() -> Record {
    record(&["a"], "b", vec![transact("tcp 1/1", Transport::Tcp, 27_000), transact("udp 1/1", Transport::Udp, 19_500)])
}

/// Requests timed on the idle path and beside the stream: TCP that fills a queue of 200 ms, and a path whose cores wake up
/// for every request while it is idle.
pub(crate) fn loaded_latency() -> Record {
    let timed = |p50| transact("", Transport::Tcp, p50).latency_ns.expect("timed");
    let probed = |loaded_p50, loaded_unanswered, runs_apart, buffer_delay_percent| {
        let (idle_ns, loaded_ns) = (timed(400_000), timed(loaded_p50));
        let added = |at: fn(&Latency) -> u64| at(&loaded_ns) as i64 - at(&idle_ns) as i64;
        let p50 = added(|latency| latency.p50);
        LoadedLatency {
            transport: Transport::Tcp,
            added_ns: AddedDelay {
                p50,
                p90: added(|latency| latency.p90),
                p99: added(|latency| latency.p99),
                p50_runs: summary(p50 as f64, runs_apart),
            },
            idle_unanswered: 0,
            loaded_unanswered,
            rpm: RoundTripsPerMinute { idle: 148_200.0, loaded: 312.4 },
            buffer_delay_percent,
            grade: DelayGrade::of(p50),
            idle_ns,
            loaded_ns,
        }
    };
    let mut results = [stream("tcp", Transport::Tcp, 131_072, 0.999), stream("udp 64", Transport::Udp, 64, 0.5)];
    results[0].loaded_latency = Some(probed(190_000_000, 12, 0.04, 47_400.0));
    results[1].loaded_latency = Some(probed(340_000, 0, -0.1, -15.0));
    record(&["a"], "b", results.into())
}

/// Three sources into one sink, unequal.
pub(crate) fn many_sources() -> Record {
    let mut result = stream("tcp", Transport::Tcp, 131_072, 0.999);
    let share = |from: &str, part: f64| Share {
        from: from.to_owned(),
        to: "sink".to_owned(),
        payload_bps: Some(summary(941e6 * part, 0.05)),
        transactions_per_s: None,
        loss: None,
    };
    result.shares = vec![share("a", 0.5), share("b", 0.3), share("c", 0.2)];
    record(&["a", "b", "c"], "sink", vec![result])
}

/// Datagrams lost in every place.
pub(crate) fn lossy() -> Record {
    let lose = |name, size, places: LossPlaces| {
        let mut result = stream(name, Transport::Udp, size, 0.7);
        result.loss = Some(Loss { lost: places.sum(), of: 500_000, places, duplicates: 3, reordered: 41 });
        result
    };
    let places =
        LossPlaces { not_sent: 1_200, sender_queue: 20_000, wire: 5_000, receiver_queue: 900, socket_buffer: 31_000 };
    record(
        &["a"],
        "b",
        vec![
            lose("udp 64", 64, places),
            lose("udp 1472", 1472, LossPlaces { wire: 5_012, ..LossPlaces::default() }),
            lose("udp 8192", 8192, LossPlaces { socket_buffer: 250_000, wire: 3_000, ..LossPlaces::default() }),
        ],
    )
}

/// A link that does not know its speed.
pub(crate) fn unknown_link() -> Record {
    let mut result = stream("tcp", Transport::Tcp, 131_072, 0.9);
    result.limit = None;
    result.caveats.push(Caveat::new(
        CaveatKind::UnknownLinkSpeed,
        "The speed of eth0 is unknown (driver veth), so no share of it can be given; name it with --link-speed.",
    ));
    let mut record = record(&["a"], "b", vec![result]);
    record.hosts.iter_mut().for_each(|host| host.nics[0].speed = None);
    record
}

/// Every figure that can be absurd is.
pub(crate) fn absurd() -> Record {
    let mut broken = stream("broken", Transport::Udp, 64, f64::NAN);
    broken.cpu.sender.busiest_core = f64::INFINITY;
    broken.cpu.receiver.ns_per_byte = Some(f64::NAN);
    broken.loss = Some(Loss { lost: 9, of: 3, ..Loss::default() });
    broken = with_ceiling(broken, 0.0);
    broken.loaded_latency = loaded_latency().results[0].loaded_latency.take().map(|probed| LoadedLatency {
        rpm: RoundTripsPerMinute { idle: f64::INFINITY, loaded: f64::NAN },
        buffer_delay_percent: f64::NAN,
        ..probed
    });
    let mut empty = transact("empty", Transport::Tcp, 27_000);
    empty.transactions_per_s = Some(summary(f64::NAN, 0.1));
    empty.latency_ns = Some(Latency {
        p50: 0,
        p90: 0,
        p99: 0,
        p999: 0,
        max: 0,
        min: 0,
        mean: f64::NAN,
        count: 0,
        distribution: vec![],
    });
    record(&["a"], "b", vec![broken, empty])
}

/// What the lab's demonstration leaves: a sweep, TCP both directions and transactions.
pub(crate) fn demonstration() -> Record {
    let mut whole = udp_sweep();
    for other in [tcp_directions(), transactions()] {
        whole.results.extend(other.results);
        whole.plan.cells.extend(other.plan.cells);
    }
    whole.command = vec!["linerate".to_owned(), "lab".to_owned()];
    whole
}

/// All of them, by name.
pub(crate) fn all() -> Vec<(&'static str, Record)> {
    vec![
        ("udp_sweep", udp_sweep()),
        ("tcp_directions", tcp_directions()),
        ("transactions", transactions()),
        ("loaded_latency", loaded_latency()),
        ("many_sources", many_sources()),
        ("lossy", lossy()),
        ("unknown_link", unknown_link()),
        ("absurd", absurd()),
        ("demonstration", demonstration()),
    ]
}
