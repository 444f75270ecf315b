//! The flag that ends a trial's threads early.

use linerate_sys::clock;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// Stop flag shared by a trial's threads; keeps the first error.
#[derive(Debug)]
pub struct Stop<E> {
    flag: AtomicBool,
    /// The first reason given. Later ones are consequences of it.
    reason: Mutex<Option<E>>,
}

impl<E> Default for Stop<E> {
    fn default() -> Self {
        Self { flag: AtomicBool::new(false), reason: Mutex::new(None) }
    }
}

impl<E> Stop<E> {
    /// Returns whether the threads are to end now.
    #[inline]
    pub fn is_set(&self) -> bool {
        self.flag.load(Ordering::Relaxed)
    }

    /// Sets the flag. Keeps `reason` if it is the first.
    pub fn set(&self, reason: E) {
        self.reason.lock().expect("no holder panics").get_or_insert(reason);
        self.flag.store(true, Ordering::Relaxed);
    }

    /// Takes the reason out; `None` if the flag was never set, or the reason was taken before.
    pub fn take_reason(&self) -> Option<E> {
        self.reason.lock().expect("no holder panics").take()
    }

    /// Sleeps until `at`, in nanoseconds of [`clock::now`]; wakes within 50 ms of a stop. Returns false if stopped.
    pub fn sleep_until(&self, at: u64) -> bool {
        const PIECE: u64 = 50_000_000;
        loop {
            if self.is_set() {
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
    fn keeps_the_first_reason_and_wakes_sleepers() {
        let stop = Stop::default();
        let soon = clock::now() + 1_000_000;
        assert!(stop.sleep_until(soon) && clock::now() >= soon);
        stop.set("first");
        stop.set("second");
        assert!(stop.is_set() && !stop.sleep_until(u64::MAX));
        assert_eq!((stop.take_reason(), stop.take_reason()), (Some("first"), None));
    }
}
