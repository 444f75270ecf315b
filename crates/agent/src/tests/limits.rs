//! What an agent's limits refuse, and what they end.

use super::scripted::{Fault, Point, Scripted};
use super::*;
use linerate_control::AgentError;
use linerate_engine::{Demand, Needs};
use linerate_model::{FailureKind, LinkId, Power, Preparation};
use linerate_units::BitRate;

async fn refused(client: &Client, id: &str, parts: &[&str]) {
    let error = client.open(&assignment(id)).await.expect_err("beyond the limits");
    assert!(matches!(error, AgentError::Refused { .. }), "{error:?}");
    for part in parts {
        assert!(error.to_string().contains(part), "{error}");
    }
}

#[tokio::test]
async fn rates_and_sessions_are_summed_until_a_session_ends() {
    let engine = Scripted::new();
    let agent = agent_with(engine.boxed(), |options| {
        options.limits = Limits { max_rate: Some(BitRate::per_second(10_000_000)), max_trials: 2, ..Limits::default() };
    })
    .await;
    let client = connect(&agent).await;
    let sends = |bits: Option<u64>| engine.change(|script| script.demand.sends = bits.map(BitRate::per_second));
    sends(None);
    refused(&client, "unbound", &["10 Mbit/s", "--max-rate"]).await;
    sends(Some(8_000_000));
    let first = client.open(&assignment("first")).await.expect("within the limits");
    refused(&client, "second", &["16 Mbit/s", "--max-rate"]).await;
    sends(Some(2_000_000));
    let _second = client.open(&assignment("second")).await.expect("the rest");
    sends(Some(0));
    refused(&client, "third", &["2 trials", "--max-trials"]).await;
    assert_eq!(client.close(first.id()).await.expect("closed"), Vec::<String>::new());
    sends(Some(8_000_000));
    let _third = client.open(&assignment("third")).await.expect("there is room again");
    assert_eq!(metric(&agent, "linerate_sessions_total{task=\"stream\",state=\"refused\"}").await, 3);
}

/// The attack: who holds a URL has the agent look for ports of a host that it is not to reach, by what its errors say.
#[tokio::test]
async fn ports_of_an_address_that_is_not_allowed_cannot_be_told_apart() {
    let engine = Scripted::new();
    let agent = agent_with(engine.boxed(), |options| {
        options.limits.allowed_peers = vec!["127.0.0.1/32".parse().expect("a network")];
    })
    .await;
    let client = connect(&agent).await;
    let [open, closed] = [(); 2].map(|()| std::net::TcpListener::bind("127.0.0.2:0").expect("listens"));
    let (answers, refuses) = (open.local_addr().expect("bound"), closed.local_addr().expect("bound"));
    drop(closed);
    let mut looks = assignment("looks");
    looks.roles[0].connects = vec![LinkId(0)];
    let mut session = client.open(&looks).await.expect("within the limits");
    until(&mut session, |stage| matches!(stage, Stage::Listening { .. })).await;
    let mut told = Vec::new();
    for address in [answers, refuses] {
        let order = Order::Connect([(LinkId(0), address)].into());
        told.push(client.order(session.id(), &order).await.expect_err("not allowed").to_string());
    }
    assert!(told[0].contains("none of the networks that this agent allows"), "{told:?}");
    assert_eq!(told[0], told[1]);
    open.set_nonblocking(true).expect("sets");
    assert_eq!(open.accept().expect_err("nobody connects").kind(), std::io::ErrorKind::WouldBlock);
}

/// The attack: strangers have an agent send beside sessions that use up its limit of rate.
#[tokio::test]
async fn replies_to_strangers_have_what_sessions_leave_of_the_rate() {
    let engine = Scripted::with((Point::Preparing, Fault::Hold));
    let rate = BitRate::per_second(8_000_000);
    engine.change(|script| script.demand.sends = Some(rate));
    let agent = agent_with(engine.boxed(), |options| options.limits.max_rate = Some(rate)).await;
    let client = connect(&agent).await;
    let may_reply = || agent.stranger_replies().allow(100, linerate_sys::clock::now());
    assert!(may_reply(), "no session is under way");
    let mut session = client.open(&assignment("takes-all")).await.expect("within the limits");
    until(&mut session, |stage| matches!(stage, Stage::Preparing { doing: Some(Preparation::MakingFiles) })).await;
    assert!(!may_reply(), "the session has all of the rate");
    client.close(session.id()).await.expect("closed");
    assert!(may_reply(), "the session is over");
}

