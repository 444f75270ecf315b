//! The life of sessions: every stage, and every way to end there.

use super::scripted::{Fault, Point, Scripted};
use super::*;
use linerate_control::AgentError;
use linerate_model::{FailureKind, HostCounts, LinkId, RoleCounts, SessionFailure, Window};

/// Sessions that nobody follows are stopped at once.
const NO_GRACE: Duration = Duration::ZERO;

/// The stages at which an engine waits for an order, and the points at which a script can hold it.
#[derive(Debug, Clone, Copy)]
enum At {
    Waiting(fn(&Stage) -> bool),
    Held(Point),
}

fn everywhere() -> Vec<At> {
    let listening: fn(&Stage) -> bool = |stage| matches!(stage, Stage::Listening { .. });
    let ready: fn(&Stage) -> bool = |stage| matches!(stage, Stage::Ready(_));
    let sent: fn(&Stage) -> bool = |stage| matches!(stage, Stage::Sent);
    let held = Point::ALL.into_iter().map(At::Held);
    [listening, ready, sent].into_iter().map(At::Waiting).chain(held).collect()
}

/// Opens a session and leads it to `at`. The engine stays there until it is stopped.
async fn lead_to(client: &Client, engine: &Scripted, at: At) -> SessionHandle {
    engine.change(|script| {
        script.fault = match at {
            At::Held(point) => Some((point, Fault::Hold)),
            At::Waiting(_) => None,
        };
        script.remains = vec![String::from("/scratch/left")];
    });
    let mut session = client.open(&assignment("led")).await.expect("opened");
    let id = session.id().clone();
    let ordered = |point: Point| match point {
        Point::Preparing => 0,
        Point::Connecting => 1,
        Point::Starting | Point::Running => 2,
        Point::Draining => 3,
    };
    let orders = match at {
        At::Waiting(_) => usize::MAX,
        At::Held(point) => ordered(point),
    };
    let mut given = 0;
    let follow = async {
        loop {
            if given == orders {
                return;
            }
            let stage = session.next().await.expect("a stage").expect("the agent is there");
            if matches!(at, At::Waiting(here) if here(&stage)) {
                return;
            }
            let order = match stage {
                Stage::Listening { .. } => connect_nothing(),
                Stage::Ready(_) => START,
                Stage::Sent => Order::Drain,
                _ => continue,
            };
            client.order(&id, &order).await.expect("in order");
            given += 1;
        }
    };
    tokio::time::timeout(SOON, follow).await.expect("it gets there");
    session
}

/// A window without a warm-up.
fn window(measure: Nanos) -> Window {
    Window { measure, ..Window::default() }
}

pub(super) async fn last(session: SessionHandle) -> Stage {
    let all = session.map(|stage| stage.expect("the agent is there")).collect::<Vec<_>>();
    tokio::time::timeout(SOON, all).await.expect("it ends").pop().expect("a stage")
}

pub(super) fn failure(stage: Stage) -> SessionFailure {
    match stage {
        Stage::Failed(failure) => failure,
        other => panic!("it ended as {other:?}"),
    }
}

