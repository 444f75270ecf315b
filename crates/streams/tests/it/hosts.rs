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

/// Longer than a busy machine usually holds up a thread.
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

/// One host's part of `task` over as many paths as it says.
pub(crate) fn part(task: &Task, roles: Vec<Role>, paths: usize) -> Assignment {
    one_path::part(task, Nanos::new(MEASURE), roles, paths)
}

/// The client's part and the server's.
pub(crate) fn parts(task: &Task) -> (Assignment, Assignment) {
    one_path::parts(task, Nanos::new(MEASURE)).into()
}

/// The same with a window that is long enough for what a test does within it.
pub(crate) fn long(part: Assignment) -> Assignment {
    Assignment { timing: Timing::of(Nanos::from_millis(100), Nanos::from_secs(30)), ..part }
}

/// The sessions of a client and of a server.
pub(crate) fn pair(client: Assignment, server: Assignment) -> (Session, Session) {
    one_path::pair([client, server]).into()
}

pub(crate) fn run(task: &Task) -> (EndCounts, EndCounts) {
    let [client, server] = run_metered(task);
    (client.0, server.0)
}

/// Runs `task`: what client and server counted in their windows, and what each moved since the load began.
pub(crate) fn run_metered(task: &Task) -> [(EndCounts, Meter); 2] {
    let (client, server) = parts(task);
    run_parts(client, server)
}

/// The same of the parts of a trial.
pub(crate) fn run_parts(client: Assignment, server: Assignment) -> [(EndCounts, Meter); 2] {
    let (client, server) = pair(client, server);
    let ended = testing::scope(|scope| {
        let running = [start(scope, &client), start(scope, &server)];
        running.map(|running| counts(running.join().expect("no panic")))
    });
    let meters = [client, server].map(|session| session.meter().expect("it was at work"));
    let [client, server] = ended;
    let [of_client, of_server] = meters;
    [(client, of_client), (server, of_server)]
}

/// Runs `session` beside the test.
pub(crate) fn start<'s>(scope: &'s thread::Scope<'s, '_>, session: &'s Session) -> ScopedJoinHandle<'s, Ended> {
    scope.spawn(|| session.run(&Streams))
}

/// Waits until `session` is at work, and returns its window.
pub(crate) fn window(session: &Session) -> (u64, u64) {
    assert!(session.wait_for(Reached::Running, TIMEOUT), "it is not at work");
    let timeline = session.window().expect("streams have a window");
    (timeline.open(), timeline.close())
}

/// Where a server is that the test plays itself, beside the client of `session`.
pub(crate) fn serve_at(server: &Session, address: SocketAddr) {
    server.listening([(LINK, address)].into()).expect("goes on");
}

/// How a client fails whose server is said to be at `address`.
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

/// Where the server of the other session listens; the test plays the client.
pub(crate) fn server_of(client: &Session) -> SocketAddr {
    client.listening(Endpoints::new()).expect("goes on")[&LINK]
}

/// Lets the server of the other session start: the test plays the client.
pub(crate) fn start_server(client: &Session) {
    client.ready(Ready::default()).expect("goes on");
}

/// What a greeting and an answer begin with.
const HELLO: [u8; 8] = *b"lnrt-hi2";
const ANSWER: [u8; 8] = *b"lnrt-ok2";
const SALT: Salt = [1; 16];

/// The greeting of the first flow with a key of `key`s, as it is on the wire.
pub(crate) fn greeting(key: u8) -> Vec<u8> {
    greeting_with(key, false, 0)
}

/// The same, of a flow to the client if it is `backward`, with the nonce of the answer that was read.
pub(crate) fn greeting_with(key: u8, backward: bool, nonce: u64) -> Vec<u8> {
    greeting_to(LINK, key, backward, nonce)
}

/// The same, made for the server on `link`.
pub(crate) fn greeting_to(link: LinkId, key: u8, backward: bool, nonce: u64) -> Vec<u8> {
    let key = link_key(&SessionKey([key; 16]), link);
    greeting::seal(&key, HELLO, &SALT, fields(backward, 0, nonce)).to_vec()
}

/// The nonce in a greeting of the key of fives, and the answer to it.
pub(crate) fn answered(greeting: &[u8], port: u16, nonce: u64) -> (u64, Vec<u8>) {
    let key = link_key(&SessionKey([5; 16]), LINK);
    let (salt, fields_read) = greeting::unseal(&key, HELLO, greeting).expect("a greeting");
    let read = u64::from_be_bytes(fields_read[8..].try_into().expect("eight bytes"));
    (read, greeting::seal(&key, ANSWER, &salt, fields(fields_read[4] == 1, port, nonce)).to_vec())
}

/// The port and the nonce in an answer to [`greeting_with`] the key of fives.
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
