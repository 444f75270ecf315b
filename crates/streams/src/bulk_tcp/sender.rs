//! A sender of bulk data over TCP.

use super::pacing::Pacing;
use super::{Account, is_timeout, streams};
use crate::budget::Budget;
use crate::error::StreamError;
use crate::flow::{Outcome, Shared, Wire};
use crate::spread::{Next, Served, serve};
use linerate_model::{FlowCounts, SendBy, Sent, StreamTask};
use linerate_sys::epoll::Interest;
use linerate_sys::{clock, memory, tcp};
use std::fs::File;
use std::io::{self, Write as _};
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::time::Duration;

/// The sender goes on for so long after its window, for the receiver's closes a little later or earlier.
const COOL_DOWN_NS: u64 = 250_000_000;
/// A sender that has handed over its volume looks this often whether the peer has acknowledged all of it.
const REST_NS: u64 = 1_000_000;
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
