//! The tests that are under way, and the flows that they wait for.

use crate::control::Cookie;
use linerate_engine::origin;
use linerate_model::{SocketOptions, Transport};
use linerate_streams::BulkSocket;
use std::net::{IpAddr, SocketAddr};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// All tests of a service.
#[derive(Debug, Default)]
pub(super) struct TestsUnderWay(Mutex<Vec<Entry>>);

#[derive(Debug)]
struct Entry {
    cookie: [u8; Cookie::BYTES],
    peer: IpAddr,
    wants: Option<Wants>,
    /// Payload bits per second that the test sends and receives.
    rates: (u64, u64),
    flows: Sender<AcceptedFlow>,
}

/// A flow's socket, and its place in the order in which the client opened its flows.
#[derive(Debug)]
pub(super) struct AcceptedFlow {
    pub(super) number: u64,
    pub(super) socket: BulkSocket,
}

/// The flows that a test waits for.
#[derive(Debug, Clone)]
pub(super) struct Wants {
    pub(super) transport: Transport,
    /// How many are missing.
    pub(super) missing: usize,
    /// The service's address that the client uses: datagrams from another would not reach it.
    pub(super) service: SocketAddr,
    pub(super) socket: SocketOptions,
}

/// A test's place. Dropping it gives the place up.
#[derive(Debug)]
pub(super) struct Slot {
    all: Arc<TestsUnderWay>,
    cookie: [u8; Cookie::BYTES],
    pub(super) flows: Receiver<AcceptedFlow>,
}

/// What a connection with a cookie is.
pub(super) enum Known {
    /// A flow that a test waits for; it was handed over with these options to set.
    Flow(Sender<AcceptedFlow>, SocketOptions),
    /// A test that begins.
    Begins(Slot),
    /// There are as many tests as may be.
    Full,
    /// One that no test waits for.
    Stray,
}

impl TestsUnderWay {
    /// Says what a connection from `peer` is that begins with `cookie`.
    pub(super) fn take(self: &Arc<Self>, cookie: [u8; Cookie::BYTES], peer: IpAddr, most: usize) -> Known {
        let mut all = self.entries();
        let peer = peer.to_canonical();
        if let Some(test) = all.iter_mut().find(|test| test.cookie == cookie) {
            return match &mut test.wants {
                Some(wants) if wants.transport == Transport::Tcp && wants.missing > 0 && test.peer == peer => {
                    wants.missing -= 1;
                    Known::Flow(test.flows.clone(), wants.socket.clone())
                }
                _ => Known::Stray,
            };
        }
        if all.len() >= most {
            return Known::Full;
        }
        let (sender, flows) = channel();
        all.push(Entry { cookie, peer, wants: None, rates: (0, 0), flows: sender });
        drop(all);
        Known::Begins(Slot { all: Arc::clone(self), cookie, flows })
    }

    /// The test that waits for a UDP flow from `peer`, and what it waits for. Of several the first: datagrams name none.
    pub(super) fn take_datagram(&self, peer: IpAddr) -> Option<(Sender<AcceptedFlow>, Wants)> {
        let peer = peer.to_canonical();
        self.entries().iter_mut().filter(|test| test.peer == peer).find_map(|test| {
            let wants = test.wants.as_mut().filter(|wants| wants.transport == Transport::Udp && wants.missing > 0)?;
            wants.missing -= 1;
            Some((test.flows.clone(), wants.clone()))
        })
    }

    /// How many tests there are from where `peer` is.
    pub(super) fn from(&self, peer: IpAddr) -> usize {
        self.entries().iter().filter(|test| origin(test.peer) == origin(peer)).count()
    }

    fn entries(&self) -> MutexGuard<'_, Vec<Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Slot {
    /// Makes room for a test that sends and receives so many bits per second, if `admit` agrees beside the sum of all others.
    pub(super) fn admit<E>(&self, rates: (u64, u64), admit: impl FnOnce((u64, u64)) -> Result<(), E>) -> Result<(), E> {
        let mut all = self.all.entries();
        let others = all.iter().filter(|test| test.cookie != self.cookie).map(|test| test.rates);
        admit(others.fold((0, 0), |(sent, got), (out, into)| (sent.saturating_add(out), got.saturating_add(into))))?;
        if let Some(own) = all.iter_mut().find(|test| test.cookie == self.cookie) {
            own.rates = rates;
        }
        Ok(())
    }

    /// From now on flows of the test are taken.
    pub(super) fn wait_for(&self, wants: Wants) {
        if let Some(own) = self.all.entries().iter_mut().find(|test| test.cookie == self.cookie) {
            own.wants = Some(wants);
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.all.entries().retain(|test| test.cookie != self.cookie);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PEER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(198, 18, 0, 1));
    const OTHER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(198, 18, 0, 2));

    fn begins(all: &Arc<TestsUnderWay>, letter: u8) -> Option<Slot> {
        match all.take([letter; Cookie::BYTES], PEER, 2) {
            Known::Begins(place) => Some(place),
            _ => None,
        }
    }

    fn wants(transport: Transport, missing: usize) -> Wants {
        Wants { transport, missing, service: SocketAddr::new(PEER, 5_201), socket: SocketOptions::default() }
    }

    #[test]
    fn tests_are_limited_and_leave_their_places() {
        let all = Arc::<TestsUnderWay>::default();
        let (first, second) = (begins(&all, 1).expect("room"), begins(&all, 2).expect("room"));
        assert!(matches!(all.take([3; Cookie::BYTES], PEER, 2), Known::Full));
        drop(second);
        assert!(begins(&all, 3).is_some());
        assert_eq!((all.from(PEER), all.from(OTHER)), (1, 0));
        drop(first);
    }

    #[test]
    fn a_flow_is_taken_from_the_tests_own_client_as_often_as_it_waits() {
        let all = Arc::<TestsUnderWay>::default();
        let place = begins(&all, 1).expect("room");
        let take = |peer| matches!(all.take([1; Cookie::BYTES], peer, 2), Known::Flow(..));
        assert!(!take(PEER), "it is not waited for yet");
        place.wait_for(wants(Transport::Tcp, 1));
        assert!(!take(OTHER) && take(PEER) && !take(PEER));
        place.wait_for(wants(Transport::Udp, 1));
        assert!(!take(PEER) && all.take_datagram(OTHER).is_none());
        assert!(all.take_datagram(PEER).is_some() && all.take_datagram(PEER).is_none());
    }

    #[test]
    fn rates_of_all_tests_add_up() {
        let all = Arc::<TestsUnderWay>::default();
        let (first, second) = (begins(&all, 1).expect("room"), begins(&all, 2).expect("room"));
        first.admit((5, 7), |others| if others == (0, 0) { Ok(()) } else { Err(others) }).expect("alone");
        assert_eq!(second.admit((1, 1), Err), Err((5, 7)));
    }
}
