//! Frames by packet sockets: slower than XDP, but permitted in every network namespace.

use crate::FrameError;
use crate::linux::account::Account;
use crate::linux::attempt::{Attempt, Counts, FCS, LEAD, LOOK};
use crate::linux::headers::find_signature;
use crate::linux::pause::Pauses;
use crate::linux::plan::{Plan, Stream, deal};
use crate::linux::progress::Progress;
use crate::linux::signature::{BYTES, Signature};
use linerate_model::{
    Caveat, CaveatKind, FrameEngine, FrameStreamPart, FramesArrived, FramesSent, Histogram, PortArrivals, PortFlood,
    message,
};
use linerate_sys::packet::{ALL_PROTOCOLS, Incoming, PacketSocket};
use linerate_sys::{Error, affinity, clock};
use linerate_units::Nanos;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// Frames of one call.
const BATCH: usize = 64;
/// Largest delay that is caught up. Beyond it the schedule moves.
const CATCH_UP: u64 = 10_000_000;
/// Shortest pause that is slept.
const SHORT: u64 = 200_000;
/// Requested receive buffer, bytes. The system may grant less.
const BUFFER: i32 = 64 << 20;
/// Time after the end for a port whose driver accepts no more frames.
const GRACE: u64 = 1_000_000_000;
/// Longest sleep of a sender that is paused, nanoseconds. Another PAUSE frame may end its pause.
const PAUSE_LOOK: u64 = 500_000;
/// FCS that is wrong for almost any frame.
const WRONG_FCS: [u8; 4] = [0xde, 0xad, 0xbe, 0xef];
/// Errors of the kernel (asm-generic/errno.h): a frame that exceeds the MTU, a driver without room.
const EMSGSIZE: i32 = 90;
const ENOBUFS: i32 = 105;

