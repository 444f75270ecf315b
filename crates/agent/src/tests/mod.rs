//! Agents on loopback, asked over the wire.

mod access;
mod trials;

use crate::{
    Agent, AgentOptions, Client, Identity, Limits, NfsService, PROTOCOL, PROTOCOL_HEADER, Timeouts, Token, pin,
};
use linerate_model::{
    Direction, EndRole, EndSpec, HalfSpec, HostName, IpVersion, Join, Offered, ReceiveBy, SendBy, SocketOptions,
    StreamSpec, Timing, Transport, TrialId, TrialKey, Workload,
};
use linerate_units::{BitRate, ByteCount, Nanos};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, TcpListener};

pub(crate) const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// An agent of its own for one test.
async fn agent(change: impl FnOnce(&mut AgentOptions)) -> Agent {
    let mut options = AgentOptions {
        listener: TcpListener::bind((LOOPBACK, 0)).expect("a port"),
        advertise: None,
        identity: Identity::generate().expect("an identity"),
        token: Token::generate(),
        name: HostName::from("test"),
        limits: Limits::default(),
        timeouts: Timeouts::default(),
        nfs: NfsService::default(),
        link_speeds: BTreeMap::new(),
        data_addresses: vec![LOOPBACK],
    };
    change(&mut options);
    Agent::start(options).await.expect("an agent")
}

async fn agent_and_client(change: impl FnOnce(&mut AgentOptions)) -> (Agent, Client) {
    let agent = agent(change).await;
    let client = Client::connect(agent.join()).await.expect("a client");
    (agent, client)
}

/// Requests with nothing in them but what the test says.
struct Raw {
    http: reqwest::Client,
    join: Join,
}

impl Raw {
    fn new(agent: &Agent) -> Self {
        let join = agent.join().clone();
        let tls = pin::client_config(&join.fingerprint).expect("TLS");
        let http =
            reqwest::Client::builder().tls_backend_preconfigured(tls).http1_only().no_proxy().build().expect("HTTP");
        Self { http, join }
    }

    fn bare(&self, method: reqwest::Method, path: &str) -> reqwest::RequestBuilder {
        self.http.request(method, format!("https://{}{path}", self.join.address()))
    }

    fn admitted(&self, method: reqwest::Method, path: &str) -> reqwest::RequestBuilder {
        self.bare(method, path).bearer_auth(&self.join.token).header(PROTOCOL_HEADER, PROTOCOL)
    }
}

/// Status and body of the answer.
async fn answer(request: reqwest::RequestBuilder) -> (u16, serde_json::Value) {
    let response = request.send().await.expect("an answer");
    let status = response.status().as_u16();
    let text = response.text().await.expect("a body");
    (status, serde_json::from_str(&text).unwrap_or(serde_json::Value::String(text)))
}

pub(crate) fn stream(transport: Transport) -> StreamSpec {
    StreamSpec {
        transport,
        ip: IpVersion::V4,
        message_bytes: ByteCount::new(if transport == Transport::Tcp { 16_384 } else { 1_000 }),
        flows: 1,
        direction: Direction::Send,
        offered: Some(Offered::PayloadBps(BitRate::per_second(8_000_000))),
        offload: false,
        send_by: SendBy::Auto,
        receive_by: ReceiveBy::Copy,
        socket: SocketOptions::default(),
    }
}

/// A half of a short trial with one path.
pub(crate) fn half(id: &str, role: EndRole, stream: StreamSpec) -> HalfSpec {
    HalfSpec {
        id: TrialId(id.to_owned()),
        key: TrialKey(*b"0123456789abcdef"),
        workload: Workload::Stream(stream),
        timing: Timing { warmup: Nanos::from_millis(100), measure: Nanos::from_millis(500) },
        ends: vec![EndSpec { path: 0, role }],
    }
}

fn listener(id: &str) -> HalfSpec {
    half(id, EndRole::Listener { address: LOOPBACK }, stream(Transport::Tcp))
}
