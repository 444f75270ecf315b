//! Values that the command line refuses are refused in JSON too.
//!
//! The attack: a request asks for a made tree of 2^64 files, which only the text form of trees refused, and keeps a core of the
//! agent busy until it is restarted. So for every type, a good value is taken, and one thing of it made bad.

use linerate_model::{
    Arrivals, Assignment, CopyFrom, CopyInto, CopyOptions, CopyTask, CopyTree, CopyWay, CurvePlan, DevicePlan,
    DeviceTest, FileServer, FrameEngine, FrameForm, FrameHeaders, FrameMix, FramePayload, FrameReceiver, FrameStream,
    FramesTask, Goal, IpVersion, Iperf3End, Iperf3Login, Iperf3Server, LadderPlan, LatencyBuckets, Mac, MacRule,
    NfsMix, NfsTask, Path, Plan, Planned, PortPair, Repeats, RpcCall, RpcTask, Sampling, SearchGoal, Series, SessionId,
    SessionKey, SimulatedHosts, StreamTask, SweepPlan, Task, Timing, TransactTask, Transport, Trial, Vary, VaryField,
    VaryOrder,
};
use linerate_units::{BitRate, ByteCount, FrameRate, FrameSize, Nanos, Ratio};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

const WINDOW: Timing = Timing::of(Nanos::from_secs(1), Nanos::from_secs(10));

fn assignment(task: Task, timing: Timing) -> Value {
    let assignment = Assignment {
        id: SessionId("s".to_owned()),
        key: SessionKey([7; 16]),
        task,
        timing,
        roles: Vec::new(),
        password: None,
        sampling: Sampling::default(),
    };
    serde_json::to_value(assignment).expect("plain data becomes JSON")
}

fn measured(task: Task) -> Value {
    assignment(task, WINDOW)
}

fn copy() -> Value {
    assignment(
        Task::Copy(CopyTask {
            tree: CopyTree::default(),
            each: vec![CopyTree::default()],
            way: CopyWay::Linerate,
            sources: vec!["a".into()],
            destinations: vec!["b".into()],
            from: CopyFrom::Memory,
            into: CopyInto::Server(FileServer::AgentNfs("192.0.2.1:2049".parse().expect("an address"))),
            options: CopyOptions::PLAIN,
            ip: IpVersion::V4,
        }),
        Timing::UntilDone,
    )
}

fn headers() -> FrameHeaders {
    FrameHeaders {
        source_mac: Mac([2, 0, 0, 0, 0, 1]),
        destination_mac: Mac([2, 0, 0, 0, 0, 2]),
        vlans: vec![100],
        priority: 0,
        dscp: 0,
        source: "198.18.0.1".parse().expect("an address"),
        destination: "198.18.0.2".parse().expect("an address"),
        payload: FramePayload::Udp { source_port: 7, destination_port: 7 },
    }
}

fn frames() -> Value {
    let stream = FrameStream {
        from: 0,
        to: 1,
        copies_to: Vec::new(),
        size: FrameSize::with_fcs(1_518).expect("a size"),
        rate: Some(FrameRate::per_second(1_000)),
        count: None,
        after: Nanos::default(),
        time: Some(Nanos::from_secs(1)),
        headers: headers(),
        form: FrameForm {
            raw: None,
            vary: vec![Vary { field: VaryField::SourceIp, count: 100, order: VaryOrder::Counting }],
            mix: Some(FrameMix::imix()),
            burst: 16,
            bad_fcs: false,
        },
    };
    let hosts =
        SimulatedHosts { port: 1, first: "198.18.0.2".parse().expect("an address"), count: 10, mac: MacRule::Port };
    assignment(
        Task::Frames(FramesTask {
            home: "a".into(),
            ports: vec!["p0".into(), "p1".into()],
            streams: vec![stream],
            time: Nanos::from_secs(1),
            settle: Nanos::from_secs(2),
            engine: FrameEngine::Auto,
            receiver: FrameReceiver::Port,
            line: None,
            hosts: vec![hosts],
        }),
        Timing::UntilDone,
    )
}

