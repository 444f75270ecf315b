//! A client and a server of streams or transactions in one process, over loopback.

pub(crate) use linerate_engine::testing::one_path::{
    Ended, LINK, TIMEOUT, client_role as client, counts, failure, server_role as server, was_stopped,
};

use linerate_engine::Conductor as _;
use linerate_engine::greeting;
use linerate_engine::proof::{Salt, link_key};
use linerate_engine::testing::{self, Reached, Session, one_path};
use linerate_model::{
    Assignment, EndCounts, Endpoints, IpVersion, LinkId, Meter, Net, Ready, Role, SessionKey, StreamTask, Task, Timing,
    Transport,
};
use linerate_streams::Streams;
use linerate_units::{ByteCount, Nanos};
use std::net::SocketAddr;
use std::thread::{self, ScopedJoinHandle};

/// Window of a trial, in nanoseconds. Longer than a busy machine usually stalls a thread.
pub(crate) const MEASURE: u64 = 600_000_000;

pub(crate) fn stream(transport: Transport) -> StreamTask {
    StreamTask::plain(transport, ByteCount::new(if transport == Transport::Tcp { 128 << 10 } else { 1_448 }))
}

pub(crate) fn flows(transport: Transport, flows: u16) -> Net {
    Net { flows, ..Net::plain(transport) }
}

pub(crate) fn over_ip(transport: Transport, ip: IpVersion) -> Net {
    Net { ip, ..Net::plain(transport) }
}

/// Returns one host's part of `task` over `paths` paths.
pub(crate) fn part(task: &Task, roles: Vec<Role>, paths: usize) -> Assignment {
    one_path::part(task, Nanos::new(MEASURE), roles, paths)
}

/// Returns the client's part and the server's part.
pub(crate) fn parts(task: &Task) -> (Assignment, Assignment) {
    one_path::parts(task, Nanos::new(MEASURE)).into()
}

/// Returns `part` with a window that is long enough for a test to act in it.
pub(crate) fn long(part: Assignment) -> Assignment {
    Assignment { timing: Timing::of(Nanos::from_millis(100), Nanos::from_secs(30)), ..part }
}

/// Makes the sessions of a client and a server.
pub(crate) fn pair(client: Assignment, server: Assignment) -> (Session, Session) {
    one_path::pair([client, server]).into()
}

pub(crate) fn run(task: &Task) -> (EndCounts, EndCounts) {
    let [client, server] = run_metered(task);
    (client.0, server.0)
}

/// Runs `task`. Returns the counts of client and server in their windows, and their meters since the load began.
pub(crate) fn run_metered(task: &Task) -> [(EndCounts, Meter); 2] {
    let (client, server) = parts(task);
    run_parts(client, server)
}

/// Runs the parts of a trial. Returns the same as [`run_metered`].
pub(crate) fn run_parts(client: Assignment, server: Assignment) -> [(EndCounts, Meter); 2] {
    let (client, server) = pair(client, server);
    testing::scope(|scope| {
        let threads = [&client, &server].map(|session| (session, start(scope, session)));
        threads.map(|(session, thread)| {
            let counts = counts(thread.join().expect("no panic"));
            (counts, session.meter().expect("it was at work"))
        })
    })
}

/// Runs `session` on another thread.
pub(crate) fn start<'s>(scope: &'s thread::Scope<'s, '_>, session: &'s Session) -> ScopedJoinHandle<'s, Ended> {
    scope.spawn(|| session.run(&Streams))
}

/// Waits until `session` is at work, and returns its window.
pub(crate) fn window(session: &Session) -> (u64, u64) {
    assert!(session.wait_for(Reached::Running, TIMEOUT), "it is not at work");
    let timeline = session.window().expect("streams have a window");
    (timeline.open(), timeline.close())
}

/// Announces the address of a server that the test itself plays.
pub(crate) fn serve_at(server: &Session, address: SocketAddr) {
    server.listening([(LINK, address)].into()).expect("goes on");
}

/// Runs a client with a server announced at `address`. Returns the client's error.
pub(crate) fn failed_at(client: Assignment, address: SocketAddr) -> String {
    let client_links: Vec<_> = client.connects().collect();
    let (client, server) = pair(client.clone(), client);
    testing::scope(|scope| {
        let connecting = start(scope, &client);
        // A client that is refused at once stops both sessions, maybe before this call returns.
        let _ = server.listening(client_links.into_iter().map(|link| (link, address)).collect());
        failure(connecting.join().expect("no panic"))
    })
}

/// Returns the address of the other session's server. The test plays the client.
pub(crate) fn server_of(client: &Session) -> SocketAddr {
    client.listening(Endpoints::new()).expect("goes on")[&LINK]
}

/// Starts the server of the other session. The test plays the client.
pub(crate) fn start_server(client: &Session) {
    client.ready(Ready::default()).expect("goes on");
}

/// First bytes of a greeting and of an answer.
const HELLO: [u8; 8] = *b"lnrt-hi2";
const ANSWER: [u8; 8] = *b"lnrt-ok2";
const SALT: Salt = [1; 16];

/// Returns the greeting of the first flow, as on the wire. Every byte of the session's key is `key`.
pub(crate) fn greeting(key: u8) -> Vec<u8> {
    greeting_with(key, false, 0)
}

/// Returns the greeting of a flow with the nonce of an answer. The server sends on it if it is `backward`.
pub(crate) fn greeting_with(key: u8, backward: bool, nonce: u64) -> Vec<u8> {
    greeting_to(LINK, key, backward, nonce)
}

/// Returns the greeting of a flow for the server on `link`.
pub(crate) fn greeting_to(link: LinkId, key: u8, backward: bool, nonce: u64) -> Vec<u8> {
    let key = link_key(&SessionKey([key; 16]), link);
    greeting::seal(&key, HELLO, &SALT, fields(backward, 0, nonce)).to_vec()
}

/// Returns the nonce in a greeting with the key of fives, and the answer.
pub(crate) fn answered(greeting: &[u8], port: u16, nonce: u64) -> (u64, Vec<u8>) {
    let key = link_key(&SessionKey([5; 16]), LINK);
    let (salt, fields_read) = greeting::unseal(&key, HELLO, greeting).expect("a greeting");
    let read = u64::from_be_bytes(fields_read[8..].try_into().expect("eight bytes"));
    (read, greeting::seal(&key, ANSWER, &salt, fields(fields_read[4] == 1, port, nonce)).to_vec())
}

/// Returns the port and the nonce in the answer to a greeting with the key of fives.
pub(crate) fn read_answer(answer: &[u8]) -> (u16, u64) {
    let (salt, fields) = greeting::unseal(&link_key(&SessionKey([5; 16]), LINK), ANSWER, answer).expect("an answer");
    assert_eq!(salt, SALT, "it answers this greeting");
    (u16::from_be_bytes([fields[6], fields[7]]), u64::from_be_bytes(fields[8..].try_into().expect("eight bytes")))
}

fn fields(backward: bool, port: u16, nonce: u64) -> [u8; 16] {
    let mut fields = [0; 16];
    fields[4] = backward.into();
    fields[6..8].copy_from_slice(&port.to_be_bytes());
    fields[8..].copy_from_slice(&nonce.to_be_bytes());
    fields
}
