//! What limited the rate: the line, the tester, or what stands between its ports.

use super::{AT_TESTER_LIMIT, NEAR, Shown, ThroughputTest, Tried};
use crate::device::whole;
use crate::proof::bypassed;
use crate::verdict::{allowed, interleaved};
use linerate_model::{
    Confidence, DevicePlan, DeviceTest, FrameTesterLimit, Limit, LimitPlace, MessageValue, Verdict, message,
};

/// With so many times the result, it is the device rather than the tester that gives way, only not quite where.
const NEAR_ENOUGH: f64 = 1.25;

impl ThroughputTest {
    pub(super) fn verdict(
        &self,
        plan: &DevicePlan,
        shown: &Shown<'_>,
        lines: Option<f64>,
        tester_limit: Option<&FrameTesterLimit>,
    ) -> Verdict {
        let say = Verdict::new;
        let rate = shown.rate;
        if let Some(lines) = lines
            && shown.at_line
        {
            let text = message!(
                "throughput-wire",
                "{rate} frames/s are {share} of what the line carries",
                rate = whole(rate),
                share = MessageValue::percent(rate / lines, 1)
            );
            return say(Limit::Wire, Confidence::High, vec![text]);
        }
        if plan.test == DeviceTest::Calibrate && shown.firmness.is_firm() {
            let text = message!(
                "throughput-calibrated",
                "without a device between its ports the tester reached {rate} frames/s",
                rate = whole(rate)
            );
            return say(Limit::Tester, Confidence::High, vec![text]);
        }
        if let Some(tester_limit) = tester_limit
            && tester_limit.share >= AT_TESTER_LIMIT
        {
            let text = message!(
                "throughput-tester",
                "{rate} frames/s are {share} of the tester's limit of {limit} frames/s: the device may carry more",
                rate = whole(rate),
                share = MessageValue::percent(tester_limit.share, 1),
                limit = whole(tester_limit.frames_per_s)
            );
            let proofs = vec![bypassed(&tester_limit.record, rate, tester_limit.frames_per_s)];
            return Verdict { proofs, ..say(Limit::Tester, Confidence::Medium, vec![text]) };
        }
        if !shown.firmness.is_firm() {
            return self.left_open(shown);
        }
        // The lowest load that lost tells what gave way first. Of a goal this may be another trial than the one that let
        // the least through.
        let failed = shown.bounds.upper.map(|failed| failed.get() as f64);
        let let_through = |trial: &Tried| {
            let forwarded: f64 = trial.directions.iter().map(|direction| direction.frames_per_s).sum();
            forwarded.min(trial.load().get() as f64)
        };
        let by_device = self.tried.iter().filter(|trial| trial.counted.is_offered() && trial.offer.lost() > 0);
        let by_device = by_device.filter(|trial| failed.is_some_and(|failed| trial.load().get() as f64 >= failed));
        let gave_way = by_device
            .min_by(|one, other| let_through(one).total_cmp(&let_through(other)))
            .filter(|trial| failed.is_some_and(|failed| let_through(trial) <= failed * NEAR_ENOUGH));
        let (Some(failed), Some(gave_way)) = (failed, gave_way) else {
            let text = message!(
                "throughput-open",
                "no trial with the full load offered shows what limits {rate} frames/s",
                rate = whole(rate)
            );
            return say(Limit::CannotTell, Confidence::Low, vec![text]);
        };
        let sent = message!(
            "throughput-lost",
            "at {rate} frames/s {offered}, and {lost} did not come back",
            rate = MessageValue::Count(gave_way.load().get()),
            offered = gave_way.offer.told(),
            lost = MessageValue::Count(gave_way.offer.lost())
        );
        match tester_limit {
            Some(tester_limit) => {
                let room = message!(
                    "throughput-room",
                    "with the device bypassed the tester reached {rate} frames/s, {times} times as many",
                    rate = whole(tester_limit.frames_per_s),
                    times = MessageValue::number(tester_limit.frames_per_s / rate.max(1.0), 1)
                );
                let near = let_through(gave_way) <= failed * NEAR;
                let proofs = vec![bypassed(&tester_limit.record, rate, tester_limit.frames_per_s)];
                let checks = vec![interleaved(tester_limit.interleaved)];
                let confidence = if near { allowed(&checks) } else { Confidence::Medium };
                Verdict {
                    place: Some(LimitPlace::Device),
                    proofs,
                    checks,
                    ..say(Limit::Device, confidence, vec![sent, room])
                }
            }
            None => {
                let missing = message!(
                    "throughput-not-calibrated",
                    "whether the tester's receiving port could have taken them is not known: it was not \
                         calibrated"
                );
                say(Limit::CannotTell, Confidence::Low, vec![sent, missing])
            }
        }
    }

    /// The verdict on a rate that is a lower bound.
    fn left_open(&self, shown: &Shown<'_>) -> Verdict {
        let rate = whole(shown.rate);
        let decided = shown.decided.filter(|trial| !trial.offer.is_whole());
        let Some(short) = decided.or_else(|| self.short_at(shown.bounds.unoffered?)) else {
            let text =
                message!("throughput-no-loss", "no frame was lost up to the highest rate tried, {rate} frames/s", rate);
            return Verdict::new(Limit::CannotTell, Confidence::Low, vec![text]);
        };
        let (rate_then, offered) = (MessageValue::Count(short.load().get()), short.offer.told());
        let text = match short.offer.lost() {
            0 => message!("throughput-offered", "at {rate} frames/s {offered}", rate = rate_then, offered),
            lost => message!(
                "throughput-lost",
                "at {rate} frames/s {offered}, and {lost} did not come back",
                rate = rate_then,
                offered,
                lost = MessageValue::Count(lost)
            ),
        };
        let bound = match shown.rate > 0.0 {
            true => message!(
                "throughput-lower-bound",
                "{rate} frames/s are a lower bound: so many were offered without more loss than allowed",
                rate
            ),
            false => message!("throughput-no-rate", "no rate was offered without more loss than allowed"),
        };
        let next = match short.offer.held_up {
            Some(time) => message!(
                "throughput-next-held-up",
                "the tester was held up for {time} in that trial: keep other work off its sending cores, and \
                 measure again",
                time
            ),
            None => message!("throughput-next-faster", "use a faster tester, or larger frames"),
        };
        let (limit, confidence) = match shown.rate > 0.0 {
            true => (Limit::Tester, Confidence::Medium),
            false => (Limit::CannotTell, Confidence::Low),
        };
        Verdict { next: vec![next], ..Verdict::new(limit, confidence, vec![text, bound]) }
    }
}
