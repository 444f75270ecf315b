//! Latency of every frame at a set rate, or at the throughput (RFC 2544 section 26.2).
//!
//! The RFC times one tagged frame of a stream; here each frame carries its time, so that the whole distribution is known.

use super::{doubts, latency, load, sum};
use crate::offered::Offer;
use linerate_model::{Caveat, CaveatKind, DevicePlan, FrameLatency, FramesRun, Message, TrialResult, message};
use linerate_units::{FrameRate, FrameSize, Nanos};

/// The test at one size.
#[derive(Debug, Clone)]
pub(crate) struct LatencyTest {
    size: FrameSize,
    /// The rate of all directions together; none if the throughput was asked for and not found.
    load: Option<FrameRate>,
    time: Nanos,
    measured: Option<Box<TrialResult>>,
}

impl LatencyTest {
    pub(crate) fn new(plan: &DevicePlan, size: FrameSize, load: Option<FrameRate>) -> Self {
        Self { size, load, time: plan.final_time, measured: None }
    }

    pub(crate) fn next(&self) -> Option<(FrameRate, Nanos)> {
        self.load.filter(|_| self.measured.is_none()).map(|load| (load, self.time))
    }

    /// Takes a trial; true when nothing more is needed.
    pub(crate) fn record(&mut self, run: &FramesRun<'_>) -> bool {
        self.measured = Some(Box::new(run.result.clone()));
        self.next().is_none()
    }

    /// Whether there is a rate to time frames at.
    pub(crate) fn has_load(&self) -> bool {
        self.load.is_some()
    }

    pub(crate) fn known(&self) -> Option<Message> {
        self.load.map(|load| message!("known-latency", "latency at {load}", load))
    }

    pub(crate) fn outcome(&self, plan: &DevicePlan) -> Option<FrameLatency> {
        let measured = self.measured.as_deref().and_then(TrialResult::frames);
        measured.map(|run| {
            let latency_ns = latency(&run);
            let mut caveats = doubts(plan);
            if latency_ns.is_none() {
                caveats.push(Caveat::new(
                    CaveatKind::NotMeasured,
                    message!(
                        "caveat-latency-nothing-arrived",
                        "there is no latency: none of the {sent} frames sent arrived; check cabling, VLANs and addresses, or ask \
                         for a lower --rate",
                        sent = sum(&run, |stream| stream.sent)
                    ),
                ));
            }
            caveats.extend(run.result.caveats.iter().cloned());
            caveats.extend(load::doubts(run.result.device_load.as_ref()));
            let offer = Offer::of(&run);
            if !offer.is_whole() {
                caveats.push(Caveat::new(
                    CaveatKind::BelowOfferedRate,
                    message!(
                        "caveat-latency-lower-load",
                        "{offered}: the latency is that of the lower load; ask for a lower --rate",
                        offered = offer.told()
                    ),
                ));
            }
            FrameLatency {
                frame_bytes: self.size.get(),
                frames_per_s: run.offered(),
                firmness: offer.firmness(),
                lost: sum(&run, |stream| stream.lost()),
                latency_ns,
                device_load: run.result.device_load.clone(),
                verdict: Some(offer.verdict()),
                caveats,
            }
        })
    }
}
