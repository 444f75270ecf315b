//! Progress of a flow since the load began, for reading while the flow works.

use linerate_model::LatencyBuckets;
use std::sync::atomic::{AtomicU64, Ordering};

/// Running counts of a flow, on a cache line (pair) of their own so that no thread waits for another.
///
/// Only the flow's thread writes the counts of its work, so it needs no atomic addition. Work before the window counts
/// as well.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Meter {
    sent_bytes: AtomicU64,
    received_bytes: AtomicU64,
    messages: AtomicU64,
    transactions: AtomicU64,
    lost: AtomicU64,
    /// TCP segments sent again, written by the reader.
    retransmits: AtomicU64,
    /// Jitter at a UDP receiver, nanoseconds.
    jitter: AtomicU64,
    /// Largest lateness of the flow since the last reading, nanoseconds.
    lateness: AtomicU64,
    latency: Option<Box<Buckets>>,
}

/// Response times by bucket, on cache lines of their own.
#[derive(Debug)]
#[repr(align(128))]
struct Buckets([AtomicU64; LatencyBuckets::COUNT]);

impl Meter {
    /// Creates the meter of a flow that makes requests.
    pub(crate) fn of_requests() -> Self {
        let buckets = Buckets(std::array::from_fn(|_| AtomicU64::new(0)));
        Self { latency: Some(Box::new(buckets)), ..Self::default() }
    }

    /// Sets the payload sent so far, and its number of datagrams (zero for TCP).
    #[inline]
    pub(crate) fn sent(&self, bytes: u64, messages: u64) {
        self.sent_bytes.store(bytes, Ordering::Relaxed);
        self.messages.store(messages, Ordering::Relaxed);
    }

    /// Sets the payload received so far, its number of datagrams (zero for TCP), and the number of missing datagrams.
    #[inline]
    pub(crate) fn received(&self, bytes: u64, messages: u64, lost: u64) {
        self.received_bytes.store(bytes, Ordering::Relaxed);
        self.messages.store(messages, Ordering::Relaxed);
        self.lost.store(lost, Ordering::Relaxed);
    }

    /// Sets the mean deviation of transit times so far, nanoseconds.
    #[inline]
    pub(crate) fn jitter(&self, nanos: u64) {
        self.jitter.store(nanos, Ordering::Relaxed);
    }

    pub(crate) fn jitter_ns(&self) -> u64 {
        self.jitter.load(Ordering::Relaxed)
    }

    /// Sets the bytes of the requests answered so far, and of their responses.
    #[inline]
    pub(crate) fn served(&self, request_bytes: u64, response_bytes: u64) {
        self.received_bytes.store(request_bytes, Ordering::Relaxed);
        self.sent_bytes.store(response_bytes, Ordering::Relaxed);
    }

    /// Adds a request of this end that was answered after `nanos`.
    #[inline]
    pub(crate) fn answered(&self, nanos: u64, request_bytes: u64, response_bytes: u64) {
        add(&self.transactions, 1);
        add(&self.sent_bytes, request_bytes);
        add(&self.received_bytes, response_bytes);
        if let Some(buckets) = &self.latency {
            add(&buckets.0[LatencyBuckets::bucket(nanos)], 1);
        }
    }

    /// Records that the flow is `nanos` late.
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

    /// Sets the number of retransmitted segments that the connection counted.
    pub(crate) fn retransmitted(&self, segments: u64) {
        self.retransmits.fetch_max(segments, Ordering::Relaxed);
    }

    pub(crate) fn retransmits(&self) -> u64 {
        self.retransmits.load(Ordering::Relaxed)
    }

    pub(crate) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Returns the largest lateness of the flow since the last call, nanoseconds.
    pub(crate) fn take_lateness(&self) -> u64 {
        self.lateness.swap(0, Ordering::Relaxed)
    }

    /// Returns the numbers of answers by response time, or `None` if the flow makes no requests.
    pub(crate) fn latency(&self) -> Option<impl Iterator<Item = u64> + '_> {
        Some(self.latency.as_ref()?.0.iter().map(|count| count.load(Ordering::Relaxed)))
    }
}

/// Adds to a counter that only this thread writes.
#[inline]
fn add(counter: &AtomicU64, more: u64) {
    counter.store(counter.load(Ordering::Relaxed) + more, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_counted_by_response_time() {
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
    fn lateness_is_the_maximum_since_the_last_reading() {
        let meter = Meter::default();
        [5, 9, 7].iter().for_each(|nanos| meter.late(*nanos));
        assert_eq!((meter.take_lateness(), meter.take_lateness()), (9, 0));
        meter.late(3);
        assert_eq!(meter.take_lateness(), 3);
    }
}
