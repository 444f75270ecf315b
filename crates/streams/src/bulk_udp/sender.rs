//! The sender of bulk datagrams, at full speed or at the rate asked for.

use super::backlog::Backlog;
use super::{COOL_DOWN_NS, MARKS, MARKS_NS, PLAIN_BATCH, PLAIN_BATCH_BYTES, phase_at, sockets};
use crate::budget::Budget;
use crate::bulk_tcp::is_timeout;
use crate::datagram::{Numbering, Phase};
use crate::error::StreamError;
use crate::flow::{Outcome, Shared, Wire, is_cut_off};
use crate::spread::{Next, Served, serve};
use crate::window::Timeline;
use linerate_engine::Pace;
use linerate_model::{FlowCounts, Sent, StreamTask, Transport, ip_packets};
use linerate_sys::epoll::Interest;
use linerate_sys::socket::{ECONNREFUSED, EIO, EMSGSIZE, ENOBUFS, ENOMEM};
use linerate_sys::udp::Outgoing;
use linerate_sys::{clock, socket, udp};
use linerate_units::Nanos;
use std::io;
use std::net::UdpSocket;
use std::os::fd::{AsFd as _, BorrowedFd};

/// The kernel's UDP_MAX_SEGMENTS before Linux 6.9 (128 since).
const SEGMENTS: usize = 64;
/// The most one segmented buffer holds: a UDP length of 16 bits, less room for the headers.
const SEGMENTED_BYTES: usize = 65_507;
/// RFC 768.
const UDP_HEADER: u64 = 8;
/// Buffers in one `sendmmsg`: enough that the call itself costs little, few enough to stay in the cache.
const SEGMENTED_BATCH: usize = 2;
/// At a set rate, datagrams due within this go in one batch.
const PACED_BURST_NS: u64 = 50_000;
/// A paced sender that is further behind gives up the difference and counts it as not sent: the load must not exceed what
/// was asked for for long.
const CATCH_UP_NS: u64 = 20_000_000;
/// After a volume the sender only marks its end, with datagrams that do not count: the receiver may lose some of them.
const MARK_NS: u64 = 10_000_000;
/// Other flows have the rest of the volume: it is looked this often whether they give some back.
const REST_NS: u64 = 1_000_000;
/// Phases change between calls only: one that took longer than this, on a slow link, is followed by one that should take half of it.
const LONG_CALL_NS: u64 = 5_000_000;
/// A sender at a low rate looks this often whether its phase is over.
const LOOK_NS: u64 = 100_000_000;
/// A host without a route or an address tries again after this.
const CUT_OFF_NS: u64 = 10_000_000;
/// Sleeps end this much before a datagram is due; the rest is spun.
const SPIN_NS: u64 = 30_000;

/// Sends until the cool-down is over, on a thread of its own.
pub(crate) fn send(
    shared: &Shared,
    index: usize,
    spec: &StreamTask,
    socket: &UdpSocket,
) -> Result<Outcome, StreamError> {
    let mut sender = Sender::new(shared, index, spec, socket)?;
    let mut batches = Batches::new(spec);
    let schedule = sender.schedule(&mut batches);
    shared.stop.sleep_until(shared.timeline.start());
    match schedule {
        None => sender.full_speed(&mut batches)?,
        Some(schedule) => sender.paced(schedule, &mut batches)?,
    }
    Ok(sender.finish())
}

/// Sends flows `indices` until the cool-down is over, on the calling thread.
pub(crate) fn send_all(shared: &Shared, indices: &[usize], spec: &StreamTask) -> Result<Vec<Outcome>, StreamError> {
    let mut batches = Batches::new(spec);
    let flows = sockets(shared, indices)
        .map(|(index, socket)| {
            socket.set_nonblocking(true).map_err(StreamError::socket("fcntl(O_NONBLOCK)"))?;
            let sender = Sender { waits: false, ..Sender::new(shared, index, spec, socket)? };
            let schedule = sender.schedule(&mut batches);
            Ok(ServedSender { sender, schedule })
        })
        .collect::<Result<_, StreamError>>()?;
    serve(shared, flows, &mut batches, shared.timeline.start())
}

