//! A trial of each kind beside 10,000 connections and datagrams of strangers. The only test of its program, so that descriptors,
//! threads and memory are those of the two agents.

use futures_util::StreamExt as _;
use futures_util::future::join_all;
use linerate_agent::{Agent, AgentOptions};
use linerate_control::{Client, SessionHandle};
use linerate_engine::{PortServer, at_one_port};
use linerate_model::{
    Assignment, EndCounts, Endpoints, HostCounts, HostName, LinkId, Listen, Net, NfsMix, NfsTask, Offered, Order, Path,
    Role, RoleCounts, RoleKind, RpcCall, RpcTask, Sampling, SessionId, SessionKey, Stage, StreamTask, Task, Timing,
    TransactStyle, TransactTask, Transport,
};
use linerate_testsuite::wait_until;
use linerate_units::{BitRate, ByteCount, Nanos, OpRate};
use std::collections::VecDeque;
use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const LINK: LinkId = LinkId(0);
/// Connections and datagrams of strangers.
const STRANGERS: usize = 10_000;
/// Requests per second of a trial, and seconds that it is measured for.
const RATE: u64 = 100;
const SECONDS: u64 = 4;

/// One of each kind, at a rate that a busy machine keeps.
fn tasks() -> Vec<Task> {
    let paths = || vec![Path::between("a", "b")];
    let stream = |transport| {
        let plain = StreamTask::plain(transport, ByteCount::new(1_000));
        let offered = Some(Offered::PayloadBps(BitRate::per_second(800_000)));
        Task::Stream(StreamTask { paths: paths(), offered, net: Net::plain(transport), ..plain })
    };
    let rate = Some(OpRate::per_second(RATE));
    let style = TransactStyle::Connect;
    let null = NfsMix::named("null").expect("built in");
    vec![
        stream(Transport::Tcp),
        stream(Transport::Udp),
        Task::Transact(TransactTask { paths: paths(), rate, style, ..TransactTask::plain(Transport::Tcp) }),
        Task::Transact(TransactTask { paths: paths(), rate, ..TransactTask::plain(Transport::Udp) }),
        Task::Rpc(RpcTask {
            paths: paths(),
            rate,
            ..RpcTask::plain(Transport::Udp, RpcCall::Write, ByteCount::new(1_000))
        }),
        Task::Nfs(NfsTask { paths: paths(), rate, ..NfsTask::plain(Transport::Tcp, null) }),
    ]
}

fn part(side: &str, number: usize, task: &Task, role: Role) -> Assignment {
    Assignment {
        id: SessionId(format!("{side}-{number}")),
        key: SessionKey([number as u8; 16]),
        task: task.clone(),
        timing: Timing::of(Nanos::from_millis(100), Nanos::from_secs(SECONDS)),
        roles: vec![role],
        password: None,
        sampling: Sampling::default(),
    }
}

async fn agent(shares_port: bool) -> Agent {
    let any = SocketAddr::new(LOOPBACK, 0);
    let opened = at_one_port(any, TcpListener::bind, PortServer::keep_datagram_port);
    let (listener, _kept) = opened.expect("a port");
    let mut options = AgentOptions::new(listener, HostName::from("test")).expect("an identity");
    options.shares_port = shares_port;
    options.limits.max_trials = 8;
    options.engines.nfs.memory = ByteCount::new(16 << 20);
    options.data_addresses = vec![LOOPBACK];
    Agent::start(options).await.expect("an agent")
}

async fn until(session: &mut SessionHandle, wanted: fn(&Stage) -> bool) -> Stage {
    loop {
        let stage = session.next().await.expect("a stage").expect("the agent is there");
        if wanted(&stage) {
            return stage;
        }
        assert!(!stage.is_last(), "{stage:?}");
    }
}

