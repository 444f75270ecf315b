//! Transactions over UDP. Each request carries a number that its answer repeats: 64 bits where both have room for a
//! header, else one byte.

use super::{Tally, quiet_ns, schedule};
use crate::bulk_tcp::is_timeout;
use crate::datagram::{self, HEADER, Header};
use crate::error::StreamError;
use crate::flow::{Outcome, Shared, is_cut_off};
use crate::job::NARROW_OUTSTANDING;
use linerate_model::{FlowCounts, TransactTask};
use linerate_sys::socket::{ECONNREFUSED, ENOBUFS, ENOMEM};
use linerate_sys::{clock, socket, udp};
use std::collections::VecDeque;
use std::io;
use std::net::UdpSocket;
use std::os::fd::AsFd as _;
use std::time::Duration;

/// A request is given up after this, or after so many of the round trips that the flow's own set-up took: over a long path
/// an answer may well take longer, and what is added by a queue is part of what is measured.
const LOST_NS: u64 = 1_000_000_000;
const LOST_ROUND_TRIPS: u64 = 3;
/// The same where answers took longer than the set-up did, as behind a queue of earlier requests: after this many times the longest wait
/// for an answer so far, and at the latest after this.
const LOST_TIMES: u64 = 4;
const LOST_MOST_NS: u64 = 40_000_000_000;
/// The answering end goes on while requests come, which a slow path lets through one after the other: until none came for this many
/// times the mean time between them, and at the longest for this.
const QUIET_GAPS: u64 = 3;
const QUIET_MOST_NS: u64 = 5_000_000_000;
/// Where numbers are short, one that was overtaken is given up sooner, for it holds up the numbers after it: after this, and
/// after this many times the longest wait for an answer so far.
const OVERTAKEN_NS: u64 = 50_000_000;
const OVERTAKEN_TIMES: u64 = 4;
/// Requests sent before answers are looked for again, and the most answers taken before requests are sent again.
const BURST: usize = 64;
const TAKEN: usize = 4 * BURST;
/// How often the asking end looks whether its oldest request is lost, when it can send no more.
const LOOK: Duration = Duration::from_millis(10);

/// How requests and answers are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Numbers {
    /// A whole header: tag and 64-bit number.
    Wide { tag: u32 },
    /// One byte, for messages too short for more. An answer to a request that was given up may be taken for that of the
    /// request 256 on.
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

/// The requests under way, in the order of their numbers.
#[derive(Debug, Default)]
struct Waiting {
    /// The number of the first.
    first: u64,
    /// When each was made or due, and when it was sent; none if it has been answered.
    requests: VecDeque<Option<(u64, u64)>>,
    unanswered: usize,
    /// The longest that an answer took, from the sending.
    longest: u64,
    /// One is given up after this.
    reply_timeout: u64,
}

impl Waiting {
    fn new(reply_timeout: u64) -> Self {
        Self { reply_timeout, ..Self::default() }
    }

    fn next(&self) -> u64 {
        self.first + self.requests.len() as u64
    }

    /// Returns after which time a request is given up.
    fn timeout(&self) -> u64 {
        self.reply_timeout.max((self.longest * LOST_TIMES).min(LOST_MOST_NS))
    }

    fn sent(&mut self, since: u64, now: u64) {
        self.requests.push_back(Some((since, now)));
        self.unanswered += 1;
    }

    /// The answer with `number` has come at `now`: when its request was made; none if nobody waits for it any more.
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

