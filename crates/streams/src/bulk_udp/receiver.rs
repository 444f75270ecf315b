//! The receiver of bulk datagrams, stragglers included.

use super::{MARKS_NS, PLAIN_BATCH, PLAIN_BATCH_BYTES, Sockets, phase_at};
use crate::arrivals::Arrivals;
use crate::budget::Budget;
use crate::datagram::Phase;
use crate::error::StreamError;
use crate::flow::{Outcome, Shared};
use crate::spread::{Next, Served, serve};
use linerate_engine::{Pace, Stopped, WakeBatching, failed};
use linerate_model::{ReceivedDscp, StreamTask};
use linerate_sys::epoll::Interest;
use linerate_sys::handle::{AsSocket as _, BorrowedSocket};
use linerate_sys::socket::is_timeout;
use linerate_sys::udp::{Arrived, Incoming};
use linerate_sys::{clock, socket, udp};
use std::io;
use std::net::UdpSocket;
use std::time::Duration;

/// Buffers of joined datagrams taken in one `recvmmsg`.
const JOINED_BATCH: usize = 4;
/// The largest buffer of joined datagrams.
const JOINED_BYTES: usize = 65_536;
/// Silence after which a volume has ended although all marks were lost. It must also last for [`SILENT_DATAGRAMS`] at
/// the rate.
const SILENCE_NS: u64 = 5_000_000_000;
/// The same after the first arrival, because the path may be cut for a while.
const OUTAGE_NS: u64 = 35_000_000_000;
const SILENT_DATAGRAMS: u64 = 10;
/// Interval of looking at the clock while nothing arrives.
const TICK: Duration = Duration::from_millis(20);
/// The same for a receiver that shares a thread with others.
const QUIET_LOOK_NS: u64 = 40_000_000;
/// Silence that ends the wait for stragglers.
const QUIET_NS: u64 = 150_000_000;
/// The same while datagrams of the cool-down are due and none has arrived: the sender may be stalled before its last
/// ones.
const UNMARKED_QUIET_NS: u64 = 1_000_000_000;
/// Longest wait for stragglers. A slow path with a deep queue delays datagrams for tens of seconds.
const STRAGGLE_NS: u64 = 40_000_000_000;
/// Longest wait after the last datagram at a low rate.
const MAX_QUIET_NS: u64 = 5_000_000_000;

/// Receives until the measured phase is over and the stragglers are in, on a thread of its own.
pub(crate) fn receive(
    shared: &Shared,
    index: usize,
    spec: &StreamTask,
    socket: &UdpSocket,
) -> Result<Outcome, StreamError> {
    let mut receiver = Receiver::new(shared, index, spec, socket)?;
    socket.set_read_timeout(Some(TICK)).map_err(failed("setsockopt(SO_RCVTIMEO)"))?;
    let mut inbound = Inbound::new(spec);
    // A buffer of a requested size may be small and must be emptied at once.
    receiver.batching = (!receiver.joins && spec.net.socket.receive_buffer.is_none()).then(WakeBatching::default);
    loop {
        if shared.stop.is_set() {
            return Err(Stopped.into());
        }
        if receiver.take(&mut inbound, false)? {
            return receiver.finish();
        }
    }
}

/// Receives from all `sockets` until the measured phase is over and the stragglers are in, on the calling thread.
pub(crate) fn receive_all(
    shared: &Shared,
    sockets: &Sockets<'_>,
    spec: &StreamTask,
) -> Result<Vec<Outcome>, StreamError> {
    let mut flows = Vec::new();
    for (index, socket) in sockets {
        flows.push(Receiver::new(shared, *index, spec, socket)?);
    }
    serve(shared, flows, &mut Inbound::new(spec), clock::now())
}

/// Buffers for arriving datagrams, which the flows of a thread share.
struct Inbound {
    bytes: usize,
    joined: Option<Incoming>,
    plain: Option<Incoming>,
}

impl Inbound {
    fn new(spec: &StreamTask) -> Self {
        Self { bytes: spec.message_bytes.get() as usize, joined: None, plain: None }
    }

    /// Returns the buffers for datagrams that the kernel joins, or for others, and their number.
    #[inline]
    fn buffers(&mut self, joins: bool) -> (&mut Incoming, usize) {
        let (incoming, buffers, bytes) = if joins {
            (&mut self.joined, JOINED_BATCH, JOINED_BYTES)
        } else {
            (&mut self.plain, (PLAIN_BATCH_BYTES / self.bytes).clamp(1, PLAIN_BATCH), self.bytes)
        };
        (incoming.get_or_insert_with(|| Incoming::new(buffers, bytes)), buffers)
    }
}

