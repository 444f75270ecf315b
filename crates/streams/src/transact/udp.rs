//! Transactions over UDP. Each request carries a number that its answer repeats: 64 bits where both have room for a
//! header, else one byte.

use super::{DRAIN_NS, SKEW_NS, Schedule, Tally};
use crate::bulk_tcp::is_timeout;
use crate::datagram::{self, HEADER, Header};
use crate::error::StreamError;
use crate::flow::{Outcome, Shared};
use crate::job::NARROW_OUTSTANDING;
use linerate_model::{FlowResult, TransactSpec};
use linerate_sys::{clock, socket, udp};
use std::collections::VecDeque;
use std::io;
use std::net::UdpSocket;
use std::os::fd::AsFd as _;

/// A request is given up after this.
const LOST_NS: u64 = 1_000_000_000;
/// After the window the answering end stays until nothing came for so long.
const QUIET_NS: u64 = 150_000_000;

/// How requests and answers are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Numbers {
    /// A whole header: tag and 64-bit number.
    Wide { tag: u32 },
    /// One byte, for messages too short for more. An answer later than 1 s may be taken for that of the request 256 on.
    Narrow,
}

impl Numbers {
    fn of(shared: &Shared, index: usize, spec: &TransactSpec) -> Self {
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
}

impl Waiting {
    fn next(&self) -> u64 {
        self.first + self.requests.len() as u64
    }

    fn sent(&mut self, since: u64, now: u64) {
        self.requests.push_back(Some((since, now)));
        self.unanswered += 1;
    }

    /// The answer with `number` has come: when its request was made; none if nobody waits for it any more.
    fn answered(&mut self, numbers: Numbers, number: u64) -> Option<u64> {
        let offset = match numbers {
            Numbers::Wide { .. } => number.checked_sub(self.first)?,
            Numbers::Narrow => u64::from((number as u8).wrapping_sub(self.first as u8)),
        };
        let (since, _) = self.requests.get_mut(usize::try_from(offset).ok()?)?.take()?;
        self.unanswered -= 1;
        self.trim();
        Some(since)
    }

