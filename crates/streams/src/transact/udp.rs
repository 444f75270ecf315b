//! Transactions over UDP. Each request carries a number that its answer repeats: 64 bits if both have room for a
//! header, otherwise one byte.

use super::{Tally, quiet_ns, schedule};
use crate::datagram::{self, HEADER, Header};
use crate::error::StreamError;
use crate::flow::{Outcome, Shared, is_cut_off};
use crate::job::NARROW_OUTSTANDING;
use linerate_engine::{Stopped, failed};
use linerate_model::{FlowCounts, TransactTask};
use linerate_sys::handle::AsSocket as _;
use linerate_sys::socket::is_timeout;
use linerate_sys::socket::{ECONNREFUSED, ENOBUFS, ENOMEM};
use linerate_sys::{clock, socket, udp};
use std::collections::VecDeque;
use std::io;
use std::net::UdpSocket;
use std::time::Duration;

/// Time after which a request counts as lost.
const LOST_NS: u64 = 1_000_000_000;
/// The same in round trips of the flow's set-up, if that is longer. Over a long path an answer may take longer than a
/// second, and the delay of a queue is part of the measurement.
const LOST_ROUND_TRIPS: u64 = 3;
/// The same in multiples of the longest wait for an answer so far, because a queue may have grown since the set-up.
const LOST_TIMES: u64 = 4;
/// Upper limit of that time.
const LOST_MOST_NS: u64 = 40_000_000_000;
/// Silence that ends the server, in mean gaps between requests. A slow path delivers requests one by one after the
/// window.
const QUIET_GAPS: u64 = 3;
/// Upper limit of that silence.
const QUIET_MOST_NS: u64 = 5_000_000_000;
/// Time after which an overtaken request with a short number counts as lost. It blocks the numbers after it.
const OVERTAKEN_NS: u64 = 50_000_000;
/// The same in multiples of the longest wait for an answer so far, if that is longer.
const OVERTAKEN_TIMES: u64 = 4;
/// Requests sent before answers are read again.
const BURST: usize = 64;
/// Most answers read before requests are sent again.
const ANSWER_BURST: usize = 4 * BURST;
/// Interval in which a client that can send no more looks whether its oldest request is lost.
const LOOK: Duration = Duration::from_millis(10);

/// Numbers that match answers to requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Numbers {
    /// Whole header with tag and 64-bit number.
    Wide { tag: u32 },
    /// One byte, for messages too short for more. A late answer to a lost request may count for the request 256 numbers
    /// later.
    Narrow,
}

impl Numbers {
    fn of(shared: &Shared, index: usize, spec: &TransactTask) -> Self {
        let shorter = spec.request_bytes.get().min(spec.response_bytes.get());
        if shorter >= HEADER as u64 {
            Self::Wide { tag: datagram::tag(&shared.job.key, shared.flows[index].hello.flow) }
        } else {
            Self::Narrow
        }
    }

    #[inline]
    fn write(self, number: u64, datagram: &mut [u8]) {
        match self {
            Self::Wide { tag } => Header { tag, sent_ns: 0, sequence: number }.write(datagram),
            Self::Narrow => datagram[0] = number as u8,
        }
    }

    #[inline]
    fn read(self, datagram: &[u8]) -> Option<u64> {
        match self {
            Self::Wide { tag } => Header::read(datagram, tag).map(|header| header.sequence),
            Self::Narrow => datagram.first().map(|byte| u64::from(*byte)),
        }
    }
}

/// Outstanding requests, in the order of their numbers.
#[derive(Debug, Default)]
struct Waiting {
    /// Number of the first request.
    first: u64,
    /// Time when each was made or due, and time of sending. `None` if it has been answered.
    requests: VecDeque<Option<(u64, u64)>>,
    unanswered: usize,
    /// Longest time from sending to the answer.
    longest: u64,
    /// Time after which a request is lost, by the round trip of the set-up.
    reply_timeout: u64,
}

impl Waiting {
    fn new(reply_timeout: u64) -> Self {
        Self { reply_timeout, ..Self::default() }
    }

    fn next(&self) -> u64 {
        self.first + self.requests.len() as u64
    }

    /// Returns the time after which a request is lost.
    fn timeout(&self) -> u64 {
        self.reply_timeout.max((self.longest * LOST_TIMES).min(LOST_MOST_NS))
    }

