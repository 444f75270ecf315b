//! A trial from its beginning to its end, by whichever means.

use crate::answering::Answering;
use crate::carrier::Carrier;
use crate::plan::{Plan, in_time};
use crate::{FrameError, learning, packet, xdp};
use linerate_model::{Caveat, CaveatKind, FrameEngine, FrameHalf, FrameStreamResult, FrameTrial, StreamHalf};
use linerate_sys::clock;
use linerate_sys::netlink::{Link, Route};
use linerate_sys::packet::PacketSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Between the reports of progress, and how soon an end is noticed.
pub(crate) const LOOK: Duration = Duration::from_millis(50);
/// How soon the word of another host is noticed, nanoseconds.
const GLANCE: u64 = 10_000_000;
/// From the beginning of a trial to its first frame: for the threads to be ready.
pub(crate) const LEAD: u64 = 20_000_000;

/// Bytes of a frame's check sequence, which no port hands over.
pub(crate) const FCS: u64 = 4;

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

/// What this host counted of a trial.
#[derive(Debug)]
pub struct HalfCounts {
    /// The means that was used; never `auto`.
    pub engine: FrameEngine,
    /// When sending began, nanoseconds since 1970.
    pub started_unix_ns: u64,
    /// Each stream, in the trial's order.
    pub streams: Vec<StreamHalf>,
    /// Doubts.
    pub caveats: Vec<Caveat>,
}

/// Steps that the hosts of one trial take together. No host sends before the ports of all count; none stops counting before all
/// have sent.
pub trait Conductor: Sync {
    /// Reports that this host's ports count.
    fn counting(&self);
    /// Returns when the first frame is due, in nanoseconds of [`clock::now`]; `None` before that is known.
    fn start(&self) -> Option<u64>;
    /// Reports that this host has sent all its frames.
    fn sent(&self);
    /// Returns whether all hosts have sent all their frames.
    fn all_sent(&self) -> bool;
}

/// What one of the means is asked to do.
pub(crate) struct Task<'a> {
    pub(crate) plan: &'a Plan,
    /// Where other hosts take part.
    pub(crate) conductor: Option<&'a dyn Conductor>,
    /// How long stragglers are waited for, nanoseconds.
    pub(crate) settle: u64,
    pub(crate) stop: &'a AtomicBool,
    pub(crate) progress: &'a dyn Fn(u64, u64),
}

impl Task<'_> {
    pub(crate) fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Once the ports count: when the first frame is due, on [`clock::now`]'s clock. Alone that is `lead` from now; with
    /// others it is waited for.
    pub(crate) fn begin(&self, lead: u64) -> Result<u64, FrameError> {
        let Some(conductor) = self.conductor else { return Ok(clock::now() + lead) };
        conductor.counting();
        loop {
            match conductor.start() {
                _ if self.stopped() => return Err(FrameError::CalledOff(self.plan.name.clone())),
                // One that comes to it late, by other means, begins late.
                Some(start) => return Ok(start.max(clock::now() + lead)),
                None => clock::sleep_until(clock::now() + GLANCE),
            }
        }
    }

    /// Once all is sent: waits until the other hosts have sent too, then for stragglers.
    pub(crate) fn settle(&self, report: impl Fn()) {
        if let Some(conductor) = self.conductor {
            conductor.sent();
            while !conductor.all_sent() && !self.stopped() {
                clock::sleep_until(clock::now() + GLANCE);
                report();
            }
        }
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
            (Some(due), Some(rate)) if self.stopped() => {
                let sending = elapsed.saturating_sub(stream.wish.after.get()).min(stream.length(self.plan.time));
                due.min(in_time(rate.get(), sending))
            }
            (Some(due), Some(_)) => due,
            _ => sent,
        };
        due.max(sent)
    }
}

/// Runs a trial and returns when it is over: attaches the receivers, lets the ports be learned, sends, waits for
/// stragglers, reads, detaches. `progress` hears of frames sent and received so far; `stop` ends the trial early, and is set
/// where a port's link went down.
pub fn run(trial: &FrameTrial, stop: &AtomicBool, progress: &dyn Fn(u64, u64)) -> Result<Counts, FrameError> {
    let counts = run_plan(&Plan::whole(trial)?, trial, None, stop, progress)?;
    let joined = |half: StreamHalf| {
        FrameStreamResult::joined(half.sent.unwrap_or_default(), half.arrived.unwrap_or_default(), half.flooded)
    };
    Ok(Counts {
        engine: counts.engine,
        started_unix_ns: counts.started_unix_ns,
        streams: counts.streams.into_iter().map(joined).collect(),
        caveats: counts.caveats,
    })
}

