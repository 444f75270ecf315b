//! Raw frames through a device: what it does not forward at once waits in its buffer, and what finds that full is lost.

use super::{Device, Network, Shortfall};
use linerate_model::{
    FrameEngine, FramePartCounts, FrameStream, FrameStreamPart, FramesArrived, FramesSent, FramesTask, Histogram,
    PortArrivals,
};
use linerate_units::Nanos;

/// When the first frame of a trial leaves, nanoseconds of the sender's clock.
const BEGIN: u64 = 1_000_000;

/// One stream as it is sent: from when to when, seconds, and how fast.
#[derive(Debug, Clone, Copy)]
struct Flow {
    from: f64,
    to: f64,
    per_s: f64,
    intended: u64,
    sent: u64,
    held_up: Nanos,
}

/// What becomes of it.
#[derive(Debug, Clone, Copy, Default)]
struct Fate {
    lost: f64,
    /// When the last of it was lost, seconds.
    last_loss: Option<f64>,
    /// The longest that a frame of it waited, seconds.
    waited: f64,
}

impl Network {
    /// What a host with these ports counts.
    pub(super) fn ports(&self, own: &[u16], task: &FramesTask) -> FramePartCounts {
        let flows: Vec<Flow> = task.streams.iter().map(|stream| self.flow(stream, task)).collect();
        let fates = forward(self.device, &flows);
        let part = |((stream, flow), fate): ((&FrameStream, &Flow), &Fate)| {
            // From the first frame to the last.
            let time = Nanos::new((flow.sent.saturating_sub(1) as f64 / flow.per_s * 1e9) as u64);
            let first = moment(flow.from);
            let received = flow.sent.saturating_sub(fate.lost.round() as u64);
            let mut latency = Histogram::default();
            latency.record_many(self.device.latency.get().saturating_add((fate.waited * 1e9) as u64), received);
            let arrived = FramesArrived {
                received,
                bytes: stream.bytes(received),
                expected: flow.sent,
                last_gap: fate.last_loss.map(moment),
                time,
                latency,
                ..FramesArrived::default()
            };
            FrameStreamPart {
                sent: own.contains(&stream.from).then(|| FramesSent {
                    intended: flow.intended,
                    sent: flow.sent,
                    bytes: stream.bytes(flow.sent),
                    first,
                    time,
                    held_up: flow.held_up,
                    paused: Nanos::default(),
                }),
                arrived: own.contains(&stream.to).then(|| arrived.clone()),
                flooded: 0,
                flooded_at: Vec::new(),
                copies: stream
                    .copies_to
                    .iter()
                    .filter(|port| own.contains(port))
                    .map(|port| PortArrivals { port: *port, arrived: arrived.clone() })
                    .collect(),
            }
        };
        let streams = task.streams.iter().zip(&flows).zip(&fates).map(part).collect();
        FramePartCounts { engine: FrameEngine::Xdp, streams }
    }

    fn flow(&self, stream: &FrameStream, task: &FramesTask) -> Flow {
        let beside = task.streams.iter().filter(|other| other.after == stream.after).count();
        let reached = self.tester.get() as f64 / beside.max(1) as f64;
        let asked = stream.rate.map_or(reached, |rate| rate.get() as f64);
        let from = stream.after.as_secs_f64();
        let time = stream.length(task.time).as_secs_f64();
        let above = |shortfall: &Shortfall| asked * beside as f64 > shortfall.above.get() as f64;
        let shortfall = self.shortfall.filter(|shortfall| stream.count.is_none() && above(shortfall));
        let share = shortfall.map_or(1.0, |shortfall| shortfall.share);
        let paused = shortfall.filter(|shortfall| shortfall.held_up).map_or(0.0, |_| (1.0 - share) * time);
        let per_s = (asked * share).min(reached).max(1.0);
        let (intended, sent) = match stream.count {
            Some(count) => {
                let sent = count.min((per_s * time).round() as u64);
                (sent, sent)
            }
            None => ((asked * time).round() as u64, (per_s * time).round() as u64),
        };
        let to = from + if stream.count.is_some() { sent as f64 / per_s } else { time };
        Flow { from, to, per_s, intended, sent, held_up: Nanos::new((paused * 1e9) as u64) }
    }
}

/// A moment of the trial on the sender's clock.
fn moment(seconds: f64) -> u64 {
    BEGIN + (seconds * 1e9).round() as u64
}

/// Sends `flows` through a device, from one change of the load to the next.
fn forward(device: Device, flows: &[Flow]) -> Vec<Fate> {
    let mut fates = vec![Fate::default(); flows.len()];
    let mut changes: Vec<f64> = flows.iter().flat_map(|flow| [flow.from, flow.to]).collect();
    changes.sort_by(f64::total_cmp);
    let (rate, buffer) = (device.rate.get() as f64, device.buffer as f64);
    let (mut waiting, mut overloaded) = (0.0_f64, false);
    for stretch in changes.windows(2) {
        let (from, to) = (stretch[0], stretch[1]);
        if to <= from {
            continue;
        }
        let there = |flow: &Flow| flow.from <= from && flow.to >= to;
        let load: f64 = flows.iter().filter(|flow| there(flow)).map(|flow| flow.per_s).sum();
        let excess = load - rate;
        // When loss begins and ends, and the share of the frames that is lost meanwhile.
        let (begin, end, share) = if excess > 0.0 {
            ((from + (buffer - waiting) / excess).min(to), to, excess / load)
        } else if overloaded {
            (from, (from + device.recovery.as_secs_f64()).min(to), 1.0)
        } else {
            (to, to, 0.0)
        };
        overloaded = excess > 0.0 && begin < to;
        waiting = (waiting + excess * (to - from)).clamp(0.0, buffer);
        for (flow, fate) in flows.iter().zip(&mut fates).filter(|(flow, _)| there(flow)) {
            let lost = flow.per_s * (end - begin) * share;
            // A part of a frame is none.
            if lost >= 0.5 {
                fate.lost += lost;
                fate.last_loss = Some(end);
            }
            fate.waited = fate.waited.max(waiting / rate);
        }
    }
    fates
}
