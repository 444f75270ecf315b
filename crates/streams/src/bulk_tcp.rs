//! Bulk data over TCP: streams from the start to the end of the cool-down, counted over each end's own window.

mod low_water;
mod pacing;
mod receiver;
mod sender;

pub(crate) use receiver::{receive, receive_all};
pub(crate) use sender::{send, send_all};

use crate::error::StreamError;
use crate::flow::Shared;
use crate::window::{Edge, Window};
use linerate_engine::{SocketError, failed};
use linerate_model::TcpFlow;
use linerate_sys::clock;
use linerate_sys::handle::AsSocket as _;
use linerate_sys::tcp::{self, Info};
use linerate_units::Nanos;
use std::net::TcpStream;

/// Connections of flows, with the indices of the flows.
pub(crate) type Connections<'a> = [(usize, &'a TcpStream)];

/// Makes the calls of all `connections` return at once.
fn set_nonblocking(connections: &Connections<'_>) -> Result<(), StreamError> {
    for (_, stream) in connections {
        stream.set_nonblocking(true).map_err(failed("fcntl(O_NONBLOCK)"))?;
    }
    Ok(())
}

/// Longest time of a TCP_INFO reading whose thread kept its core meanwhile.
const READING_NS: u64 = 20_000;
/// Readings at an edge, of which the shortest counts.
const READINGS: usize = 5;

/// Running total of one flow, its window, and TCP_INFO at the edges.
pub(crate) struct Account<'a> {
    pub(crate) total: u64,
    pub(crate) window: Window,
    /// Receivers: bytes that TCP had received beyond the total when the account began. At an edge, TCP's count is the
    /// total, because bytes in the socket buffer have arrived, however late their reader is.
    received_before: Option<u64>,
    shared: &'a Shared,
    stream: &'a TcpStream,
    /// State of the connection at the edges of the window, if the system reports it.
    before: Option<Info>,
    after: Option<Info>,
}

impl<'a> Account<'a> {
    pub(crate) fn new(shared: &'a Shared, stream: &'a TcpStream) -> Self {
        let window = match shared.job.volume() {
            None => Window::new(shared.timeline.clone()),
            Some(_) => Window::of_volume(shared.timeline.clone()),
        };
        Self { total: 0, window, received_before: None, shared, stream, before: None, after: None }
    }

    /// Creates the account of a receiver that has read nothing from its socket yet.
    fn of_receiver(shared: &'a Shared, stream: &'a TcpStream) -> Result<Self, StreamError> {
        let waiting = tcp::waiting(stream)?;
        let info = tcp::info(stream.as_socket())?;
        let received_before = info.map(|info| info.bytes_received.saturating_sub(waiting));
        Ok(Self { received_before, ..Self::new(shared, stream) })
    }

    /// Samples the total. Returns the time.
    #[inline]
    pub(crate) fn sample(&mut self) -> Result<u64, StreamError> {
        let now = clock::now();
        self.sample_at(now)?;
        Ok(now)
    }

    #[inline]
    fn sample_at(&mut self, now: u64) -> Result<(), StreamError> {
        if !self.window.is_due(now) {
            // Before the window this keeps the last total.
            self.window.sample(now, self.total);
            return Ok(());
        }
        let (read_at, info) = shortest(clock::now, || tcp::info(self.stream.as_socket()))?;
        // A time from the caller lies at the edge itself.
        let at = now.max(read_at);
        let arrived = self.received_before.zip(info).map(|(before, info)| info.bytes_received.saturating_sub(before));
        let total = arrived.unwrap_or(self.total);
        match self.window.sample(at, total) {
            None => (),
            Some(Edge::Opened) => self.before = info,
            // If one call outlasts the window, the account is that of the whole connection.
            Some(Edge::Closed) => self.after = info,
        }
        Ok(())
    }

    /// Closes the window of a stream that has ended, perhaps a little early.
    pub(crate) fn end(&mut self) -> Result<(), StreamError> {
        if !self.window.is_closed() {
            self.window.close_at(clock::now(), self.total);
            self.after = tcp::info(self.stream.as_socket())?;
        }
        Ok(())
    }

