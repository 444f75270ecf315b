//! Stop flag of a session's threads, with the reason.

use linerate_sys::clock;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Stop flag shared by a trial's threads. It keeps the first reason, and wakes threads that wait on something else.
pub struct Stop<E = String> {
    stopped: AtomicBool,
    inner: Mutex<Inner<E>>,
}

struct Inner<E> {
    /// First reason. Later ones follow from it and are not recorded.
    reason: Option<E>,
    /// Functions that wake threads waiting on sockets, queues or kernel calls.
    wakers: Vec<Box<dyn FnOnce() + Send>>,
}

impl<E> Default for Stop<E> {
    fn default() -> Self {
        Self { stopped: AtomicBool::new(false), inner: Mutex::new(Inner { reason: None, wakers: Vec::new() }) }
    }
}

impl<E> Stop<E> {
    /// Returns whether the threads are to end now.
    #[inline]
    pub fn is_set(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// Returns the flag itself, only for reading.
    pub fn flag(&self) -> &AtomicBool {
        &self.stopped
    }

    /// Ends all threads because of `reason`, unless there was one before, and runs each waker once.
    pub fn set(&self, reason: E) {
        let wakers = {
            let mut inner = self.inner();
            inner.reason.get_or_insert(reason);
            // Set under the lock, so that a later waker sees it.
            self.stopped.store(true, Ordering::Release);
            std::mem::take(&mut inner.wakers)
        };
        wakers.into_iter().for_each(|wake| wake());
    }

    /// Runs `wake` when the threads are stopped; at once if they are already.
    pub fn on_stop(&self, wake: impl FnOnce() + Send + 'static) {
        let mut inner = self.inner();
        if self.is_set() {
            drop(inner);
            wake();
        } else {
            inner.wakers.push(Box::new(wake));
        }
    }

    /// Takes the reason of the stop. Returns `None` if the threads were not stopped, or the reason was taken before.
    pub fn take_reason(&self) -> Option<E> {
        self.inner().reason.take()
    }

    /// Sleeps until `at`, on [`clock::now`]'s clock, in pieces short enough to see a stop. Returns false if stopped.
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

    fn inner(&self) -> MutexGuard<'_, Inner<E>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<E: fmt::Debug> fmt::Debug for Stop<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stop").field("stopped", &self.is_set()).field("reason", &self.inner().reason).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::AtomicU32;

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

    #[test]
    fn runs_each_waker_once_also_a_late_one() {
        let stop = Stop::default();
        let wakes = Arc::new(AtomicU32::new(0));
        let [early, late] = [0, 1].map(|_| {
            let wakes = Arc::clone(&wakes);
            move || {
                wakes.fetch_add(1, Ordering::Relaxed);
            }
        });
        stop.on_stop(early);
        stop.set("first");
        stop.set("second");
        stop.on_stop(late);
        assert_eq!(wakes.load(Ordering::Relaxed), 2);
    }
}
