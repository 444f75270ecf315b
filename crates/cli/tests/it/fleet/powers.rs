//! What members may do, and what a stolen key opens.

use super::place::FleetPlace;
use linerate_bus::{Bus, Credentials};
use linerate_testsuite::server_test;
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;
use tokio::runtime::Builder;
use tokio::time::timeout;

/// Time for the messages of a round to arrive.
const ROUND: Duration = Duration::from_secs(1);

fn credentials(folder: &Path) -> Credentials {
    let file = folder.join(Credentials::FILE);
    let text = std::fs::read_to_string(&file).expect("credentials");
    Credentials::parse(&text, &file).expect("credentials")
}

/// Publishes to `subjects` until a message on the last of them has arrived twice, and returns the subjects of all
/// messages. The server may take subscriptions of one client after messages of another; the second round comes after all.
async fn subjects_received(
    subscriptions: &mut [async_nats::Subscriber],
    publisher: &async_nats::Client,
    subjects: &[&str],
) -> BTreeSet<String> {
    use futures_util::StreamExt as _;
    let last = subjects.last().expect("a subject");
    let mut received = BTreeSet::new();
    let mut all = futures_util::stream::select_all(subscriptions.iter_mut());
    let mut rounds = 0;
    while rounds < 2 {
        for subject in subjects {
            publisher.publish((*subject).to_owned(), "x".into()).await.expect("sent to the server");
        }
        publisher.flush().await.expect("flushed");
        while let Ok(message) = timeout(ROUND, all.next()).await {
            let subject = message.expect("a subscription").subject.to_string();
            let is_last = subject == *last;
            received.insert(subject);
            if is_last {
                rounds += 1;
                break;
            }
        }
    }
    received
}

#[server_test(Program("nats-server"))]
fn stolen_key_of_an_agent_reaches_its_own_subjects_only() {
    let mut fleet = FleetPlace::new();
    fleet.serve("--roles admit");
    let code = fleet.invite("--uses 2");
    for name in ["a", "b"] {
        fleet.run_as(name, &format!("fleet enrol {code} --name {name}")).says(0, &["joined"]);
    }
    let (owner, stolen) = (credentials(&fleet.path("owner")), credentials(&fleet.path("a")));
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let owner = Bus::connect(owner).await.expect("the owner connects");
        let thief = Bus::connect(stolen).await.expect("the key works");
        let wildcards = [
            ">",
            "linerate.>",
            "linerate.test.>",
            "linerate.test.agent.>",
            "linerate.test.agent.*.api",
            "$KV.>",
            "$JS.>",
            "_INBOX.>",
        ];
        let foreign = [
            "linerate.test.agent.b.api",
            "linerate.test.from.b.presence",
            "linerate.test.order.1",
            "linerate.test.record.1.begin",
            "linerate.test.pair.m.a.b",
            "linerate.test.enrol.i1",
            "linerate.test.enrolled.i1.x",
            "$KV.linerate_test_state.pause",
            "$JS.API.STREAM.NAMES",
            "$SYS.REQ.CLAIMS.UPDATE",
        ];
        let (heard, sent) = ("linerate.test.agent.a.last", "linerate.test.from.a.last");

        // The server answers a forbidden subscription with an error and delivers nothing.
        let mut subscriptions = Vec::new();
        for subject in wildcards.into_iter().chain(foreign).chain([heard]) {
            subscriptions.push(thief.client().subscribe(subject).await.expect("sent to the server"));
        }
        thief.client().flush().await.expect("flushed");
        // The streams and the server answer those that begin with `$`.
        let plain = foreign.into_iter().filter(|subject| !subject.starts_with('$'));
        let subjects: Vec<&str> = plain.chain(["_INBOX.x", heard]).collect();
        let received = subjects_received(&mut subscriptions, owner.client(), &subjects).await;
        assert_eq!(received, BTreeSet::from([heard.to_owned()]));

        let mut everything = [owner.client().subscribe("linerate.>").await.expect("the owner subscribes")];
        owner.client().flush().await.expect("flushed");
        let subjects: Vec<&str> = foreign.into_iter().chain(["linerate.test.agent.a.api", sent]).collect();
        let received = subjects_received(&mut everything, thief.client(), &subjects).await;
        let own = |subject: &String| subject.starts_with("linerate.test.from.a.");
        assert!(received.iter().all(own), "{received:?}");
    });
    assert_eq!(fleet.run("fleet status").code, Some(0));
}

#[server_test(Program("nats-server"))]
fn viewer_sees_the_fleet_and_orders_nothing() {
    let mut fleet = FleetPlace::new();
    fleet.serve("--roles admit");
    let code = fleet.invite("--uses 2");
    fleet.agent("a", &code);
    fleet.agent("b", &code);
    let code = fleet.invite("--role viewer");
    fleet.run_as("viewer", &format!("fleet enrol {code} --name eve")).says(0, &["eve joined the fleet test as viewer"]);
    fleet.run_as("viewer", "fleet list").prints(0, &["present"]);
    for order in ["fleet pause", "fleet run m"] {
        let refused = fleet.run_as("viewer", order);
        assert_eq!(refused.code, Some(3), "{order}: {}", refused.err);
    }
    let paused = fleet.run("fleet status --json").json();
    assert!(paused["pause"].is_null(), "{paused}");
    let mut stream = fleet.place.command(&["stream", "fleet:a", "fleet:b", "--time", "1s"]);
    stream.env("LINERATE_FLEET", fleet.path("viewer"));
    let refused = fleet.place.start_command(stream).end();
    assert_ne!(refused.code, Some(0));
    assert_eq!(fleet.place.trials(), 0);
}

#[server_test(Program("nats-server"))]
fn two_fleets_share_a_server_and_see_nothing_of_each_other() {
    let mut fleet = FleetPlace::new();
    fleet.serve("--roles admit");
    let code = fleet.invite("");
    fleet.agent("a", &code);
    let second = format!("fleet create second --beside {} --dir {}", fleet.folder("owner"), fleet.folder("second"));
    fleet.place.run(&crate::program::words(&second)).says(0, &["second is created on the NATS servers"]);
    let same = format!("fleet create test --beside {} --dir {}", fleet.folder("owner"), fleet.folder("third"));
    fleet.place.run(&crate::program::words(&same)).says(2, &["another"]);
    // An invitation of one fleet does not open the other, and its names are free there.
    fleet.run_as("second", "fleet invite").prints(0, &["lrf1-"]);
    let listed = fleet.run_as("second", "fleet list");
    listed.says(0, &["no members yet"]);
    assert_eq!(fleet.state("a"), "present");
}
