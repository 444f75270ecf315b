//! Memory of all connections of a server together: calls that are gathered, and replies that wait.
//!
//! Whoever holds a session's key may open more connections than the load has, and begin a long call on each. While all
//! memory is taken, connections wait, but for one that has begun: it goes on, so that none waits for ever.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A connection notes what it takes in steps of as many bytes, so that small calls cost nothing.
const STEP: u64 = 64 << 10;
/// A connection that takes no more has begun nothing.
const IDLE: u64 = 2 * STEP;

/// The memory of a server.
#[derive(Debug)]
pub(super) struct ServerMemory {
    maximum: u64,
    taken: AtomicU64,
    /// A connection goes on though all memory is taken.
    has_exempt: AtomicBool,
}

/// Memory of one connection.
#[derive(Debug)]
pub(super) struct ConnectionMemory<'a> {
    server: &'a ServerMemory,
    noted: u64,
    is_exempt: bool,
}

impl ServerMemory {
    pub(super) fn new(maximum: u64) -> Self {
        Self { maximum, taken: AtomicU64::new(0), has_exempt: AtomicBool::new(false) }
    }

    pub(super) fn connection(&self) -> ConnectionMemory<'_> {
        ConnectionMemory { server: self, noted: 0, is_exempt: false }
    }
}

impl ConnectionMemory<'_> {
    /// Notes that the connection takes `bytes`. Returns whether all memory is taken.
    pub(super) fn is_full(&mut self, bytes: u64) -> bool {
        if bytes.abs_diff(self.noted) >= STEP {
            // Wraps where it shrinks.
            self.server.taken.fetch_add(bytes.wrapping_sub(self.noted), Ordering::Relaxed);
            self.noted = bytes;
        }
        let is_full = self.server.taken.load(Ordering::Relaxed) >= self.server.maximum;
        if !is_full {
            self.give_up_exemption();
        }
        is_full
    }

    /// Whether the connection, which takes `bytes`, may go on although all memory is taken.
    pub(super) fn is_exempt(&mut self, bytes: u64) -> bool {
        if bytes <= IDLE {
            self.give_up_exemption();
        } else if !self.is_exempt {
            self.is_exempt = !self.server.has_exempt.swap(true, Ordering::AcqRel);
        }
        self.is_exempt
    }

    fn give_up_exemption(&mut self) {
        if std::mem::take(&mut self.is_exempt) {
            self.server.has_exempt.store(false, Ordering::Release);
        }
    }
}

impl Drop for ConnectionMemory<'_> {
    fn drop(&mut self) {
        self.server.taken.fetch_sub(self.noted, Ordering::Relaxed);
        self.give_up_exemption();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn one_connection_that_has_begun_goes_on_when_all_memory_is_taken() {
        let server = ServerMemory::new(4 * MIB);
        let mut first = server.connection();
        let mut second = server.connection();
        let mut idle = server.connection();
        assert!(!first.is_full(3 * MIB) && second.is_full(MIB) && idle.is_full(STEP / 2));
        assert!(!idle.is_exempt(STEP), "it has begun nothing");
        assert!(first.is_exempt(3 * MIB) && !second.is_exempt(MIB), "one at a time");
        assert!(!first.is_full(0) && !second.is_full(MIB), "there is room again");
        assert!(second.is_full(4 * MIB) && second.is_exempt(4 * MIB), "the other has given it up");
        drop(second);
        assert!(!first.is_full(3 * MIB), "what a connection took is given back");
    }
}
