//! Slow router: a process in the namespace of a router that answers expired packets late, as a busy CPU does.
//!
//! The kernel cannot delay its answers. It sends no "time exceeded" in this namespace, and this process sends them
//! instead: after a delay, and at most as many as the kernel would.

use crate::linux::lifeline::wait_for_end;
use crate::linux::path::chance::Chance;
use crate::linux::path::frame::Contents;
use crate::linux::slow_disk::READY;
use linerate_sys::netlink::Route;
use linerate_sys::packet::{ALL_PROTOCOLS, Incoming, PacketSocket};
use linerate_sys::{Error, clock};
use linerate_units::{Nanos, ParseError};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;
use std::thread;

/// Frames taken in one call, and room for the longest packet.
const TAKEN: usize = 4;
const ROOM: usize = 66_000;
/// The longest wait for frames, milliseconds.
const IDLE_MS: u64 = 1_000;
/// Answers to one sender that may leave at once (XRLIM_BURST_FACTOR).
const BURST: u64 = 6;
/// Answers that wait at most; the process forgets later ones.
const WAITING_MAXIMUM: usize = 4_096;

/// Plan of a slow router, the argument of its process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlowRouter {
    /// Delay of an answer, nanoseconds.
    pub(crate) delay: u64,
    /// Largest change of the delay, up and down.
    pub(crate) jitter: u64,
    /// Nanoseconds between two answers to one sender, IPv4 and IPv6; 0 is no limit.
    pub(crate) intervals: [u64; 2],
    /// Whether answers come from an address on no link.
    pub(crate) odd: bool,
}

impl FromStr for SlowRouter {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        serde_json::from_str(text).map_err(|_| ParseError {
            text: text.to_owned(),
            expected: "the plan of a slow router",
            example: r#"{"delay":20000000,"jitter":0,"intervals":[0,0],"odd":false}"#,
        })
    }
}

impl fmt::Display for SlowRouter {
    /// Writes the form that [`FromStr`] reads.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&serde_json::to_string(self).map_err(|_| fmt::Error)?)
    }
}

/// Answers expired packets in the calling thread's network namespace until standard input ends. Says so on standard output.
///
/// # Errors
///
/// Fails without CAP_NET_RAW.
pub fn serve(plan: &SlowRouter) -> Result<(), Error> {
    let ports = match Port::open_all(plan) {
        Ok(ports) => ports,
        Err(error) => {
            println!("{error}");
            return Err(error);
        }
    };
    for port in ports {
        thread::Builder::new()
            .name(String::from("answers"))
            .spawn(move || port.run())
            .map_err(|error| Error::new("clone", "the thread of an interface", error))?;
    }
    println!("{READY}");
    wait_for_end()
}

/// An interface of the router.
struct Port {
    socket: PacketSocket,
    /// Source of answers, IPv4 and IPv6.
    sources: [Option<IpAddr>; 2],
    /// Addresses of the router: packets to them do not expire here.
    router: Vec<IpAddr>,
    delay: Delay,
    limits: [AnswerLimit; 2],
}

impl Port {
    fn open_all(plan: &SlowRouter) -> Result<Vec<Self>, Error> {
        let mut route = Route::open()?;
        let addresses = route.addresses()?;
        let links = route.links()?;
        let mut ports = Vec::new();
        for link in links.iter().filter(|link| !link.loopback) {
            let socket = PacketSocket::open(link.index, Some(ALL_PROTOCOLS))?;
            socket.hear_expiring_only()?;
            let mut sources = [None, None];
            for address in &addresses {
                let is_on_loopback = links.iter().any(|link| link.index == address.link && link.loopback);
                let fits = if plan.odd { is_on_loopback } else { address.link == link.index };
                if fits && is_routed(address.address) {
                    sources[usize::from(address.address.is_ipv6())] = Some(address.address);
                }
            }
            ports.push(Self {
                socket,
                sources,
                router: addresses.iter().map(|address| address.address).collect(),
                delay: Delay::new(plan.delay, plan.jitter, clock::unix_now() ^ u64::from(link.index)),
                limits: plan.intervals.map(AnswerLimit::new),
            });
        }
        Ok(ports)
    }