/// Runs a trial of each kind from `a` to `b` at the same time, while `strangers` are let loose on the ports of `b`.
async fn run(a: &Agent, b: &Agent, strangers: usize) -> Vec<[HostCounts; 2]> {
    let [client, server] = [a, b].map(|agent| Client::connect(agent.url()));
    let (client, server) = (client.await.expect("a client"), server.await.expect("a client"));
    let api: SocketAddr = b.url().address().parse().expect("an address");
    let (mut targets, mut sessions) = (vec![(Transport::Tcp, api), (Transport::Udp, api)], Vec::new());
    for (number, task) in tasks().iter().enumerate() {
        let listens = vec![Listen { link: LINK, address: LOOPBACK, folder: None }];
        let serves = Role { kind: RoleKind::Server { path: 0 }, listens, connects: Vec::new() };
        let asks = Role { kind: RoleKind::Client { path: 0 }, listens: Vec::new(), connects: vec![LINK] };
        let mut there = server.open(&part("server", number, task, serves)).await.expect("opened");
        let listening = until(&mut there, |stage| matches!(stage, Stage::Listening { .. })).await;
        let Stage::Listening { endpoints } = listening else { unreachable!("it was waited for") };
        targets.push((task.net().expect("it has sockets").transport, endpoints[&LINK]));
        let mut here = client.open(&part("client", number, task, asks)).await.expect("opened");
        until(&mut here, |stage| matches!(stage, Stage::Listening { .. })).await;
        server.order(there.id(), &Order::Connect(Endpoints::new())).await.expect("it listens");
        client.order(here.id(), &Order::Connect(endpoints)).await.expect("it listens");
        until(&mut here, |stage| matches!(stage, Stage::Ready(_))).await;
        until(&mut there, |stage| matches!(stage, Stage::Ready(_))).await;
        sessions.push((here, there));
    }
    let start = Order::Start { delay: Nanos::from_millis(50) };
    for (here, there) in &sessions {
        server.order(there.id(), &start).await.expect("it is ready");
        client.order(here.id(), &start).await.expect("it is ready");
    }
    let flood = std::thread::spawn(move || flood(&targets, strangers));
    let counted = join_all(sessions.into_iter().map(async |(mut here, mut there)| {
        until(&mut here, |stage| *stage == Stage::Done).await;
        until(&mut there, |stage| *stage == Stage::Done).await;
        [client.counts(here.id()).await.expect("counts"), server.counts(there.id()).await.expect("counts")]
    }))
    .await;
    flood.join().expect("no panic");
    counted
}

/// Random bytes, and beginnings of greetings and calls with random ends.
fn said(number: usize) -> Vec<u8> {
    let mut bytes = vec![0; 16 + number % 200];
    rand::fill(&mut bytes[..]);
    let call =
        [0x8000_0048_u32, 7, 0, 2, 0x2000_4c52, 1, (number % 6) as u32, 0, 0, 0, 0].map(u32::to_be_bytes).concat();
    let begin = match number % 5 {
        0 => b"lnrt-hi2".to_vec(),
        1 => call,
        // The same in a datagram: no mark of a record before it.
        2 => call[4..].to_vec(),
        3 => b"\x16\x03\x01\x02\x00\x01".to_vec(),
        _ => Vec::new(),
    };
    [begin, bytes].concat()
}

/// Connects and sends datagrams to `targets` in turn, and keeps some of the connections open for a while.
fn flood(targets: &[(Transport, SocketAddr)], strangers: usize) {
    let socket = UdpSocket::bind((LOOPBACK, 0)).expect("binds");
    let mut open = VecDeque::new();
    for number in 0..strangers {
        let (transport, address) = targets[number % targets.len()];
        // Nobody listens at some of them, and no answer is waited for.
        match transport {
            Transport::Udp => drop(socket.send_to(&said(number), address)),
            Transport::Tcp => {
                if let Ok(mut stream) = TcpStream::connect_timeout(&address, Duration::from_millis(100)) {
                    let _ = stream.write_all(&said(number));
                    open.push_back(stream);
                }
            }
        }
        if open.len() > 40 {
            open.pop_front();
        }
    }
}

fn end(counts: &HostCounts) -> &EndCounts {
    match &counts.roles[..] {
        [RoleCounts::Flows(end)] => end,
        other => panic!("{other:?}"),
    }
}

/// Threads and descriptors of this process.
fn held() -> [usize; 2] {
    ["/proc/self/task", "/proc/self/fd"].map(|folder| std::fs::read_dir(folder).expect("is there").count())
}

fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("is there");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("it has memory");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

// The agents go on while this thread waits.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn strangers_neither_harm_a_trial_of_any_kind_nor_leave_anything_behind() {
    for shares_port in [true, false] {
        withstands(&agent(shares_port).await, &agent(shares_port).await).await;
    }
}

async fn withstands(a: &Agent, b: &Agent) {
    // What a process keeps once it has run a trial: threads of the runtime, buffers of the allocator.
    run(a, b, 0).await;
    let (before, memory) = (held(), resident_kib());
    let counted = run(a, b, STRANGERS).await;
    // As many requests as were due, and those around the window.
    let most = RATE * (SECONDS + 2);
    for ([client, server], task) in counted.iter().zip(tasks()) {
        let (asks, serves) = (end(client), end(server));
        if let Some(transactions) = &asks.transactions {
            assert!((1..=most).contains(&transactions.completed), "{task:?}: {}", transactions.completed);
        }
        if let Some(service) = &serves.service {
            assert!((1..=most).contains(&service.calls), "{task:?}: {} calls", service.calls);
        }
        if let Some(received) = &serves.received {
            // 100 kB a second.
            assert!((1..=100_000 * (SECONDS + 2)).contains(&received.payload_bytes), "{task:?}: {received:?}");
        }
    }
    let grown = resident_kib().saturating_sub(memory);
    assert!(grown < 64 << 10, "{grown} KiB more memory");
    wait_until("no thread or descriptor more is held", || {
        let now = held();
        (now[0] <= before[0] && now[1] <= before[1]).then_some(())
    });
}
