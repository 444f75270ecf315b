//! Calibrations: what the tester reaches with the device bypassed, and which later runs are compared with it.
//!
//! 1. A calibration is a sweep like any other, made of the very trials of a later run (`plan.rs`).
//! 2. A tester limit depends on the hosts and on the settings of the task, but not on the load that is offered (`settings.rs`).
//! 3. A calibration fits a run where neither has changed since (`fit.rs`); of several the newest counts (`search.rs`).

mod fit;
mod plan;
mod search;
mod settings;
#[cfg(test)]
mod tests;

pub use crate::tester_limit::age_in_words;
pub(crate) use fit::changed as host_change;
pub use fit::{Fit, Misfit, Uncalibrated, fit};
pub use plan::{CannotCalibrate, plan, usual};
pub use search::{Found, Search};

use linerate_model::{Bypass, Calibrated, CalibratedSubject, DeviceTest, Record, Summary};
use linerate_units::Nanos;

/// Returns what the tester reached in each trial of `record`, a calibration that was made for the run that wants it.
pub fn calibrated(record: &Record) -> Vec<Calibrated> {
    let bypass = record.plan.calibration.as_ref().map_or(Bypass::Cable, |calibration| calibration.bypass);
    let known = |subject, reached| Calibrated {
        record: record.id.clone(),
        bypass,
        age: Nanos::default(),
        interleaved: false,
        subject,
        reached,
    };
    let results = record.results.iter();
    let mut all: Vec<Calibrated> =
        results.map(|result| known(CalibratedSubject::Result(result.name.clone()), result.main.clone())).collect();
    let on_cable = record.device().filter(|(plan, _)| plan.test == DeviceTest::Errors { cable: true });
    for result in on_cable.into_iter().flat_map(|(_, found)| &found.faults) {
        if let Some(share) = result.cable_share {
            all.push(known(CalibratedSubject::FrameFault(result.fault), one(share)));
        }
    }
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
