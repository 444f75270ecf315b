//! Raw frames: what passes from port to port with no socket in the way. Frames are full and carry UDP, and their payload is
//! counted as UDP's is.
//!
//! The sending port offers what the line carries, or all that it can where no speed is known; what arrives counts. A rate
//! without loss, as `linerate device throughput` finds it, would be too strict beside streams that may lose.
//!
//! Two hosts have two clocks. So what a frame takes there and back is timed by the sending port alone: by echo requests, which the
//! kernel of the receiving host answers before any socket hears of them.

use super::{Facts, Figure, Layer, efficiency, line_payload, udp, unmeasured};
use crate::offered::Offer;
use crate::statistics::summary;
use crate::task::spoilt;
use linerate_model::{
    Confidence, Firmness, FrameEngine, FrameForm, FrameHeaders, FramePayload, FrameStream, FrameStreamCounts,
    FramesTask, Histogram, IpVersion, LayerLatency, LayerName, Limit, Measurement, Message, MessageValue, Summary,
    Task, Timing, Transport, Trial, TrialResult, Verdict, message,
};
use linerate_units::{BitRate, FrameRate, FrameSize};

/// A line this full has no room: the rest is within the error of the clocks.
const FULL: f64 = 0.98;
/// Loss below this share is none that the rate hangs on.
const NO_LOSS: f64 = 0.01;
/// Echo requests a second at the most: so many that what sends them does not sleep in between, no more than the transactions of
/// the layers above do.
const ECHOES: u64 = 10_000;
/// The share of a line of known speed that they may take: none waits for the one before.
const OF_LINE: u64 = 10;

pub(super) struct Frames;

/// Echo requests by the port that sends `full` to where that goes, as small as they can be; none where nothing goes anywhere.
pub(crate) fn echoes(full: &Trial) -> Option<Trial> {
    let Task::Frames(full) = full.task() else { return None };
    let sent = full.streams.first()?;
    let headers = FrameHeaders { payload: FramePayload::Echo, ..sent.headers.clone() };
    let size = headers.smallest_frame();
    let bytes = |size: FrameSize| u64::from(size.on_the_wire());
    let most = sent.rate.map(|rate| rate.get() * bytes(sent.size) / bytes(size) / OF_LINE);
    let stream = FrameStream {
        from: 0,
        to: 0,
        copies_to: Vec::new(),
        size,
        rate: Some(FrameRate::per_second(most.unwrap_or(ECHOES).clamp(1, ECHOES))),
        headers,
        form: FrameForm::default(),
        ..sent.clone()
    };
    let task = FramesTask {
        ports: vec![full.ports.get(usize::from(sent.from))?.clone()],
        streams: vec![stream],
        hosts: Vec::new(),
        ..full.clone()
    };
    Some(Trial::new("echo of frames", Task::Frames(task), Timing::UntilDone))
}

impl Layer for Frames {
    fn name(&self) -> LayerName {
        LayerName::Frames
    }

    fn figure(&self, facts: &Facts<'_>) -> Result<Figure, Message> {
        let (ip, mtu) = (facts.plan.ip, facts.plan.mtu);
        let full = &facts.beside.frames;
        if full.is_empty() {
            return Err(unmeasured());
        }
        let sound: Vec<&TrialResult> = full.iter().copied().filter(|run| spoilt(run).is_none()).collect();
        let runs = sound.iter().map(|result| payload_bps(result, ip, mtu)).collect();
        let payload_bps = summary(runs).ok_or_else(|| {
            message!(
                "ladder-frames-held-up",
                "something else held up what sends the frames in every trial; measure when the machine is quiet"
            )
        })?;
        let verdict = verdict(facts, &sound, &payload_bps);
        Ok(Figure {
            // What the sending port did not give is no loss of the path.
            bears: verdict.limit != Limit::Tester,
            firmness: firmness(&sound, verdict.limit),
            verdict: Some(verdict),
            payload_bps,
            efficiency: efficiency(Transport::Udp, ip, ip.datagram_within(mtu), mtu),
            latency: if facts.beside.times() { latency(&facts.beside.echoes) } else { None },
            results: Vec::new(),
        })
    }

    fn advice(&self, _facts: &Facts<'_>) -> Option<Message> {
        Some(message!(
            "ladder-next-frames",
            "no socket is in the way here: test the device on the path by itself with `linerate device \
             throughput`, and the tester's own ports with `linerate device calibrate`"
        ))
    }
}

