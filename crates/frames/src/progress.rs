//! How many frames a trial has sent and received so far.

use linerate_engine::Meters;
use linerate_model::Meter;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts of a trial under way.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    sent: AtomicU64,
    sent_bytes: AtomicU64,
    received_bytes: AtomicU64,
}

impl Progress {
    /// Counts from zero.
    pub(crate) fn begin(&self) {
        for count in [&self.sent, &self.sent_bytes, &self.received_bytes] {
            count.store(0, Ordering::Relaxed);
        }
    }

    /// Adds `frames` of `bytes` in all, FCS counted, that were sent.
    pub(crate) fn add_sent(&self, frames: u64, bytes: u64) {
        self.sent.fetch_add(frames, Ordering::Relaxed);
        self.sent_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Adds `bytes` of frames, FCS counted, that arrived where they were meant to.
    pub(crate) fn add_received(&self, bytes: u64) {
        self.received_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Notes what was counted elsewhere: frames sent, their bytes, and bytes received.
    pub(crate) fn set(&self, sent: u64, sent_bytes: u64, received_bytes: u64) {
        self.sent.store(sent, Ordering::Relaxed);
        self.sent_bytes.store(sent_bytes, Ordering::Relaxed);
        self.received_bytes.store(received_bytes, Ordering::Relaxed);
    }
}

impl Meters for Progress {
    fn read(&self) -> Meter {
        Meter {
            sent_bytes: self.sent_bytes.load(Ordering::Relaxed),
            received_bytes: self.received_bytes.load(Ordering::Relaxed),
            operations: self.sent.load(Ordering::Relaxed),
            ..Meter::default()
        }
    }
}
