//! The API by NATS, with a real server.

use super::lifecycle::{failure, last};
use super::scripted::{Fault, Point, Scripted};
use super::*;
use crate::{AllowedHours, SessionLog, StartError};
use linerate_bus::{AgentName, Arrival, Bus, Credentials, FleetKeys, Head, Request, Role};
use linerate_control::{AgentError, REPEATED_HEADER};
use linerate_model::{FailureKind, Host};
use linerate_testsuite::server_test;
use linerate_testsuite::servers::NatsServer;
use std::convert::Infallible;
use std::time::{SystemTime, UNIX_EPOCH};

/// A fleet on a server of its own.
struct Fleet {
    server: NatsServer,
    keys: FleetKeys,
}

fn name(text: &str) -> AgentName {
    text.parse().expect("a name")
}

fn now_unix_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs()
}

fn block_on<T>(test: impl Future<Output = T>) -> T {
    tokio::runtime::Runtime::new().expect("a runtime").block_on(test)
}

impl Fleet {
    fn start() -> Self {
        let keys = FleetKeys::generate("test".parse().expect("a name"), Vec::new(), None).expect("keys");
        let server = NatsServer::start(|listen, folder| {
            let folder = folder.to_str().expect("a plain path");
            keys.server_configuration(listen, folder, now_unix_s()).expect("a configuration")
        });
        Self { server, keys }
    }

    fn credentials(&self, agent: &str, role: Role) -> Credentials {
        let credentials = self.keys.credentials(name(agent), role, None, now_unix_s()).expect("credentials");
        Credentials { servers: vec![self.server.url()], ..credentials }
    }

    async fn bus(&self, agent: &str, role: Role) -> Bus {
        Bus::connect(self.credentials(agent, role)).await.expect("connected")
    }

    /// Starts an agent called `site-a` with a scripted engine.
    async fn agent(&self, engine: &Scripted, change: impl FnOnce(&mut AgentOptions)) -> Agent {
        let mut agent = agent_with(engine.boxed(), change).await;
        agent.join_fleet(self.bus("site-a", Role::Agent).await).await.expect("joined");
        agent
    }

    async fn client(&self, fence: Option<u64>) -> Client {
        let bus = self.bus("operator", Role::Operator).await;
        Client::over_bus(bus, name("site-a"), fence).await.expect("a client")
    }
}

