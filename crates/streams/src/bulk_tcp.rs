//! Bulk data over TCP: one stream from the start to the end of the cool-down, counted over each end's own window.

use crate::error::StreamError;
use crate::flow::{Outcome, Shared, Wire};
use crate::meter::Meter;
use crate::window::{Edge, Window};
use linerate_model::{FlowCounts, Offered, ReceiveBy, Received, SendBy, Sent, StreamTask, TcpFlow};
use linerate_pace::Pace;
use linerate_sys::tcp::{self, Info};
use linerate_sys::{clock, memory};
use linerate_units::{BitRate, Nanos};
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsFd as _;
use std::time::Duration;

/// The sender goes on for so long after its window, for the receiver's closes a little later or earlier.
const COOL_DOWN_NS: u64 = 250_000_000;
/// The receiver waits for the stream's end so long after its window; what a deep queue still holds is left to it.
const END_NS: u64 = 1_000_000_000;
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
/// Stays in a core's L2 cache: twice the rate of a buffer that does not.
const RECEIVE_BUFFER: usize = 128 << 10;
/// Uncopied, only the number of calls counts.
const DISCARD_CALL: usize = 1 << 20;
/// A paced sender workers over what is due within this, so that the load is even.
const PACED_BURST_NS: u64 = 250_000;
/// A paced sender that is further behind gives up the difference: the network's load must not exceed what was asked for
/// for long.
const CATCH_UP_NS: u64 = 20_000_000;

/// Sends until the cool-down is over.
pub(crate) fn send(
    shared: &Shared,
    index: usize,
    spec: &StreamTask,
    stream: &TcpStream,
) -> Result<Outcome, StreamError> {
    let timeline = &shared.timeline;
    let mut supply = Supply::new(spec)?;
    let mut pacing = Pacing::new(shared, index, spec);
    let mut account = Account::new(shared, stream);
    let meter = &shared.meters[index];
    shared.stop.sleep_until(timeline.start());
    let wait = Duration::from_nanos(LONG_CALL_NS);
    stream.set_write_timeout(Some(wait)).map_err(StreamError::socket("setting a timeout"))?;
    let (mut call, mut before) = (usize::MAX, clock::now());
    loop {
        if shared.stop.is_set() {
            return Err(StreamError::Stopped);
        }
        let allowed = pacing.as_mut().map_or(usize::MAX, |pacing| pacing.wait(account.total, meter));
        let sent_before = account.total;
        match supply.hand_over(stream, allowed.min(call)) {
            Ok(sent) => account.total += sent as u64,
            Err(error) if is_timeout(&error) => (),
            Err(error) => {
                // The receiver may be done a little earlier than this end knew that it is.
                account.sample()?;
                if account.window.is_closed() {
                    break;
                }
                return Err(shared.gone(index, format!("{error}, after {} bytes were sent", account.total)));
            }
        }
        let now = account.sample()?;
        meter.sent(account.total, 0);
        if now >= timeline.close() + COOL_DOWN_NS && account.window.is_closed() {
            break;
        }
        let (sent, took) = (account.total - sent_before, now - before);
        call = match took > LONG_CALL_NS {
            true => ((sent * (LONG_CALL_NS / 2) / took) as usize).max(SHORTEST_CALL),
            false => call.saturating_mul(2),
        };
        before = now;
    }
    // An error here means that the receiver has closed already.
    let _ = stream.shutdown(Shutdown::Write);
    let (bytes, window, tcp) = account.close()?;
    let message = spec.message_bytes.get();
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

/// Receives until the sender ends the stream.
pub(crate) fn receive(
    shared: &Shared,
    index: usize,
    spec: &StreamTask,
    stream: &TcpStream,
) -> Result<Outcome, StreamError> {
    let mut buffer = vec![0; RECEIVE_BUFFER];
    let mut account = Account { takes: true, ..Account::new(shared, stream) };
    let mut heard = shared.timeline.start();
    // Who goes on until it is told to end leaves nothing to be waited for.
    let stragglers = if shared.wire == Wire::Own { END_NS } else { 0 };
    let mut reader = stream;
    loop {
        if shared.stop.is_set() {
            return Err(StreamError::Stopped);
        }
        let taken = match spec.receive_by {
            ReceiveBy::Copy => reader.read(&mut buffer),
            ReceiveBy::Discard => tcp::discard(stream, DISCARD_CALL),
        };
        match taken {
            Ok(0) => {
                // The sender may be done a little earlier than this end knew that it is.
                account.sample()?;
                if account.window.is_closed() {
                    break;
                }
                return Err(
                    shared.gone(index, format!("it ended the stream after {} bytes had arrived", account.total))
                );
            }
            Ok(taken) => account.total += taken as u64,
            Err(error) if is_timeout(&error) => {
                let now = account.sample()?;
                if now > heard + SILENCE_NS && !account.window.is_closed() {
                    return Err(shared.gone(index, format!("nothing arrived for 5 s, after {} bytes", account.total)));
                }
                if now > shared.timeline.close() + stragglers && account.window.is_closed() {
                    break;
                }
                continue;
            }
            Err(error) => {
                account.sample()?;
                if account.window.is_closed() {
                    break;
                }
                return Err(shared.gone(index, format!("{error}, after {} bytes had arrived", account.total)));
            }
        }
        heard = account.sample()?.max(heard);
        shared.meters[index].received(account.total, 0, 0);
        if heard > shared.timeline.close() + stragglers && account.window.is_closed() {
            break;
        }
    }
    let (bytes, window, tcp) = account.close()?;
    let io_method = match spec.receive_by {
        ReceiveBy::Copy => "recv",
        ReceiveBy::Discard => "recv with MSG_TRUNC (not copied)",
    };
    Ok(Outcome {
        received: Some(Received {
            window,
            payload_bytes: bytes,
            messages: bytes / spec.message_bytes.get(),
            io_method: io_method.to_owned(),
            ..Received::default()
        }),
        flow: FlowCounts { sent_bytes: 0, received_bytes: bytes, tcp: Some(tcp) },
        ..Outcome::default()
    })
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
        let window = Window::new(shared.timeline.clone());
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

    #[inline]
    fn hand_over(&mut self, mut stream: &TcpStream, allowed: usize) -> io::Result<usize> {
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
        Some(Self { pace, burst, start, forgone: 0, most_behind: pace.within(CATCH_UP_NS).max(burst) })
    }

    /// Waits until a burst is due; returns how many bytes may be sent. A stop is seen after 100 ms at most.
    fn wait(&mut self, sent: u64, meter: &Meter) -> usize {
        let next = sent + self.forgone;
        let at = self.pace.due(next + self.burst - 1).max(self.start);
        let now = clock::now();
        if at > now {
            clock::sleep_until(at.min(now + 100_000_000));
        }
        let now = clock::now();
        meter.late(now.saturating_sub(at));
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
