//! A small plan of each goal, between hosts `a` and `b`.

use linerate_model::{
    CopyCache, CopyExisting, CopyFrom, CopyInto, CopyLinks, CopyOnError, CopyOptions, CopySync, CopyTask, CopyVerify,
    CopyWay, CurvePlan, DevicePlan, DeviceTest, FrameEngine, FrameHeaders, FramePayload, Goal, HostName, IpVersion,
    Mac, NfsMix, NfsTask, Path, Plan, PortPair, Repeats, StreamTask, Task, Timing, Transport, Trial,
};
use linerate_units::{BitRate, ByteCount, FrameSize, Nanos, Ratio};

const TIMING: Timing = Timing::of(Nanos::from_millis(10), Nanos::from_millis(100));

pub(super) fn stream(name: &str) -> Trial {
    let paths = vec![Path::between("a", "b")];
    let task = StreamTask { paths, ..StreamTask::plain(Transport::Tcp, ByteCount::new(128 << 10)) };
    Trial::new(name, Task::Stream(task), TIMING)
}

/// Two streams, each so many times.
pub(super) fn sweep(times: u32) -> Plan {
    Plan::sweep(vec![stream("tcp 1"), stream("tcp 2")], Repeats::Times(times))
}

/// Copies to `b`, so many times.
pub(super) fn copy(sources: &[&str], on_error: CopyOnError, times: u32) -> Plan {
    let task = CopyTask {
        tree: "files=10,folders=1,bytes=1M".parse().expect("a tree"),
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

pub(super) fn curve() -> Plan {
    let paths = vec![Path::between("a", "b")];
    let task = NfsTask { paths, ..NfsTask::plain(Transport::Tcp, NfsMix::named("read").expect("a mix")) };
    Plan::of(Goal::Curve(CurvePlan {
        cell: Trial::new("nfs", Task::Nfs(task), TIMING),
        repeats: Repeats::Times(1),
        time: Nanos::from_millis(100),
        response_cap: Nanos::from_millis(50),
        steps: 4,
        shortfall: Ratio::new(1, 100),
        width: Ratio::new(5, 100),
    }))
}

/// The throughput of a device between ports of two hosts.
pub(super) fn device() -> Plan {
    let headers = FrameHeaders {
        source_mac: Mac([2, 0, 0, 0, 0, 1]),
        destination_mac: Mac([2, 0, 0, 0, 0, 2]),
        vlans: Vec::new(),
        source: "198.18.0.1".parse().expect("an address"),
        destination: "198.18.0.2".parse().expect("an address"),
        payload: FramePayload::Udp { source_port: 7, destination_port: 7 },
    };
    Plan::of(Goal::Device(DevicePlan {
        test: DeviceTest::Throughput,
        host: "a".into(),
        ports: vec!["a:p0".into(), "b:p0".into()],
        directions: vec![PortPair { from: 0, to: 1, headers }],
        sizes: vec![FrameSize::with_fcs(64).expect("a size")],
        line: Some(BitRate::per_second(1_000_000_000)),
        search_time: Nanos::from_millis(100),
        final_time: Nanos::from_millis(500),
        settle: Nanos::default(),
        loss: Ratio::new(0, 100),
        width: Ratio::new(5, 100),
        engine: FrameEngine::Auto,
    }))
}
