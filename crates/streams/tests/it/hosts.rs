//! A client and a server of streams or transactions in one process, over loopback.

use linerate_engine::testing::{Reached, Session, sessions};
use linerate_engine::{Conductor as _, Counted, EngineFailure, FailedBy, Stopped};
use linerate_model::{
    Assignment, EndCounts, Endpoints, IpVersion, LinkId, Listen, Net, Path, Ready, Role, RoleCounts, RoleKind,
    SessionId, SessionKey, StreamTask, Task, Timing, Transport,
};
use linerate_streams::Streams;
use linerate_units::{ByteCount, Nanos};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::thread::{self, ScopedJoinHandle};
use std::time::Duration;

pub(crate) const MEASURE: u64 = 300_000_000;
pub(crate) const LINK: LinkId = LinkId(0);
/// Longer than anything here takes.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);

pub(crate) fn stream(transport: Transport) -> StreamTask {
    StreamTask::plain(transport, ByteCount::new(if transport == Transport::Tcp { 128 << 10 } else { 1_448 }))
}

pub(crate) fn flows(transport: Transport, flows: u16) -> Net {
    Net { flows, ..Net::plain(transport) }
}

pub(crate) fn over_ip(transport: Transport, ip: IpVersion) -> Net {
    Net { ip, ..Net::plain(transport) }
}

pub(crate) fn client() -> Role {
    Role { kind: RoleKind::Client { path: 0 }, listens: Vec::new(), connects: vec![LINK] }
}

pub(crate) fn server(path: u16, address: IpAddr) -> Role {
    let listen = Listen { link: LinkId(path), address, folder: None };
    Role { kind: RoleKind::Server { path }, listens: vec![listen], connects: Vec::new() }
}

/// One host's part of `task` over as many paths as it says.
pub(crate) fn part(task: &Task, roles: Vec<Role>, paths: usize) -> Assignment {
    let mut task = task.clone();
    *task.paths_mut().expect("it has paths") = vec![Path::between("client", "server"); paths];
    Assignment {
        id: SessionId("test".into()),
        key: SessionKey([5; 16]),
        task,
        timing: Timing::of(Nanos::from_millis(100), Nanos::new(MEASURE)),
        roles,
        password: None,
    }
}

/// The client's part and the server's.
pub(crate) fn parts(task: &Task) -> (Assignment, Assignment) {
    let address = match task.net().expect("it has sockets").ip {
        IpVersion::V4 => IpAddr::from(Ipv4Addr::LOCALHOST),
        IpVersion::V6 => IpAddr::from(Ipv6Addr::LOCALHOST),
    };
    (part(task, vec![client()], 1), part(task, vec![server(0, address)], 1))
}

/// The sessions of a client and of a server.
pub(crate) fn pair(client: Assignment, server: Assignment) -> (Session, Session) {
    let mut both = sessions([client, server]);
    let server = both.pop().expect("two");
    (both.pop().expect("two"), server)
}

pub(crate) type Ended = Result<Counted, EngineFailure>;

pub(crate) fn counts(ended: Ended) -> EndCounts {
    let mut counted = ended.expect("it ends with counts");
    assert!(counted.remains.is_empty() && counted.roles.len() == 1);
    match counted.roles.remove(0) {
        RoleCounts::Flows(counts) => *counts,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn run(task: &Task) -> (EndCounts, EndCounts) {
    let (client, server) = parts(task);
    let mut ended = linerate_engine::testing::run(&Streams, [client, server]).into_iter();
    (counts(ended.next().expect("the client's")), counts(ended.next().expect("the server's")))
}

/// Runs `session` beside the test.
pub(crate) fn start<'s>(scope: &'s thread::Scope<'s, '_>, session: &'s Session) -> ScopedJoinHandle<'s, Ended> {
    scope.spawn(|| session.run(&Streams))
}

/// Waits until `session` is at work, and returns its window.
pub(crate) fn window(session: &Session) -> (u64, u64) {
    assert!(session.wait_for(Reached::Running, TIMEOUT), "it is not at work");
    session.window().expect("streams have a window")
}

pub(crate) fn failure(ended: Ended) -> String {
    match ended.expect_err("it fails").error {
        FailedBy::Task(error) => error.to_string(),
        FailedBy::Stop(stopped) => panic!("{stopped}"),
    }
}

pub(crate) fn was_stopped(ended: Ended) -> bool {
    matches!(ended, Err(EngineFailure { error: FailedBy::Stop(Stopped), .. }))
}

/// Where a server is that the test plays itself, beside the client of `session`.
pub(crate) fn serve_at(server: &Session, address: SocketAddr) {
    server.listening([(LINK, address)].into()).expect("goes on");
}

/// How a client fails whose server is said to be at `address`.
pub(crate) fn failed_at(client: Assignment, address: SocketAddr) -> String {
    let (client, server) = pair(client.clone(), client);
    thread::scope(|scope| {
        let connecting = start(scope, &client);
        // A client that is refused at once stops both sessions, maybe before this call returns.
        let _ = server.listening([(LINK, address)].into());
        failure(connecting.join().expect("no panic"))
    })
}

/// Where the server of the other session listens; the test plays the client.
pub(crate) fn server_of(client: &Session) -> SocketAddr {
    client.listening(Endpoints::new()).expect("goes on")[&LINK]
}

/// Lets the server of the other session start: the test plays the client.
pub(crate) fn start_server(client: &Session) {
    client.ready(Ready::default()).expect("goes on");
}

/// A flow's greeting with a key of `key`s, as it is on the wire.
pub(crate) fn greeting(key: u8) -> Vec<u8> {
    [&b"lnrt-hi1"[..], &[key; 16], &[0; 16]].concat()
}
