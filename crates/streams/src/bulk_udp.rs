//! Bulk datagrams: a marked warm-up, a pause in which it drains, then the measured phase, numbered from zero.

use crate::bulk_tcp::is_timeout;
use crate::datagram::{self, HEADER, Header, WARM_UP};
use crate::error::StreamError;
use crate::flow::{Outcome, Shared};
use crate::sequence::Sequence;
use linerate_model::{FlowCounts, Received, Sent, StreamTask};
use linerate_pace::Pace;
use linerate_sys::socket::{ECONNREFUSED, EIO, EMSGSIZE, ENOBUFS, ENOMEM};
use linerate_sys::udp::{Incoming, Outgoing};
use linerate_sys::{clock, socket, udp};
use linerate_units::Nanos;
use std::io;
use std::net::UdpSocket;
use std::os::fd::AsFd as _;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The kernel's UDP_MAX_SEGMENTS before Linux 6.9 (128 since).
const SEGMENTS: usize = 64;
/// The most one segmented buffer holds: a UDP length of 16 bits, less room for the headers.
const SEGMENTED_BYTES: usize = 65_507;
/// Buffers in one `sendmmsg`: enough that the call itself costs little, few enough to stay in the cache.
const SEGMENTED_BATCH: usize = 2;
const PLAIN_BATCH: usize = 64;
/// Bytes that one batch of plain datagrams may take.
const PLAIN_BATCH_BYTES: usize = 256 << 10;
/// Buffers of joined datagrams taken in one `recvmmsg`.
const JOINED_BATCH: usize = 4;
/// The largest buffer of joined datagrams.
const JOINED_BYTES: usize = 65_536;
/// At a set rate, datagrams due within this go in one batch.
const PACED_BURST_NS: u64 = 50_000;
/// A paced sender that is further behind gives up the difference and counts it as not sent: the load must not exceed what
/// was asked for for long. After the window it may catch up for as long.
const CATCH_UP_NS: u64 = 20_000_000;
/// Sleeps end this much before a datagram is due; the rest is spun.
const SPIN_NS: u64 = 30_000;
/// The receiver looks at the clock this often while nothing arrives.
const TICK: Duration = Duration::from_millis(20);
/// Where datagrams come closer together than this, the receiver sleeps for a while whenever it has emptied its buffer: see
/// [`Nap`].
const NAP_GAP_NS: u64 = 10_000;
const NAP_NS: u64 = 50_000;
const NAP_LOOK_NS: u64 = 1_000_000;
/// Stragglers: nothing arrived for so long ...
const QUIET_NS: u64 = 150_000_000;
/// ... or this much time has passed.
const STRAGGLE_NS: u64 = 3_000_000_000;
/// IPv4 and UDP headers (RFC 791 section 3.1, RFC 768); IPv6 has 20 bytes more (RFC 8200 section 3).
const HEADERS_V4: u32 = 28;
const HEADERS_V6: u32 = 48;

/// Sends the warm-up and the measured phase.
pub(crate) fn send(
    shared: &Shared,
    index: usize,
    spec: &StreamTask,
    socket: &UdpSocket,
) -> Result<Outcome, StreamError> {
    let timeline = &shared.timeline;
    let mut sender = Sender::new(shared, index, spec, socket)?;
    shared.stop.sleep_until(timeline.start());
    sender.phase(timeline.start(), || timeline.open(), WARM_UP)?;
    shared.stop.sleep_until(timeline.open());
    let counts = sender.phase(timeline.open(), || timeline.close(), 0)?;
    let payload_bytes = counts.sent * spec.message_bytes.get();
    Ok(Outcome {
        sent: Some(Sent {
            window: timeline.measure(),
            payload_bytes,
            messages: counts.sent,
            not_sent: counts.not_sent,
            refused: counts.refused,
            io_method: sender.io_method.to_owned(),
        }),
        flow: FlowCounts { sent_bytes: payload_bytes, ..FlowCounts::default() },
        ..Outcome::default()
    })
}

