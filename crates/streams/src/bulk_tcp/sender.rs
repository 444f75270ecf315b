//! A sender of bulk data over TCP.

use super::pacing::Pacing;
use super::{Account, Connections, set_nonblocking};
use crate::budget::Budget;
use crate::error::StreamError;
use crate::flow::{Outcome, Shared};
use crate::spread::{Next, Served, serve};
use linerate_engine::{Stopped, failed};
use linerate_model::{FlowCounts, SendBy, Sent, StreamTask};
use linerate_sys::epoll::Interest;
use linerate_sys::handle::{AsSocket as _, BorrowedSocket};
use linerate_sys::socket::is_timeout;
use linerate_sys::{clock, memory, tcp};
use std::fs::File;
use std::io::{self, Write as _};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

/// Time for which the sender goes on after its window, because the receiver's closes a little later or earlier.
const COOL_DOWN_NS: u64 = 250_000_000;
/// Interval of looking whether the peer has acknowledged the whole volume.
const PAUSE_NS: u64 = 1_000_000;
/// Bytes of one `sendfile` call. The kernel cuts it into pieces of 64 KiB in any case.
const SENDFILE_CALL: usize = 1 << 20;
/// Longest wait of a call, for each of the kernel's pieces. The window's edges are seen only between calls, so a call
/// that took longer is followed by a shorter one that should take half of this.
const LONG_CALL_NS: u64 = 20_000_000;
/// Smallest call.
const SHORTEST_CALL: usize = 16 << 10;
/// Most bytes that a flow on a shared thread hands over before the next flow has its turn.
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
    stream.set_write_timeout(Some(wait)).map_err(failed("setting a timeout"))?;
    let mut max_bytes = usize::MAX;
    let mut last_call = clock::now();
    loop {
        if shared.stop.is_set() {
            return Err(Stopped.into());
        }
        let allowed = sender.wait();
        let total = sender.account.total;
        let Some(now) = sender.send(&supply, allowed.min(max_bytes))? else { break };
        let duration = now - last_call;
        max_bytes = if duration > LONG_CALL_NS {
            let bytes = sender.account.total - total;
            ((bytes * (LONG_CALL_NS / 2) / duration) as usize).max(SHORTEST_CALL)
        } else {
            max_bytes.saturating_mul(2)
        };
        last_call = now;
    }
    sender.finish(&supply)
}

/// Sends all `connections` until the cool-down is over, on the calling thread.
pub(crate) fn send_all(
    shared: &Shared,
    connections: &Connections<'_>,
    spec: &StreamTask,
) -> Result<Vec<Outcome>, StreamError> {
    set_nonblocking(connections)?;
    let mut flows = Vec::new();
    for ((index, stream), number) in connections.iter().zip(0..) {
        let mut sender = Sender::new(shared, *index, spec, stream);
        if let Some(pacing) = &mut sender.pacing {
            pacing.take_turns(number, connections.len() as u64);
        }
        flows.push(sender);
    }
    serve(shared, flows, &mut Supply::new(spec)?, shared.timeline.start())
}

/// Sending end of a flow.
struct Sender<'a> {
    shared: &'a Shared,
    index: usize,
    spec: &'a StreamTask,
    stream: &'a TcpStream,
    pacing: Option<Pacing>,
    account: Account<'a>,
    /// Remaining volume, or `None` if the window ends by time.
    budget: Option<&'a Budget>,
    /// Whether nothing is left to hand over.
    paused: bool,
}

impl<'a> Sender<'a> {
    fn new(shared: &'a Shared, index: usize, spec: &'a StreamTask, stream: &'a TcpStream) -> Self {
        Self {
            shared,
            index,
            spec,
            stream,
            pacing: Pacing::new(shared, index, spec),
            account: Account::new(shared, stream),
            budget: shared.budget(index),
            paused: false,
        }
    }

