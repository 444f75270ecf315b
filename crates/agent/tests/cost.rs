//! What the control plane costs. Alone in its program, because CPU time is accounted for by the process.

use linerate_agent::{Agent, AgentOptions, Client, Identity, Limits, NfsService, Timeouts, Token};
use linerate_model::{
    Connect, Direction, EndRole, EndSpec, HalfSpec, HostName, IpVersion, Offered, ReceiveBy, SendBy, SocketOptions,
    StreamSpec, Timing, Transport, TrialId, TrialKey, Workload,
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
        nfs: NfsService::default(),
        link_speeds: BTreeMap::new(),
        data_addresses: vec![LOOPBACK],
    })
    .await
    .expect("an agent");
    let client = Client::connect(agent.join()).await.expect("a client");
    (agent, client)
}

fn half(role: EndRole) -> HalfSpec {
    HalfSpec {
        id: TrialId("cost".into()),
        key: TrialKey(*b"0123456789abcdef"),
        workload: Workload::Stream(StreamSpec {
            transport: Transport::Tcp,
            ip: IpVersion::V4,
            message_bytes: ByteCount::new(16_384),
            flows: 1,
            direction: Direction::Send,
            offered: Some(Offered::PayloadBps(BitRate::per_second(8_000_000))),
            offload: true,
            send_by: SendBy::Auto,
            receive_by: ReceiveBy::Copy,
            socket: SocketOptions::default(),
        }),
        timing: Timing { warmup: Nanos::from_millis(100), measure: Nanos::from_secs(2) },
        ends: vec![EndSpec { path: 0, role }],
    }
}

/// Two agents and their client in this one process: what CPU time the engine's threads did not use stays below one
/// hundredth of a core for each agent, progress events included.
#[tokio::test]
async fn agents_cost_little_while_a_trial_runs() {
    let ((_one, a), (_two, b)) = (agent().await, agent().await);
    let id = TrialId("cost".into());
    let listeners = b.prepare(&half(EndRole::Listener { address: LOOPBACK })).await.expect("prepared").listening;
    a.prepare(&half(EndRole::Opener)).await.expect("prepared");
    b.connect_trial(&id, &Connect::default()).await.expect("connected");
    a.connect_trial(&id, &Connect { listeners }).await.expect("connected");
    let _events = (a.events(&id).await.expect("events"), b.events(&id).await.expect("events"));
    let delay = Nanos::from_millis(50);
    a.start(&id, delay).await.and(b.start(&id, delay).await).expect("started");
    let (opened, listened) = tokio::join!(a.finish(&id), b.finish(&id));

    let seen = [opened.expect("a result").observation, listened.expect("a result").observation];
    assert!(seen.iter().all(|seen| seen.threads.len() == 1), "an engine thread was not seen: {seen:?}");
    let engine: u64 = seen.iter().flat_map(|seen| &seen.threads).map(|thread| thread.cpu.get()).sum();
    let rest = seen[0].agent_cpu - Nanos::new(engine);
    let share = rest.as_secs_f64() / seen[0].window.as_secs_f64();
    eprintln!("two agents and their client used {:.2} % of a core", share * 100.0);
    assert!(share < 0.02, "{rest} in {}", seen[0].window);
}
