//! Invitations over the wire: what each allows, how long, and that it ends at once when it is revoked.
//!
//! The attack: whoever was given a URL for one measurement keeps it, and uses all that the agent can do.

use super::frames::frames;
use super::scripted::{Fault, Point, Scripted};
use super::*;
use crate::{Allowance, Invitations};
use linerate_control::AgentError;
use linerate_engine::{Demand, ForeignServer, Needs};
use linerate_model::{FailureKind, LinkId, Power, Powers};
use linerate_units::BitRate;
use std::path::Path;

const HOUR: Nanos = Nanos::from_secs(3_600);

fn can(powers: &[Power]) -> Allowance {
    Allowance { powers: powers.iter().copied().collect(), ..Allowance::default() }
}

/// An agent whose invitations are kept in `directory`.
async fn inviting(directory: &Path, engine: Option<&Scripted>) -> Agent {
    let invitations = Some(Invitations::of(directory));
    let change = |options: &mut AgentOptions| {
        options.invitations = invitations;
        options.limits.frames = AllowedInterfaces::All;
        options.limits.servers.servers = vec!["192.0.2.5".parse().expect("a server")];
    };
    match engine {
        Some(engine) => agent_with(engine.boxed(), change).await,
        None => agent(change).await,
    }
}

/// The URL of a new invitation of `agent`, and the invitation's name.
fn invite(agent: &Agent, directory: &Path, allows: Allowance, life: Nanos) -> (AgentUrl, String) {
    let (invitation, token) = Invitations::of(directory).invite(allows, life).expect("written");
    (AgentUrl { token: token.as_str().to_owned(), ..agent.url().clone() }, invitation.id)
}

/// A client with a new invitation of `agent`, and the invitation's name.
async fn guest(agent: &Agent, directory: &Path, allows: Allowance) -> (Client, String) {
    let (url, id) = invite(agent, directory, allows, HOUR);
    (Client::connect(&url).await.expect("invited"), id)
}

async fn refused(client: &Client, assignment: &Assignment) -> String {
    let error = client.open(assignment).await.expect_err("beyond the invitation");
    assert!(matches!(error, AgentError::Refused { .. }), "{error:?}");
    error.to_string()
}

#[tokio::test]
async fn an_invitation_grants_its_powers_only_whatever_the_task() {
    let directory = tempfile::tempdir().expect("a directory");
    let engine = Scripted::new();
    let agent = inviting(directory.path(), Some(&engine)).await;
    let all_but = |power: Power| Powers::all().iter().filter(|other| *other != power).collect::<Vec<_>>();
    for power in Power::ALL {
        let needs = Needs::of(power);
        engine.change(|script| script.demand = Demand { needs, ..script.demand.clone() });
        let (shy, id) = guest(&agent, directory.path(), can(&all_but(power))).await;
        let error = refused(&shy, &assignment("beyond")).await;
        assert!(error.contains(&format!("needs the power {power}")) && error.contains(&id), "{error}");
        let (able, _) = guest(&agent, directory.path(), can(&[power])).await;
        let mut session = able.open(&assignment("within")).await.expect("granted");
        assert_eq!(lead(&able, &mut session).await, Stage::Done, "{power}");
        able.close(session.id()).await.expect("closed");
    }
    assert_eq!(engine.under_way(), 0);
}

async fn until_last(session: &mut SessionHandle) -> Stage {
    let follow = async {
        loop {
            let stage = session.next().await.expect("a stage").expect("the agent is there");
            if stage.is_last() {
                return stage;
            }
        }
    };
    tokio::time::timeout(SOON, follow).await.expect("it ends")
}

