//! Running counts of a flow of calls.

use linerate_model::LatencyBuckets;
use std::sync::atomic::{AtomicU64, Ordering};

/// A flow's running counts, warm-up included, on cache lines of its own so that no thread waits for another. Only the
/// flow's thread writes them, which needs no locked instruction.
#[derive(Debug)]
#[repr(align(128))]
pub struct FlowMeter {
    sent_bytes: AtomicU64,
    received_bytes: AtomicU64,
    calls: AtomicU64,
    retransmits: AtomicU64,
    /// Largest delay against the schedule since the last reading, in nanoseconds.
    behind: AtomicU64,
    /// Calls answered, by [`LatencyBuckets::bucket`] of their time.
    latency: [AtomicU64; LatencyBuckets::COUNT],
}

impl Default for FlowMeter {
    fn default() -> Self {
        Self {
            sent_bytes: AtomicU64::new(0),
            received_bytes: AtomicU64::new(0),
            calls: AtomicU64::new(0),
            retransmits: AtomicU64::new(0),
            behind: AtomicU64::new(0),
            latency: [const { AtomicU64::new(0) }; LatencyBuckets::COUNT],
        }
    }
}

impl FlowMeter {
    /// Counts a call that was answered after `took` nanoseconds, and the payload bytes of call and reply.
    #[inline]
    pub(crate) fn answered(&self, took: u64, sent_bytes: u64, received_bytes: u64) {
        add(&self.calls, 1);
        add(&self.latency[LatencyBuckets::bucket(took)], 1);
        add(&self.sent_bytes, sent_bytes);
        add(&self.received_bytes, received_bytes);
    }

    /// Notes how many calls have been sent again.
    #[inline]
    pub(crate) fn sent_again(&self, calls: u64) {
        self.retransmits.store(calls, Ordering::Relaxed);
    }

    /// Notes that the flow is `nanos` nanoseconds late.
    #[inline]
    pub(crate) fn is_behind(&self, nanos: u64) {
        if nanos > self.behind.load(Ordering::Relaxed) {
            self.behind.store(nanos, Ordering::Relaxed);
        }
    }

    /// Returns what was done.
    pub(crate) fn read(&self) -> linerate_model::Meter {
        linerate_model::Meter {
            sent_bytes: self.sent_bytes.load(Ordering::Relaxed),
            received_bytes: self.received_bytes.load(Ordering::Relaxed),
            operations: self.calls.load(Ordering::Relaxed),
            retransmits: self.retransmits.load(Ordering::Relaxed),
            lost: 0,
        }
    }

    /// Returns how many calls were answered in the time of each of [`LatencyBuckets`].
    pub(crate) fn latency(&self) -> impl Iterator<Item = u64> + '_ {
        self.latency.iter().map(|count| count.load(Ordering::Relaxed))
    }

    /// Returns the largest delay against the schedule since the last call, in nanoseconds.
    pub(crate) fn take_behind(&self) -> u64 {
        self.behind.swap(0, Ordering::Relaxed)
    }
}

/// Adds to what no other thread writes.
#[inline]
fn add(count: &AtomicU64, more: u64) {
    count.store(count.load(Ordering::Relaxed) + more, Ordering::Relaxed);
}
