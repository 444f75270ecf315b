//! The life of trials, over real agents and the real engine.

use super::*;
use crate::AgentError;
use futures_util::StreamExt as _;
use linerate_model::{Connect, HalfResult, Progress, TransactSpec};
use linerate_units::OpRate;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

const DELAY: Nanos = Nanos::from_millis(50);

/// Prepares and connects a trial of one path; gives the listening address.
async fn connected(a: &Client, b: &Client, id: &TrialId, stream: StreamSpec, measure: Nanos) -> SocketAddr {
    connected_for(a, b, id, Workload::Stream(stream), measure).await
}

async fn connected_for(a: &Client, b: &Client, id: &TrialId, workload: Workload, measure: Nanos) -> SocketAddr {
    let with = |role| {
        let mut half = half(&id.0, role, stream(Transport::Tcp));
        half.timing.measure = measure;
        half.workload = workload.clone();
        half
    };
    let (opens, listens) = (with(EndRole::Opener), with(EndRole::Listener { address: LOOPBACK }));
    let address = b.prepare(&listens).await.expect("a listener").listening[&0];
    a.prepare(&opens).await.expect("an opener");
    b.connect_trial(id, &Connect::default()).await.expect("nothing to connect");
    a.connect_trial(id, &Connect { listeners: BTreeMap::from([(0, address)]) }).await.expect("a connection");
    address
}

async fn started(a: &Client, b: &Client, id: &TrialId) {
    let (one, two) = tokio::join!(a.start(id, DELAY), b.start(id, DELAY));
    one.and(two).expect("started");
}

/// Runs a trial from agent to agent.
async fn run(stream: StreamSpec) -> (HalfResult, HalfResult, Vec<Progress>) {
    let (_one, a) = agent_and_client(|_| ()).await;
    let (_two, b) = agent_and_client(|_| ()).await;
    let id = TrialId("run".into());
    connected(&a, &b, &id, stream, Nanos::from_millis(1_000)).await;
    let events = b.events(&id).await.expect("events");
    started(&a, &b, &id).await;
    let (opened, listened, events) = tokio::join!(a.finish(&id), b.finish(&id), events.collect::<Vec<_>>());
    let events = events.into_iter().map(|event| event.expect("progress")).collect();
    (opened.expect("a result"), listened.expect("a result"), events)
}

fn check_events(events: &[Progress]) {
    let (last, before) = events.split_last().expect("at least one");
    assert!(last.done && before.iter().all(|progress| !progress.done), "{events:?}");
    assert!((4..=12).contains(&events.len()), "{} events for a second", events.len());
    assert!(events.is_sorted_by_key(|progress| progress.received_bytes) && last.received_bytes > 0, "{events:?}");
}

#[tokio::test]
async fn a_tcp_trial_is_counted_at_both_ends() {
    let (opened, listened, events) = run(StreamSpec { offered: None, ..stream(Transport::Tcp) }).await;
    let sent = opened.ends[0].sent.as_ref().expect("it sent").payload_bytes;
    let received = listened.ends[0].received.as_ref().expect("it received").payload_bytes;
    assert!(sent > 1 << 20 && received > 1 << 20, "sent {sent}, received {received}");
    assert!(received.abs_diff(sent) < sent / 4, "sent {sent}, received {received}");
    assert_eq!(opened.ends[0].interface.as_deref(), Some("lo"));
    assert_eq!(listened.ends[0].interface.as_deref(), Some("lo"));
    assert!(!listened.observation.cores.is_empty() && listened.observation.window.get() > 900_000_000);
    assert!(opened.started_unix_ns.abs_diff(listened.started_unix_ns) < 50_000_000, "they did not start together");
    check_events(&events);
}

#[tokio::test]
async fn a_udp_trial_is_counted_at_both_ends() {
    let (opened, listened, events) = run(stream(Transport::Udp)).await;
    let sent = opened.ends[0].sent.as_ref().expect("it sent").messages;
    let received = listened.ends[0].received.as_ref().expect("it received").arrived;
    // 8 Mbit/s in datagrams of 1,000 bytes for a second.
    assert!((950..=1_050).contains(&sent), "sent {sent}");
    assert!(received <= sent && received > 900, "sent {sent}, received {received}");
    for seen in [&opened.observation, &listened.observation] {
        assert_eq!(seen.threads.len(), 1, "the engine's thread was not seen: {seen:?}");
    }
    check_events(&events);
}

