//! Bulk data over TCP: streams from the start to the end of the cool-down, counted over each end's own window.

use crate::budget::Budget;
use crate::error::StreamError;
use crate::flow::{Link, Outcome, Shared, Wire};
use crate::meter::Meter;
use crate::spread::{Next, Served, serve};
use crate::window::{Edge, Window};
use linerate_model::{FlowCounts, Offered, ReceiveBy, Received, SendBy, Sent, StreamTask, TcpFlow};
use linerate_pace::Pace;
use linerate_sys::epoll::Interest;
use linerate_sys::tcp::{self, Info};
use linerate_sys::{clock, memory};
use linerate_units::{BitRate, Nanos};
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::time::Duration;

/// The sender goes on for so long after its window, for the receiver's closes a little later or earlier.
const COOL_DOWN_NS: u64 = 250_000_000;
/// The receiver waits for the stream's end so long after its window; what a deep queue still holds is left to it.
const END_NS: u64 = 1_000_000_000;
/// A sender that has handed over its volume looks this often whether the peer has acknowledged all of it.
const REST_NS: u64 = 1_000_000;
/// Nothing at all for so long: the peer is gone.
const SILENCE_NS: u64 = 5_000_000_000;
/// Below this, `sendfile` costs more than the copy it saves.
const SENDFILE_MINIMUM: u64 = 16 << 10;
/// One `sendfile` call; the kernel cuts it into pieces of 64 KiB in any case.
const SENDFILE_CALL: usize = 1 << 20;
/// The window's edges are seen between calls only. A call waits for no longer than this at a time, which it may do for each of the
/// kernel's pieces; one that took longer is followed by one that should take half of it.
const LONG_CALL_NS: u64 = 20_000_000;
/// No call is cut to less.
const SHORTEST_CALL: usize = 16 << 10;
/// One of many flows of a thread hands over no more before the next one has its turn.
const TURN: usize = 256 << 10;
/// Stays in a core's L2 cache: twice the rate of a buffer that does not.
const RECEIVE_BUFFER: usize = 128 << 10;
/// Uncopied, only the number of calls counts.
const DISCARD_CALL: usize = 1 << 20;
/// A paced sender hands over what is due within this, so that the load is even.
const PACED_BURST_NS: u64 = 250_000;
/// The same of one of many flows of a thread at the most: a flow at a low rate is to be seen in each interval.
const SHARED_BURST_NS: u64 = 100_000_000;
/// A paced sender that is further behind gives up the difference: the network's load must not exceed what was asked for
/// for long.
const CATCH_UP_NS: u64 = 20_000_000;

/// Sends until the cool-down is over, on a thread of its own.
pub(crate) fn send(
    shared: &Shared,
    index: usize,
    spec: &StreamTask,
    stream: &TcpStream,
) -> Result<Outcome, StreamError> {
    let supply = Supply::new(spec)?;
    let mut sender = Sender::new(shared, index, spec, stream);
    shared.stop.sleep_until(shared.timeline.start());
    let wait = Duration::from_nanos(LONG_CALL_NS);
    stream.set_write_timeout(Some(wait)).map_err(StreamError::socket("setting a timeout"))?;
    let (mut call, mut before) = (usize::MAX, clock::now());
    loop {
        if shared.stop.is_set() {
            return Err(StreamError::Stopped);
        }
        let allowed = sender.wait();
        let sent_before = sender.account.total;
        let Some(now) = sender.send(&supply, allowed.min(call))? else { break };
        let (sent, took) = (sender.account.total - sent_before, now - before);
        call = match took > LONG_CALL_NS {
            true => ((sent * (LONG_CALL_NS / 2) / took) as usize).max(SHORTEST_CALL),
            false => call.saturating_mul(2),
        };
        before = now;
    }
    sender.finish(&supply)
}