/// Waits until the agent has no session in progress.
async fn idle(agent: &Agent) {
    let over = async {
        while metric(agent, "linerate_sessions_under_way").await > 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(2 * SOON, over).await.expect("all sessions end");
}

/// Opens a session that stays at work, and waits until it does.
async fn held(client: &Client, engine: &Scripted, id: &str) -> SessionHandle {
    engine.change(|script| script.fault = Some((Point::Running, Fault::Hold)));
    let mut session = client.open(&assignment(id)).await.expect("opened");
    until(&mut session, |stage| matches!(stage, Stage::Listening { .. })).await;
    client.order(session.id(), &connect_nothing()).await.expect("it listens");
    until(&mut session, |stage| matches!(stage, Stage::Ready(_))).await;
    client.order(session.id(), &START).await.expect("it is ready");
    until(&mut session, |stage| matches!(stage, Stage::Running(_))).await;
    session
}

#[server_test(Program("nats-server"))]
fn session_is_led_over_nats_to_counts_of_megabytes() {
    let fleet = Fleet::start();
    block_on(async {
        let engine = Scripted::new();
        let remains: Vec<String> =
            (0..40_000).map(|index| format!("/scratch/a-file-with-a-long-name-{index}")).collect();
        engine.change(|script| script.remains = remains.clone());
        let log = fleet.server.directory.path().join("sessions.jsonl");
        let agent =
            fleet.agent(&engine, |options| options.session_log = Some(SessionLog::open(&log).expect("a log"))).await;
        let client = fleet.client(Some(7)).await;
        let mut session = client.open(&assignment("whole")).await.expect("opened");
        assert_eq!(lead(&client, &mut session).await, Stage::Done);
        let counts = client.counts(session.id()).await.expect("its counts");
        assert_eq!(counts.remains, remains, "an answer of {} KB", 40 * 40);
        let exchange = client.clock().await.expect("a clock");
        let times = [exchange.origin_ns, exchange.receive_ns, exchange.transmit_ns, exchange.destination_ns];
        assert!(times.is_sorted(), "both ends have one clock: {times:?}");
        let missing = client.counts(&SessionId("other".into())).await.expect_err("there is none");
        assert!(matches!(missing, AgentError::Rejected { .. }) && missing.to_string().contains("fleet:site-a"));
        client.close(session.id()).await.expect("closed");

        let text = std::fs::read_to_string(&log).expect("the log");
        let lines: Vec<serde_json::Value> =
            text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        assert_eq!(lines.len(), 2, "{text}");
        for (line, event, outcome) in [(&lines[0], "begin", None), (&lines[1], "end", Some("finished"))] {
            assert_eq!((line["event"].as_str(), line["session"].as_str()), (Some(event), Some("whole")));
            assert_eq!((line["fence"].as_u64(), line["outcome"].as_str()), (Some(7), outcome));
        }
        assert!(lines[0]["unix_ns"].as_u64() < lines[1]["unix_ns"].as_u64(), "{text}");
        agent.shutdown().await;
    });
}

#[server_test(Program("nats-server"))]
fn agent_that_is_absent_or_was_ended_is_named_with_the_remedy() {
    let fleet = Fleet::start();
    block_on(async {
        let bus = fleet.bus("operator", Role::Operator).await;
        let error = Client::over_bus(bus, name("nobody"), None).await.expect_err("no such agent");
        assert!(matches!(error, AgentError::Unreachable { .. }), "{error:?}");
        for part in ["fleet:nobody", "linerate fleet list", "serve --fleet"] {
            assert!(error.to_string().contains(part), "{error}");
        }
        let engine = Scripted::new();
        let agent = fleet.agent(&engine, |_| ()).await;
        let client = fleet.client(None).await;
        drop(agent);
        let error = client.host().await.expect_err("it was ended");
        assert!(
            matches!(error, AgentError::Lost { .. }) && error.to_string().contains("connected to the fleet"),
            "{error}"
        );
    });
}

#[server_test(Program("nats-server"))]
fn older_scheduler_opens_no_session_after_a_newer_one() {
    let fleet = Fleet::start();
    block_on(async {
        let engine = Scripted::new();
        let _agent = fleet.agent(&engine, |_| ()).await;
        let (older, newer, person) =
            (fleet.client(Some(3)).await, fleet.client(Some(4)).await, fleet.client(None).await);
        for (client, id) in [(&older, "a"), (&newer, "b"), (&newer, "c"), (&person, "d")] {
            let mut session = client.open(&assignment(id)).await.expect("opened");
            assert_eq!(lead(client, &mut session).await, Stage::Done);
        }
        let error = older.open(&assignment("e")).await.expect_err("another has taken over").to_string();
        for part in ["another scheduler has taken over", "fence is 4", "this request 3"] {
            assert!(error.contains(part), "{error}");
        }
    });
}

#[server_test(Program("nats-server"))]
fn owners_hours_hold_on_both_transports() {
    let fleet = Fleet::start();
    block_on(async {
        let engine = Scripted::new();
        let now = jiff::Timestamp::now().to_zoned(jiff::tz::TimeZone::UTC);
        let hour = |later: i8| (now.hour() + later) % 24;
        let closed = format!("{:02}:00-{:02}:00", hour(2), hour(3));
        let hours = AllowedHours::in_zone(closed.parse().expect("hours"), jiff::tz::TimeZone::UTC);
        let agent = fleet.agent(&engine, |options| options.limits.hours = Some(hours)).await;
        for client in [fleet.client(None).await, connect(&agent).await] {
            let error = client.open(&assignment("late")).await.expect_err("outside of the hours");
            assert!(matches!(error, AgentError::Refused { .. }) && error.to_string().contains(&closed), "{error}");
        }
    });
}

#[server_test(Program("nats-server"))]
fn second_process_with_the_same_credentials_is_refused() {
    let fleet = Fleet::start();
    block_on(async {
        let engine = Scripted::new();
        let agent = fleet.agent(&engine, |_| ()).await;
        let mut clone = agent_with(engine.boxed(), |_| ()).await;
        let bus = fleet.bus("site-a", Role::Agent).await;
        let error = clone.join_fleet(bus.clone()).await.expect_err("one is running");
        assert!(matches!(error, StartError::Cloned { .. }), "{error}");
        for part in ["site-a", "already", "fleet enrol"] {
            assert!(error.to_string().contains(part), "{error}");
        }
        fleet.client(None).await.host().await.expect("the first one serves");
        agent.shutdown().await;
        clone.join_fleet(bus).await.expect("the first one has ended");
        fleet.client(None).await.host().await.expect("the second one serves");
    });
}

#[server_test(Program("nats-server"))]
fn session_that_its_caller_drops_is_stopped() {
    let fleet = Fleet::start();
    block_on(async {
        let engine = Scripted::new();
        let agent = fleet.agent(&engine, |options| options.timeouts.unfollowed = Duration::ZERO).await;
        let client = fleet.client(None).await;
        drop(held(&client, &engine, "dropped").await);
        idle(&agent).await;
        assert_eq!(engine.under_way(), 0);
        let error = client.counts(&SessionId("dropped".into())).await.expect_err("it was stopped").to_string();
        assert!(error.contains("did not come back"), "{error}");
    });
}

#[server_test(Program("nats-server"))]
fn session_of_a_caller_that_was_killed_is_stopped() {
    let fleet = Fleet::start();
    block_on(async {
        let engine = Scripted::new();
        let agent = fleet.agent(&engine, |options| options.timeouts.unfollowed = Duration::ZERO).await;
        let killed = tokio::runtime::Runtime::new().expect("a runtime");
        let caller = async {
            let client = fleet.client(None).await;
            held(&client, &engine, "left").await
        };
        let handle = killed.handle().clone();
        let session = tokio::task::block_in_place(|| handle.block_on(caller));
        // All tasks of the caller end, and its connection closes without a word.
        killed.shutdown_background();
        assert_eq!(engine.under_way(), 1);
        idle(&agent).await;
        drop(session);
    });
}

#[server_test(Program("nats-server"))]
fn sessions_stop_when_the_fleet_stays_lost() {
    let mut fleet = Fleet::start();
    block_on(async {
        let engine = Scripted::new();
        let agent = fleet.agent(&engine, |options| options.timeouts.unfollowed = Duration::from_secs(1)).await;
        let client = fleet.client(None).await;
        let session = held(&client, &engine, "lost").await;
        fleet.server.end();
        assert_eq!(engine.under_way(), 1);
        idle(&agent).await;
        assert_eq!(engine.under_way(), 0);
        drop(session);
    });
}

#[server_test(Program("nats-server"))]
fn restarted_nats_costs_neither_the_session_nor_its_counts() {
    let mut fleet = Fleet::start();
    block_on(async {
        let engine = Scripted::new();
        let agent = fleet.agent(&engine, |_| ()).await;
        let client = fleet.client(None).await;
        let mut session = client.open(&assignment("cut")).await.expect("opened");
        until(&mut session, |stage| matches!(stage, Stage::Listening { .. })).await;
        client.order(session.id(), &connect_nothing()).await.expect("it listens");
        fleet.server.restart();
        until(&mut session, |stage| matches!(stage, Stage::Ready(_))).await;
        loop {
            // A start is repeated for 1 s only, since a later one would shift the windows of the hosts apart.
            match client.order(session.id(), &START).await {
                Ok(()) => break,
                Err(AgentError::Lost { .. }) => tokio::time::sleep(Duration::from_millis(50)).await,
                Err(error) => panic!("{error}"),
            }
        }
        until(&mut session, |stage| matches!(stage, Stage::Sent)).await;
        fleet.server.restart();
        client.order(session.id(), &Order::Drain).await.expect("it has sent");
        assert_eq!(last(session).await, Stage::Done);
        client.counts(&SessionId("cut".into())).await.expect("its counts are kept");
        let opened = metric(&agent, "linerate_sessions_total{task=\"stream\",state=\"opened\"}").await;
        assert_eq!(opened, 1, "no session was opened twice");
    });
}

#[server_test(Program("nats-server"))]
fn agent_that_shuts_down_reports_the_end_of_its_sessions() {
    let fleet = Fleet::start();
    block_on(async {
        let engine = Scripted::new();
        let agent = fleet.agent(&engine, |_| ()).await;
        let client = fleet.client(None).await;
        let session = tokio::spawn(last(held(&client, &engine, "ended").await));
        agent.shutdown().await;
        let failure = failure(session.await.expect("no panic"));
        assert_eq!(failure.kind, FailureKind::Stopped);
        assert!(failure.message.contains("shutting down"), "{failure:?}");
    });
}

/// Sends a request as a peer of `protocol` does, with a field that this version does not know.
async fn open_as(bus: &Bus, protocol: u32, id: &str) -> (u16, Option<String>) {
    let mut body = serde_json::to_value(assignment(id)).expect("JSON");
    body["of-the-future"] = serde_json::json!({"a": [1, 2]});
    let request = Request {
        method: "POST".into(),
        path: "/v1/sessions".into(),
        headers: vec![
            (PROTOCOL_HEADER.into(), protocol.to_string()),
            ("content-type".into(), "application/json".into()),
            ("linerate-of-the-future".into(), "1".into()),
        ],
        body: body.to_string().into(),
    };
    let response = bus.call(&name("site-a"), request).await.expect("an answer");
    let status = response.head.status;
    let message = async {
        let pieces: Vec<_> = response.body.map(|piece| piece.expect("whole")).collect().await;
        let error: serde_json::Value = serde_json::from_slice(&pieces.concat()).expect("an error");
        error["message"].as_str().expect("a message").to_owned()
    };
    (status, if status == 200 { None } else { Some(message.await) })
}

#[server_test(Program("nats-server"))]
fn callers_of_neighbouring_versions_are_served_and_others_refused() {
    let fleet = Fleet::start();
    block_on(async {
        let engine = Scripted::new();
        let agent = fleet.agent(&engine, |options| options.timeouts.unfollowed = Duration::ZERO).await;
        let bus = fleet.bus("operator", Role::Operator).await;
        let raw = Raw::new(&agent);
        for protocol in [PROTOCOL - 1, PROTOCOL, PROTOCOL + 1] {
            assert_eq!(open_as(&bus, protocol, &format!("n{protocol}")).await, (200, None), "{protocol}");
            let direct = raw.bare(reqwest::Method::GET, "/v1/host").bearer_auth(&raw.url.token);
            assert_eq!(answer(direct.header(PROTOCOL_HEADER, protocol)).await.0, 200, "{protocol}");
        }
        for protocol in [PROTOCOL - 2, PROTOCOL + 2] {
            let (status, message) = open_as(&bus, protocol, "far").await;
            let message = message.expect("refused");
            assert_eq!(status, 426);
            for part in [format!("protocol {PROTOCOL}"), format!("protocol {protocol}"), "install".to_owned()] {
                assert!(message.contains(&part), "{message}");
            }
        }
        idle(&agent).await;
    });
}

/// Serves the description of a host as an agent of `protocol` does, with a field that this version does not know.
async fn serve_as(bus: Bus, protocol: u32, host: Host) {
    let mut queue = bus.requests().await.expect("subscribed");
    while let Some(arrival) = queue.next().await {
        let Arrival::Call(call) = arrival else { continue };
        let mut body = serde_json::to_value(&host).expect("JSON");
        body["of-the-future"] = serde_json::json!([1]);
        let head = Head { status: 200, headers: vec![(PROTOCOL_HEADER.into(), protocol.to_string())] };
        let piece = Ok::<_, Infallible>(body.to_string().into());
        call.answer(async { (head, futures_util::stream::iter([piece])) }).await;
    }
}

#[server_test(Program("nats-server"))]
fn agents_of_neighbouring_versions_are_used_and_others_refused() {
    let fleet = Fleet::start();
    block_on(async {
        let engine = Scripted::new();
        let agent = fleet.agent(&engine, |_| ()).await;
        let host = fleet.client(None).await.host().await.expect("a host");
        agent.shutdown().await;
        for protocol in [PROTOCOL - 2, PROTOCOL - 1, PROTOCOL, PROTOCOL + 1, PROTOCOL + 2] {
            let simulated = format!("v{protocol}");
            let service = tokio::spawn(serve_as(fleet.bus(&simulated, Role::Agent).await, protocol, host.clone()));
            let bus = fleet.bus("operator", Role::Operator).await;
            let reached = async {
                loop {
                    // The simulated agent subscribes in a task of its own.
                    match Client::over_bus(bus.clone(), name(&simulated), None).await {
                        Err(AgentError::Unreachable { .. }) => tokio::time::sleep(Duration::from_millis(20)).await,
                        reached => return reached,
                    }
                }
            };
            let reached = tokio::time::timeout(SOON, reached).await.expect("it subscribes");
            if protocol.abs_diff(PROTOCOL) <= 1 {
                assert_eq!(reached.expect("a neighbour").host().await.expect("a host"), host);
            } else {
                let error = reached.expect_err("too far").to_string();
                for part in [format!("protocol {PROTOCOL}"), format!("protocol {protocol}"), "install".to_owned()] {
                    assert!(error.contains(&part), "{error}");
                }
            }
            service.abort();
        }
    });
}

#[server_test(Program("nats-server"))]
fn repeated_request_goes_on_with_its_session_and_strangers_have_no_routes() {
    let fleet = Fleet::start();
    block_on(async {
        let engine = Scripted::new();
        let agent = fleet.agent(&engine, |_| ()).await;
        let client = fleet.client(None).await;
        let session = held(&client, &engine, "twice").await;
        let bus = fleet.bus("operator", Role::Operator).await;
        let headers = vec![
            (PROTOCOL_HEADER.to_owned(), PROTOCOL.to_string()),
            (REPEATED_HEADER.to_owned(), "1".to_owned()),
            ("content-type".to_owned(), "application/json".to_owned()),
        ];
        let body = serde_json::to_string(&assignment("twice")).expect("JSON");
        let request =
            Request { method: "POST".into(), path: "/v1/sessions".into(), headers: headers.clone(), body: body.into() };
        let mut again = bus.call(&name("site-a"), request).await.expect("an answer");
        assert_eq!(again.head.status, 200);
        let event = again.body.next().await.expect("an event").expect("whole");
        assert!(std::str::from_utf8(&event).expect("text").contains("running"), "{event:?}");
        let opened = metric(&agent, "linerate_sessions_total{task=\"stream\",state=\"opened\"}").await;
        assert_eq!(opened, 1);
        for (path, status) in [("/v1/pair", 404), ("/nowhere", 404), ("/v1/host", 405), ("/v1/%zz\u{7f}", 400)] {
            let body = "{}".into();
            let request = Request { method: "POST".into(), path: path.into(), headers: headers.clone(), body };
            let answer = bus.call(&name("site-a"), request).await.expect("an answer");
            assert_eq!(answer.head.status, status, "{path}");
        }
        drop(session);
    });
}
