//! The memory of an agent with a budget of 64 MiB whose peers hold its URL, every power, and the keys of its sessions, and mean it harm.
//! The agent is a program of its own, for its peak is the process's.

use futures_util::StreamExt as _;
use linerate_agent::{Agent, AgentOptions, AllowedFolders};
use linerate_control::{Client, SessionHandle};
use linerate_engine::greeting::{FIELDS, GREETING, seal};
use linerate_engine::proof::link_key;
use linerate_engine::{AllowedPeers, PortServer, Work, at_one_port};
use linerate_iperf3::{Iperf3Service, Observer, ServedTest, ServiceLimits, TestWatch};
use linerate_model::{
    AgentUrl, Assignment, CopyCache, CopyExisting, CopyFrom, CopyInto, CopyLinks, CopyOnError, CopyOptions, CopySync,
    CopyTask, CopyTree, CopyVerify, CopyWay, Endpoints, HostCounts, HostName, IpVersion, LinkId, Listen, Net,
    Observation, Order, Path, Role, RoleKind, RpcCall, RpcTask, Sampling, Series, SessionId, SessionKey, Stage, Task,
    Timing, Transport,
};
use linerate_oncrpc::client::Caller;
use linerate_oncrpc::message::{Procedure, put};
use linerate_oncrpc::{PROGRAM, VERSION};
use linerate_units::{ByteCount, Nanos};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const LINK: LinkId = LinkId(0);
const KEY: SessionKey = SessionKey([9; 16]);
const BUDGET: ByteCount = ByteCount::new(64 << 20);
/// What the agent may have resident, KiB: its budget, and as much again for all that is no session's.
const MOST_RESIDENT_KIB: u64 = 128 << 10;
/// Tells the program of this test to be the agent; the folder that copies may use.
const FOLDER: &str = "LINERATE_TEST_AGENT_FOLDER";
/// Begins the line in which the agent says where it is.
const AT: &str = "agent-at ";

/// The agent, and where it serves clients of iperf3.
struct Target {
    process: Child,
    url: AgentUrl,
    iperf3: SocketAddr,
}

impl Target {
    fn start(folder: &std::path::Path) -> Self {
        let mut process = Command::new(std::env::current_exe().expect("this program"))
            .args(["--exact", "the_agent", "--nocapture"])
            .env(FOLDER, folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("starts");
        let mut lines = BufReader::new(process.stdout.take().expect("it is piped")).lines();
        let at = lines.find_map(|line| line.expect("text").split_once(AT).map(|(_, at)| at.to_owned()));
        // It writes no more, and is not to wait for a reader.
        std::thread::spawn(move || lines.for_each(drop));
        let at = at.expect("it says where it is");
        let (url, iperf3) = at.split_once(' ').expect("two addresses");
        Self { process, url: url.parse().expect("a URL"), iperf3: iperf3.parse().expect("an address") }
    }

    /// Resident memory at its peak (proc_pid_status(5), `VmHWM`).
    fn peak_kib(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id())).expect("it lives");
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("it has memory");
        line.trim().trim_end_matches(" kB").parse().expect("a number")
    }

    fn check(&self, attack: &str) {
        let peak = self.peak_kib();
        eprintln!("{attack}: {peak} KiB");
        assert!(peak < MOST_RESIDENT_KIB, "{attack}: {peak} KiB resident");
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        // The end of its input ends it.
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}

struct Unwatched;

impl Observer for Unwatched {
    fn report(&self, _: &str) {}

    fn begins(self: Arc<Self>, _: ServedTest) -> Box<dyn TestWatch> {
        Box::new(Self)
    }
}

impl TestWatch for Unwatched {
    fn watch(&mut self, _: Work) {}

    fn seen(&mut self) -> (Observation, Series) {
        Default::default()
    }

    fn ended(self: Box<Self>, _: Timing, _: HostCounts) {}
}

