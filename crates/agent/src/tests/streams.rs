//! Sessions of two agents with the engine of streams: counted at both ends, stopped in the middle, cut off.

use super::*;
use linerate_control::AgentError;
use linerate_engine::Report;
use linerate_model::{
    Direction, EndCounts, FailureKind, HostCounts, LinkId, Listen, Net, Offered, Path, RoleCounts, RpcCall, RpcTask,
    SeriesQuantity, SessionFailure, TransactTask,
};
use linerate_testsuite::wait_until;
use linerate_units::{BitRate, OpRate};
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

const LINK: LinkId = LinkId(0);

/// 8 Mbit/s from the client to the server.
pub(super) fn stream(transport: Transport) -> StreamTask {
    StreamTask {
        paths: vec![Path::between("a", "b")],
        message_bytes: ByteCount::new(if transport == Transport::Tcp { 16_384 } else { 1_000 }),
        offered: Some(Offered::PayloadBps(BitRate::per_second(8_000_000))),
        offload: false,
        direction: Direction::Send,
        net: Net::plain(transport),
        ..StreamTask::plain(transport, ByteCount::new(1_000))
    }
}

fn client_part(id: &str, task: Task, measure: Nanos) -> Assignment {
    let role = Role { kind: RoleKind::Client { path: 0 }, listens: Vec::new(), connects: vec![LINK] };
    Assignment { task, timing: Timing::of(Nanos::from_millis(100), measure), roles: vec![role], ..assignment(id) }
}

fn server_part(id: &str, task: Task, measure: Nanos) -> Assignment {
    let listens = vec![Listen { link: LINK, address: LOOPBACK, folder: None }];
    let role = Role { kind: RoleKind::Server { path: 0 }, listens, connects: Vec::new() };
    Assignment { roles: vec![role], ..client_part(id, task, measure) }
}

/// Both sessions of a trial with one path.
struct Pair {
    client: SessionHandle,
    server: SessionHandle,
    address: SocketAddr,
}

/// Opens both sessions, connects them, and waits until both are ready.
async fn ready(a: &Client, b: &Client, task: Task, measure: Nanos) -> Pair {
    let mut server = b.open(&server_part("pair", task.clone(), measure)).await.expect("a server");
    let listening = until(&mut server, |stage| matches!(stage, Stage::Listening { .. })).await;
    let Stage::Listening { endpoints } = listening else { unreachable!("it was waited for") };
    let mut client = a.open(&client_part("pair", task, measure)).await.expect("a client");
    until(&mut client, |stage| matches!(stage, Stage::Listening { .. })).await;
    b.order(server.id(), &connect_nothing()).await.expect("it listens");
    a.order(client.id(), &Order::Connect(endpoints.clone())).await.expect("it listens");
    until(&mut client, |stage| matches!(stage, Stage::Ready(_))).await;
    until(&mut server, |stage| matches!(stage, Stage::Ready(_))).await;
    Pair { client, server, address: endpoints[&LINK] }
}

async fn start(a: &Client, b: &Client, pair: &Pair) {
    let start = Order::Start { delay: Nanos::from_millis(50) };
    let (one, two) = tokio::join!(a.order(pair.client.id(), &start), b.order(pair.server.id(), &start));
    one.and(two).expect("started");
}

async fn stages(session: SessionHandle) -> Vec<Stage> {
    session.map(|stage| stage.expect("the agent is there")).collect().await
}

/// Runs a trial from agent to agent: what client and server counted, and what the server told meanwhile.
async fn run(a: &Client, b: &Client, task: Task, measure: Nanos) -> (HostCounts, HostCounts, Vec<Stage>) {
    let pair = ready(a, b, task, measure).await;
    start(a, b, &pair).await;
    let (client, server) = (pair.client.id().clone(), pair.server.id().clone());
    let (of_client, of_server) = tokio::join!(stages(pair.client), stages(pair.server));
    assert_eq!((of_client.last(), of_server.last()), (Some(&Stage::Done), Some(&Stage::Done)));
    (a.counts(&client).await.expect("counts"), b.counts(&server).await.expect("counts"), of_server)
}