/// The time there and back in all trials together; none where no request was answered.
fn latency(timed: &[&TrialResult]) -> Option<LayerLatency> {
    let mut all = Histogram::default();
    streams(timed).for_each(|stream| all.merge(&stream.latency));
    let answered = all.count() > 0;
    answered.then(|| LayerLatency { p50: all.quantile(0.5), p99: all.quantile(0.99), count: all.count() })
}

/// Payload that arrived in one trial, bit/s: what came behind the first frame, in the time from it to the last.
pub(super) fn payload_bps(result: &TrialResult, ip: IpVersion, mtu: u32) -> f64 {
    let of = |stream: &FrameStreamCounts| {
        let bits = (stream.received.saturating_sub(1) * ip.datagram_within(mtu) * 8) as f64;
        let seconds = stream.receive_time.as_secs_f64();
        if seconds > 0.0 { bits / seconds } else { 0.0 }
    };
    streams(&[result]).map(of).sum()
}

/// What became of the streams of all runs.
fn streams<'a>(runs: &[&'a TrialResult]) -> impl Iterator<Item = &'a FrameStreamCounts> {
    let runs: Vec<_> = runs.iter().filter_map(|run| run.frames()).collect();
    runs.into_iter().flat_map(|run| &run.counts.streams)
}

/// Whether what arrived is all that the path takes. Where the line is full it is; else the sending port must have offered what it
/// was to.
fn firmness(trials: &[&TrialResult], limit: Limit) -> Firmness {
    let offered = trials.iter().filter_map(|run| run.frames()).map(|run| Offer::of(&run).firmness());
    match (limit, offered.fold(Firmness::Firm, Firmness::and)) {
        (Limit::Wire, _) => Firmness::Firm,
        (Limit::Tester, Firmness::Firm) => Firmness::NotFirm { offered: None },
        (_, offered) => offered,
    }
}

/// What limited the frames. They pass no socket: it is the line, what sends them, or something that loses them.
fn verdict(facts: &Facts<'_>, trials: &[&TrialResult], payload_bps: &Summary) -> Verdict {
    let sent: u64 = streams(trials).map(|stream| stream.sent).sum();
    let lost = sent.saturating_sub(streams(trials).map(|stream| stream.received).sum());
    let due: u64 = streams(trials).map(|stream| stream.intended).sum();
    let sockets =
        trials.iter().filter_map(|run| run.frames()).any(|run| run.counts.engine == FrameEngine::PacketSocket);
    let engine = if sockets { "packet sockets" } else { "XDP" };
    let udp = facts.result(&udp::stream_name(facts.plan.ip, facts.plan.mtu));
    let udp = udp.and_then(Measurement::received).map(|received| &received.payload_bps);
    let share = facts.line().map(|line| (line, payload_bps.median / line_payload(line, facts.plan.ip, facts.plan.mtu)));
    let (limit, confidence, text) = match share {
        Some((line, share)) if share >= FULL => {
            let text = message!(
                "raw-frames-wire",
                "The receiving port got {share} of the payload that a line of {line} can carry in full frames at \
                 MTU {mtu}.",
                share = MessageValue::percent(share, 1),
                line,
                mtu = facts.plan.mtu
            );
            (Limit::Wire, Confidence::High, text)
        }
        // What UDP got over the same path, each datagram a packet, the path can carry.
        _ if let Some(udp) = udp.filter(|udp| udp.low * FULL > payload_bps.high) => {
            let udp = BitRate::per_second(udp.median as u64);
            let text = message!(
                "raw-frames-udp-more",
                "UDP got more over the same path ({udp}): what sends or counts the frames ({engine}) is slower.",
                udp,
                engine = engine.to_string()
            );
            (Limit::Tester, Confidence::Medium, text)
        }
        _ if (lost as f64) < sent as f64 * NO_LOSS => {
            let text = message!(
                "raw-frames-port",
                "The sending port was the limit ({engine}): of {due} frames due, {sent} were sent and {lost} of \
                 those lost.",
                due,
                sent,
                lost,
                engine = engine.to_string()
            );
            (Limit::Tester, Confidence::Medium, text)
        }
        _ => {
            let text = message!(
                "raw-frames-lost",
                "{lost} of {sent} frames were lost on the way or at the receiving port (by {engine}).",
                lost,
                sent,
                engine = engine.to_string()
            );
            (Limit::CannotTell, Confidence::Low, text)
        }
    };
    Verdict::new(limit, confidence, vec![text])
}
