//! Slots of connections that have not shown a token yet: which one goes when there are too many.
//!
//! Whoever opens many connections and says nothing must not keep others out. So a new connection always gets a slot, and where
//! there are too many, the oldest of the source that has most of them is dropped. Sources that have shown a token lately have
//! slots of their own, which strangers cannot take.

use futures_util::task::AtomicWaker;
use std::collections::VecDeque;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

/// Most connections of strangers that have not shown a token; known sources have as many besides.
pub(crate) const SLOTS: usize = 64;
/// Most of them from one source.
pub(crate) const PER_SOURCE: usize = 16;
/// Sources that are remembered as known.
const KNOWN: usize = 1_024;

/// Whom a connection counts to: an IPv4 address, or the /64 of an IPv6 one, in which a host chooses its address freely.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Source(IpAddr);

impl From<IpAddr> for Source {
    fn from(address: IpAddr) -> Self {
        Self(match address.to_canonical() {
            IpAddr::V4(address) => address.into(),
            IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)).into(),
        })
    }
}

/// All slots.
#[derive(Debug, Default)]
pub(crate) struct Slots(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// The oldest first.
    taken: Vec<Taken>,
    /// Sources that have shown a token, the latest last.
    known: VecDeque<Source>,
}

#[derive(Debug)]
struct Taken {
    source: Source,
    /// The source was known when it came.
    known: bool,
    slot: Arc<Slot>,
}

/// The slot of one connection.
#[derive(Debug, Default)]
pub(crate) struct Slot {
    dropped: AtomicBool,
    waker: AtomicWaker,
}

impl Slot {
    /// Whether its connection is to be closed; `waker` is woken when that changes.
    pub(crate) fn is_dropped(&self, waker: &Waker) -> bool {
        self.waker.register(waker);
        self.dropped.load(Ordering::Acquire)
    }
}

impl Slots {
    /// Takes a slot for a new connection of `source`. Returns how many others were dropped for it.
    pub(crate) fn take(&self, source: Source) -> (Arc<Slot>, u64) {
        let mut state = self.state();
        let known = state.known.contains(&source);
        let (slot, mut dropped) = (Arc::<Slot>::default(), 0);
        state.taken.push(Taken { source, known, slot: Arc::clone(&slot) });
        while let Some(index) = state.surplus(known) {
            let taken = state.taken.remove(index);
            taken.slot.dropped.store(true, Ordering::Release);
            taken.slot.waker.wake();
            dropped += 1;
        }
        (slot, dropped)
    }

    /// Gives a slot back: its connection has ended.
    pub(crate) fn release(&self, slot: &Arc<Slot>) {
        self.state().taken.retain(|taken| !Arc::ptr_eq(&taken.slot, slot));
    }

    /// Gives a slot back: its connection has shown a token, and so `source` is known.
    pub(crate) fn admit(&self, source: Source, slot: &Arc<Slot>) {
        self.release(slot);
        let mut state = self.state();
        state.known.retain(|known| *known != source);
        state.known.push_back(source);
        if state.known.len() > KNOWN {
            state.known.pop_front();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// The connection to drop where there are too many of known sources, or of others.
    fn surplus(&self, known: bool) -> Option<usize> {
        let per_source = if known { SLOTS } else { PER_SOURCE };
        let alike = || self.taken.iter().enumerate().filter(move |(_, taken)| taken.known == known);
        let of = |source: Source| alike().filter(|(_, taken)| taken.source == source).count();
        // Of equals the source whose connection is the oldest.
        let (oldest, most) =
            alike().map(|(index, taken)| (index, of(taken.source))).rev().max_by_key(|(_, count)| *count)?;
        let source = self.taken[oldest].source;
        (most > per_source || alike().count() > SLOTS)
            .then(|| alike().find(|(_, taken)| taken.source == source).map(|(index, _)| index))
            .flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(text: &str) -> Source {
        text.parse::<IpAddr>().expect("an address").into()
    }

    fn is_dropped(slot: &Slot) -> bool {
        slot.is_dropped(Waker::noop())
    }

    #[test]
    fn one_source_drops_its_own_oldest() {
        let slots = Slots::default();
        let mine: Vec<_> = (0..PER_SOURCE + 3).map(|_| slots.take(source("192.0.2.1")).0).collect();
        let (other, dropped) = slots.take(source("192.0.2.2"));
        assert_eq!(dropped, 0);
        assert!(mine[..3].iter().all(|slot| is_dropped(slot)) && mine[3..].iter().all(|slot| !is_dropped(slot)));
        slots.release(&mine[3]);
        assert_eq!(slots.take(source("192.0.2.1")).1, 0, "a connection that ended left its slot");
        assert!(!is_dropped(&other));
    }

    #[test]
    fn a_crowd_of_sources_never_keeps_a_new_one_out() {
        let slots = Slots::default();
        let crowd: Vec<_> = (0..8).flat_map(|host| [host; 12]).collect();
        let taken: Vec<_> = crowd.iter().map(|host| slots.take(source(&format!("192.0.2.{host}"))).0).collect();
        assert_eq!(taken.iter().filter(|slot| !is_dropped(slot)).count(), SLOTS);
        let (new, dropped) = slots.take(source("198.51.100.7"));
        assert_eq!(dropped, 1);
        // One connection is the least that any source has, so that 40 more come from the others' share.
        for host in 0..40 {
            slots.take(source(&format!("192.0.2.{}", host % 8)));
        }
        assert!(!is_dropped(&new));
    }

    #[test]
    fn known_sources_have_places_that_strangers_cannot_take() {
        let slots = Slots::default();
        let (first, _) = slots.take(source("198.51.100.7"));
        slots.admit(source("198.51.100.7"), &first);
        let (again, _) = slots.take(source("198.51.100.7"));
        for host in 0..200 {
            slots.take(source(&format!("192.0.2.{host}")));
        }
        assert!(!is_dropped(&again));
    }

    #[test]
    fn hosts_of_one_ipv6_network_are_one_source() {
        assert_eq!(source("2001:db8::1"), source("2001:db8::ffff:1"));
        assert_ne!(source("2001:db8::1"), source("2001:db8:0:1::1"));
        assert_eq!(source("::ffff:192.0.2.1"), source("192.0.2.1"));
    }
}
