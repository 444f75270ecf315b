//! Errored frames (RFC 2889 section 5.9).
//!
//! Whether a port can send and receive frames with an error is measured over a cable first. A device is not judged by
//! frames that the tester's own ports repair or drop.

use super::TesterLimit;
use linerate_model::{
    Calibrated, CalibratedSubject, DevicePlan, FaultOutcome, FaultResult, FrameBytes, FrameFault, FrameStream,
    FramesRun, FramesTask, Message, RawFrame, message,
};
use linerate_units::{FrameRate, FrameSize, Nanos};

/// Loads as shares of the line, in percent.
const LOADS: [u64; 2] = [10, 100];
/// Line rate in frames per second if it is unknown: slow ports carry it.
const UNKNOWN_LINE: u64 = 10_000;
/// Share of the frames over a cable that must arrive.
const CABLE_SHARE: f64 = 0.99;
/// Frame sizes in bytes, with FCS.
const OVERSIZE: u32 = 1_523;
const UNDERSIZE: usize = 63;
const ORDINARY: u32 = 512;
/// IEEE 802 local experimental EtherType 1.
const EXPERIMENTAL: [u8; 2] = [0x88, 0xb5];
const FCS: usize = 4;

/// The test: each error at each load.
#[derive(Debug, Clone)]
pub(crate) struct FaultTest {
    cable: bool,
    line: u64,
    time: Nanos,
    /// Share of the frames that arrived over a cable, by error.
    shares: Vec<(FrameFault, f64)>,
    attempts: Vec<Attempt>,
}

/// A trial of one error at one load.
#[derive(Debug, Clone)]
struct Attempt {
    fault: FrameFault,
    /// Frames sent and received, or the reason for their lack.
    counts: Result<(u64, u64), String>,
}

impl FaultTest {
    pub(crate) fn new(plan: &DevicePlan, calibrated: &[(FrameFault, f64)], cable: bool) -> Self {
        let size = FrameSize::carrying(ORDINARY - 18, 14);
        let line = plan.line.map_or(UNKNOWN_LINE, |line| size.line_rate(line).get());
        Self { cable, line, time: plan.final_time, shares: calibrated.to_vec(), attempts: Vec::new() }
    }

    /// Returns the next error and its load. An error that cannot be sent is not tried at further loads.
    pub(crate) fn next(&self) -> Option<(FrameFault, FrameRate, Nanos)> {
        for fault in FrameFault::SENDABLE {
            let attempts: Vec<_> = self.attempts.iter().filter(|attempt| attempt.fault == fault).collect();
            let failed = attempts.iter().any(|attempt| attempt.counts.is_err());
            if let Some(percent) = LOADS.get(attempts.len()).filter(|_| !failed) {
                let rate = FrameRate::per_second((self.line * percent / 100).max(1));
                return Some((fault, rate, self.time));
            }
        }
        None
    }

    /// Records a trial. Returns whether the test is over.
    pub(crate) fn record(&mut self, run: &FramesRun<'_>) -> bool {
        if let Some((fault, ..)) = self.next() {
            let sent = run.counts.streams.iter().map(|stream| stream.sent).sum();
            let received: u64 = run.counts.streams.iter().map(|stream| stream.received).sum();
            let bytes: u64 = run.counts.streams.iter().map(|stream| stream.received_bytes).sum();
            let is_repaired = self.cable && fault == FrameFault::Undersize && bytes > received * UNDERSIZE as u64;
            let counts = if is_repaired {
                Err("a driver of the ports fills short frames up".to_owned())
            } else {
                Ok((sent, received))
            };
            self.attempts.push(Attempt { fault, counts });
        }
        self.next().is_none()
    }

    /// Records a trial that the tester could not make. Returns whether the test is over.
    pub(crate) fn record_failure(&mut self, reason: &str) -> bool {
        if let Some((fault, ..)) = self.next() {
            self.attempts.push(Attempt { fault, counts: Err(reason.to_owned()) });
        }
        self.next().is_none()
    }

    pub(crate) fn known(&self) -> Message {
        message!(
            "known-faults",
            "{done} of {all} trials",
            done = self.attempts.len(),
            all = FrameFault::SENDABLE.len() * LOADS.len()
        )
    }

    pub(crate) fn outcome(&self) -> Vec<FaultResult> {
        FrameFault::ALL.into_iter().map(|fault| self.result(fault)).collect()
    }