    fn sent(&mut self, since: u64, now: u64) {
        self.requests.push_back(Some((since, now)));
        self.unanswered += 1;
    }

    /// Handles the answer with `number` at `now`. Returns the time when its request was made, or `None` if it is not
    /// outstanding.
    fn answered(&mut self, numbers: Numbers, number: u64, now: u64) -> Option<u64> {
        let offset = match numbers {
            Numbers::Wide { .. } => number.checked_sub(self.first)?,
            Numbers::Narrow => u64::from((number as u8).wrapping_sub(self.first as u8)),
        };
        let (since, sent) = self.requests.get_mut(usize::try_from(offset).ok()?)?.take()?;
        self.unanswered -= 1;
        self.longest = self.longest.max(now.saturating_sub(sent));
        self.trim();
        Some(since)
    }

    /// Removes the oldest request if it is overdue at `now`. Returns the time when it was made.
    fn lost(&mut self, numbers: Numbers, now: u64) -> Option<u64> {
        let (since, sent) = (*self.requests.front()?)?;
        // An unanswered request with answered ones after it was overtaken.
        let is_overtaken = numbers == Numbers::Narrow && self.requests.len() > self.unanswered;
        let reply_timeout = if is_overtaken {
            (self.longest * OVERTAKEN_TIMES).clamp(OVERTAKEN_NS, self.reply_timeout)
        } else {
            self.timeout()
        };
        if sent + reply_timeout > now {
            return None;
        }
        self.requests.pop_front();
        self.first += 1;
        self.unanswered -= 1;
        self.trim();
        Some(since)
    }

    fn trim(&mut self) {
        while let Some(None) = self.requests.front() {
            self.requests.pop_front();
            self.first += 1;
        }
    }
}

/// Asks until the window closes, then waits for the answers.
pub(super) fn ask(
    shared: &Shared,
    index: usize,
    spec: &TransactTask,
    socket: &UdpSocket,
) -> Result<Outcome, StreamError> {
    let timeline = &shared.timeline;
    let numbers = Numbers::of(shared, index, spec);
    let mut schedule = schedule(spec, shared, index);
    let mut tally = Tally::new(shared, index, spec);
    prepare(shared, socket)?;
    let mut request = vec![0; spec.request_bytes.get() as usize];
    let mut response = vec![0; spec.response_bytes.get() as usize];
    rand::fill(&mut request[..]);
    let reply_timeout = reply_timeout(shared.flows[index].round_trip_ns);
    let mut waiting = Waiting::new(reply_timeout);
    let max_outstanding = if numbers == Numbers::Narrow { usize::from(NARROW_OUTSTANDING) } else { usize::MAX };
    if numbers == Numbers::Narrow {
        socket.set_read_timeout(Some(LOOK)).map_err(failed("setsockopt(SO_RCVTIMEO)"))?;
    }
    shared.stop.sleep_until(timeline.start());
    'asking: loop {
        if shared.stop.is_set() {
            return Err(Stopped.into());
        }
        let mut now = clock::now();
        let asks = schedule.as_ref().map_or(now < timeline.close(), |schedule| schedule.goes_on(now, timeline.close()));
        if !asks && (waiting.unanswered == 0 || now > timeline.close() + waiting.timeout()) {
            break;
        }
        // All requests in the queue, not only unanswered ones, use up the numbers of one byte.
        for _ in 0..BURST.min(max_outstanding.saturating_sub(waiting.requests.len())) {
            now = clock::now();
            let since = match &mut schedule {
                Some(schedule) if schedule.due() <= now && schedule.goes_on(now, timeline.close()) => {
                    tally.late(schedule, now);
                    schedule.due()
                }
                None if waiting.unanswered < spec.outstanding.into() && now < timeline.close() => now,
                _ => break,
            };
            numbers.write(waiting.next(), &mut request);
            match socket.send(&request) {
                Ok(_) => waiting.sent(since, now),
                Err(error) if is_timeout(&error) => break,
                Err(error) => {
                    refused(shared, index, error, &tally)?;
                    // The request counts as lost, as any request that does not arrive.
                    waiting.sent(since, now);
                }
            }
            if let Some(schedule) = &mut schedule {
                schedule.advance();
            }
        }
        let open_loop = schedule.as_ref().filter(|schedule| schedule.goes_on(now, timeline.close()));
        if let Some(schedule) = open_loop.filter(|_| !spec.busy_poll) {
            // Without room for more requests, only an answer or the loss of the first request makes progress.
            let full = waiting.requests.len() >= max_outstanding;
            let left = if full { LOOK.as_nanos() as u64 } else { schedule.due().saturating_sub(clock::now()) };
            if left > 0 {
                socket::wait_readable(&[socket.as_socket()], left.min(100_000_000))?;
            }
        }
        let mut wait = !spec.busy_poll && open_loop.is_none();
        let mut emptied = false;
        for _ in 0..ANSWER_BURST {
            let length = udp::receive_one(socket, &mut response, wait);
            wait = false;
            now = clock::now();
            match length {
                Ok(length) if length == response.len() => {
                    let number = numbers.read(&response);
                    if let Some(since) = number.and_then(|number| waiting.answered(numbers, number, now)) {
                        tally.answered(since, now);
                    }
                }
                Ok(_) => (),
                Err(error) if is_timeout(&error) => {
                    emptied = true;
                    break;
                }
                // The server has gone, so unanswered requests stay unanswered.
                Err(_) if now >= timeline.close() => break 'asking,
                Err(error) => refused(shared, index, error, &tally)?,
            }
            // A closed loop's next request need not wait until all answers are read.
            if schedule.is_none() && waiting.unanswered == 0 {
                break;
            }
        }
        // A request is not lost while its answer may still be in the socket buffer.
        while emptied && let Some(since) = waiting.lost(numbers, now) {
            tally.failed(since);
        }
    }
    waiting.requests.into_iter().flatten().for_each(|(since, _)| tally.failed(since));
    tally.not_sent(schedule.as_ref());
    let (sent_bytes, received_bytes) = tally.bytes();
    Ok(Outcome {
        transactions: Some(tally.transactions),
        flow: FlowCounts { sent_bytes, received_bytes, tcp: None },
        ..Outcome::default()
    })
}