/// Runs the trial.
pub(crate) fn run(attempt: &Attempt<'_>) -> Result<Counts, FrameError> {
    let plan = attempt.plan;
    let stop = attempt.stop();
    let progress = &*attempt.progress;
    check_bad_fcs(plan)?;
    let pauses = &Pauses::of(plan);
    let mut sockets = Vec::with_capacity(plan.ports.len());
    for port in &plan.ports {
        let socket = PacketSocket::open(port.link, Some(ALL_PROTOCOLS))?;
        socket.stamp_and_hold(BUFFER)?;
        sockets.push(socket);
    }
    let mut cores = affinity::allowed();
    // A control group may limit the CPU time to fewer cores.
    cores.truncate(thread::available_parallelism().map_or(1, usize::from));
    let lanes = deal(&plan.sent_here(), cores.len());
    let over = AtomicBool::new(false);
    let start = attempt.begin(LEAD)?;
    let started_unix_ns = clock::unix_at(start);
    let (sent, accounts) = thread::scope(|scope| -> Result<_, FrameError> {
        let mut receivers = Vec::with_capacity(sockets.len());
        for (port, socket) in sockets.iter().enumerate() {
            let over = &over;
            let work = move || receive(plan, port, socket, over, progress, pauses);
            let thread = thread::Builder::new().name(format!("port {port}")).spawn_scoped(scope, work);
            receivers.push(thread.map_err(spawn_error)?);
        }
        let mut senders = Vec::with_capacity(lanes.len());
        for (number, (streams, core)) in lanes.iter().zip(&cores).enumerate() {
            let work = move || send(plan, stop, *core, streams, start, progress, pauses);
            let thread = thread::Builder::new().name(format!("frames {number}")).spawn_scoped(scope, work);
            senders.push(thread.map_err(spawn_error)?);
        }
        while senders.iter().any(|thread| !thread.is_finished()) {
            thread::sleep(LOOK);
            attempt.look();
        }
        let sent: Result<Vec<_>, FrameError> =
            senders.into_iter().map(|thread| thread.join().unwrap_or_else(|p| std::panic::resume_unwind(p))).collect();
        let settled = if sent.is_ok() { attempt.settle(start) } else { Ok(()) };
        over.store(true, Ordering::Relaxed);
        let accounts: Result<Vec<_>, Error> = receivers
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|p| std::panic::resume_unwind(p)))
            .collect();
        settled?;
        Ok((sent?, accounts?))
    })?;

    let mut streams = vec![FrameStreamPart::default(); plan.streams.len()];
    for sent in sent.into_iter().flatten() {
        streams[sent.stream].sent = Some(FramesSent {
            intended: attempt.intended(sent.stream, sent.sent),
            sent: sent.sent,
            bytes: plan.streams[sent.stream].wish.bytes(sent.sent),
            first: sent.first,
            time: Nanos::new(sent.last.saturating_sub(sent.first)),
            held_up: Nanos::new(sent.held_up),
            paused: Nanos::new(sent.paused),
        });
    }
    for (port, accounts) in accounts.into_iter().enumerate() {
        for ((stream, part), account) in plan.streams.iter().zip(&mut streams).zip(accounts) {
            let copied = stream.copies.contains(&port);
            if stream.to != Some(port) && !copied {
                let frames = account.received + account.duplicates;
                part.flooded += frames;
                if frames > 0 {
                    part.flooded_at.push(PortFlood { port: plan.ports[port].number, frames });
                }
                continue;
            }
            let arrived = FramesArrived {
                received: account.received,
                to_socket: None,
                bytes: account.bytes + FCS * account.received,
                duplicates: account.duplicates,
                reordered: account.reordered,
                expected: account.expected,
                last_gap: account.last_gap,
                time: Nanos::new(account.last.saturating_sub(account.first)),
                by_port_counters: false,
                // Two hosts have two clocks.
                latency: if stream.from.is_some() { account.latency } else { Histogram::default() },
            };
            if copied {
                part.copies.push(PortArrivals { port: plan.ports[port].number, arrived });
            } else {
                part.arrived = Some(arrived);
            }
        }
    }
    let mut caveats = Vec::new();
    for (socket, port) in sockets.iter().zip(&plan.ports) {
        let missed = socket.overflowed()?;
        if missed > 0 {
            let text = message!(
                "caveat-no-room-in-socket",
                "port {port}: {missed} frames found no room in the receiving socket and are not counted: this \
                 host is the limit, not the device; use XDP or a lower rate",
                port = &port.interface,
                missed = missed
            );
            caveats.push(Caveat::new(CaveatKind::TesterLimit, text));
        }
    }
    Ok(Counts { engine: FrameEngine::PacketSocket, started_unix_ns, streams, caveats })
}

fn spawn_error(error: std::io::Error) -> Error {
    Error::new("pthread_create", "a thread of the trial", error)
}

/// Stream that is being sent.
struct Outgoing {
    stream: usize,
    /// Frames of one call, and the index of each in the stream's forms.
    frames: Vec<(usize, Vec<u8>)>,
    /// Due time of the next frame, in 2^-32 ns.
    next: u128,
    sent: u64,
    first: u64,
    last: u64,
    /// Nanoseconds by which the schedule moved because the sender was delayed.
    held_up: u64,
    /// Nanoseconds by which the schedule moved because PAUSE frames stopped the sender.
    paused: u64,
}

/// Checks that the ports can send the frames with a wrong FCS.
fn check_bad_fcs(plan: &Plan) -> Result<(), FrameError> {
    for stream in plan.streams.iter().filter(|stream| stream.wish.form.bad_fcs) {
        let Some(from) = stream.from else { continue };
        let port = &plan.ports[from];
        if !PacketSocket::open(port.link, None)?.carry_own_fcs()? {
            return Err(FrameError::NoBadFcs(port.interface.clone()));
        }
    }
    Ok(())
}

/// Makes `frame` what a packet socket sends for a form of the stream's frames.
fn take_form(frame: &mut Vec<u8>, stream: &Stream, form: usize) {
    frame.clone_from(&stream.frames[form]);
    if stream.wish.form.bad_fcs {
        frame.extend(WRONG_FCS);
    }
}

