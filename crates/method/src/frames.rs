//! Plain generating and receiving of raw frames: what was asked for is sent, and what becomes of each stream is counted.

use crate::context::Context;
use crate::latency::latency_if_any;
use crate::offered::{Offer, had_room};
use crate::statistics::summary;
use crate::validity::{STEAL_BEARABLE, steal};
use linerate_model::{
    Caveat, CaveatKind, Confidence, Detail, FlowRate, FrameCounts, FrameEngine, FrameFlow, FrameForm, FramePayload,
    FrameReceiver, FrameStream, FrameStreamCounts, FramesRun, FramesTask, HostName, Limit, Measurement, MessageValue,
    PortName, PortPair, Quantity, Task, Timing, Trial, TrialResult, Verdict, message,
};
use linerate_units::{FrameRate, FrameSize, Nanos};

/// Frames to be sent as they are asked for, without a search.
#[derive(Debug, Clone)]
pub struct PlainFrames {
    /// The host whose ports send; of several hosts that of the first port.
    pub host: HostName,
    /// The ports.
    pub ports: Vec<PortName>,
    /// Who sends to whom.
    pub directions: Vec<PortPair>,
    /// Frames per second of each direction; none sends at the highest rate the port takes.
    pub rate: Option<FrameRate>,
    /// So many frames of each direction at the most; none sends for the whole time.
    pub count: Option<u64>,
    /// What makes the frames other than plain ones.
    pub form: FrameForm,
    /// How long is sent.
    pub time: Nanos,
    /// Wait for stragglers.
    pub settle: Nanos,
    /// By which means.
    pub engine: FrameEngine,
    /// Place at which the frames count as received.
    pub receiver: FrameReceiver,
    /// Streams of each direction, with UDP or TCP ports counted up. They share its rate and its count.
    pub flows: u16,
}

impl PlainFrames {
    /// Returns the trial with frames of `size`, as a cell of a sweep.
    pub fn trial(&self, size: FrameSize) -> Trial {
        let mut streams = Vec::new();
        for pair in &self.directions {
            for flow in 0..self.flows.max(1) {
                streams.push(self.stream(pair, flow, size));
            }
        }
        let task = FramesTask {
            home: self.host.clone(),
            ports: self.ports.clone(),
            streams,
            time: self.time,
            settle: self.settle,
            engine: self.engine,
            receiver: self.receiver,
            line: None,
            hosts: Vec::new(),
        };
        Trial::new(format!("frames {}", size.get()), Task::Frames(task), Timing::UntilDone)
    }

    /// Returns a stream of a direction, with its share of the rate and of the count.
    fn stream(&self, pair: &PortPair, flow: u16, size: FrameSize) -> FrameStream {
        let share = |all: u64| {
            let flows = u64::from(self.flows.max(1));
            all / flows + u64::from(u64::from(flow) < all % flows)
        };
        let mut headers = pair.headers.clone();
        if let FramePayload::Udp { source_port, destination_port } = &mut headers.payload {
            *source_port = source_port.wrapping_add(flow);
            // Each socket of the receiving host has a thread.
            if self.receiver == FrameReceiver::Socket {
                *destination_port = destination_port.wrapping_add(flow);
            }
        }
        if let FramePayload::Tcp { source_port, .. } = &mut headers.payload {
            *source_port = source_port.wrapping_add(flow);
        }
        // The frames of all streams leave one after the other.
        let after = self.rate.map_or(0, |rate| u64::from(flow) * 1_000_000_000 / rate.get().max(1));
        FrameStream {
            from: pair.from,
            to: pair.to,
            copies_to: Vec::new(),
            size,
            rate: self.rate.map(|rate| FrameRate::per_second(share(rate.get()))),
            count: self.count.map(share),
            after: Nanos::new(after),
            time: None,
            headers,
            form: self.form.clone(),
        }
    }
}

/// Frames received per second, all streams together.
pub(crate) fn received_per_s(task: &FramesTask, counts: &FrameCounts) -> f64 {
    let seconds = task.time.as_secs_f64();
    let of = |stream: &FrameStreamCounts| {
        let timed = rate(stream.received, stream.received_bytes, stream.receive_time);
        // Of one frame there is no rate but over the whole time.
        timed.map_or(if seconds > 0.0 { stream.received as f64 / seconds } else { 0.0 }, |rate| rate.frames_per_s)
    };
    counts.streams.iter().map(of).sum()
}