    /// Gives up the oldest request if it was sent before `limit`.
    fn lost(&mut self, limit: u64) -> Option<u64> {
        let (since, sent) = (*self.requests.front()?)?;
        if sent > limit {
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
    spec: &TransactSpec,
    socket: &UdpSocket,
) -> Result<Outcome, StreamError> {
    let timeline = shared.timeline;
    let numbers = Numbers::of(shared, index, spec);
    let mut schedule = Schedule::new(spec, timeline.start, shared.flows[index].hello.flow);
    let mut tally = Tally::new(shared, index, spec);
    prepare(shared, socket)?;
    let (mut request, mut response) =
        (vec![0; spec.request_bytes.get() as usize], vec![0; spec.response_bytes.get() as usize]);
    rand::fill(&mut request[..]);
    let mut waiting = Waiting::default();
    let most = if numbers == Numbers::Narrow { usize::from(NARROW_OUTSTANDING) } else { usize::MAX };
    shared.sleep_until(timeline.start);
    let mut now = clock::now();
    loop {
        if shared.is_stopped() {
            return Err(StreamError::Stopped);
        }
        while let Some(since) = waiting.lost(now.saturating_sub(LOST_NS)) {
            tally.failed(since);
        }
        if now < timeline.close {
            // The number of requests in the queue, not only those unanswered, bounds what one byte can tell apart.
            while waiting.requests.len() < most {
                let since = match &mut schedule {
                    Some(schedule) if schedule.due() <= now => schedule.due(),
                    None if waiting.unanswered < spec.outstanding.into() => now,
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
        } else if waiting.unanswered == 0 || now > timeline.close + DRAIN_NS {
            break;
        }
        let due = schedule.as_ref().filter(|_| now < timeline.close && waiting.requests.len() < most);
        if let Some(schedule) = due.filter(|_| !spec.busy_poll) {
            socket::wait_readable(&[socket.as_fd()], schedule.due().saturating_sub(clock::now()).min(100_000_000))?;
        }
        let taken = udp::receive_one(socket, &mut response, !spec.busy_poll && due.is_none());
        now = clock::now();
        match taken {
            Ok(length) if length == response.len() => {
                if let Some(since) = numbers.read(&response).and_then(|number| waiting.answered(numbers, number)) {
                    tally.answered(since, now);
                }
            }
            Ok(_) => (),
            Err(error) if is_timeout(&error) => (),
            Err(_) if now >= timeline.close => break,
            Err(error) => refused(shared, index, error, &tally)?,
        }
    }
    waiting.requests.into_iter().flatten().for_each(|(since, _)| tally.failed(since));
    tally.not_sent(&mut schedule);
    let (sent_bytes, received_bytes) = tally.bytes(spec);
    Ok(Outcome {
        transactions: Some(tally.transactions),
        flow: FlowResult { sent_bytes, received_bytes, tcp: None },
        ..Outcome::default()
    })
}

/// Answers until the window is over and nothing more comes.
pub(super) fn answer(
    shared: &Shared,
    index: usize,
    spec: &TransactSpec,
    socket: &UdpSocket,
) -> Result<Outcome, StreamError> {
    let timeline = shared.timeline;
    let numbers = Numbers::of(shared, index, spec);
    prepare(shared, socket)?;
    let (mut request, mut response) =
        (vec![0; spec.request_bytes.get() as usize], vec![0; spec.response_bytes.get() as usize]);
    rand::fill(&mut response[..]);
    let (mut answered, mut heard) = (0u64, timeline.start);
    loop {
        if shared.is_stopped() {
            return Err(StreamError::Stopped);
        }
        let taken = udp::receive_one(socket, &mut request, !spec.busy_poll);
        let now = clock::now();
        match taken {
            Ok(length) if length == request.len() => {
                let Some(number) = numbers.read(&request) else { continue };
                numbers.write(number, &mut response);
                // An answer that cannot be sent is a lost one: the asking end counts it.
                let _ = socket.send(&response);
                heard = now;
                answered += u64::from((timeline.open..timeline.close).contains(&now));
            }
            Ok(_) => (),
            Err(error) if is_timeout(&error) => (),
            Err(error) if now + SKEW_NS < timeline.close && error.kind() == io::ErrorKind::ConnectionRefused => {
                return Err(shared.gone(index, "it has closed its port (ICMP port unreachable)"));
            }
            Err(_) => break,
        }
        if now > timeline.close && (now > heard + QUIET_NS.max(SKEW_NS) || now > timeline.close + 2 * DRAIN_NS) {
            break;
        }
    }
    let (sent_bytes, received_bytes) = (answered * spec.response_bytes.get(), answered * spec.request_bytes.get());
    Ok(Outcome { flow: FlowResult { sent_bytes, received_bytes, tcp: None }, ..Outcome::default() })
}

/// Messages above the MTU go in fragments.
fn prepare(shared: &Shared, socket: &UdpSocket) -> Result<(), StreamError> {
    Ok(socket::allow_fragments(socket.as_fd(), shared.job.v6())?)
}

/// Whether the trial can go on after `error`.
fn refused(shared: &Shared, index: usize, error: io::Error, tally: &Tally<'_>) -> Result<(), StreamError> {
    use linerate_sys::socket::{ECONNREFUSED, ENOBUFS, ENOMEM};
    match error.raw_os_error() {
        Some(ENOBUFS | ENOMEM) => Ok(()),
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

    #[test]
    fn answers_find_their_requests_in_any_order() {
        for numbers in [Numbers::Wide { tag: 1 }, Numbers::Narrow] {
            let mut waiting = Waiting { first: 254, ..Waiting::default() };
            (0..4).for_each(|n| waiting.sent(n, n));
            let seen = |n: u64| if numbers == Numbers::Narrow { u64::from(n as u8) } else { n };
            assert_eq!(waiting.answered(numbers, seen(256)), Some(2));
            assert_eq!(waiting.answered(numbers, seen(256)), None);
            assert_eq!(waiting.lost(0), Some(0));
            assert_eq!(waiting.lost(0), None);
            assert_eq!(waiting.answered(numbers, seen(254)), None);
            assert_eq!(waiting.answered(numbers, seen(255)), Some(1));
            // Two answered ones were trimmed with it.
            assert_eq!((waiting.first, waiting.unanswered, waiting.next()), (257, 1, 258));
        }
    }

    #[test]
    fn one_byte_is_enough_for_a_number() {
        let mut datagram = [0; 1];
        Numbers::Narrow.write(259, &mut datagram);
        assert_eq!(Numbers::Narrow.read(&datagram), Some(3));
        assert_eq!(Numbers::Wide { tag: 1 }.read(&datagram), None);
    }
}
