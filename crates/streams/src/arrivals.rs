//! What a UDP receiver counts: the rate over its window, and what became of the datagrams of the measured phase.
//!
//! The window of a single flow begins with the first measured datagram, or at a set time if that comes late: a sender that was held up sent
//! none for so long. Where several flows take turns on a path, the windows of all begin and end at set times, or each would begin with its
//! turn. A window is as long as was asked for, or longer by the time that its close waited until the socket was empty; one that opened late
//! ends with the sender. The rate is that of all datagrams that arrive in it, of any phase,
//! over the time between two moments at which all that had arrived was counted. So neither transit time nor a burst at an edge makes it
//! higher than what the path carries.
//!
//! Of a volume all measured datagrams count, from the opening of the window to the last of them.

use crate::datagram::{Numbering, Phase};
use crate::flow::Outcome;
use crate::sequence::{Arrival, Sequence};
use linerate_model::{FlowCounts, Received};
use linerate_sys::udp::Arrived;
use linerate_units::Nanos;

/// Reading time for which an edge waits at most until the socket holds nothing. What is left in the socket then had arrived before the
/// edge and counts behind it.
const EMPTY_NS: u64 = 20_000_000;
/// Reading time that one sample adds at most. A reader that was held up longer finds more in its socket and reads on; one that serves many
/// flows comes to each only every few milliseconds.
const TURN_NS: u64 = EMPTY_NS / 4;
/// A window that no datagram closes within this part of it ends when it should: a rate so low leaves its end open.
const CLOSE_PART: u64 = 20;
/// The same in time.
const CLOSE_NS: u64 = 100_000_000;
/// Or within this many times the mean time between datagrams.
const CLOSE_GAPS: u64 = 3;

/// New datagrams of all phases, and their bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Total {
    pub(crate) datagrams: u64,
    pub(crate) bytes: u64,
}

/// What a receiver counts.
#[derive(Debug)]
pub(crate) struct Arrivals {
    numbering: Numbering,
    /// The phase of what arrives now, where the sender does not tell it.
    now_in: Phase,
    measure: u64,
    /// Flows of the same end arrive as well.
    has_others: bool,
    /// When the window opens at the latest.
    opens: u64,
    /// Of a volume: bytes of each datagram.
    volume: Option<u64>,
    sequence: Sequence,
    total: Total,
    /// When the first datagrams of any phase arrived, and how many.
    begun: Option<(u64, u64)>,
    /// When a datagram of any phase arrived last.
    heard: u64,
    first: Option<First>,
    /// When a datagram arrived last that was sent before the cool-down: more may be on their way.
    last: u64,
    opened: Option<(u64, Total)>,
    closed: Option<(u64, Total)>,
    /// When the latest sample was taken, and the reading time since the edge was due, nanoseconds.
    sampled: u64,
    waited: u64,
    /// Measured datagrams: new ones, copies, those that came after a higher number.
    arrived: u64,
    duplicates: u64,
    reordered: u64,
    /// Buffers of more than one measured datagram.
    joined: u64,
    jitter: Jitter,
    /// The socket's drops when the last datagram before the measured ones was queued, and when the first one after them was.
    drops_before: u32,
    drops_after: Option<u32>,
    /// One above the highest number before the first measured datagram, and after the last one.
    numbers: Option<(u64, u64)>,
}

/// The batch that held the first measured datagram.
#[derive(Debug, Clone, Copy)]
struct First {
    at: u64,
    /// What had arrived before it.
    before: Total,
}

impl Arrivals {
    /// Counts datagrams of a flow, over a window of `measure` nanoseconds.
    pub(crate) fn new(numbering: Numbering, measure: u64) -> Self {
        Self {
            numbering,
            now_in: Phase::WarmUp,
            measure,
            has_others: false,
            opens: u64::MAX,
            volume: None,
            sequence: Sequence::default(),
            total: Total::default(),
            begun: None,
            heard: 0,
            first: None,
            last: 0,
            opened: None,
            closed: None,
            sampled: 0,
            waited: 0,
            arrived: 0,
            duplicates: 0,
            reordered: 0,
            joined: 0,
            jitter: Jitter::default(),
            drops_before: 0,
            drops_after: None,
            numbers: None,
        }
    }