/// The real engines say themselves which powers their tasks need.
#[tokio::test]
async fn a_plain_invitation_sends_no_frames_and_learns_of_no_interface() {
    let directory = tempfile::tempdir().expect("a directory");
    let agent = inviting(directory.path(), None).await;
    let allows = Allowance { powers: Powers::of_an_invitation(), ..Allowance::default() };
    let (client, _) = guest(&agent, directory.path(), allows).await;
    let error = refused(&client, &frames(Nanos::from_secs(1), vec![0], Some(100))).await;
    assert!(error.contains("power frames") && error.contains("stream,transact"), "{error}");
    let error = client.ports(&["lo".to_owned()]).await.expect_err("no power").to_string();
    assert!(error.contains("power frames"), "{error}");
    let told = client.host().await.expect("a host").capabilities;
    for (name, available) in [("power-stream", true), ("power-transact", true), ("power-files", false)] {
        let power = told.iter().find(|capability| capability.name == name).expect(name);
        assert_eq!(power.available, available, "{name}");
    }
    let told = connect(&agent).await.host().await.expect("a host").capabilities;
    let owners = told.iter().filter(|capability| capability.name.starts_with("power-") && capability.available);
    assert_eq!(owners.count(), Power::ALL.len(), "the agent's own URL has what its options allow");
}

#[tokio::test]
async fn a_revoked_invitation_is_refused_and_its_sessions_are_stopped() {
    let directory = tempfile::tempdir().expect("a directory");
    let engine = Scripted::with((Point::Running, Fault::Hold));
    let agent = inviting(directory.path(), Some(&engine)).await;
    let (client, id) = guest(&agent, directory.path(), can(&[Power::Stream])).await;
    let owner = connect(&agent).await;
    let mut owners = owner.open(&assignment("owners")).await.expect("opened");
    until(&mut owners, |stage| matches!(stage, Stage::Listening { .. })).await;
    let mut session = client.open(&assignment("guests")).await.expect("opened");
    until(&mut session, |stage| matches!(stage, Stage::Listening { .. })).await;
    client.order(session.id(), &connect_nothing()).await.expect("it listens");
    until(&mut session, |stage| matches!(stage, Stage::Ready(_))).await;
    client.order(session.id(), &START).await.expect("it is ready");
    until(&mut session, |stage| matches!(stage, Stage::Running(_))).await;
    assert!(Invitations::of(directory.path()).revoke(&id).expect("written"));
    let Stage::Failed(failure) = until_last(&mut session).await else { panic!("it was to be stopped") };
    assert_eq!(failure.kind, FailureKind::Stopped);
    assert!(failure.message.contains(&id) && failure.message.contains("was revoked"), "{failure:?}");
    let error = client.host().await.expect_err("revoked");
    assert!(matches!(error, AgentError::WrongToken { .. }), "{error:?}");
    assert!(error.to_string().contains("was revoked; ask the agent's owner"), "{error}");
    owner.order(owners.id(), &connect_nothing()).await.expect("others go on");
}

/// The attack: a guest leads sessions that end at once until the counts of another one's trial are forgotten, or opens one of
/// its name.
#[tokio::test]
async fn sessions_of_a_guest_drop_no_counts_of_the_owner() {
    let directory = tempfile::tempdir().expect("a directory");
    let engine = Scripted::new();
    let agent = inviting(directory.path(), Some(&engine)).await;
    let owner = connect(&agent).await;
    let mut session = owner.open(&assignment("owners")).await.expect("opened");
    assert_eq!(lead(&owner, &mut session).await, Stage::Done);
    let (client, _) = guest(&agent, directory.path(), can(&[Power::Stream])).await;
    for number in 0..20 {
        let mut session = client.open(&assignment(&format!("guests-{number}"))).await.expect("opened");
        assert_eq!(lead(&client, &mut session).await, Stage::Done);
    }
    let error = client.open(&assignment("owners")).await.expect_err("its counts are kept").to_string();
    assert!(error.contains("a session `owners` already; use another name"), "{error}");
    owner.counts(session.id()).await.expect("kept");
    owner.close(session.id()).await.expect("closed");
    client.open(&assignment("owners")).await.expect("the name is free again");
}

