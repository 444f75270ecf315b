//! Records as runs of linerate leave them, built by hand.

use linerate_model::{
    AddedDelay, Bypass, Caveat, CaveatKind, Confidence, CpuCost, CpuCosts, DelayGrade, Detail, Direction, FlowFigures,
    Host, HostName, Interval, IpVersion, Latency, Limit, LoadedLatency, Loss, LossPlaces, Measurement, Message, Net,
    NfsMix, NfsTask, Nic, Path, PathLimit, Plan, Quantity, ReceivedRates, Record, RecordId, Repeats, RequestFigures,
    RoundTripsPerMinute, RpcCall, RpcFigures, RpcTask, SentRates, Share, StreamFigures, StreamTask, Summary, Task,
    TcpSummary, TesterLimit, Timing, TransactFigures, TransactTask, Transport, Trial, Verdict, layer_bytes,
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

/// A result of these figures, with no caveats and no verdict.
pub(crate) fn of(name: &str, detail: Detail) -> Measurement {
    let mut result = Measurement {
        name: name.to_owned(),
        quantity: Quantity::PerSecond,
        main: summary(0.0, 0.0),
        tester_limit: None,
        verdict: Verdict::new(Limit::CannotTell, Confidence::Low, vec![]),
        caveats: vec![],
        detail,
    };
    if let Some(requests) = result.requests() {
        result.main = requests.transactions_per_s.clone();
    } else if let Some(stream) = result.stream() {
        result.main = stream.received.payload_bps.clone();
        result.quantity = Quantity::PayloadBps;
    }
    result
}

/// Returns the figures of a stream, to be changed.
pub(crate) fn figures(result: &mut Measurement) -> &mut StreamFigures {
    match &mut result.detail {
        Detail::Stream(figures) => figures,
        _ => panic!("{} is no stream", result.name),
    }
}

/// Returns the figures that all tasks of flows have, to be changed.
pub(crate) fn flow(result: &mut Measurement) -> &mut FlowFigures {
    match &mut result.detail {
        Detail::Stream(figures) => &mut figures.flow,
        Detail::Transact(figures) => &mut figures.flow,
        Detail::Rpc(figures) => &mut figures.flow,
        Detail::Nfs(figures) => &mut figures.flow,
        _ => panic!("{} has no flows", result.name),
    }
}

/// Returns the stream with its figures changed, and its main figure with them.
pub(crate) fn with(mut result: Measurement, change: impl FnOnce(&mut StreamFigures)) -> Measurement {
    change(figures(&mut result));
    of(&result.name, result.detail)
}

/// A stream of messages at a share of a gigabit link's limit, with no caveats and no verdict.
pub(crate) fn stream(name: &str, transport: Transport, message_bytes: u64, share: f64) -> Measurement {
    of(name, Detail::Stream(Box::new(streamed(transport, message_bytes, share))))
}

fn streamed(transport: Transport, message_bytes: u64, share: f64) -> StreamFigures {
    let most = PathLimit::payload_of(GIGABIT, transport, IpVersion::V4, message_bytes, MTU);
    let payload = most.get() as f64 * share;
    let (payload_bytes, ip_bytes, wire_bytes) = layer_bytes(transport, IpVersion::V4, message_bytes, MTU);
    let scaled = |bytes: u64| Some(summary(payload * bytes as f64 / payload_bytes as f64, 0.01));
    let packets = summary(payload / 8.0 / payload_bytes as f64, 0.01);
    let udp = transport == Transport::Udp;
    let of = (packets.median * 6.0) as u64;
    StreamFigures {
        flow: FlowFigures {
            transport,
            ip: IpVersion::V4,
            flows: 1,
            message_bytes,
            limit: Some(PathLimit { line_bps: GIGABIT, mtu: MTU, payload_bps: most, share, half_duplex: false }),
            shares: vec![],
            cpu: CpuCosts { sender: cost(0.91, 0.112), receiver: cost(0.54, 0.087) },
            tcp: (!udp).then(|| TcpSummary {
                congestion: "cubic".to_owned(),
                retransmits: 12,
                timeouts: 0,
                dsacks: 0,
                reorderings: 0,
                segments: 1_200_300,
                rtt_ns: 310_000,
                min_rtt_ns: 41_000,
                receive_window_limited: 0.31,
                send_buffer_limited: 0.0,
                mss: 1448,
            }),
            ways: Vec::new(),
        },
        direction: Direction::Send,
        received: ReceivedRates {
            payload_bps: summary(payload, 0.01),
            ip_bps: scaled(ip_bytes),
            wire_bps: scaled(wire_bytes),
            messages_per_s: udp.then(|| packets.clone()),
            packets_per_s: packets,
            io_method: if udp { "recvmmsg" } else { "recv" }.to_owned(),
            within: None,
        },
        sent: SentRates {
            payload_bps: summary(payload, 0.01),
            io_method: if udp { "sendmmsg" } else { "sendfile" }.to_owned(),
        },
        loss: udp.then_some(Loss { of, ..Loss::default() }),
        jitter_ns: udp.then(|| summary(4_200.0, 0.2)),
        loaded_latency: None,
    }
}

/// Transactions with a long tail.
pub(crate) fn transact(name: &str, transport: Transport, p50: u64) -> Measurement {
    of(name, Detail::Transact(Box::new(transacted(transport, p50))))
}

/// Figures of transactions with a long tail.
pub(crate) fn transacted(transport: Transport, p50: u64) -> TransactFigures {
    let base = streamed(transport, 1, 0.5);
    TransactFigures {
        flow: FlowFigures { limit: None, ..base.flow },
        requests: RequestFigures {
            transactions_per_s: summary(0.8e9 / p50 as f64, 0.04),
            failed: 0,
            latency_ns: Some(long_tail(p50)),
        },
        response_bytes: 1,
    }
}

/// Latency that grows with the nines of the share.
fn long_tail(p50: u64) -> Latency {
    let within = |nines: f64| (p50 as f64 * (0.7 + 0.93 * nines + 0.11 * nines.powi(3))) as u64;
    let mut distribution: Vec<(u64, f64)> =
        (0..=100).map(|step| f64::from(step) / 20.0).map(|nines| (within(nines), 1.0 - 10f64.powf(-nines))).collect();
    distribution.push((p50 * 31, 1.0));
    Latency {
        p50: within(0.301),
        p90: within(1.0),
        p99: within(2.0),
        p999: within(3.0),
        max: p50 * 31,
        min: p50 * 7 / 10,
        mean: p50 as f64 * 1.1,
        count: 254_311,
        distribution,
    }
}

/// RPC calls that move units of data at a share of a gigabit link's limit.
pub(crate) fn calls(name: &str, transport: Transport, call: RpcCall, unit_bytes: u64, share: f64) -> Measurement {
    let moved = streamed(transport, unit_bytes, share);
    let per_second = moved.received.payload_bps.median / 8.0 / unit_bytes as f64;
    let TransactFigures { flow, requests, .. } = transacted(transport, 90_000);
    let figures = RpcFigures {
        flow: FlowFigures { limit: moved.flow.limit, ..flow },
        requests: RequestFigures { transactions_per_s: summary(per_second, 0.02), ..requests },
        call,
        received: Some(moved.received),
        sent: Some(moved.sent),
        retransmitted: if transport == Transport::Udp { 17 } else { 0 },
        service_ns: None,
    };
    of(name, Detail::Rpc(Box::new(figures)))
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
        core_groups: Vec::new(),
        memory_bytes: 8 << 30,
        boot_id: "b1".to_owned(),
        congestion_controls: vec!["cubic".to_owned(), "reno".to_owned()],
        nics: vec![Nic {
            name: "eth0".to_owned(),
            driver: "veth".to_owned(),
            speed,
            duplex: None,
            mtu: MTU,
            up: true,
            mac: "02:00:00:00:00:01".to_owned(),
            addresses: vec!["198.18.0.1".parse().expect("an address")],
            offloads: BTreeMap::from([("rx-gro".to_owned(), true), ("tx-tcp-segmentation".to_owned(), false)]),
            qdisc: "tbf".to_owned(),
            driver_version: String::new(),
            firmware: String::new(),
            slot: None,
        }],
        data_addresses: vec!["198.18.0.1".parse().expect("an address")],
        capabilities: vec![],
    }
}

