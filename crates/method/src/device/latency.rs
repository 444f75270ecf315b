//! Latency of every frame at a set rate, or at the throughput (RFC 2544 section 26.2).
//!
//! The RFC times one tagged frame of a stream; here each frame carries its time, so that the whole distribution is known.

use super::throughput::ThroughputTest;
use super::{Ceiling, doubts, fell_short, latency, load, sum};
use linerate_model::{Caveat, CaveatKind, DevicePlan, FrameLatency, FrameTrialResult, Throughput};
use linerate_units::{FrameRate, FrameSize, Nanos};

/// The test at one size.
#[derive(Debug, Clone)]
pub(crate) struct LatencyTest {
    size: FrameSize,
    /// The search for the throughput, where no rate was given.
    throughput: Option<ThroughputTest>,
    rate: Option<FrameRate>,
    time: Nanos,
    measured: Option<Box<FrameTrialResult>>,
}

impl LatencyTest {
    pub(crate) fn new(plan: &DevicePlan, size: FrameSize, rate: Option<FrameRate>, ceiling: Option<Ceiling>) -> Self {
        let throughput = if rate.is_none() { Some(ThroughputTest::new(plan, size, ceiling)) } else { None };
        let all = |rate: FrameRate| FrameRate::per_second(rate.get() * plan.directions.len() as u64);
        Self { size, throughput, rate: rate.map(all), time: plan.final_time, measured: None }
    }

    /// The rate of all directions together, once it is known.
    fn load(&self) -> Option<FrameRate> {
        self.rate.or_else(|| self.throughput.as_ref().filter(|search| search.next().is_none())?.found())
    }

    pub(crate) fn next(&self) -> Option<(FrameRate, Nanos)> {
        if self.measured.is_some() {
            return None;
        }
        match self.load() {
            Some(load) => Some((load, self.time)),
            None => self.throughput.as_ref()?.next(),
        }
    }

    /// Takes a trial; true when nothing more is needed.
    pub(crate) fn record(&mut self, result: &FrameTrialResult) -> bool {
        match (self.load(), &mut self.throughput) {
            (None, Some(search)) => {
                search.record(result);
            }
            _ => self.measured = Some(Box::new(result.clone())),
        }
        self.next().is_none()
    }

    pub(crate) fn known(&self) -> String {
        match (self.load(), &self.throughput) {
            (Some(load), _) => format!("latency at {load}"),
            (None, Some(search)) => format!("throughput {}", search.known()),
            (None, None) => String::new(),
        }
    }

    pub(crate) fn outcome(&self, plan: &DevicePlan) -> (Option<Throughput>, Option<FrameLatency>) {
        let throughput = self.throughput.as_ref().map(|search| search.outcome(plan));
        let timed = self.measured.as_deref().and_then(|result| Some((result, latency(result)?)));
        let found = timed.map(|(result, latency_ns)| {
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
                caveats,
            }
        });
        (throughput, found)
    }
}