/// Sends `streams` in turn.
fn send(
    plan: &Plan,
    stop: &AtomicBool,
    core: u32,
    streams: &[usize],
    start: u64,
    progress: &Progress,
    pauses: &Pauses,
) -> Result<Vec<Outgoing>, FrameError> {
    // A thread that cannot choose its core still sends, only less evenly.
    let _ = affinity::pin(core);
    linerate_sys::thread::sharpen_timers();
    let mut lane = Vec::with_capacity(streams.len());
    for &stream in streams {
        let Some(from) = plan.streams[stream].from else { continue };
        let socket = PacketSocket::open(plan.ports[from].link, None)?;
        // Without the bypass, frames only take longer.
        let _ = socket.bypass_queue();
        if plan.streams[stream].wish.form.bad_fcs {
            socket.carry_own_fcs()?;
        }
        let mut frame = Vec::new();
        take_form(&mut frame, &plan.streams[stream], 0);
        let frames = vec![(0, frame); BATCH];
        let next = u128::from(plan.streams[stream].begin(start)) << 32;
        lane.push((socket, from, Outgoing { stream, frames, next, sent: 0, first: 0, last: 0, held_up: 0, paused: 0 }));
    }
    loop {
        let mut soonest = None::<u64>;
        for (socket, from, outgoing) in &mut lane {
            let stream = &plan.streams[outgoing.stream];
            let now = clock::now();
            let paused_until = pauses.until(*from);
            outgoing.stand_still(now.min(paused_until));
            // Frames that a pause delayed beyond the trial are not sent at all: the device did not accept them in time.
            let end = if outgoing.paused > 0 { plan.planned_end(stream, start) } else { plan.end(stream, start) };
            // Also computed for a late thread, to count its delay.
            let mut due = outgoing.due(plan, now, end);
            if now < paused_until {
                due = 0;
            }
            if stop.load(Ordering::Relaxed) || now > start + plan.time + plan.late_time() + GRACE {
                break;
            }
            if due > 0 {
                outgoing.send(plan, socket, due as usize, progress)?;
            }
            let resumption = if now < paused_until { paused_until.min(now + PAUSE_LOOK) } else { 0 };
            let next = resumption.max((outgoing.next >> 32) as u64);
            let exhausted = stream.due.is_some_and(|limit| outgoing.sent >= limit);
            if !exhausted && now < end {
                soonest = Some(soonest.map_or(next, |soonest| soonest.min(next)));
            }
        }
        match soonest {
            None => break,
            Some(next) if next > clock::now() + SHORT => {
                clock::sleep_until((next - SHORT / 2).min(clock::now() + 50_000_000))
            }
            Some(_) => {}
        }
    }
    Ok(lane.into_iter().map(|(_, _, outgoing)| outgoing).collect())
}

impl Outgoing {
    /// Moves the schedule to `resumption`, until which a PAUSE frame stopped the sender.
    fn stand_still(&mut self, resumption: u64) {
        let next = (self.next >> 32) as u64;
        if next < resumption {
            self.paused += resumption - next;
            self.next = u128::from(resumption) << 32;
        }
    }

    /// Returns the number of frames that are due now, at most a batch.
    fn due(&mut self, plan: &Plan, now: u64, end: u64) -> u64 {
        let stream = &plan.streams[self.stream];
        let now = u128::from(now) << 32;
        if self.next > now {
            return 0;
        }
        if stream.pace.is_unlimited() {
            self.next = now;
        }
        let earliest = now.saturating_sub(u128::from(CATCH_UP) << 32);
        if self.next < earliest {
            // A sender that is late while frames leave continuously cannot keep the rate. Otherwise something delayed
            // it.
            if u128::from(self.last) << 32 < earliest {
                self.held_up += ((earliest - self.next) >> 32) as u64;
            }
            self.next = earliest;
        }
        if now >= u128::from(end) << 32 {
            return 0;
        }
        let due = stream.pace.due(self.sent, now - self.next, BATCH as u64);
        stream.due.map_or(due, |limit| due.min(limit - self.sent))
    }