#[derive(Debug, Default)]
struct Counts {
    sent: u64,
    not_sent: u64,
    refused: u64,
}

/// Datagrams on their way out. Each batch is numbered anew, so that the flows of a thread share them.
struct Batches {
    bytes: usize,
    segmented: Option<Outgoing>,
    plain: Option<Outgoing>,
}

impl Batches {
    fn new(spec: &StreamTask) -> Self {
        Self { bytes: spec.message_bytes.get() as usize, segmented: None, plain: None }
    }

    /// Those with `per_buffer` in each buffer.
    #[inline]
    fn of(&mut self, per_buffer: usize) -> &mut Outgoing {
        let (bytes, is_plain) = (self.bytes, per_buffer == 1);
        let batch = if is_plain { &mut self.plain } else { &mut self.segmented };
        batch.get_or_insert_with(|| {
            let plain = (PLAIN_BATCH_BYTES / bytes).clamp(1, PLAIN_BATCH);
            let buffers = if is_plain { plain } else { SEGMENTED_BATCH };
            Outgoing::new(buffers, per_buffer, bytes, |payload| rand::fill(payload))
        })
    }
}

struct Sender<'a> {
    shared: &'a Shared,
    index: usize,
    spec: &'a StreamTask,
    socket: &'a UdpSocket,
    /// Calls wait for room in the socket.
    waits: bool,
    /// The last call found no room, and did not wait.
    is_full: bool,
    /// IP packets that each datagram leaves in; zero where it fits into one.
    fragments: u64,
    /// Datagrams that share a buffer, and with it the kernel's verdict.
    per_buffer: usize,
    numbering: Numbering,
    io_method: &'static str,
    /// Datagrams in the next call at the most.
    most: usize,
    /// What may wait in this host.
    backlog: Backlog,
    /// The number of the next datagram: so many were sent, in all phases.
    next: u64,
    /// What became of the measured ones.
    measured: Counts,
    /// What is left of the volume; none where the window ends by time.
    budget: Option<&'a Budget>,
    /// Nothing is left of it for now.
    rests: bool,
    /// When its last datagram was sent, and when all of it was known to be.
    last: u64,
    ended: Option<u64>,
    /// When the first call with measured datagrams began, when the last one ended, and when the first one after them began.
    measured_from: Option<u64>,
    measured_until: u64,
    closed_at: Option<u64>,
    /// Datagrams of the cool-down.
    marks: u64,
    /// The receiver went away during the cool-down: it has what it needs.
    is_over: bool,
}

impl<'a> Sender<'a> {
    fn new(shared: &'a Shared, index: usize, spec: &'a StreamTask, socket: &'a UdpSocket) -> Result<Self, StreamError> {
        let bytes = spec.message_bytes.get() as usize;
        let v6 = shared.job.v6();
        let mtu = socket::path_mtu(socket.as_fd(), v6)?;
        let packets = ip_packets(Transport::Udp, spec.net.ip, bytes as u64, mtu).len() as u64;
        let fits = packets == 1;
        let fragments = if fits { 0 } else { packets };
        if !fits {
            socket::allow_fragments(socket.as_fd(), v6)?;
        }
        let per_buffer = if spec.offload && fits { (SEGMENTED_BYTES / bytes).clamp(1, SEGMENTS) } else { 1 };
        // Segmentation needs Linux 4.18 and a device that can do checksums.
        let segmented = per_buffer > 1 && udp::segment(socket, bytes as u16).is_ok();
        let (per_buffer, io_method) = if segmented { (per_buffer, "sendmmsg + UDP_SEGMENT") } else { (1, "sendmmsg") };
        let numbering = shared.numbering(index);
        let packet = u64::from(mtu).min(spec.message_bytes.get() + u64::from(spec.net.ip.header()) + UDP_HEADER);
        let backlog = Backlog::new(socket, packet, packets)?;
        Ok(Self {
            shared,
            index,
            spec,
            socket,
            waits: true,
            is_full: false,
            fragments,
            per_buffer,
            numbering,
            io_method,
            most: usize::MAX,
            backlog,
            next: 0,
            measured: Counts::default(),
            budget: shared.budget(index),
            rests: false,
            last: shared.timeline.start(),
            ended: None,
            measured_from: None,
            measured_until: 0,
            closed_at: None,
            marks: 0,
            is_over: false,
        })
    }