    /// Gives up the oldest request if it is overdue at `now`: when it was made.
    fn lost(&mut self, numbers: Numbers, now: u64) -> Option<u64> {
        let (since, sent) = (*self.requests.front()?)?;
        // Answered ones behind an unanswered first: it was overtaken.
        let overtaken = numbers == Numbers::Narrow && self.requests.len() > self.unanswered;
        let reply_timeout = match overtaken {
            true => (self.longest * OVERTAKEN_TIMES).clamp(OVERTAKEN_NS, self.reply_timeout),
            false => self.timeout(),
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
    let (mut request, mut response) =
        (vec![0; spec.request_bytes.get() as usize], vec![0; spec.response_bytes.get() as usize]);
    rand::fill(&mut request[..]);
    let reply_timeout = reply_timeout(shared.flows[index].round_trip_ns);
    let mut waiting = Waiting::new(reply_timeout);
    let most = if numbers == Numbers::Narrow { usize::from(NARROW_OUTSTANDING) } else { usize::MAX };
    if numbers == Numbers::Narrow {
        socket.set_read_timeout(Some(LOOK)).map_err(StreamError::socket("setsockopt(SO_RCVTIMEO)"))?;
    }
    shared.stop.sleep_until(timeline.start());
    'asking: loop {
        if shared.stop.is_set() {
            return Err(StreamError::Stopped);
        }
        let mut now = clock::now();
        let asks = schedule.as_ref().map_or(now < timeline.close(), |schedule| schedule.goes_on(now, timeline.close()));
        if !asks && (waiting.unanswered == 0 || now > timeline.close() + waiting.timeout()) {
            break;
        }
        // The number of requests in the queue, not only those unanswered, bounds what one byte can tell apart.
        for _ in 0..BURST.min(most.saturating_sub(waiting.requests.len())) {
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
                    // Counts as lost, as any request that does not arrive.
                    waiting.sent(since, now);
                }
            }
            if let Some(schedule) = &mut schedule {
                schedule.advance();
            }
        }
        let open_loop = schedule.as_ref().filter(|schedule| schedule.goes_on(now, timeline.close()));
        if let Some(schedule) = open_loop.filter(|_| !spec.busy_poll) {
            // Without room for more, only an answer or the loss of the first request goes on.
            let full = waiting.requests.len() >= most;
            let left = if full { LOOK.as_nanos() as u64 } else { schedule.due().saturating_sub(clock::now()) };
            if left > 0 {
                socket::wait_readable(&[socket.as_fd()], left.min(100_000_000))?;
            }
        }
        let mut wait = !spec.busy_poll && open_loop.is_none();
        let mut emptied = false;
        for _ in 0..TAKEN {
            let taken = udp::receive_one(socket, &mut response, wait);
            wait = false;
            now = clock::now();
            match taken {
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
                // The answering end has gone: what is unanswered stays so.
                Err(_) if now >= timeline.close() => break 'asking,
                Err(error) => refused(shared, index, error, &tally)?,
            }
            // A closed loop's next request need not wait until all answers were taken.
            if schedule.is_none() && waiting.unanswered == 0 {
                break;
            }
        }
        // None is lost whose answer may lie here unread.
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
    let (mut request, mut response) =
        (vec![0; spec.request_bytes.get() as usize], vec![0; spec.response_bytes.get() as usize]);
    rand::fill(&mut response[..]);
    // Answered within the window, and since the load began.
    let (mut answered, mut served, mut heard) = (0u64, 0u64, timeline.start());
    // What was asked at the window's end may be half a round trip away.
    let round_trip = shared.flows[index].round_trip_ns;
    let quiet = quiet_ns(spec).max(round_trip);
    let longest = LOST_MOST_NS.max(reply_timeout(round_trip));
    loop {
        if shared.stop.is_set() {
            return Err(StreamError::Stopped);
        }
        let taken = udp::receive_one(socket, &mut request, !spec.busy_poll);
        let now = clock::now();
        match taken {
            Ok(length) if length == request.len() => {
                if let Some(number) = numbers.read(&request) {
                    numbers.write(number, &mut response);
                    // An answer that cannot be sent is a lost one: the asking end counts it.
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
                return Err(StreamError::socket(format!("datagrams from {}", shared.flows[index].peer))(error));
            }
        }
        let gaps = QUIET_GAPS * heard.saturating_sub(timeline.start()) / served.max(1);
        if now > timeline.close()
            && (now > heard + quiet.max(gaps.min(QUIET_MOST_NS)) || now > timeline.close() + longest)
        {
            break;
        }
    }
    let (sent_bytes, received_bytes) = (answered * spec.response_bytes.get(), answered * spec.request_bytes.get());
    Ok(Outcome { flow: FlowCounts { sent_bytes, received_bytes, tcp: None }, ..Outcome::default() })
}

/// How long an answer is waited for over a path of that round trip, nanoseconds.
fn reply_timeout(round_trip_ns: u64) -> u64 {
    LOST_NS.max(round_trip_ns.saturating_mul(LOST_ROUND_TRIPS))
}

/// Messages above the MTU go in fragments.
fn prepare(shared: &Shared, socket: &UdpSocket) -> Result<(), StreamError> {
    Ok(socket::allow_fragments(socket.as_fd(), shared.job.v6())?)
}

/// Whether the trial can go on after `error`.
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
        _ => Err(StreamError::socket(format!("datagrams to {}", shared.flows[index].peer))(error)),
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
    fn answers_find_their_requests_in_any_order() {
        for numbers in [Numbers::Wide { tag: 1 }, Numbers::Narrow] {
            let mut waiting = Waiting { first: 254, ..Waiting::new(LOST_NS) };
            (0..4).for_each(|n| waiting.sent(n, n));
            let seen = |n: u64| if numbers == Numbers::Narrow { u64::from(n as u8) } else { n };
            assert_eq!(waiting.lost(numbers, LOST_NS - 1), None);
            assert_eq!(waiting.answered(numbers, seen(256), 10), Some(2));
            assert_eq!(waiting.answered(numbers, seen(256), 10), None);
            assert_eq!(waiting.lost(numbers, LOST_NS), Some(0));
            assert_eq!(waiting.answered(numbers, seen(254), 10), None);
            assert_eq!(waiting.answered(numbers, seen(255), 10), Some(1));
            // Two answered ones were trimmed with it.
            assert_eq!((waiting.first, waiting.unanswered, waiting.next()), (257, 1, 258));
        }
    }

