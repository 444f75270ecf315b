//! Progress of a session's copies, all its roles together.

use crate::stage_meter::StageMeters;
use linerate_engine::Meters;
use linerate_model::{Meter, Readings, SeriesQuantity};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Files and bytes in place so far, bytes sent, and where the time went.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    files: AtomicU64,
    bytes: AtomicU64,
    sent_bytes: AtomicU64,
    stages: Arc<StageMeters>,
}

impl Progress {
    /// Adds files and their bytes that came to their names at the destination.
    pub(crate) fn add(&self, files: u64, bytes: u64) {
        self.files.fetch_add(files, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Adds bytes that a source handed to the network: content and metadata of files.
    pub(crate) fn add_sent(&self, bytes: u64) {
        self.sent_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// The times of the stages.
    pub(crate) fn stages(&self) -> &Arc<StageMeters> {
        &self.stages
    }
}

impl Meters for Progress {
    fn read(&self) -> Meter {
        Meter {
            sent_bytes: self.sent_bytes.load(Ordering::Relaxed),
            received_bytes: self.bytes.load(Ordering::Relaxed),
            operations: self.files.load(Ordering::Relaxed),
            ..Meter::default()
        }
    }

    fn sample(&self, readings: &mut Readings) {
        for (stage, micros) in self.stages.micros() {
            readings.add(SeriesQuantity::StageTime, stage.name(), micros);
        }
    }
}