struct Receiver<'a> {
    shared: &'a Shared,
    index: usize,
    socket: &'a UdpSocket,
    /// Whether the kernel joins datagrams.
    joins: bool,
    /// Whether it has joined datagrams without reporting their size, as drivers of Windows do.
    joined_falsely: bool,
    batching: Option<WakeBatching>,
    arrivals: Arrivals,
    /// Whether datagrams of the cool-down are due.
    awaits_mark: bool,
    /// Time of the last call on the socket.
    last_call: u64,
    /// Volume of the stream, or `None` if the window ends by time.
    volume: Option<PendingVolume<'a>>,
    /// DSCP that the sender sets, and that of what arrived.
    dscp: Option<(u8, ReceivedDscp)>,
}

/// Volume that is being received. It ends with the sender's marks or, if the sender makes none, with its last datagram.
pub(super) struct PendingVolume<'a> {
    budget: Option<&'a Budget>,
    /// Datagrams that counted.
    counted: u64,
    /// Time of [`SILENT_DATAGRAMS`] at the rate of the flow.
    quiet: u64,
    finished_at: Option<u64>,
}

impl<'a> PendingVolume<'a> {
    pub(super) fn new(shared: &'a Shared, index: usize, spec: &StreamTask) -> Self {
        let quiet = time_of(SILENT_DATAGRAMS, shared, index, spec);
        Self { budget: shared.budget(index), counted: 0, quiet, finished_at: None }
    }

    /// Returns whether the volume has ended by `now`, with these arrivals.
    pub(super) fn has_ended(&mut self, arrivals: &Arrivals, now: u64, start: u64) -> bool {
        let silence = if arrivals.heard() > start { OUTAGE_NS } else { SILENCE_NS };
        let is_silent = now >= arrivals.heard().max(start) + self.quiet.max(silence);
        let Some(budget) = self.budget else { return arrivals.is_marked() || is_silent };
        let counted = budget.take(arrivals.arrived() - self.counted);
        budget.settle(counted, counted);
        self.counted = arrivals.arrived();
        budget.is_spent() || is_silent
    }
}

/// Returns the time that flow `index` takes for `datagrams` at its offered rate, nanoseconds; zero at full speed.
fn time_of(datagrams: u64, shared: &Shared, index: usize, spec: &StreamTask) -> u64 {
    let Some(offered) = spec.offered else { return 0 };
    let start = shared.timeline.start();
    let flow = shared.flows[index].hello.flow;
    Pace::new(offered, spec.message_bytes.get(), start, flow, spec.net.flows).due(datagrams) - start
}

