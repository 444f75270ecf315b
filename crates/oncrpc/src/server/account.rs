//! What a server counts of the calls it served.

use linerate_model::Service;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts of all threads of one server. They are added to once a batch.
#[derive(Debug)]
pub(super) struct Account {
    open: AtomicU64,
    close: AtomicU64,
    last: AtomicU64,
    service: Mutex<Service>,
}

impl Default for Account {
    /// Counts whatever is answered.
    fn default() -> Self {
        Self {
            open: AtomicU64::new(0),
            close: AtomicU64::new(u64::MAX),
            last: AtomicU64::new(0),
            service: Mutex::default(),
        }
    }
}

impl Account {
    pub(super) fn observe(&self, open: u64, close: u64) {
        let mut service = self.service.lock().expect("no holder panics");
        *service = Service::default();
        self.open.store(open, Ordering::Relaxed);
        self.close.store(close, Ordering::Relaxed);
    }

    pub(super) fn service(&self) -> Service {
        self.service.lock().expect("no holder panics").clone()
    }

    /// When the last replies were sent.
    pub(super) fn last(&self) -> u64 {
        self.last.load(Ordering::Relaxed)
    }

    /// Replies were sent at `now`, these nanoseconds after their calls had arrived.
    pub(super) fn answered(&self, took: &mut Vec<u64>, now: u64) {
        if took.is_empty() {
            return;
        }
        self.last.store(now, Ordering::Relaxed);
        let mut service = self.service.lock().expect("no holder panics");
        // Under the lock, so that none of before `observe` is counted after it.
        if (self.open.load(Ordering::Relaxed)..self.close.load(Ordering::Relaxed)).contains(&now) {
            service.calls += took.len() as u64;
            took.iter().for_each(|took| service.time.record(*took));
        }
        took.clear();
    }
}