/// Sends flows `indices` until the cool-down is over, on the calling thread.
pub(crate) fn send_all(shared: &Shared, indices: &[usize], spec: &StreamTask) -> Result<Vec<Outcome>, StreamError> {
    let flows = streams(shared, indices)?
        .zip(0..)
        .map(|((index, stream), number)| {
            let mut sender = Sender::new(shared, index, spec, stream);
            if let Some(pacing) = &mut sender.pacing {
                pacing.take_turns(number, indices.len() as u64);
            }
            sender
        })
        .collect();
    serve(shared, flows, &mut Supply::new(spec)?, shared.timeline.start())
}

/// The streams of flows `indices`, whose calls no longer wait.
fn streams<'a>(
    shared: &'a Shared,
    indices: &'a [usize],
) -> Result<impl Iterator<Item = (usize, &'a TcpStream)>, StreamError> {
    let stream = move |index: &usize| match &shared.flows[*index].link {
        Link::Tcp(stream) => (*index, stream),
        other => unreachable!("{other:?} is no connection"),
    };
    let streams = indices.iter().map(stream);
    for (_, stream) in streams.clone() {
        stream.set_nonblocking(true).map_err(StreamError::socket("fcntl(O_NONBLOCK)"))?;
    }
    Ok(streams)
}

/// A flow that is sent.
struct Sender<'a> {
    shared: &'a Shared,
    index: usize,
    spec: &'a StreamTask,
    stream: &'a TcpStream,
    pacing: Option<Pacing>,
    account: Account<'a>,
    /// What is left of the volume; none where the window ends by time.
    budget: Option<&'a Budget>,
    /// Nothing is left to hand over.
    rests: bool,
}

impl<'a> Sender<'a> {
    fn new(shared: &'a Shared, index: usize, spec: &'a StreamTask, stream: &'a TcpStream) -> Self {
        let (pacing, account) = (Pacing::new(shared, index, spec), Account::new(shared, stream));
        Self { shared, index, spec, stream, pacing, account, budget: shared.budget(index), rests: false }
    }

    /// Waits until something is due; returns how many bytes may be sent.
    fn wait(&mut self) -> usize {
        if self.rests {
            self.shared.stop.sleep_until(clock::now() + REST_NS);
            return usize::MAX;
        }
        let meter = &self.shared.meters[self.index];
        self.pacing.as_mut().map_or(usize::MAX, |pacing| pacing.wait(self.account.total, meter))
    }

    /// Hands over up to `allowed` bytes in one call, of a volume what is left. Returns the time; none if the flow is over.
    #[inline]
    fn send(&mut self, supply: &Supply, allowed: usize) -> Result<Option<u64>, StreamError> {
        match self.budget {
            Some(budget) if self.account.window.is_open() => self.hand_over_of(budget, supply, allowed),
            _ => self.hand_over(supply, allowed),
        }
    }

    /// Hands over up to `allowed` bytes of a volume.
    fn hand_over_of(&mut self, budget: &Budget, supply: &Supply, allowed: usize) -> Result<Option<u64>, StreamError> {
        let taken = budget.take(allowed.min(supply.length()) as u64);
        self.rests = taken == 0;
        if self.rests {
            return self.rest(budget);
        }
        let before = self.account.total;
        let handed_over = self.hand_over(supply, taken as usize);
        budget.settle(taken, self.account.total - before);
        handed_over
    }

    /// Nothing is left to hand over: the flow is over when all is, and the peer has acknowledged what this one sent.
    fn rest(&mut self, budget: &Budget) -> Result<Option<u64>, StreamError> {
        if budget.is_spent() && tcp::unacknowledged(self.stream)? == 0 {
            self.account.end()?;
            self.shared.finished();
            return Ok(None);
        }
        if let Some(error) = self.stream.take_error().map_err(StreamError::socket("getsockopt(SO_ERROR)"))? {
            let what = format!("{error}, before all {} bytes were acknowledged", self.account.total);
            return Err(self.shared.gone(self.index, what));
        }
        let now = self.account.sample()?;
        Ok((!self.is_over(now)).then_some(now))
    }