    /// Numbers, stamps and sends `count` frames. Frames that the port refuses keep their numbers for the next call.
    fn send(
        &mut self,
        plan: &Plan,
        socket: &PacketSocket,
        count: usize,
        progress: &Progress,
    ) -> Result<(), FrameError> {
        let stream = &plan.streams[self.stream];
        let time = clock::now();
        for (number, (kind, frame)) in (self.sent as u32..=u32::MAX).chain(0..).zip(self.frames.iter_mut().take(count))
        {
            let frame_kind = stream.frame_of(number);
            if *kind != frame_kind {
                *kind = frame_kind;
                take_form(frame, stream, frame_kind);
            }
            stream.changes.iter().for_each(|change| change.apply(frame, number));
            if let Some(at) = stream.signature_at {
                let signature = Signature { tag: plan.tag, stream: self.stream as u16, number, time };
                frame[at..at + BYTES].copy_from_slice(&signature.to_bytes());
            }
        }
        let frames: Vec<&[u8]> = self.frames[..count].iter().map(|(_, frame)| frame.as_slice()).collect();
        let sent = match socket.send_many(&frames) {
            Ok(sent) => sent as u64,
            Err(error) if error.raw_os_error() == Some(ENOBUFS) => 0,
            Err(error) => {
                let port = stream.from.map(|from| &plan.ports[from]);
                if let Some(port) = port.filter(|_| error.raw_os_error() == Some(EMSGSIZE)) {
                    port.check_size(stream.wish.size, 0)?;
                }
                let port = port.map_or("?", |port| &port.interface);
                return Err(Error::new("sendmmsg", format!("port {port}"), error).into());
            }
        };
        if sent > 0 {
            if self.sent == 0 {
                self.first = time;
            }
            self.last = time;
            self.next += stream.pace.time(self.sent, sent);
            self.sent += sent;
            let forms = self.frames[..sent as usize].iter();
            let bytes = forms.map(|(form, _)| stream.frames[*form].len() as u64 + FCS).sum();
            if let Some(from) = stream.from {
                progress.add_sent(from, sent, bytes);
            }
        }
        Ok(())
    }
}

/// Counts the arrivals at `port`, stream by stream.
fn receive(
    plan: &Plan,
    port: usize,
    socket: &PacketSocket,
    over: &AtomicBool,
    progress: &Progress,
    pauses: &Pauses,
) -> Result<Vec<Account>, Error> {
    let mut accounts = vec![Account::new(); plan.streams.len()];
    let mut incoming = Incoming::new(BATCH);
    let mut end = None;
    loop {
        let ended = over.load(Ordering::Relaxed);
        if !ended && !socket.wait(10) {
            continue;
        }
        if ended {
            end.get_or_insert_with(clock::unix_now);
        }
        let count = incoming
            .take(socket)
            .map_err(|error| Error::new("recvmmsg", format!("port {}", plan.ports[port].interface), error))?;
        // Frames may circulate forever, so frames after the end are not waited for.
        if ended && (count == 0 || incoming.frames().any(|(_, stamp)| end.is_some_and(|end| stamp > end))) {
            return Ok(accounts);
        }
        // The kernel's timestamps count from 1970.
        let offset = clock::unix_now().saturating_sub(clock::now());
        let mut received = 0;
        let mut received_bytes = 0;
        for (frame, stamp) in incoming.frames() {
            let at = if stamp == 0 { clock::now() } else { stamp.saturating_sub(offset) };
            let Some(signature) = find_signature(frame).filter(|signature| signature.tag == plan.tag) else {
                pauses.obey(port, frame, at);
                continue;
            };
            let Some(account) = accounts.get_mut(usize::from(signature.stream)) else { continue };
            let stream = &plan.streams[usize::from(signature.stream)];
            let planned = stream.frames[stream.frame_of(signature.number)].len();
            // A driver may fill undersize frames up. The kernel takes VLAN tags out of frames.
            let bytes = if stream.is_undersize() { frame.len().max(planned) } else { planned };
            account.arrived(signature.number, signature.time, at, bytes as u64);
            if stream.receivers().any(|receiver| receiver == port) {
                received += 1;
                received_bytes += bytes as u64 + FCS;
            }
        }
        progress.add_received(port, received, received_bytes);
    }
}