/// Runs this host's half of a trial, the same way; what other hosts have to do with it comes by `conductor`.
pub fn run_half(
    half: &FrameHalf,
    conductor: &dyn Conductor,
    stop: &AtomicBool,
    progress: &dyn Fn(u64, u64),
) -> Result<HalfCounts, FrameError> {
    run_plan(&Plan::half(half)?, &half.trial, Some(conductor), stop, progress)
}

fn run_plan(
    plan: &Plan,
    trial: &FrameTrial,
    conductor: Option<&dyn Conductor>,
    stop: &AtomicBool,
    progress: &dyn Fn(u64, u64),
) -> Result<HalfCounts, FrameError> {
    // Frames may go to addresses that are not the ports' own; the ports hear them while these sockets are open. To close a
    // socket takes the kernel 15 ms, so that all that a port has to say goes through the one.
    let mut ears = Vec::with_capacity(plan.ports.len());
    for port in &plan.ports {
        let socket = PacketSocket::open(port.link, None)?;
        socket.hear_all()?;
        ears.push(socket);
    }
    learning::send(plan, &ears)?;
    let _answering = Answering::begin(plan, &trial.hosts)?;
    let carrier = Carrier::of(plan)?;
    let progress = |sent, received| {
        progress(sent, received);
        if carrier.lost_now() {
            stop.store(true, Ordering::Relaxed);
        }
    };
    let task = Task { plan, conductor, settle: trial.settle.get(), stop, progress: &progress };
    let unsigned = plan.streams.iter().any(|stream| stream.signature_at.is_none());
    let before = if unsigned { Route::open()?.links()? } else { Vec::new() };
    let counts = by_engine(trial.engine, &task);
    if let Some(interface) = carrier.lost() {
        return Err(FrameError::WentDown { interface, trial: trial.name.clone() });
    }
    let mut counts = counts?;
    if unsigned {
        count_by_ports(plan, &before, &mut counts)?;
    }
    Ok(counts)
}

/// Runs it by the means asked for.
fn by_engine(engine: FrameEngine, task: &Task<'_>) -> Result<HalfCounts, FrameError> {
    match engine {
        FrameEngine::Xdp => xdp::run(task),
        FrameEngine::PacketSocket => packet::run(task),
        FrameEngine::Auto => match xdp::possible_for(task.plan).and_then(|()| xdp::run(task)) {
            Err(error) if falls_back(&error) => {
                let mut counts = packet::run(task)?;
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

/// What arrived of frames without a signature: all that their port received since `before`. No other frames of the trial go
/// there.
fn count_by_ports(plan: &Plan, before: &[Link], counts: &mut HalfCounts) -> Result<(), FrameError> {
    let after = Route::open()?.links()?;
    for (stream, half) in plan.streams.iter().zip(&mut counts.streams).filter(|(s, _)| s.signature_at.is_none()) {
        let (Some(to), Some(result)) = (stream.to, &mut half.arrived) else { continue };
        let port = &plan.ports[to];
        let of = |links: &[Link]| links.iter().find(|link| link.index == port.link).map(|link| link.counters);
        let (Some(now), Some(then)) = (of(&after), of(before)) else { continue };
        result.received = now.rx_packets.saturating_sub(then.rx_packets);
        // Some drivers count no Ethernet header in their bytes.
        result.bytes = stream.wish.bytes(result.received);
        result.by_port_counters = true;
        let text = format!(
            "the frames to port {} carry no signature: what its own counter rose by is all that is known, other traffic \
             included; duplicates, order, flooding and latency are not known",
            port.interface
        );
        counts.caveats.push(Caveat::new(CaveatKind::PortCountersOnly, text));
    }
    Ok(())
}

/// The other means may do better.
fn falls_back(error: &FrameError) -> bool {
    matches!(
        error,
        FrameError::NoXdp(_)
            | FrameError::TooLargeForXdp(_)
            | FrameError::FillingsDiffer
            | FrameError::PortTaken { .. }
            | FrameError::NotTaken(_)
    )
}