    /// Hands over up to `allowed` bytes in one call. Returns the time; none if the flow is over.
    #[inline]
    fn hand_over(&mut self, supply: &Supply, allowed: usize) -> Result<Option<u64>, StreamError> {
        let account = &mut self.account;
        match supply.hand_over(self.stream, allowed) {
            Ok(sent) => account.total += sent as u64,
            Err(error) if is_timeout(&error) => (),
            Err(error) => {
                // The receiver may be done a little earlier than this end knew that it is.
                account.sample()?;
                if account.window.is_closed() {
                    return Ok(None);
                }
                return Err(self.shared.gone(self.index, format!("{error}, after {} bytes were sent", account.total)));
            }
        }
        let now = account.sample()?;
        self.shared.meters[self.index].sent(account.total, 0);
        Ok((!self.is_over(now)).then_some(now))
    }

    fn is_over(&self, now: u64) -> bool {
        now >= self.shared.timeline.close() + COOL_DOWN_NS && self.account.window.is_closed()
    }

    fn finish(self, supply: &Supply) -> Result<Outcome, StreamError> {
        // A server of iperf3 fails if a connection ends before it has ended the test. An error here means that the receiver has closed
        // already.
        if self.shared.wire == Wire::Own {
            let _ = self.stream.shutdown(Shutdown::Write);
        }
        let (bytes, window, tcp) = self.account.close()?;
        let message = self.spec.message_bytes.get();
        Ok(Outcome {
            sent: Some(Sent {
                window,
                payload_bytes: bytes,
                messages: bytes / message,
                io_method: supply.io_method().to_owned(),
                ..Sent::default()
            }),
            flow: FlowCounts { sent_bytes: bytes, received_bytes: 0, tcp: Some(tcp) },
            ..Outcome::default()
        })
    }
}

impl Served for Sender<'_> {
    type Common = Supply;
    const WAITS_FOR: Interest = Interest::Write;

    fn socket(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }

    fn turn(&mut self, supply: &mut Supply) -> Result<Next, StreamError> {
        let (before, most) = (self.account.total, supply.length().min(TURN));
        let allowed = match &mut self.pacing {
            None => most,
            Some(_) if self.rests => most,
            Some(pacing) => {
                let (at, now) = (pacing.due(before), clock::now());
                if at > now {
                    return Ok(Next::At(at));
                }
                pacing.allowed(before, at, now, &self.shared.meters[self.index]).min(most)
            }
        };
        if self.send(supply, allowed)?.is_none() {
            return Ok(Next::Over);
        }
        if self.rests {
            return Ok(Next::At(clock::now() + REST_NS));
        }
        let is_full = self.account.total < before + allowed as u64;
        Ok(match &self.pacing {
            Some(pacing) if !is_full => Next::At(pacing.due(self.account.total)),
            _ => Next::Ready,
        })
    }

    fn look(&mut self, _: &mut Supply) -> Result<bool, StreamError> {
        let now = self.account.sample()?;
        Ok(self.is_over(now))
    }

    fn finish(self, supply: &Supply) -> Result<Outcome, StreamError> {
        Sender::finish(self, supply)
    }
}

/// Receives until the sender ends the stream, on a thread of its own.
pub(crate) fn receive(
    shared: &Shared,
    index: usize,
    spec: &StreamTask,
    stream: &TcpStream,
) -> Result<Outcome, StreamError> {
    let mut inbound = Inbound::new(shared);
    let mut receiver = Receiver::new(shared, index, spec, stream);
    loop {
        if shared.stop.is_set() {
            return Err(StreamError::Stopped);
        }
        if receiver.take(&mut inbound)? {
            return receiver.finish();
        }
    }
}

/// Receives flows `indices` until their senders end them, on the calling thread.
pub(crate) fn receive_all(shared: &Shared, indices: &[usize], spec: &StreamTask) -> Result<Vec<Outcome>, StreamError> {
    let flows = streams(shared, indices)?.map(|(index, stream)| Receiver::new(shared, index, spec, stream)).collect();
    serve(shared, flows, &mut Inbound::new(shared), clock::now())
}