    fn run(mut self) -> Result<(), Error> {
        let mut incoming = Incoming::with_room(TAKEN, ROOM);
        // By the time at which they leave, and their number.
        let mut waiting: BTreeMap<(u64, u64), Vec<u8>> = BTreeMap::new();
        let mut number = 0u64;
        loop {
            let now = clock::now();
            while let Some(entry) = waiting.first_entry() {
                let (due, _) = *entry.key();
                if due > now {
                    break;
                }
                let answer = entry.remove();
                // A refused answer is a lost one.
                let _ = self.socket.send(&answer);
            }
            let next = waiting.first_key_value().map(|((due, _), _)| due.saturating_sub(clock::now()));
            match next {
                Some(left) if left < Nanos::from_millis(1).get() => clock::sleep_until(clock::now() + left),
                _ => {
                    let milliseconds = next.map_or(IDLE_MS, |left| left / Nanos::from_millis(1).get()).min(IDLE_MS);
                    self.socket.wait(milliseconds as u16);
                }
            }
            let taken =
                incoming.take(&self.socket).map_err(|error| Error::new("recvmmsg", "the frames of a router", error))?;
            if taken == 0 {
                continue;
            }
            let now = clock::now();
            let frames: Vec<_> = incoming.frames().map(|(frame, _)| frame.to_vec()).collect();
            for frame in frames {
                if let Some(answer) = self.answer(&frame, now).filter(|_| waiting.len() < WAITING_MAXIMUM) {
                    waiting.insert((now + self.delay.next(), number), answer);
                    number += 1;
                }
            }
        }
    }

    /// Returns the answer to a frame, or `None` if its packet does not expire here or the limit is reached.
    fn answer(&mut self, frame: &[u8], now: u64) -> Option<Vec<u8>> {
        let packet = Contents::of(frame).packet?;
        let [from, to] = packet.addresses(frame);
        let family = usize::from(to.is_ipv6());
        if packet.ttl(frame) > 1 || self.router.contains(&to) {
            return None;
        }
        let answer = packet.time_exceeded(frame, self.sources[family]?)?;
        self.limits[family].allows(from, now).then_some(answer)
    }
}

/// Returns whether routers send from this address.
fn is_routed(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => !v4.is_loopback() && !v4.is_link_local(),
        IpAddr::V6(v6) => !v6.is_loopback() && !v6.is_unicast_link_local(),
    }
}

/// Delays of answers, each independent of the others.
struct Delay {
    shortest: u64,
    /// Number of nanoseconds between the shortest delay and the longest.
    range: u64,
    chance: Chance,
}

impl Delay {
    fn new(delay: u64, jitter: u64, seed: u64) -> Self {
        Self { shortest: delay.saturating_sub(jitter), range: 2 * jitter.min(delay), chance: Chance::new(seed) }
    }

    fn next(&mut self) -> u64 {
        self.shortest + self.chance.number() % (self.range + 1)
    }
}

/// Limit of answers to each sender: a token bucket, as the kernel has.
struct AnswerLimit {
    interval: u64,
    /// Saved time of each sender, and when it was counted.
    senders: HashMap<IpAddr, (u64, u64)>,
}

impl AnswerLimit {
    fn new(interval: u64) -> Self {
        Self { interval, senders: HashMap::new() }
    }

    /// Returns whether an answer to `sender` may leave at `now`, and counts it.
    fn allows(&mut self, sender: IpAddr, now: u64) -> bool {
        let full = BURST * self.interval;
        let (saved, counted) = self.senders.get(&sender).copied().unwrap_or((full, now));
        let saved = (saved + now.saturating_sub(counted)).min(full);
        let is_allowed = saved >= self.interval;
        self.senders.insert(sender, (if is_allowed { saved - self.interval } else { saved }, now));
        is_allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn a_sender_gets_a_burst_and_then_one_answer_each_interval() {
        let [a, b] = [[198, 18, 1, 1], [198, 18, 1, 2]].map(IpAddr::from);
        let mut limit = AnswerLimit::new(SECOND);
        let allowed = |limit: &mut AnswerLimit, at| (0..10).filter(|_| limit.allows(a, at)).count();
        assert_eq!([0, SECOND / 2, SECOND, 3 * SECOND, 60 * SECOND].map(|at| allowed(&mut limit, at)), [6, 0, 1, 2, 6]);
        assert!(limit.allows(b, 0), "another sender has a limit of its own");
        let mut none = AnswerLimit::new(0);
        assert_eq!(allowed(&mut none, 5), 10);
    }

    #[test]
    fn delays_lie_within_the_jitter() {
        let mut delay = Delay::new(20, 5, 1);
        let delays: Vec<_> = (0..1_000).map(|_| delay.next()).collect();
        assert_eq!((delays.iter().min(), delays.iter().max()), (Some(&15), Some(&25)));
        assert_eq!(Delay::new(20, 0, 1).next(), 20);
    }

    #[test]
    fn a_plan_is_read_and_written_alike() {
        let plan = SlowRouter { delay: 20_000_000, jitter: 5, intervals: [SECOND, 0], odd: true };
        assert_eq!(plan.to_string().parse(), Ok(plan));
        assert!("20ms".parse::<SlowRouter>().is_err());
    }
}
