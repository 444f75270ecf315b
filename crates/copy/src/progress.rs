//! How far a session's copies are, all its roles together.

use linerate_engine::Meters;
use linerate_model::Meter;
use std::sync::atomic::{AtomicU64, Ordering};

/// Files and bytes in place so far.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    files: AtomicU64,
    bytes: AtomicU64,
}

impl Progress {
    /// Adds files and their bytes that came to their names at the destination.
    pub(crate) fn add(&self, files: u64, bytes: u64) {
        self.files.fetch_add(files, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }
}

impl Meters for Progress {
    fn read(&self) -> Meter {
        Meter {
            received_bytes: self.bytes.load(Ordering::Relaxed),
            operations: self.files.load(Ordering::Relaxed),
            ..Meter::default()
        }
    }
}