/// Runs a stream from agent to agent: bytes sent and received.
pub(super) async fn sent_and_received(a: &Client, b: &Client, task: Task) -> (u64, u64) {
    let (sends, receives, _) = run(a, b, task, Nanos::from_millis(300)).await;
    let sent = end(&sends).sent.as_ref().expect("it sent").payload_bytes;
    (sent, end(&receives).received.as_ref().expect("it received").payload_bytes)
}

async fn two_agents() -> (Agent, Agent, Client, Client) {
    let (one, two) = (agent(|_| ()).await, agent(|_| ()).await);
    let (a, b) = (connect(&one).await, connect(&two).await);
    (one, two, a, b)
}

fn end(counts: &HostCounts) -> &EndCounts {
    match &counts.roles[..] {
        [RoleCounts::Flows(end)] => end,
        other => panic!("{other:?}"),
    }
}

fn check_progress(stages: &[Stage], within: Duration) {
    let received: Vec<u64> = stages
        .iter()
        .filter_map(|stage| match stage {
            Stage::Running(progress) => Some(progress.meter.received_bytes),
            _ => None,
        })
        .collect();
    // Ten times a second, in the warm-up too, before the load begins, and when the window closes.
    let most = within.as_millis() as usize / 100 + 2;
    assert!((1..=most).contains(&received.len()), "{received:?} in {within:?}");
    assert!(received.is_sorted() && received.last() > Some(&0), "{received:?}");
}

#[tokio::test]
async fn a_tcp_stream_is_counted_at_both_ends() {
    let (_one, _two, a, b) = two_agents().await;
    let task = Task::Stream(StreamTask { offered: None, ..stream(Transport::Tcp) });
    let begun = Instant::now();
    let (sends, receives, stages) = run(&a, &b, task, Nanos::from_secs(1)).await;
    let elapsed = begun.elapsed();
    let sent = end(&sends).sent.as_ref().expect("it sent").payload_bytes;
    let received = end(&receives).received.as_ref().expect("it received").payload_bytes;
    assert!(sent > 0 && received > 0, "sent {sent}, received {received}");
    for counts in [&sends, &receives] {
        assert_eq!(end(counts).interface.as_deref(), Some("lo"));
        let watched = Duration::from(counts.observation.window);
        assert!(!counts.observation.cores.is_empty() && !watched.is_zero() && watched <= elapsed, "{watched:?}");
    }
    // Each agent starts when its order comes.
    let apart = Duration::from_nanos(sends.started_unix_ns.abs_diff(receives.started_unix_ns));
    assert!(apart < Duration::from_secs(10), "they started {apart:?} apart");
    check_progress(&stages, Duration::from_millis(1_100));
}

#[tokio::test]
async fn a_udp_stream_is_counted_at_both_ends() {
    let (_one, _two, a, b) = two_agents().await;
    let (sends, receives, stages) = run(&a, &b, Task::Stream(stream(Transport::Udp)), Nanos::from_secs(1)).await;
    let sent = end(&sends).sent.as_ref().expect("it sent").messages;
    let received = end(&receives).received.as_ref().expect("it received").arrived;
    // 8 Mbit/s in datagrams of 1,000 bytes for a second.
    assert!((1..=1_050).contains(&sent), "sent {sent}");
    assert!((1..=sent).contains(&received), "sent {sent}, received {received}");
    for counts in [&sends, &receives] {
        // The engine's thread was sampled. One that ended before the watch's own thread had a core is not in the sum.
        let sampled: Vec<_> = counts.series.tracks_of(SeriesQuantity::ThreadCpu).map(|track| &track.subject).collect();
        let threads: Vec<_> = counts.observation.threads.iter().map(|thread| &thread.name).collect();
        assert!(sampled.len() == 1 && (threads.is_empty() || threads == sampled), "{sampled:?} {threads:?}");
    }
    check_progress(&stages, Duration::from_millis(1_100));
}

#[tokio::test]
async fn a_volume_ends_the_window_that_its_host_is_watched_in() {
    let (_one, _two, a, b) = two_agents().await;
    let longest = Nanos::from_secs(60);
    for transport in [Transport::Tcp, Transport::Udp] {
        // It takes half a second.
        let task = StreamTask { volume: Some(ByteCount::new(500_000)), ..stream(transport) };
        let begun = Instant::now();
        let (sends, receives, stages) = run(&a, &b, Task::Stream(task), longest).await;
        let elapsed = begun.elapsed();
        let sent = end(&sends).sent.as_ref().expect("it sent");
        assert_eq!(sent.payload_bytes, 500_000, "{transport}");
        for counts in [&sends, &receives] {
            let (watched, sampled) = (counts.observation.window, counts.series.window);
            assert!(!watched.is_zero() && watched < longest && sampled < longest, "{transport}: {watched} {sampled}");
        }
        check_progress(&stages, elapsed);
    }
}

