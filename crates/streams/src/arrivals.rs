//! Counts of a UDP receiver: the rate over its window, and the arrivals of the measured phase.
//!
//! The window of a single flow begins with the first measured datagram, or at a set time if the sender was stalled. If
//! several flows take turns on a path, all windows begin and end at set times; otherwise each would begin with its
//! turn. A window has the requested length, plus the time that its close waited until the socket was empty. A window
//! that opened late ends with the sender.
//!
//! The rate counts all datagrams that arrive in the window, of any phase, between two moments at which everything that
//! had arrived was counted. So neither transit time nor a burst at an edge makes it higher than the rate of the path.
//!
//! In a volume all measured datagrams count, from the opening of the window to the last of them.

use crate::datagram::{Numbering, Phase};
use crate::flow::Outcome;
use crate::sequence::{Arrival, Sequence};
use linerate_model::{FlowCounts, Received};
use linerate_sys::udp::Arrived;
use linerate_units::Nanos;

/// Longest reading time for which an edge waits until the socket is empty. Datagrams left in the socket after that had
/// arrived before the edge and count after it.
const EMPTY_NS: u64 = 20_000_000;
/// Most reading time that one sample adds. A reader that was stalled longer finds more in its socket and reads on; a
/// reader of many flows comes to each only every few milliseconds.
const TURN_NS: u64 = EMPTY_NS / 4;
/// Part of the window within which a datagram must close it. Otherwise the rate is too low, and the window ends at its
/// set time.
const CLOSE_PART: u64 = 20;
/// Upper limit of that time.
const CLOSE_NS: u64 = 100_000_000;
/// Mean gaps between datagrams within which the next one is expected.
const CLOSE_GAPS: u64 = 3;

/// Number of new datagrams of all phases, and their bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Total {
    pub(crate) datagrams: u64,
    pub(crate) bytes: u64,
}

/// Counts of a receiver.
#[derive(Debug)]
pub(crate) struct Arrivals {
    numbering: Numbering,
    /// Phase by this end's clock, for datagrams without one.
    current_phase: Phase,
    measure: u64,
    /// Whether other flows arrive at the same end.
    has_others: bool,
    /// Latest opening of the window.
    opens: u64,
    /// Bytes of each datagram of a volume. `None` if the window ends by time.
    volume: Option<u64>,
    sequence: Sequence,
    total: Total,
    /// Arrival time of the first datagrams of any phase, and their number.
    begun: Option<(u64, u64)>,
    /// Last arrival of a datagram of any phase.
    heard: u64,
    first: Option<First>,
    /// Last arrival of a datagram that was sent before the cool-down.
    last: u64,
    opened: Option<(u64, Total)>,
    closed: Option<(u64, Total)>,
    /// Time of the latest sample.
    sampled: u64,
    /// Reading time since the edge was due, nanoseconds.
    waited: u64,
    /// New measured datagrams.
    arrived: u64,
    /// Copies of measured datagrams.
    duplicates: u64,
    /// Measured datagrams that arrived after a higher number.
    reordered: u64,
    /// Buffers of more than one measured datagram.
    joined: u64,
    jitter: Jitter,
    /// Drops of the socket before the measured datagrams.
    drops_before: u32,
    /// Drops of the socket when the first datagram after the measured ones was queued.
    drops_after: Option<u32>,
    /// One above the highest number before the first measured datagram, and after the last one.
    numbers: Option<(u64, u64)>,
}

/// The batch that held the first measured datagram.
#[derive(Debug, Clone, Copy)]
struct First {
    at: u64,
    /// Total before the batch.
    before: Total,
}

