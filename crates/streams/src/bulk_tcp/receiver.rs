//! A receiver of bulk data over TCP.

use super::low_water::LowWater;
use super::{Account, Connections, set_nonblocking};
use crate::budget::Budget;
use crate::error::StreamError;
use crate::flow::{Outcome, Shared, Wire};
use crate::options::CALL_TIMEOUT;
use crate::spread::{Next, Served, edge_after, serve};
use linerate_engine::{PEER_GONE, Stopped};
use linerate_model::{FlowCounts, ReceiveBy, ReceiveWake, Received, StreamTask};
use linerate_sys::epoll::Interest;
use linerate_sys::handle::{AsSocket as _, BorrowedSocket};
use linerate_sys::socket::is_timeout;
use linerate_sys::socket::wait_readable;
use linerate_sys::{clock, tcp};
use std::io::Read as _;
use std::net::TcpStream;

/// Longest wait for the stream's end after the window. Bytes left in a deep queue after that are not read.
const END_NS: u64 = 1_000_000_000;
/// Buffer size. It stays in a core's L2 cache, which doubles the rate.
const RECEIVE_BUFFER: usize = 128 << 10;
/// Bytes that one call discards. Without copying, only the number of calls matters.
const DISCARD_CALL: usize = 1 << 20;

/// Receives until the sender ends the stream, on a thread of its own.
pub(crate) fn receive(
    shared: &Shared,
    index: usize,
    spec: &StreamTask,
    stream: &TcpStream,
) -> Result<Outcome, StreamError> {
    let mut inbound = Inbound::new(shared);
    let mut receiver = Receiver::new(shared, index, spec, stream)?;
    loop {
        if shared.stop.is_set() {
            return Err(Stopped.into());
        }
        // On a slow path a read could wait past an edge of the window, and each flow would see it at another time.
        let now = clock::now();
        let to_edge = edge_after(&shared.timeline, now).saturating_sub(now);
        let is_quiet = to_edge <= CALL_TIMEOUT.as_nanos() as u64 && !wait_readable(&[stream.as_socket()], to_edge)?;
        let is_over = if is_quiet { receiver.check_time(&inbound)? } else { receiver.take(&mut inbound)? };
        if is_over {
            return receiver.finish();
        }
    }
}

/// Receives all `connections` until their senders end them, on the calling thread.
pub(crate) fn receive_all(
    shared: &Shared,
    connections: &Connections<'_>,
    spec: &StreamTask,
) -> Result<Vec<Outcome>, StreamError> {
    set_nonblocking(connections)?;
    let mut flows = Vec::new();
    for (index, stream) in connections {
        // The thread is woken for several flows at a time, and does not wait in a read that its timeout ends.
        flows.push(Receiver { low_water: None, ..Receiver::new(shared, *index, spec, stream)? });
    }
    serve(shared, flows, &mut Inbound::new(shared), clock::now())
}

/// State that the receivers of one thread share.
struct Inbound {
    buffer: Vec<u8>,
    /// Time of the last arrival at each end of this host. A single flow may be silent for long on a busy path.
    heard: Vec<u64>,
}

impl Inbound {
    fn new(shared: &Shared) -> Self {
        let ends = shared.flows.iter().map(|flow| flow.end + 1).max().unwrap_or_default();
        Self { buffer: vec![0; RECEIVE_BUFFER], heard: vec![shared.timeline.start(); ends] }
    }
}

/// Receiving end of a flow.
struct Receiver<'a> {
    shared: &'a Shared,
    index: usize,
    spec: &'a StreamTask,
    stream: &'a TcpStream,
    account: Account<'a>,
    /// Time after the window in which stragglers are received.
    straggler_time: u64,
    /// Volume of the stream, or `None` if the window ends by time.
    volume: Option<PendingVolume<'a>>,
    /// Low-water mark. `None` for a volume, whose last byte must be seen on arrival, for flows that share a thread, and if
    /// the receiver is to wake up each time.
    low_water: Option<LowWater>,
}

/// Volume that is being received. It ends with the stream or, if the sender does not mark the end, with its last byte.
struct PendingVolume<'a> {
    budget: Option<&'a Budget>,
    /// Time of the first arrival; beyond any clock before that.
    first: u64,
    /// Time of the last arrival.
    last: u64,
}

impl PendingVolume<'_> {
    /// Takes `bytes` that have arrived while the window `is_open`. Returns the number of bytes that count.
    fn take(&self, bytes: u64, is_open: bool) -> u64 {
        let Some(budget) = self.budget.filter(|_| is_open) else { return bytes };
        let counted = budget.take(bytes);
        budget.settle(counted, counted);
        counted
    }

    /// Records that `bytes` counted at `now`. Returns whether the whole volume has arrived.
    fn record(&mut self, bytes: u64, now: u64) -> bool {
        if bytes > 0 {
            self.first = self.first.min(now);
            self.last = now;
        }
        self.budget.is_some_and(Budget::is_spent)
    }
}