    /// When its datagrams, of which `batches` are made, are due; none at full speed.
    fn schedule(&self, batches: &mut Batches) -> Option<Schedule> {
        let capacity = batches.of(self.per_buffer).capacity();
        let (flow, timeline) = (self.shared.flows[self.index].hello.flow, &self.shared.timeline);
        let pace =
            Pace::new(self.spec.offered?, self.spec.message_bytes.get(), timeline.start(), flow, self.spec.net.flows);
        let pace = if self.shared.rate_limited { pace.earned() } else { pace };
        let burst = pace.within(PACED_BURST_NS).min(capacity as u64);
        Some(Schedule { pace, burst, most_behind: pace.within(CATCH_UP_NS).max(burst), plan: None, next: 0 })
    }

    fn full_speed(&mut self, batches: &mut Batches) -> Result<(), StreamError> {
        while !self.is_over {
            match self.burst(batches)? {
                Next::Ready => (),
                Next::At(at) if self.wait_until(at) => (),
                Next::At(_) => return Err(StreamError::Stopped),
                Next::Over => break,
            }
        }
        Ok(())
    }

    /// Sends a whole batch. Returns when the next one has its turn.
    #[inline]
    fn burst(&mut self, batches: &mut Batches) -> Result<Next, StreamError> {
        let now = clock::now();
        let Some(phase) = phase_at(&self.shared.timeline, now).or_else(|| self.marks_at(now)) else {
            return Ok(Next::Over);
        };
        if self.rests {
            return self.rest(now, batches);
        }
        let outgoing = batches.of(self.per_buffer);
        let capacity = outgoing.capacity();
        self.batch(outgoing, capacity, now, phase)?;
        Ok(Next::Ready)
    }

    /// Returns the phase after the cool-down's time: the same, for a sender that has not marked the end of its datagrams yet.
    fn marks_at(&self, now: u64) -> Option<Phase> {
        (self.marks < MARKS && now < self.shared.timeline.close() + MARKS_NS).then_some(Phase::CoolDown)
    }

    /// Nothing is left of the volume. Marks its end once all of it is sent, and returns when the next mark is due.
    fn rest(&mut self, now: u64, batches: &mut Batches) -> Result<Next, StreamError> {
        if !self.budget.is_some_and(Budget::is_spent) {
            self.rests = false;
            return Ok(Next::At(now + REST_NS));
        }
        let ended = *self.ended.get_or_insert_with(|| {
            self.shared.finished();
            now
        });
        // To iperf3 any datagram is data.
        if self.shared.wire != Wire::Own || now >= ended + COOL_DOWN_NS {
            return Ok(Next::Over);
        }
        self.batch(batches.of(self.per_buffer), 1, now, Phase::CoolDown)?;
        Ok(if self.is_over { Next::Over } else { Next::At(now + MARK_NS) })
    }

    /// Sends what is due by `schedule`, which goes on through all phases.
    fn paced(&mut self, mut schedule: Schedule, batches: &mut Batches) -> Result<(), StreamError> {
        while !self.is_over {
            if self.rests {
                match self.rest(clock::now(), batches)? {
                    Next::At(at) if !self.wait_until(at) => return Err(StreamError::Stopped),
                    Next::Over => break,
                    Next::At(_) | Next::Ready => continue,
                }
            }
            let Some(due) = schedule.due(&self.shared.timeline) else { break };
            let look = clock::now() + LOOK_NS;
            if !self.wait_until(due.at.min(look)) {
                return Err(StreamError::Stopped);
            }
            if due.at <= look {
                self.send_due(&mut schedule, due, clock::now(), batches)?;
            }
        }
        Ok(())
    }