impl Arrivals {
    /// Creates the counts of a flow over a window of `measure` nanoseconds.
    pub(crate) fn new(numbering: Numbering, measure: u64) -> Self {
        Self {
            numbering,
            current_phase: Phase::WarmUp,
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

    /// Sets whether other flows arrive at the same end.
    pub(crate) fn with_others(self, has_others: bool) -> Self {
        Self { has_others, ..self }
    }

    /// Creates the counts of a volume in datagrams of `bytes`, over at most `longest` nanoseconds.
    pub(crate) fn of_volume(numbering: Numbering, longest: u64, bytes: u64) -> Self {
        Self { volume: Some(bytes), ..Self::new(numbering, longest) }
    }

    /// Sets the phase and the opening of the window by this end's clock. The phase applies to datagrams without one.
    ///
    /// `open` is `None` while no flow of this end has received, because the sender may begin late.
    #[inline]
    pub(crate) fn enter(&mut self, phase: Phase, open: Option<u64>) {
        self.current_phase = phase;
        // The sender's cool-down lasts beyond the end of a window with this delay.
        let late = CLOSE_NS.min(self.measure / CLOSE_PART) / 2;
        self.opens = open.filter(|_| self.volume.is_none()).map_or(u64::MAX, |open| open.saturating_add(late));
    }

    /// Counts the datagrams of one call, at `now`. `emptied` is whether the call left the socket empty.
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

    /// Counts the datagrams of one buffer. Returns the number of measured ones.
    #[inline]
    fn take_buffer(&mut self, buffer: &Arrived<'_>, now: u64) -> u64 {
        let mut measured = 0;
        for datagram in buffer.payload.chunks(buffer.datagram_bytes.max(self.numbering.header())) {
            let Some(marked) = self.numbering.read(datagram) else { continue };
            let phase = marked.phase.unwrap_or(self.current_phase);
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
                    // Joined datagrams arrived together, so only the transit time of the first is known.
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

    /// Records that nothing had arrived by `now`.
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

    /// Returns the latest expected arrival of the next datagram, from the mean gap between datagrams.
    pub(crate) fn next_expected(&self) -> u64 {
        let (begun, first) = self.begun.unwrap_or_default();
        let later = self.total.datagrams - first;
        let gap = (self.heard - begun).checked_div(later).unwrap_or(0);
        self.heard + CLOSE_GAPS * gap
    }

    /// Records the total if `at` is an edge of the window.
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

    /// Closes a window that no datagram closed.
    ///
    /// It ends with the last datagram if the sender has ended already (the window opened late), if its close still
    /// waited for an empty socket, or if the receiver ends it early, at `now`. Otherwise it ends at its set time, and
    /// begins before its first datagram instead of after it.
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

    /// Returns the set end of the window, or `None` if it has not begun.
    pub(crate) fn end(&self) -> Option<u64> {
        self.opened.map(|(opened, _)| opened + self.measure)
    }

    /// Returns the last arrival of a datagram that was sent before the cool-down, zero before that.
    pub(crate) fn last(&self) -> u64 {
        self.last
    }

    /// Returns the last arrival of a datagram of any phase, zero before that.
    pub(crate) fn heard(&self) -> u64 {
        self.heard
    }

    /// Returns the number of measured datagrams, without copies.
    pub(crate) fn arrived(&self) -> u64 {
        self.arrived
    }

    /// Returns whether a datagram of the cool-down has arrived, so that all measured ones have been sent.
    pub(crate) fn is_marked(&self) -> bool {
        self.drops_after.is_some()
    }

    /// Returns the total of all phases, without copies.
    #[inline]
    pub(crate) fn total(&self) -> Total {
        self.total
    }

    /// Returns the number of missing datagrams of all phases, from the numbers of arrived ones.
    #[inline]
    pub(crate) fn missing(&self) -> u64 {
        self.sequence.missing()
    }

    /// Returns the mean deviation of transit times of measured datagrams, nanoseconds. Returns `None` before the second
    /// one.
    #[inline]
    pub(crate) fn jitter_ns(&self) -> Option<u64> {
        self.jitter.mean_ns()
    }

    /// Returns the length of the window, and the total in it by `now`. The window of a volume began at `open`.
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

    /// Returns the counts of the window by `now`. The window was to open at `open`, and the socket has dropped `drops`, if it counts them.
    pub(crate) fn outcome(mut self, open: u64, now: u64, drops: Option<u32>, io_method: &str) -> Outcome {
        let (window, Total { datagrams, bytes: payload_bytes }) = self.counted(open, now);
        Outcome {
            received: Some(Received {
                window,
                payload_bytes,
                messages: datagrams,
                arrived: self.arrived,
                duplicates: self.duplicates,
                reordered: self.reordered,
                socket_drops: drops
                    .map(|drops| self.drops_after.unwrap_or(drops).saturating_sub(self.drops_before).into()),
                joined: self.joined,
                jitter: self.jitter.mean_ns().map(Nanos::new),
                dscp: None,
                io_method: io_method.to_owned(),
            }),
            flow: FlowCounts { received_bytes: payload_bytes, ..FlowCounts::default() },
            numbered: Some(self.numbers.map_or(0, |(before, after)| after - before)),
            ..Outcome::default()
        }
    }
}

/// Mean deviation of transit times, RFC 3550 section 6.4.1 and appendix A.8. Datagrams taken in one call share an
/// arrival time.
#[derive(Debug, Default)]
struct Jitter {
    /// Last transit time, modulo 2^32. The difference of the clocks cancels out.
    transit: Option<u32>,
    /// Sixteen times the estimate. `None` before the second transit time.
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
    fn steady_deviation_is_the_jitter() {
        let mut jitter = Jitter::default();
        for n in 0..1_000u64 {
            // Transit alternates between 10 and 14 us; the clock wraps on the way.
            let sent = u64::from(u32::MAX) - 500_000 + n * 1_000;
            jitter.take(sent + 10_000 + n % 2 * 4_000, sent as u32);
        }
        assert!(jitter.mean_ns().is_some_and(|mean| mean.abs_diff(4_000) < 20), "{jitter:?}");
    }

    #[test]
    fn jitter_needs_two_datagrams() {
        let mut jitter = Jitter::default();
        assert_eq!(jitter.mean_ns(), None);
        jitter.take(1_000, 0);
        assert_eq!(jitter.mean_ns(), None);
        jitter.take(2_000, 1_000);
        assert_eq!(jitter.mean_ns(), Some(0));
    }

    const BYTES: usize = 20;
    const TAGGED: Numbering = Numbering::Tagged { tag: 9 };

    fn datagrams(phase: Phase, numbers: std::ops::Range<u64>) -> Vec<u8> {
        let mut bytes = Vec::new();
        for number in numbers {
            let mut datagram = [0; BYTES];
            Header { tag: 9, sent_ns: 0, sequence: phase.sequence(number) }.write(&mut datagram);
            bytes.extend(datagram);
        }
        bytes
    }

    /// Counts a batch of one buffer.
    fn take(arrivals: &mut Arrivals, payload: &[u8], now: u64, emptied: bool, drops: u32) {
        let buffer = Arrived { payload, datagram_bytes: BYTES, truncated: false, drops, traffic_class: None };
        arrivals.take(std::iter::once(buffer), now, emptied);
    }

    fn received(arrivals: Arrivals) -> Received {
        arrivals.outcome(0, u64::MAX, Some(0), "recvmmsg").received.expect("it receives")
    }

    /// Bursts of ten, as from a GSO sender. A count that included the bursts at both edges would be 40 in 300 ns.
    #[test]
    fn rate_counts_all_phases_between_the_edges() {
        let mut arrivals = Arrivals::new(TAGGED, 300);
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

    /// A descheduled reader finds datagrams in its socket that arrived before the edge.
    #[test]
    fn edge_waits_until_the_socket_is_empty() {
        let mut arrivals = Arrivals::new(TAGGED, 1_000);
        take(&mut arrivals, &datagrams(Phase::Measured, 0..10), 5_000, false, 0);
        take(&mut arrivals, &datagrams(Phase::Measured, 10..20), 5_001, false, 0);
        take(&mut arrivals, &datagrams(Phase::Measured, 20..25), 5_002, true, 0);
        take(&mut arrivals, &datagrams(Phase::Measured, 25..35), 5_900, true, 0);
        take(&mut arrivals, &datagrams(Phase::CoolDown, 35..45), 6_100, false, 0);
        arrivals.nothing(6_110);
        let received = received(arrivals);
        assert_eq!((received.messages, received.window), (20, Nanos::new(1_098)));
    }

    /// Datagrams that arrived while the reader was stalled had arrived before the edge.
    #[test]
    fn edge_waits_for_a_stalled_reader() {
        let mut arrivals = Arrivals::new(TAGGED, 1_000_000_000);
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
    fn late_window_ends_with_its_sender() {
        let mut arrivals = Arrivals::new(TAGGED, 1_000_000_000);
        take(&mut arrivals, &datagrams(Phase::WarmUp, 0..1), 900, true, 0);
        take(&mut arrivals, &datagrams(Phase::Measured, 1..11), 300_000_000, false, 0);
        take(&mut arrivals, &datagrams(Phase::Measured, 11..301), 300_001_000, true, 0);
        take(&mut arrivals, &datagrams(Phase::Measured, 301..1_001), 1_000_000_000, true, 0);
        take(&mut arrivals, &datagrams(Phase::CoolDown, 1_001..1_101), 1_100_000_000, true, 0);
        arrivals.nothing(1_400_000_000);
        let received = received(arrivals);
        assert_eq!((received.messages, received.window), (800, Nanos::new(799_999_000)));
    }

    /// Measured datagrams wait in a queue after the warm-up, or their sender is stalled. The window still has its whole
    /// length.
    #[test]
    fn window_without_measured_datagrams_opens_at_its_set_time() {
        let mut arrivals = Arrivals::new(TAGGED, 1_000);
        arrivals.enter(Phase::WarmUp, Some(5_000));
        for turn in 0..60 {
            take(&mut arrivals, &datagrams(Phase::WarmUp, turn..turn + 1), 4_000 + turn * 50, true, 0);
        }
        let received = received(arrivals);
        assert_eq!((received.messages, received.arrived, received.window), (20, 0, Nanos::new(1_000)));
        let mut late = Arrivals::new(TAGGED, 1_000);
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
    fn windows_of_flows_that_take_turns_follow_the_clock() {
        for (first_turn, messages) in [(0, 20), (1, 0)] {
            let mut arrivals = Arrivals::new(TAGGED, 1_000).with_others(true);
            arrivals.enter(Phase::WarmUp, Some(10_000));
            let mut number = 0;
            for now in (0..20_000).step_by(50) {
                if now / 5_000 % 2 == first_turn {
                    let phase = if now < 10_000 { Phase::WarmUp } else { Phase::Measured };
                    take(&mut arrivals, &datagrams(phase, number..number + 1), now, true, 0);
                    number += 1;
                } else {
                    arrivals.nothing(now);
                }
            }
            let received = received(arrivals);
            assert_eq!((received.messages, received.window), (messages, Nanos::new(1_000)));
        }
    }

    #[test]
    fn edge_does_not_wait_forever_for_an_empty_socket() {
        let mut arrivals = Arrivals::new(TAGGED, 100_000_000);
        for turn in 0..200 {
            take(&mut arrivals, &datagrams(Phase::Measured, turn..turn + 1), turn * 1_000_000, false, 0);
        }
        let received = received(arrivals);
        assert_eq!((received.messages, received.window), (120, Nanos::new(120_000_000)));
    }

    /// Returns the arrivals of measured datagrams every 400 ns, three of them in a window of 1,000 ns.
    fn slow() -> Arrivals {
        let mut arrivals = Arrivals::new(TAGGED, 1_000);
        take(&mut arrivals, &datagrams(Phase::WarmUp, 0..1), 600, true, 0);
        take(&mut arrivals, &datagrams(Phase::Measured, 1..2), 1_000, true, 0);
        arrivals.nothing(1_300);
        take(&mut arrivals, &datagrams(Phase::Measured, 2..3), 1_400, true, 0);
        take(&mut arrivals, &datagrams(Phase::Measured, 3..4), 1_800, true, 0);
        arrivals.nothing(2_060);
        assert_eq!(arrivals.closed, None, "the next one may still arrive");
        arrivals
    }

    #[test]
    fn window_that_no_datagram_closes_has_its_set_length() {
        let mut arrivals = slow();
        arrivals.nothing(3_000);
        take(&mut arrivals, &datagrams(Phase::CoolDown, 4..5), 3_200, true, 0);
        let received = received(arrivals);
        assert_eq!((received.messages, received.window), (3, Nanos::new(1_000)));
        let silent = super::tests::received(Arrivals::new(TAGGED, 1_000));
        assert_eq!((silent.messages, silent.arrived, silent.window), (0, 0, Nanos::new(1_000)));
    }

    #[test]
    fn window_of_slow_datagrams_ends_with_an_arrival() {
        let mut arrivals = slow();
        take(&mut arrivals, &datagrams(Phase::CoolDown, 4..5), 2_200, true, 0);
        let received = received(arrivals);
        assert_eq!((received.messages, received.window), (3, Nanos::new(1_200)));
    }

    #[test]
    fn window_that_the_receiver_ends_early_ends_with_its_last_datagram() {
        let received = slow().outcome(0, 1_900, Some(0), "recvmmsg").received.expect("it receives");
        assert_eq!((received.messages, received.window), (2, Nanos::new(800)));
    }

    /// The first batch counts from the opening on. Marks after the last datagram do not count, late measured datagrams
    /// do.
    #[test]
    fn every_measured_datagram_of_a_volume_counts() {
        let mut arrivals = Arrivals::of_volume(TAGGED, 1_000_000, BYTES as u64);
        take(&mut arrivals, &datagrams(Phase::WarmUp, 0..5), 900, true, 0);
        take(&mut arrivals, &datagrams(Phase::Measured, 5..15), 1_100, true, 0);
        assert!(!arrivals.is_marked());
        take(&mut arrivals, &datagrams(Phase::Measured, 15..19), 1_500, true, 0);
        take(&mut arrivals, &datagrams(Phase::CoolDown, 20..21), 1_600, true, 0);
        take(&mut arrivals, &datagrams(Phase::Measured, 19..20), 1_700, true, 0);
        take(&mut arrivals, &datagrams(Phase::CoolDown, 21..22), 1_900, true, 0);
        assert!(arrivals.is_marked() && arrivals.last() == 1_700 && arrivals.heard() == 1_900);
        let received = arrivals.outcome(1_000, u64::MAX, Some(0), "recvmmsg").received.expect("it receives");
        assert_eq!((received.messages, received.payload_bytes, received.window), (15, 300, Nanos::new(700)));
        let silent =
            Arrivals::of_volume(TAGGED, 1_000_000, BYTES as u64).outcome(1_000, u64::MAX, Some(0), "recvmmsg").received;
        assert_eq!(silent.map(|received| (received.messages, received.window)), Some((0, Nanos::new(0))));
    }

    #[test]
    fn losses_and_copies_count_in_the_measured_phase() {
        let mut arrivals = Arrivals::new(TAGGED, 1_000);
        // The warm-up lacks 1 and 4, the measured phase 7. Datagrams 3 and 8 arrive twice and late.
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
        // A drop just before the first measured datagram may belong to either phase, so it counts.
        assert_eq!(received.socket_drops, Some(2));
    }

    /// Without marked phases, datagrams that arrive within the window count as sent in it.
    #[test]
    fn window_without_phases_follows_arrival_times() {
        let numbering = Numbering::Timestamped { wide: true };
        let mut arrivals = Arrivals::new(numbering, 1_000);
        // 1 and 3 are lost before the window, 5 and 7 in it, 10 after it.
        for (phase, numbers, now) in [
            (Phase::WarmUp, &[0, 2][..], 500),
            (Phase::Measured, &[4, 6], 1_000),
            (Phase::Measured, &[8], 1_500),
            (Phase::CoolDown, &[9, 11], 2_000),
        ] {
            let mut payload = vec![0; BYTES * numbers.len()];
            for (datagram, number) in payload.chunks_mut(BYTES).zip(numbers) {
                numbering.write(datagram, now, Phase::WarmUp, *number);
            }
            arrivals.enter(phase, None);
            take(&mut arrivals, &payload, now, true, 0);
        }
        let outcome = arrivals.outcome(0, u64::MAX, Some(0), "recvmmsg");
        let received = outcome.received.expect("it receives");
        // The gap between the last number before the window and the first number in it counts in the window.
        assert_eq!((received.arrived, outcome.numbered), (3, Some(6)));
    }
}
