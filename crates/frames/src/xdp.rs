//! Frames by XDP: programs in the kernel send, count and time them; user space only starts, waits and reads.

use crate::FrameError;
use crate::FrameError::NoXdp;
use crate::attempt::{Attempt, Counts, FCS, LEAD, LOOK};
use crate::plan::{Plan, deal};
use crate::progress::{KernelCounts, PortCounts};
use crate::taken::VirtualLinks;
use linerate_engine::Stopped;
use linerate_model::{
    Caveat, CaveatKind, FrameEngine, FrameStream, FrameStreamPart, FramesArrived, FramesSent, message,
};
use linerate_sys::affinity::{ClearCores, allowed_unless_cleared, pin};
use linerate_sys::thread::SessionFirst;
use linerate_sys::xdp::{HEAD, Lane, Receiver, Reception, TransmitFrame, TransmitStream, include_bytes_aligned};
use linerate_sys::{Error, bpf, clock};
use linerate_units::Nanos;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;

static TRANSMIT: &[u8] = include_bytes_aligned!("../bpf/transmit.bpf.o");
static RECEIVE: &[u8] = include_bytes_aligned!("../bpf/receive.bpf.o");

/// The kernel refuses live frames that do not fit a page with its own data around them; this is below that limit.
const LARGEST: u32 = 3400;
/// For the sending programs to be loaded, nanoseconds.
pub(crate) const LOADING: u64 = 200_000_000;
/// Frames may be due until the very end, and the last of them may be late.
pub(crate) const GRACE: u64 = 1_000_000_000;

/// Whether the kernel lets this process load XDP programs.
pub fn xdp_possible() -> Result<(), FrameError> {
    bpf::try_loading().map_err(NoXdp)
}

/// Whether XDP can run this trial.
pub(crate) fn possible_for(plan: &Plan) -> Result<(), FrameError> {
    if let Some(stream) = plan.streams.iter().find(|stream| stream.wish.size.without_fcs() > LARGEST) {
        return Err(FrameError::TooLargeForXdp(stream.wish.size.get()));
    }
    let filling = filling(plan);
    let fits = |frame: &Vec<u8>| frame.get(HEAD..).is_none_or(|tail| filling[HEAD..].starts_with(tail));
    if !plan.streams.iter().flat_map(|stream| &stream.frames).all(fits) {
        return Err(FrameError::FillingsDiffer);
    }
    xdp_possible()
}

/// The longest frame: all others are as it is behind their heads.
fn filling(plan: &Plan) -> &[u8] {
    let frames = plan.streams.iter().flat_map(|stream| &stream.frames);
    frames.max_by_key(|frame| frame.len()).map_or(&[], Vec::as_slice)
}

/// The programs at work.
struct Programs {
    lanes: Vec<Lane>,
    /// Which streams each lane sends.
    dealt: Vec<Vec<usize>>,
    receiver: Receiver,
    /// Each stream, and which of this host's ports sends and is to receive it.
    streams: Vec<(FrameStream, Option<usize>, Option<usize>)>,
}

impl Programs {
    /// Each lane with the streams that it sends: their places there and in the plan.
    fn sending(&self) -> impl Iterator<Item = (&Lane, u32, usize)> {
        let lanes = self.lanes.iter().zip(&self.dealt);
        lanes.flat_map(|(lane, streams)| (0..).zip(streams).map(move |(at, &index)| (lane, at, index)))
    }
}

impl KernelCounts for Programs {
    fn add_to(&self, ports: &mut [PortCounts]) {
        for (lane, at, index) in self.sending() {
            let (wish, from, _) = &self.streams[index];
            let (Some(from), Ok(counts)) = (from, lane.sent(at)) else { continue };
            ports[*from].sent += counts.sent;
            ports[*from].sent_bytes += wish.bytes(counts.sent);
        }
        for (index, (wish, _, to)) in (0..).zip(&self.streams) {
            let (Some(to), Ok(counts)) = (to, self.receiver.arrived(index)) else { continue };
            ports[*to].received += counts.received;
            ports[*to].received_bytes += wish.bytes(counts.received);
        }
    }
}