/// What the receivers of one thread share.
struct Inbound {
    buffer: Vec<u8>,
    /// When anything came last, for each end of this host: of many flows one may be silent for long on a busy path.
    heard: Vec<u64>,
}

impl Inbound {
    fn new(shared: &Shared) -> Self {
        let ends = shared.flows.iter().map(|flow| flow.end + 1).max().unwrap_or_default();
        Self { buffer: vec![0; RECEIVE_BUFFER], heard: vec![shared.timeline.start(); ends] }
    }
}

/// A flow that is received.
struct Receiver<'a> {
    shared: &'a Shared,
    index: usize,
    spec: &'a StreamTask,
    stream: &'a TcpStream,
    account: Account<'a>,
    /// What is under way at the end of the window is waited for so long.
    stragglers: u64,
    /// None where the window ends by time.
    volume: Option<Awaited<'a>>,
}

/// A volume that is received. Its end is that of the stream, or all of it where the sender does not tell.
struct Awaited<'a> {
    left: Option<&'a Budget>,
    /// When some of it came first; beyond any clock while nothing has.
    first: u64,
    /// When some of it came last.
    last: u64,
}

impl Awaited<'_> {
    /// Takes `bytes` that have come while the window `is_open`. Returns how many count.
    fn take(&self, bytes: u64, is_open: bool) -> u64 {
        let Some(left) = self.left.filter(|_| is_open) else { return bytes };
        let counted = left.take(bytes);
        left.settle(counted, counted);
        counted
    }

    /// Takes note that so many bytes counted at `now`. Returns whether all have come.
    fn counted(&mut self, bytes: u64, now: u64) -> bool {
        if bytes > 0 {
            (self.first, self.last) = (self.first.min(now), now);
        }
        self.left.is_some_and(Budget::is_spent)
    }
}

impl<'a> Receiver<'a> {
    fn new(shared: &'a Shared, index: usize, spec: &'a StreamTask, stream: &'a TcpStream) -> Self {
        let account = Account { takes: true, ..Account::new(shared, stream) };
        // Who goes on until it is told to end leaves nothing to be waited for.
        let stragglers = if shared.wire == Wire::Own { END_NS } else { 0 };
        let awaited = |_| Awaited { left: shared.budget(index), first: u64::MAX, last: shared.timeline.start() };
        let volume = shared.job.volume().map(awaited);
        Self { shared, index, spec, stream, account, stragglers, volume }
    }

    /// Takes what is there in one call. Returns whether the flow is over.
    #[inline]
    fn take(&mut self, inbound: &mut Inbound) -> Result<bool, StreamError> {
        let (mut reader, account) = (self.stream, &mut self.account);
        let taken = match self.spec.receive_by {
            ReceiveBy::Copy => reader.read(&mut inbound.buffer),
            ReceiveBy::Discard => tcp::discard(reader, DISCARD_CALL),
        };
        let gone = |what: String| self.shared.gone(self.index, what);
        let mut counted;
        match taken {
            Ok(0) => {
                // The sender may be done a little earlier than this end knew that it is.
                account.sample()?;
                if account.window.is_closed() {
                    return Ok(true);
                }
                if self.volume.is_some() {
                    return self.ended();
                }
                return Err(gone(format!("it ended the stream after {} bytes had arrived", account.total)));
            }
            Ok(taken) => counted = taken as u64,
            Err(error) if is_timeout(&error) => return self.nothing(inbound),
            Err(error) => {
                account.sample()?;
                if account.window.is_closed() {
                    return Ok(true);
                }
                return Err(gone(format!("{error}, after {} bytes had arrived", account.total)));
            }
        }
        if let Some(volume) = &self.volume {
            counted = volume.take(counted, account.window.is_open());
        }
        account.total += counted;
        let now = account.sample()?;
        let heard = &mut inbound.heard[self.shared.flows[self.index].end];
        *heard = now.max(*heard);
        self.shared.meters[self.index].received(account.total, 0, 0);
        if let Some(volume) = &mut self.volume
            && volume.counted(counted, now)
        {
            self.shared.wake_receivers(self.index);
            return self.ended();
        }
        Ok(self.is_over(*heard))
    }

