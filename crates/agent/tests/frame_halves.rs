//! A half of a trial with raw frames: what an agent refuses, and that its place is free again afterwards.

use futures_util::StreamExt as _;
use linerate_agent::{
    Agent, AgentError, AgentOptions, Client, HalfStage, Identity, Limits, NfsService, Timeouts, Token,
};
use linerate_model::{
    FrameEngine, FrameForm, FrameHalf, FrameHeaders, FramePayload, FrameStream, FrameTrial, HostName, Mac,
};
use linerate_units::{FrameRate, FrameSize, Nanos};
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, TcpListener};

async fn agent(frames: bool) -> (Agent, Client) {
    let agent = Agent::start(AgentOptions {
        listener: TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port"),
        advertise: None,
        identity: Identity::generate().expect("an identity"),
        token: Token::generate(),
        name: HostName::from("a"),
        limits: Limits { frames, max_time: Nanos::from_secs(60), ..Limits::default() },
        timeouts: Timeouts::default(),
        nfs: NfsService::default(),
        link_speeds: BTreeMap::new(),
        data_addresses: Vec::new(),
    })
    .await
    .expect("an agent");
    let client = Client::connect(agent.join()).await.expect("a client");
    (agent, client)
}

/// The half of host a, whose port there is not.
fn half(time: Nanos, ports: Vec<u16>) -> FrameHalf {
    let stream = FrameStream {
        from: 0,
        to: 1,
        size: FrameSize::with_fcs(64).expect("a size"),
        rate: Some(FrameRate::per_second(100)),
        count: None,
        after: Nanos::default(),
        time: None,
        headers: FrameHeaders {
            source_mac: Mac([2, 0, 0, 0, 0, 1]),
            destination_mac: Mac([2, 0, 0, 0, 0, 2]),
            vlans: Vec::new(),
            source: "198.18.0.1".parse().expect("an address"),
            destination: "198.18.0.2".parse().expect("an address"),
            payload: FramePayload::Udp { source_port: 7, destination_port: 7 },
        },
        form: FrameForm::default(),
    };
    let trial = FrameTrial {
        name: "half".into(),
        ports: vec!["a:nosuch0".into(), "b:nosuch0".into()],
        streams: vec![stream],
        time,
        settle: Nanos::default(),
        engine: FrameEngine::Auto,
        hosts: Vec::new(),
    };
    FrameHalf { trial, ports, tag: 7 }
}

/// Everything the agent says of a half until it is over, in words.
async fn told(client: &Client, half: &FrameHalf) -> Vec<String> {
    match client.frame_half(half).await {
        Ok(stages) => {
            let word = |stage: Result<HalfStage, AgentError>| {
                stage.map_or_else(|error| error.to_string(), |stage| format!("{stage:?}"))
            };
            stages.map(word).collect().await
        }
        Err(error) => vec![error.to_string()],
    }
}

#[tokio::test]
async fn a_half_keeps_the_agents_limits() {
    let second = Nanos::from_secs(1);
    let (_shy, client) = agent(false).await;
    let refused = told(&client, &half(second, vec![0])).await;
    assert!(refused[0].contains("--allow-frames"), "{refused:?}");

    let (_agent, client) = agent(true).await;
    let refused = told(&client, &half(Nanos::from_secs(61), vec![0])).await;
    assert!(refused[0].contains("this agent allows 60"), "{refused:?}");
}

/// Each failure names what is wrong, and leaves the place to the next.
#[tokio::test]
async fn a_half_that_cannot_be_made_ready_fails_and_is_gone() {
    let (_agent, client) = agent(true).await;
    let second = Nanos::from_secs(1);
    for (ports, word) in [(vec![0], "no port nosuch0 here"), (vec![0, 9], "port 9 of 2")] {
        let stages = told(&client, &half(second, ports)).await;
        let last = stages.last().expect("the agent says something");
        assert!(last.contains(word), "{stages:?}");
        assert!(stages.len() <= 2, "nothing is counted without ports: {stages:?}");
    }
}

#[tokio::test]
async fn a_word_out_of_turn_is_refused() {
    let (_agent, client) = agent(true).await;
    let half = half(Nanos::from_secs(1), vec![0]);
    let unknown = client.start_half(7, Nanos::default()).await.expect_err("there is none yet").to_string();
    assert!(unknown.contains("no half of a trial tagged `7`"), "{unknown}");

    told(&client, &half).await;
    let late = client.start_half(7, Nanos::default()).await.expect_err("it has failed").to_string();
    assert!(late.contains("cannot start now"), "{late}");
    let late = client.finish_half(7, &half.trial).await.expect_err("it has failed").to_string();
    assert!(late.contains("cannot finish now"), "{late}");
    let other = client.finish_half(8, &half.trial).await.expect_err("another's").to_string();
    assert!(other.contains("tagged `8`"), "{other}");
}