#[derive(Debug, Default)]
struct Counts {
    sent: u64,
    not_sent: u64,
    refused: u64,
}

struct Sender<'a> {
    shared: &'a Shared,
    index: usize,
    spec: &'a StreamTask,
    socket: &'a UdpSocket,
    outgoing: Outgoing,
    /// Datagrams that share a buffer, and with it the kernel's verdict.
    per_buffer: usize,
    tag: u32,
    io_method: &'static str,
}

impl<'a> Sender<'a> {
    fn new(shared: &'a Shared, index: usize, spec: &'a StreamTask, socket: &'a UdpSocket) -> Result<Self, StreamError> {
        let bytes = spec.message_bytes.get() as usize;
        let v6 = shared.job.v6();
        let headers = if v6 { HEADERS_V6 } else { HEADERS_V4 };
        let one_packet = (socket::path_mtu(socket.as_fd(), v6)?.saturating_sub(headers)) as usize;
        let fits = bytes <= one_packet;
        if !fits {
            socket::allow_fragments(socket.as_fd(), v6)?;
        }
        let per_buffer = if spec.offload && fits { (SEGMENTED_BYTES / bytes).clamp(1, SEGMENTS) } else { 1 };
        // Segmentation needs Linux 4.18 and a device that can do checksums.
        let segmented = per_buffer > 1 && udp::segment(socket, bytes as u16).is_ok();
        let (outgoing, per_buffer, io_method) = if segmented {
            let outgoing = Outgoing::new(SEGMENTED_BATCH, per_buffer, bytes, |payload| rand::fill(payload));
            (outgoing, per_buffer, "sendmmsg + UDP_SEGMENT")
        } else {
            (plain_batch(bytes), 1, "sendmmsg")
        };
        let tag = datagram::tag(&shared.job.key, shared.flows[index].hello.flow);
        Ok(Self { shared, index, spec, socket, outgoing, per_buffer, tag, io_method })
    }

    /// Sends from `begin` to `end`; `mark` goes into every sequence number.
    fn phase(&mut self, begin: u64, end: impl Fn() -> u64, mark: u64) -> Result<Counts, StreamError> {
        match self.spec.offered {
            None => self.full_speed(end, mark),
            Some(offered) => {
                let flow = self.shared.flows[self.index].hello.flow;
                let pace = Pace::new(offered, self.spec.message_bytes.get(), begin, flow, self.spec.net.flows);
                self.paced(pace, begin, end, mark)
            }
        }
    }

    fn full_speed(&mut self, end: impl Fn() -> u64, mark: u64) -> Result<Counts, StreamError> {
        let mut counts = Counts::default();
        loop {
            let now = clock::now();
            if now >= end() {
                return Ok(counts);
            }
            let capacity = self.outgoing.capacity();
            self.batch(capacity, now, mark, &mut counts)?;
        }
    }

    fn paced(&mut self, pace: Pace, begin: u64, end: impl Fn() -> u64, mark: u64) -> Result<Counts, StreamError> {
        // Where the end is not known yet, what is due within a second is.
        let due_before = |now: u64| match end().min(now + 1_000_000_000) {
            end if end > begin => pace.due_by(end - 1),
            _ => 0,
        };
        let burst = pace.within(PACED_BURST_NS).min(self.outgoing.capacity() as u64);
        let most_behind = pace.within(CATCH_UP_NS).max(burst);
        let mut counts = Counts::default();
        let (mut next, mut total) = (0, due_before(begin));
        while next < total {
            let at = pace.due((next + burst).min(total) - 1);
            if !self.wait_until(at) {
                return Err(StreamError::Stopped);
            }
            let now = clock::now();
            if now >= end() + CATCH_UP_NS {
                break;
            }
            total = due_before(now);
            let due = pace.due_by(now).min(total).saturating_sub(next);
            let forgone = due.saturating_sub(most_behind);
            counts.not_sent += forgone;
            next += forgone;
            let batch = (due - forgone).min(self.outgoing.capacity() as u64);
            next += self.batch(batch as usize, now, mark, &mut counts)? as u64;
        }
        counts.not_sent += total.saturating_sub(next);
        Ok(counts)
    }