fn cell(result: &Measurement, clients: &[&str], server: &str) -> Trial {
    let flow = result.flows().expect("a result of flows");
    let paths = clients.iter().map(|client| Path::between(*client, server)).collect();
    let net = Net { ip: flow.ip, flows: flow.flows, ..Net::plain(flow.transport) };
    let bytes = ByteCount::new(flow.message_bytes);
    let transport = flow.transport;
    let task = match &result.detail {
        Detail::Stream(stream) => Task::Stream(StreamTask {
            paths,
            net,
            direction: stream.direction,
            offload: false,
            ..StreamTask::plain(transport, bytes)
        }),
        Detail::Transact(_) => Task::Transact(TransactTask {
            paths,
            net,
            request_bytes: bytes,
            response_bytes: bytes,
            ..TransactTask::plain(transport)
        }),
        Detail::Rpc(calls) => Task::Rpc(RpcTask { paths, net, ..RpcTask::plain(transport, calls.call, bytes) }),
        Detail::Nfs(_) => {
            let mix = NfsMix::named("sfs97-like").expect("it is built in");
            Task::Nfs(NfsTask { paths, net, ..NfsTask::plain(transport, mix) })
        }
        Detail::Frames { .. } | Detail::Copy(_) | Detail::Hops { .. } => panic!("{} has no flows", result.name),
    };
    Trial::new(result.name.clone(), task, Timing::of(Nanos::from_millis(500), Nanos::from_secs(2)))
}