    /// All that this flow carries of a volume has come. Returns that the flow is over.
    fn ended(&mut self) -> Result<bool, StreamError> {
        if let Some(Awaited { first, last, .. }) = self.volume {
            self.account.end_at(first, last)?;
        }
        self.shared.finished();
        Ok(true)
    }

    /// Takes note that nothing has come. Returns whether the flow is over.
    fn nothing(&mut self, inbound: &Inbound) -> Result<bool, StreamError> {
        let now = self.account.sample()?;
        if let Some(volume) = &mut self.volume
            && self.account.window.is_open()
            && volume.counted(0, now)
        {
            return self.ended();
        }
        let heard = inbound.heard[self.shared.flows[self.index].end];
        if now > heard + SILENCE_NS && !self.account.window.is_closed() {
            let what = format!("nothing arrived for 5 s, after {} bytes", self.account.total);
            return Err(self.shared.gone(self.index, what));
        }
        Ok(self.is_over(now))
    }

    fn is_over(&self, now: u64) -> bool {
        now > self.shared.timeline.close() + self.stragglers && self.account.window.is_closed()
    }

    fn finish(self) -> Result<Outcome, StreamError> {
        let (bytes, window, tcp) = self.account.close()?;
        let io_method = match self.spec.receive_by {
            ReceiveBy::Copy => "recv",
            ReceiveBy::Discard => "recv with MSG_TRUNC (not copied)",
        };
        Ok(Outcome {
            received: Some(Received {
                window,
                payload_bytes: bytes,
                messages: bytes / self.spec.message_bytes.get(),
                io_method: io_method.to_owned(),
                ..Received::default()
            }),
            flow: FlowCounts { sent_bytes: 0, received_bytes: bytes, tcp: Some(tcp) },
            ..Outcome::default()
        })
    }
}

impl Served for Receiver<'_> {
    type Common = Inbound;
    const WAITS_FOR: Interest = Interest::Read;

    fn socket(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }

    fn turn(&mut self, inbound: &mut Inbound) -> Result<Next, StreamError> {
        Ok(if self.take(inbound)? { Next::Over } else { Next::Ready })
    }

    fn look(&mut self, inbound: &mut Inbound) -> Result<bool, StreamError> {
        self.nothing(inbound)
    }

    fn finish(self, _: &Inbound) -> Result<Outcome, StreamError> {
        Receiver::finish(self)
    }
}

/// The running total of one flow, its window, and TCP's own account at the edges.
pub(crate) struct Account<'a> {
    pub(crate) total: u64,
    pub(crate) window: Window,
    /// The total is of what was taken out of the socket: at an edge, what waits in it has arrived as well. Without it, a
    /// reader kept from its core at an edge would move what arrived on one side of it to the other.
    takes: bool,
    shared: &'a Shared,
    stream: &'a TcpStream,
    before: Info,
    after: Info,
}

impl<'a> Account<'a> {
    pub(crate) fn new(shared: &'a Shared, stream: &'a TcpStream) -> Self {
        let window = match shared.job.volume() {
            None => Window::new(shared.timeline.clone()),
            Some(_) => Window::of_volume(shared.timeline.clone()),
        };
        Self { total: 0, window, takes: false, shared, stream, before: Info::default(), after: Info::default() }
    }

    /// Takes note of the total; returns the time.
    #[inline]
    pub(crate) fn sample(&mut self) -> Result<u64, StreamError> {
        let now = clock::now();
        self.sample_at(now)?;
        Ok(now)
    }

