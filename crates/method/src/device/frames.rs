//! Plain generating and receiving: one trial a size, and what became of each stream.

use super::offered::of_load;
use super::{SHORTFALL_BEARABLE, latency_of, whole};
use linerate_model::{Caveat, CaveatKind, FlowRate, FrameFlow, FrameStream, FrameStreamResult, FrameTrialResult};
use linerate_units::{Nanos, grouped};

/// The trial at one size.
#[derive(Debug, Clone, Default)]
pub(crate) struct FramesTest {
    measured: Option<FrameTrialResult>,
}

impl FramesTest {
    pub(crate) fn is_done(&self) -> bool {
        self.measured.is_some()
    }

    pub(crate) fn record(&mut self, result: &FrameTrialResult) {
        self.measured = Some(result.clone());
    }

    /// Each stream of the trial.
    pub(crate) fn outcome(&self) -> Vec<FrameFlow> {
        let Some(result) = &self.measured else { return Vec::new() };
        result.trial.streams.iter().zip(&result.streams).map(|(stream, counts)| flow(result, stream, counts)).collect()
    }
}

fn flow(result: &FrameTrialResult, stream: &FrameStream, counts: &FrameStreamResult) -> FrameFlow {
    let port = |index: u16| result.trial.ports.get(usize::from(index)).map(ToString::to_string).unwrap_or_default();
    let mut caveats = result.caveats.clone();
    let offered = rate(counts.sent, counts.sent_bytes, counts.send_time);
    let slow = stream
        .rate
        .zip(offered)
        .is_some_and(|(asked, offered)| offered.frames_per_s < asked.get() as f64 * (1.0 - SHORTFALL_BEARABLE));
    if slow || counts.intended.saturating_sub(counts.sent) > counts.intended / 200 {
        caveats.push(Caveat::new(
            CaveatKind::BelowOfferedRate,
            format!(
                "{} of {} frames that were due were sent, {} a second: less than was asked for, because this host was held up \
                 or cannot send so many; ask for a lower rate, or measure when it is quiet",
                grouped(counts.sent),
                grouped(counts.intended),
                whole(offered.map_or(0.0, |offered| offered.frames_per_s))
            ),
        ));
    }
    FrameFlow {
        from: port(stream.from),
        to: port(stream.to),
        frame_bytes: stream.size.get(),
        mix: stream.form.mix.clone(),
        engine: result.engine,
        intended: counts.intended,
        sent: counts.sent,
        received: counts.received,
        lost: counts.sent.saturating_sub(counts.received),
        duplicates: counts.duplicates,
        reordered: counts.reordered,
        flooded: counts.flooded,
        offered,
        arrived: rate(counts.received, counts.received_bytes, counts.receive_time),
        sent_bytes: counts.sent_bytes,
        received_bytes: counts.received_bytes,
        latency_ns: latency_of(&counts.latency),
        by_port_counters: counts.by_port_counters,
        verdict: Some(of_load(counts.intended, counts.sent, counts.received)),
        caveats,
    }
}

/// `frames` of `bytes` in all, the first and the last `time` apart: what came behind the first took that time.
fn rate(frames: u64, bytes: u64, time: Nanos) -> Option<FlowRate> {
    /// Preamble, start delimiter and gap (IEEE 802.3 clauses 3.1.1 and 4.4.2).
    const AROUND: f64 = 20.0;
    let steps = frames.checked_sub(1).filter(|steps| *steps > 0 && time.get() > 0)?;
    let frames_per_s = steps as f64 / time.as_secs_f64();
    let mean = bytes as f64 / frames as f64;
    Some(FlowRate {
        frames_per_s,
        frame_bits_per_s: frames_per_s * mean * 8.0,
        wire_bits_per_s: frames_per_s * (mean + AROUND) * 8.0,
        time,
    })
}
