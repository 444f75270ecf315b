//! The receiver of bulk datagrams, stragglers included.

use super::{MARKS_NS, PLAIN_BATCH, PLAIN_BATCH_BYTES, phase_at, sockets};
use crate::arrivals::Arrivals;
use crate::budget::Budget;
use crate::bulk_tcp::is_timeout;
use crate::datagram::Phase;
use crate::error::StreamError;
use crate::flow::{Flow, Outcome, Shared, Wire};
use crate::spread::{Next, Served, serve};
use linerate_engine::Pace;
use linerate_model::StreamTask;
use linerate_sys::epoll::Interest;
use linerate_sys::udp::Incoming;
use linerate_sys::{clock, socket, udp};
use std::io;
use std::net::UdpSocket;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::time::Duration;

/// Buffers of joined datagrams taken in one `recvmmsg`.
const JOINED_BATCH: usize = 4;
/// The largest buffer of joined datagrams.
const JOINED_BYTES: usize = 65_536;
/// A volume of which nothing came for so long, nor for as many datagrams at its rate, has ended: all marks were lost.
const SILENCE_NS: u64 = 5_000_000_000;
/// The same once some of it has come: the path may be cut for a while.
const OUTAGE_NS: u64 = 35_000_000_000;
const SILENT_DATAGRAMS: u64 = 10;
/// The receiver looks at the clock this often while nothing arrives.
const TICK: Duration = Duration::from_millis(20);
/// The same of a receiver that shares a thread with others.
const QUIET_LOOK_NS: u64 = 40_000_000;
/// Where datagrams come closer together than this, the receiver sleeps for a while whenever it has emptied its buffer: see
/// [`Nap`].
const NAP_GAP_NS: u64 = 10_000;
const NAP_NS: u64 = 50_000;
const NAP_LOOK_NS: u64 = 1_000_000;
/// Stragglers: nothing arrived for so long ...
const QUIET_NS: u64 = 150_000_000;
/// ... or for so long, where datagrams of the cool-down are due and none has come: the sender may be held up with its last ones ...
const UNMARKED_QUIET_NS: u64 = 1_000_000_000;
/// ... or this much time has passed. A slow path with a deep queue holds what was sent within the window for tens of seconds.
const STRAGGLE_NS: u64 = 40_000_000_000;
/// Slow datagrams are waited for until this long after the last one.
const MOST_QUIET_NS: u64 = 5_000_000_000;

/// Receives until the measured phase is over and the stragglers are in, on a thread of its own.
pub(crate) fn receive(
    shared: &Shared,
    index: usize,
    spec: &StreamTask,
    socket: &UdpSocket,
) -> Result<Outcome, StreamError> {
    let mut receiver = Receiver::new(shared, index, spec, socket)?;
    socket.set_read_timeout(Some(TICK)).map_err(StreamError::socket("setsockopt(SO_RCVTIMEO)"))?;
    let mut inbound = Inbound::new(spec);
    // A small buffer asked for must be emptied at once.
    receiver.nap = (!receiver.joins && spec.net.socket.receive_buffer.is_none()).then(Nap::default);
    loop {
        if shared.stop.is_set() {
            return Err(StreamError::Stopped);
        }
        if receiver.take(&mut inbound, false)? {
            return receiver.finish();
        }
    }
}

/// Receives flows `indices` until the measured phase is over and the stragglers are in, on the calling thread.
pub(crate) fn receive_all(shared: &Shared, indices: &[usize], spec: &StreamTask) -> Result<Vec<Outcome>, StreamError> {
    let receivers = sockets(shared, indices).map(|(index, socket)| Receiver::new(shared, index, spec, socket));
    let flows = receivers.collect::<Result<_, StreamError>>()?;
    serve(shared, flows, &mut Inbound::new(spec), clock::now())
}

/// Room for datagrams that arrive. The flows of a thread share it.
struct Inbound {
    bytes: usize,
    joined: Option<Incoming>,
    plain: Option<Incoming>,
}

impl Inbound {
    fn new(spec: &StreamTask) -> Self {
        Self { bytes: spec.message_bytes.get() as usize, joined: None, plain: None }
    }