    /// Waits until `at`; false if stopped.
    fn wait_until(&self, at: u64) -> bool {
        if at > clock::now() + 2 * SPIN_NS && !self.shared.stop.sleep_until(at - SPIN_NS) {
            return false;
        }
        clock::spin_until(at);
        true
    }

    /// Sends up to `count` datagrams, all stamped `now`; returns how many were sent or refused.
    #[inline]
    fn batch(&mut self, count: usize, now: u64, mark: u64, counts: &mut Counts) -> Result<usize, StreamError> {
        if self.shared.stop.is_set() {
            return Err(StreamError::Stopped);
        }
        let mut from = 0;
        // A refused datagram has used no number: the next one that is taken gets it, and so the receiver sees no gap.
        let mut number = true;
        while from < count {
            if number {
                let mut header = Header { tag: self.tag, sent_ns: now as u32, sequence: mark | counts.sent };
                for datagram in self.outgoing.datagrams(count).skip(from) {
                    header.write(datagram);
                    header.sequence += 1;
                }
                number = false;
            }
            match self.outgoing.send(self.socket, from, count) {
                Ok(sent) => {
                    from += sent;
                    counts.sent += sent as u64;
                }
                Err(error) if is_timeout(&error) => {
                    if self.shared.stop.is_set() {
                        return Err(StreamError::Stopped);
                    }
                }
                Err(error) if error.raw_os_error() == Some(EIO) && self.per_buffer > 1 => {
                    self.do_without_segmentation()?;
                    break;
                }
                Err(error) => {
                    let refused = self.refused(count - from, error)?;
                    from += refused;
                    counts.refused += refused as u64;
                    number = true;
                }
            }
        }
        if mark == 0 {
            let bytes = counts.sent * self.spec.message_bytes.get();
            self.shared.meters[self.index].bytes.store(bytes, Ordering::Relaxed);
        }
        Ok(from)
    }

    /// The device on the way cannot do the checksums that segmentation needs.
    fn do_without_segmentation(&mut self) -> Result<(), StreamError> {
        udp::segment(self.socket, 0)?;
        self.outgoing = plain_batch(self.spec.message_bytes.get() as usize);
        (self.per_buffer, self.io_method) = (1, "sendmmsg (UDP_SEGMENT refused by the device)");
        Ok(())
    }

    /// How many datagrams the kernel refused with `error`, unless it ends the trial.
    fn refused(&mut self, left: usize, error: io::Error) -> Result<usize, StreamError> {
        match error.raw_os_error() {
            // A queue was full, or memory was short: send(2).
            Some(ENOBUFS | ENOMEM) => Ok(left.min(self.per_buffer)),
            Some(ECONNREFUSED) => {
                Err(self.shared.gone(self.index, "it has closed the datagrams' port (ICMP port unreachable)"))
            }
            Some(EMSGSIZE) => Err(StreamError::InvalidRequest(format!(
                "UDP messages of {} do not pass this path: its MTU has shrunk, or fragments are refused; choose a smaller size",
                self.spec.message_bytes
            ))),
            _ => Err(StreamError::socket(format!(
                "sendmmsg of {} datagrams to {}",
                self.spec.message_bytes, self.shared.flows[self.index].peer
            ))(error)),
        }
    }
}

fn plain_batch(bytes: usize) -> Outgoing {
    Outgoing::new((PLAIN_BATCH_BYTES / bytes).clamp(1, PLAIN_BATCH), 1, bytes, |payload| rand::fill(payload))
}

