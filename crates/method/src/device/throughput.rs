//! Throughput: the highest rate at which no frame is lost (RFC 1242 section 3.17, RFC 2544 section 26.1).

use super::{Ceiling, directions, doubts, fell_short, highest_load, load, sum};
use crate::search::{Bisect, BisectGoal, Counted, Search as _};
use linerate_model::{
    Caveat, CaveatKind, Confidence, DevicePlan, DeviceTest, DirectionCounts, FrameCeiling, FrameTrialResult, Limit,
    Throughput, Verdict,
};
use linerate_units::{FrameRate, FrameSize, Nanos};

/// A result within this share of the tester's ceiling is the tester's own.
const AT_CEILING: f64 = 0.97;
/// A result within this share of the line's rate fills it.
const AT_LINE: f64 = 0.997;

/// The search at one size.
#[derive(Debug, Clone)]
pub(crate) struct ThroughputTest {
    size: FrameSize,
    search: Bisect,
    ceiling: Option<Ceiling>,
    /// Every trial: its load, whether the tester sent all of it, and what was lost of what it sent.
    tried: Vec<Tried>,
    /// The best trial of full length.
    decided: Option<Box<FrameTrialResult>>,
    caveats: Vec<Caveat>,
}

#[derive(Debug, Clone, Copy)]
struct Tried {
    load: u64,
    short: bool,
    lost_of_sent: u64,
}

impl ThroughputTest {
    pub(crate) fn new(plan: &DevicePlan, size: FrameSize, ceiling: Option<Ceiling>) -> Self {
        let highest = highest_load(plan, size, ceiling.as_ref());
        let slowest = FrameRate::per_second((plan.directions.len() as u64).max(highest.get() / 10_000).max(1));
        let search = Bisect::new(BisectGoal {
            maximum: highest,
            minimum: slowest.min(highest),
            width: plan.width,
            loss: plan.loss,
            search_time: plan.search_time,
            final_time: plan.final_time,
        });
        Self { size, search, ceiling, tried: Vec::new(), decided: None, caveats: Vec::new() }
    }

    pub(crate) fn next(&self) -> Option<(FrameRate, Nanos)> {
        self.search.next().map(|probe| (probe.load, probe.time))
    }

    /// Takes a trial; true when the search is over.
    pub(crate) fn record(&mut self, result: &FrameTrialResult) -> bool {
        let Some(probe) = self.search.next() else { return true };
        let (intended, sent) = (sum(result, |stream| stream.intended), sum(result, |stream| stream.sent));
        let received = sum(result, |stream| stream.received);
        self.tried.push(Tried {
            load: probe.load.get(),
            // What the tester never sent weighs as much as what did not come back.
            short: fell_short(result) || intended.saturating_sub(sent) > sent.saturating_sub(received),
            lost_of_sent: sent.saturating_sub(received),
        });
        // Within the tolerance of the offered load, only what was sent can be lost. Beyond it, what was not offered counts as
        // lost too (RFC 9971), so that no rate is reported that the tester did not offer.
        let (due, offered) = match fell_short(result) {
            true => (intended, (intended as f64 * result.offered_share()) as u64),
            false => (sent, sent),
        };
        self.search.record(&Counted { probe, intended: due, forwarded: received.min(offered) });
        // The last good trial is the one that decided: a search ends with its validation.
        if self.search.bounds().lower == Some(probe.load) {
            self.decided = Some(Box::new(result.clone()));
        }
        for caveat in &result.caveats {
            if !self.caveats.contains(caveat) {
                self.caveats.push(caveat.clone());
            }
        }
        self.search.next().is_none()
    }

    pub(crate) fn known(&self) -> String {
        let rate = |bound: Option<FrameRate>| bound.map_or_else(|| "?".to_owned(), |rate| rate.to_string());
        let bounds = self.search.bounds();
        format!("between {} and {}", rate(bounds.lower), rate(bounds.upper))
    }

    /// What was found, without the trials.
    pub(crate) fn found(&self) -> Option<FrameRate> {
        self.search.bounds().lower
    }