/// Answers until the window is over and nothing more comes.
pub(super) fn answer(
    shared: &Shared,
    index: usize,
    spec: &TransactTask,
    socket: &UdpSocket,
) -> Result<Outcome, StreamError> {
    let timeline = &shared.timeline;
    let numbers = Numbers::of(shared, index, spec);
    prepare(shared, socket)?;
    let mut request = vec![0; spec.request_bytes.get() as usize];
    let mut response = vec![0; spec.response_bytes.get() as usize];
    rand::fill(&mut response[..]);
    // Requests answered within the window.
    let mut answered = 0u64;
    // Requests answered since the load began.
    let mut served = 0u64;
    let mut heard = timeline.start();
    // A request from the window's end may be half a round trip away.
    let round_trip = shared.flows[index].round_trip_ns;
    let quiet = quiet_ns(spec).max(round_trip);
    let longest = LOST_MOST_NS.max(reply_timeout(round_trip));
    loop {
        if shared.stop.is_set() {
            return Err(Stopped.into());
        }
        let length = udp::receive_one(socket, &mut request, !spec.busy_poll);
        let now = clock::now();
        match length {
            Ok(length) if length == request.len() => {
                if let Some(number) = numbers.read(&request) {
                    numbers.write(number, &mut response);
                    // An answer that cannot be sent is lost: the client counts it.
                    let _ = socket.send(&response);
                    heard = now;
                    answered += u64::from(timeline.in_window(now));
                    served += 1;
                    shared.meters[index].served(served * request.len() as u64, served * response.len() as u64);
                }
            }
            Ok(_) => (),
            Err(error) if is_timeout(&error) || matches!(error.raw_os_error(), Some(ENOBUFS | ENOMEM)) => (),
            Err(error) if error.raw_os_error() == Some(ECONNREFUSED) => {
                if !shared.may_end(now) {
                    return Err(shared.gone(index, "it has closed its port (ICMP port unreachable)"));
                }
                break;
            }
            Err(_) if now >= timeline.close() => break,
            Err(error) => {
                return Err(failed(format!("datagrams from {}", shared.flows[index].peer))(error).into());
            }
        }
        let gaps = QUIET_GAPS * heard.saturating_sub(timeline.start()) / served.max(1);
        if now > timeline.close()
            && (now > heard + quiet.max(gaps.min(QUIET_MOST_NS)) || now > timeline.close() + longest)
        {
            break;
        }
    }
    let sent_bytes = answered * spec.response_bytes.get();
    let received_bytes = answered * spec.request_bytes.get();
    Ok(Outcome { flow: FlowCounts { sent_bytes, received_bytes, tcp: None }, ..Outcome::default() })
}

