//! The highest rate of ICMP echo requests that are all answered. It is searched like the throughput, over a way that leads
//! from a port to the device and back to the same port.

use super::throughput::ThroughputTest;
use linerate_model::{CaveatKind, DevicePlan, EchoRate, FramesRun, Message, message};
use linerate_units::{FrameRate, FrameSize, Nanos};
use std::net::IpAddr;

/// The test at one size.
#[derive(Debug, Clone)]
pub(crate) struct EchoTest {
    target: IpAddr,
    search: ThroughputTest,
}

impl EchoTest {
    pub(crate) fn new(plan: &DevicePlan, size: FrameSize, target: IpAddr) -> Self {
        // A device may be told to answer a few echoes a second only, whatever its line carries.
        Self { target, search: ThroughputTest::from(plan, size, None, FrameRate::per_second(1)) }
    }

    pub(crate) fn next(&self) -> Option<(FrameRate, Nanos)> {
        self.search.next()
    }

    pub(crate) fn record(&mut self, run: &FramesRun<'_>) -> bool {
        self.search.record(run)
    }

    pub(crate) fn known(&self) -> Message {
        self.search.known()
    }

    pub(crate) fn outcome(&self, plan: &DevicePlan) -> Vec<EchoRate> {
        let echo = |found: linerate_model::Throughput| {
            let mut caveats = found.caveats;
            for caveat in caveats.iter_mut().filter(|caveat| caveat.kind == CaveatKind::NotCalibrated) {
                caveat.text = message!(
                    "caveat-echo-not-calibrated",
                    "how many frames the tester's port can send and take in is not known: `linerate device \
                     calibrate --sizes {bytes}` between two of its ports measures it",
                    bytes = found.frame_bytes
                );
            }
            EchoRate {
                frame_bytes: found.frame_bytes,
                target: self.target,
                answers_per_s: found.frames_per_s,
                firmness: found.firmness,
                lost_at_requests_per_s: found.lost_at_frames_per_s,
                tester_limit: found.tester_limit,
                trials: found.trials,
                trial_time: found.trial_time,
                device_load: found.device_load,
                limit: found.limit,
                verdict: found.verdict,
                caveats,
            }
        };
        self.search.outcomes(plan).into_iter().map(echo).collect()
    }
}