/// Takes a buffer of the trial's datagrams of `bytes` bytes apart whose size was not reported.
#[inline]
fn apart(buffer: Arrived<'_>, bytes: usize) -> Arrived<'_> {
    Arrived { datagram_bytes: buffer.datagram_bytes.min(bytes), ..buffer }
}

impl<'a> Receiver<'a> {
    fn new(shared: &'a Shared, index: usize, spec: &StreamTask, socket: &'a UdpSocket) -> Result<Self, StreamError> {
        // Joining needs Linux 5.0.
        let joins = spec.offload && udp::join(socket).is_ok();
        // A system without it reports no drops at the end either.
        let _ = udp::tell_drops(socket);
        let dscp = spec.net.socket.dscp.filter(|_| udp::report_traffic_class(socket).is_ok());
        let numbering = shared.numbering(index);
        let measure = shared.timeline.measure().get();
        let volume = shared.job.volume().map(|_| PendingVolume::new(shared, index, spec));
        let arrivals = if volume.is_some() {
            Arrivals::of_volume(numbering, measure, spec.message_bytes.get())
        } else {
            let end = shared.flows[index].end;
            let has_others = shared.flows.iter().filter(|flow| flow.end == end).count() > 1;
            Arrivals::new(numbering, measure).with_others(has_others)
        };
        let is_fast = time_of(SILENT_DATAGRAMS, shared, index, spec) <= SILENT_DATAGRAMS * MARKS_NS;
        Ok(Self {
            shared,
            index,
            socket,
            joins,
            joined_falsely: false,
            batching: None,
            arrivals,
            awaits_mark: shared.wire.marks_end() && is_fast,
            last_call: 0,
            volume,
            dscp: dscp.map(|sent| (sent, ReceivedDscp::default())),
        })
    }

    /// Receives in one call, which waits for a moment unless `nonblocking`. Returns whether the flow is over.
    #[inline]
    fn take(&mut self, inbound: &mut Inbound, nonblocking: bool) -> Result<bool, StreamError> {
        let Self { shared, arrivals, .. } = self;
        let timeline = &shared.timeline;
        let meter = &shared.meters[self.index];
        let bytes = inbound.bytes;
        let (incoming, buffers) = inbound.buffers(self.joins);
        let filled = incoming.receive(self.socket, nonblocking);
        let now = clock::now();
        self.last_call = now;
        let open = shared.has_received(self.index).then(|| timeline.open());
        arrivals.enter(phase_at(timeline, now).unwrap_or(Phase::CoolDown), open);
        match filled {
            Ok(filled) => {
                shared.received(self.index);
                if let Some(batching) = &mut self.batching
                    && filled < buffers
                {
                    batching.emptied(filled, now);
                }
                if let Some((sent, received)) = &mut self.dscp {
                    for buffer in incoming.arrived().map(|buffer| apart(buffer, bytes)) {
                        if let Some(class) = buffer.traffic_class {
                            // The upper six bits: RFC 2474 section 3.
                            let datagrams = buffer.payload.len().div_ceil(buffer.datagram_bytes.max(1));
                            received.count(datagrams as u64, class >> 2, *sent);
                        }
                    }
                }
                if self.joins && !self.joined_falsely && incoming.arrived().any(|buffer| buffer.datagram_bytes > bytes)
                {
                    self.joined_falsely = true;
                    udp::stop_joining(self.socket)?;
                }
                arrivals.take(incoming.arrived().map(|buffer| apart(buffer, bytes)), now, filled < buffers);
                let total = arrivals.total();
                meter.received(total.bytes, total.datagrams, arrivals.missing());
                if let Some(jitter) = arrivals.jitter_ns() {
                    meter.jitter(jitter);
                }
            }
            // The sender may have gone while its last datagrams are still here.
            Err(error) if is_timeout(&error) || error.kind() == io::ErrorKind::ConnectionRefused => {
                arrivals.nothing(now);
            }
            Err(error) => return Err(failed(udp::RECEIVE)(error).into()),
        }
        if let Some(volume) = &mut self.volume {
            if volume.finished_at.is_none() && volume.has_ended(arrivals, now, timeline.start()) {
                volume.finished_at = Some(now);
                shared.finished();
            }
            let end = volume.finished_at.unwrap_or(timeline.close());
            // A sender that continues until it is told to stop leaves no stragglers to wait for.
            let is_over = volume.finished_at.is_some() && !shared.wire.marks_end();
            return Ok(is_over || now >= arrivals.last().max(end) + QUIET_NS || now >= end + STRAGGLE_NS);
        }
        let end = arrivals.end().map_or(timeline.close(), |end| timeline.close().max(end));
        let heard = arrivals.last().max(end);
        let quiet = if self.awaits_mark && !arrivals.is_marked() {
            UNMARKED_QUIET_NS.max(arrivals.next_expected().saturating_sub(arrivals.heard())).min(MAX_QUIET_NS)
        } else {
            QUIET_NS
        };
        Ok(now >= heard + quiet || now >= end + STRAGGLE_NS)
    }

    fn finish(self) -> Result<Outcome, StreamError> {
        let drops = socket::drops(self.socket.as_socket())?;
        let open = self.shared.timeline.open();
        let io_method = match (self.joins, self.joined_falsely) {
            (_, true) => format!("{} ({} ended: it hid the size of datagrams)", udp::RECEIVE, udp::JOIN),
            (true, false) => format!("{} + {}", udp::RECEIVE, udp::JOIN),
            (false, false) => udp::RECEIVE.to_owned(),
        };
        let mut outcome = self.arrivals.outcome(open, clock::now(), drops, &io_method);
        if let Some(received) = &mut outcome.received {
            received.dscp = self.dscp.map(|(_, dscp)| dscp);
        }
        Ok(outcome)
    }
}

impl Served for Receiver<'_> {
    type Common = Inbound;
    const WAITS_FOR: Interest = Interest::Read;

    fn socket(&self) -> BorrowedSocket<'_> {
        self.socket.as_socket()
    }

    fn turn(&mut self, inbound: &mut Inbound) -> Result<Next, StreamError> {
        Ok(if self.take(inbound, true)? { Next::Over } else { Next::Ready })
    }

    /// Reads from a socket that was not ready for a while, to learn its state.
    fn look(&mut self, inbound: &mut Inbound) -> Result<bool, StreamError> {
        Ok(clock::now() >= self.last_call + QUIET_LOOK_NS && self.take(inbound, true)?)
    }

    fn finish(self, _: &Inbound) -> Result<Outcome, StreamError> {
        Receiver::finish(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Some drivers of Windows join datagrams and do not report their size.
    #[test]
    fn datagrams_joined_without_their_size_are_counted_apart() {
        let payload = [7; 400];
        let buffer = |datagram_bytes| Arrived {
            payload: &payload,
            datagram_bytes,
            truncated: false,
            drops: 0,
            traffic_class: None,
        };
        for reported in [100, 400] {
            let buffer = apart(buffer(reported), 100);
            assert_eq!(buffer.payload.chunks(buffer.datagram_bytes).count(), 4);
        }
        let single = Arrived { payload: &payload[..100], ..buffer(100) };
        assert_eq!(apart(single, 100).datagram_bytes, 100);
    }
}