    #[inline]
    fn sample_at(&mut self, now: u64) -> Result<(), StreamError> {
        let waiting = if self.takes && self.window.is_due(now) { tcp::waiting(self.stream)? } else { 0 };
        match self.window.sample(now, self.total + waiting) {
            None => (),
            Some(Edge::Opened) => self.before = tcp::info(self.stream.as_fd())?,
            // Where one call outlasts the window, the account is that of the whole connection.
            Some(Edge::Closed) => self.after = tcp::info(self.stream.as_fd())?,
        }
        Ok(())
    }

    /// The stream has ended, perhaps a little before the window's close.
    pub(crate) fn end(&mut self) -> Result<(), StreamError> {
        if !self.window.is_closed() {
            self.window.close_at(clock::now(), self.total);
            self.after = tcp::info(self.stream.as_fd())?;
        }
        Ok(())
    }

    /// Its volume has ended, with a `first` byte and a `last` one.
    fn end_at(&mut self, first: u64, last: u64) -> Result<(), StreamError> {
        if !self.window.is_closed() {
            self.window.end_at(first, last, self.total);
            self.after = tcp::info(self.stream.as_fd())?;
        }
        Ok(())
    }

    /// The window's bytes, its length, and what TCP did in it.
    pub(crate) fn close(&self) -> Result<(u64, Nanos, TcpFlow), StreamError> {
        let (bytes, length) = self.window.counted().ok_or_else(|| {
            StreamError::InvalidRequest(format!(
                "no call ended within the window of {}; measure longer",
                self.shared.timeline.measure()
            ))
        })?;
        Ok((bytes, length, linerate_engine::tcp_flow(self.stream, &self.before, &self.after)))
    }
}

/// Where a sender's bytes come from.
enum Supply {
    File { file: File, length: usize },
    Buffer(Vec<u8>),
}

impl Supply {
    fn new(spec: &StreamTask) -> Result<Self, StreamError> {
        let bytes = spec.message_bytes.get();
        let by_file = match spec.send_by {
            SendBy::Auto => bytes >= SENDFILE_MINIMUM,
            SendBy::Sendfile => true,
            SendBy::Write => false,
        };
        let length = if by_file { (bytes as usize).min(SENDFILE_CALL) } else { bytes as usize };
        let mut payload = vec![0u8; length];
        rand::fill(&mut payload[..]);
        Ok(if by_file { Self::File { file: memory::file_of(&payload)?, length } } else { Self::Buffer(payload) })
    }

    fn io_method(&self) -> &'static str {
        match self {
            Self::File { .. } => "sendfile",
            Self::Buffer(_) => "write",
        }
    }

    /// Bytes of a call at the most.
    fn length(&self) -> usize {
        match self {
            Self::File { length, .. } => *length,
            Self::Buffer(payload) => payload.len(),
        }
    }

    #[inline]
    fn hand_over(&self, mut stream: &TcpStream, allowed: usize) -> io::Result<usize> {
        match self {
            Self::File { file, length } => tcp::send_file(stream, file, 0, (*length).min(allowed)),
            Self::Buffer(payload) => stream.write(&payload[..payload.len().min(allowed)]),
        }
    }
}

/// Holds a sender to its share of the offered rate.
struct Pacing {
    /// In units of one byte, so that bursts can be of any size.
    pace: Pace,
    burst: u64,
    /// The same of the first burst.
    first: u64,
    start: u64,
    /// Bytes that were given up.
    forgone: u64,
    most_behind: u64,
}

impl Pacing {
    fn new(shared: &Shared, index: usize, spec: &StreamTask) -> Option<Self> {
        let per_second = match spec.offered? {
            Offered::PayloadBps(rate) => rate.get(),
            Offered::MessagesPerS(rate) => rate.get().saturating_mul(spec.message_bytes.get()).saturating_mul(8),
        };
        let start = shared.timeline.start();
        let flow = shared.flows[index].hello.flow;
        let pace = Pace::new(Offered::PayloadBps(BitRate::per_second(per_second)), 1, start, flow, spec.net.flows);
        // Full segments, where the rate allows.
        let burst = pace.within(PACED_BURST_NS).min(spec.message_bytes.get());
        let most_behind = pace.within(CATCH_UP_NS).max(burst);
        Some(Self { pace, burst, first: burst, start, forgone: 0, most_behind })
    }

