//! An agent that lies about where it listens: other agents would be aimed at whatever address it names.

use super::fake::{Act, FakeAgents, Step, Told};
use super::{assert_led, plans, run};

/// No agent is sent to an address that the agent that names it was not asked to listen at, nor to a link that is not its own.
#[tokio::test(start_paused = true)]
async fn addresses_that_a_hostile_agent_listens_at_are_not_forwarded() {
    for (liar, address, part) in [
        ("b", "198.18.7.7:6379", "asked to listen at a port of"),
        ("b", "127.0.0.1:6379", "asked to listen at a port of"),
        // Its own address, and no port.
        ("b", "198.18.0.2:0", "asked to listen at a port of 198.18.0.2"),
        // `a` only connects, and claims the link of `b`.
        ("a", "198.18.7.7:6379", "not one of its own"),
    ] {
        let told = address.parse().expect("an address");
        let agents = FakeAgents::new(&["a", "b"]).script(move |moment| {
            let lies = moment.host.0 == liar && moment.step == Step::Listening;
            if lies { Act::ListenAt(told) } else { Act::Pass }
        });
        let ended = run(plans::sweep(1), &agents, None, &mut |_| ()).await;
        let failure = ended.failure.expect("it is refused").to_string();
        assert!(failure.contains(&format!("{liar}: its agent reports")) && failure.contains(address), "{failure}");
        assert!(
            failure.contains(part) && failure.contains("this address was not passed to any other agent"),
            "{failure}"
        );
        let connected = agents.log().iter().any(|entry| entry.told == Told::Ordered(Step::Connect));
        assert!(!connected, "nobody was sent there");
        assert_led(&agents.attempts());
    }
}
