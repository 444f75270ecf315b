//! Agents on loopback, asked over the wire, with engines that do as a test says.

mod access;
mod confinement;
mod demonstration;
mod descriptors;
mod fleet;
mod frames;
mod invitations;
mod lifecycle;
mod limits;
mod pairing;
mod scripted;
mod series;
mod streams;
mod tasks;

use crate::{Agent, AgentOptions, AllowedInterfaces, EngineOptions, Limits, Timeouts};
use futures_util::StreamExt as _;
use linerate_control::{Client, PROTOCOL, PROTOCOL_HEADER, SessionHandle, client_config};
use linerate_engine::Engine;
use linerate_model::{
    AgentUrl, Assignment, Endpoints, HostName, Order, Role, RoleKind, SessionId, SessionKey, Stage, StreamTask, Task,
    Timing, Transport,
};
use linerate_units::{ByteCount, Nanos};
use std::net::{IpAddr, Ipv4Addr, TcpListener};
use std::time::{Duration, Instant};

const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// Longer than anything takes that a test waits for.
const SOON: Duration = Duration::from_secs(60);

/// An agent of its own for one test, with the agent's own engines.
async fn agent(change: impl FnOnce(&mut AgentOptions)) -> Agent {
    Agent::start(options(change)).await.expect("an agent")
}

async fn agent_with(engines: Vec<Box<dyn Engine>>, change: impl FnOnce(&mut AgentOptions)) -> Agent {
    Agent::start_with(options(change), engines).await.expect("an agent")
}

fn options(change: impl FnOnce(&mut AgentOptions)) -> AgentOptions {
    let listener = TcpListener::bind((LOOPBACK, 0)).expect("a port");
    let mut options = AgentOptions::new(listener, HostName::from("test")).expect("an identity");
    options.data_addresses = vec![LOOPBACK];
    change(&mut options);
    options
}

async fn connect(agent: &Agent) -> Client {
    Client::connect(agent.url()).await.expect("a client")
}

/// Requests with nothing in them but what the test says.
struct Raw {
    http: reqwest::Client,
    url: AgentUrl,
}

impl Raw {
    fn new(agent: &Agent) -> Self {
        let url = agent.url().clone();
        let tls = client_config(&url.fingerprint).expect("TLS");
        let http =
            reqwest::Client::builder().tls_backend_preconfigured(tls).http1_only().no_proxy().build().expect("HTTP");
        Self { http, url }
    }

    fn bare(&self, method: reqwest::Method, path: &str) -> reqwest::RequestBuilder {
        self.http.request(method, format!("https://{}{path}", self.url.address()))
    }

    fn admitted(&self, method: reqwest::Method, path: &str) -> reqwest::RequestBuilder {
        self.bare(method, path).bearer_auth(&self.url.token).header(PROTOCOL_HEADER, PROTOCOL)
    }
}

/// Status and body of the answer.
async fn answer(request: reqwest::RequestBuilder) -> (u16, serde_json::Value) {
    let response = request.send().await.expect("an answer");
    let status = response.status().as_u16();
    let text = response.text().await.expect("a body");
    (status, serde_json::from_str(&text).unwrap_or(serde_json::Value::String(text)))
}

/// An assignment with one role and no links.
fn assignment(id: &str) -> Assignment {
    Assignment {
        id: SessionId(id.to_owned()),
        key: SessionKey(*b"0123456789abcdef"),
        task: Task::Stream(StreamTask::plain(Transport::Tcp, ByteCount::new(16_384))),
        timing: Timing::of(Nanos::from_millis(10), Nanos::from_millis(100)),
        roles: vec![Role { kind: RoleKind::Client { path: 0 }, listens: Vec::new(), connects: Vec::new() }],
        password: None,
        sampling: linerate_model::Sampling::default(),
    }
}

const START: Order = Order::Start { delay: Nanos::from_millis(5) };

fn connect_nothing() -> Order {
    Order::Connect(Endpoints::new())
}

/// Follows a session until a stage that is `wanted`, and returns it.
async fn until(session: &mut SessionHandle, wanted: fn(&Stage) -> bool) -> Stage {
    let follow = async {
        loop {
            let stage = session.next().await.expect("a stage").expect("the agent is there");
            if wanted(&stage) {
                return stage;
            }
            assert!(!stage.is_last(), "{stage:?}");
        }
    };
    tokio::time::timeout(SOON, follow).await.expect("the stage comes")
}

/// Leads a session through all its stages and returns the last.
async fn lead(client: &Client, session: &mut SessionHandle) -> Stage {
    let id = session.id().clone();
    let follow = async {
        loop {
            let stage = session.next().await.expect("a stage").expect("the agent is there");
            let order = match stage {
                Stage::Listening { .. } => connect_nothing(),
                Stage::Ready(_) => START,
                Stage::Sent => Order::Drain,
                _ if stage.is_last() => return stage,
                _ => continue,
            };
            client.order(&id, &order).await.expect("in order");
        }
    };
    tokio::time::timeout(SOON, follow).await.expect("the session ends")
}

/// The value of a sample on the agent's metrics page.
async fn metric(agent: &Agent, sample: &str) -> u64 {
    let raw = Raw::new(agent);
    let response = raw.admitted(reqwest::Method::GET, "/metrics").send().await.expect("an answer");
    let page = response.text().await.expect("a page");
    let line = page.lines().find_map(|line| line.strip_prefix(sample)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {sample} in\n{page}")).parse().expect("a number")
}
