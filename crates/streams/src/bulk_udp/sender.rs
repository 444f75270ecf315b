//! The sender of bulk datagrams, at full speed or at an offered rate.

use super::backlog::Backlog;
use super::{COOL_DOWN_NS, MARKS, MARKS_NS, PLAIN_BATCH, PLAIN_BATCH_BYTES, Sockets, phase_at};
use crate::budget::Budget;
use crate::datagram::{Numbering, Phase};
use crate::error::StreamError;
use crate::flow::{Outcome, Shared, is_cut_off};
use crate::spread::{Next, Served, serve};
use crate::window::Timeline;
use linerate_engine::{Pace, SocketError, Stopped, failed};
use linerate_model::{FlowCounts, Sent, StreamTask, Transport, ip_packets};
use linerate_sys::epoll::Interest;
use linerate_sys::handle::{AsSocket as _, BorrowedSocket};
use linerate_sys::socket::is_timeout;
use linerate_sys::socket::{ECONNREFUSED, EIO, EMSGSIZE, ENOBUFS, ENOMEM};
use linerate_sys::udp::Outgoing;
use linerate_sys::{clock, socket, udp};
use linerate_units::Nanos;
use std::io;
use std::net::UdpSocket;

/// Value of the kernel's UDP_MAX_SEGMENTS before Linux 6.9 (128 since).
const SEGMENTS: usize = 64;
/// Most bytes of one segmented buffer: a UDP length of 16 bits, less room for the headers.
const SEGMENTED_BYTES: usize = 65_507;
/// RFC 768.
const UDP_HEADER: u64 = 8;
/// Buffers of one `sendmmsg`: enough to make the call itself cheap, few enough to stay in the cache.
const SEGMENTED_BATCH: usize = 2;
/// Time whose datagrams go in one batch at an offered rate.
const PACED_BURST_NS: u64 = 50_000;
/// Largest lateness that a paced sender catches up. It skips the rest and counts it as not sent, because the load must
/// not exceed the offered rate for long.
const CATCH_UP_NS: u64 = 20_000_000;
/// Interval of the datagrams that mark the end of a volume and do not count. The receiver may lose some of them.
const MARK_NS: u64 = 10_000_000;
/// Interval of looking whether other flows have given back a part of the volume.
const PAUSE_NS: u64 = 1_000_000;
/// Longest call. Phases change only between calls, so a call that took longer is followed by one that should take half
/// of this.
const LONG_CALL_NS: u64 = 5_000_000;
/// Interval in which a sender at a low rate looks whether its phase is over.
const LOOK_NS: u64 = 100_000_000;
/// Time after which a host without a route or an address tries again.
const CUT_OFF_NS: u64 = 10_000_000;
/// Time before a datagram is due that is spun, not slept.
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

/// Sends to all `sockets` until the cool-down is over, on the calling thread.
pub(crate) fn send_all(shared: &Shared, sockets: &Sockets<'_>, spec: &StreamTask) -> Result<Vec<Outcome>, StreamError> {
    let mut batches = Batches::new(spec);
    let mut flows = Vec::new();
    for (index, socket) in sockets {
        socket.set_nonblocking(true).map_err(failed("fcntl(O_NONBLOCK)"))?;
        let sender = Sender { waits: false, ..Sender::new(shared, *index, spec, socket)? };
        let schedule = sender.schedule(&mut batches);
        flows.push(ServedSender { sender, schedule });
    }
    serve(shared, flows, &mut batches, shared.timeline.start())
}

#[derive(Debug, Default)]
struct Counts {
    sent: u64,
    not_sent: u64,
    refused: u64,
}

/// Batches of outgoing datagrams. Each batch is numbered anew, so the flows of a thread share them.
struct Batches {
    bytes: usize,
    segmented: Option<Outgoing>,
    plain: Option<Outgoing>,
}

impl Batches {
    fn new(spec: &StreamTask) -> Self {
        Self { bytes: spec.message_bytes.get() as usize, segmented: None, plain: None }
    }

    /// Returns the batch with `per_buffer` datagrams in each buffer.
    #[inline]
    fn batch(&mut self, per_buffer: usize) -> &mut Outgoing {
        let bytes = self.bytes;
        if per_buffer == 1 {
            let buffers = (PLAIN_BATCH_BYTES / bytes).clamp(1, PLAIN_BATCH);
            self.plain.get_or_insert_with(|| batch(buffers, 1, bytes))
        } else {
            self.segmented.get_or_insert_with(|| batch(SEGMENTED_BATCH, per_buffer, bytes))
        }
    }
}

