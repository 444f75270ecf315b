//! How far a session's copies are, all its roles together.

use linerate_engine::Meters;
use linerate_model::Meter;
use linerate_sys::clock;
use linerate_units::Nanos;
use std::sync::atomic::{AtomicU64, Ordering};

/// Files and bytes in place so far.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// When copying began, on [`clock::now`]'s clock; 0 before.
    start: AtomicU64,
    files: AtomicU64,
    bytes: AtomicU64,
}

impl Progress {
    /// Notes that copying begins at `start`.
    pub(crate) fn begin(&self, start: u64) {
        self.start.store(start.max(1), Ordering::Relaxed);
    }

    /// Adds files and their bytes that came to their names at the destination.
    pub(crate) fn add(&self, files: u64, bytes: u64) {
        self.files.fetch_add(files, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
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
            sent_bytes: 0,
            received_bytes: self.bytes.load(Ordering::Relaxed),
            operations: self.files.load(Ordering::Relaxed),
        }
    }
}