#[tokio::test]
async fn a_trial_goes_its_way_in_order_only() {
    let (_one, a) = agent_and_client(|_| ()).await;
    let (_two, b) = agent_and_client(|_| ()).await;
    let id = TrialId("order".into());
    let refused = |result: Result<(), AgentError>, part: &str| {
        let error = result.expect_err("out of order");
        assert!(matches!(error, AgentError::Rejected { .. }), "{error:?}");
        assert!(error.to_string().contains(part), "{error}");
    };
    refused(a.start(&id, DELAY).await, "no trial `order`");
    b.prepare(&listener("order")).await.expect("prepared");
    refused(b.prepare(&listener("order")).await.map(|_| ()), "already");
    refused(b.start(&id, DELAY).await, "has not been connected");
    refused(b.finish(&id).await.map(|_| ()), "has not been started");
    b.abort(&id).await.expect("aborted");

    connected(&a, &b, &id, stream(Transport::Tcp), Nanos::from_millis(200)).await;
    refused(a.connect_trial(&id, &Connect::default()).await, "connected already");
    refused(a.start(&id, Nanos::from_secs(31)).await, "30 s at most");
    started(&a, &b, &id).await;
    refused(a.start(&id, DELAY).await, "is running");
    let (one, two) = tokio::join!(a.finish(&id), b.finish(&id));
    one.and(two).expect("results");
    refused(a.finish(&id).await.map(|_| ()), "no trial `order`");
}

#[tokio::test]
async fn aborted_in_the_middle_it_lets_go_of_its_ports() {
    let (_one, a) = agent_and_client(|_| ()).await;
    let (two, b) = agent_and_client(|_| ()).await;
    for transport in [Transport::Tcp, Transport::Udp] {
        let id = TrialId("abort".into());
        let address = connected(&a, &b, &id, stream(transport), Nanos::from_secs(60)).await;
        started(&a, &b, &id).await;
        let mut events = b.events(&id).await.expect("events");
        let waiting = tokio::spawn({
            let (b, id) = (b.clone(), id.clone());
            async move { b.finish(&id).await }
        });
        while events.next().await.expect("an event").expect("progress").received_bytes == 0 {}
        assert!(metric(&two, "linerate_trials_running").await == 1);

        let since = Instant::now();
        let (one, other) = tokio::join!(a.abort(&id), b.abort(&id));
        one.and(other).expect("aborted");
        assert!(since.elapsed() < Duration::from_secs(2), "it took {:?}", since.elapsed());
        let error = waiting.await.expect("no panic").expect_err("there is no result");
        assert!(error.to_string().contains("aborted"), "{error}");
        assert!(events.map(|event| event.expect("progress").done).collect::<Vec<_>>().await.ends_with(&[true]));
        match transport {
            Transport::Tcp => assert!(std::net::TcpStream::connect(address).is_err(), "the port still listens"),
            Transport::Udp => drop(std::net::UdpSocket::bind(address).expect("the port is free")),
        }
        a.abort(&id).await.expect("aborting twice is fine");
    }
    assert!(metric(&two, "linerate_trials_running").await == 0);
    assert_eq!(metric(&two, "linerate_trials_total{state=\"aborted\"}").await, 2);
}

#[tokio::test]
async fn a_trial_nobody_starts_is_dropped() {
    let timeouts = Timeouts { unstarted: Duration::from_millis(300), ..Timeouts::default() };
    let (_agent, client) = agent_and_client(|options| options.timeouts = timeouts).await;
    let address = client.prepare(&listener("idle")).await.expect("prepared").listening[&0];
    drop(std::net::TcpStream::connect(address).expect("it listens"));
    tokio::time::sleep(Duration::from_millis(800)).await;
    assert!(std::net::TcpStream::connect(address).is_err(), "it still listens");
    client.prepare(&listener("idle")).await.expect("the name is free again");
}

#[tokio::test]
async fn a_result_nobody_fetches_is_dropped() {
    let timeouts = Timeouts {
        unstarted: Duration::from_millis(100),
        unfetched: Duration::from_millis(300),
        ..Timeouts::default()
    };
    let (_one, a) = agent_and_client(|options| options.timeouts = timeouts).await;
    let (_two, b) = agent_and_client(|_| ()).await;
    let id = TrialId("left".into());
    connected(&a, &b, &id, stream(Transport::Tcp), Nanos::from_millis(300)).await;
    started(&a, &b, &id).await;
    b.finish(&id).await.expect("this one was kept");
    tokio::time::sleep(Duration::from_millis(1_000)).await;
    let error = a.finish(&id).await.expect_err("it was dropped").to_string();
    assert!(error.contains("dropped"), "{error}");
}

