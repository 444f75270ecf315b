//! Frame loss against load: from the highest load down, until two successive trials lose nothing (RFC 2544 section 26.3).
//! A trial whose load was not fully offered counts as neither.

use super::{TesterLimit, doubts, highest_load, load, whole};
use crate::offered::Offer;
use linerate_model::{DevicePlan, FramesRun, LossCurve, LossPoint, Message, MessageValue, Verdict, message};
use linerate_units::{FrameRate, FrameSize, Nanos};

/// The curve at one size.
#[derive(Debug, Clone)]
pub(crate) struct LossTest {
    size: FrameSize,
    highest: FrameRate,
    step_percent: u32,
    time: Nanos,
    points: Vec<LossPoint>,
    /// What limited the first point, which has the highest load.
    verdict: Option<Verdict>,
    caveats: Vec<linerate_model::Caveat>,
}

impl LossTest {
    pub(crate) fn new(
        plan: &DevicePlan,
        size: FrameSize,
        step_percent: u32,
        tester_limit: Option<&TesterLimit>,
    ) -> Self {
        Self {
            size,
            highest: highest_load(plan, size, tester_limit),
            step_percent: step_percent.clamp(1, 100),
            time: plan.final_time,
            points: Vec::new(),
            verdict: None,
            caveats: Vec::new(),
        }
    }

    pub(crate) fn next(&self) -> Option<(FrameRate, Nanos)> {
        let clean = |point: &&LossPoint| point.loss_ratio == 0.0 && point.firmness.is_firm();
        let clean = self.points.iter().rev().take(2).filter(clean).count();
        let percent =
            100_u64.checked_sub(self.points.len() as u64 * u64::from(self.step_percent)).filter(|p| *p > 0)?;
        (clean < 2).then(|| (FrameRate::per_second((self.highest.get() * percent / 100).max(1)), self.time))
    }

    /// Takes a trial; true when the curve is complete.
    pub(crate) fn record(&mut self, run: &FramesRun<'_>) -> bool {
        let seconds = run.task.time.as_secs_f64();
        let offer = Offer::of(run);
        self.verdict.get_or_insert_with(|| offer.verdict());
        self.points.push(LossPoint {
            intended_frames_per_s: offer.due as f64 / seconds,
            offered_frames_per_s: run.offered(),
            firmness: offer.firmness(),
            sent: offer.sent,
            received: offer.received,
            loss_ratio: offer.lost() as f64 / offer.sent.max(1) as f64,
            device_load: run.result.device_load.clone(),
        });
        load::add_caveats(&mut self.caveats, run);
        self.next().is_none()
    }

    pub(crate) fn known(&self) -> Option<Message> {
        self.points.last().map(|point| {
            message!(
                "known-loss",
                "{share} lost at {rate} frames/s",
                share = MessageValue::percent(point.loss_ratio, 3),
                rate = whole(point.offered_frames_per_s)
            )
        })
    }

    pub(crate) fn outcome(&self, plan: &DevicePlan) -> LossCurve {
        let mut caveats = doubts(plan);
        caveats.extend(self.caveats.iter().cloned());
        let verdict = self.verdict.clone();
        LossCurve { frame_bytes: self.size.get(), points: self.points.clone(), verdict, caveats }
    }
}
