//! How many frames a trial has sent and received so far.

use linerate_engine::Meters;
use linerate_model::Meter;
use linerate_sys::clock;
use linerate_units::Nanos;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts of a trial under way.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// When the first frame is due, on [`clock::now`]'s clock; 0 as long as that is not known.
    start: AtomicU64,
    sent: AtomicU64,
    sent_bytes: AtomicU64,
    received_bytes: AtomicU64,
}

impl Progress {
    /// Counts from zero, for a trial that begins at `start`.
    pub(crate) fn begin(&self, start: u64) {
        for count in [&self.sent, &self.sent_bytes, &self.received_bytes] {
            count.store(0, Ordering::Relaxed);
        }
        self.start.store(start, Ordering::Relaxed);
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
        let elapsed = match self.start.load(Ordering::Relaxed) {
            0 => 0,
            start => clock::now().saturating_sub(start),
        };
        Meter {
            elapsed: Nanos::new(elapsed),
            sent_bytes: self.sent_bytes.load(Ordering::Relaxed),
            received_bytes: self.received_bytes.load(Ordering::Relaxed),
            operations: self.sent.load(Ordering::Relaxed),
        }
    }
}
