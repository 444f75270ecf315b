//! The responder: answers questions for one agent until it is dropped.

use crate::agent::AnnouncedAgent;
use crate::group::{GroupSocket, Link, MAX_MESSAGE};
use crate::message::Message;
use linerate_sys::event::Event;
use linerate_sys::handle::AsSocket as _;
use linerate_sys::socket::wait_readable;
use rand::RngExt as _;
use std::net::IpAddr;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Shortest time between two answers on a link (RFC 6762 section 6).
const ANSWER_INTERVAL: Duration = Duration::from_secs(1);
/// Delay of an answer, so that several responders do not answer at once (RFC 6762 section 6), in milliseconds.
const ANSWER_DELAY_MS: std::ops::RangeInclusive<u64> = 20..=120;
/// Unsolicited announcements on a new link (RFC 6762 section 8.3).
const ANNOUNCEMENTS: u32 = 2;
/// Interval of listing the host's links.
const LINK_INTERVAL: Duration = Duration::from_secs(5);
/// Messages of one link that are read before a pause. The rest waits, or is lost once the socket is full.
const MESSAGES_AT_A_TIME: usize = 32;
const PAUSE: Duration = Duration::from_millis(10);

/// An agent that is announced. Dropping it withdraws the announcement.
#[derive(Debug)]
pub struct Announcement {
    stop: Arc<Event>,
    responder: Option<JoinHandle<()>>,
}

/// Announces `agent` on every link on which it listens until the returned value is dropped.
///
/// # Errors
/// The agent listens at a loopback address, or this host cannot announce it. The text says why and what to do.
pub fn announce(agent: AnnouncedAgent) -> Result<Announcement, String> {
    let address = agent.listening.ip().to_canonical();
    if address.is_loopback() {
        return Err(format!(
            "an agent at {address} is reached from this host only; --announce needs an address that others reach"
        ));
    }
    let stop = Arc::new(Event::new().map_err(cannot_announce)?);
    let mut responder = Responder { agent, links: Vec::new(), stop: Arc::clone(&stop) };
    responder.refresh(&Link::all().map_err(cannot_announce)?);
    let thread = thread::Builder::new().name("announce".to_owned()).spawn(move || responder.run());
    Ok(Announcement { stop, responder: Some(thread.map_err(cannot_announce)?) })
}

fn cannot_announce(error: impl std::fmt::Display) -> String {
    format!("cannot announce the agent by multicast DNS: {error}")
}

impl Drop for Announcement {
    fn drop(&mut self) {
        self.stop.add();
        // A panic has been printed by its thread; a destructor must not panic again.
        let _ = self.responder.take().map(JoinHandle::join);
    }
}

struct Responder {
    agent: AnnouncedAgent,
    links: Vec<AnnouncedLink>,
    stop: Arc<Event>,
}

/// A link on which the agent is announced.
struct AnnouncedLink {
    link: Link,
    /// Addresses of the agent there.
    addresses: Vec<IpAddr>,
    sockets: Vec<(GroupSocket, Answers)>,
}

impl Responder {
    fn run(mut self) {
        let mut listed_at = Instant::now();
        while !self.stop.take() {
            let now = Instant::now();
            if now >= listed_at + LINK_INTERVAL {
                listed_at = now;
                // Links that cannot be listed now may be listed the next time.
                if let Ok(links) = Link::all() {
                    self.refresh(&links);
                }
            }
            self.send_due(now);
            let next = self.sockets().filter_map(|(_, answers)| answers.due).chain([listed_at + LINK_INTERVAL]).min();
            let timeout = next.map_or(PAUSE, |next| next.saturating_duration_since(now));
            let waiting: Vec<_> =
                self.sockets().map(|(socket, _)| socket.socket.as_socket()).chain([self.stop.as_socket()]).collect();
            match wait_readable(&waiting, timeout.as_nanos() as u64) {
                Ok(true) => self.read(),
                Ok(false) => {}
                Err(_) => thread::sleep(PAUSE),
            }
        }
        for link in &self.links {
            let message = self.agent.announcement(&link.addresses, true);
            link.sockets.iter().for_each(|(socket, _)| socket.send(&message));
        }
    }