#[tokio::test]
async fn a_peer_killed_in_the_middle_is_an_error_at_the_other() {
    let (_one, a) = agent_and_client(|_| ()).await;
    let (two, b) = agent_and_client(|_| ()).await;
    let id = TrialId("killed".into());
    connected(&a, &b, &id, stream(Transport::Tcp), Nanos::from_millis(1_500)).await;
    let mut events = b.events(&id).await.expect("events");
    started(&a, &b, &id).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    let since = Instant::now();
    two.shutdown().await;
    assert!(since.elapsed() < Duration::from_secs(1), "shutting down took {:?}", since.elapsed());

    let error = b.finish(&id).await.expect_err("the agent is gone");
    assert!(matches!(error, AgentError::Lost { .. }), "{error:?}");
    assert!(error.to_string().contains(b.address()) && error.to_string().contains("finish"), "{error}");
    // Told of the end, or cut off.
    assert!(loop {
        match events.next().await {
            Some(Ok(progress)) if !progress.done => {}
            Some(Ok(_)) | Some(Err(AgentError::Lost { .. })) => break true,
            Some(Err(_)) | None => break false,
        }
    });
    let error = a.finish(&id).await.expect_err("its peer is gone");
    assert!(matches!(error, AgentError::TrialFailed { .. }), "{error:?}");
}

#[tokio::test]
async fn a_listener_that_is_not_there_fails_the_trial_with_its_address() {
    let (agent, client) = agent_and_client(|_| ()).await;
    client.prepare(&half("nobody", EndRole::Opener, stream(Transport::Tcp))).await.expect("prepared");
    let gone = TcpListener::bind((LOOPBACK, 0)).expect("a port").local_addr().expect("an address");
    let id = TrialId("nobody".into());
    let error = client.connect_trial(&id, &Connect { listeners: BTreeMap::from([(0, gone)]) }).await;
    let error = error.expect_err("nobody listens");
    assert!(matches!(error, AgentError::TrialFailed { .. }), "{error:?}");
    assert!(error.to_string().contains(&gone.to_string()), "{error}");
    assert_eq!(metric(&agent, "linerate_trials_total{state=\"failed\"}").await, 1);
    client.prepare(&half("nobody", EndRole::Opener, stream(Transport::Tcp))).await.expect("the name is free again");
}

#[tokio::test]
async fn each_limit_refuses_by_name() {
    let (agent, client) = agent_and_client(|options| {
        options.limits = Limits {
            max_rate: Some(BitRate::per_second(10_000_000)),
            max_time: Nanos::from_secs(2),
            max_trials: 2,
            max_flows: 4,
            max_ends: 3,
            ..Limits::default()
        };
    })
    .await;
    let refused = async |spec: HalfSpec, parts: [&str; 2]| {
        let error = client.prepare(&spec).await.expect_err("beyond the limits");
        assert!(matches!(error, AgentError::Refused { .. }), "{error:?}");
        for part in parts {
            assert!(error.to_string().contains(part), "{error}");
        }
    };
    let with =
        |offered| half("x", EndRole::Listener { address: LOOPBACK }, StreamSpec { offered, ..stream(Transport::Tcp) });
    refused(with(None), ["10 Mbit/s", "--max-rate"]).await;
    refused(with(Some(Offered::PayloadBps(BitRate::per_second(10_000_001)))), ["10 Mbit/s", "--max-rate"]).await;
    let mut long = listener("x");
    long.timing.measure = Nanos::from_secs(2);
    refused(long, ["2.1 s", "--max-time"]).await;
    let mut wide = listener("x");
    wide.ends = (0..4).map(|path| EndSpec { path, role: wide.ends[0].role }).collect();
    refused(wide, ["4 ends", "allows 3"]).await;
    let flows = StreamSpec { flows: 5, ..stream(Transport::Tcp) };
    refused(half("x", EndRole::Opener, flows), ["5 flows", "--max-flows"]).await;

    // 8 Mbit/s are under way with the first; a second trial must do with the rest.
    client.prepare(&listener("first")).await.expect("within the limits");
    refused(listener("second"), ["16 Mbit/s", "--max-rate"]).await;
    let little = |id| {
        let offered = Some(Offered::PayloadBps(BitRate::per_second(500_000)));
        half(id, EndRole::Opener, StreamSpec { offered, ..stream(Transport::Tcp) })
    };
    client.prepare(&little("second")).await.expect("within the limits");
    refused(little("third"), ["2 trials", "--max-trials"]).await;
    client.abort(&TrialId("first".into())).await.expect("aborted");
    client.prepare(&little("third")).await.expect("there is room again");
    assert_eq!(metric(&agent, "linerate_trials_total{state=\"refused\"}").await, 7);
}

#[tokio::test]
async fn metrics_count() {
    let (one, a) = agent_and_client(|_| ()).await;
    let (two, b) = agent_and_client(|_| ()).await;
    let id = TrialId("counted".into());
    connected(&a, &b, &id, stream(Transport::Tcp), Nanos::from_millis(300)).await;
    started(&a, &b, &id).await;
    let (opened, listened) = tokio::join!(a.finish(&id), b.finish(&id));
    let sent = opened.expect("a result").ends[0].sent.clone().expect("it sent").payload_bytes;
    let received = listened.expect("a result").ends[0].received.clone().expect("it received").payload_bytes;
    assert_eq!(metric(&one, "linerate_sent_bytes_total").await, sent);
    assert_eq!(metric(&two, "linerate_received_bytes_total").await, received);
    for state in ["started", "finished"] {
        assert_eq!(metric(&one, &format!("linerate_trials_total{{state=\"{state}\"}}")).await, 1);
    }
    assert_eq!(metric(&one, "linerate_requests_turned_away_total").await, 0);
}