/// The attack: a guest whose trials are for one network has the agent reach a file server in another one.
#[tokio::test]
async fn the_peers_of_an_invitation_bind_file_servers_too() {
    let directory = tempfile::tempdir().expect("a directory");
    let engine = Scripted::new();
    let agent = inviting(directory.path(), Some(&engine)).await;
    let server = ForeignServer { address: [192, 0, 2, 5].into(), export: "/srv".to_owned(), user: None };
    let needs = Needs { servers: vec![server], ..Needs::of(Power::Servers) };
    engine.change(|script| script.demand = Demand { needs, ..script.demand.clone() });
    let invited = |peers: &[&str]| {
        let peers = peers.iter().map(|network| network.parse().expect("a network")).collect();
        Allowance { peers, ..can(&[Power::Servers]) }
    };
    let (outside, _) = guest(&agent, directory.path(), invited(&["127.0.0.0/8"])).await;
    let error = refused(&outside, &assignment("outside")).await;
    assert!(error.contains("127.0.0.0/8") && error.contains("192.0.2.5"), "{error}");
    let (within, _) = guest(&agent, directory.path(), invited(&["127.0.0.0/8", "192.0.2.0/24"])).await;
    within.open(&assignment("within")).await.expect("granted");
}

#[tokio::test]
async fn an_invitation_ends_with_its_life() {
    let directory = tempfile::tempdir().expect("a directory");
    let agent = inviting(directory.path(), None).await;
    let (url, _) = invite(&agent, directory.path(), can(&[Power::Stream]), Nanos::default());
    let error = Client::connect(&url).await.expect_err("over").to_string();
    assert!(error.contains("has expired") && error.contains("ask the agent's owner"), "{error}");
}

#[tokio::test]
async fn an_invitation_is_bound_to_its_peers_and_its_rate() {
    let directory = tempfile::tempdir().expect("a directory");
    let engine = Scripted::new();
    let agent = inviting(directory.path(), Some(&engine)).await;
    let networks = |text: &str| vec![text.parse().expect("a network")];

    let elsewhere = Allowance { peers: networks("192.0.2.0/24"), ..can(&[Power::Stream]) };
    let (url, _) = invite(&agent, directory.path(), elsewhere, HOUR);
    let error = Client::connect(&url).await.expect_err("from another network").to_string();
    assert!(error.contains("192.0.2.0/24") && error.contains("127.0.0.1"), "{error}");

    let here = Allowance {
        peers: networks("127.0.0.0/8"),
        max_rate: Some(BitRate::per_second(1_000_000)),
        ..can(&[Power::Stream])
    };
    let (client, _) = guest(&agent, directory.path(), here).await;
    let sends = |bits| engine.change(|script| script.demand.sends = Some(BitRate::per_second(bits)));
    sends(1_000_001);
    let error = refused(&client, &assignment("fast")).await;
    assert!(error.contains("this agent URL allows 1 Mbit/s"), "{error}");
    sends(600_000);
    let mut connecting = assignment("first");
    connecting.roles[0].connects = vec![LinkId(0)];
    let mut first = client.open(&connecting).await.expect("within the rate");
    assert!(refused(&client, &assignment("second")).await.contains("send 1.2 Mbit/s"));
    let _owners = connect(&agent).await.open(&assignment("owners")).await.expect("not bound by it");
    until(&mut first, |stage| matches!(stage, Stage::Listening { .. })).await;
    let far = Order::Connect([(LinkId(0), "198.51.100.7:9".parse().expect("an address"))].into());
    let error = client.order(first.id(), &far).await.expect_err("data goes to peers only").to_string();
    assert!(error.contains("127.0.0.0/8") && error.contains("198.51.100.7"), "{error}");
}

/// A guest who learns or guesses the name of a session can neither lead, read nor end it.
#[tokio::test]
async fn sessions_of_others_are_out_of_reach() {
    let directory = tempfile::tempdir().expect("a directory");
    let engine = Scripted::new();
    let agent = inviting(directory.path(), Some(&engine)).await;
    let owner = connect(&agent).await;
    let (one, _) = guest(&agent, directory.path(), can(&[Power::Stream])).await;
    let (other, _) = guest(&agent, directory.path(), can(&[Power::Stream])).await;
    let mut session = one.open(&assignment("theirs")).await.expect("opened");
    until(&mut session, |stage| matches!(stage, Stage::Listening { .. })).await;
    let error = other.order(session.id(), &connect_nothing()).await.expect_err("not its own").to_string();
    assert!(error.contains("no session"), "{error}");
    assert!(other.counts(session.id()).await.is_err());
    other.close(session.id()).await.expect("as if there were none");
    assert_eq!(engine.under_way(), 1, "it goes on");
    owner.close(session.id()).await.expect("the owner may end any");
    assert_eq!(engine.under_way(), 0);
}