/// Returns why a trial should be run again. Returns `None` if the tester did not spoil it.
pub(crate) fn spoilt(run: &FramesRun<'_>) -> Option<Caveat> {
    let steal = run.result.hosts.values().map(steal).fold(0.0, f64::max);
    if steal > STEAL_BEARABLE {
        let text = message!(
            "caveat-tester-cpu-stolen",
            "the hypervisor took {share} of the tester's CPU time in {trial}: measure again when the machine \
                 is quiet",
            share = MessageValue::percent(steal, 0),
            trial = &run.result.trial.name
        );
        return Some(Caveat::new(CaveatKind::CpuStolen, text));
    }
    let offer = Offer::of(run);
    if let Some(time) = offer.held_up {
        let text = message!(
            "caveat-tester-held-up",
            "{trial}: the tester offered {share} of the rate it was to, held up for {time} in all: something else \
             ran on its sending core",
            trial = &run.result.trial.name,
            share = MessageValue::percent(offer.share, 2),
            time
        );
        return Some(Caveat::new(CaveatKind::BelowOfferedRate, text));
    }
    let more = run.counts.streams.iter().find(|stream| stream.received > stream.sent)?;
    let text = message!(
        "caveat-more-frames-arrived",
        "{trial}: more frames arrived ({received}) than were sent ({sent}), which no device can do: look for a \
         loop or another tester",
        trial = &run.result.trial.name,
        received = more.received,
        sent = more.sent
    );
    Some(Caveat::new(CaveatKind::OtherTraffic, text))
}

/// What the runs of `cell` amount to; the flows are those of the median run.
pub(crate) fn measure(cell: &Trial, runs: &[&TrialResult], _with: &Context<'_>) -> Measurement {
    let runs: Vec<FramesRun<'_>> = runs.iter().filter_map(|run| run.frames()).collect();
    let figures: Vec<f64> = runs.iter().map(|run| received_per_s(run.task, run.counts)).collect();
    let mut order: Vec<usize> = (0..runs.len()).collect();
    order.sort_by(|a, b| figures[*a].total_cmp(&figures[*b]));
    let middle = order.get(order.len().saturating_sub(1) / 2).map(|at| &runs[*at]);
    let flows: Vec<FrameFlow> = middle.map_or_else(Vec::new, |run| {
        let directions = directions_of(run);
        directions.iter().map(|(stream, counts)| flow(run, stream, counts)).collect()
    });
    let verdicts = || flows.iter().filter_map(|flow| flow.verdict.as_ref());
    // One stream that was held back says more than all that met their load.
    let verdict = verdicts().find(|verdict| verdict.limit != Limit::OfferedLoad).or_else(|| verdicts().next());
    let mut caveats: Vec<Caveat> = Vec::new();
    for caveat in flows.iter().flat_map(|flow| &flow.caveats) {
        if !caveats.contains(caveat) {
            caveats.push(caveat.clone());
        }
    }
    Measurement {
        name: cell.name.clone(),
        quantity: Quantity::FramesPerS,
        main: summary(figures).expect("a cell is measured only when it has runs"),
        tester_limit: None,
        verdict: verdict.cloned().unwrap_or_else(|| {
            Verdict::new(Limit::CannotTell, Confidence::Low, vec![message!("frames-no-stream", "no stream was sent")])
        }),
        caveats,
        detail: Detail::Frames { flows },
    }
}

/// Adds up the streams of each direction.
fn directions_of(run: &FramesRun<'_>) -> Vec<(FrameStream, FrameStreamCounts)> {
    let mut directions: Vec<(FrameStream, FrameStreamCounts)> = Vec::new();
    for (stream, counts) in run.streams() {
        match directions.iter_mut().find(|(other, _)| (other.from, other.to) == (stream.from, stream.to)) {
            None => directions.push((stream.clone(), counts.clone())),
            Some((direction, sum)) => {
                let rates = direction.rate.zip(stream.rate);
                direction.rate = rates.map(|(one, other)| FrameRate::per_second(one.get() + other.get()));
                direction.count = direction.count.zip(stream.count).map(|(one, other)| one + other);
                sum.add(counts);
            }
        }
    }
    directions
}