/// Receives until the measured phase is over and the stragglers are in.
pub(crate) fn receive(
    shared: &Shared,
    index: usize,
    spec: &StreamTask,
    socket: &UdpSocket,
) -> Result<Outcome, StreamError> {
    let timeline = &shared.timeline;
    let measure = timeline.measure().get();
    // Joining needs Linux 5.0.
    let joins = spec.offload && udp::join(socket).is_ok();
    let (buffers, bytes) = if joins {
        (JOINED_BATCH, JOINED_BYTES)
    } else {
        let bytes = spec.message_bytes.get() as usize;
        ((PLAIN_BATCH_BYTES / bytes).clamp(1, PLAIN_BATCH), bytes)
    };
    socket.set_read_timeout(Some(TICK)).map_err(StreamError::socket("setsockopt(SO_RCVTIMEO)"))?;
    let mut incoming = Incoming::new(buffers, bytes);
    let mut arrivals = Arrivals::new(datagram::tag(&shared.job.key, shared.flows[index].hello.flow), measure);
    // Where the thread starts too late to read the count in the pause, it counts from the making of the socket.
    let mut drops_before = (clock::now() >= timeline.open()).then_some(0);
    // A small buffer asked for must be emptied at once.
    let mut nap = (!joins && spec.net.socket.receive_buffer.is_none()).then(Nap::default);
    loop {
        if shared.stop.is_set() {
            return Err(StreamError::Stopped);
        }
        let taken = incoming.receive(socket, false);
        let now = clock::now();
        match taken {
            Ok(taken) => {
                if let Some(nap) = &mut nap
                    && taken < buffers
                {
                    nap.take(taken, now);
                }
                for buffer in incoming.arrived() {
                    arrivals.take(buffer.payload, buffer.datagram_bytes, now);
                }
                shared.meters[index].bytes.store(arrivals.bytes, Ordering::Relaxed);
            }
            // The sender may have gone while its last datagrams are still here.
            Err(error) if is_timeout(&error) || error.kind() == io::ErrorKind::ConnectionRefused => (),
            Err(error) => return Err(StreamError::socket("recvmmsg")(error)),
        }
        // Within the pause, when the warm-up has drained and the measured phase has not begun.
        if drops_before.is_none() && now >= timeline.open() {
            drops_before = Some(socket::drops(socket.as_fd())?);
        }
        let end = arrivals.first.map_or(timeline.close(), |first| timeline.close().max(first + measure));
        let heard = arrivals.last.max(end);
        if now >= heard + QUIET_NS || now >= end + STRAGGLE_NS {
            break;
        }
    }
    let drops = socket::drops(socket.as_fd())?.wrapping_sub(drops_before.unwrap_or(0));
    Ok(arrivals.outcome(measure, drops, joins))
}

/// Lets datagrams gather where they come faster than a thread can be woken for each.
///
/// The wake-up is paid by the sender's core where both ends share a machine, and by the interrupt's elsewhere. Over veth,
/// 64-byte datagrams in batches of 64, it was a quarter of the cost: 0.41 instead of 0.31 M/s, medians of eight pairs of
/// runs in alternating order, better in each. Arrival times, and with them jitter, become as coarse as the nap.
#[derive(Debug, Default)]
struct Nap {
    since: u64,
    taken: u64,
    naps: bool,
}

impl Nap {
    /// Sleeps, after `taken` datagrams left the buffer empty, if the recent rate is high.
    fn take(&mut self, taken: usize, now: u64) {
        self.taken += taken as u64;
        if now - self.since >= NAP_LOOK_NS {
            self.naps = self.taken * NAP_GAP_NS > now - self.since;
            (self.since, self.taken) = (now, 0);
        }
        if self.naps {
            clock::sleep_until(now + NAP_NS);
        }
    }
}

/// What a receiver counts.
struct Arrivals {
    tag: u32,
    measure: u64,
    sequence: Sequence,
    /// When the first and the last measured datagram arrived.
    first: Option<u64>,
    last: u64,
    /// Within the window: the measured phase's length from its first datagram on, so that neither the transit time nor the
    /// difference of the two hosts' starts cuts off its end.
    bytes: u64,
    messages: u64,
    joined: u64,
    jitter: Jitter,
}