fn refused<T: DeserializeOwned>(mut good: Value, place: &str, bad: &Value) {
    serde_json::from_value::<T>(good.clone()).expect("it is good before it is changed");
    let at = good.pointer_mut(place).unwrap_or_else(|| panic!("there is no {place}"));
    *at = bad.clone();
    assert!(serde_json::from_value::<T>(good).is_err(), "{place} may be {bad}");
}

#[test]
fn a_tree_of_2_to_the_64_files_is_refused_in_json_as_in_text() {
    let tree = "/task/tree/made";
    refused::<Assignment>(copy(), &format!("{tree}/files"), &json!(u64::MAX));
    let error = "files=18446744073709551615,folders=1,bytes=1".parse::<CopyTree>().expect_err("too many").to_string();
    assert!(error.contains("at most 100000000"), "{error}");
}

#[test]
fn every_hostile_value_of_a_request_is_refused_when_it_is_read() {
    let stream = || {
        let plain = StreamTask::plain(Transport::Tcp, ByteCount::new(16_384));
        measured(Task::Stream(StreamTask { volume: Some(ByteCount::new(1)), ..plain }))
    };
    let transact = || measured(Task::Transact(TransactTask::plain(Transport::Udp)));
    let rpc = || measured(Task::Rpc(RpcTask::plain(Transport::Tcp, RpcCall::Write, ByteCount::new(8_192))));
    let mix = NfsMix::named("sfs97-like").expect("built in");
    let nfs =
        || measured(Task::Nfs(NfsTask { arrivals: Arrivals::Even, ..NfsTask::plain(Transport::Tcp, mix.clone()) }));
    let most = json!(u64::MAX);
    let login = || {
        let login = Iperf3Login { user: "ann".to_owned(), public_key: "PEM".to_owned() };
        let server = Iperf3Server { address: [192, 0, 2, 1].into(), port: 5_201, report: false, login: Some(login) };
        let plain = StreamTask::plain(Transport::Tcp, ByteCount::new(16_384));
        measured(Task::Stream(StreamTask { iperf3: Some(Iperf3End::Server(server)), ..plain }))
    };
    let cases: [(&dyn Fn() -> Value, &str, Value); 78] = [
        (&copy, "/task/tree/made/folders", most.clone()),
        (&copy, "/task/tree/made/files", json!(0)),
        (&copy, "/task/tree/made/files", json!(-1)),
        (&copy, "/task/tree/made/bytes", most.clone()),
        (&copy, "/task/options/lanes", json!(0)),
        (&copy, "/task/options/lanes", json!(65)),
        (&copy, "/task/each", json!([{ "folder": "/a" }, { "folder": "/b" }])),
        (&copy, "/task/sources", json!(vec!["a"; 1_025])),
        (&copy, "/task/destinations", json!(vec!["a"; 1_025])),
        (&stream, "/task/message_bytes", json!(0)),
        (&stream, "/task/message_bytes", most.clone()),
        (&stream, "/task/volume", json!(0)),
        (&stream, "/task/volume", most.clone()),
        (&stream, "/task/offered", json!({"payload_bps": 0})),
        (&stream, "/task/offered", json!({"messages_per_s": 0})),
        (&stream, "/task/offered", json!({"payload_bps": u64::MAX})),
        (&stream, "/task/offered", json!({"messages_per_s": u64::MAX})),
        (&stream, "/task/net/flows", json!(0)),
        (&stream, "/task/net/flows", json!(4_097)),
        (&transact, "/task/net/flows", json!(1_025)),
        (&rpc, "/task/net/flows", json!(1_025)),
        (&nfs, "/task/net/flows", json!(1_025)),
        (&stream, "/task/net/ip", json!(5)),
        (&stream, "/task/net/socket/dscp", json!(64)),
        (&stream, "/task/net/socket/send_buffer", json!(0)),
        (&stream, "/task/net/socket/bind_device", json!("eth0\nlinerate: x")),
        (&stream, "/task/net/socket/bind_device", json!("")),
        (&stream, "/task/net/socket/bind_device", json!("x".repeat(16))),
        (&stream, "/task/net/socket/receive_buffer", most.clone()),
        (&stream, "/task/net/socket/sender_cpus", json!(vec![0; 4_097])),
        (&stream, "/timing/window/measure", most.clone()),
        (&stream, "/timing/window/warmup", most.clone()),
        (&stream, "/timing/window/warmup", json!({"at_most": u64::MAX})),
        (&stream, "/sampling/period", json!(0)),
        (&stream, "/sampling/period", most.clone()),
        (&stream, "/sampling/most_points", json!(0)),
        (&stream, "/sampling/most_points", json!(u32::MAX)),
        (&stream, "/id", json!("../host")),
        (&stream, "/id", json!("")),
        (&stream, "/key", json!([1, 2, 3])),
        (&login, "/task/iperf3/server/login/user", json!("")),
        (&login, "/task/iperf3/server/login/user", json!("a".repeat(257))),
        (&login, "/task/iperf3/server/login/public_key", json!("")),
        (&login, "/task/iperf3/server/login/public_key", json!("a".repeat(4_097))),
        (&transact, "/task/request_bytes", json!(0)),
        (&transact, "/task/response_bytes", most.clone()),
        (&transact, "/task/outstanding", json!(0)),
        (&transact, "/task/rate", json!(0)),
        (&transact, "/task/rate", most.clone()),
        (&rpc, "/task/unit_bytes", most.clone()),
        (&rpc, "/task/outstanding", json!(0)),
        (&rpc, "/task/rate", json!(0)),
        (&rpc, "/task/rate", most.clone()),
        (&nfs, "/task/rate", most.clone()),
        (&nfs, "/task/mix/percent/read", json!(1e300)),
        (&nfs, "/task/mix/percent", json!({})),
        (&nfs, "/task/files/files", json!(u32::MAX)),
        (&nfs, "/task/files/file_bytes", most.clone()),
        (&nfs, "/task/files/directories", json!(u32::MAX)),
        (&nfs, "/task/transfer_bytes", json!(0)),
        (&nfs, "/task/transfer_bytes", most.clone()),
        (&nfs, "/task/outstanding", json!(u16::MAX)),
        (&frames, "/task/streams/0/from", json!(2)),
        (&frames, "/task/streams/0/rate", json!(0)),
        (&frames, "/task/streams/0/rate", most.clone()),
        (&frames, "/task/streams/0/after", most.clone()),
        (&frames, "/task/streams/0/time", most.clone()),
        (&frames, "/task/time", most.clone()),
        (&frames, "/task/settle", most.clone()),
        (&frames, "/task/streams/0/size", json!(u32::MAX)),
        (&frames, "/task/streams/0/headers/vlans", json!([4_095])),
        (&frames, "/task/streams/0/headers/vlans", json!(vec![1; 9])),
        (&frames, "/task/streams/0/headers/source", json!("2001:db8::1")),
        (&frames, "/task/streams/0/form/vary/0/count", json!(0)),
        (&frames, "/task/streams/0/form/mix/0/weight", json!(u32::MAX)),
        (&frames, "/task/streams/0/form/mix", json!([])),
        (&frames, "/task/hosts/0/count", json!(u32::MAX)),
        (&frames, "/task/hosts/0/port", json!(9)),
    ];
    for (good, place, bad) in cases {
        refused::<Assignment>(good(), place, &bad);
    }
}

