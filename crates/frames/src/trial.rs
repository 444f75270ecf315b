//! A trial from its beginning to its end, by whichever means.

use crate::answering::Answering;
use crate::plan::{Plan, in_time};
use crate::{FrameError, learning, packet, xdp};
use linerate_model::{Caveat, CaveatKind, FrameEngine, FrameStreamResult, FrameTrial};
use linerate_sys::clock;
use linerate_sys::packet::PacketSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Between the reports of progress, and how soon an end is noticed.
pub(crate) const LOOK: Duration = Duration::from_millis(50);
/// From the beginning of a trial to its first frame: for the threads to be ready.
pub(crate) const LEAD: u64 = 20_000_000;

/// What a trial counted.
#[derive(Debug)]
pub struct Counts {
    /// The means that was used; never `auto`.
    pub engine: FrameEngine,
    /// When sending began, nanoseconds since 1970.
    pub started_unix_ns: u64,
    /// Each stream, in the trial's order.
    pub streams: Vec<FrameStreamResult>,
    /// Doubts.
    pub caveats: Vec<Caveat>,
}

/// What one of the means is asked to do.
pub(crate) struct Task<'a> {
    pub(crate) plan: &'a Plan,
    /// When the first frame is due, on [`clock::now`]'s clock.
    pub(crate) settle: u64,
    pub(crate) stop: &'a AtomicBool,
    pub(crate) progress: &'a dyn Fn(u64, u64),
}

impl Task<'_> {
    pub(crate) fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Waits for stragglers.
    pub(crate) fn settle(&self, report: impl Fn()) {
        let until = clock::now() + self.settle;
        while clock::now() < until && !self.stopped() {
            clock::sleep_until(until.min(clock::now() + LOOK.as_nanos() as u64));
            report();
        }
    }

    /// Frames of the stream that were due: all, or those until the stop.
    pub(crate) fn intended(&self, stream: usize, sent: u64, elapsed: u64) -> u64 {
        let stream = &self.plan.streams[stream];
        let due = match (stream.due, stream.wish.rate) {
            (Some(due), Some(rate)) if self.stopped() => due.min(in_time(rate.get(), elapsed.min(self.plan.time))),
            (Some(due), Some(_)) => due,
            _ => sent,
        };
        due.max(sent)
    }
}

/// Runs a trial and returns when it is over: attaches the receivers, lets the ports be learned, sends, waits for
/// stragglers, reads, detaches. `progress` hears of frames sent and received so far; `stop` ends the trial early.
pub fn run(trial: &FrameTrial, stop: &AtomicBool, progress: &dyn Fn(u64, u64)) -> Result<Counts, FrameError> {
    let plan = Plan::new(trial)?;
    // Frames may go to addresses that are not the ports' own; the ports hear them while these sockets are open.
    let mut ears = Vec::with_capacity(plan.ports.len());
    for port in &plan.ports {
        let socket = PacketSocket::open(port.link, None)?;
        socket.hear_all()?;
        ears.push(socket);
    }
    learning::send(&plan)?;
    let _answering = Answering::begin(&plan, &trial.hosts)?;
    let task = Task { plan: &plan, settle: trial.settle.get(), stop, progress };
    match trial.engine {
        FrameEngine::Xdp => xdp::run(&task),
        FrameEngine::PacketSocket => packet::run(&task),
        FrameEngine::Auto => match xdp::possible_for(&plan).and_then(|()| xdp::run(&task)) {
            Err(error) if falls_back(&error) => {
                let mut counts = packet::run(&task)?;
                let text = format!(
                    "packet sockets stood in for XDP ({error}): they send and receive far fewer frames a second; compare \
                     with a trial port to port before blaming the device"
                );
                counts.caveats.push(Caveat::new(CaveatKind::Fallback, text));
                Ok(counts)
            }
            counts => counts,
        },
    }
}

/// The other means may do better.
fn falls_back(error: &FrameError) -> bool {
    matches!(error, FrameError::NoXdp(_) | FrameError::TooLargeForXdp(_) | FrameError::PortTaken { .. })
}