/// Waits until the agent has no session under way, and the engine neither.
async fn all_over(agent: &Agent, engine: &Scripted) {
    let over = async {
        while metric(agent, "linerate_sessions_under_way").await > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(SOON, over).await.expect("all sessions end");
    assert_eq!(engine.under_way(), 0);
}

#[tokio::test]
async fn a_session_ends_with_counts_that_can_be_fetched_again() {
    let engine = Scripted::new();
    engine.change(|script| {
        script.remains = vec![String::from("/scratch/left")];
        script.window = Some(window(Nanos::from_millis(200)));
    });
    let agent = agent_with(engine.boxed(), |_| ()).await;
    let client = connect(&agent).await;
    let begun = Instant::now();
    let mut session = client.open(&assignment("whole")).await.expect("opened");
    let id = session.id().clone();
    assert_eq!(lead(&client, &mut session).await, Stage::Done);
    assert!(session.next().await.is_none(), "nothing follows the last stage");
    drop(session);

    let counts: HostCounts = client.counts(&id).await.expect("counts");
    assert_eq!(client.counts(&id).await.expect("the same"), counts);
    assert_eq!(counts.remains, ["/scratch/left"]);
    // The thread that watches may wake late at either edge, but it watched this window and no other.
    let watched = Duration::from(counts.observation.window);
    assert!(!counts.observation.cores.is_empty(), "{:?}", counts.observation);
    assert!(!watched.is_zero() && watched <= begun.elapsed(), "{watched:?} of 200 ms");
    assert!(matches!(counts.roles[..], [RoleCounts::Flows(_)]));
    for (sample, value) in [
        ("linerate_sessions_total{task=\"stream\",state=\"opened\"}", 1),
        ("linerate_sessions_total{task=\"stream\",state=\"finished\"}", 1),
        ("linerate_sessions_total{task=\"stream\",state=\"stopped\"}", 0),
        ("linerate_sent_bytes_total", 1_000),
        ("linerate_received_bytes_total", 10),
    ] {
        assert_eq!(metric(&agent, sample).await, value, "{sample}");
    }

    assert_eq!(client.close(&id).await.expect("closed"), ["/scratch/left"]);
    let error = client.counts(&id).await.expect_err("it was closed").to_string();
    assert!(error.contains("no session `whole`"), "{error}");
    assert_eq!(client.close(&id).await.expect("closing what is not there is fine"), Vec::<String>::new());
}

#[tokio::test]
async fn an_order_at_another_stage_is_refused_and_names_the_stage() {
    let engine = Scripted::new();
    let agent = agent_with(engine.boxed(), |_| ()).await;
    let client = connect(&agent).await;
    let id = SessionId("led".into());
    let orders = [connect_nothing(), START, Order::Drain];
    for order in &orders {
        let error = client.order(&id, order).await.expect_err("there is none").to_string();
        assert!(error.contains("no session `led`"), "{error}");
    }
    for at in everywhere() {
        let session = lead_to(&client, &engine, at).await;
        // How many orders were given, and whether it waits for the next one.
        let (given, waits, stage): (usize, bool, &[&str]) = match at {
            At::Waiting(here) if here(&Stage::Sent) => (2, true, &["waits for the order to drain"]),
            At::Waiting(here) if here(&Stage::Ready(Default::default())) => {
                (1, true, &["waits for the order to start"])
            }
            At::Waiting(_) => (0, true, &["waits for the order to connect"]),
            At::Held(Point::Preparing) => (0, false, &["is being prepared"]),
            At::Held(Point::Connecting) => (1, false, &["is connecting"]),
            At::Held(Point::Starting | Point::Running) => (2, false, &["was started", "is running"]),
            At::Held(Point::Draining) => (3, false, &["is draining"]),
        };
        for order in &orders[..given] {
            client.order(&id, order).await.expect("a repeated order changes nothing");
        }
        for order in orders[given..].iter().skip(usize::from(waits)) {
            let error = client.order(&id, order).await.expect_err("out of order");
            assert!(matches!(error, AgentError::Rejected { .. }), "{error:?}");
            assert!(stage.iter().any(|stage| error.to_string().contains(stage)), "{at:?}: {error}");
        }
        let error = client.counts(&id).await.expect_err("not done").to_string();
        assert!(error.contains("no counts yet"), "{error}");
        let error = client.open(&assignment("led")).await.expect_err("its name is taken").to_string();
        assert!(error.contains("a session `led` already"), "{error}");
        drop(session);
        client.close(&id).await.expect("closed");
    }
}

#[tokio::test]
async fn orders_that_lack_something_leave_the_session_waiting() {
    let engine = Scripted::new();
    engine.change(|script| script.listens = vec![LinkId(0), LinkId(700)]);
    let agent = agent_with(engine.boxed(), |_| ()).await;
    let client = connect(&agent).await;
    let mut assignment = assignment("lacking");
    assignment.roles[0].connects = vec![LinkId(3)];
    let mut session = client.open(&assignment).await.expect("opened");
    let listening = until(&mut session, |stage| matches!(stage, Stage::Listening { .. })).await;
    let here = [LinkId(0), LinkId(700)].map(|link| (link, ([127, 0, 0, 1], 7).into()));
    assert_eq!(listening, Stage::Listening { endpoints: here.into() }, "where it listens survives the wire");
    let error = client.order(&assignment.id, &connect_nothing()).await.expect_err("no address").to_string();
    assert!(error.contains("link 3"), "{error}");
    let endpoints = Endpoints::from([(LinkId(3), ([127, 0, 0, 1], 9).into())]);
    client.order(&assignment.id, &Order::Connect(endpoints)).await.expect("now it has one");
    until(&mut session, |stage| matches!(stage, Stage::Ready(_))).await;
    let late = Order::Start { delay: Nanos::from_secs(61) };
    let error = client.order(&assignment.id, &late).await.expect_err("too late").to_string();
    assert!(error.contains("60 s at most"), "{error}");
    client.order(&assignment.id, &START).await.expect("started");
    until(&mut session, |stage| matches!(stage, Stage::Sent)).await;
    client.order(&assignment.id, &Order::Drain).await.expect("all have sent");
    assert_eq!(last(session).await, Stage::Done);
}

/// However an engine ends at whatever stage, its session says so, and its place is free again.
#[tokio::test]
async fn an_engine_that_ends_at_any_stage_ends_its_session() {
    let engine = Scripted::new();
    let agent = agent_with(engine.boxed(), |options| options.limits.max_trials = 1).await;
    let client = connect(&agent).await;
    for point in Point::ALL {
        for (fault, kind, part) in [
            (Fault::Panic, FailureKind::Panic, String::from("the engine `scripted` panicked (as the script says)")),
            (Fault::Fail, FailureKind::Task, format!("failed while {point:?}")),
            (Fault::StopItself, FailureKind::Task, format!("a thread failed while {point:?}")),
        ] {
            engine.change(|script| {
                script.fault = Some((point, fault));
                script.remains = vec![format!("/scratch/{point:?}")];
            });
            let mut session = client.open(&assignment("ends")).await.expect("there is room");
            let id = session.id().clone();
            let failure = failure(lead(&client, &mut session).await);
            assert_eq!(failure.kind, kind, "{point:?} {fault:?}: {failure:?}");
            assert!(failure.message.contains(&part), "{failure:?}");
            let remains = if fault == Fault::Panic { Vec::new() } else { vec![format!("/scratch/{point:?}")] };
            assert_eq!(failure.remains, remains);
            let error = client.counts(&id).await.expect_err("it failed");
            assert!(matches!(error, AgentError::Failed { .. }) && error.to_string().contains(&part), "{error:?}");
            assert_eq!(client.close(&id).await.expect("closed"), remains);
        }
    }
    let failed = metric(&agent, "linerate_sessions_total{task=\"stream\",state=\"failed\"}").await;
    assert_eq!(failed, 3 * Point::ALL.len() as u64);
    engine.change(|script| script.fault = None);
    let mut session = client.open(&assignment("ends")).await.expect("there is room");
    assert_eq!(lead(&client, &mut session).await, Stage::Done);
}

#[tokio::test]
async fn a_stream_lost_at_any_stage_stops_the_session() {
    let engine = Scripted::new();
    let agent = agent_with(engine.boxed(), |options| options.timeouts.unfollowed = NO_GRACE).await;
    let client = connect(&agent).await;
    for at in everywhere() {
        drop(lead_to(&client, &engine, at).await);
        all_over(&agent, &engine).await;
        let error = client.counts(&SessionId("led".into())).await.expect_err("it was stopped").to_string();
        assert!(error.contains("closed its connection"), "{at:?}: {error}");
    }
    let stopped = metric(&agent, "linerate_sessions_total{task=\"stream\",state=\"stopped\"}").await;
    assert_eq!(stopped, everywhere().len() as u64);
}

/// Something on the way to an agent that breaks connections, as a NAT does that forgets them.
struct Middlebox {
    port: u16,
    breaks: tokio::sync::broadcast::Sender<()>,
}

impl Middlebox {
    async fn before(agent: &Agent) -> Self {
        let listener = tokio::net::TcpListener::bind((LOOPBACK, 0)).await.expect("binds");
        let port = listener.local_addr().expect("bound").port();
        let (breaks, agent) = (tokio::sync::broadcast::Sender::new(1), agent.url().address());
        let all = breaks.clone();
        tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                let (mut broken, agent) = (all.subscribe(), agent.clone());
                tokio::spawn(async move {
                    let mut server = tokio::net::TcpStream::connect(agent).await.expect("connects");
                    tokio::select! {
                        _ = tokio::io::copy_bidirectional(&mut client, &mut server) => {}
                        _ = broken.recv() => {}
                    }
                });
            }
        });
        Self { port, breaks }
    }

    fn break_all(&self) {
        self.breaks.send(()).expect("there are connections");
    }
}