/// The attack: a record, or a store, from elsewhere whose plan is resumed or shown.
#[test]
fn every_hostile_value_of_a_plan_is_refused_when_it_is_read() {
    let cell = |name: &str| {
        Trial::new(name, Task::Nfs(NfsTask::plain(Transport::Tcp, NfsMix::named("null").expect("built in"))), WINDOW)
    };
    let until = Repeats::Until { confidence_percent: 95.0, within: 0.025, at_least: 3, at_most: 30 };
    let written = |goal: Goal| serde_json::to_value(Plan::of(goal)).expect("plain data becomes JSON");
    let sweep = || written(Goal::Sweep(SweepPlan { cells: vec![cell("one"), cell("two")], repeats: until }));
    let times = || written(Goal::Sweep(SweepPlan { cells: vec![cell("one")], repeats: Repeats::Times(3) }));
    let curve = || {
        written(Goal::Curve(CurvePlan {
            cell: cell("one"),
            repeats: Repeats::Times(1),
            time: Nanos::from_secs(1),
            response_cap: Nanos::from_millis(20),
            steps: 10,
            shortfall: Ratio::new(1, 100),
            width: Ratio::new(1, 50),
        }))
    };
    let ladder = || {
        written(Goal::Ladder(LadderPlan {
            cells: vec![cell("one"), cell("two")],
            repeats: Repeats::Times(1),
            path: Path::between("a", "b"),
            ip: IpVersion::V4,
            mtu: 1_500,
            calls_over: Transport::Udp,
            frames: Planned::Trial(Box::new(cell("frames"))),
            echoes: Some(cell("echoes")),
        }))
    };
    let cases: [(&dyn Fn() -> Value, &str, Value); 20] = [
        (&sweep, "/goal/cells/1/name", json!("one")),
        (&sweep, "/goal/cells/0/loads", json!([])),
        (&sweep, "/goal/repeats/until/confidence_percent", json!(100.0)),
        (&sweep, "/goal/repeats/until/confidence_percent", json!(-1.0)),
        (&sweep, "/goal/repeats/until/within", json!(0.0)),
        (&sweep, "/goal/repeats/until/at_least", json!(u32::MAX)),
        (&sweep, "/goal/repeats/until/at_most", json!(0)),
        (&sweep, "/goal/repeats/until/at_most", json!(u32::MAX)),
        (&times, "/goal/repeats/times", json!(0)),
        (&times, "/goal/repeats/times", json!(u32::MAX)),
        (&curve, "/goal/cell/loads", json!([])),
        (&curve, "/goal/time", json!(u64::MAX)),
        (&curve, "/goal/steps", json!(0)),
        (&curve, "/goal/steps", json!(u32::MAX)),
        (&ladder, "/goal/cells/1/name", json!("one")),
        (&ladder, "/goal/mtu", json!(0)),
        (&ladder, "/goal/mtu", json!(u32::MAX)),
        (&ladder, "/goal/frames/trial/loads", json!([])),
        (&ladder, "/goal/echoes/loads", json!([])),
        (&ladder, "/goal/repeats/times", json!(0)),
    ];
    for (good, place, bad) in cases {
        refused::<Plan>(good(), place, &bad);
    }
}

