//! A planted limit: how long calls take, and how many are served at a time.
//!
//! Nobody sleeps: when a reply is due is computed, so that it is as exact as the timer that sends it.

use linerate_units::Nanos;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::{Mutex, PoisonError};

/// Planted slowness of a server. The default adds no delay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ServiceTime {
    /// Time of a call; zero adds no delay.
    pub call: Nanos,
    /// Time of a WRITE or COMMIT instead.
    pub write: Option<Nanos>,
    /// Calls served at a time, if they take time; `None` is [`ServiceTime::AT_ONCE`].
    pub at_once: Option<u16>,
}

impl ServiceTime {
    /// Default number of calls served at a time: the number of threads that Linux's own server starts with.
    pub const AT_ONCE: u16 = 8;

    fn of(&self, writes: bool) -> u64 {
        if writes { self.write.unwrap_or(self.call) } else { self.call }.get()
    }
}

/// Queue in front of the planted servers, first come, first served.
#[derive(Debug)]
pub(super) struct Pace {
    time: ServiceTime,
    /// When each server has done what it was given.
    free: Mutex<BinaryHeap<Reverse<u64>>>,
}

impl Pace {
    pub(super) fn new(time: ServiceTime) -> Self {
        let servers = time.at_once.unwrap_or(ServiceTime::AT_ONCE).max(1);
        Self { time, free: Mutex::new((0..servers).map(|_| Reverse(0)).collect()) }
    }

    /// Returns when the reply to a call that arrived at `now` is due, or `None` if it takes no time.
    pub(super) fn due(&self, now: u64, writes: bool) -> Option<u64> {
        let time = self.time.of(writes);
        if time == 0 {
            return None;
        }
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let mut server = free.peek_mut()?;
        server.0 = server.0.max(now).saturating_add(time);
        Some(server.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn pace(call: u64, write: Option<u64>, at_once: u16) -> Pace {
        let write = write.map(Nanos::new);
        Pace::new(ServiceTime { call: Nanos::new(call), write, at_once: Some(at_once) })
    }

    #[test]
    fn calls_queue_for_the_servers_there_are() {
        let pace = pace(2 * MS, None, 2);
        let due: Vec<_> = (0..5).map(|_| pace.due(10 * MS, false).expect("takes time")).collect();
        assert_eq!(due, [12, 12, 14, 14, 16].map(|ms| ms * MS));
        assert_eq!(pace.due(15 * MS, true), Some(17 * MS), "one is free since 14 ms");
        assert_eq!(pace.due(100 * MS, false), Some(102 * MS));
    }

    #[test]
    fn only_writes_may_be_slow() {
        let pace = pace(0, Some(20 * MS), 1);
        assert_eq!(pace.due(MS, false), None);
        assert_eq!(pace.due(MS, true), Some(21 * MS));
        assert_eq!(pace.due(2 * MS, false), None, "no write is in the way of what takes no time");
        assert_eq!(pace.due(2 * MS, true), Some(41 * MS));
    }
}