    /// Room for datagrams that the kernel joins, or for others, and for how many buffers of them.
    #[inline]
    fn of(&mut self, joins: bool) -> (&mut Incoming, usize) {
        let (incoming, buffers, bytes) = match joins {
            true => (&mut self.joined, JOINED_BATCH, JOINED_BYTES),
            false => (&mut self.plain, (PLAIN_BATCH_BYTES / self.bytes).clamp(1, PLAIN_BATCH), self.bytes),
        };
        (incoming.get_or_insert_with(|| Incoming::new(buffers, bytes)), buffers)
    }
}

struct Receiver<'a> {
    shared: &'a Shared,
    index: usize,
    socket: &'a UdpSocket,
    /// The kernel joins datagrams.
    joins: bool,
    nap: Option<Nap>,
    arrivals: Arrivals,
    /// Datagrams of the cool-down are due.
    awaits_mark: bool,
    /// When it looked into its socket last.
    looked: u64,
    /// None where the window ends by time.
    volume: Option<Awaited<'a>>,
}

/// A volume that is received. Its sender marks its end, or has sent all of it where it marks nothing.
pub(super) struct Awaited<'a> {
    left: Option<&'a Budget>,
    /// Datagrams that counted.
    counted: u64,
    /// Time that its datagrams take at their rate until so many of them are missing that it has ended.
    quiet: u64,
    ended: Option<u64>,
}

impl<'a> Awaited<'a> {
    pub(super) fn new(shared: &'a Shared, index: usize, spec: &StreamTask) -> Self {
        let quiet = time_of(SILENT_DATAGRAMS, shared, index, spec);
        Self { left: shared.budget(index), counted: 0, quiet, ended: None }
    }

    /// Returns whether it has ended by `now`, with what has arrived.
    pub(super) fn has_ended(&mut self, arrivals: &Arrivals, now: u64, start: u64) -> bool {
        let silence = if arrivals.heard() > start { OUTAGE_NS } else { SILENCE_NS };
        let is_silent = now >= arrivals.heard().max(start) + self.quiet.max(silence);
        let Some(left) = self.left else { return arrivals.is_marked() || is_silent };
        let counted = left.take(arrivals.arrived() - self.counted);
        left.settle(counted, counted);
        self.counted = arrivals.arrived();
        left.is_spent() || is_silent
    }
}

/// How long flow `index` takes for so many datagrams at its set rate, nanoseconds; zero at full speed.
fn time_of(datagrams: u64, shared: &Shared, index: usize, spec: &StreamTask) -> u64 {
    let (start, flow) = (shared.timeline.start(), shared.flows[index].hello.flow);
    spec.offered.map_or(0, |offered| {
        Pace::new(offered, spec.message_bytes.get(), start, flow, spec.net.flows).due(datagrams) - start
    })
}

impl<'a> Receiver<'a> {
    fn new(shared: &'a Shared, index: usize, spec: &StreamTask, socket: &'a UdpSocket) -> Result<Self, StreamError> {
        // Joining needs Linux 5.0.
        let joins = spec.offload && udp::join(socket).is_ok();
        udp::tell_drops(socket)?;
        let (numbering, timeline) = (shared.numbering(index), &shared.timeline);
        let volume = shared.job.volume().map(|_| Awaited::new(shared, index, spec));
        let arrivals = match &volume {
            None => {
                let is_other = |(number, flow): (usize, &Flow)| number != index && flow.end == shared.flows[index].end;
                let has_others = shared.flows.iter().enumerate().any(is_other);
                Arrivals::new(numbering, timeline.measure().get()).beside_others(has_others)
            }
            Some(_) => Arrivals::of_volume(numbering, timeline.measure().get(), spec.message_bytes.get()),
        };
        let awaits_mark =
            shared.wire == Wire::Own && time_of(SILENT_DATAGRAMS, shared, index, spec) <= SILENT_DATAGRAMS * MARKS_NS;
        Ok(Self { shared, index, socket, joins, nap: None, arrivals, awaits_mark, looked: 0, volume })
    }

