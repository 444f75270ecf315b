//! Forwarding rates between many ports: at the maximum offered load (FRMOL), and the maximum (MFR) between the throughput
//! and that load (RFC 2889 sections 5.1 to 5.4, terms of RFC 2285 section 3.6).

use super::{doubts, highest_load, load, sum, whole};
use crate::offered::Offer;
use linerate_model::{
    Caveat, DevicePlan, Firmness, Forwarding, ForwardingPoint, FramesRun, Message, Throughput, Verdict, message,
};
use linerate_units::{FrameRate, FrameSize, Nanos};

/// The loads of one size.
#[derive(Debug, Clone)]
pub(crate) struct ForwardingTest {
    size: FrameSize,
    /// Loads from the highest down to the throughput.
    loads: Vec<FrameRate>,
    throughput: Option<f64>,
    time: Nanos,
    points: Vec<ForwardingPoint>,
    verdict: Option<Verdict>,
    caveats: Vec<Caveat>,
}

impl ForwardingTest {
    pub(crate) fn new(plan: &DevicePlan, size: FrameSize, step_percent: u32, throughput: Option<&Throughput>) -> Self {
        let maximum = highest_load(plan, size, None);
        let lossless = throughput.map_or(0.0, |throughput| throughput.frames_per_s);
        let steps = (0..100 / step_percent.max(1)).map(|step| 100 - u64::from(step * step_percent));
        let loads = steps.map(|percent| FrameRate::per_second((maximum.get() * percent / 100).max(1)));
        Self {
            size,
            loads: loads.take_while(|load| *load == maximum || load.get() as f64 > lossless).collect(),
            throughput: throughput.map(|throughput| throughput.frames_per_s),
            time: plan.final_time,
            points: Vec::new(),
            verdict: None,
            caveats: Vec::new(),
        }
    }

    pub(crate) fn next(&self) -> Option<(FrameRate, Nanos)> {
        self.loads.get(self.points.len()).map(|load| (*load, self.time))
    }

    /// Records a trial. Returns whether the test is over.
    pub(crate) fn record(&mut self, run: &FramesRun<'_>) -> bool {
        let seconds = run.task.time.as_secs_f64();
        let offer = Offer::of(run);
        self.verdict.get_or_insert_with(|| offer.verdict());
        let sending = run.counts.streams.iter().map(|stream| stream.send_time).max().unwrap_or_default();
        let took = sending.max(run.task.time).as_secs_f64();
        self.points.push(ForwardingPoint {
            intended_frames_per_s: offer.due as f64 / seconds,
            offered_frames_per_s: run.offered(),
            forwarded_frames_per_s: offer.received as f64 / took,
            firmness: offer.firmness(),
            sent: offer.sent,
            received: offer.received,
            flooded: sum(run, |stream| stream.flooded),
            misforwarded: sum(run, |stream| stream.misforwarded()),
            device_load: run.result.device_load.clone(),
        });
        load::add_caveats(&mut self.caveats, run);
        self.next().is_none()
    }

    pub(crate) fn known(&self) -> Option<Message> {
        self.points.last().map(|point| {
            message!(
                "known-forwarding",
                "{forwarded} frames/s forwarded at {offered} frames/s",
                forwarded = whole(point.forwarded_frames_per_s),
                offered = whole(point.offered_frames_per_s)
            )
        })
    }

    pub(crate) fn outcome(&self, plan: &DevicePlan) -> Option<Forwarding> {
        let first = self.points.first()?;
        let by_rate = |one: &&ForwardingPoint, other: &&ForwardingPoint| {
            one.forwarded_frames_per_s.total_cmp(&other.forwarded_frames_per_s)
        };
        let highest = self.points.iter().max_by(by_rate)?;
        let lossless = self.throughput.unwrap_or_default();
        // The throughput is a forwarding rate too.
        let by_throughput = lossless > highest.forwarded_frames_per_s;
        let mut caveats = doubts(plan);
        caveats.extend(self.caveats.iter().cloned());
        Some(Forwarding {
            frame_bytes: self.size.get(),
            throughput_frames_per_s: self.throughput,
            maximum_load_frames_per_s: plan.line_frames(self.size).map(|line| line as f64),
            at_maximum_load_frames_per_s: first.firmness.is_firm().then_some(first.forwarded_frames_per_s),
            maximum_frames_per_s: highest.forwarded_frames_per_s.max(lossless),
            maximum_at_frames_per_s: if by_throughput { lossless } else { highest.offered_frames_per_s },
            firmness: self.points.iter().fold(Firmness::Firm, |all, point| all.and(point.firmness)),
            points: self.points.clone(),
            verdict: self.verdict.clone(),
            caveats,
        })
    }
}
