//! The tester's limits, taken from the record of a calibration.

use linerate_model::{Calibrated, CalibratedSubject, Record, Summary};

/// Returns what the tester reached in each trial of `record`, which was made with the device bypassed.
pub fn calibrated(record: &Record) -> Vec<Calibrated> {
    let known = |subject, reached| Calibrated { record: record.id.clone(), subject, reached };
    let results = record.results.iter();
    let mut all: Vec<Calibrated> =
        results.map(|result| known(CalibratedSubject::Result(result.name.clone()), result.main.clone())).collect();
    // A tester that was too busy to reach anything says nothing of what it can.
    let sizes = record.device().into_iter().flat_map(|(_, found)| &found.throughput);
    for size in sizes.filter(|size| size.frames_per_s > 0.0) {
        all.push(known(CalibratedSubject::FrameBytes(size.frame_bytes), one(size.frames_per_s)));
    }
    all
}

/// The summary of one rate.
pub(crate) fn one(rate: f64) -> Summary {
    Summary { median: rate, low: rate, high: rate, runs: 1, values: vec![rate], interval: None }
}