#[tokio::test]
async fn broken_connections_cost_neither_the_session_nor_its_counts() {
    let engine = Scripted::new();
    let agent = agent_with(engine.boxed(), |options| options.limits.max_trials = 1).await;
    let middlebox = Middlebox::before(&agent).await;
    let url = AgentUrl { port: middlebox.port, ..agent.url().clone() };
    let client = Client::connect(&url).await.expect("a client");
    for at in everywhere().into_iter().filter(|at| matches!(at, At::Waiting(_))) {
        let mut session = lead_to(&client, &engine, at).await;
        middlebox.break_all();
        assert_eq!(lead(&client, &mut session).await, Stage::Done, "{at:?}");
        middlebox.break_all();
        client.counts(session.id()).await.expect("its counts are kept");
        client.close(session.id()).await.expect("closed");
    }
    let opened = metric(&agent, "linerate_sessions_total{task=\"stream\",state=\"opened\"}").await;
    assert_eq!(opened, 3, "no session was opened twice");
}

/// A runner that was killed leaves its session for a while; the next run with the same agent URL need not wait for its end.
#[tokio::test]
async fn unfollowed_session_makes_room_for_another() {
    let engine = Scripted::new();
    let agent = agent_with(engine.boxed(), |options| options.limits.max_trials = 1).await;
    let client = connect(&agent).await;
    let left = lead_to(&client, &engine, At::Held(Point::Running)).await;
    let refused = client.open(&assignment("next")).await.expect_err("there is no room").to_string();
    assert!(refused.contains("--max-trials"), "{refused}");
    drop(left);
    engine.change(|script| script.fault = None);
    let next = async {
        // The agent hears of the closed connection a moment later.
        loop {
            match client.open(&assignment("next")).await {
                Ok(session) => return session,
                Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
            }
        }
    };
    let mut session = tokio::time::timeout(SOON / 2, next).await.expect("it makes room");
    assert_eq!(lead(&client, &mut session).await, Stage::Done);
    let error = client.counts(&SessionId("led".into())).await.expect_err("it was stopped").to_string();
    assert!(error.contains("another needed its place"), "{error}");
}

