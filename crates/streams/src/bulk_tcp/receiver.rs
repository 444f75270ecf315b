//! A receiver of bulk data over TCP.

use super::naps::Naps;
use super::{Account, is_timeout, streams};
use crate::budget::Budget;
use crate::error::StreamError;
use crate::flow::{Outcome, Shared, Wire};
use crate::options::CALL_TIMEOUT;
use crate::spread::{Next, Served, edge_after, serve};
use linerate_engine::PEER_GONE;
use linerate_model::{FlowCounts, ReceiveBy, Received, StreamTask};
use linerate_sys::epoll::Interest;
use linerate_sys::socket::wait_readable;
use linerate_sys::{clock, tcp};
use std::io::Read as _;
use std::net::TcpStream;
use std::os::fd::{AsFd as _, BorrowedFd};

/// The receiver waits for the stream's end so long after its window; what a deep queue still holds is left to it.
const END_NS: u64 = 1_000_000_000;
/// Stays in a core's L2 cache: twice the rate of a buffer that does not.
const RECEIVE_BUFFER: usize = 128 << 10;
/// Uncopied, only the number of calls counts.
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
            return Err(StreamError::Stopped);
        }
        // On a slow path a read may wait past an edge of the window, for each flow until another time.
        let now = clock::now();
        let to_edge = edge_after(&shared.timeline, now).saturating_sub(now);
        let is_quiet = to_edge <= CALL_TIMEOUT.as_nanos() as u64 && !wait_readable(&[stream.as_fd()], to_edge)?;
        let is_over = if is_quiet { receiver.nothing(&inbound)? } else { receiver.take(&mut inbound)? };
        if is_over {
            return receiver.finish();
        }
    }
}

/// Receives flows `indices` until their senders end them, on the calling thread.
pub(crate) fn receive_all(shared: &Shared, indices: &[usize], spec: &StreamTask) -> Result<Vec<Outcome>, StreamError> {
    // Their thread is woken for several of them at a time, and does not wait in a read that its timeout ends.
    let receiver = |(index, stream)| Ok(Receiver { naps: None, ..Receiver::new(shared, index, spec, stream)? });
    let flows = streams(shared, indices)?.map(receiver).collect::<Result<_, StreamError>>()?;
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
    /// None of a volume, whose last byte is to be seen when it comes, and of flows that share a thread.
    naps: Option<Naps>,
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
    fn new(shared: &'a Shared, index: usize, spec: &'a StreamTask, stream: &'a TcpStream) -> Result<Self, StreamError> {
        let account = Account::of_receiver(shared, stream)?;
        // Who goes on until it is told to end leaves nothing to be waited for.
        let stragglers = if shared.wire == Wire::Own { END_NS } else { 0 };
        let awaited = |_| Awaited { left: shared.budget(index), first: u64::MAX, last: shared.timeline.start() };
        let volume = shared.job.volume().map(awaited);
        let by_bytes = volume.is_some() || matches!(shared.wire, Wire::Iperf3 { by_bytes: true, .. });
        let naps = (!by_bytes).then(|| Naps::new(shared.wire));
        Ok(Self { shared, index, spec, stream, account, stragglers, volume, naps })
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
                // The sender may end a little earlier than this end's window, or have started earlier. Less than half of the window
                // says little of the rate.
                let now = account.sample()?;
                let timeline = &self.shared.timeline;
                let is_enough = now >= timeline.open().saturating_add(timeline.measure().get() / 2);
                if self.volume.is_none() && self.shared.wire == Wire::Own && is_enough && self.shared.may_end(now) {
                    account.end()?;
                }
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
        if let Some(naps) = &mut self.naps {
            naps.took(self.stream, counted, now)?;
        }
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
        if now > heard + PEER_GONE.as_nanos() as u64 && !self.account.window.is_closed() {
            let (seconds, bytes) = (PEER_GONE.as_secs(), self.account.total);
            let what = format!("nothing arrived for {seconds} s, after {bytes} bytes");
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