/// Runs the trial.
pub(crate) fn run(attempt: &Attempt<'_>) -> Result<Counts, FrameError> {
    let (plan, stop) = (attempt.plan, attempt.stop());
    possible_for(plan)?;
    let receiver = attach(plan)?;
    // The last core is left for what arrives.
    let mut cores = allowed_unless_cleared();
    // A control group may have the time of fewer.
    cores.truncate(thread::available_parallelism().map_or(1, usize::from));
    let dealt = deal(&plan.sent_here(), cores.len().saturating_sub(1).max(1));
    let start = attempt.begin(LOADING)?;
    let virtual_links = VirtualLinks::of(plan)?;
    let mut lanes = Vec::with_capacity(dealt.len());
    for streams in &dealt {
        let wishes: Vec<TransmitStream> = streams.iter().filter_map(|&index| wish(plan, index, start)).collect();
        lanes.push(Lane::load(TRANSMIT, &wishes, filling(plan), batch(plan, streams))?);
    }
    let started_unix_ns = clock::unix_at(start);
    let deadline = start + plan.time + plan.late_time() + GRACE;
    let streams = plan.streams.iter().map(|stream| (stream.wish.clone(), stream.from, stream.to)).collect();
    let programs = Arc::new(Programs { lanes, dealt, receiver, streams });
    let Programs { lanes, receiver, .. } = &*programs;
    let _counting = attempt.progress.counted_by(Arc::clone(&programs) as _);
    // Those of this process that only look on would hold up a sender for milliseconds, however it is put first.
    let _clear = ClearCores::of(cores.iter().copied().take(lanes.len()));
    thread::scope(|scope| {
        let mut threads = Vec::with_capacity(lanes.len());
        for (number, (lane, core)) in lanes.iter().zip(&cores).enumerate() {
            let thread = thread::Builder::new()
                .name(format!("frames {number}"))
                .spawn_scoped(scope, move || {
                    // Without these it sends all the same, only less evenly.
                    let _ = pin(*core);
                    let _first = SessionFirst::new();
                    clock::sleep_until(start.saturating_sub(LEAD / 10));
                    while lane.send()? && !stop.load(Ordering::Relaxed) && clock::now() < deadline {}
                    Ok::<_, Error>(())
                })
                .map_err(|error| Error::new("pthread_create", "a sender", error))?;
            threads.push(thread);
        }
        while threads.iter().any(|thread| !thread.is_finished()) {
            thread::sleep(LOOK);
            attempt.look();
        }
        threads
            .into_iter()
            .try_for_each(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })?;
    let mut given = BTreeMap::<u32, u64>::new();
    for (lane, at, index) in programs.sending() {
        if let Some(port) = plan.streams[index].from {
            *given.entry(plan.ports[port].link).or_default() += lane.sent(at)?.sent;
        }
    }
    if stop.load(Ordering::Relaxed) {
        return Err(Stopped.into());
    }
    virtual_links.check(|link| given.get(&link).copied().unwrap_or_default())?;
    attempt.settle()?;

    let mut streams = vec![FrameStreamPart::default(); plan.streams.len()];
    for (lane, at, index) in programs.sending() {
        let sent = lane.sent(at)?;
        streams[index].sent = Some(FramesSent {
            intended: attempt.intended(index, sent.sent),
            sent: sent.sent,
            bytes: plan.streams[index].wish.bytes(sent.sent),
            first: sent.first,
            time: Nanos::new(sent.last.saturating_sub(sent.first)),
            held_up: Nanos::new(sent.held_up),
        });
    }
    for ((index, stream), part) in (0..).zip(&plan.streams).zip(&mut streams) {
        let arrived = receiver.arrived(index)?;
        part.flooded = arrived.flooded;
        if stream.to.is_none() {
            continue;
        }
        let mut counts = FramesArrived {
            received: arrived.received,
            bytes: match stream.wish.form.mix {
                None => stream.wish.bytes(arrived.received),
                Some(_) => arrived.bytes + FCS * arrived.received,
            },
            duplicates: arrived.duplicates,
            reordered: arrived.reordered,
            expected: arrived.expected,
            last_gap: arrived.last_gap,
            time: Nanos::new(arrived.last.saturating_sub(arrived.first)),
            ..FramesArrived::default()
        };
        // Two hosts have two clocks.
        if stream.from.is_some() {
            for (nanos, frames) in receiver.latencies(index)? {
                counts.latency.record_many(nanos, frames);
            }
        }
        part.arrived = Some(counts);
    }
    let caveats = receiver.generic().iter().map(|(link, why)| generic(plan, *link, why)).collect();
    Ok(Counts { engine: FrameEngine::Xdp, started_unix_ns, streams, caveats })
}

fn attach(plan: &Plan) -> Result<Receiver, FrameError> {
    // What is to arrive at another host arrives at no interface of this one; where it does, it flooded.
    let destinations: Vec<u32> =
        plan.streams.iter().map(|stream| stream.to.map_or(0, |to| plan.ports[to].link)).collect();
    let ports: Vec<u32> = plan.ports.iter().map(|port| port.link).collect();
    let sized = plan.streams.iter().any(|stream| stream.wish.form.mix.is_some());
    let polled = plan.ports.iter().all(|port| port.polled);
    let reception = Reception { tag: plan.tag, sized, polled, destinations: &destinations, ports: &ports };
    Receiver::attach(RECEIVE, reception).map_err(|source| {
        let taken = source.source.kind() == std::io::ErrorKind::ResourceBusy;
        match plan.ports.iter().find(|port| source.object == format!("interface {}", port.link)) {
            Some(port) if taken => FrameError::PortTaken { interface: port.interface.clone(), source },
            Some(_) => NoXdp(source),
            None => FrameError::System(source),
        }
    })
}

/// The order for a stream that this host sends.
fn wish(plan: &Plan, index: usize, start: u64) -> Option<TransmitStream> {
    let stream = &plan.streams[index];
    let transmit = |frame: &Vec<u8>| {
        let mut head = [0; HEAD];
        let known = frame.len().min(HEAD);
        head[..known].copy_from_slice(&frame[..known]);
        TransmitFrame { head, length: frame.len() as u32 }
    };
    Some(TransmitStream {
        frames: stream.frames.iter().map(transmit).collect(),
        round: stream.round.clone(),
        changes: stream.changes.iter().map(|change| change.for_xdp()).collect(),
        signature_at: stream.signature_at.map(|at| at as u32),
        link: plan.ports[stream.from?].link,
        start: stream.begin(start),
        end: plan.end(stream, start),
        gap: stream.gap,
        limit: stream.due.unwrap_or(0),
    })
}

/// Turns between two deliveries: many are fast, few are exact.
fn batch(plan: &Plan, streams: &[usize]) -> u32 {
    let rates = streams.iter().map(|&index| plan.streams[index].wish.rate.map(|rate| rate.get()));
    match rates.sum::<Option<u64>>() {
        Some(..=100_000) => 1,
        Some(..=1_000_000) => 16,
        _ => 64,
    }
}

fn generic(plan: &Plan, link: u32, why: &Error) -> Caveat {
    let port = plan.ports.iter().find(|port| port.link == link).map_or("?", |port| port.interface.as_str());
    let text = message!(
        "caveat-xdp-generic",
        "port {port}: its driver does not take XDP programs ({why}), so frames are counted later, in the kernel's \
         generic path: it is slower, and latencies hold more of this host",
        port,
        why = why.source.to_string()
    );
    Caveat::new(CaveatKind::Fallback, text)
}