    fn sockets(&self) -> impl Iterator<Item = &(GroupSocket, Answers)> {
        self.links.iter().flat_map(|link| &link.sockets)
    }

    /// Joins the group on new links and leaves it on those that are gone or have other addresses.
    fn refresh(&mut self, links: &[Link]) {
        self.links.retain(|announced| links.contains(&announced.link));
        for link in links {
            let addresses = self.agent.addresses(link.addresses.iter().copied());
            if addresses.is_empty() || self.links.iter().any(|announced| announced.link == *link) {
                continue;
            }
            let joined = GroupSocket::join(link).into_iter();
            let sockets = joined.map(|socket| (socket, Answers::announcing(Instant::now()))).collect();
            self.links.push(AnnouncedLink { link: link.clone(), addresses, sockets });
        }
    }

    /// Sends the answers that are due.
    fn send_due(&mut self, now: Instant) {
        for AnnouncedLink { addresses, sockets, .. } in &mut self.links {
            for (socket, answers) in sockets {
                if answers.take(now) {
                    socket.send(&self.agent.announcement(addresses, false));
                }
            }
        }
    }

    /// Reads questions.
    fn read(&mut self) {
        let mut buffer = [0; MAX_MESSAGE];
        for (socket, answers) in self.links.iter_mut().flat_map(|link| &mut link.sockets) {
            for _ in 0..MESSAGES_AT_A_TIME {
                let Some(bytes) = socket.receive(&mut buffer) else { break };
                if Message::read(bytes).is_some_and(|message| self.agent.is_asked_for(&message)) {
                    let delay = Duration::from_millis(rand::rng().random_range(ANSWER_DELAY_MS));
                    answers.ask(Instant::now() + delay);
                }
            }
        }
        // Bounds the processor time that a flood of messages takes.
        thread::sleep(PAUSE);
    }
}

/// Schedule of answers on one link: at most one in each [`ANSWER_INTERVAL`], however many questions arrive.
#[derive(Debug)]
struct Answers {
    due: Option<Instant>,
    sent: Option<Instant>,
    announcements: u32,
}

impl Answers {
    fn announcing(now: Instant) -> Self {
        Self { due: Some(now), sent: None, announcements: ANNOUNCEMENTS }
    }

    /// Plans an answer at `time`, or as soon after it as one may be sent.
    fn ask(&mut self, time: Instant) {
        let earliest = self.sent.map_or(time, |sent| time.max(sent + ANSWER_INTERVAL));
        self.due.get_or_insert(earliest);
    }

    /// Returns whether an answer is to be sent now.
    fn take(&mut self, now: Instant) -> bool {
        if self.due.is_none_or(|due| due > now) {
            return false;
        }
        self.sent = Some(now);
        self.announcements = self.announcements.saturating_sub(1);
        self.due = (self.announcements > 0).then_some(now + ANSWER_INTERVAL);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::tests::rack;

    #[test]
    fn an_agent_that_only_this_host_reaches_is_not_announced() {
        for address in ["127.0.0.1:4747", "[::1]:4747"] {
            let error = announce(rack(address)).expect_err("refused");
            assert!(error.contains("--announce"), "{error}");
        }
    }

    #[test]
    fn a_flood_of_questions_gets_one_answer_a_second() {
        let start = Instant::now();
        let mut answers = Answers::announcing(start);
        let mut sent = 0;
        for millisecond in 0..10_000 {
            let now = start + Duration::from_millis(millisecond);
            answers.ask(now + Duration::from_millis(20));
            sent += u32::from(answers.take(now));
        }
        assert_eq!(sent, 10);
    }

    #[test]
    fn an_agent_is_announced_twice_and_then_silent() {
        let start = Instant::now();
        let mut answers = Answers::announcing(start);
        let sent: Vec<u64> = (0..60).filter(|second| answers.take(start + Duration::from_secs(*second))).collect();
        assert_eq!(sent, [0, 1]);
    }
}