    /// Sends what is `due` at `now`.
    fn send_due(
        &mut self,
        schedule: &mut Schedule,
        Due { at, phase, end }: Due,
        now: u64,
        batches: &mut Batches,
    ) -> Result<(), StreamError> {
        self.shared.meters[self.index].late(now.saturating_sub(at));
        let due = schedule.pace.due_by(now).saturating_sub(schedule.next);
        let forgone = due.saturating_sub(schedule.most_behind).min(end - schedule.next);
        // Of a volume all is sent, some of it later.
        if phase == Phase::Measured && self.budget.is_none() {
            self.measured.not_sent += forgone;
        }
        schedule.next += forgone;
        let outgoing = batches.of(self.per_buffer);
        let batch = (due - forgone).min(end - schedule.next).min(outgoing.capacity() as u64);
        schedule.next += self.batch(outgoing, batch as usize, now, phase)? as u64;
        Ok(())
    }

    /// Waits until `at`; false if stopped.
    fn wait_until(&self, at: u64) -> bool {
        if at > clock::now() + 2 * SPIN_NS && !self.shared.stop.sleep_until(at - SPIN_NS) {
            return false;
        }
        clock::spin_until(at);
        true
    }

    /// Sends up to `count` datagrams, of a volume what is left, all stamped `now`, fewer where that would take long; returns how many
    /// were sent or refused.
    #[inline]
    fn batch(&mut self, outgoing: &mut Outgoing, count: usize, now: u64, phase: Phase) -> Result<usize, StreamError> {
        let Some(budget) = self.budget.filter(|_| phase == Phase::Measured) else {
            return self.send_batch(outgoing, count, now, phase);
        };
        let taken = budget.take(count as u64);
        self.rests = taken == 0;
        if self.rests {
            return Ok(0);
        }
        let before = self.next;
        let done = self.send_batch(outgoing, taken as usize, now, phase)?;
        if self.next > before {
            self.last = clock::now();
        }
        budget.settle(taken, self.next - before);
        Ok(done)
    }

    /// Sends up to `count` datagrams.
    #[inline]
    fn send_batch(
        &mut self,
        outgoing: &mut Outgoing,
        count: usize,
        now: u64,
        phase: Phase,
    ) -> Result<usize, StreamError> {
        if self.shared.stop.is_set() {
            return Err(StreamError::Stopped);
        }
        match phase {
            Phase::WarmUp => (),
            Phase::Measured => self.measured_from = self.measured_from.or(Some(now)),
            Phase::CoolDown => self.closed_at = self.closed_at.or(Some(now)),
        }
        let count = count.min(self.most).min(self.backlog.holds(self.spec.message_bytes.get()));
        let before = self.next;
        let mut from = 0;
        // A refused datagram has used no number: the next one that is taken gets it, and so the receiver sees no gap.
        let mut number = true;
        self.is_full = false;
        while from < count {
            if number {
                for (datagram, sequence) in outgoing.datagrams(count).skip(from).zip(self.next..) {
                    self.numbering.write(datagram, now, phase, sequence);
                }
                number = false;
            }
            match outgoing.send(self.socket, from, count) {
                Ok(sent) => {
                    from += sent;
                    self.next += sent as u64;
                    if phase == Phase::Measured {
                        self.measured.sent += sent as u64;
                    }
                }
                Err(error) if is_timeout(&error) => {
                    if self.shared.stop.is_set() {
                        return Err(StreamError::Stopped);
                    }
                    if !self.waits {
                        self.is_full = true;
                        self.backlog.full(now);
                        break;
                    }
                    // A link that is down keeps no flow beyond its end.
                    if clock::now() >= self.shared.timeline.close() + MARKS_NS {
                        self.is_over = true;
                        break;
                    }
                }
                Err(error) if error.raw_os_error() == Some(EIO) && self.per_buffer > 1 => {
                    self.do_without_segmentation()?;
                    break;
                }
                // The receiver is done. A sender that was held up may have datagrams of the window left.
                Err(error)
                    if error.raw_os_error() == Some(ECONNREFUSED)
                        && (phase == Phase::CoolDown || clock::now() >= self.shared.timeline.close()) =>
                {
                    self.is_over = true;
                    break;
                }
                Err(error) => {
                    let refused = self.refused(count - from, error)?;
                    from += refused;
                    if phase == Phase::Measured {
                        self.measured.refused += refused as u64;
                    }
                    number = true;
                }
            }
        }
        let ended = clock::now();
        let took = ended - now;
        self.most = match took > LONG_CALL_NS {
            true => ((from as u64 * (LONG_CALL_NS / 2) / took) as usize).max(1),
            false => self.most.saturating_mul(2),
        };
        let sent = self.next - before;
        if sent > 0 {
            self.backlog.handed_over(self.socket, sent * self.spec.message_bytes.get(), now, ended)?;
        }
        match phase {
            Phase::WarmUp => (),
            Phase::Measured => self.measured_until = ended,
            Phase::CoolDown => self.marks += sent,
        }
        self.shared.meters[self.index].sent(self.next * self.spec.message_bytes.get(), self.next);
        Ok(from)
    }

