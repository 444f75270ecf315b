//! Sessions with a server on loopback.

use linerate_engine::testing::{assignment, run, sessions};
use linerate_engine::{Counted, EngineFailure};
use linerate_iperf3::Iperf3;
use linerate_model::{
    Assignment, EndCounts, Iperf3End, Iperf3Server, Path, Role, RoleCounts, RoleKind, Server, StreamTask, Task, Timing,
    Transport,
};
use linerate_units::{ByteCount, Nanos};
use std::net::Ipv4Addr;

/// Returns a plain stream to the server at `port`.
pub(crate) fn stream(transport: Transport, port: u16) -> StreamTask {
    let bytes = if transport == Transport::Tcp { 128 << 10 } else { 1_400 };
    let server = Iperf3Server { address: Ipv4Addr::LOCALHOST.into(), port, report: false, login: None };
    StreamTask {
        paths: vec![Path { client: "here".into(), server: Server::Foreign("iperf3".into()) }],
        iperf3: Some(Iperf3End::Server(server)),
        ..StreamTask::plain(transport, ByteCount::new(bytes))
    }
}

/// Returns this host's assignment with a warm-up and a window.
pub(crate) fn client(task: StreamTask, warmup_s: u64, measure_ms: u64) -> Assignment {
    let timing = Timing::of(Nanos::from_secs(warmup_s), Nanos::from_millis(measure_ms));
    let role = Role { kind: RoleKind::Client { path: 0 }, listens: Vec::new(), connects: Vec::new() };
    assignment(Task::Stream(task), timing, vec![role])
}

/// Runs a session until it ends.
pub(crate) fn ended(assignment: Assignment) -> Result<Counted, EngineFailure> {
    run(&Iperf3, [assignment]).remove(0)
}

/// Returns the counts of this end and those that the server reported.
pub(crate) fn counts(counted: Counted) -> (EndCounts, EndCounts) {
    let [RoleCounts::Flows(own), RoleCounts::Flows(told)] =
        <[RoleCounts; 2]>::try_from(counted.roles).expect("both ends")
    else {
        panic!("no flows");
    };
    assert_eq!(counted.remains, Vec::<String>::new());
    (*own, *told)
}

/// Makes a session that can be stopped.
pub(crate) fn session(assignment: Assignment) -> linerate_engine::testing::Session {
    sessions([assignment]).remove(0)
}
