//! Values that the command line refuses are refused in JSON too.
//!
//! The attack: a request asks for a made tree of 2^64 files, which only the text form of trees refused, and keeps a core of the
//! agent busy until it is restarted. So for every type, a good value is taken, and one thing of it made bad.

use linerate_model::{
    Arrivals, Assignment, CopyCache, CopyExisting, CopyFrom, CopyInto, CopyLinks, CopyOnError, CopyOptions, CopySync,
    CopyTask, CopyTree, CopyVerify, CopyWay, FileServer, FrameEngine, FrameForm, FrameHeaders, FrameMix, FramePayload,
    FrameStream, FramesTask, IpVersion, Mac, MacRule, NfsMix, NfsTask, RpcCall, RpcTask, Sampling, SessionId,
    SessionKey, SimulatedHosts, StreamTask, Task, Timing, TransactTask, Transport, Vary, VaryField, VaryOrder,
};
use linerate_units::{ByteCount, FrameRate, FrameSize, Nanos};
use serde_json::{Value, json};

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
    assignment(task, Timing::of(Nanos::from_secs(1), Nanos::from_secs(10)))
}

fn copy() -> Value {
    assignment(
        Task::Copy(CopyTask {
            tree: CopyTree::default(),
            way: CopyWay::Linerate,
            sources: vec!["a".into()],
            destinations: vec!["b".into()],
            from: CopyFrom::Memory,
            into: CopyInto::Server(FileServer::AgentNfs("192.0.2.1:2049".parse().expect("an address"))),
            options: CopyOptions {
                lanes: 4,
                verify: CopyVerify::None,
                sync: CopySync::End,
                cache: CopyCache::AsIs,
                on_error: CopyOnError::Stop,
                existing: CopyExisting::Refuse,
                links: CopyLinks::Copy,
            },
            ip: IpVersion::V4,
        }),
        Timing::UntilDone,
    )
}

fn frames() -> Value {
    let stream = FrameStream {
        from: 0,
        to: 1,
        size: FrameSize::with_fcs(1_518).expect("a size"),
        rate: Some(FrameRate::per_second(1_000)),
        count: None,
        after: Nanos::default(),
        time: None,
        headers: FrameHeaders {
            source_mac: Mac([2, 0, 0, 0, 0, 1]),
            destination_mac: Mac([2, 0, 0, 0, 0, 2]),
            vlans: vec![100],
            source: "198.18.0.1".parse().expect("an address"),
            destination: "198.18.0.2".parse().expect("an address"),
            payload: FramePayload::Udp { source_port: 7, destination_port: 7 },
        },
        form: FrameForm {
            raw: None,
            vary: vec![Vary { field: VaryField::SourceIp, count: 100, order: VaryOrder::Counting }],
            mix: Some(FrameMix::imix()),
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
            hosts: vec![hosts],
        }),
        Timing::UntilDone,
    )
}

fn refused(mut good: Value, place: &str, bad: &Value) {
    serde_json::from_value::<Assignment>(good.clone()).expect("it is good before it is changed");
    let at = good.pointer_mut(place).unwrap_or_else(|| panic!("there is no {place}"));
    *at = bad.clone();
    let read = serde_json::from_value::<Assignment>(good);
    assert!(read.is_err(), "{place} may be {bad}");
}

#[test]
fn a_tree_of_2_to_the_64_files_is_refused_in_json_as_in_text() {
    let tree = "/task/tree/made";
    refused(copy(), &format!("{tree}/files"), &json!(u64::MAX));
    let error = "files=18446744073709551615,folders=1,bytes=1".parse::<CopyTree>().expect_err("too many").to_string();
    assert!(error.contains("at most 100000000"), "{error}");
}

#[test]
fn every_hostile_value_of_a_request_is_refused_when_it_is_read() {
    let stream = || measured(Task::Stream(StreamTask::plain(Transport::Tcp, ByteCount::new(16_384))));
    let transact = || measured(Task::Transact(TransactTask::plain(Transport::Udp)));
    let rpc = || measured(Task::Rpc(RpcTask::plain(Transport::Tcp, RpcCall::Write, ByteCount::new(8_192))));
    let mix = NfsMix::named("sfs97-like").expect("built in");
    let nfs =
        || measured(Task::Nfs(NfsTask { arrivals: Arrivals::Even, ..NfsTask::plain(Transport::Tcp, mix.clone()) }));
    let most = json!(u64::MAX);
    let cases: [(&dyn Fn() -> Value, &str, Value); 55] = [
        (&copy, "/task/tree/made/folders", most.clone()),
        (&copy, "/task/tree/made/files", json!(0)),
        (&copy, "/task/tree/made/files", json!(-1)),
        (&copy, "/task/tree/made/bytes", most.clone()),
        (&copy, "/task/options/lanes", json!(0)),
        (&copy, "/task/options/lanes", json!(65)),
        (&copy, "/task/sources", json!(vec!["a"; 1_025])),
        (&copy, "/task/destinations", json!(vec!["a"; 1_025])),
        (&stream, "/task/message_bytes", json!(0)),
        (&stream, "/task/message_bytes", most.clone()),
        (&stream, "/task/offered", json!({"payload_bps": 0})),
        (&stream, "/task/offered", json!({"messages_per_s": 0})),
        (&stream, "/task/net/flows", json!(0)),
        (&stream, "/task/net/flows", json!(1_025)),
        (&stream, "/task/net/ip", json!(5)),
        (&stream, "/task/net/socket/dscp", json!(64)),
        (&stream, "/task/net/socket/send_buffer", json!(0)),
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
        (&transact, "/task/request_bytes", json!(0)),
        (&transact, "/task/response_bytes", most.clone()),
        (&transact, "/task/outstanding", json!(0)),
        (&transact, "/task/rate", json!(0)),
        (&rpc, "/task/unit_bytes", most.clone()),
        (&rpc, "/task/outstanding", json!(0)),
        (&rpc, "/task/rate", json!(0)),
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
        refused(good(), place, &bad);
    }
}

/// What is checked is still written as it was, and read back.
#[test]
fn what_is_good_survives_json() {
    for good in [copy(), frames()] {
        let read: Assignment = serde_json::from_value(good.clone()).expect("good");
        assert_eq!(serde_json::to_value(read).expect("plain data"), good);
    }
}