    fn result(&self, fault: FrameFault) -> FaultResult {
        let mut sent = 0;
        let mut received = 0;
        let mut failure = None;
        for attempt in self.attempts.iter().filter(|attempt| attempt.fault == fault) {
            match &attempt.counts {
                Ok((more_sent, more_received)) => {
                    sent += more_sent;
                    received += more_received;
                }
                Err(reason) => failure = Some(reason),
            }
        }
        let measured = self.shares.iter().find(|(other, _)| *other == fault).map(|(_, share)| *share);
        let cable_share = if self.cable && sent > 0 { Some(received as f64 / sent as f64) } else { measured };
        let outcome = match (failure, cable_share) {
            _ if !FrameFault::SENDABLE.contains(&fault) => FaultOutcome::NotTestable {
                why: message!(
                    "fault-needs-hardware",
                    "ports of computers cannot send such frames; they exist on media of 10 and 100 Mbit/s only"
                ),
            },
            (Some(reason), _) => FaultOutcome::NotTestable {
                why: message!(
                    "fault-not-sent",
                    "no trial with such frames could be made: {reason}",
                    reason = reason.clone()
                ),
            },
            (None, None) => FaultOutcome::NotTestable {
                why: message!(
                    "fault-not-calibrated",
                    "it is not known whether these ports can send and receive such frames: connect them by a cable and run \
                     `linerate device errors --cable` first"
                ),
            },
            (None, Some(share)) if share < CABLE_SHARE => FaultOutcome::NotTestable {
                why: message!(
                    "fault-lost-on-cable",
                    "over a cable {share} of such frames arrived: the tester's own ports drop them",
                    share = linerate_model::MessageValue::percent(share, 1)
                ),
            },
            (None, Some(_)) if self.cable => FaultOutcome::Pass,
            (None, Some(_)) if sent == 0 => {
                FaultOutcome::NotTestable { why: message!("fault-nothing-sent", "no such frame was sent") }
            }
            (None, Some(_)) if received == 0 => FaultOutcome::Pass,
            (None, Some(_)) => FaultOutcome::Fail,
        };
        FaultResult { fault, sent, received, cable_share, outcome }
    }
}

/// Makes the frames of a trial errored.
pub(super) fn shape(task: &mut FramesTask, fault: FrameFault) {
    for stream in &mut task.streams {
        match fault {
            FrameFault::Oversize => stream.size = FrameSize::carrying(OVERSIZE - 18, 14),
            FrameFault::Undersize => make_short(stream),
            _ => {
                stream.size = FrameSize::carrying(ORDINARY - 18, 14);
                stream.form.bad_fcs = true;
            }
        }
    }
}

/// Replaces the frames of a stream by shorter ones than the signature of a packet fits in.
fn make_short(stream: &mut FrameStream) {
    let mut bytes = Vec::with_capacity(UNDERSIZE - FCS);
    bytes.extend_from_slice(&stream.headers.destination_mac.0);
    bytes.extend_from_slice(&stream.headers.source_mac.0);
    bytes.extend_from_slice(&EXPERIMENTAL);
    bytes.resize(UNDERSIZE - FCS, 0);
    if let Ok(bytes) = FrameBytes::new(bytes) {
        stream.size = bytes.size();
        stream.form.raw = Some(RawFrame { bytes, signed: true });
    }
}

/// Returns the shares of errored frames that arrived over a cable.
pub(super) fn shares(calibrated: &[Calibrated]) -> Vec<(FrameFault, f64)> {
    calibrated
        .iter()
        .filter_map(|known| match known.subject {
            CalibratedSubject::FrameFault(fault) => Some((fault, known.reached.median)),
            _ => None,
        })
        .collect()
}

/// Returns the tester limit of a calibration of frames.
pub(super) fn tester_limit(known: &Calibrated) -> Option<TesterLimit> {
    match known.subject {
        CalibratedSubject::FrameBytes(frame_bytes) => Some(TesterLimit {
            record: known.record.clone(),
            interleaved: known.interleaved,
            frame_bytes,
            frames_per_s: known.reached.median,
        }),
        CalibratedSubject::Result(_) | CalibratedSubject::FrameFault(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(cable: Option<f64>, counts: Result<(u64, u64), String>) -> FaultOutcome {
        let fault = FrameFault::Undersize;
        let shares = cable.map(|share| (fault, share)).into_iter().collect();
        let test = FaultTest {
            cable: false,
            line: 1,
            time: Nanos::from_secs(1),
            shares,
            attempts: vec![Attempt { fault, counts }],
        };
        test.result(fault).outcome
    }

    #[test]
    fn device_is_judged_by_frames_that_pass_a_cable_only() {
        assert_eq!(outcome(Some(1.0), Ok((100, 0))), FaultOutcome::Pass);
        assert_eq!(outcome(Some(1.0), Ok((100, 100))), FaultOutcome::Fail);
        for (cable, counts) in [(None, Ok((100, 0))), (Some(0.0), Ok((100, 0))), (Some(1.0), Err("refused".to_owned()))]
        {
            assert!(matches!(outcome(cable, counts), FaultOutcome::NotTestable { .. }), "{cable:?}");
        }
    }

    #[test]
    fn error_that_cannot_be_sent_is_not_tried_again() {
        let mut test = FaultTest {
            cable: false,
            line: 1_000,
            time: Nanos::from_secs(1),
            shares: Vec::new(),
            attempts: Vec::new(),
        };
        assert_eq!(test.next().map(|(fault, ..)| fault), Some(FrameFault::Oversize));
        assert!(!test.record_failure("MTU"));
        assert_eq!(test.next().map(|(fault, ..)| fault), Some(FrameFault::Undersize));
        let dribble = test.result(FrameFault::DribbleBits).outcome;
        assert!(matches!(dribble, FaultOutcome::NotTestable { .. }));
    }
}