    /// Makes bursts so long that a thread which serves `flows` flows has one within [`PACED_BURST_NS`]. That of flow `number` of
    /// these comes a part of this later than that of the flow before it.
    fn take_turns(&mut self, number: u64, flows: u64) {
        let burst = self.pace.within((PACED_BURST_NS * flows).min(SHARED_BURST_NS));
        (self.burst, self.most_behind) = (burst, self.pace.within(CATCH_UP_NS) + burst);
        self.first = (burst * (1 + number) / flows).max(1);
    }

    /// When a burst is due, after `sent` bytes.
    fn due(&self, sent: u64) -> u64 {
        let next = sent + self.forgone;
        let burst = if next == 0 { self.first } else { self.burst };
        self.pace.due(next + burst - 1).max(self.start)
    }

    /// Waits until a burst is due; returns how many bytes may be sent. A stop is seen after 100 ms at most.
    fn wait(&mut self, sent: u64, meter: &Meter) -> usize {
        let (at, now) = (self.due(sent), clock::now());
        if at > now {
            clock::sleep_until(at.min(now + 100_000_000));
        }
        self.allowed(sent, at, clock::now(), meter)
    }

    /// Bytes that may be sent at `now`, after `sent`, where a burst was due `at`.
    fn allowed(&mut self, sent: u64, at: u64, now: u64, meter: &Meter) -> usize {
        meter.late(now.saturating_sub(at));
        let next = sent + self.forgone;
        let behind = self.pace.due_by(now).saturating_sub(next);
        self.forgone += behind.saturating_sub(self.most_behind);
        behind.min(self.most_behind) as usize
    }
}