/// A record of these results between `clients` and `server`.
pub(crate) fn record(clients: &[&str], server: &str, results: Vec<Measurement>) -> Record {
    let hosts = clients.iter().chain([&server]).map(|name| host(name, Some(GIGABIT))).collect();
    let cells = results.iter().filter(|result| result.flows().is_some()).map(|result| cell(result, clients, server));
    let plan = Plan::sweep(cells.collect(), Repeats::Times(3));
    Record {
        version: "0.1.0".to_owned(),
        command: ["linerate", "stream", "a", "b", "--udp"].map(str::to_owned).to_vec(),
        started_unix_ns: 1_795_253_400_000_000_000,
        hosts,
        results,
        caveats: vec![Caveat::new(
            CaveatKind::SharedMachine,
            Message::untranslated(
                "Both hosts are this machine (2 cores), so sending and receiving shared its cores; measure between two machines \
             to know what one of them can do.",
            ),
        )],
        ..Record::new(RecordId("20261121T093000-4f2a".to_owned()), plan)
    }
}

fn with_tester_limit(mut result: Measurement, reached: f64) -> Measurement {
    result.tester_limit = Some(TesterLimit {
        interleaved: false,
        record: RecordId("20261121T092900-77aa".to_owned()),
        bypass: Bypass::Cable,
        age: Nanos::default(),
        reached: summary(reached, 0.02),
        share: result.main.median / reached,
    });
    result
}

fn judged(mut result: Measurement, limit: Limit, evidence: &str) -> Measurement {
    result.verdict = Verdict::new(limit, Confidence::High, vec![Message::untranslated(evidence)]);
    result
}

/// UDP at four sizes through a device, with limits of the link and of the tester: small datagrams stop at the tester, large ones at the wire.
pub(crate) fn udp_sweep() -> Record {
    let mut results = vec![
        judged(
            with_tester_limit(stream("udp 64", Transport::Udp, 64, 0.562), 279e6),
            Limit::Tester,
            "The device passed 99 % of what the tester reaches without it; the sender's busiest core was 91 % busy.",
        ),
        with_tester_limit(stream("udp 512", Transport::Udp, 512, 0.62), 890e6),
        judged(
            with_tester_limit(stream("udp 1024", Transport::Udp, 1024, 0.998), 955e6),
            Limit::Wire,
            "the link of 1 Gbit/s was 99.8 % full",
        ),
        judged(
            with_tester_limit(stream("udp 1472", Transport::Udp, 1472, 0.999), 957e6),
            Limit::Wire,
            "the link of 1 Gbit/s was 99.9 % full",
        ),
    ];
    let noisy = Caveat::new(
        CaveatKind::WideSpread,
        Message::untranslated(
            "The runs differ by more than 5 %; repeat with a longer --time or more --repeats on a quiet machine.",
        ),
    );
    results[0].caveats.push(noisy.clone());
    results[1].caveats.push(noisy);
    figures(&mut results[1]).loss = Some(Loss {
        lost: 2_594,
        of: 254_311,
        places: LossPlaces { unaccounted: 2_594, ..LossPlaces::default() },
        ..Loss::default()
    });
    record(&["a"], "b", results)
}

