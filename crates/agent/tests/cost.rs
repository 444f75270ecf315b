//! What the control plane costs. Alone in its program, because CPU time is accounted for by the process.

use futures_util::StreamExt as _;
use linerate_agent::{Agent, AgentOptions, EngineOptions, Identity, Limits, Timeouts, Token};
use linerate_control::{Client, SessionHandle};
use linerate_model::{
    Assignment, Endpoints, HostName, LinkId, Listen, Offered, Order, Path, Role, RoleKind, SessionId, SessionKey,
    Stage, StreamTask, Task, Timing, Transport,
};
use linerate_units::{BitRate, ByteCount, Nanos};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, TcpListener};

const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

async fn agent() -> (Agent, Client) {
    let agent = Agent::start(AgentOptions {
        listener: TcpListener::bind((LOOPBACK, 0)).expect("a port"),
        advertise: None,
        identity: Identity::generate().expect("an identity"),
        token: Token::generate(),
        name: HostName::from("cost"),
        limits: Limits::default(),
        timeouts: Timeouts::default(),
        engines: EngineOptions::default(),
        link_speeds: BTreeMap::new(),
        data_addresses: vec![LOOPBACK],
    })
    .await
    .expect("an agent");
    let client = Client::connect(agent.url()).await.expect("a client");
    (agent, client)
}

fn assignment(role: Role) -> Assignment {
    let offered = Some(Offered::PayloadBps(BitRate::per_second(8_000_000)));
    Assignment {
        id: SessionId("cost".into()),
        key: SessionKey(*b"0123456789abcdef"),
        task: Task::Stream(StreamTask {
            paths: vec![Path::between("a", "b")],
            offered,
            ..StreamTask::plain(Transport::Tcp, ByteCount::new(16_384))
        }),
        timing: Timing::of(Nanos::from_millis(100), Nanos::from_secs(2)),
        roles: vec![role],
        password: None,
        sampling: linerate_model::Sampling::default(),
    }
}

async fn stage(session: &mut SessionHandle, wanted: fn(&Stage) -> bool) -> Stage {
    loop {
        let stage = session.next().await.expect("a stage").expect("the agent is there");
        if wanted(&stage) {
            return stage;
        }
    }
}

/// Two agents and their client in this one process: what CPU time the engine's threads did not use stays below one
/// hundredth of a core for each agent, progress included.
#[tokio::test]
async fn agents_cost_little_while_a_session_runs() {
    let ((_one, a), (_two, b)) = (agent().await, agent().await);
    let link = LinkId(0);
    let listens = vec![Listen { link, address: LOOPBACK, folder: None }];
    let server = Role { kind: RoleKind::Server { path: 0 }, listens, connects: Vec::new() };
    let client = Role { kind: RoleKind::Client { path: 0 }, listens: Vec::new(), connects: vec![link] };
    let mut sessions = [
        (&b, b.open(&assignment(server)).await.expect("opened")),
        (&a, a.open(&assignment(client)).await.expect("opened")),
    ];
    let mut endpoints = Endpoints::new();
    for (_, session) in &mut sessions {
        if let Stage::Listening { endpoints: here } =
            stage(session, |stage| matches!(stage, Stage::Listening { .. })).await
        {
            endpoints.extend(here);
        }
    }
    for (agent, session) in &sessions {
        agent.order(session.id(), &Order::Connect(endpoints.clone())).await.expect("it listens");
    }
    for (_, session) in &mut sessions {
        stage(session, |stage| matches!(stage, Stage::Ready(_))).await;
    }
    for (agent, session) in &sessions {
        agent.order(session.id(), &Order::Start { delay: Nanos::from_millis(50) }).await.expect("it is ready");
    }
    let mut seen = Vec::new();
    let [(_, server), (_, client)] = &mut sessions;
    tokio::join!(stage(server, |stage| *stage == Stage::Done), stage(client, |stage| *stage == Stage::Done));
    for (agent, session) in &sessions {
        seen.push(agent.counts(session.id()).await.expect("counts").observation);
    }

    assert!(seen.iter().all(|seen| seen.threads.len() == 1), "an engine thread was not seen: {seen:?}");
    let engine: u64 = seen.iter().flat_map(|seen| &seen.threads).map(|thread| thread.cpu.get()).sum();
    let rest = seen[0].agent_cpu - Nanos::new(engine);
    let share = rest.as_secs_f64() / seen[0].window.as_secs_f64();
    eprintln!("two agents and their client used {:.2} % of a core", share * 100.0);
    assert!(share < 0.02, "{rest} in {}", seen[0].window);
}