impl Arrivals {
    fn new(tag: u32, measure: u64) -> Self {
        Self {
            tag,
            measure,
            sequence: Sequence::default(),
            first: None,
            last: 0,
            bytes: 0,
            messages: 0,
            joined: 0,
            jitter: Jitter::default(),
        }
    }

    /// Takes one buffer of datagrams.
    #[inline]
    fn take(&mut self, payload: &[u8], datagram_bytes: usize, now: u64) {
        let mut measured = 0u64;
        for datagram in payload.chunks(datagram_bytes.max(HEADER)) {
            let Some(header) = Header::read(datagram, self.tag) else { continue };
            if header.sequence & WARM_UP != 0 {
                continue;
            }
            let first = *self.first.get_or_insert(now);
            self.last = now;
            measured += 1;
            if self.sequence.take(header.sequence) && now < first + self.measure {
                self.messages += 1;
                self.bytes += datagram.len() as u64;
            }
            // Joined datagrams arrived together: only the first says something about transit.
            if measured == 1 {
                self.jitter.take(now, header.sent_ns);
            }
        }
        if measured > 1 {
            self.joined += 1;
        }
    }

    fn outcome(self, measure: u64, drops: u32, joins: bool) -> Outcome {
        Outcome {
            received: Some(Received {
                window: Nanos::new(measure),
                payload_bytes: self.bytes,
                messages: self.messages,
                arrived: self.sequence.arrived,
                duplicates: self.sequence.duplicates,
                reordered: self.sequence.reordered,
                socket_drops: drops.into(),
                joined: self.joined,
                jitter: Some(Nanos::new(self.jitter.mean_ns())),
                io_method: if joins { "recvmmsg + UDP_GRO" } else { "recvmmsg" }.to_owned(),
            }),
            flow: FlowCounts { received_bytes: self.bytes, ..FlowCounts::default() },
            ..Outcome::default()
        }
    }
}

/// Mean deviation of transit times, RFC 3550 section 6.4.1 and appendix A.8. Datagrams taken in one call share an arrival
/// time.
#[derive(Debug, Default)]
struct Jitter {
    /// The last transit time, modulo 2^32: the clocks' difference cancels out.
    transit: Option<u32>,
    /// Sixteen times the estimate.
    scaled: i64,
}

impl Jitter {
    #[inline]
    fn take(&mut self, now: u64, sent_ns: u32) {
        let transit = (now as u32).wrapping_sub(sent_ns);
        if let Some(before) = self.transit.replace(transit) {
            let deviation = i64::from((transit.wrapping_sub(before) as i32).unsigned_abs());
            self.scaled += deviation - ((self.scaled + 8) >> 4);
        }
    }

    fn mean_ns(&self) -> u64 {
        (self.scaled >> 4).max(0) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jitter_of_a_steady_deviation_is_that_deviation() {
        let mut jitter = Jitter::default();
        for n in 0..1_000u64 {
            // Transit alternates between 10 and 14 us; the clock wraps on the way.
            let sent = u64::from(u32::MAX) - 500_000 + n * 1_000;
            jitter.take(sent + 10_000 + n % 2 * 4_000, sent as u32);
        }
        assert!(jitter.mean_ns().abs_diff(4_000) < 20, "{}", jitter.mean_ns());
    }

    #[test]
    fn the_window_begins_with_the_first_measured_datagram() {
        let mut arrivals = Arrivals::new(9, 100);
        let datagram = |sequence| {
            let mut bytes = [0; 20];
            Header { tag: 9, sent_ns: 0, sequence }.write(&mut bytes);
            bytes
        };
        arrivals.take(&datagram(WARM_UP | 5), 20, 10);
        arrivals.take(&datagram(0), 20, 50);
        arrivals.take(&datagram(1), 20, 149);
        arrivals.take(&datagram(2), 20, 150);
        arrivals.take(&[datagram(3), datagram(4)].concat(), 20, 151);
        assert_eq!((arrivals.messages, arrivals.bytes, arrivals.sequence.arrived, arrivals.joined), (2, 40, 5, 1));
    }
}