#[tokio::test]
async fn metrics_count_the_bytes_of_transactions() {
    let (one, a) = agent_and_client(|_| ()).await;
    let (two, b) = agent_and_client(|_| ()).await;
    let id = TrialId("asked".into());
    let transact = TransactSpec {
        request_bytes: ByteCount::new(100),
        response_bytes: ByteCount::new(1_000),
        rate: Some(OpRate::per_second(1_000)),
        ..TransactSpec::plain(Transport::Tcp)
    };
    connected_for(&a, &b, &id, Workload::Transact(transact), Nanos::from_millis(300)).await;
    started(&a, &b, &id).await;
    let (asked, answered) = tokio::join!(a.finish(&id), b.finish(&id));
    answered.expect("a result");
    let completed = asked.expect("a result").ends[0].transactions.clone().expect("it asked").completed;
    assert!(completed > 100, "{completed} transactions");
    assert_eq!(metric(&one, "linerate_sent_bytes_total").await, completed * 100);
    assert_eq!(metric(&one, "linerate_received_bytes_total").await, completed * 1_000);
    // The other end's window is its own.
    for (sample, bytes) in [("linerate_received_bytes_total", 100), ("linerate_sent_bytes_total", 1_000)] {
        let counted = metric(&two, sample).await / bytes;
        assert!(counted.abs_diff(completed) < completed / 2, "{sample}: {counted} of {completed}");
    }
}

#[tokio::test]
async fn what_was_fetched_is_not_counted_as_aborted_later() {
    let timeouts = Timeouts { unstarted: Duration::from_millis(1_500), ..Timeouts::default() };
    let (one, a) = agent_and_client(|options| options.timeouts = timeouts).await;
    let (_two, b) = agent_and_client(|_| ()).await;
    let id = TrialId("fetched".into());
    let since = Instant::now();
    connected(&a, &b, &id, stream(Transport::Tcp), Nanos::from_millis(100)).await;
    started(&a, &b, &id).await;
    let (opened, listened) = tokio::join!(a.finish(&id), b.finish(&id));
    opened.and(listened).expect("results");
    assert!(since.elapsed() < timeouts.unstarted, "too slow to see anything: {:?}", since.elapsed());
    tokio::time::sleep(timeouts.unstarted).await;
    assert_eq!(metric(&one, "linerate_trials_total{state=\"finished\"}").await, 1);
    assert_eq!(metric(&one, "linerate_trials_total{state=\"aborted\"}").await, 0);
}

/// An abort does not make room while the engine is still in a call that cannot be cut short.
#[tokio::test]
async fn an_aborted_trial_counts_until_its_engine_has_ended() {
    let (agent, client) = agent_and_client(|options| options.limits.max_trials = 1).await;
    let silent = TcpListener::bind((LOOPBACK, 0)).expect("a port");
    let address = silent.local_addr().expect("an address");
    let id = TrialId("waits".into());
    let opener = half(&id.0, EndRole::Opener, stream(Transport::Tcp));
    client.prepare(&opener).await.expect("prepared");
    let connecting = tokio::spawn({
        let (client, id) = (client.clone(), id.clone());
        async move { client.connect_trial(&id, &Connect { listeners: BTreeMap::from([(0, address)]) }).await }
    });
    tokio::time::sleep(Duration::from_millis(300)).await;
    client.abort(&id).await.expect("aborted");
    assert!(!connecting.is_finished(), "the silent listener is given 5 s");
    let error = client.prepare(&listener("next")).await.expect_err("the engine is still at it").to_string();
    assert!(error.contains("--max-trials"), "{error}");

    let error = connecting.await.expect("no panic").expect_err("aborted");
    assert!(error.to_string().contains("was aborted"), "{error}");
    client.prepare(&opener).await.expect("there is room again, and the name is free");
    assert_eq!(metric(&agent, "linerate_trials_total{state=\"aborted\"}").await, 1);
    assert_eq!(metric(&agent, "linerate_trials_total{state=\"failed\"}").await, 0);
}

/// The value of a sample on the agent's metrics page.
async fn metric(agent: &Agent, sample: &str) -> u64 {
    let raw = Raw::new(agent);
    let response = raw.admitted(reqwest::Method::GET, "/metrics").send().await.expect("an answer");
    let page = response.text().await.expect("a page");
    let line = page.lines().find_map(|line| line.strip_prefix(sample)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {sample} in\n{page}")).parse().expect("a number")
}
