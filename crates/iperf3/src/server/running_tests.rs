//! Running tests, and the flows that they wait for.

use crate::control::Cookie;
use linerate_engine::origin;
use linerate_model::{SocketOptions, Transport};
use linerate_streams::BulkSocket;
use std::net::{IpAddr, SocketAddr};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Running tests of a service.
#[derive(Debug, Default)]
pub(super) struct RunningTests(Mutex<Vec<Entry>>);

#[derive(Debug)]
struct Entry {
    cookie: [u8; Cookie::BYTES],
    peer: IpAddr,
    expected: Option<ExpectedFlows>,
    /// Payload bits per second that the test sends and receives.
    rates: (u64, u64),
    flows: Sender<AcceptedFlow>,
}

/// Socket of a flow, and its number in the client's order of opening.
#[derive(Debug)]
pub(super) struct AcceptedFlow {
    pub(super) number: u64,
    pub(super) socket: BulkSocket,
}

/// Flows that a test waits for.
#[derive(Debug, Clone)]
pub(super) struct ExpectedFlows {
    pub(super) transport: Transport,
    /// Number of missing flows.
    pub(super) missing: usize,
    /// Address of the service that the client uses. Datagrams from another address would not reach it.
    pub(super) service: SocketAddr,
    pub(super) socket: SocketOptions,
}

/// Place of a test. Dropping it frees the place.
#[derive(Debug)]
pub(super) struct Slot {
    tests: Arc<RunningTests>,
    cookie: [u8; Cookie::BYTES],
    pub(super) flows: Receiver<AcceptedFlow>,
}

/// Purpose of a connection with a cookie.
pub(super) enum Purpose {
    /// Flow that a test waits for, and the options to set.
    Flow(Sender<AcceptedFlow>, SocketOptions),
    /// Control connection of a new test.
    NewTest(Slot),
    /// New test beyond the limit.
    Full,
    /// Connection that no test waits for.
    Unexpected,
}

impl RunningTests {
    /// Returns the purpose of a connection from `peer` that begins with `cookie`. A new test gets a place if there are
    /// fewer than `max_tests`.
    pub(super) fn purpose(self: &Arc<Self>, cookie: [u8; Cookie::BYTES], peer: IpAddr, max_tests: usize) -> Purpose {
        let mut entries = self.entries();
        let peer = peer.to_canonical();
        if let Some(test) = entries.iter_mut().find(|test| test.cookie == cookie) {
            return match &mut test.expected {
                Some(expected) if expected.transport == Transport::Tcp && expected.missing > 0 && test.peer == peer => {
                    expected.missing -= 1;
                    Purpose::Flow(test.flows.clone(), expected.socket.clone())
                }
                _ => Purpose::Unexpected,
            };
        }
        if entries.len() >= max_tests {
            return Purpose::Full;
        }
        let (sender, flows) = channel();
        entries.push(Entry { cookie, peer, expected: None, rates: (0, 0), flows: sender });
        drop(entries);
        Purpose::NewTest(Slot { tests: Arc::clone(self), cookie, flows })
    }

    /// Returns the first test that waits for a UDP flow from `peer`, and its expected flows. Datagrams do not name
    /// their test.
    pub(super) fn take_datagram(&self, peer: IpAddr) -> Option<(Sender<AcceptedFlow>, ExpectedFlows)> {
        let peer = peer.to_canonical();
        for test in self.entries().iter_mut().filter(|test| test.peer == peer) {
            if let Some(expected) = &mut test.expected
                && expected.transport == Transport::Udp
                && expected.missing > 0
            {
                expected.missing -= 1;
                return Some((test.flows.clone(), expected.clone()));
            }
        }
        None
    }

    /// Returns the number of tests from the network of `peer`.
    pub(super) fn from(&self, peer: IpAddr) -> usize {
        self.entries().iter().filter(|test| origin(test.peer) == origin(peer)).count()
    }

    fn entries(&self) -> MutexGuard<'_, Vec<Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Slot {
    /// Sets the `rates` that the test sends and receives, bits per second, if `admit` accepts the sums of all other
    /// tests.
    pub(super) fn admit<E>(&self, rates: (u64, u64), admit: impl FnOnce((u64, u64)) -> Result<(), E>) -> Result<(), E> {
        let mut entries = self.tests.entries();
        let mut sent: u64 = 0;
        let mut received: u64 = 0;
        for test in entries.iter().filter(|test| test.cookie != self.cookie) {
            sent = sent.saturating_add(test.rates.0);
            received = received.saturating_add(test.rates.1);
        }
        admit((sent, received))?;
        if let Some(test) = entries.iter_mut().find(|test| test.cookie == self.cookie) {
            test.rates = rates;
        }
        Ok(())
    }

    /// Accepts the `expected` flows of the test from now on.
    pub(super) fn wait_for(&self, expected: ExpectedFlows) {
        if let Some(test) = self.tests.entries().iter_mut().find(|test| test.cookie == self.cookie) {
            test.expected = Some(expected);
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.tests.entries().retain(|test| test.cookie != self.cookie);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PEER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(198, 18, 0, 1));
    const OTHER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(198, 18, 0, 2));

    fn begin(tests: &Arc<RunningTests>, letter: u8) -> Option<Slot> {
        match tests.purpose([letter; Cookie::BYTES], PEER, 2) {
            Purpose::NewTest(slot) => Some(slot),
            _ => None,
        }
    }

    fn expected(transport: Transport, missing: usize) -> ExpectedFlows {
        ExpectedFlows { transport, missing, service: SocketAddr::new(PEER, 5_201), socket: SocketOptions::default() }
    }

    #[test]
    fn tests_are_limited_and_free_their_places() {
        let tests = Arc::<RunningTests>::default();
        let first = begin(&tests, 1).expect("room");
        let second = begin(&tests, 2).expect("room");
        assert!(matches!(tests.purpose([3; Cookie::BYTES], PEER, 2), Purpose::Full));
        drop(second);
        assert!(begin(&tests, 3).is_some());
        assert_eq!((tests.from(PEER), tests.from(OTHER)), (1, 0));
        drop(first);
    }

    #[test]
    fn only_expected_flows_of_the_tests_client_are_accepted() {
        let tests = Arc::<RunningTests>::default();
        let slot = begin(&tests, 1).expect("room");
        let is_flow = |peer| matches!(tests.purpose([1; Cookie::BYTES], peer, 2), Purpose::Flow(..));
        assert!(!is_flow(PEER), "the test does not wait for it yet");
        slot.wait_for(expected(Transport::Tcp, 1));
        assert!(!is_flow(OTHER) && is_flow(PEER) && !is_flow(PEER));
        slot.wait_for(expected(Transport::Udp, 1));
        assert!(!is_flow(PEER) && tests.take_datagram(OTHER).is_none());
        assert!(tests.take_datagram(PEER).is_some() && tests.take_datagram(PEER).is_none());
    }

    #[test]
    fn rates_of_all_tests_add_up() {
        let tests = Arc::<RunningTests>::default();
        let first = begin(&tests, 1).expect("room");
        let second = begin(&tests, 2).expect("room");
        first.admit((5, 7), |others| if others == (0, 0) { Ok(()) } else { Err(others) }).expect("alone");
        assert_eq!(second.admit((1, 1), Err), Err((5, 7)));
    }
}