fn flow(run: &FramesRun<'_>, stream: &FrameStream, counts: &FrameStreamCounts) -> FrameFlow {
    let port = |index: u16| run.task.ports.get(usize::from(index)).map(ToString::to_string).unwrap_or_default();
    let mut caveats = run.result.caveats.clone();
    let offered = rate(counts.sent, counts.sent_bytes, counts.send_time);
    let offer = Offer::of_stream(stream, counts, had_room(run.result));
    if !offer.is_whole() {
        caveats.push(Caveat::new(
            CaveatKind::BelowOfferedRate,
            message!(
                "caveat-frames-below-rate",
                "{sent} of {due} frames that were due were sent, {per_s} a second: less than was asked for, \
                 because this host was held up or cannot send so many; ask for a lower rate, or measure when it is \
                 quiet",
                sent = MessageValue::Count(counts.sent),
                due = MessageValue::Count(counts.intended),
                per_s = MessageValue::Count(offered.map_or(0.0, |offered| offered.frames_per_s).round() as u64)
            ),
        ));
    }
    FrameFlow {
        from: port(stream.from),
        to: port(stream.to),
        frame_bytes: stream.size.get(),
        mix: stream.form.mix.clone(),
        engine: run.counts.engine,
        intended: counts.intended,
        sent: counts.sent,
        firmness: offer.firmness(),
        received: counts.received,
        to_socket: counts.to_socket,
        lost: counts.sent.saturating_sub(counts.received),
        duplicates: counts.duplicates,
        reordered: counts.reordered,
        flooded: counts.flooded,
        offered,
        arrived: rate(counts.received, counts.received_bytes, counts.receive_time),
        sent_bytes: counts.sent_bytes,
        received_bytes: counts.received_bytes,
        latency_ns: latency_if_any(&counts.latency),
        by_port_counters: counts.by_port_counters,
        verdict: Some(offer.verdict()),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::{Again, Method, Step};
    use crate::device::tests::{frames_of, plan, simulate, streams_of};
    use crate::sweep::Sweep;
    use linerate_model::{DevicePlan, DeviceTest, Plan, Repeats};

    /// 500 frames of 64 bytes each way at 1,000 a second.
    fn cell() -> Trial {
        let DevicePlan { host, ports, directions, settle, engine, final_time: time, .. } =
            plan(DeviceTest::Throughput, true);
        let (rate, form) = (Some(FrameRate::per_second(1_000)), FrameForm::default());
        let receiver = FrameReceiver::Port;
        let frames = PlainFrames {
            host,
            ports,
            directions,
            rate,
            count: Some(500),
            form,
            time,
            settle,
            engine,
            receiver,
            flows: 1,
        };
        frames.trial(FrameSize::with_fcs(64).expect("a size"))
    }

    #[test]
    fn plain_frames_are_sent_once_and_their_counts_told() {
        let mut sweep = Sweep::new(&Plan::sweep(vec![cell()], Repeats::Times(1)), &[]);
        let Step::Run { trial, again } = sweep.next() else { panic!("one trial") };
        assert_eq!(again, Again::Never, "what was spoilt is told, and not sent again");
        assert_eq!(trial.name, "frames 64");
        assert!(frames_of(&trial).streams.iter().all(|stream| stream.count == Some(500)));
        let mut result = simulate(*trial, 1_000_000, 1_000_000);
        for stream in streams_of(&mut result) {
            (stream.intended, stream.sent, stream.sent_bytes) = (501, 501, 501 * 64);
            stream.send_time = Nanos::from_millis(500);
            (stream.received, stream.by_port_counters, stream.receive_time) = (499, false, Nanos::default());
        }
        sweep.record(&result);
        assert_eq!(sweep.next(), Step::Done);
        let results = sweep.results();
        let flows = results[0].frames();
        assert_eq!((flows.len(), flows[0].lost, flows[1].from.as_str()), (2, 2, "p1"));
        let offered = flows[0].offered.expect("a rate");
        assert_eq!((offered.frames_per_s, offered.frame_bits_per_s, offered.wire_bits_per_s), (1_000.0, 512e3, 672e3));
        assert_eq!(flows[0].arrived, None, "no time, no rate");
        assert_eq!(flows[0].caveats, []);
        // Over the trial's 2 s where no time of arrival is known.
        assert_eq!((results[0].quantity, results[0].main.median), (Quantity::FramesPerS, 499.0));
        assert_eq!(results[0].verdict.limit, Limit::Device);

        // At half the rate asked for, all frames sent are no excuse.
        streams_of(&mut result).iter_mut().for_each(|stream| stream.send_time = Nanos::from_secs(1));
        let mut late = Sweep::new(&Plan::sweep(vec![cell()], Repeats::Times(1)), &[]);
        late.record(&result);
        assert_eq!(late.results()[0].frames()[0].caveats[0].kind, CaveatKind::BelowOfferedRate);
    }

    #[test]
    fn flows_share_a_direction_and_are_counted_together() {
        let DevicePlan { host, ports, directions, settle, engine, final_time: time, .. } =
            plan(DeviceTest::Throughput, true);
        let frames = PlainFrames {
            host,
            ports,
            directions,
            rate: Some(FrameRate::per_second(1_000)),
            count: Some(500),
            form: FrameForm::default(),
            time,
            settle,
            engine,
            receiver: FrameReceiver::Socket,
            flows: 3,
        };
        let trial = frames.trial(FrameSize::with_fcs(64).expect("a size"));
        let streams = &frames_of(&trial).streams;
        let shares: Vec<_> = streams[..3].iter().map(|flow| (flow.rate.map(|rate| rate.get()), flow.count)).collect();
        assert_eq!(shares, [(Some(334), Some(167)), (Some(333), Some(167)), (Some(333), Some(166))]);
        let payloads: Vec<_> = streams[..3].iter().map(|flow| flow.headers.payload).collect();
        let expected = [7, 8, 9].map(|port| FramePayload::Udp { source_port: port, destination_port: port });
        assert_eq!(payloads, expected);
        assert_eq!(streams[2].after, Nanos::from_millis(2));

        let mut result = simulate(trial, 1_000_000, 1_000_000);
        for (stream, sent) in streams_of(&mut result).iter_mut().zip([167, 167, 166].into_iter().cycle()) {
            (stream.intended, stream.sent, stream.received) = (sent, sent, sent - 1);
            stream.send_time = Nanos::from_millis(500);
        }
        let run = result.frames().expect("frames");
        let sums: Vec<_> = directions_of(&run).iter().map(|(_, sum)| (sum.sent, sum.received, sum.send_time)).collect();
        assert_eq!(sums, [(500, 497, Nanos::from_millis(500)); 2]);
        assert_eq!(directions_of(&run)[0].0.rate, Some(FrameRate::per_second(1_000)));
    }
}