    /// Takes what is there in one call, which waits for a moment unless it is to take it `now_or_never`. Returns whether the flow
    /// is over.
    #[inline]
    fn take(&mut self, inbound: &mut Inbound, now_or_never: bool) -> Result<bool, StreamError> {
        let Self { shared, arrivals, .. } = self;
        let (timeline, meter) = (&shared.timeline, &shared.meters[self.index]);
        let (incoming, buffers) = inbound.of(self.joins);
        let taken = incoming.receive(self.socket, now_or_never);
        let now = clock::now();
        self.looked = now;
        let open = shared.has_received(self.index).then(|| timeline.open());
        arrivals.enter(phase_at(timeline, now).unwrap_or(Phase::CoolDown), open);
        match taken {
            Ok(taken) => {
                shared.received(self.index);
                if let Some(nap) = &mut self.nap
                    && taken < buffers
                {
                    nap.take(taken, now);
                }
                arrivals.take(incoming.arrived(), now, taken < buffers);
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
            Err(error) => return Err(StreamError::socket("recvmmsg")(error)),
        }
        if let Some(volume) = &mut self.volume {
            if volume.ended.is_none() && volume.has_ended(arrivals, now, timeline.start()) {
                volume.ended = Some(now);
                shared.finished();
            }
            let end = volume.ended.unwrap_or(timeline.close());
            // Who goes on until it is told to end leaves nothing to be waited for.
            let is_over = volume.ended.is_some() && shared.wire != Wire::Own;
            return Ok(is_over || now >= arrivals.last().max(end) + QUIET_NS || now >= end + STRAGGLE_NS);
        }
        let end = arrivals.end().map_or(timeline.close(), |end| timeline.close().max(end));
        let heard = arrivals.last().max(end);
        let awaited = if self.awaits_mark && !arrivals.is_marked() {
            heard + UNMARKED_QUIET_NS.max(arrivals.next_expected().saturating_sub(arrivals.heard())).min(MOST_QUIET_NS)
        } else {
            heard + QUIET_NS
        };
        Ok(now >= awaited || now >= end + STRAGGLE_NS)
    }

    fn finish(self) -> Result<Outcome, StreamError> {
        let drops = socket::drops(self.socket.as_fd())?;
        let open = self.shared.timeline.open();
        let now = clock::now();
        Ok(self.arrivals.outcome(open, now, drops, if self.joins { "recvmmsg + UDP_GRO" } else { "recvmmsg" }))
    }
}

impl Served for Receiver<'_> {
    type Common = Inbound;
    const WAITS_FOR: Interest = Interest::Read;

    fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    fn turn(&mut self, inbound: &mut Inbound) -> Result<Next, StreamError> {
        Ok(if self.take(inbound, true)? { Next::Over } else { Next::Ready })
    }

    /// Of a socket that was not ready for a while nothing is known but by looking into it.
    fn look(&mut self, inbound: &mut Inbound) -> Result<bool, StreamError> {
        Ok(clock::now() >= self.looked + QUIET_LOOK_NS && self.take(inbound, true)?)
    }

    fn finish(self, _: &Inbound) -> Result<Outcome, StreamError> {
        Receiver::finish(self)
    }
}

/// Lets datagrams gather where they come faster than a thread can be woken for each.
///
/// The wake-up is paid by the sender's core where both ends share a machine, and by the interrupt's elsewhere. Over veth,
/// 64-byte datagrams in batches of 64, it was a quarter of the cost: 0.41 instead of 0.31 M/s, medians of eight pairs of
/// runs in alternating order, better in each. Arrival times, and with them jitter, become as coarse as the nap.
#[derive(Debug, Default)]
struct Nap {
    since: u64,
    taken: u64,
    naps: bool,
}

impl Nap {
    /// Sleeps, after `taken` datagrams left the buffer empty, if the recent rate is high.
    fn take(&mut self, taken: usize, now: u64) {
        self.taken += taken as u64;
        if now - self.since >= NAP_LOOK_NS {
            self.naps = self.taken * NAP_GAP_NS > now - self.since;
            (self.since, self.taken) = (now, 0);
        }
        if self.naps {
            clock::sleep_until(now + NAP_NS);
        }
    }
}