/// Creates a batch of datagrams with random payloads.
fn batch(buffers: usize, per_buffer: usize, bytes: usize) -> Outgoing {
    Outgoing::new(buffers, per_buffer, bytes, |payload| rand::fill(payload))
}

struct Sender<'a> {
    shared: &'a Shared,
    index: usize,
    spec: &'a StreamTask,
    socket: &'a UdpSocket,
    /// Whether calls wait for room in the socket.
    waits: bool,
    /// Whether the last call found no room, and did not wait.
    is_full: bool,
    /// IP fragments of each datagram; zero if it fits into one packet.
    fragments: u64,
    /// Datagrams that share a buffer, which the kernel accepts or refuses together.
    per_buffer: usize,
    numbering: Numbering,
    io_method: &'static str,
    /// Most datagrams of the next call.
    max_batch: usize,
    backlog: Backlog,
    /// Number of the next datagram, which is the number of datagrams sent in all phases.
    next_sequence: u64,
    /// Counts of the measured phase.
    counts: Counts,
    /// Remaining volume, or `None` if the window ends by time.
    budget: Option<&'a Budget>,
    /// Whether nothing is left of the volume for now.
    paused: bool,
    /// Time of the last datagram of the volume.
    last_sent: u64,
    /// Time when the whole volume was known to be sent.
    finished_at: Option<u64>,
    /// Begin of the first call with measured datagrams.
    measured_from: Option<u64>,
    /// End of the last call with measured datagrams.
    measured_until: u64,
    /// Begin of the first call of the cool-down.
    closed_at: Option<u64>,
    /// Datagrams of the cool-down.
    marks: u64,
    /// Whether nothing more is to be sent: the receiver closed its port during the cool-down, or the link stayed down.
    is_over: bool,
}