    #[test]
    fn one_that_was_overtaken_holds_up_short_numbers_for_a_moment_only() {
        let wide = Numbers::Wide { tag: 1 };
        for (numbers, took, given_up_after) in [
            (Numbers::Narrow, 1_000, OVERTAKEN_NS),
            (Numbers::Narrow, 20_000_000, 80_000_000),
            (Numbers::Narrow, 900_000_000, LOST_NS),
            (wide, 1_000, LOST_NS),
        ] {
            let mut waiting = Waiting::new(LOST_NS);
            (0..3).for_each(|n| waiting.sent(n, 0));
            assert_eq!(waiting.answered(numbers, 1, took), Some(1));
            assert_eq!(waiting.lost(numbers, given_up_after - 1), None, "{numbers:?} {took}");
            assert_eq!(waiting.lost(numbers, given_up_after), Some(0), "{numbers:?} {took}");
            assert_eq!(waiting.lost(numbers, LOST_NS - 1), None, "nothing overtook the third");
        }
    }

    /// Asks at a rate for a second in a trial that began so long ago; the other end answers all but every 400th.
    fn asked(bytes: u64, rate: u64, began_ago: u64) -> Transactions {
        asked_over(Duration::ZERO, 0, bytes, rate, began_ago)
    }

    /// The same where answers take so long, and the set-up found a round trip of that many nanoseconds.
    fn asked_over(delay: Duration, round_trip_ns: u64, bytes: u64, rate: u64, began_ago: u64) -> Transactions {
        let spec = TransactTask {
            rate: Some(OpRate::per_second(rate)),
            request_bytes: ByteCount::new(bytes),
            response_bytes: ByteCount::new(bytes),
            ..TransactTask::plain(Transport::Udp)
        };
        let timing = Timing::of(Nanos::new(0), Nanos::from_millis(1_000));
        let task = Task::Transact(spec.clone());
        let assignment = assignment(task, timing, Vec::new());
        let (asking, answering) =
            (UdpSocket::bind("127.0.0.1:0").expect("binds"), UdpSocket::bind("127.0.0.1:0").expect("binds"));
        let (local, peer) = (asking.local_addr().expect("is bound"), answering.local_addr().expect("is bound"));
        asking.connect(peer).expect("connects");
        asking.set_read_timeout(Some(Duration::from_millis(100))).expect("sets");
        let lossy = std::thread::spawn(move || {
            let (mut request, mut count, mut held) = ([0; 64], 0, VecDeque::<(Instant, Vec<u8>, SocketAddr)>::new());
            // An empty datagram ends it.
            loop {
                while let Some((_, answer, to)) = held.pop_front_if(|(due, ..)| *due <= Instant::now()) {
                    answering.send_to(&answer, to).expect("sends");
                }
                let next = held.front().map_or(Duration::MAX, |(due, ..)| due.duration_since(Instant::now()));
                let wait = next.clamp(Duration::from_millis(1), Duration::from_secs(60));
                answering.set_read_timeout(Some(wait)).expect("sets");
                match answering.recv_from(&mut request) {
                    Ok((0, _)) => break,
                    Ok((length, from)) => {
                        count += 1;
                        if count % 400 != 0 {
                            held.push_back((Instant::now() + delay, request[..length].to_vec(), from));
                        }
                    }
                    Err(error) => assert!(is_timeout(&error), "{error}"),
                }
            }
        });
        let job = Job::check(&assignment).expect("valid");
        let timeline = job.timeline(clock::now() - began_ago);
        let hello = Hello { path: 0, flow: 0, backward: false };
        let link = Link::Udp(asking.try_clone().expect("dup"));
        let flow = Flow { end: 0, hello, client: true, peer, local, link, round_trip_ns };
        let shared = Shared::new(job, timeline, vec![flow], linerate_engine::AllowedPeers::default());
        let done = ask(&shared, 0, &spec, &asking).expect("asks").transactions.expect("asks");
        asking.send(&[]).expect("sends");
        lossy.join().expect("answers");
        done
    }

