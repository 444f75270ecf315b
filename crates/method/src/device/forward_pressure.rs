//! Forward pressure: a device that forwards faster than the medium allows (RFC 2889 section 5.6).
//!
//! One sender shortens its gaps to 88 bits, if it can. Few ports can, so two senders may overload the receiver instead.
//! Trials of two lengths are compared: their difference has no frames that only filled a buffer.

use super::load;
use crate::offered::Offer;
use linerate_model::{
    Caveat, Confidence, DeviceLoad, DevicePlan, ForwardPressure, FrameTesterLimit, FramesRun, Limit, MessageValue,
    Presence, Verdict, message,
};
use linerate_units::{FrameRate, FrameSize, Nanos};

use super::TesterLimit;

/// Tolerance of two clocks of Ethernet together (IEEE 802.3: 100 parts per million each).
const CLOCKS: f64 = 0.0002;
/// Load of two senders together as a share of the line.
const OVERLOAD: f64 = 1.2;
/// Bytes of a frame on the medium other than its own: preamble 8, and the gap of 96 or of 88 bits.
const AROUND: f64 = 20.0;
const AROUND_SHORT: f64 = 19.0;

/// The test at one size.
#[derive(Debug, Clone)]
pub(crate) struct ForwardPressureTest {
    size: FrameSize,
    line: f64,
    senders: u32,
    times: [Nanos; 2],
    trials: Vec<Trial>,
    tester_limit: Option<TesterLimit>,
    caveats: Vec<Caveat>,
    device_loads: Vec<Option<DeviceLoad>>,
}

#[derive(Debug, Clone, Copy)]
struct Trial {
    offer: Offer,
    /// Time from the first frame sent to the last.
    seconds: f64,
}

impl ForwardPressureTest {
    pub(crate) fn new(plan: &DevicePlan, size: FrameSize, tester_limit: Option<&TesterLimit>) -> Self {
        Self {
            size,
            line: plan.line.map_or(0.0, |line| size.line_rate(line).get() as f64),
            senders: plan.directions.len() as u32,
            times: [Nanos::new(plan.final_time.get() / 2), plan.final_time],
            trials: Vec::new(),
            tester_limit: tester_limit.cloned(),
            caveats: Vec::new(),
            device_loads: Vec::new(),
        }
    }

    /// Returns how much more than the line a device with the shortest gap forwards, as a share.
    fn excess(&self) -> f64 {
        let bytes = f64::from(self.size.get());
        (bytes + AROUND) / (bytes + AROUND_SHORT) - 1.0
    }

    pub(crate) fn next(&self) -> Option<(FrameRate, Nanos)> {
        let time = self.times.get(self.trials.len())?;
        let load = if self.senders > 1 { self.line * OVERLOAD } else { self.line * (1.0 + self.excess()) };
        Some((FrameRate::per_second(load as u64), *time))
    }

    /// Records a trial. Returns whether the test is over.
    pub(crate) fn record(&mut self, run: &FramesRun<'_>) -> bool {
        // A sender that was delayed took longer, and the device forwarded more meanwhile.
        let sending = run.counts.streams.iter().map(|stream| stream.send_time).max().unwrap_or_default();
        self.trials.push(Trial { offer: Offer::of(run), seconds: sending.as_secs_f64() });
        self.caveats.extend(run.result.caveats.iter().cloned());
        self.device_loads.push(run.result.device_load.clone());
        self.next().is_none()
    }

    pub(crate) fn outcome(&self) -> Option<ForwardPressure> {
        let [short, long] = self.trials[..] else { return None };
        let seconds = long.seconds - short.seconds;
        let offered = long.offer.sent.saturating_sub(short.offer.sent) as f64 / seconds;
        let forwarded = long.offer.received.saturating_sub(short.offer.received) as f64 / seconds;
        let is_offered = [short, long].iter().all(|trial| trial.offer.is_whole() && trial.offer.had_room);
        let presence = presence(self.line, self.excess(), offered, forwarded, is_offered);
        let [line, forwarded_value] = [self.line, forwarded].map(|rate| MessageValue::Count(rate.round() as u64));
        let evidence = match presence {
            Presence::Present => message!(
                "forward-pressure-detected",
                "Forward Pressure detected: {forwarded} frames/s were forwarded, and the medium allows {line}",
                forwarded = forwarded_value,
                line
            ),
            Presence::Absent => message!(
                "forward-pressure-absent",
                "{forwarded} frames/s were forwarded, and the medium allows {line}",
                forwarded = forwarded_value,
                line
            ),
            Presence::CannotTell => message!(
                "forward-pressure-open",
                "the load was not offered, or was not above the {line} frames/s of the medium: give two sending ports, as in \
                 --ports eth1,eth2,eth3",
                line
            ),
        };
        let mut caveats = self.caveats.clone();
        caveats.dedup();
        caveats.extend(self.device_loads.iter().flat_map(|device_load| load::doubts(device_load.as_ref())));
        let (limit, confidence) = match presence {
            Presence::CannotTell => (Limit::CannotTell, Confidence::Low),
            _ => (Limit::Device, Confidence::Medium),
        };
        Some(ForwardPressure {
            frame_bytes: self.size.get(),
            senders: self.senders,
            line_frames_per_s: self.line,
            offered_frames_per_s: offered,
            forwarded_frames_per_s: forwarded,
            presence,
            device_load: self.device_loads.last().cloned().flatten(),
            tester_limit: self.tester_limit.as_ref().map(|limit| FrameTesterLimit {
                record: limit.record.clone(),
                interleaved: limit.interleaved,
                frames_per_s: limit.frames_per_s,
                share: forwarded / limit.frames_per_s.max(1.0),
            }),
            verdict: Verdict::new(limit, confidence, vec![evidence]),
            caveats,
        })
    }
}

/// Returns whether a device that was offered more than the medium allows forwarded more than that.
fn presence(line: f64, excess: f64, offered: f64, forwarded: f64, is_offered: bool) -> Presence {
    let half = CLOCKS.max(excess / 2.0);
    // A delayed sender leaves the device time to forward frames of its buffer, in one trial more than in the other. A load at the line's rate shows nothing.
    if !is_offered || line <= 0.0 || offered <= line * (1.0 + half) {
        return Presence::CannotTell;
    }
    if forwarded > line * (1.0 + half) {
        Presence::Present
    } else if forwarded <= line * (1.0 + CLOCKS.max(excess / 4.0)) {
        Presence::Absent
    } else {
        // Between the rates of both gaps.
        Presence::CannotTell
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_more_than_the_line_is_forward_pressure() {
        let line = 14_880.0;
        let excess = 84.0 / 83.0 - 1.0;
        let found = |offered: f64, forwarded: f64| presence(line, excess, offered * line, forwarded * line, true);
        assert_eq!(found(1.2, 1.012), Presence::Present);
        assert_eq!(found(1.2, 1.0001), Presence::Absent);
        assert_eq!(found(1.0, 1.0), Presence::CannotTell, "a load of the line's rate shows nothing");
        assert_eq!(found(1.2, 1.004), Presence::CannotTell, "between both gaps");
        for forwarded in [line, 1.1 * line] {
            assert_eq!(presence(line, excess, 1.2 * line, forwarded, false), Presence::CannotTell, "a delayed sender");
        }
    }
}
