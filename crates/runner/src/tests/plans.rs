//! A small plan of each kind of run, between hosts `a` and `b`.

use linerate_method::ladder::LadderRequest;
use linerate_method::simulation::{Network, Server};
use linerate_method::{ladder, with_load};
use linerate_model::{
    CopyCache, CopyExisting, CopyFrom, CopyInto, CopyLinks, CopyOnError, CopyOptions, CopySync, CopyTask, CopyVerify,
    CopyWay, CurvePlan, DevicePlan, DeviceTest, FrameEngine, FrameForm, FrameHeaders, FramePayload, FrameReceiver,
    FrameStream, FramesTask, Goal, HostName, IpVersion, Mac, NfsMix, NfsTask, Path, Plan, Planned, PortPair, Repeats,
    RpcCall, RpcTask, SocketOptions, StreamTask, Task, Timing, TransactTask, Transport, Trial, Warmup,
};
use linerate_units::{BitRate, ByteCount, FrameRate, FrameSize, Nanos, Ratio};

/// Short, so that response times are short too, and their histograms small.
const TIMING: Timing = Timing::of(Nanos::from_millis(1), Nanos::from_millis(10));

/// A server that four workers limit to 200,000 operations a second, and a queue as long as some round trips.
pub(super) fn network() -> Network {
    let server = Server { workers: 4, service: Nanos::new(20_000) };
    Network { server, round_trip: Nanos::new(2_000), queue: Nanos::new(20_000), ..Network::default() }
}

/// The same plan with trials of 2 s, where they are as long as [`TIMING`].
pub(super) fn lengthened(mut plan: Plan) -> Plan {
    let timing = Timing::of(Nanos::from_millis(100), Nanos::from_secs(2));
    match &mut plan.goal {
        Goal::Sweep(sweep) => sweep.cells.iter_mut().for_each(|cell| lengthen(cell, timing)),
        Goal::Ladder(ladder) => ladder.cells.iter_mut().for_each(|cell| lengthen(cell, timing)),
        Goal::Curve(curve) => {
            lengthen(&mut curve.cell, timing);
            (curve.time, curve.response_cap) = (Nanos::from_secs(2), Nanos::from_millis(50));
        }
        Goal::Device(_) => {}
    }
    plan
}

fn lengthen(trial: &mut Trial, timing: Timing) {
    trial.loads.iter_mut().filter(|load| load.timing == TIMING).for_each(|load| load.timing = timing);
}

fn paths() -> Vec<Path> {
    vec![Path::between("a", "b")]
}

pub(super) fn stream(transport: Transport, name: &str) -> Trial {
    let bytes = ByteCount::new(if transport == Transport::Udp { 1_472 } else { 128 << 10 });
    let task = StreamTask { paths: paths(), ..StreamTask::plain(transport, bytes) };
    Trial::new(name, Task::Stream(task), TIMING)
}

/// Two TCP streams, each so many times.
pub(super) fn sweep(times: u32) -> Plan {
    let cells = ["tcp 1", "tcp 2"].map(|name| stream(Transport::Tcp, name));
    Plan::sweep(cells.to_vec(), Repeats::Times(times))
}

/// The same plan with windows that open when the load is steady.
pub(super) fn when_steady(mut plan: Plan) -> Plan {
    let Goal::Sweep(sweep) = &mut plan.goal else { unreachable!("it is a sweep") };
    for load in sweep.cells.iter_mut().flat_map(|cell| &mut cell.loads) {
        if let Timing::Window(window) = &mut load.timing {
            window.warmup = Warmup::STEADY;
        }
    }
    plan
}

/// One UDP stream, twice.
pub(super) fn udp() -> Plan {
    Plan::sweep(vec![stream(Transport::Udp, "udp 1472")], Repeats::Times(2))
}

/// Requests beside a TCP stream, and alone before it, twice.
pub(super) fn loaded_latency() -> Plan {
    let mut cell = stream(Transport::Tcp, "tcp");
    // The probe begins later than the load, and ends before it.
    cell.loads[0].timing = Timing::of(Nanos::from_millis(10), Nanos::from_secs(1));
    let Task::Stream(load) = cell.task() else { unreachable!("it is a stream") };
    let probe = TransactTask::beside(load, Transport::Udp);
    Plan::sweep(vec![with_load(cell, Task::Transact(probe))], Repeats::Times(2))
}

pub(super) fn transact() -> Plan {
    let task = TransactTask { paths: paths(), ..TransactTask::plain(Transport::Udp) };
    Plan::sweep(vec![Trial::new("transact", Task::Transact(task), TIMING)], Repeats::Times(2))
}

/// Calls that write 8 KiB, 16 at a time.
pub(super) fn rpc() -> Plan {
    let plain = RpcTask::plain(Transport::Tcp, RpcCall::Write, ByteCount::new(8 << 10));
    let task = RpcTask { paths: paths(), outstanding: 16, ..plain };
    Plan::sweep(vec![Trial::new("rpc", Task::Rpc(task), TIMING)], Repeats::Times(2))
}