    /// Waits until something is due. Returns the number of bytes that may be sent.
    fn wait(&mut self) -> usize {
        if self.paused {
            self.shared.stop.sleep_until(clock::now() + PAUSE_NS);
            return usize::MAX;
        }
        let meter = &self.shared.meters[self.index];
        self.pacing.as_mut().map_or(usize::MAX, |pacing| pacing.wait(self.account.total, meter))
    }

    /// Hands over up to `allowed` bytes in one call, within the volume. Returns the time, or `None` if the flow is
    /// over.
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
        self.paused = taken == 0;
        if self.paused {
            return self.check_acknowledged(budget);
        }
        let before = self.account.total;
        let time = self.hand_over(supply, taken as usize);
        budget.settle(taken, self.account.total - before);
        time
    }

    /// Ends the flow if the whole volume is handed over and the peer has acknowledged the part of this flow.
    ///
    /// Returns the time, or `None` if the flow is over.
    fn check_acknowledged(&mut self, budget: &Budget) -> Result<Option<u64>, StreamError> {
        // A system that does not count them sends the rest after the connection is closed.
        if budget.is_spent() && tcp::unacknowledged(self.stream)?.is_none_or(|bytes| bytes == 0) {
            self.account.end()?;
            self.shared.finished();
            return Ok(None);
        }
        if let Some(error) = self.stream.take_error().map_err(failed("getsockopt(SO_ERROR)"))? {
            let what = format!("{error}, before all {} bytes were acknowledged", self.account.total);
            return Err(self.shared.gone(self.index, what));
        }
        let now = self.account.sample()?;
        Ok((!self.is_over(now)).then_some(now))
    }

    /// Hands over up to `allowed` bytes in one call. Returns the time, or `None` if the flow is over.
    #[inline]
    fn hand_over(&mut self, supply: &Supply, allowed: usize) -> Result<Option<u64>, StreamError> {
        let account = &mut self.account;
        match supply.hand_over(self.stream, allowed) {
            Ok(sent) => account.total += sent as u64,
            Err(error) if is_timeout(&error) => (),
            Err(error) => {
                // The receiver may have ended a little before this end knew.
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
        // Servers that end the test themselves fail if a connection ends before. An error here means that the receiver
        // has closed already.
        if self.shared.wire.marks_end() {
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
            flow: FlowCounts { sent_bytes: bytes, received_bytes: 0, tcp },
            ..Outcome::default()
        })
    }
}

impl Served for Sender<'_> {
    type Common = Supply;
    const WAITS_FOR: Interest = Interest::Write;

    fn socket(&self) -> BorrowedSocket<'_> {
        self.stream.as_socket()
    }

    fn turn(&mut self, supply: &mut Supply) -> Result<Next, StreamError> {
        let before = self.account.total;
        let max_bytes = supply.length().min(TURN);
        let allowed = match &mut self.pacing {
            None => max_bytes,
            Some(_) if self.paused => max_bytes,
            Some(pacing) => {
                let at = pacing.due(before);
                let now = clock::now();
                if at > now {
                    return Ok(Next::At(at));
                }
                pacing.allowed(before, at, now, &self.shared.meters[self.index]).min(max_bytes)
            }
        };
        if self.send(supply, allowed)?.is_none() {
            return Ok(Next::Over);
        }
        if self.paused {
            return Ok(Next::At(clock::now() + PAUSE_NS));
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

/// Source of a sender's bytes.
enum Supply {
    File { file: File, length: usize },
    Buffer(Vec<u8>),
}

impl Supply {
    fn new(spec: &StreamTask) -> Result<Self, StreamError> {
        let bytes = spec.message_bytes.get();
        let by_file = spec.send_by == SendBy::Sendfile;
        let length = if by_file { (bytes as usize).min(SENDFILE_CALL) } else { bytes as usize };
        let mut payload = vec![0u8; length];
        rand::fill(&mut payload[..]);
        Ok(if by_file { Self::File { file: memory::file_of(&payload)?, length } } else { Self::Buffer(payload) })
    }

    fn io_method(&self) -> &'static str {
        match self {
            Self::File { .. } => tcp::SEND_FILE,
            Self::Buffer(_) => "write",
        }
    }

    /// Returns the most bytes of one call.
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