impl<'a> Receiver<'a> {
    fn new(shared: &'a Shared, index: usize, spec: &'a StreamTask, stream: &'a TcpStream) -> Result<Self, StreamError> {
        let account = Account::of_receiver(shared, stream)?;
        // A sender that continues until it is told to stop leaves no stragglers to wait for.
        let straggler_time = if shared.wire.marks_end() { END_NS } else { 0 };
        let volume = shared.job.volume().map(|_| PendingVolume {
            budget: shared.budget(index),
            first: u64::MAX,
            last: shared.timeline.start(),
        });
        let by_bytes = volume.is_some() || matches!(shared.wire, Wire::Unphased { by_bytes: true, .. });
        let is_batched = !by_bytes && spec.receive_wake == ReceiveWake::Batched;
        let low_water = is_batched.then(|| LowWater::new(shared.wire));
        Ok(Self { shared, index, spec, stream, account, straggler_time, volume, low_water })
    }

    /// Receives in one call. Returns whether the flow is over.
    #[inline]
    fn take(&mut self, inbound: &mut Inbound) -> Result<bool, StreamError> {
        let mut reader = self.stream;
        let received = match self.spec.receive_by {
            ReceiveBy::Copy => reader.read(&mut inbound.buffer),
            ReceiveBy::Discard => tcp::discard(reader, DISCARD_CALL),
        };
        let mut counted = match received {
            Ok(0) => return self.stream_ended(),
            Ok(bytes) => bytes as u64,
            Err(error) if is_timeout(&error) => return self.check_time(inbound),
            Err(error) => {
                self.account.sample()?;
                if self.account.window.is_closed() {
                    return Ok(true);
                }
                let what = format!("{error}, after {} bytes had arrived", self.account.total);
                return Err(self.shared.gone(self.index, what));
            }
        };
        let account = &mut self.account;
        if let Some(volume) = &self.volume {
            counted = volume.take(counted, account.window.is_open());
        }
        account.total += counted;
        let now = account.sample()?;
        let heard = &mut inbound.heard[self.shared.flows[self.index].end];
        *heard = now.max(*heard);
        self.shared.meters[self.index].received(account.total, 0, 0);
        if let Some(low_water) = &mut self.low_water {
            low_water.received(self.stream, counted, now)?;
        }
        if let Some(volume) = &mut self.volume
            && volume.record(counted, now)
        {
            self.shared.wake_receivers(self.index);
            return self.volume_ended();
        }
        Ok(self.is_over(*heard))
    }

    /// Handles the end of the stream. Returns whether the flow is over.
    fn stream_ended(&mut self) -> Result<bool, StreamError> {
        let account = &mut self.account;
        let now = account.sample()?;
        let timeline = &self.shared.timeline;
        // The sender may end a little before this end's window, or have started earlier. Less than half of the window
        // shows too little of the rate.
        let is_enough = now >= timeline.open().saturating_add(timeline.measure().get() / 2);
        if self.volume.is_none() && self.shared.wire.marks_end() && is_enough && self.shared.may_end(now) {
            account.end()?;
        }
        if account.window.is_closed() {
            return Ok(true);
        }
        if self.volume.is_some() {
            return self.volume_ended();
        }
        let what = format!("it ended the stream after {} bytes had arrived", account.total);
        Err(self.shared.gone(self.index, what))
    }

    /// Ends a flow whose part of the volume has arrived. Returns that the flow is over.
    fn volume_ended(&mut self) -> Result<bool, StreamError> {
        if let Some(PendingVolume { first, last, .. }) = self.volume {
            self.account.end_at(first, last)?;
        }
        self.shared.finished();
        Ok(true)
    }

    /// Checks the time while nothing arrives. Returns whether the flow is over.
    fn check_time(&mut self, inbound: &Inbound) -> Result<bool, StreamError> {
        let now = self.account.sample()?;
        if let Some(volume) = &mut self.volume
            && self.account.window.is_open()
            && volume.record(0, now)
        {
            return self.volume_ended();
        }
        let heard = inbound.heard[self.shared.flows[self.index].end];
        if now > heard + PEER_GONE.as_nanos() as u64 && !self.account.window.is_closed() {
            let seconds = PEER_GONE.as_secs();
            let bytes = self.account.total;
            let what = format!("nothing arrived for {seconds} s, after {bytes} bytes");
            return Err(self.shared.gone(self.index, what));
        }
        Ok(self.is_over(now))
    }

    fn is_over(&self, now: u64) -> bool {
        now > self.shared.timeline.close() + self.straggler_time && self.account.window.is_closed()
    }

    fn finish(self) -> Result<Outcome, StreamError> {
        let (bytes, window, tcp) = self.account.close()?;
        let io_method = match self.spec.receive_by {
            ReceiveBy::Copy => "recv",
            ReceiveBy::Discard => tcp::DISCARD,
        };
        Ok(Outcome {
            received: Some(Received {
                window,
                payload_bytes: bytes,
                messages: bytes / self.spec.message_bytes.get(),
                io_method: io_method.to_owned(),
                ..Received::default()
            }),
            flow: FlowCounts { sent_bytes: 0, received_bytes: bytes, tcp },
            ..Outcome::default()
        })
    }
}

impl Served for Receiver<'_> {
    type Common = Inbound;
    const WAITS_FOR: Interest = Interest::Read;

    fn socket(&self) -> BorrowedSocket<'_> {
        self.stream.as_socket()
    }

    fn turn(&mut self, inbound: &mut Inbound) -> Result<Next, StreamError> {
        Ok(if self.take(inbound)? { Next::Over } else { Next::Ready })
    }

    fn look(&mut self, inbound: &mut Inbound) -> Result<bool, StreamError> {
        self.check_time(inbound)
    }

    fn finish(self, _: &Inbound) -> Result<Outcome, StreamError> {
        Receiver::finish(self)
    }
}