fn nfs_task() -> NfsTask {
    let mix = NfsMix::named("getattr").expect("a mix");
    NfsTask { paths: paths(), outstanding: 16, ..NfsTask::plain(Transport::Tcp, mix) }
}

pub(super) fn nfs() -> Plan {
    Plan::sweep(vec![Trial::new("nfs", Task::Nfs(nfs_task()), TIMING)], Repeats::Times(2))
}

/// Copies to `b`, so many times.
pub(super) fn copy(sources: &[&str], on_error: CopyOnError, times: u32) -> Plan {
    let task = CopyTask {
        tree: "files=10,folders=1,bytes=1M".parse().expect("a tree"),
        each: Vec::new(),
        way: CopyWay::Linerate,
        sources: sources.iter().map(|name| HostName::from(*name)).collect(),
        destinations: vec!["b".into()],
        from: CopyFrom::Files,
        into: CopyInto::Scratch,
        options: CopyOptions {
            lanes: 1,
            verify: CopyVerify::Received,
            sync: CopySync::None,
            cache: CopyCache::AsIs,
            on_error,
            existing: CopyExisting::Refuse,
            links: CopyLinks::Copy,
        },
        ip: IpVersion::V4,
    };
    Plan::sweep(vec![Trial::new("copy", Task::Copy(task), Timing::UntilDone)], Repeats::Times(times))
}

/// Response time against load.
pub(super) fn curve() -> Plan {
    Plan::of(Goal::Curve(CurvePlan {
        cell: Trial::new("nfs", Task::Nfs(nfs_task()), TIMING),
        repeats: Repeats::Times(1),
        time: Nanos::from_millis(10),
        response_cap: Nanos::from_millis(1),
        steps: 4,
        shortfall: Ratio::new(1, 100),
        width: Ratio::new(5, 100),
    }))
}

fn headers() -> FrameHeaders {
    FrameHeaders {
        source_mac: Mac([2, 0, 0, 0, 0, 1]),
        destination_mac: Mac([2, 0, 0, 0, 0, 2]),
        vlans: Vec::new(),
        priority: 0,
        dscp: 0,
        source: "198.18.0.1".parse().expect("an address"),
        destination: "198.18.0.2".parse().expect("an address"),
        payload: FramePayload::Udp { source_port: 7, destination_port: 7 },
    }
}

/// Frames of 1518 bytes at a rate, from `a` to `b`.
fn frames_at(rate: u64) -> Trial {
    let stream = FrameStream {
        from: 0,
        to: 1,
        copies_to: Vec::new(),
        size: FrameSize::with_fcs(1_518).expect("a size"),
        rate: Some(FrameRate::per_second(rate)),
        count: None,
        after: Nanos::default(),
        time: None,
        headers: headers(),
        form: FrameForm::default(),
    };
    let task = FramesTask {
        home: "a".into(),
        ports: vec!["a:eth0".into(), "b:eth0".into()],
        streams: vec![stream],
        time: Nanos::from_millis(100),
        settle: Nanos::from_millis(10),
        engine: FrameEngine::Auto,
        receiver: FrameReceiver::Port,
        line: None,
        hosts: Vec::new(),
    };
    Trial::new("frames 1518", Task::Frames(task), Timing::UntilDone)
}

pub(super) fn frames() -> Plan {
    Plan::sweep(vec![frames_at(50_000)], Repeats::Times(2))
}

/// A test of a device between ports of two hosts.
pub(super) fn device(test: DeviceTest) -> Plan {
    Plan::of(Goal::Device(device_plan(test)))
}

pub(super) fn device_plan(test: DeviceTest) -> DevicePlan {
    DevicePlan {
        test,
        host: "a".into(),
        ports: vec!["a:p0".into(), "b:p0".into()],
        pattern: linerate_model::PortPattern::Pairs,
        directions: vec![PortPair { from: 0, to: 1, copies_to: Vec::new(), headers: headers() }],
        sizes: vec![FrameSize::with_fcs(64).expect("a size")],
        line: Some(BitRate::per_second(1_000_000_000)),
        search_time: Nanos::from_millis(100),
        final_time: Nanos::from_millis(500),
        settle: Nanos::default(),
        loss: Ratio::new(0, 100),
        width: Ratio::new(5, 100),
        engine: FrameEngine::Auto,
    }
}

/// Every layer of a path, each trial so many times.
pub(super) fn ladder(times: u32) -> Plan {
    ladder::plan(&LadderRequest {
        path: Path::between("a", "b"),
        ip: IpVersion::V4,
        mtu: 1_500,
        flows: 1,
        socket: SocketOptions::default(),
        calls_over: Transport::Tcp,
        timing: TIMING,
        repeats: Repeats::Times(times),
        // What a line of 1 Gbit/s carries.
        frames: Planned::Trial(Box::new(frames_at(81_274))),
        hops: false,
    })
}