    /// Closes the window of a volume whose `first` and `last` byte were moved at these times.
    fn end_at(&mut self, first: u64, last: u64) -> Result<(), StreamError> {
        if !self.window.is_closed() {
            self.window.end_at(first, last, self.total);
            self.after = tcp::info(self.stream.as_socket())?;
        }
        Ok(())
    }

    /// Returns the window's bytes, its length, and the TCP state of the flow.
    ///
    /// TCP counts bytes received in order. Bytes that had arrived before the window and waited for a lost segment do
    /// not count in the window.
    pub(crate) fn close(&self) -> Result<(u64, Nanos, Option<TcpFlow>), StreamError> {
        let (mut bytes, length) = self.window.counted().ok_or_else(|| {
            SocketError::InvalidRequest(format!(
                "no call ended within the window of {}; measure longer",
                self.shared.timeline.measure()
            ))
        })?;
        if let Some(received_before) = self.received_before
            && let Some((opened, closed)) = self.window.totals()
            && let (Some(before), Some(after)) = (&self.before, &self.after)
            && before.bytes_received == received_before + opened
            && after.bytes_received == received_before + closed
        {
            bytes = bytes.min(arrived_at_most(before, after).unwrap_or(u64::MAX));
        }
        let edges = self.before.as_ref().zip(self.after.as_ref());
        let flow = edges.map(|(before, after)| linerate_engine::tcp_flow(self.stream, before, after));
        Ok((bytes, length, flow))
    }
}

/// Returns the most bytes that the segments between two readings can have carried.
///
/// Returns `None` if the network device joins segments without counting them.
fn arrived_at_most(before: &Info, after: &Info) -> Option<u64> {
    // Linux has subtracted the timestamp option (tcp_rcv_synsent_state_process() in net/ipv4/tcp_input.c).
    let segment_bytes = u64::from(after.advmss);
    let are_counted = after.bytes_received <= u64::from(after.data_segs_in) * segment_bytes;
    let segments = after.data_segs_in.wrapping_sub(before.data_segs_in);
    are_counted.then(|| u64::from(segments) * segment_bytes)
}

/// Reads until a reading was not interrupted. Returns the end of the shortest reading, and its value.
fn shortest<T, E>(clock: impl Fn() -> u64, mut read: impl FnMut() -> Result<T, E>) -> Result<(u64, T), E> {
    let mut from = clock();
    let mut reading = read()?;
    let mut at = clock();
    let mut took = at - from;
    for _ in 1..READINGS {
        if took <= READING_NS {
            break;
        }
        from = clock();
        let next = read()?;
        let until = clock();
        if until - from < took {
            (reading, at, took) = (next, until, until - from);
        }
    }
    Ok((at, reading))
}

#[cfg(test)]
mod tests {
    use super::pacing::Pacing;
    use super::*;
    use crate::flow::{Flow, Link};
    use crate::hello::Hello;
    use crate::job::Job;
    use crate::window::Timeline;
    use linerate_engine::testing::assignment;
    use linerate_model::{Offered, StreamTask, Task, Timing, Transport, Warmup};
    use linerate_units::{BitRate, ByteCount};
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;

    /// Returns a receiver whose window opens and closes at these nanoseconds from now, and both ends of its connection.
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
    fn missed_window_counts_the_whole_transfer_over_its_own_time() {
        let (shared, spec, mut sender, receiver) = connected(-2_000_000_000, -1_990_000_000);
        let sending = std::thread::spawn(move || while sender.write_all(&[0; 1_000]).is_ok() {});
        let received = receive(&shared, 0, &spec, &receiver).expect("it has a count").received.expect("it receives");
        assert!(received.payload_bytes > 0 && received.window.get() >= 2_000_000_000, "{received:?}");
        // Both descriptors must go: after a mere shutdown, a sender with a full window would wait on.
        drop((receiver, shared));
        sending.join().expect("sends");
    }

