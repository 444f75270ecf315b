//! Latency of a broadcast at each receiving port, at its rate (RFC 2889 section 5.10).

use linerate_model::{Broadcast, BroadcastPort, Firmness, FramesRun, FramesTask, Histogram, Throughput, TrialResult};
use linerate_units::{FrameRate, FrameSize, Nanos};

/// Time for a single frame.
const TIME: Nanos = Nanos::from_millis(100);

/// The latency trial at one size.
#[derive(Debug, Clone)]
pub(crate) struct BroadcastTest {
    size: FrameSize,
    throughput: Option<Throughput>,
    measured: Option<Box<TrialResult>>,
}

impl BroadcastTest {
    pub(crate) fn new(size: FrameSize, throughput: Option<&Throughput>) -> Self {
        Self { size, throughput: throughput.cloned(), measured: None }
    }

    pub(crate) fn is_due(&self) -> bool {
        self.measured.is_none()
    }

    pub(crate) fn record(&mut self, run: &FramesRun<'_>) -> bool {
        self.measured = Some(Box::new(run.result.clone()));
        true
    }

    pub(crate) fn outcome(&self) -> Option<Broadcast> {
        let run = self.measured.as_deref().and_then(TrialResult::frames)?;
        let (stream, counts) = run.streams().next()?;
        let latencies = std::iter::once(&counts.latency).chain(counts.copies.iter().map(|copy| &copy.arrived.latency));
        let single = |latency: &Histogram| (latency.count() > 0).then(|| latency.quantile(0.5));
        let directions = self.throughput.as_ref().map_or(&[][..], |throughput| &throughput.directions);
        let mut ports = Vec::new();
        for (port, latency) in stream.receivers().zip(latencies) {
            let port = run.task.ports.get(usize::from(port)).map(ToString::to_string).unwrap_or_default();
            let received = directions.iter().find(|direction| direction.to == port).map(|direction| direction.received);
            ports.push(BroadcastPort { port, received: received.unwrap_or_default(), latency_ns: single(latency) });
        }
        Some(Broadcast {
            frame_bytes: self.size.get(),
            frames_per_s: self.throughput.as_ref().map_or(0.0, |throughput| throughput.frames_per_s),
            firmness: self.throughput.as_ref().map_or(Firmness::NotFirm { offered: None }, |found| found.firmness),
            ports,
            device_load: self.throughput.as_ref().and_then(|throughput| throughput.device_load.clone()),
            caveats: run.result.caveats.clone(),
        })
    }
}

/// Makes a trial one of a single frame.
pub(super) fn shape(task: &mut FramesTask) {
    task.time = TIME;
    for stream in &mut task.streams {
        stream.count = Some(1);
        stream.rate = Some(FrameRate::per_second(1_000));
    }
}
