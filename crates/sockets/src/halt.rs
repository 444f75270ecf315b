//! How the threads of a half are ended before their time, and why.

use linerate_sys::clock;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// A word to all threads of a half that they are to end, with the first reason given.
#[derive(Debug)]
pub struct Halt<E> {
    stop: AtomicBool,
    /// The first thing that went wrong; what follows from it is not recorded.
    failure: Mutex<Option<E>>,
}

impl<E> Default for Halt<E> {
    fn default() -> Self {
        Self { stop: AtomicBool::new(false), failure: Mutex::new(None) }
    }
}

impl<E> Halt<E> {
    /// The threads are to end now.
    #[inline]
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Ends all threads, because of `reason` unless there was one before.
    pub fn stop(&self, reason: E) {
        self.failure.lock().expect("no holder panics").get_or_insert(reason);
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Why the threads were stopped, if they were.
    pub fn take_failure(&self) -> Option<E> {
        self.failure.lock().expect("no holder panics").take()
    }

    /// Sleeps until `at`, on [`clock::now`]'s clock, in pieces short enough to see a stop; false if stopped.
    pub fn sleep_until(&self, at: u64) -> bool {
        const PIECE: u64 = 50_000_000;
        loop {
            if self.is_stopped() {
                return false;
            }
            let now = clock::now();
            if now >= at {
                return true;
            }
            clock::sleep_until(at.min(now + PIECE));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_reason_stays_and_sleepers_wake() {
        let halt = Halt::default();
        let soon = clock::now() + 1_000_000;
        assert!(halt.sleep_until(soon) && clock::now() >= soon);
        halt.stop("first");
        halt.stop("second");
        assert!(halt.is_stopped() && !halt.sleep_until(u64::MAX));
        assert_eq!((halt.take_failure(), halt.take_failure()), (Some("first"), None));
    }
}
