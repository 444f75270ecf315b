//! Slots of connections that have not shown a token yet: which one goes when there are too many.
//!
//! Whoever opens many connections and says nothing must not keep others out. So a new connection always gets a slot,
//! and where there are too many, the oldest of the source that has most of them is dropped. Sources that have shown a
//! token lately have slots of their own, which strangers cannot take.

use futures_util::task::AtomicWaker;
use linerate_engine::origin;
use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

/// Most connections of strangers that have not shown a token; known sources have as many besides.
pub(crate) const SLOTS: usize = 64;
/// Most of them from one source.
pub(crate) const PER_SOURCE: usize = 16;
/// Sources that are remembered as known.
const KNOWN: usize = 1_024;

/// All slots.
#[derive(Debug, Default)]
pub(crate) struct Slots(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// The oldest first.
    taken: Vec<Taken>,
    /// Sources ([`origin`]) that have shown a token, the latest last.
    known: VecDeque<IpAddr>,
}

#[derive(Debug)]
struct Taken {
    source: IpAddr,
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
    /// Returns whether its connection is to be closed; `waker` is woken when that changes.
    pub(crate) fn is_dropped(&self, waker: &Waker) -> bool {
        self.waker.register(waker);
        self.dropped.load(Ordering::Acquire)
    }
}

impl Slots {
    /// Takes a slot for a new connection of `peer`. Returns how many others were dropped for it.
    pub(crate) fn take(&self, peer: IpAddr) -> (Arc<Slot>, u64) {
        let source = origin(peer);
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

    /// Gives a slot back: its connection has shown a token, and so the source of `peer` is known.
    pub(crate) fn admit(&self, peer: IpAddr, slot: &Arc<Slot>) {
        let source = origin(peer);
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
        let of = |source: IpAddr| alike().filter(|(_, taken)| taken.source == source).count();
        // Of equals the source whose connection is the oldest: the last of them in this order.
        let (oldest, most) =
            alike().map(|(index, taken)| (index, of(taken.source))).rev().max_by_key(|(_, count)| *count)?;
        (most > per_source || alike().count() > SLOTS).then_some(oldest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    fn is_dropped(slot: &Slot) -> bool {
        slot.is_dropped(Waker::noop())
    }

    #[test]
    fn one_source_drops_its_own_oldest() {
        let slots = Slots::default();
        let mine: Vec<_> = (0..PER_SOURCE + 3).map(|_| slots.take(peer("192.0.2.1")).0).collect();
        let (other, dropped) = slots.take(peer("192.0.2.2"));
        assert_eq!(dropped, 0);
        assert!(mine[..3].iter().all(|slot| is_dropped(slot)) && mine[3..].iter().all(|slot| !is_dropped(slot)));
        slots.release(&mine[3]);
        assert_eq!(slots.take(peer("192.0.2.1")).1, 0, "a connection that ended left its slot");
        assert!(!is_dropped(&other));
    }

    #[test]
    fn a_crowd_of_sources_never_keeps_a_new_one_out() {
        let slots = Slots::default();
        let crowd: Vec<_> = (0..8).flat_map(|host| [host; 12]).collect();
        let taken: Vec<_> = crowd.iter().map(|host| slots.take(peer(&format!("192.0.2.{host}"))).0).collect();
        assert_eq!(taken.iter().filter(|slot| !is_dropped(slot)).count(), SLOTS);
        let (new, dropped) = slots.take(peer("198.51.100.7"));
        assert_eq!(dropped, 1);
        // One connection is the least that any source has, so that 40 more come from the others' share.
        for host in 0..40 {
            slots.take(peer(&format!("192.0.2.{}", host % 8)));
        }
        assert!(!is_dropped(&new));
    }

    #[test]
    fn known_sources_have_places_that_strangers_cannot_take() {
        let slots = Slots::default();
        let (first, _) = slots.take(peer("198.51.100.7"));
        slots.admit(peer("198.51.100.7"), &first);
        let (again, _) = slots.take(peer("198.51.100.7"));
        for host in 0..200 {
            slots.take(peer(&format!("192.0.2.{host}")));
        }
        assert!(!is_dropped(&again));
    }
}
