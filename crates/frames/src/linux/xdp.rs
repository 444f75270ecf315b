//! Frames by XDP: programs in the kernel send, count and time them; user space only starts, waits and reads.

use crate::FrameError;
use crate::FrameError::NoXdp;
use crate::linux::attempt::{Attempt, Counts, FCS, LEAD, LOOK};
use crate::linux::plan::{Plan, Stream, deal};
use crate::linux::progress::{KernelCounts, PortCounts};
use crate::linux::taken::VirtualLinks;
use linerate_engine::Stopped;
use linerate_model::{
    Caveat, CaveatKind, FrameEngine, FrameReceiver, FrameStream, FrameStreamPart, FramesArrived, FramesSent,
    PortArrivals, PortFlood, message,
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

static TRANSMIT: &[u8] = include_bytes_aligned!("../../bpf/transmit.bpf.o");
static RECEIVE: &[u8] = include_bytes_aligned!("../../bpf/receive.bpf.o");

/// Largest frame. The kernel refuses live frames that do not fit a page together with its own data.
const LARGEST: u32 = 3400;
/// Bytes that XDP may send in addition to the MTU: a VLAN tag, whether there is one or not.
const VLAN_TAG: u32 = 4;
/// Time for loading the sending programs, nanoseconds.
pub(crate) const LOADING: u64 = 200_000_000;
/// Time after the end for the last frames, which may be late.
pub(crate) const GRACE: u64 = 1_000_000_000;

/// Checks that the kernel lets this process load XDP programs.
pub fn xdp_possible() -> Result<(), FrameError> {
    bpf::try_loading().map_err(NoXdp)
}

/// Checks that XDP can run this trial.
pub(crate) fn possible_for(plan: &Plan) -> Result<(), FrameError> {
    if let Some(stream) = plan.streams.iter().find(|stream| stream.wish.size.without_fcs() > LARGEST) {
        return Err(FrameError::TooLargeForXdp(stream.wish.size.get()));
    }
    for stream in &plan.streams {
        if let Some(from) = stream.from {
            plan.ports[from].check_size(stream.wish.size, VLAN_TAG)?;
        }
    }
    if plan.streams.iter().any(|stream| stream.from.is_some() && stream.wish.form.bad_fcs) {
        return Err(FrameError::NoBadFcsByXdp);
    }
    let filling = filling(plan);
    for frame in plan.streams.iter().flat_map(|stream| &stream.frames) {
        if frame.get(HEAD..).is_some_and(|tail| !filling[HEAD..].starts_with(tail)) {
            return Err(FrameError::FillingsDiffer);
        }
    }
    xdp_possible()
}

/// Returns the longest frame. After their heads, all other frames are prefixes of it.
fn filling(plan: &Plan) -> &[u8] {
    let frames = plan.streams.iter().flat_map(|stream| &stream.frames);
    frames.max_by_key(|frame| frame.len()).map_or(&[], Vec::as_slice)
}

/// Running programs.
struct Programs {
    lanes: Vec<Lane>,
    /// Streams of each lane.
    lane_streams: Vec<Vec<usize>>,
    receiver: Receiver,
    /// Each stream, with its sending port on this host.
    streams: Vec<(FrameStream, Option<usize>)>,
    /// Slots of the receiver for each stream, with their ports.
    slots: Vec<Vec<(u32, usize)>>,
}

impl Programs {
    /// Iterates over the lanes with their streams: their indices in the lane and in the plan.
    fn sending(&self) -> impl Iterator<Item = (&Lane, u32, usize)> {
        let lanes = self.lanes.iter().zip(&self.lane_streams);
        lanes.flat_map(|(lane, streams)| (0..).zip(streams).map(move |(at, &index)| (lane, at, index)))
    }
}

impl KernelCounts for Programs {
    fn add_to(&self, ports: &mut [PortCounts]) {
        for (lane, at, index) in self.sending() {
            let (wish, from) = &self.streams[index];
            let (Some(from), Ok(counts)) = (from, lane.sent(at)) else { continue };
            ports[*from].sent += counts.sent;
            ports[*from].sent_bytes += wish.bytes(counts.sent);
        }
        for ((wish, _), slots) in self.streams.iter().zip(&self.slots) {
            for (slot, port) in slots {
                let Ok(counts) = self.receiver.arrived(*slot) else { continue };
                ports[*port].received += counts.received;
                ports[*port].received_bytes += wish.bytes(counts.received);
            }
        }
    }
}

/// Runs the trial.
pub(crate) fn run(attempt: &Attempt<'_>) -> Result<Counts, FrameError> {
    let plan = attempt.plan;
    let stop = attempt.stop();
    possible_for(plan)?;
    let slots = slots(plan);
    let receiver = attach(plan, &slots)?;
    // The last core is left for receiving.
    let mut cores = allowed_unless_cleared();
    // A control group may limit the CPU time to fewer cores.
    cores.truncate(thread::available_parallelism().map_or(1, usize::from));
    let lane_streams = deal(&plan.sent_here(), cores.len().saturating_sub(1).max(1));
    let start = attempt.begin(LOADING)?;
    let virtual_links = VirtualLinks::of(plan)?;
    let mut lanes = Vec::with_capacity(lane_streams.len());
    for streams in &lane_streams {
        let wishes: Vec<TransmitStream> = streams.iter().filter_map(|&index| wish(plan, index, start)).collect();
        lanes.push(Lane::load(TRANSMIT, &wishes, filling(plan), batch(plan, streams))?);
    }
    let started_unix_ns = clock::unix_at(start);
    let deadline = start + plan.time + plan.late_time() + GRACE;
    let streams = plan.streams.iter().map(|stream| (stream.wish.clone(), stream.from)).collect();
    let programs = Arc::new(Programs { lanes, lane_streams, receiver, streams, slots });
    let Programs { lanes, receiver, slots, .. } = &*programs;
    let _counting = attempt.progress.counted_by(Arc::clone(&programs) as _);
    // Observing threads of this process would delay a sender for milliseconds, whatever its priority.
    let _clear = ClearCores::of(cores.iter().copied().take(lanes.len()));
    thread::scope(|scope| {
        let mut threads = Vec::with_capacity(lanes.len());
        for (number, (lane, core)) in lanes.iter().zip(&cores).enumerate() {
            let thread = thread::Builder::new()
                .name(format!("frames {number}"))
                .spawn_scoped(scope, move || {
                    // Without core and priority it still sends, only less evenly.
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
    let mut sent_by_link = BTreeMap::<u32, u64>::new();
    for (lane, at, index) in programs.sending() {
        if let Some(port) = plan.streams[index].from {
            *sent_by_link.entry(plan.ports[port].link).or_default() += lane.sent(at)?.sent;
        }
    }
    if stop.load(Ordering::Relaxed) {
        return Err(Stopped.into());
    }
    virtual_links.check(|link| sent_by_link.get(&link).copied().unwrap_or_default())?;
    attempt.settle(start)?;

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
            // The programs do not read PAUSE frames. A NIC obeys them without their help.
            paused: Nanos::default(),
        });
    }
    for (((index, stream), part), slots) in (0..).zip(&plan.streams).zip(&mut streams).zip(slots) {
        part.flooded = receiver.arrived(index)?.flooded;
        for (slot, port) in slots {
            let arrived = arrivals(receiver, *slot, stream)?;
            if stream.to == Some(*port) {
                part.arrived = Some(arrived);
            } else {
                part.copies.push(PortArrivals { port: plan.ports[*port].number, arrived });
            }
        }
    }
    for (index, link, frames) in receiver.floods()? {
        let port = plan.ports.iter().find(|port| port.link == link);
        if let (Some(part), Some(port)) = (streams.get_mut(index as usize), port) {
            part.flooded_at.push(PortFlood { port: port.number, frames });
        }
    }
    let caveats = receiver.generic().iter().map(|(link, why)| generic(plan, *link, why)).collect();
    Ok(Counts { engine: FrameEngine::Xdp, started_unix_ns, streams, caveats })
}

/// Returns the slots of the receiver for each stream, with their ports. The first slot of a stream is its own, which
/// also counts what flooded; those for further receivers follow the slots of all streams.
fn slots(plan: &Plan) -> Vec<Vec<(u32, usize)>> {
    let mut next = plan.streams.len() as u32;
    let mut slots = Vec::with_capacity(plan.streams.len());
    for (index, stream) in (0..).zip(&plan.streams) {
        let copies = (next..).zip(stream.copies.iter().copied());
        slots.push(stream.to.map(|to| (index, to)).into_iter().chain(copies).collect());
        next += stream.copies.len() as u32;
    }
    slots
}

/// Returns whether the bytes of arrivals are counted: sizes mix, or a driver may fill the frames up.
fn is_sized(stream: &Stream) -> bool {
    stream.wish.form.mix.is_some() || stream.is_undersize()
}

/// Returns what arrived of `stream` at the port of `slot`.
fn arrivals(receiver: &Receiver, slot: u32, stream: &Stream) -> Result<FramesArrived, FrameError> {
    let arrived = receiver.arrived(slot)?;
    let mut counts = FramesArrived {
        received: arrived.received,
        bytes: if is_sized(stream) {
            arrived.bytes + FCS * arrived.received
        } else {
            stream.wish.bytes(arrived.received)
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
        for (nanos, frames) in receiver.latencies(slot)? {
            counts.latency.record_many(nanos, frames);
        }
    }
    Ok(counts)
}

fn attach(plan: &Plan, slots: &[Vec<(u32, usize)>]) -> Result<Receiver, FrameError> {
    let mut destinations = Vec::with_capacity(plan.streams.len());
    for (index, slots) in (0..).zip(slots) {
        // Frames for another host have no destination interface here. If they arrive, they flooded.
        let mut links = vec![0];
        for (slot, port) in slots {
            let link = plan.ports[*port].link;
            if *slot == index {
                links[0] = link;
            } else {
                links.push(link);
            }
        }
        destinations.push(links);
    }
    let ports: Vec<u32> = plan.ports.iter().map(|port| port.link).collect();
    let sized = plan.streams.iter().any(is_sized);
    let polled = plan.ports.iter().all(|port| port.polled);
    let delivers = plan.receiver == FrameReceiver::Socket;
    let reception = Reception { tag: plan.tag, sized, polled, delivers, destinations: &destinations, ports: &ports };
    Receiver::attach(RECEIVE, reception).map_err(|source| {
        let is_busy = source.source.kind() == std::io::ErrorKind::ResourceBusy;
        match plan.ports.iter().find(|port| source.object == format!("interface {}", port.link)) {
            Some(port) if is_busy => FrameError::PortTaken { interface: port.interface.clone(), source },
            Some(_) => NoXdp(source),
            None => FrameError::System(source),
        }
    })
}

/// Returns the stream for the sending program, if this host sends it.
fn wish(plan: &Plan, index: usize, start: u64) -> Option<TransmitStream> {
    let stream = &plan.streams[index];
    let mut frames = Vec::new();
    for frame in &stream.frames {
        let mut head = [0; HEAD];
        let length = frame.len().min(HEAD);
        head[..length].copy_from_slice(&frame[..length]);
        frames.push(TransmitFrame { head, length: frame.len() as u32 });
    }
    Some(TransmitStream {
        frames,
        round: stream.round.clone(),
        changes: stream.changes.iter().map(|change| change.for_xdp()).collect(),
        signature_at: stream.signature_at.map(|at| at as u32),
        link: plan.ports[stream.from?].link,
        start: stream.begin(start),
        end: plan.end(stream, start),
        gap: stream.pace.gap,
        burst: stream.pace.burst,
        rest: stream.pace.rest,
        limit: stream.due.unwrap_or(0),
    })
}

/// Returns the number of turns between two deliveries: many are fast, few are exact.
fn batch(plan: &Plan, streams: &[usize]) -> u32 {
    let rates = streams.iter().map(|&index| plan.streams[index].wish.rate.map(|rate| rate.get()));
    let bursts = streams.iter().any(|&index| plan.streams[index].pace.burst > 1);
    match rates.sum::<Option<u64>>() {
        Some(..=100_000) if !bursts => 1,
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