/// TCP one way, the other way, and both ways at once.
pub(crate) fn tcp_directions() -> Record {
    let way = |name, direction, share| {
        with(stream(name, Transport::Tcp, 131_072, share), |figures| figures.direction = direction)
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
    let timed = |p50| long_tail(p50);
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
    figures(&mut results[0]).loaded_latency = Some(probed(190_000_000, 12, 0.04, 47_400.0));
    figures(&mut results[1]).loaded_latency = Some(probed(340_000, 0, -0.1, -15.0));
    record(&["a"], "b", results.into())
}

/// Three senders to one receiver, unequal.
pub(crate) fn many_sources() -> Record {
    let mut result = stream("tcp", Transport::Tcp, 131_072, 0.999);
    let share = |from: &str, part: f64| Share {
        from: from.to_owned(),
        to: "receiver".to_owned(),
        main: summary(941e6 * part, 0.05),
        loss: None,
    };
    flow(&mut result).shares = vec![share("a", 0.5), share("b", 0.3), share("c", 0.2)];
    record(&["a", "b", "c"], "receiver", vec![result])
}

/// Datagrams lost in every place.
pub(crate) fn lossy() -> Record {
    let lose = |name, size, places: LossPlaces| {
        let mut result = stream(name, Transport::Udp, size, 0.7);
        figures(&mut result).loss =
            Some(Loss { lost: places.sum(), of: 500_000, places, duplicates: 3, reordered: 41 });
        result
    };
    let places = LossPlaces {
        not_sent: 1_200,
        sender_filter: 70,
        sender_queue: 20_000,
        unaccounted: 5_000,
        corrupted: 300,
        receiver_queue: 900,
        receiver_filter: 80,
        reassembly: 60,
        socket_buffer: 31_000,
    };
    record(
        &["a"],
        "b",
        vec![
            lose("udp 64", 64, places),
            lose("udp 1472", 1472, LossPlaces { unaccounted: 5_012, ..LossPlaces::default() }),
            lose("udp 8192", 8192, LossPlaces { socket_buffer: 250_000, unaccounted: 3_000, ..LossPlaces::default() }),
        ],
    )
}

/// A link that does not know its speed.
pub(crate) fn unknown_link() -> Record {
    let mut result = stream("tcp", Transport::Tcp, 131_072, 0.9);
    flow(&mut result).limit = None;
    result.caveats.push(Caveat::new(
        CaveatKind::UnknownLinkSpeed,
        Message::untranslated(
            "The speed of eth0 is unknown (driver veth), so no share of it can be given; name it with --link-speed.",
        ),
    ));
    let mut record = record(&["a"], "b", vec![result]);
    record.hosts.iter_mut().for_each(|host| host.nics[0].speed = None);
    record
}

/// Every figure that can be absurd is.
pub(crate) fn absurd() -> Record {
    let mut probed = loaded_latency();
    let probed = figures(&mut probed.results[0]).loaded_latency.take();
    let broken = with(stream("broken", Transport::Udp, 64, f64::NAN), |figures| {
        figures.flow.cpu.sender.busiest_core = f64::INFINITY;
        figures.flow.cpu.receiver.ns_per_byte = Some(f64::NAN);
        figures.loss = Some(Loss { lost: 9, of: 3, ..Loss::default() });
        figures.loaded_latency = probed.map(|probed| LoadedLatency {
            rpm: RoundTripsPerMinute { idle: f64::INFINITY, loaded: f64::NAN },
            buffer_delay_percent: f64::NAN,
            ..probed
        });
    });
    let broken = with_tester_limit(broken, 0.0);
    let mut empty = transacted(Transport::Tcp, 27_000);
    empty.requests.transactions_per_s = summary(f64::NAN, 0.1);
    empty.requests.latency_ns = Some(Latency {
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
    let empty = of("empty", Detail::Transact(Box::new(empty)));
    record(&["a"], "b", vec![broken, empty])
}

/// What the lab's demonstration leaves: a sweep, TCP both directions and transactions.
pub(crate) fn demonstration() -> Record {
    let results = [udp_sweep(), tcp_directions(), transactions()].map(|record| record.results);
    let mut whole = record(&["a"], "b", results.into_iter().flatten().collect());
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