    /// The device on the way cannot do the checksums that segmentation needs.
    fn do_without_segmentation(&mut self) -> Result<(), StreamError> {
        udp::segment(self.socket, 0)?;
        (self.per_buffer, self.io_method) = (1, "sendmmsg (UDP_SEGMENT refused by the device)");
        Ok(())
    }

    /// How many datagrams the kernel refused with `error`, unless it ends the trial.
    fn refused(&mut self, left: usize, error: io::Error) -> Result<usize, StreamError> {
        match error.raw_os_error() {
            // A queue was full, or memory was short: send(2).
            Some(ENOBUFS | ENOMEM) => Ok(left.min(self.per_buffer)),
            Some(ECONNREFUSED) => {
                Err(self.shared.gone(self.index, "it has closed the datagrams' port (ICMP port unreachable)"))
            }
            _ if is_cut_off(&error) => {
                // Datagrams that are due meanwhile are refused; those of a sender without a rate are not.
                self.shared.stop.sleep_until(clock::now() + CUT_OFF_NS);
                Ok(left.min(self.per_buffer))
            }
            Some(EMSGSIZE) => Err(StreamError::InvalidRequest(format!(
                "UDP messages of {} do not pass this path: its MTU has shrunk, or fragments are refused; choose a smaller size",
                self.spec.message_bytes
            ))),
            _ => Err(StreamError::socket(format!(
                "sendmmsg of {} datagrams to {}",
                self.spec.message_bytes, self.shared.flows[self.index].peer
            ))(error)),
        }
    }

    fn finish(self) -> Outcome {
        let Counts { sent, not_sent, refused } = self.measured;
        let payload_bytes = sent * self.spec.message_bytes.get();
        let timeline = &self.shared.timeline;
        let window = match (self.ended, self.measured_from) {
            (Some(_), _) => Nanos::new(self.last.saturating_sub(timeline.open())),
            // At full speed a call that begins within the window may end well after it.
            (None, Some(from)) if self.spec.offered.is_none() => {
                let until = self.closed_at.unwrap_or(timeline.close().max(self.measured_until));
                Nanos::new(until.saturating_sub(from))
            }
            _ => timeline.measure(),
        };
        Outcome {
            sent: Some(Sent {
                window,
                payload_bytes,
                messages: sent,
                not_sent,
                refused,
                fragments: self.fragments,
                io_method: self.io_method.to_owned(),
            }),
            flow: FlowCounts { sent_bytes: payload_bytes, ..FlowCounts::default() },
            ..Outcome::default()
        }
    }
}

/// A sender that shares a thread with others.
struct ServedSender<'a> {
    sender: Sender<'a>,
    schedule: Option<Schedule>,
}

impl Served for ServedSender<'_> {
    type Common = Batches;
    const WAITS_FOR: Interest = Interest::Write;

    fn socket(&self) -> BorrowedFd<'_> {
        self.sender.socket.as_fd()
    }

    fn turn(&mut self, batches: &mut Batches) -> Result<Next, StreamError> {
        let Self { sender, schedule } = self;
        let Some(schedule) = schedule else {
            let next = sender.burst(batches)?;
            return Ok(if sender.is_over { Next::Over } else { next });
        };
        if sender.rests {
            return sender.rest(clock::now(), batches);
        }
        let timeline = &sender.shared.timeline;
        let Some(due) = schedule.due(timeline) else { return Ok(Next::Over) };
        let now = clock::now();
        if due.at > now {
            return Ok(Next::At(due.at.min(now + LOOK_NS)));
        }
        sender.send_due(schedule, due, now, batches)?;
        Ok(match schedule.due(timeline) {
            Some(due) if !sender.is_over => {
                if sender.is_full {
                    Next::Ready
                } else {
                    Next::At(due.at.min(now + LOOK_NS))
                }
            }
            _ => Next::Over,
        })
    }

    /// A socket without room, as on a link that is down, keeps no flow beyond its end.
    fn look(&mut self, batches: &mut Batches) -> Result<bool, StreamError> {
        Ok(self.sender.is_full && self.turn(batches)? == Next::Over)
    }

    fn finish(self, _: &Batches) -> Result<Outcome, StreamError> {
        Ok(self.sender.finish())
    }
}