    pub(crate) fn outcome(&self, plan: &DevicePlan) -> Throughput {
        let directions: Vec<DirectionCounts> = self.decided.as_deref().map(directions).unwrap_or_default();
        let rate = self.search.bounds().lower.map_or(0.0, |rate| rate.get() as f64);
        let lines = plan.line.map(|line| (self.size.line_rate(line).get() * plan.directions.len() as u64) as f64);
        let ceiling = self.ceiling.as_ref().map(|ceiling| FrameCeiling {
            record: ceiling.record.clone(),
            frames_per_s: ceiling.frames_per_s,
            share: if ceiling.frames_per_s > 0.0 { rate / ceiling.frames_per_s } else { 0.0 },
        });
        let verdict = self.verdict(plan, rate, lines, ceiling.as_ref());
        let mut caveats = doubts(plan);
        caveats.extend(self.caveats.iter().cloned());
        let device_load = self.decided.as_ref().and_then(|decided| decided.device_load.clone());
        caveats.extend(load::doubts(device_load.as_ref()));
        match (&plan.test, &ceiling) {
            (DeviceTest::Calibrate, _) => caveats.push(Caveat::new(
                CaveatKind::TesterCeiling,
                "this is the tester's own ceiling, measured without the device: no result through a device can be higher",
            )),
            (_, None) => caveats.push(Caveat::new(
                CaveatKind::NotCalibrated,
                "the tester's own ceiling at this size is not known: join its ports by a cable and run `linerate device \
                 calibrate` with the same ports and sizes, then measure again",
            )),
            _ => {}
        }
        Throughput {
            frame_bytes: self.size.get(),
            frames_per_s: rate,
            bits_per_s: rate * f64::from(self.size.get()) * 8.0,
            line_share: lines.map(|lines| rate / lines),
            lost_at_frames_per_s: self.search.bounds().upper.map(|load| load.get() as f64),
            directions,
            ceiling,
            trials: self.tried.len() as u32,
            trial_time: self.decided.as_ref().map_or(plan.final_time, |decided| decided.trial.time),
            device_load,
            limit: verdict.limit,
            verdict,
            caveats,
        }
    }

    /// What limited the rate: the line, the tester, or what stands between its ports.
    fn verdict(&self, plan: &DevicePlan, rate: f64, lines: Option<f64>, ceiling: Option<&FrameCeiling>) -> Verdict {
        let say = |limit, confidence, evidence: Vec<String>| Verdict { limit, confidence, evidence };
        if let Some(lines) = lines
            && rate >= AT_LINE * lines
        {
            let text = format!("{rate:.0} frames/s are {:.1} % of what the line carries", rate / lines * 100.0);
            return say(Limit::Wire, Confidence::High, vec![text]);
        }
        if plan.test == DeviceTest::Calibrate {
            let text = format!("without a device between its ports the tester reached {rate:.0} frames/s");
            return say(Limit::Tester, Confidence::High, vec![text]);
        }
        // The lowest load that failed tells what gave way first.
        let failed = self.search.bounds().upper.map(|load| load.get());
        let gave_way = self.tried.iter().filter(|trial| Some(trial.load) == failed).collect::<Vec<_>>();
        let short = gave_way.iter().any(|trial| trial.short);
        if let Some(ceiling) = ceiling
            && ceiling.share >= AT_CEILING
        {
            let text = format!(
                "{rate:.0} frames/s are {:.1} % of the tester's own ceiling of {:.0} frames/s: the device may well carry more",
                ceiling.share * 100.0,
                ceiling.frames_per_s
            );
            return say(Limit::Tester, Confidence::High, vec![text]);
        }
        let Some(failed) = failed else {
            let text = format!("no frame was lost up to the highest rate tried, {rate:.0} frames/s");
            return say(Limit::CannotTell, Confidence::Low, vec![text]);
        };
        if short {
            let text = format!("at {failed} frames/s the tester itself did not send all frames that were due");
            return say(Limit::Tester, Confidence::Medium, vec![text]);
        }
        let lost = gave_way.iter().map(|trial| trial.lost_of_sent).max().unwrap_or_default();
        let sent = format!("at {failed} frames/s the tester sent every frame, and {lost} did not come back");
        match ceiling {
            Some(ceiling) => {
                let room = format!(
                    "with the device bypassed the tester reached {:.0} frames/s, {:.1} times as many",
                    ceiling.frames_per_s,
                    ceiling.frames_per_s / rate.max(1.0)
                );
                say(Limit::Device, Confidence::High, vec![sent, room])
            }
            None => {
                let missing =
                    "whether the tester's receiving port could have taken them is not known: it was not calibrated";
                say(Limit::CannotTell, Confidence::Low, vec![sent, missing.to_owned()])
            }
        }
    }
}
