//! The browser: asks for agents, and reports each that answers.

use crate::agent::{FoundAgent, service};
use crate::group::{GroupSocket, Link, MAX_MESSAGE};
use crate::message::{Message, Question, kinds};
use linerate_sys::handle::AsSocket as _;
use linerate_sys::socket::wait_readable;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// Most agents that are reported. Whoever sends more announcements than that is not a network of agents.
const MAX_AGENTS: usize = 1_024;
/// Time between the first and the second question; each later pause is twice as long (RFC 6762 section 5.2).
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// Reports each agent that announces itself within `time` once. Returns how many there were.
///
/// # Errors
/// This host cannot ask. The text says why.
pub fn discover(time: Duration, mut found: impl FnMut(&FoundAgent)) -> Result<usize, String> {
    let links = Link::all().map_err(|error| format!("cannot ask by multicast DNS: {error}"))?;
    let sockets: Vec<GroupSocket> = links.iter().flat_map(GroupSocket::join).collect();
    if sockets.is_empty() {
        return Err("cannot ask by multicast DNS: no interface of this host is up with an address and multicast; `ip address` lists \
                    them"
            .to_owned());
    }
    let waiting: Vec<_> = sockets.iter().map(|socket| socket.socket.as_socket()).collect();
    let question = Question { name: service(), kind: kinds::PTR };
    let question = Message { questions: vec![question], ..Message::default() }.encode();
    let mut agents = BTreeSet::new();
    let mut buffer = [0; MAX_MESSAGE];
    let end = Instant::now() + time;
    let mut asks_at = Instant::now();
    let mut pause = FIRST_PAUSE;
    loop {
        let now = Instant::now();
        if now >= end {
            return Ok(agents.len());
        }
        if now >= asks_at {
            sockets.iter().for_each(|socket| socket.send(&question));
            asks_at = now + pause;
            pause *= 2;
        }
        let timeout = asks_at.min(end).saturating_duration_since(now);
        wait_readable(&waiting, timeout.as_nanos() as u64)
            .map_err(|error| format!("cannot wait for answers by multicast DNS: {error}"))?;
        for socket in &sockets {
            let Some(message) = socket.receive(&mut buffer).and_then(Message::read) else { continue };
            report(&message, &mut agents, &mut found);
        }
    }
}

/// Reports the agents of a message that are not among `agents` yet.
fn report(message: &Message, agents: &mut BTreeSet<FoundAgent>, found: &mut impl FnMut(&FoundAgent)) {
    for agent in FoundAgent::read(message) {
        if agents.len() < MAX_AGENTS && agents.insert(agent.clone()) {
            found(&agent);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::AnnouncedAgent;
    use crate::agent::tests::rack;
    use std::net::Ipv4Addr;

    #[test]
    fn each_agent_is_reported_once_and_a_flood_is_bounded() {
        let mut agents = BTreeSet::new();
        let mut reported = 0;
        for number in 0..5_000 {
            let agent = AnnouncedAgent { name: format!("rack-{number}"), ..rack("192.0.2.1:4747") };
            let message = agent.announcement(&[Ipv4Addr::new(192, 0, 2, 1).into()], false);
            let message = Message::read(&message).expect("a message");
            for _ in 0..2 {
                report(&message, &mut agents, &mut |_| reported += 1);
            }
        }
        assert_eq!((agents.len(), reported), (MAX_AGENTS, MAX_AGENTS));
    }
}