/// When the datagrams of a paced sender are due.
#[derive(Debug)]
struct Schedule {
    pace: Pace,
    burst: u64,
    most_behind: u64,
    /// None before it is known when the window opens.
    plan: Option<Plan>,
    /// Datagrams sent, refused and given up.
    next: u64,
}

/// The next burst: when it is due, its phase, and the first datagram that is not of that.
#[derive(Debug, Clone, Copy)]
struct Due {
    at: u64,
    phase: Phase,
    end: u64,
}

impl Schedule {
    /// What is due next; none behind the cool-down.
    fn due(&mut self, timeline: &Timeline) -> Option<Due> {
        if self.plan.is_none() && timeline.is_set() {
            self.plan = Some(Plan::new(timeline, &self.pace, self.next));
        }
        let (phase, end) = match &self.plan {
            Some(plan) => plan.phase(self.next)?,
            None => (Phase::WarmUp, u64::MAX),
        };
        Some(Due { at: self.pace.due((self.next + self.burst).min(end) - 1), phase, end })
    }
}

/// Which of a pace's datagrams belong to which phase, by when they are due.
#[derive(Debug, Clone, Copy)]
struct Plan {
    /// The first one of the measured phase, of the cool-down, and after that.
    measured: u64,
    cool_down: u64,
    end: u64,
}

impl Plan {
    /// The phases around a window that is known since datagram `next`.
    fn new(timeline: &Timeline, pace: &Pace, next: u64) -> Self {
        let due_before = |time: u64| pace.due_by(time - 1);
        let (open, close) = (timeline.open(), timeline.close());
        Self {
            measured: due_before(open).max(next),
            cool_down: due_before(close).max(next),
            end: due_before(close + COOL_DOWN_NS)
                .max(due_before(close + MARKS_NS).min(due_before(close).max(next) + MARKS))
                .max(next),
        }
    }

    /// The phase of datagram `next`, and the first datagram that is not of it; none behind the cool-down.
    fn phase(&self, next: u64) -> Option<(Phase, u64)> {
        let phases = [(Phase::WarmUp, self.measured), (Phase::Measured, self.cool_down), (Phase::CoolDown, self.end)];
        phases.into_iter().find(|(_, end)| next < *end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_model::Offered;
    use linerate_units::BitRate;

    #[test]
    fn a_plan_splits_what_is_due_by_the_window() {
        let window = linerate_model::Window { warmup: linerate_model::Warmup::STEADY, measure: Nanos::from_millis(20) };
        let timeline = Timeline::new(1_000, window);
        let pace = Pace::new(Offered::PayloadBps(BitRate::per_second(8_000_000)), 1_000, 1_000, 0, 1);
        timeline.set_open(10_001_000);
        let phases =
            |plan: Plan, numbers: [u64; 7]| numbers.map(|next| plan.phase(next).map(|(phase, end)| (phase as u8, end)));
        assert_eq!(
            phases(Plan::new(&timeline, &pace, 3), [3, 9, 10, 29, 30, 129, 130]),
            [Some((0, 10)), Some((0, 10)), Some((1, 30)), Some((1, 30)), Some((2, 130)), Some((2, 130)), None]
        );
        // Heard of when it was open already: what was sent until then was warm-up.
        let late = Plan::new(&timeline, &pace, 15);
        assert_eq!((late.measured, late.cool_down, late.end), (15, 30, 130));
    }
}
