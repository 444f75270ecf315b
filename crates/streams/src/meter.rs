//! What a flow has done since the load began, for whoever watches it while it works.

use linerate_model::LatencyBuckets;
use std::sync::atomic::{AtomicU64, Ordering};

/// A flow's running counts, on a cache line (pair) of their own so that no thread waits for another. Only the flow's thread writes
/// those of its work, so that it needs no atomic addition; what it does before the window counts as well.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Meter {
    sent_bytes: AtomicU64,
    received_bytes: AtomicU64,
    messages: AtomicU64,
    transactions: AtomicU64,
    lost: AtomicU64,
    /// TCP segments sent again. Whoever watches writes them.
    retransmits: AtomicU64,
    /// Of a UDP receiver, nanoseconds.
    jitter: AtomicU64,
    /// How far the flow was behind its schedule at most since that was read, nanoseconds.
    lateness: AtomicU64,
    latency: Option<Box<Buckets>>,
}

/// Response times by bucket, on cache lines of their own.
#[derive(Debug)]
#[repr(align(128))]
struct Buckets([AtomicU64; LatencyBuckets::COUNT]);

impl Meter {
    /// The meter of a flow that makes requests.
    pub(crate) fn of_requests() -> Self {
        let buckets = Buckets(std::array::from_fn(|_| AtomicU64::new(0)));
        Self { latency: Some(Box::new(buckets)), ..Self::default() }
    }

    /// Payload sent so far, in messages that are told apart (UDP) or none.
    #[inline]
    pub(crate) fn sent(&self, bytes: u64, messages: u64) {
        self.sent_bytes.store(bytes, Ordering::Relaxed);
        self.messages.store(messages, Ordering::Relaxed);
    }

    /// Payload received so far, in messages that are told apart (UDP) or none, and how many of these are missing.
    #[inline]
    pub(crate) fn received(&self, bytes: u64, messages: u64, lost: u64) {
        self.received_bytes.store(bytes, Ordering::Relaxed);
        self.messages.store(messages, Ordering::Relaxed);
        self.lost.store(lost, Ordering::Relaxed);
    }

    /// Mean deviation of the transit times of datagrams so far, nanoseconds.
    #[inline]
    pub(crate) fn jitter(&self, nanos: u64) {
        self.jitter.store(nanos, Ordering::Relaxed);
    }

    pub(crate) fn jitter_ns(&self) -> u64 {
        self.jitter.load(Ordering::Relaxed)
    }

    /// Requests that this end has answered so far, by the bytes of requests and of responses.
    #[inline]
    pub(crate) fn served(&self, request_bytes: u64, response_bytes: u64) {
        self.received_bytes.store(request_bytes, Ordering::Relaxed);
        self.sent_bytes.store(response_bytes, Ordering::Relaxed);
    }

    /// One more request of this end was answered, after `nanos`.
    #[inline]
    pub(crate) fn answered(&self, nanos: u64, request_bytes: u64, response_bytes: u64) {
        add(&self.transactions, 1);
        add(&self.sent_bytes, request_bytes);
        add(&self.received_bytes, response_bytes);
        if let Some(buckets) = &self.latency {
            add(&buckets.0[LatencyBuckets::bucket(nanos)], 1);
        }
    }

    /// The flow is `nanos` behind its schedule.
    #[inline]
    pub(crate) fn late(&self, nanos: u64) {
        if nanos > self.lateness.load(Ordering::Relaxed) {
            self.lateness.store(nanos, Ordering::Relaxed);
        }
    }

    pub(crate) fn sent_bytes(&self) -> u64 {
        self.sent_bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn received_bytes(&self) -> u64 {
        self.received_bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn messages(&self) -> u64 {
        self.messages.load(Ordering::Relaxed)
    }

    pub(crate) fn transactions(&self) -> u64 {
        self.transactions.load(Ordering::Relaxed)
    }

    /// So many segments were sent again, by the connection's own account.
    pub(crate) fn sent_again(&self, segments: u64) {
        self.retransmits.fetch_max(segments, Ordering::Relaxed);
    }

    pub(crate) fn retransmits(&self) -> u64 {
        self.retransmits.load(Ordering::Relaxed)
    }

    pub(crate) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// How far the flow was behind its schedule at most since this was called last, nanoseconds.
    pub(crate) fn take_lateness(&self) -> u64 {
        self.lateness.swap(0, Ordering::Relaxed)
    }

    /// Answers by how long they took; none where the flow makes no requests.
    pub(crate) fn latency(&self) -> Option<impl Iterator<Item = u64> + '_> {
        Some(self.latency.as_ref()?.0.iter().map(|count| count.load(Ordering::Relaxed)))
    }
}

/// Adds to a counter of which this thread is the only writer.
#[inline]
fn add(counter: &AtomicU64, more: u64) {
    counter.store(counter.load(Ordering::Relaxed) + more, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_counted_by_how_long_they_took() {
        let meter = Meter::of_requests();
        for nanos in [1_000, 1_010, 5_000_000] {
            meter.answered(nanos, 10, 20);
        }
        assert_eq!((meter.transactions(), meter.sent_bytes(), meter.received_bytes()), (3, 30, 60));
        let counts: Vec<u64> = meter.latency().expect("it makes requests").collect();
        assert_eq!(counts[LatencyBuckets::bucket(1_000)], 2);
        assert_eq!((counts[LatencyBuckets::bucket(5_000_000)], counts.iter().sum::<u64>()), (1, 3));
        assert!(Meter::default().latency().is_none());
    }

    #[test]
    fn lateness_is_the_most_since_it_was_read() {
        let meter = Meter::default();
        [5, 9, 7].iter().for_each(|nanos| meter.late(*nanos));
        assert_eq!((meter.take_lateness(), meter.take_lateness()), (9, 0));
        meter.late(3);
        assert_eq!(meter.take_lateness(), 3);
    }
}