impl<'a> Sender<'a> {
    fn new(shared: &'a Shared, index: usize, spec: &'a StreamTask, socket: &'a UdpSocket) -> Result<Self, StreamError> {
        let bytes = spec.message_bytes.get() as usize;
        let v6 = shared.job.v6();
        let mtu = socket::path_mtu(socket.as_socket(), v6)?;
        let packets = ip_packets(Transport::Udp, spec.net.ip, bytes as u64, mtu).len() as u64;
        let fits = packets == 1;
        let fragments = if fits { 0 } else { packets };
        if !fits {
            socket::allow_fragments(socket.as_socket(), v6)?;
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
            max_batch: usize::MAX,
            backlog,
            next_sequence: 0,
            counts: Counts::default(),
            budget: shared.budget(index),
            paused: false,
            last_sent: shared.timeline.start(),
            finished_at: None,
            measured_from: None,
            measured_until: 0,
            closed_at: None,
            marks: 0,
            is_over: false,
        })
    }

    /// Returns the schedule of datagrams that are sent in `batches`, or `None` at full speed.
    fn schedule(&self, batches: &mut Batches) -> Option<Schedule> {
        let capacity = batches.batch(self.per_buffer).capacity();
        let flow = self.shared.flows[self.index].hello.flow;
        let start = self.shared.timeline.start();
        let pace = Pace::new(self.spec.offered?, self.spec.message_bytes.get(), start, flow, self.spec.net.flows);
        let pace = if self.shared.rate_limited { pace.earned() } else { pace };
        let burst = pace.within(PACED_BURST_NS).min(capacity as u64);
        let max_behind = pace.within(CATCH_UP_NS).max(burst);
        Some(Schedule { pace, burst, max_behind, plan: None, next: 0 })
    }

    fn full_speed(&mut self, batches: &mut Batches) -> Result<(), StreamError> {
        while !self.is_over {
            match self.burst(batches)? {
                Next::Ready => (),
                Next::At(at) if self.wait_until(at) => (),
                Next::At(_) => return Err(Stopped.into()),
                Next::Over => break,
            }
        }
        Ok(())
    }

    /// Sends a whole batch. Returns when the next turn is.
    #[inline]
    fn burst(&mut self, batches: &mut Batches) -> Result<Next, StreamError> {
        let now = clock::now();
        let Some(phase) = phase_at(&self.shared.timeline, now).or_else(|| self.marks_at(now)) else {
            return Ok(Next::Over);
        };
        if self.paused {
            return self.mark_end(now, batches);
        }
        let outgoing = batches.batch(self.per_buffer);
        let capacity = outgoing.capacity();
        self.batch(outgoing, capacity, now, phase)?;
        Ok(Next::Ready)
    }

    /// Returns the cool-down after its time for a sender that has not marked the end of its datagrams yet.
    fn marks_at(&self, now: u64) -> Option<Phase> {
        (self.marks < MARKS && now < self.shared.timeline.close() + MARKS_NS).then_some(Phase::CoolDown)
    }

    /// Marks the end of the volume once all of it is sent. Returns when the next mark is due.
    fn mark_end(&mut self, now: u64, batches: &mut Batches) -> Result<Next, StreamError> {
        if !self.budget.is_some_and(Budget::is_spent) {
            self.paused = false;
            return Ok(Next::At(now + PAUSE_NS));
        }
        let finished_at = *self.finished_at.get_or_insert_with(|| {
            self.shared.finished();
            now
        });
        // Without phases any datagram is data.
        if !self.shared.wire.marks_end() || now >= finished_at + COOL_DOWN_NS {
            return Ok(Next::Over);
        }
        self.batch(batches.batch(self.per_buffer), 1, now, Phase::CoolDown)?;
        Ok(if self.is_over { Next::Over } else { Next::At(now + MARK_NS) })
    }

    /// Sends the datagrams of `schedule`, which covers all phases.
    fn paced(&mut self, mut schedule: Schedule, batches: &mut Batches) -> Result<(), StreamError> {
        while !self.is_over {
            if self.paused {
                match self.mark_end(clock::now(), batches)? {
                    Next::At(at) if !self.wait_until(at) => return Err(Stopped.into()),
                    Next::Over => break,
                    Next::At(_) | Next::Ready => continue,
                }
            }
            let Some(due) = schedule.due(&self.shared.timeline) else { break };
            let look = clock::now() + LOOK_NS;
            if !self.wait_until(due.at.min(look)) {
                return Err(Stopped.into());
            }
            if due.at <= look {
                self.send_due(&mut schedule, due, clock::now(), batches)?;
            }
        }
        Ok(())
    }

    /// Sends the datagrams that are `due` at `now`.
    fn send_due(
        &mut self,
        schedule: &mut Schedule,
        Due { at, phase, end }: Due,
        now: u64,
        batches: &mut Batches,
    ) -> Result<(), StreamError> {
        self.shared.meters[self.index].late(now.saturating_sub(at));
        let due = schedule.pace.due_by(now).saturating_sub(schedule.next);
        let skipped = due.saturating_sub(schedule.max_behind).min(end - schedule.next);
        // A volume is sent completely, some of it later.
        if phase == Phase::Measured && self.budget.is_none() {
            self.counts.not_sent += skipped;
        }
        schedule.next += skipped;
        let outgoing = batches.batch(self.per_buffer);
        let batch = (due - skipped).min(end - schedule.next).min(outgoing.capacity() as u64);
        schedule.next += self.batch(outgoing, batch as usize, now, phase)? as u64;
        Ok(())
    }

    /// Waits until `at`. Returns false if stopped.
    fn wait_until(&self, at: u64) -> bool {
        if at > clock::now() + 2 * SPIN_NS && !self.shared.stop.sleep_until(at - SPIN_NS) {
            return false;
        }
        clock::spin_until(at);
        true
    }

    /// Sends up to `count` datagrams within the volume, all stamped `now`, fewer if that would take long.
    ///
    /// Returns the number of datagrams that were sent or refused.
    #[inline]
    fn batch(&mut self, outgoing: &mut Outgoing, count: usize, now: u64, phase: Phase) -> Result<usize, StreamError> {
        let Some(budget) = self.budget.filter(|_| phase == Phase::Measured) else {
            return self.send_batch(outgoing, count, now, phase);
        };
        let taken = budget.take(count as u64);
        self.paused = taken == 0;
        if self.paused {
            return Ok(0);
        }
        let before = self.next_sequence;
        let handled = self.send_batch(outgoing, taken as usize, now, phase)?;
        if self.next_sequence > before {
            self.last_sent = clock::now();
        }
        budget.settle(taken, self.next_sequence - before);
        Ok(handled)
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
            return Err(Stopped.into());
        }
        match phase {
            Phase::WarmUp => (),
            Phase::Measured => self.measured_from = self.measured_from.or(Some(now)),
            Phase::CoolDown => self.closed_at = self.closed_at.or(Some(now)),
        }
        let count = count.min(self.max_batch).min(self.backlog.holds(self.spec.message_bytes.get()));
        let before = self.next_sequence;
        let mut from = 0;
        // A refused datagram leaves its number to the next one, so that the receiver sees no gap.
        let mut renumber = true;
        self.is_full = false;
        while from < count {
            if renumber {
                for (datagram, sequence) in outgoing.datagrams(count).skip(from).zip(self.next_sequence..) {
                    self.numbering.write(datagram, now, phase, sequence);
                }
                renumber = false;
            }
            match outgoing.send(self.socket, from, count) {
                Ok(sent) => {
                    from += sent;
                    self.next_sequence += sent as u64;
                    if phase == Phase::Measured {
                        self.counts.sent += sent as u64;
                    }
                }
                Err(error) if is_timeout(&error) => {
                    if self.shared.stop.is_set() {
                        return Err(Stopped.into());
                    }
                    if !self.waits {
                        self.is_full = true;
                        self.backlog.full(now);
                        break;
                    }
                    // A flow ends in time even if its link is down.
                    if clock::now() >= self.shared.timeline.close() + MARKS_NS {
                        self.is_over = true;
                        break;
                    }
                }
                Err(error) if error.raw_os_error() == Some(EIO) && self.per_buffer > 1 => {
                    self.do_without_segmentation()?;
                    break;
                }
                // The receiver has finished. A stalled sender may have datagrams of the window left.
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
                        self.counts.refused += refused as u64;
                    }
                    renumber = true;
                }
            }
        }
        let end = clock::now();
        let duration = end - now;
        self.max_batch = if duration > LONG_CALL_NS {
            ((from as u64 * (LONG_CALL_NS / 2) / duration) as usize).max(1)
        } else {
            self.max_batch.saturating_mul(2)
        };
        let sent = self.next_sequence - before;
        if sent > 0 {
            self.backlog.handed_over(self.socket, sent * self.spec.message_bytes.get(), now, end)?;
        }
        match phase {
            Phase::WarmUp => (),
            Phase::Measured => self.measured_until = end,
            Phase::CoolDown => self.marks += sent,
        }
        let bytes = self.next_sequence * self.spec.message_bytes.get();
        self.shared.meters[self.index].sent(bytes, self.next_sequence);
        Ok(from)
    }

    /// Disables segmentation, because the device cannot do the checksums that it needs.
    fn do_without_segmentation(&mut self) -> Result<(), StreamError> {
        udp::segment(self.socket, 0)?;
        self.per_buffer = 1;
        self.io_method = "sendmmsg (UDP_SEGMENT refused by the device)";
        Ok(())
    }

    /// Returns the number of datagrams that the kernel refused with `error`, unless the error ends the trial.
    fn refused(&mut self, left: usize, error: io::Error) -> Result<usize, StreamError> {
        match error.raw_os_error() {
            // A queue was full, or memory was short: send(2).
            Some(ENOBUFS | ENOMEM) => Ok(left.min(self.per_buffer)),
            Some(ECONNREFUSED) => {
                Err(self.shared.gone(self.index, "it has closed the datagrams' port (ICMP port unreachable)"))
            }
            _ if is_cut_off(&error) => {
                // Datagrams that are due meanwhile count as refused, except at full speed.
                self.shared.stop.sleep_until(clock::now() + CUT_OFF_NS);
                Ok(left.min(self.per_buffer))
            }
            Some(EMSGSIZE) => Err(SocketError::InvalidRequest(format!(
                "UDP messages of {} do not pass this path: its MTU has shrunk, or fragments are refused; choose a smaller size",
                self.spec.message_bytes
            ))
            .into()),
            _ => {
                let peer = self.shared.flows[self.index].peer;
                let call = format!("sendmmsg of {} datagrams to {peer}", self.spec.message_bytes);
                Err(failed(call)(error).into())
            }
        }
    }

    fn finish(self) -> Outcome {
        let Counts { sent, not_sent, refused } = self.counts;
        let payload_bytes = sent * self.spec.message_bytes.get();
        let timeline = &self.shared.timeline;
        let window = match (self.finished_at, self.measured_from) {
            (Some(_), _) => Nanos::new(self.last_sent.saturating_sub(timeline.open())),
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

/// Sender that shares a thread with others.
struct ServedSender<'a> {
    sender: Sender<'a>,
    schedule: Option<Schedule>,
}

impl Served for ServedSender<'_> {
    type Common = Batches;
    const WAITS_FOR: Interest = Interest::Write;

    fn socket(&self) -> BorrowedSocket<'_> {
        self.sender.socket.as_socket()
    }

    fn turn(&mut self, batches: &mut Batches) -> Result<Next, StreamError> {
        let Self { sender, schedule } = self;
        let Some(schedule) = schedule else {
            let next = sender.burst(batches)?;
            return Ok(if sender.is_over { Next::Over } else { next });
        };
        if sender.paused {
            return sender.mark_end(clock::now(), batches);
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

    /// Ends a flow in time even if its socket has no room, for example because its link is down.
    fn look(&mut self, batches: &mut Batches) -> Result<bool, StreamError> {
        Ok(self.sender.is_full && self.turn(batches)? == Next::Over)
    }

    fn finish(self, _: &Batches) -> Result<Outcome, StreamError> {
        Ok(self.sender.finish())
    }
}

/// Due times of the datagrams of a paced sender.
#[derive(Debug)]
struct Schedule {
    pace: Pace,
    burst: u64,
    max_behind: u64,
    /// `None` before the opening of the window is known.
    plan: Option<Plan>,
    /// Number of datagrams sent, refused and skipped.
    next: u64,
}

/// The next burst: its due time, its phase, and the first datagram of the next phase.
#[derive(Debug, Clone, Copy)]
struct Due {
    at: u64,
    phase: Phase,
    end: u64,
}

impl Schedule {
    /// Returns the next burst, or `None` after the cool-down.
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

/// Phases of a pace's datagrams, by their due times.
#[derive(Debug, Clone, Copy)]
struct Plan {
    /// First datagram of the measured phase.
    measured: u64,
    /// First datagram of the cool-down.
    cool_down: u64,
    /// First datagram after the cool-down.
    end: u64,
}

impl Plan {
    /// Creates the plan for a window that became known before datagram `next`.
    fn new(timeline: &Timeline, pace: &Pace, next: u64) -> Self {
        let open = timeline.open();
        let close = timeline.close();
        let measured = pace.due_by(open - 1).max(next);
        let cool_down = pace.due_by(close - 1).max(next);
        let marks = pace.due_by(close + MARKS_NS - 1).min(cool_down + MARKS);
        let end = pace.due_by(close + COOL_DOWN_NS - 1).max(marks).max(next);
        Self { measured, cool_down, end }
    }

    /// Returns the phase of datagram `next`, and the first datagram of the next phase. Returns `None` after the
    /// cool-down.
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
    fn plan_splits_datagrams_by_the_window() {
        let window = linerate_model::Window { warmup: linerate_model::Warmup::STEADY, measure: Nanos::from_millis(20) };
        let timeline = Timeline::new(1_000, window);
        let pace = Pace::new(Offered::PayloadBps(BitRate::per_second(8_000_000)), 1_000, 1_000, 0, 1);
        timeline.set_open(10_001_000);
        let plan = Plan::new(&timeline, &pace, 3);
        for (next, expected) in [
            (3, Some((Phase::WarmUp, 10))),
            (9, Some((Phase::WarmUp, 10))),
            (10, Some((Phase::Measured, 30))),
            (29, Some((Phase::Measured, 30))),
            (30, Some((Phase::CoolDown, 130))),
            (129, Some((Phase::CoolDown, 130))),
            (130, None),
        ] {
            assert_eq!(plan.phase(next), expected, "{next}");
        }
        // The window opened before the sender knew: datagrams sent until then belong to the warm-up.
        let late = Plan::new(&timeline, &pace, 15);
        assert_eq!((late.measured, late.cool_down, late.end), (15, 30, 130));
    }
}
