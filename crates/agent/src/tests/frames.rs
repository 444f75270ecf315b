//! The engine of raw frames behind the agent's limits. Sending them needs interfaces of the tests' own: the lab's tests do that.

use super::*;
use linerate_control::AgentError;
use linerate_model::{
    FailureKind, FrameEngine, FrameForm, FrameHeaders, FramePayload, FrameReceiver, FrameStream, FramesTask, Mac,
};
use linerate_units::{BitRate, FrameRate, FrameSize};

/// A session with raw frames from a port that is not there, at `rate` frames of 64 bytes per second.
pub(super) fn frames(time: Nanos, ports: Vec<u16>, rate: Option<u64>) -> Assignment {
    let stream = FrameStream {
        from: 0,
        to: 1,
        copies_to: Vec::new(),
        size: FrameSize::with_fcs(64).expect("a size"),
        rate: rate.map(FrameRate::per_second),
        count: None,
        after: Nanos::default(),
        time: None,
        headers: FrameHeaders {
            source_mac: Mac([2, 0, 0, 0, 0, 1]),
            destination_mac: Mac([2, 0, 0, 0, 0, 2]),
            vlans: Vec::new(),
            priority: 0,
            dscp: 0,
            source: "198.18.0.1".parse().expect("an address"),
            destination: "198.18.0.2".parse().expect("an address"),
            payload: FramePayload::Udp { source_port: 7, destination_port: 7 },
        },
        form: FrameForm::default(),
    };
    let task = FramesTask {
        home: HostName::from("a"),
        ports: vec!["nosuch0".into(), "b:nosuch0".into()],
        streams: vec![stream],
        time,
        settle: Nanos::default(),
        engine: FrameEngine::Auto,
        receiver: FrameReceiver::Port,
        line: None,
        hosts: Vec::new(),
    };
    Assignment {
        task: Task::Frames(task),
        timing: Timing::UntilDone,
        roles: vec![Role { kind: RoleKind::Ports { own: ports, tag: 7 }, listens: Vec::new(), connects: Vec::new() }],
        ..assignment("frames")
    }
}

async fn refused(client: &Client, assignment: &Assignment) -> String {
    let error = client.open(assignment).await.expect_err("beyond the limits");
    assert!(matches!(error, AgentError::Refused { .. }), "{error:?}");
    error.to_string()
}

#[tokio::test]
async fn raw_frames_keep_the_agents_limits() {
    let second = Nanos::from_secs(1);
    let shy = agent(|_| ()).await;
    let client = connect(&shy).await;
    assert!(refused(&client, &frames(second, vec![0], Some(100))).await.contains("--allow-frames"));
    let error = client.ports(&["lo".to_owned()]).await.expect_err("no leave").to_string();
    assert!(error.contains("--allow-frames"), "{error}");

    let shy = agent(|options| options.limits.frames = "other0,other1".parse().expect("names")).await;
    let client = connect(&shy).await;
    assert!(refused(&client, &frames(second, vec![0], Some(100))).await.contains("`nosuch0`"));
    let error = client.ports(&["lo".to_owned()]).await.expect_err("not named").to_string();
    assert!(error.contains("`lo`") && error.contains("--allow-frames"), "{error}");

    let agent = agent(|options| {
        let max_rate = Some(BitRate::per_second(1_000_000));
        options.limits =
            Limits { frames: AllowedInterfaces::All, max_rate, max_time: Nanos::from_secs(60), ..Limits::default() };
    })
    .await;
    let client = connect(&agent).await;
    assert!(refused(&client, &frames(Nanos::from_secs(61), vec![0], Some(100))).await.contains("--max-time"));
    let unbound = refused(&client, &frames(second, vec![0], None)).await;
    assert!(unbound.contains("--max-rate") && unbound.contains("--rate"), "{unbound}");
    let fast = refused(&client, &frames(second, vec![0], Some(10_000))).await;
    assert!(fast.contains("send 5.12 Mbit/s") && fast.contains("--max-rate"), "{fast}");
}

/// Each failure names what is wrong, and leaves the place to the next.
#[tokio::test]
async fn raw_frames_that_cannot_be_sent_fail_and_leave_nothing() {
    let agent = agent(|options| options.limits.frames = AllowedInterfaces::All).await;
    let client = connect(&agent).await;
    for (ports, part) in [(vec![0], "nosuch0"), (vec![0, 9], "port 9, but there are 2")] {
        let mut session = client.open(&frames(Nanos::from_secs(1), ports, Some(100))).await.expect("allowed");
        let Stage::Failed(failure) = lead(&client, &mut session).await else { panic!("there is no such port") };
        assert_eq!(failure.kind, FailureKind::Task);
        assert!(failure.message.contains(part), "{failure:?}");
    }
    assert_eq!(metric(&agent, "linerate_sessions_total{task=\"frames\",state=\"failed\"}").await, 2);
}