    #[test]
    fn a_lost_datagram_does_not_stall_an_open_loop_of_one_byte() {
        let done = asked(1, 2_000, 0);
        // 2,000 are due, and every 400th is lost; a stall of 1 s behind the first would leave 530.
        assert!(done.failed >= 1, "{} lost", done.failed);
        // A thread that was held up makes answers late, and what they overtake is waited for longer.
        let held_up = done.latency.max() > 50_000_000;
        assert!(held_up || done.failed <= 5, "{} lost", done.failed);
        assert!(held_up || done.completed > 600, "{} completed, {} not sent", done.completed, done.not_sent);
    }

    /// The other end holds each answer for two seconds.
    #[test]
    fn an_answer_is_waited_for_as_long_as_the_path_takes() {
        let slow = |round_trip_ns| asked_over(Duration::from_secs(2), round_trip_ns, 64, 10, 0);
        let long = slow(1_200_000_000);
        assert_eq!((long.failed, long.latency.count() + long.not_sent), (0, 10));
        assert!(long.latency.min() > LOST_NS, "{} ns", long.latency.min());
        let near = slow(1_000_000);
        // An answer that comes before a busy machine gave up on it counts.
        assert_eq!(near.failed + near.latency.count() + near.not_sent, 10);
        assert!(near.failed > 0, "over a short path they are lost");
    }

    #[test]
    fn what_is_held_up_until_long_after_the_window_is_not_sent() {
        let over = asked(64, 100, 3_000_000_000);
        assert_eq!((over.not_sent, over.latency.count()), (100, 0));
    }

    #[test]
    fn one_byte_is_enough_for_a_number() {
        let mut datagram = [0; 1];
        Numbers::Narrow.write(259, &mut datagram);
        assert_eq!(Numbers::Narrow.read(&datagram), Some(3));
        assert_eq!(Numbers::Wide { tag: 1 }.read(&datagram), None);
    }
}