/// A call ended for its timeout, so that the thread can look at the clock.
pub(crate) fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::{Flow, Link};
    use crate::hello::Hello;
    use crate::job::Job;
    use crate::window::Timeline;
    use linerate_engine::testing::assignment;
    use linerate_model::{Task, Timing, Transport, Warmup};
    use linerate_units::ByteCount;
    use std::net::TcpListener;

    /// A receiver's connection whose window opened and closed as said, nanoseconds from now, and the other end.
    fn connected(open: i64, close: i64) -> (Shared, StreamTask, TcpStream, TcpStream) {
        let spec = StreamTask::plain(Transport::Tcp, ByteCount::new(1_000));
        let timing = Timing::of(Nanos::new(0), Nanos::new((close - open).unsigned_abs()));
        let task = Task::Stream(spec.clone());
        let assignment = assignment(task, timing, Vec::new());
        let job = Job::check(&assignment).expect("valid");
        let timeline = job.timeline(clock::now().saturating_add_signed(open));
        let listener = TcpListener::bind("127.0.0.1:0").expect("listens");
        let peer = listener.local_addr().expect("listens");
        let sender = TcpStream::connect(peer).expect("connects");
        let (receiver, _) = listener.accept().expect("accepts");
        let hello = Hello { path: 0, flow: 0, backward: false };
        let link = Link::Tcp(receiver.try_clone().expect("dup"));
        let flow = Flow { end: 0, hello, client: false, peer, local: peer, link, round_trip_ns: 0 };
        (Shared::new(job, timeline, vec![flow], linerate_engine::AllowedPeers::default()), spec, sender, receiver)
    }

    #[test]
    fn of_a_window_that_was_missed_the_whole_counts_over_its_own_time() {
        let (shared, spec, mut sender, receiver) = connected(-2_000_000_000, -1_990_000_000);
        let sending = std::thread::spawn(move || while sender.write_all(&[0; 1_000]).is_ok() {});
        let received = receive(&shared, 0, &spec, &receiver).expect("it has a count").received.expect("it receives");
        assert!(received.payload_bytes > 0 && received.window.get() >= 2_000_000_000, "{received:?}");
        // Both descriptors must go: a connection that is only shut down keeps a sender waiting whose window is full.
        drop((receiver, shared));
        sending.join().expect("sends");
    }

    /// At 64 KiB in 40 ms a call of a mebibyte takes longer than the window.
    #[test]
    fn who_takes_little_is_sent_little_at_a_time() {
        let (mut shared, spec, sender, mut receiver) = connected(0, 300_000_000);
        let (warmup, measure) = (Warmup::Fixed(Nanos::from_millis(2_500)), Nanos::from_millis(300));
        shared.timeline = Timeline::new(clock::now(), linerate_model::Window { warmup, measure });
        let reading = std::thread::spawn(move || {
            let mut piece = vec![0; 64 << 10];
            while receiver.read(&mut piece).is_ok_and(|read| read > 0) {
                std::thread::sleep(std::time::Duration::from_millis(40));
            }
        });
        let spec = StreamTask { message_bytes: ByteCount::new(1 << 20), ..spec };
        let sent = send(&shared, 0, &spec, &sender).expect("calls ended within the window").sent.expect("it sends");
        assert!(sent.payload_bytes > 0 && sent.window.get() >= 200_000_000, "{sent:?}");
        // A call of a mebibyte would end with it, and a window would hold whole ones.
        assert!(!sent.payload_bytes.is_multiple_of(1 << 20), "{sent:?}");
        drop((sender, shared));
        reading.join().expect("reads");
    }

    #[test]
    fn bursts_of_flows_that_share_a_thread_follow_one_another() {
        let (shared, spec, _sender, _receiver) = connected(0, 300_000_000);
        let start = shared.timeline.start();
        // A byte takes a microsecond.
        let offered = Some(Offered::PayloadBps(BitRate::per_second(8_000_000)));
        let spec = StreamTask { offered, message_bytes: ByteCount::new(128 << 10), ..spec };
        let due: Vec<u64> = (0..4)
            .map(|number| {
                let mut pacing = Pacing::new(&shared, 0, &spec).expect("a rate");
                assert_eq!(pacing.due(0) - start, 249_000, "by itself, a burst of 250 bytes");
                pacing.take_turns(number, 4);
                assert_eq!(pacing.due(1) - start, 1_000_000, "four times as many, after the first");
                let (at, now) = (pacing.due(0), start + 2_000_000);
                assert_eq!(pacing.allowed(0, at, now, &shared.meters[0]), 2_001, "what is due by then");
                at - start
            })
            .collect();
        assert_eq!(due, [249_000, 499_000, 749_000, 999_000]);
        let mut slow = Pacing::new(&shared, 0, &spec).expect("a rate");
        slow.take_turns(0, 4_096);
        assert_eq!(slow.due(1) - start, 100_000_000, "no flow rests for longer");
    }

    #[test]
    fn what_waits_in_the_socket_at_an_edge_has_arrived() {
        let (shared, _, mut sender, receiver) = connected(0, 300_000_000);
        let mut account = Account { takes: true, ..Account::new(&shared, &receiver) };
        sender.write_all(&[0; 1_000]).expect("sends");
        while tcp::waiting(&receiver).expect("counts") < 1_000 {}
        account.sample_at(shared.timeline.open()).expect("opens: 1,000 wait");
        let mut buffer = [0; 1_000];
        (&receiver).read_exact(&mut buffer).expect("reads");
        account.total = 1_000;
        account.sample_at(shared.timeline.open() + 1).expect("samples");
        sender.write_all(&[0; 500]).expect("sends");
        while tcp::waiting(&receiver).expect("counts") < 500 {}
        account.sample_at(shared.timeline.close()).expect("closes: 500 wait");
        assert_eq!(account.close().expect("counted").0, 500);
    }
}