#[tokio::test]
async fn a_session_closed_at_any_stage_says_what_remains() {
    let engine = Scripted::new();
    let agent = agent_with(engine.boxed(), |_| ()).await;
    let client = connect(&agent).await;
    for at in everywhere() {
        let session = lead_to(&client, &engine, at).await;
        assert_eq!(client.close(session.id()).await.expect("closed"), ["/scratch/left"], "{at:?}");
        assert_eq!(engine.under_way(), 0, "{at:?}");
        let failure = failure(last(session).await);
        assert_eq!((failure.kind, failure.message.as_str()), (FailureKind::Stopped, "the session was closed"));
        assert_eq!(failure.remains, ["/scratch/left"]);
    }
}

#[tokio::test]
async fn shutting_down_at_any_stage_awaits_the_session() {
    for at in everywhere() {
        let engine = Scripted::new();
        let agent = agent_with(engine.boxed(), |_| ()).await;
        let client = connect(&agent).await;
        let session = lead_to(&client, &engine, at).await;
        let last = tokio::spawn(last(session));
        tokio::time::timeout(SOON, agent.shutdown()).await.expect("it ends");
        assert_eq!(engine.under_way(), 0, "{at:?}");
        let failure = failure(last.await.expect("no panic"));
        assert_eq!(failure.kind, FailureKind::Stopped, "{at:?}");
        assert!(failure.message.contains("shutting down"), "{failure:?}");
    }
}

#[tokio::test]
async fn a_session_that_nobody_orders_is_stopped() {
    let engine = Scripted::new();
    let timeouts = Timeouts { unordered: Duration::from_secs(3), ..Timeouts::default() };
    let agent = agent_with(engine.boxed(), |options| options.timeouts = timeouts).await;
    let client = connect(&agent).await;
    for (order, verb) in [(None, "connect"), (Some(connect_nothing()), "start")] {
        let mut session = client.open(&assignment("idle")).await.expect("opened");
        until(&mut session, |stage| matches!(stage, Stage::Listening { .. })).await;
        if let Some(order) = order {
            client.order(session.id(), &order).await.expect("it listens");
        }
        let failure = failure(last(session).await);
        assert_eq!(failure.kind, FailureKind::Stopped);
        assert!(failure.message.contains(&format!("nobody ordered it to {verb} for 3 s")), "{failure:?}");
    }
    assert_eq!(engine.under_way(), 0);
}

#[tokio::test]
async fn counts_that_nobody_fetches_are_dropped() {
    let engine = Scripted::new();
    let timeouts = Timeouts { unfetched: Duration::from_millis(100), ..Timeouts::default() };
    let agent = agent_with(engine.boxed(), |options| options.timeouts = timeouts).await;
    assert_eq!(Timeouts::default().unfetched, Duration::from_secs(120));
    let client = connect(&agent).await;
    let mut session = client.open(&assignment("left")).await.expect("opened");
    assert_eq!(lead(&client, &mut session).await, Stage::Done);
    let dropped = async {
        loop {
            match client.counts(session.id()).await {
                Ok(_) => tokio::time::sleep(Duration::from_millis(20)).await,
                Err(error) => return error,
            }
        }
    };
    let error = tokio::time::timeout(SOON, dropped).await.expect("they are dropped").to_string();
    assert!(error.contains("counts were dropped"), "{error}");
}

/// Only so many finished sessions are kept; the oldest makes room.
#[tokio::test]
async fn the_oldest_counts_make_room() {
    let engine = Scripted::new();
    engine.change(|script| script.window = Some(window(Nanos::from_millis(1))));
    let agent = agent_with(engine.boxed(), |_| ()).await;
    let client = connect(&agent).await;
    for number in 0..18 {
        let mut session = client.open(&assignment(&format!("s{number}"))).await.expect("opened");
        assert_eq!(lead(&client, &mut session).await, Stage::Done);
    }
    for (number, kept) in [(0, false), (1, false), (2, true), (17, true)] {
        let counts = client.counts(&SessionId(format!("s{number}"))).await;
        assert_eq!(counts.is_ok(), kept, "{number}");
    }
}