#[tokio::test]
async fn metrics_count_the_bytes_of_transactions() {
    let (one, two, a, b) = two_agents().await;
    let task = TransactTask {
        paths: vec![Path::between("a", "b")],
        request_bytes: ByteCount::new(100),
        response_bytes: ByteCount::new(1_000),
        rate: Some(OpRate::per_second(1_000)),
        ..TransactTask::plain(Transport::Tcp)
    };
    let (asked, _, _) = run(&a, &b, Task::Transact(task), Nanos::from_millis(300)).await;
    let completed = end(&asked).transactions.as_ref().expect("it asked").completed;
    assert!(completed > 0);
    assert_eq!(metric(&one, "linerate_sent_bytes_total").await, completed * 100);
    assert_eq!(metric(&one, "linerate_received_bytes_total").await, completed * 1_000);
    // The other end's window is its own.
    for (sample, bytes) in [("linerate_received_bytes_total", 100), ("linerate_sent_bytes_total", 1_000)] {
        let counted = metric(&two, sample).await / bytes;
        assert!(counted > 0, "{sample}: {counted} beside {completed}");
    }
    for agent in [&one, &two] {
        assert_eq!(metric(agent, "linerate_sessions_total{task=\"transact\",state=\"finished\"}").await, 1);
    }
}

/// Inodes of this host's sockets at an IPv4 address of its own, and not those of connections that the kernel keeps by itself.
fn sockets(transport: Transport, address: SocketAddr) -> BTreeSet<u64> {
    let SocketAddr::V4(address) = address else { panic!("{address} is no IPv4 address") };
    let file = format!("/proc/net/{}", if transport == Transport::Tcp { "tcp" } else { "udp" });
    let all = std::fs::read_to_string(file).expect("the kernel lists sockets");
    // As the kernel prints it: the address as a number of this host's byte order (net/ipv4/tcp_ipv4.c, get_tcp4_sock).
    let local = format!("{:08X}:{:04X}", u32::from_ne_bytes(address.ip().octets()), address.port());
    let lines = all.lines().map(|line| line.split_ascii_whitespace().collect::<Vec<_>>());
    let here = lines.filter(|fields| fields.get(1) == Some(&local.as_str()));
    here.filter_map(|fields| fields.get(9)?.parse().ok()).filter(|inode| *inode != 0).collect()
}

#[tokio::test]
async fn closed_in_the_middle_it_lets_go_of_its_ports() {
    let (_one, two, a, b) = two_agents().await;
    for transport in [Transport::Tcp, Transport::Udp] {
        let mut pair = ready(&a, &b, Task::Stream(stream(transport)), Nanos::from_secs(60)).await;
        let listening = sockets(transport, pair.address);
        assert!(!listening.is_empty(), "{transport}: nothing at {}", pair.address);
        start(&a, &b, &pair).await;
        until(&mut pair.server, |stage| matches!(stage, Stage::Running(progress) if progress.meter.received_bytes > 0))
            .await;
        assert_eq!(metric(&two, "linerate_sessions_under_way").await, 1);
        // The server first: its peer may meet a broken connection before it is closed itself.
        for (agent, session) in [(&b, pair.server), (&a, pair.client)] {
            let closed = tokio::time::timeout(SOON, agent.close(session.id())).await.expect("it ends");
            assert_eq!(closed.expect("closed"), Vec::<String>::new());
            let Some(Stage::Failed(failure)) = stages(session).await.pop() else { panic!("it went on") };
            assert!(matches!(failure.kind, FailureKind::Stopped | FailureKind::Task), "{failure:?}");
        }
        // Another program may have the port by now.
        let there = sockets(transport, pair.address);
        assert!(listening.is_disjoint(&there), "{transport}: of {listening:?} there are still {there:?}");
    }
    assert_eq!(metric(&two, "linerate_sessions_under_way").await, 0);
}