/// The attack: sessions that each keep to a limit of their own take the host's memory together.
#[tokio::test]
async fn memory_is_taken_before_work_begins_and_given_back_when_it_ends() {
    let engine = Scripted::new();
    let agent = agent_with(engine.boxed(), |options| options.limits.budget.memory = ByteCount::new(1_000_000)).await;
    let client = connect(&agent).await;
    let takes = |memory| engine.change(|script| script.demand.needs = Needs { memory, ..Needs::default() });
    takes(1_000_001);
    refused(&client, "large", &["1 MB", "--max-memory"]).await;
    assert_eq!(engine.under_way(), 0, "it was refused before any work");
    takes(600_000);
    let first = client.open(&assignment("first")).await.expect("within the budget");
    refused(&client, "second", &["1.2 MB of memory"]).await;
    client.close(first.id()).await.expect("closed");
    let _second = client.open(&assignment("second")).await.expect("it was given back");
}

#[tokio::test]
async fn a_stopped_session_counts_until_its_thread_has_returned() {
    let engine = Scripted::with((Point::Connecting, Fault::Ignore));
    let agent = agent_with(engine.boxed(), |options| options.limits.max_trials = 1).await;
    let client = connect(&agent).await;
    let mut session = client.open(&assignment("slow")).await.expect("opened");
    until(&mut session, |stage| matches!(stage, Stage::Listening { .. })).await;
    client.order(session.id(), &connect_nothing()).await.expect("it listens");
    let ignores = async {
        while engine.ignoring() == 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), ignores).await.expect("its thread ignores what it is told");
    drop(session);
    refused(&client, "next", &["--max-trials"]).await;
    assert_eq!(metric(&agent, "linerate_sessions_under_way").await, 1);

    let id = SessionId("slow".into());
    let closing = tokio::spawn({
        let (client, id) = (client.clone(), id.clone());
        async move { client.close(&id).await }
    });
    tokio::task::yield_now().await;
    assert_eq!(engine.under_way(), 1);
    engine.let_go();
    closing.await.expect("no panic").expect("closed");
    assert_eq!(engine.under_way(), 0, "it was closed only after its thread had returned");
    engine.change(|script| script.fault = None);
    let mut next = client.open(&assignment("next")).await.expect("there is room again");
    assert_eq!(lead(&client, &mut next).await, Stage::Done);
}

#[tokio::test]
async fn a_task_without_a_length_is_ended_at_the_longest_time() {
    let engine = Scripted::with((Point::Running, Fault::Hold));
    engine.change(|script| script.demand.time = None);
    let agent = agent_with(engine.boxed(), |options| options.limits.max_time = Nanos::from_millis(200)).await;
    let client = connect(&agent).await;
    let mut session = client.open(&assignment("endless")).await.expect("opened");
    let Stage::Failed(failure) = lead(&client, &mut session).await else { panic!("it went on") };
    assert_eq!(failure.kind, FailureKind::Limit);
    assert!(failure.message.contains("200 ms") && failure.message.contains("--max-time"), "{failure:?}");
    assert_eq!(engine.under_way(), 0);
}

/// Attack: a session prepares for as long as it likes, on a host whose owner set a limit of time.
#[tokio::test]
async fn preparing_is_ended_at_the_longest_time_however_long_it_may_take() {
    let engine = Scripted::with((Point::Preparing, Fault::Hold));
    engine.change(|script| {
        script.demand.time = None;
        script.demand.set_up = Nanos::from_secs(3600);
    });
    let agent = agent_with(engine.boxed(), |options| {
        options.limits.max_time = Nanos::from_millis(200);
        options.timeouts.unordered = Duration::from_millis(100);
    })
    .await;
    let client = connect(&agent).await;
    let mut session = client.open(&assignment("endless")).await.expect("opened");
    let Stage::Failed(failure) = lead(&client, &mut session).await else { panic!("it went on") };
    assert_eq!(failure.kind, FailureKind::Limit);
    assert!(failure.message.contains("preparing") && failure.message.contains("--max-time"), "{failure:?}");
    assert_eq!(engine.under_way(), 0);
}

#[tokio::test]
async fn what_is_exclusive_or_needs_leave_is_refused_over_the_wire() {
    let engine = Scripted::new();
    engine.change(|script| {
        script.demand =
            Demand { needs: Needs::of(Power::Frames), exclusive: Some("raw frames"), ..script.demand.clone() };
    });
    let shy = agent_with(engine.boxed(), |_| ()).await;
    refused(&connect(&shy).await, "frames", &["--allow-frames"]).await;
    let agent = agent_with(engine.boxed(), |options| options.limits.frames = AllowedInterfaces::All).await;
    let client = connect(&agent).await;
    let _first = client.open(&assignment("one")).await.expect("allowed");
    let error = client.open(&assignment("two")).await.expect_err("taken").to_string();
    assert!(error.contains("raw frames"), "{error}");
}
