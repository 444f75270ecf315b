//! Counts of the calls that a server has served.

use linerate_engine::Timeline;
use linerate_model::Service;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts of all threads of one server. They are added to once a batch.
#[derive(Debug, Default)]
pub(super) struct Account {
    last: AtomicU64,
    counts: Mutex<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    /// Load over whose window calls count; `None` counts every answer.
    timeline: Option<Timeline>,
    service: Service,
}

impl Account {
    pub(super) fn observe(&self, timeline: &Timeline) {
        *self.counts.lock().expect("no holder panics") =
            Counts { timeline: Some(timeline.clone()), service: Service::default() };
    }

    pub(super) fn service(&self) -> Service {
        self.counts.lock().expect("no holder panics").service.clone()
    }

    /// When the last replies were ready to be sent.
    pub(super) fn last(&self) -> u64 {
        self.last.load(Ordering::Relaxed)
    }

    /// Replies were ready to be sent by `now`, these nanoseconds after their calls had arrived.
    pub(super) fn answered(&self, took: &mut Vec<u64>, now: u64) {
        if took.is_empty() {
            return;
        }
        self.last.store(now, Ordering::Relaxed);
        // Under the lock, so that no earlier call is counted after `observe`.
        let mut counts = self.counts.lock().expect("no holder panics");
        if counts.timeline.as_ref().is_none_or(|timeline| timeline.in_window(now)) {
            counts.service.calls += took.len() as u64;
            took.iter().for_each(|took| counts.service.time.record(*took));
        }
        took.clear();
    }
}