/// Returns the time limit for an answer over a path with this round-trip time, nanoseconds.
fn reply_timeout(round_trip_ns: u64) -> u64 {
    LOST_NS.max(round_trip_ns.saturating_mul(LOST_ROUND_TRIPS))
}

/// Allows fragments, for messages above the MTU.
fn prepare(shared: &Shared, socket: &UdpSocket) -> Result<(), StreamError> {
    Ok(socket::allow_fragments(socket.as_socket(), shared.job.v6())?)
}

/// Checks that the trial can go on after `error`.
fn refused(shared: &Shared, index: usize, error: io::Error, tally: &Tally<'_>) -> Result<(), StreamError> {
    match error.raw_os_error() {
        Some(ENOBUFS | ENOMEM) => Ok(()),
        _ if is_cut_off(&error) => Ok(()),
        Some(ECONNREFUSED) if shared.may_end(clock::now()) => Ok(()),
        Some(ECONNREFUSED) => {
            let completed = tally.transactions.completed;
            Err(shared
                .gone(index, format!("it has closed its port (ICMP port unreachable), after {completed} transactions")))
        }
        _ => Err(failed(format!("datagrams to {}", shared.flows[index].peer))(error).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::{Flow, Link};
    use crate::hello::Hello;
    use crate::job::Job;
    use linerate_engine::testing::assignment;
    use linerate_model::{Task, Timing, Transactions, Transport};
    use linerate_units::{ByteCount, Nanos, OpRate};
    use std::net::SocketAddr;
    use std::time::Instant;

    #[test]
    fn answers_match_their_requests_in_any_order() {
        for numbers in [Numbers::Wide { tag: 1 }, Numbers::Narrow] {
            let mut waiting = Waiting { first: 254, ..Waiting::new(LOST_NS) };
            (0..4).for_each(|n| waiting.sent(n, n));
            let [n254, n255, n256] = if numbers == Numbers::Narrow { [254, 255, 0] } else { [254, 255, 256] };
            assert_eq!(waiting.lost(numbers, LOST_NS - 1), None);
            assert_eq!(waiting.answered(numbers, n256, 10), Some(2));
            assert_eq!(waiting.answered(numbers, n256, 10), None);
            assert_eq!(waiting.lost(numbers, LOST_NS), Some(0));
            assert_eq!(waiting.answered(numbers, n254, 10), None);
            assert_eq!(waiting.answered(numbers, n255, 10), Some(1));
            // Two answered requests were trimmed with it.
            assert_eq!((waiting.first, waiting.unanswered, waiting.next()), (257, 1, 258));
        }
    }

    #[test]
    fn overtaken_request_blocks_short_numbers_only_briefly() {
        let wide = Numbers::Wide { tag: 1 };
        for (numbers, answer_time, lost_after) in [
            (Numbers::Narrow, 1_000, OVERTAKEN_NS),
            (Numbers::Narrow, 20_000_000, 80_000_000),
            (Numbers::Narrow, 900_000_000, LOST_NS),
            (wide, 1_000, LOST_NS),
        ] {
            let mut waiting = Waiting::new(LOST_NS);
            (0..3).for_each(|n| waiting.sent(n, 0));
            assert_eq!(waiting.answered(numbers, 1, answer_time), Some(1));
            assert_eq!(waiting.lost(numbers, lost_after - 1), None, "{numbers:?} {answer_time}");
            assert_eq!(waiting.lost(numbers, lost_after), Some(0), "{numbers:?} {answer_time}");
            assert_eq!(waiting.lost(numbers, LOST_NS - 1), None, "nothing overtook the third");
        }
    }

    /// Sends requests at a rate for a second in a trial that began `began_ago` nanoseconds ago. Every 400th is not
    /// answered.
    fn requests(bytes: u64, rate: u64, began_ago: u64) -> Transactions {
        delayed_requests(Duration::ZERO, 0, bytes, rate, began_ago)
    }

    /// Does the same with a delay of each answer, after a set-up with this round-trip time.
    fn delayed_requests(delay: Duration, round_trip_ns: u64, bytes: u64, rate: u64, began_ago: u64) -> Transactions {
        let spec = TransactTask {
            rate: Some(OpRate::per_second(rate)),
            request_bytes: ByteCount::new(bytes),
            response_bytes: ByteCount::new(bytes),
            ..TransactTask::plain(Transport::Udp)
        };
        let timing = Timing::of(Nanos::new(0), Nanos::from_millis(1_000));
        let task = Task::Transact(spec.clone());
        let assignment = assignment(task, timing, Vec::new());
        let client = UdpSocket::bind("127.0.0.1:0").expect("binds");
        let server = UdpSocket::bind("127.0.0.1:0").expect("binds");
        let local = client.local_addr().expect("is bound");
        let peer = server.local_addr().expect("is bound");
        client.connect(peer).expect("connects");
        client.set_read_timeout(Some(Duration::from_millis(100))).expect("sets");
        let serving = std::thread::spawn(move || serve_lossily(&server, delay));
        let job = Job::check(&assignment).expect("valid");
        let timeline = job.timeline(clock::now() - began_ago);
        let hello = Hello { path: 0, flow: 0, backward: false };
        let link = Link::Udp(client.try_clone().expect("dup"));
        let flow = Flow { end: 0, hello, client: true, peer, local, link, round_trip_ns };
        let shared = Shared::new(job, timeline, vec![flow], linerate_engine::AllowedPeers::default());
        let transactions = ask(&shared, 0, &spec, &client).expect("asks").transactions.expect("asks");
        client.send(&[]).expect("sends");
        serving.join().expect("answers");
        transactions
    }

    /// Answers all but every 400th request after `delay`, until an empty datagram arrives.
    fn serve_lossily(server: &UdpSocket, delay: Duration) {
        let mut request = [0; 64];
        let mut count = 0;
        let mut answers: VecDeque<(Instant, Vec<u8>, SocketAddr)> = VecDeque::new();
        loop {
            while let Some((_, answer, to)) = answers.pop_front_if(|(due, ..)| *due <= Instant::now()) {
                server.send_to(&answer, to).expect("sends");
            }
            let next = answers.front().map_or(Duration::MAX, |(due, ..)| due.duration_since(Instant::now()));
            let wait = next.clamp(Duration::from_millis(1), Duration::from_secs(60));
            server.set_read_timeout(Some(wait)).expect("sets");
            match server.recv_from(&mut request) {
                Ok((0, _)) => break,
                Ok((length, from)) => {
                    count += 1;
                    if count % 400 != 0 {
                        answers.push_back((Instant::now() + delay, request[..length].to_vec(), from));
                    }
                }
                Err(error) => assert!(is_timeout(&error), "{error}"),
            }
        }
    }

    #[test]
    fn lost_datagram_does_not_stall_an_open_loop_of_one_byte() {
        let transactions = requests(1, 2_000, 0);
        // 2,000 are due, and every 400th is lost. A stall of 1 s after the first loss would leave 530.
        assert!(transactions.failed >= 1, "{} lost", transactions.failed);
        // A descheduled thread makes answers late, and requests that they overtake are lost later.
        let descheduled = transactions.latency.max() > 50_000_000;
        assert!(descheduled || transactions.failed <= 5, "{} lost", transactions.failed);
        let Transactions { completed, not_sent, .. } = transactions;
        assert!(descheduled || completed > 600, "{completed} completed, {not_sent} not sent");
    }

    /// The server delays each answer by two seconds.
    #[test]
    fn reply_timeout_follows_the_round_trip_time() {
        let delay = Duration::from_secs(2);
        let long = delayed_requests(delay, 1_200_000_000, 64, 10, 0);
        assert_eq!((long.failed, long.latency.count() + long.not_sent), (0, 10));
        assert!(long.latency.min() > LOST_NS, "{} ns", long.latency.min());
        let near = delayed_requests(delay, 1_000_000, 64, 10, 0);
        // An answer counts if it arrives before a busy machine has noticed the timeout.
        assert_eq!(near.failed + near.latency.count() + near.not_sent, 10);
        assert!(near.failed > 0, "over a short path requests are lost");
    }

    #[test]
    fn requests_delayed_beyond_the_window_count_as_not_sent() {
        let over = requests(64, 100, 3_000_000_000);
        assert_eq!((over.not_sent, over.latency.count()), (100, 0));
    }

    #[test]
    fn narrow_number_fits_one_byte() {
        let mut datagram = [0; 1];
        Numbers::Narrow.write(259, &mut datagram);
        assert_eq!(Numbers::Narrow.read(&datagram), Some(3));
        assert_eq!(Numbers::Wide { tag: 1 }.read(&datagram), None);
    }
}
