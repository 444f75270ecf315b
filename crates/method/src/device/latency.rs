//! Latency of every frame at a set rate, or at the throughput (RFC 2544 section 26.2).
//!
//! The RFC times one tagged frame of a stream; here each frame carries its time, so that the whole distribution is known.

use super::offered::of_load;
use super::{doubts, fell_short, latency, load, sum};
use linerate_model::{Caveat, CaveatKind, DevicePlan, FrameLatency, FrameTrialResult};
use linerate_units::{FrameRate, FrameSize, Nanos};

/// The test at one size.
#[derive(Debug, Clone)]
pub(crate) struct LatencyTest {
    size: FrameSize,
    /// The rate of all directions together; none if the throughput was asked for and not found.
    load: Option<FrameRate>,
    time: Nanos,
    measured: Option<Box<FrameTrialResult>>,
}

impl LatencyTest {
    pub(crate) fn new(plan: &DevicePlan, size: FrameSize, load: Option<FrameRate>) -> Self {
        Self { size, load, time: plan.final_time, measured: None }
    }

    pub(crate) fn next(&self) -> Option<(FrameRate, Nanos)> {
        self.load.filter(|_| self.measured.is_none()).map(|load| (load, self.time))
    }

    /// Takes a trial; true when nothing more is needed.
    pub(crate) fn record(&mut self, result: &FrameTrialResult) -> bool {
        self.measured = Some(Box::new(result.clone()));
        self.next().is_none()
    }

    pub(crate) fn known(&self) -> String {
        self.load.map_or_else(String::new, |load| format!("latency at {load}"))
    }

    pub(crate) fn outcome(&self, plan: &DevicePlan) -> Option<FrameLatency> {
        let timed = self.measured.as_deref().and_then(|result| Some((result, latency(result)?)));
        timed.map(|(result, latency_ns)| {
            let mut caveats = doubts(plan);
            caveats.extend(result.caveats.iter().cloned());
            caveats.extend(load::doubts(result.device_load.as_ref()));
            if fell_short(result) {
                caveats.push(Caveat::new(
                    CaveatKind::BelowOfferedRate,
                    "the tester sent less than the rate asked for; the latency is that of the lower load: ask for less",
                ));
            }
            FrameLatency {
                frame_bytes: self.size.get(),
                frames_per_s: result.offered(),
                lost: sum(result, |stream| stream.lost()),
                latency_ns,
                device_load: result.device_load.clone(),
                verdict: Some(of_load(
                    sum(result, |stream| stream.intended),
                    sum(result, |stream| stream.sent),
                    sum(result, |stream| stream.received),
                )),
                caveats,
            }
        })
    }
}