#[tokio::test]
async fn a_peer_that_goes_away_in_the_middle_is_a_failure_at_the_other() {
    let (_one, two, a, b) = two_agents().await;
    let mut pair = ready(&a, &b, Task::Stream(stream(Transport::Tcp)), Nanos::from_secs(60)).await;
    start(&a, &b, &pair).await;
    until(&mut pair.server, |stage| matches!(stage, Stage::Running(progress) if progress.meter.received_bytes > 0))
        .await;
    tokio::time::timeout(SOON, two.shutdown()).await.expect("it ends");
    let Some(Stage::Failed(failure)) = stages(pair.client).await.pop() else { panic!("it went on") };
    assert_eq!(failure.kind, FailureKind::Task, "{failure:?}");
    let error = b.counts(pair.server.id()).await.expect_err("the agent is gone");
    assert!(matches!(error, AgentError::Lost { .. }), "{error:?}");
    assert!(error.to_string().contains(b.address()) && error.to_string().contains("counts"), "{error}");
}

#[tokio::test]
async fn a_server_that_is_not_there_fails_the_session_with_its_address() {
    let (_one, _two, a, _) = two_agents().await;
    let task = Task::Stream(stream(Transport::Tcp));
    let mut session = a.open(&client_part("alone", task, Nanos::from_secs(1))).await.expect("opened");
    until(&mut session, |stage| matches!(stage, Stage::Listening { .. })).await;
    // The port of a connection's own end: nobody listens on it, and nobody else is given it.
    let listener = TcpListener::bind((LOOPBACK, 0)).expect("a port");
    let held = std::net::TcpStream::connect(listener.local_addr().expect("an address")).expect("connects");
    let gone = held.local_addr().expect("an address");
    a.order(session.id(), &Order::Connect(Endpoints::from([(LINK, gone)]))).await.expect("it listens");
    let Some(Stage::Failed(SessionFailure { kind, message, remains })) = stages(session).await.pop() else {
        panic!("nobody listens")
    };
    assert_eq!((kind, remains), (FailureKind::Task, Vec::new()), "{message}");
    assert!(message.contains(&gone.to_string()), "{message}");
}

/// What an agent says of its sessions: who asked, for what, the figure; and why one ended early.
// It waits for lines, which would hold up agents on its own thread.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_session_is_told_in_a_line() {
    let lines = Arc::<Mutex<Vec<String>>>::default();
    let report = |lines: &Arc<Mutex<Vec<String>>>| {
        let lines = Arc::clone(lines);
        Report::new(move |line| lines.lock().unwrap_or_else(PoisonError::into_inner).push(line.to_owned()))
    };
    let (one, two) = (agent(|options| options.report = report(&lines)).await, agent(|_| ()).await);
    let (a, b) = (connect(&one).await, connect(&two).await);
    let told = |part: &str| {
        let has = |line: &String| line.contains(part);
        wait_until(&format!("a line with `{part}`"), || {
            lines.lock().unwrap_or_else(PoisonError::into_inner).iter().find(|line| has(line)).cloned()
        })
    };
    let task = Task::Stream(stream(Transport::Tcp));
    sent_and_received(&a, &b, task.clone()).await;
    let sent = told("127.0.0.1: stream: sent ");
    assert!(sent.contains(" ms, ") && sent.ends_with("bit/s") && !sent.contains("received"), "{sent}");
    let transact =
        Task::Transact(TransactTask { paths: vec![Path::between("a", "b")], ..TransactTask::plain(Transport::Tcp) });
    run(&a, &b, transact, Nanos::from_millis(300)).await;
    told(" requests answered in ");
    let calls = RpcTask::plain(Transport::Tcp, RpcCall::Null, ByteCount::default());
    let calls = Task::Rpc(RpcTask { paths: vec![Path::between("a", "b")], ..calls });
    run(&b, &a, calls, Nanos::from_millis(300)).await;
    let served = told("127.0.0.1: rpc: served ");
    assert!(served.ends_with(" calls"), "{served}");
    let open = a.open(&server_part("dropped", task, Nanos::from_millis(300))).await.expect("a session");
    a.close(open.id()).await.expect("closed");
    told("127.0.0.1: stream: stopped: the session was closed");
    assert_eq!(lines.lock().unwrap_or_else(PoisonError::into_inner).len(), 4);
}