#[test]
fn every_hostile_value_of_a_device_test_is_refused_when_it_is_read() {
    let rate = FrameRate::per_second(1_000);
    let test = |test: DeviceTest| {
        let pair = PortPair { from: 0, to: 1, copies_to: Vec::new(), headers: headers() };
        let plan = DevicePlan {
            test,
            host: "a".into(),
            ports: vec!["p0".into(), "p1".into()],
            pattern: linerate_model::PortPattern::Pairs,
            directions: vec![pair],
            sizes: vec![FrameSize::with_fcs(64).expect("a size")],
            line: Some(BitRate::per_second(1_000_000_000)),
            search_time: Nanos::from_millis(500),
            final_time: Nanos::from_secs(2),
            settle: Nanos::from_millis(100),
            loss: Ratio::new(0, 1),
            width: Ratio::new(1, 500),
            engine: FrameEngine::Auto,
        };
        serde_json::to_value(plan).expect("plain data becomes JSON")
    };
    let addresses = DeviceTest::Addresses { most: 9, learn_rate: rate, ageing: Nanos::default() };
    let cases = [
        (DeviceTest::Throughput, "/ports", json!([])),
        (DeviceTest::Throughput, "/directions", json!([])),
        (DeviceTest::Throughput, "/directions/0/from", json!(2)),
        (DeviceTest::Throughput, "/directions/0/to", json!(u16::MAX)),
        (DeviceTest::Throughput, "/sizes", json!([])),
        (DeviceTest::Throughput, "/sizes", json!(vec![64; 1_025])),
        (DeviceTest::Throughput, "/sizes/0", json!(u32::MAX)),
        (DeviceTest::Throughput, "/line", json!(u64::MAX)),
        (DeviceTest::Throughput, "/search_time", json!(u64::MAX)),
        (DeviceTest::Throughput, "/final_time", json!(u64::MAX)),
        (DeviceTest::Throughput, "/settle", json!(u64::MAX)),
        (DeviceTest::Latency { rate: Some(rate) }, "/test/rate", json!(u64::MAX)),
        (DeviceTest::Loss { step_percent: 10 }, "/test/step_percent", json!(0)),
        (DeviceTest::Goals { goals: vec![SearchGoal::Ndr] }, "/test/goals", json!(vec![SearchGoal::Ndr; 99])),
        (DeviceTest::Burst { repeats: 1 }, "/test/repeats", json!(u32::MAX)),
        (DeviceTest::Recovery { repeats: 1 }, "/test/repeats", json!(0)),
        (DeviceTest::All { step_percent: 10, repeats: 1 }, "/test/step_percent", json!(u32::MAX)),
        (DeviceTest::All { step_percent: 10, repeats: 1 }, "/test/repeats", json!(u32::MAX)),
        (addresses.clone(), "/test/most", json!(0)),
        (addresses.clone(), "/test/learn_rate", json!(u64::MAX)),
        (addresses, "/test/ageing", json!(u64::MAX)),
        (DeviceTest::Hosts { most: 9, learn_rate: rate, rate }, "/test/most", json!(u32::MAX)),
        (DeviceTest::Hosts { most: 9, learn_rate: rate, rate }, "/test/rate", json!(u64::MAX)),
    ];
    for (good, place, bad) in cases {
        refused::<DevicePlan>(test(good), place, &bad);
    }
}