/// What the test below starts; nothing by itself.
#[tokio::test]
async fn the_agent() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let opened = at_one_port(SocketAddr::new(LOOPBACK, 0), TcpListener::bind, PortServer::keep_datagram_port);
    let (listener, _kept) = opened.expect("a port");
    let mut options = AgentOptions::new(listener, HostName::from("test")).expect("an identity");
    options.limits.budget.memory = BUDGET;
    options.engines.folders = AllowedFolders { allowed: vec![folder.into()], scratch: None };
    options.engines.nfs.memory = ByteCount::new(16 << 20);
    let agent = Agent::start(options).await.expect("an agent");
    let limits = ServiceLimits {
        max_rate: None,
        max_time: Nanos::from_secs(60),
        max_tests: 4,
        max_flows: 8_192,
        peers: AllowedPeers::default(),
        reserve: agent.reserve(),
    };
    let iperf3 = Iperf3Service::start(SocketAddr::new(LOOPBACK, 0), limits, Arc::new(Unwatched)).expect("a port");
    println!("\n{AT}{} {}", agent.url(), iperf3.address());
    tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new()))
        .await
        .expect("no panic")
        .expect("read");
    agent.shutdown().await;
}

fn assignment(task: Task, kind: RoleKind, timing: Timing) -> Assignment {
    Assignment {
        id: SessionId("attack".into()),
        key: KEY,
        task,
        timing,
        roles: vec![Role {
            kind,
            listens: vec![Listen { link: LINK, address: LOOPBACK, folder: None }],
            connects: Vec::new(),
        }],
        password: None,
        sampling: Sampling::default(),
    }
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

/// Opens a session that listens, and orders it to wait for connections. Returns where it listens.
async fn listening(client: &Client, assignment: &Assignment) -> (SessionHandle, SocketAddr) {
    let mut session = client.open(assignment).await.expect("within the limits");
    let stage = until(&mut session, |stage| matches!(stage, Stage::Listening { .. })).await;
    let Stage::Listening { endpoints } = stage else { unreachable!("it was waited for") };
    client.order(session.id(), &Order::Connect(Endpoints::new())).await.expect("it listens");
    (session, endpoints[&LINK])
}

/// Sends the head of a file, and then as many times `record` as fill 48 MiB, to a destination that writes `into`.
async fn flood_a_copy(client: &Client, into: CopyInto, record: &[u8]) {
    const BLOCK: usize = 512 << 10;
    const BLOCKS: usize = 96;
    let options = CopyOptions {
        lanes: 1,
        verify: CopyVerify::Received,
        sync: CopySync::None,
        cache: CopyCache::AsIs,
        on_error: CopyOnError::Continue,
        existing: CopyExisting::Refuse,
        links: CopyLinks::Copy,
    };
    let task = Task::Copy(CopyTask {
        tree: "files=1,bytes=1".parse::<CopyTree>().expect("a tree"),
        each: Vec::new(),
        way: CopyWay::Linerate,
        sources: vec!["a".into()],
        destinations: vec!["b".into()],
        from: CopyFrom::Memory,
        into,
        options,
        ip: IpVersion::V4,
    });
    let (mut session, address) = listening(client, &assignment(task, RoleKind::Destination, Timing::UntilDone)).await;
    let mut lane = TcpStream::connect(address).expect("connects");
    let greeting = seal(&link_key(&KEY, LINK), *b"lnrt-cp2", &[5; 16], [0; FIELDS]);
    lane.write_all(&greeting).expect("sent");
    lane.read_exact(&mut [0; GREETING]).expect("it is greeted");
    until(&mut session, |stage| matches!(stage, Stage::Ready(_))).await;
    client.order(session.id(), &Order::Start { delay: Nanos::default() }).await.expect("it is ready");
    until(&mut session, |stage| matches!(stage, Stage::Running(_))).await;
    let records = record.repeat((BLOCK - 64) / record.len());
    // FILE, mode, time of change, size, and a path.
    let head = [&[3][..], &[0; 12], &u64::MAX.to_le_bytes(), &[1, 0], b"f"].concat();
    let sent = tokio::task::spawn_blocking(move || {
        for number in 0..BLOCKS {
            let block = if number == 0 { [&head[..], &records].concat() } else { records.clone() };
            lane.write_all(&(block.len() as u32).to_le_bytes())?;
            lane.write_all(&block)?;
        }
        // LAST: nothing more comes.
        lane.write_all(&2_u32.to_le_bytes())?;
        lane.write_all(&[8, 1])?;
        lane.shutdown(Shutdown::Write)?;
        lane.read_exact(&mut [0])
    });
    sent.await.expect("no panic").expect("all of it is taken");
    client.close(session.id()).await.expect("it is closed");
}

/// Opens more connections than the session has flows, and calls for a megabyte 64 times on each, without reading more than is at hand.
async fn pipeline_calls(client: &Client) {
    let plain = RpcTask::plain(Transport::Tcp, RpcCall::Read, ByteCount::new(1 << 20));
    let net = Net { flows: 8, ..Net::plain(Transport::Tcp) };
    let task = Task::Rpc(RpcTask { paths: vec![Path::between("a", "b")], net, ..plain });
    let timing = Timing::of(Nanos::default(), Nanos::from_secs(5));
    let (session, address) = listening(client, &assignment(task, RoleKind::Server { path: 0 }, timing)).await;
    let attack = tokio::task::spawn_blocking(move || {
        let mut callers = Vec::new();
        for _ in 0..64 {
            let mut caller = Caller::tcp(TcpStream::connect(address).expect("connects")).expect("a caller");
            // Those beyond the flows are closed.
            let Ok(credential) = caller.greet(&link_key(&KEY, LINK)) else { continue };
            let mut bytes = Vec::new();
            put(&mut bytes, 1 << 20);
            for _ in 0..64 {
                caller.call(Procedure { program: PROGRAM, version: VERSION, procedure: 2 }, &credential, &bytes);
            }
            let _ = caller.poll(Nanos::from_millis(20), &mut |_, _| {});
            callers.push(caller);
        }
        assert!(!callers.is_empty(), "one is taken at least");
        // What was called for is made by now.
        std::thread::sleep(std::time::Duration::from_millis(500));
    });
    attack.await.expect("no panic");
    client.close(session.id()).await.expect("it is closed");
}

/// Asks for four tests of 128 flows each way at the same time. Returns how many began.
fn ask_for_many_flows(service: SocketAddr) -> usize {
    let mut begun = Vec::new();
    for cookie in b'a'..=b'd' {
        let mut control = TcpStream::connect(service).expect("connects");
        control.write_all(&[cookie; 37]).expect("sent");
        let mut state = [0];
        control.read_exact(&mut state).expect("an answer");
        let parameters = br#"{"tcp":true,"time":10,"parallel":128,"bidirectional":true,"len":131072}"#;
        // PARAM_EXCHANGE; without a place it is ACCESS_DENIED.
        if state == [9] {
            control.write_all(&(parameters.len() as u32).to_be_bytes()).expect("sent");
            control.write_all(parameters).expect("sent");
            control.read_exact(&mut state).expect("an answer");
        }
        // CREATE_STREAMS
        if state == [10] {
            let open = || TcpStream::connect(service).and_then(|mut flow| flow.write_all(&[cookie; 37]).map(|()| flow));
            begun.push((control, (0..256).map(|_| open().expect("a flow")).collect::<Vec<_>>()));
        }
    }
    std::thread::sleep(std::time::Duration::from_millis(500));
    begun.len()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_holder_of_every_power_takes_no_more_than_twice_the_memory_that_was_allowed() {
    if std::env::var_os(FOLDER).is_some() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let target = Target::start(folder.path());
    let client = Client::connect(&target.url).await.expect("a client");
    target.check("nothing");
    // HOLE, of no bytes: a list of them would take 16 bytes for these 9.
    let hole = [&[5][..], &0_u64.to_le_bytes()].concat();
    flood_a_copy(&client, CopyInto::Discard, &hole).await;
    target.check("holes");
    // FOLDER, mode, time of change, path.
    let name = [b'n'; 255];
    let record = [&[1][..], &0o755_u32.to_le_bytes(), &[0; 8], &255_u16.to_le_bytes(), &name].concat();
    let into = folder.path().to_str().expect("UTF-8").to_owned();
    flood_a_copy(&client, CopyInto::Folder(into), &record).await;
    target.check("folders");
    pipeline_calls(&client).await;
    target.check("calls");
    let service = target.iperf3;
    let begun = tokio::task::spawn_blocking(move || ask_for_many_flows(service)).await.expect("no panic");
    assert_eq!(begun, 0, "each of them needs more than the budget");
    target.check("flows of iperf3");
}