    /// At 64 KiB per 40 ms a call of a mebibyte takes longer than the window.
    #[test]
    fn slow_reader_shortens_the_calls_of_its_sender() {
        let (mut shared, spec, sender, mut receiver) = connected(0, 300_000_000);
        let warmup = Warmup::Fixed(Nanos::from_millis(2_500));
        let measure = Nanos::from_millis(300);
        shared.timeline = Timeline::new(clock::now(), linerate_model::Window { warmup, measure });
        let reading = std::thread::spawn(move || {
            let mut buffer = vec![0; 64 << 10];
            let mut longest_gap = 0;
            let mut last_read = clock::now();
            while receiver.read(&mut buffer).is_ok_and(|bytes| bytes > 0) {
                std::thread::sleep(std::time::Duration::from_millis(40));
                longest_gap = longest_gap.max(clock::now() - last_read);
                last_read = clock::now();
            }
            longest_gap
        });
        let spec = StreamTask { message_bytes: ByteCount::new(1 << 20), ..spec };
        let sent = send(&shared, 0, &spec, &sender).expect("calls ended within the window").sent.expect("it sends");
        drop((sender, shared));
        // A stalled reader takes nothing for as long as the window.
        let stalled = reading.join().expect("reads") > 150_000_000;
        assert!(stalled || sent.payload_bytes > 0 && sent.window.get() >= 150_000_000, "{sent:?}");
        // A call of a mebibyte would end with it, and a window would hold whole ones.
        assert!(stalled || !sent.payload_bytes.is_multiple_of(1 << 20), "{sent:?}");
    }

    #[test]
    fn bursts_of_flows_on_one_thread_follow_each_other() {
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
                assert_eq!(pacing.due(1) - start, 1_000_000, "four times the bytes, after the first burst");
                let at = pacing.due(0);
                let now = start + 2_000_000;
                assert_eq!(pacing.allowed(0, at, now, &shared.meters[0]), 2_001, "bytes due by then");
                at - start
            })
            .collect();
        assert_eq!(due, [249_000, 499_000, 749_000, 999_000]);
        let mut slow = Pacing::new(&shared, 0, &spec).expect("a rate");
        slow.take_turns(0, 4_096);
        assert_eq!(slow.due(1) - start, 100_000_000, "no flow pauses for longer");
    }

    /// The thread loses its core for 4 ms between the clock and the count, as during a build.
    #[test]
    fn interrupted_reading_at_an_edge_is_repeated() {
        let times = [0, 4_000_000, 4_001_000, 4_002_000, 9_000_000].map(std::cell::Cell::new);
        let ticks = std::cell::Cell::new(0);
        let mut readings = 0..;
        let shortest = shortest(|| times[ticks.replace(ticks.get() + 1)].get(), || readings.next().ok_or(()));
        assert_eq!(shortest, Ok((4_002_000, 1)), "the first reading was interrupted");
        assert_eq!(ticks.get(), 4, "the second was not");
    }

    /// Of 30 segments 10 arrived before the window, after one that was lost.
    #[test]
    fn segments_out_of_order_before_the_window_do_not_count_in_it() {
        let before = info(110, 100 * 1_448);
        let after = info(130, 130 * 1_448);
        assert_eq!(arrived_at_most(&before, &after), Some(20 * 1_448));
        // Segments that the device has joined count as one.
        assert_eq!(arrived_at_most(&info(11, 100 * 1_448), &info(13, 130 * 1_448)), None);
    }

    fn info(data_segs_in: u32, bytes_received: u64) -> Info {
        Info { advmss: 1_448, data_segs_in, bytes_received, ..Info::default() }
    }

    #[test]
    fn bytes_in_the_socket_buffer_at_an_edge_have_arrived() {
        let (shared, _, mut sender, receiver) = connected(0, 300_000_000);
        let mut account = Account::of_receiver(&shared, &receiver).expect("a connection");
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