/// The attack: an agent, or a record, whose series has tracks of unequal length, or times that run backwards.
#[test]
fn every_hostile_value_of_a_series_is_refused_when_it_is_read() {
    let good = json!({
        "opened_ns": 5,
        "window": 200_000,
        "from_us": -100,
        "at_us": [0, 100],
        "tracks": [{"quantity": "sent_bytes", "values": [1, 2]}],
        "latency": [[[4, 7]], [[4, 7], [5, 1]]],
    });
    for (place, bad) in [
        ("/at_us", json!([0])),
        ("/at_us", json!([100, 0])),
        ("/at_us", json!([-200, 0])),
        ("/at_us", json!([0, i64::MAX])),
        ("/from_us", json!(i64::MIN)),
        ("/tracks/0/values", json!([1, 2, 3])),
        ("/latency", json!([[[4, 7]]])),
        ("/latency/1", json!([[5, 1], [4, 7]])),
        ("/latency/1", json!([[4, 1], [4, 7]])),
        ("/latency/0", json!([[148, 1]])),
        ("/latency/0", json!([[255, 1]])),
    ] {
        refused::<Series>(good.clone(), place, &bad);
    }
    let full: LatencyBuckets = serde_json::from_value(json!([[4, u64::MAX], [5, u64::MAX]])).expect("two buckets");
    let mut both = full.clone();
    both.merge(&full);
    assert_eq!((both.count(), both.quantile(0.5)), (u64::MAX, full.quantile(0.5)), "counts do not wrap");
}

/// What is checked is still written as it was, and read back.
#[test]
fn what_is_good_survives_json() {
    for good in [copy(), frames()] {
        let read: Assignment = serde_json::from_value(good.clone()).expect("good");
        assert_eq!(serde_json::to_value(read).expect("plain data"), good);
    }
}