    /// The same, beside other flows of its end if it `has_others`.
    pub(crate) fn beside_others(self, has_others: bool) -> Self {
        Self { has_others, ..self }
    }

    /// Counts a volume in datagrams of `bytes`, over `longest` nanoseconds at the most.
    pub(crate) fn of_volume(numbering: Numbering, longest: u64, bytes: u64) -> Self {
        Self { volume: Some(bytes), ..Self::new(numbering, longest) }
    }

    /// Sets the phase by this end's clock, which is that of datagrams that do not tell theirs, and when the window opens by this clock.
    /// `open` is `None` while no flow of this end has received: the sender may begin late.
    #[inline]
    pub(crate) fn enter(&mut self, phase: Phase, open: Option<u64>) {
        self.now_in = phase;
        // The sender's cool-down lasts beyond the end of a window that opens so late.
        let late = CLOSE_NS.min(self.measure / CLOSE_PART) / 2;
        self.opens = open.filter(|_| self.volume.is_none()).map_or(u64::MAX, |open| open.saturating_add(late));
    }

    /// Takes what one call gave, at `now`. `emptied` says that it left nothing in the socket.
    #[inline]
    pub(crate) fn take<'a>(&mut self, buffers: impl Iterator<Item = Arrived<'a>>, now: u64, emptied: bool) {
        let before = self.total;
        let mut measured = 0;
        for buffer in buffers {
            measured += self.take_buffer(&buffer, now);
        }
        self.heard = now;
        self.begun = self.begun.or(Some((now, self.total.datagrams)));
        let opens_by_clock = self.has_others && self.opens != u64::MAX;
        if now >= self.opens || measured > 0 && !opens_by_clock {
            self.first.get_or_insert(First { at: now, before });
        }
        if measured > 0 || self.arrived == 0 {
            self.last = now;
        }
        self.sample(now, emptied);
    }

    /// Takes the datagrams of one buffer. Returns how many of them are measured ones.
    #[inline]
    fn take_buffer(&mut self, buffer: &Arrived<'_>, now: u64) -> u64 {
        let mut measured = 0;
        for datagram in buffer.payload.chunks(buffer.datagram_bytes.max(self.numbering.header())) {
            let Some(marked) = self.numbering.read(datagram) else { continue };
            let phase = marked.phase.unwrap_or(self.now_in);
            let before = self.sequence.next();
            let arrival = self.sequence.take(marked.number);
            if arrival != Arrival::Copy {
                self.total.datagrams += 1;
                self.total.bytes += datagram.len() as u64;
            }
            match phase {
                Phase::Measured => {
                    self.duplicates += u64::from(arrival == Arrival::Copy);
                    self.reordered += u64::from(arrival == Arrival::Reordered);
                    self.arrived += u64::from(arrival != Arrival::Copy);
                    measured += 1;
                    self.numbers.get_or_insert((before, before)).1 = self.sequence.next();
                    // Joined datagrams arrived together: only the first says something about transit.
                    if measured == 1 {
                        self.jitter.take(now, marked.sent_ns);
                    }
                }
                Phase::WarmUp if self.arrived == 0 => self.drops_before = buffer.drops,
                Phase::CoolDown if self.drops_after.is_none() => self.drops_after = Some(buffer.drops),
                Phase::WarmUp | Phase::CoolDown => (),
            }
        }
        self.joined += u64::from(measured > 1);
        measured
    }

    /// Takes note that nothing had arrived at `now`.
    pub(crate) fn nothing(&mut self, now: u64) {
        let is_awaited = !self.has_others && now < self.next_expected();
        if self.first.is_none() && now >= self.opens && !is_awaited {
            self.first = Some(First { at: now, before: self.total });
            self.opened = Some((now, self.total));
        }
        self.sample(self.heard, true);
        let grace = if self.has_others { 0 } else { CLOSE_NS.min(self.measure / CLOSE_PART) };
        if self.end().is_some_and(|end| now >= end + grace) && !is_awaited {
            self.close_in_silence(now);
        }
    }

    /// Returns when the next datagram should have arrived at the latest, by the mean time between those that came.
    pub(crate) fn next_expected(&self) -> u64 {
        let (begun, first) = self.begun.unwrap_or_default();
        let later = self.total.datagrams - first;
        let gap = (self.heard - begun).checked_div(later).unwrap_or(0);
        self.heard + CLOSE_GAPS * gap
    }

    /// Takes the total at an edge of the window, if `at` is one.
    #[inline]
    fn sample(&mut self, at: u64, emptied: bool) {
        let turn = at.saturating_sub(self.sampled).min(TURN_NS);
        self.sampled = at.max(self.sampled);
        let (edge, due) = match (self.first, self.opened, self.closed) {
            (Some(first), None, _) => (&mut self.opened, first.at),
            (_, Some((opened, _)), None) => (&mut self.closed, opened + self.measure),
            _ => return,
        };
        if at < due {
            return;
        }
        self.waited += turn.min(at - due);
        if emptied || self.waited >= EMPTY_NS {
            *edge = Some((at, self.total));
            self.waited = 0;
        }
    }

    /// Ends a window that no datagram closed. It ends with the last datagram where the sender has ended already, because the window opened
    /// late, where its close still waited for an empty socket, and where the receiver ends it early, at `now`. Otherwise it ends when it
    /// should have, and begins with its first datagram instead of behind it.
    fn close_in_silence(&mut self, now: u64) {
        let (Some(first), Some((opened, _)), None) = (self.first, self.opened, self.closed) else { return };
        let end = opened + self.measure;
        if self.heard >= end || (self.is_marked() || now < end) && self.heard > opened {
            self.closed = Some((self.heard, self.total));
        } else {
            self.opened = Some((opened, first.before));
            self.closed = Some((end, self.total));
        }
    }

    /// When the window should end; none if it has not begun.
    pub(crate) fn end(&self) -> Option<u64> {
        self.opened.map(|(opened, _)| opened + self.measure)
    }

    /// When a datagram arrived last that was sent before the cool-down; zero if none has.
    pub(crate) fn last(&self) -> u64 {
        self.last
    }

    /// When a datagram of any phase arrived last; zero if none has.
    pub(crate) fn heard(&self) -> u64 {
        self.heard
    }

    /// Measured datagrams that arrived, copies left out.
    pub(crate) fn arrived(&self) -> u64 {
        self.arrived
    }

    /// Whether a datagram of the cool-down has arrived: the measured ones have been sent.
    pub(crate) fn is_marked(&self) -> bool {
        self.drops_after.is_some()
    }

    /// Datagrams of all phases that arrived, copies left out.
    #[inline]
    pub(crate) fn total(&self) -> Total {
        self.total
    }

    /// Datagrams of all phases that are missing, by the numbers of those that came.
    #[inline]
    pub(crate) fn missing(&self) -> u64 {
        self.sequence.missing()
    }

    /// Mean deviation of the transit times of measured datagrams, nanoseconds. `None` before the second one.
    #[inline]
    pub(crate) fn jitter_ns(&self) -> Option<u64> {
        self.jitter.mean_ns()
    }

    /// The length of the window, and what counted in it by `now`. Of a volume it began at `open`.
    fn counted(&mut self, open: u64, now: u64) -> (Nanos, Total) {
        if let Some(bytes) = self.volume {
            let counted = Total { datagrams: self.arrived, bytes: self.arrived * bytes };
            let length = self.first.map_or(0, |first| self.last.saturating_sub(open.min(first.at)));
            return (Nanos::new(length), counted);
        }
        self.close_in_silence(now);
        let (from, before) = self.opened.unwrap_or_default();
        let (to, after) = self.closed.unwrap_or((self.measure, before));
        let counted = Total { datagrams: after.datagrams - before.datagrams, bytes: after.bytes - before.bytes };
        (Nanos::new(to - from), counted)
    }

    /// What was counted by `now` in the window, which was to open at `open`, on a socket that has dropped `drops`.
    pub(crate) fn outcome(mut self, open: u64, now: u64, drops: u32, io_method: &str) -> Outcome {
        let (window, Total { datagrams, bytes: payload_bytes }) = self.counted(open, now);
        Outcome {
            received: Some(Received {
                window,
                payload_bytes,
                messages: datagrams,
                arrived: self.arrived,
                duplicates: self.duplicates,
                reordered: self.reordered,
                socket_drops: self.drops_after.unwrap_or(drops).saturating_sub(self.drops_before).into(),
                joined: self.joined,
                jitter: self.jitter.mean_ns().map(Nanos::new),
                io_method: io_method.to_owned(),
            }),
            flow: FlowCounts { received_bytes: payload_bytes, ..FlowCounts::default() },
            numbered: Some(self.numbers.map_or(0, |(before, after)| after - before)),
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
    /// Sixteen times the estimate. `None` before there are two transit times.
    scaled: Option<i64>,
}

impl Jitter {
    #[inline]
    fn take(&mut self, now: u64, sent_ns: u32) {
        let transit = (now as u32).wrapping_sub(sent_ns);
        if let Some(before) = self.transit.replace(transit) {
            let deviation = i64::from((transit.wrapping_sub(before) as i32).unsigned_abs());
            let scaled = self.scaled.unwrap_or_default();
            self.scaled = Some(scaled + deviation - ((scaled + 8) >> 4));
        }
    }

    fn mean_ns(&self) -> Option<u64> {
        self.scaled.map(|scaled| (scaled >> 4).max(0) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datagram::Header;

    #[test]
    fn jitter_of_a_steady_deviation_is_that_deviation() {
        let mut jitter = Jitter::default();
        for n in 0..1_000u64 {
            // Transit alternates between 10 and 14 us; the clock wraps on the way.
            let sent = u64::from(u32::MAX) - 500_000 + n * 1_000;
            jitter.take(sent + 10_000 + n % 2 * 4_000, sent as u32);
        }
        assert!(jitter.mean_ns().is_some_and(|mean| mean.abs_diff(4_000) < 20), "{jitter:?}");
    }

    #[test]
    fn jitter_of_one_datagram_is_unknown() {
        let mut jitter = Jitter::default();
        assert_eq!(jitter.mean_ns(), None);
        jitter.take(1_000, 0);
        assert_eq!(jitter.mean_ns(), None);
        jitter.take(2_000, 1_000);
        assert_eq!(jitter.mean_ns(), Some(0));
    }

    const BYTES: usize = 20;
    const OWN: Numbering = Numbering::Own { tag: 9 };

    fn datagrams(phase: Phase, numbers: std::ops::Range<u64>) -> Vec<u8> {
        let datagram = |number| {
            let mut bytes = [0; BYTES];
            Header { tag: 9, sent_ns: 0, sequence: phase.sequence(number) }.write(&mut bytes);
            bytes
        };
        numbers.flat_map(datagram).collect()
    }

    /// Takes a batch of one buffer, which empties the socket or not.
    fn take(arrivals: &mut Arrivals, payload: &[u8], now: u64, emptied: bool, drops: u32) {
        let buffer = Arrived { payload, datagram_bytes: BYTES, truncated: false, drops };
        arrivals.take(std::iter::once(buffer), now, emptied);
    }

    fn received(arrivals: Arrivals) -> Received {
        arrivals.outcome(0, u64::MAX, 0, "recvmmsg").received.expect("it receives")
    }

    /// Bursts of ten, as they come from a GSO sender: a count that held those at both edges would say 40 in 300 ns.
    #[test]
    fn the_rate_is_that_between_the_edges_whatever_the_phase() {
        let mut arrivals = Arrivals::new(OWN, 300);
        take(&mut arrivals, &datagrams(Phase::WarmUp, 0..10), 900, true, 0);
        take(&mut arrivals, &datagrams(Phase::Measured, 10..20), 1_000, true, 0);
        take(&mut arrivals, &datagrams(Phase::Measured, 20..30), 1_100, true, 0);
        take(&mut arrivals, &datagrams(Phase::Measured, 30..40), 1_200, true, 0);
        take(&mut arrivals, &datagrams(Phase::CoolDown, 40..50), 1_300, true, 0);
        take(&mut arrivals, &datagrams(Phase::CoolDown, 50..60), 1_400, true, 0);
        let received = received(arrivals);
        assert_eq!((received.messages, received.payload_bytes, received.window), (30, 600, Nanos::new(300)));
        assert_eq!((received.arrived, received.joined), (30, 3));
    }

    /// A reader that was kept from its core finds in its socket what arrived before the edge.
    #[test]
    fn an_edge_waits_until_the_socket_is_empty() {
        let mut arrivals = Arrivals::new(OWN, 1_000);
        take(&mut arrivals, &datagrams(Phase::Measured, 0..10), 5_000, false, 0);
        take(&mut arrivals, &datagrams(Phase::Measured, 10..20), 5_001, false, 0);
        take(&mut arrivals, &datagrams(Phase::Measured, 20..25), 5_002, true, 0);
        take(&mut arrivals, &datagrams(Phase::Measured, 25..35), 5_900, true, 0);
        take(&mut arrivals, &datagrams(Phase::CoolDown, 35..45), 6_100, false, 0);
        arrivals.nothing(6_110);
        let received = received(arrivals);
        assert_eq!((received.messages, received.window), (20, Nanos::new(1_098)));
    }

    /// What came while the reader was held up had arrived before the edge.
    #[test]
    fn an_edge_waits_for_a_reader_that_was_held_up() {
        let mut arrivals = Arrivals::new(OWN, 1_000_000_000);
        let late = 300_000_000;
        take(&mut arrivals, &datagrams(Phase::Measured, 0..10), 5_000, false, 0);
        take(&mut arrivals, &datagrams(Phase::Measured, 10..20), 5_000 + late, false, 0);
        take(&mut arrivals, &datagrams(Phase::Measured, 20..30), 6_000 + late, true, 0);
        take(&mut arrivals, &datagrams(Phase::CoolDown, 30..35), 1_000_006_000 + late, false, 0);
        take(&mut arrivals, &datagrams(Phase::CoolDown, 35..40), 1_000_006_000 + 2 * late, false, 0);
        take(&mut arrivals, &datagrams(Phase::CoolDown, 40..45), 1_000_007_000 + 2 * late, true, 0);
        let received = received(arrivals);
        assert_eq!((received.messages, received.window.get()), (15, 1_000_001_000 + late));
    }

    #[test]
    fn a_window_that_opened_late_ends_with_its_sender() {
        let mut arrivals = Arrivals::new(OWN, 1_000_000_000);
        take(&mut arrivals, &datagrams(Phase::WarmUp, 0..1), 900, true, 0);
        take(&mut arrivals, &datagrams(Phase::Measured, 1..11), 300_000_000, false, 0);
        take(&mut arrivals, &datagrams(Phase::Measured, 11..301), 300_001_000, true, 0);
        take(&mut arrivals, &datagrams(Phase::Measured, 301..1_001), 1_000_000_000, true, 0);
        take(&mut arrivals, &datagrams(Phase::CoolDown, 1_001..1_101), 1_100_000_000, true, 0);
        arrivals.nothing(1_400_000_000);
        let received = received(arrivals);
        assert_eq!((received.messages, received.window), (800, Nanos::new(799_999_000)));
    }

    /// What is sent within the window waits behind the warm-up, or its sender is held up: the window has its whole length.
    #[test]
    fn a_window_without_measured_datagrams_opens_at_its_time() {
        let mut arrivals = Arrivals::new(OWN, 1_000);
        arrivals.enter(Phase::WarmUp, Some(5_000));
        for turn in 0..60 {
            take(&mut arrivals, &datagrams(Phase::WarmUp, turn..turn + 1), 4_000 + turn * 50, true, 0);
        }
        let received = received(arrivals);
        assert_eq!((received.messages, received.arrived, received.window), (20, 0, Nanos::new(1_000)));
        let mut late = Arrivals::new(OWN, 1_000);
        late.enter(Phase::WarmUp, Some(5_000));
        take(&mut late, &datagrams(Phase::WarmUp, 0..10), 4_900, true, 0);
        take(&mut late, &datagrams(Phase::WarmUp, 10..20), 4_990, true, 0);
        late.nothing(5_060);
        take(&mut late, &datagrams(Phase::Measured, 20..50), 5_500, true, 0);
        take(&mut late, &datagrams(Phase::CoolDown, 50..60), 6_100, true, 0);
        let received = super::tests::received(late);
        assert_eq!((received.messages, received.arrived, received.window), (40, 30, Nanos::new(1_040)));
    }

    /// Two flows take turns, and each waits for its turn longer than the window lasts.
    #[test]
    fn windows_of_flows_that_take_turns_are_those_of_the_clock() {
        let turns = |first: u64| {
            let mut arrivals = Arrivals::new(OWN, 1_000).beside_others(true);
            arrivals.enter(Phase::WarmUp, Some(10_000));
            let mut number = 0;
            for now in (0..20_000).step_by(50) {
                if now / 5_000 % 2 == first {
                    let phase = if now < 10_000 { Phase::WarmUp } else { Phase::Measured };
                    take(&mut arrivals, &datagrams(phase, number..number + 1), now, true, 0);
                    number += 1;
                } else {
                    arrivals.nothing(now);
                }
            }
            received(arrivals)
        };
        let [one, other] = [turns(0), turns(1)];
        assert_eq!((one.messages, one.window), (20, Nanos::new(1_000)));
        assert_eq!((other.messages, other.window), (0, Nanos::new(1_000)));
    }

    #[test]
    fn a_socket_that_is_never_empty_has_edges_too() {
        let mut arrivals = Arrivals::new(OWN, 100_000_000);
        for turn in 0..200 {
            take(&mut arrivals, &datagrams(Phase::Measured, turn..turn + 1), turn * 1_000_000, false, 0);
        }
        let received = received(arrivals);
        assert_eq!((received.messages, received.window), (120, Nanos::new(120_000_000)));
    }

    /// Measured datagrams every 400 ns, three of them in a window of 1,000 ns.
    fn slow() -> Arrivals {
        let mut arrivals = Arrivals::new(OWN, 1_000);
        take(&mut arrivals, &datagrams(Phase::WarmUp, 0..1), 600, true, 0);
        take(&mut arrivals, &datagrams(Phase::Measured, 1..2), 1_000, true, 0);
        arrivals.nothing(1_300);
        take(&mut arrivals, &datagrams(Phase::Measured, 2..3), 1_400, true, 0);
        take(&mut arrivals, &datagrams(Phase::Measured, 3..4), 1_800, true, 0);
        arrivals.nothing(2_060);
        assert_eq!(arrivals.closed, None, "the next may come yet");
        arrivals
    }

    #[test]
    fn a_window_that_nothing_closes_is_as_long_as_asked_for() {
        let mut arrivals = slow();
        arrivals.nothing(3_000);
        take(&mut arrivals, &datagrams(Phase::CoolDown, 4..5), 3_200, true, 0);
        let received = received(arrivals);
        assert_eq!((received.messages, received.window), (3, Nanos::new(1_000)));
        let silent = super::tests::received(Arrivals::new(OWN, 1_000));
        assert_eq!((silent.messages, silent.arrived, silent.window), (0, 0, Nanos::new(1_000)));
    }

    #[test]
    fn slow_datagrams_count_from_one_arrival_to_another() {
        let mut arrivals = slow();
        take(&mut arrivals, &datagrams(Phase::CoolDown, 4..5), 2_200, true, 0);
        let received = received(arrivals);
        assert_eq!((received.messages, received.window), (3, Nanos::new(1_200)));
    }

    #[test]
    fn a_window_that_the_receiver_ends_early_ends_with_its_last_datagram() {
        let received = slow().outcome(0, 1_900, 0, "recvmmsg").received.expect("it receives");
        assert_eq!((received.messages, received.window), (2, Nanos::new(800)));
    }

    /// The first batch counts from the opening on, the marks behind the last do not count, and what comes after them late does.
    #[test]
    fn of_a_volume_every_measured_datagram_counts() {
        let mut arrivals = Arrivals::of_volume(OWN, 1_000_000, BYTES as u64);
        take(&mut arrivals, &datagrams(Phase::WarmUp, 0..5), 900, true, 0);
        take(&mut arrivals, &datagrams(Phase::Measured, 5..15), 1_100, true, 0);
        assert!(!arrivals.is_marked());
        take(&mut arrivals, &datagrams(Phase::Measured, 15..19), 1_500, true, 0);
        take(&mut arrivals, &datagrams(Phase::CoolDown, 20..21), 1_600, true, 0);
        take(&mut arrivals, &datagrams(Phase::Measured, 19..20), 1_700, true, 0);
        take(&mut arrivals, &datagrams(Phase::CoolDown, 21..22), 1_900, true, 0);
        assert!(arrivals.is_marked() && arrivals.last() == 1_700 && arrivals.heard() == 1_900);
        let received = arrivals.outcome(1_000, u64::MAX, 0, "recvmmsg").received.expect("it receives");
        assert_eq!((received.messages, received.payload_bytes, received.window), (15, 300, Nanos::new(700)));
        let silent = Arrivals::of_volume(OWN, 1_000_000, BYTES as u64).outcome(1_000, u64::MAX, 0, "recvmmsg").received;
        assert_eq!(silent.map(|received| (received.messages, received.window)), Some((0, Nanos::new(0))));
    }

    #[test]
    fn losses_and_copies_are_those_of_the_measured_phase() {
        let mut arrivals = Arrivals::new(OWN, 1_000);
        // Of the warm-up 1 and 4 are missing, of the measured phase 7; 3 comes twice and late, and so does 8.
        for (phase, numbers, drops) in [
            (Phase::WarmUp, 0..1, 0),
            (Phase::WarmUp, 2..4, 1),
            (Phase::WarmUp, 3..4, 1),
            (Phase::Measured, 5..7, 2),
            (Phase::Measured, 9..10, 3),
            (Phase::Measured, 8..9, 3),
            (Phase::Measured, 8..9, 3),
            (Phase::CoolDown, 10..11, 3),
            (Phase::CoolDown, 20..21, 12),
        ] {
            take(&mut arrivals, &datagrams(phase, numbers), 100, true, drops);
        }
        assert_eq!(arrivals.missing(), 12);
        assert_eq!(arrivals.total(), Total { datagrams: 9, bytes: 180 });
        let received = received(arrivals);
        assert_eq!((received.arrived, received.duplicates, received.reordered), (4, 1, 1));
        // Which of the drops before the first measured datagram was one of those cannot be told: it counts.
        assert_eq!(received.socket_drops, 2);
    }

    /// A sender that tells no phases: what arrives within the window was sent in it, and its numbers say how much that was.
    #[test]
    fn without_phases_the_window_is_that_of_arrival() {
        let numbering = Numbering::Iperf3 { wide: true };
        let mut arrivals = Arrivals::new(numbering, 1_000);
        let mut take = |phase, numbers: &[u64], now| {
            let mut payload = vec![0; BYTES * numbers.len()];
            for (datagram, number) in payload.chunks_mut(BYTES).zip(numbers) {
                numbering.write(datagram, now, Phase::WarmUp, *number);
            }
            arrivals.enter(phase, None);
            let buffer = Arrived { payload: &payload, datagram_bytes: BYTES, truncated: false, drops: 0 };
            arrivals.take(std::iter::once(buffer), now, true);
        };
        // 1 and 3 are lost before the window, 5 and 7 in it, 10 after it.
        take(Phase::WarmUp, &[0, 2], 500);
        take(Phase::Measured, &[4, 6], 1_000);
        take(Phase::Measured, &[8], 1_500);
        take(Phase::CoolDown, &[9, 11], 2_000);
        let outcome = arrivals.outcome(0, u64::MAX, 0, "recvmmsg");
        let received = outcome.received.expect("it receives");
        // The gap between the last number before the window and the first in it counts as one of the window.
        assert_eq!((received.arrived, outcome.numbered), (3, Some(6)));
    }
}
