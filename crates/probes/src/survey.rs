//! Survey of the hops of one way: which TTL is probed when, and what the answers show. It does no I/O; times are nanoseconds of one
//! clock.
//!
//! Routers answer rarely: Linux sends a host 6 ICMP errors at once and then one a second (`net.ipv4.icmp_ratelimit`), and a probe
//! without an answer says nothing about the path. So patience comes before rate. A router is probed at a pace that this default
//! allows, and faster only while it answers everything.

use linerate_model::{Hop, HopAddress, HopSample, MplsLabel};
use linerate_units::Nanos;
use std::collections::VecDeque;
use std::net::IpAddr;

/// TTL of probes that are to reach the far end (RFC 8762 section 4.1).
pub(crate) const FAR_TTL: u8 = 255;

const SECOND: u64 = 1_000_000_000;
/// Answers that a router is taken to send within a window of `s` seconds: `BURST + RATE * s`. Linux sends 6 + s, less those that it sent
/// shortly before.
const BURST: f64 = 2.5;
const RATE: f64 = 0.95;
/// Pace of a router that limits its answers.
const PATIENT: u64 = SECOND * 11 / 10;
/// Routers without an answer in a row, after which further TTLs are not probed.
const MAX_SILENT: u8 = 8;
/// Attempts to find out a router, and the time between them.
const TRIES: u32 = 3;
const RETRY: u64 = SECOND * 4 / 10;
/// Answers in a row after which a router is probed twice as fast.
const SPEED_UP: u32 = 4;
/// Probes of a faster pace that decide whether the router keeps up, and unanswered ones among them that show that it does not.
const JUDGED: usize = 8;
const MISSED: usize = 4;
/// Probes of faster paces from which on they count: a router's limit that allows bursts would have shown by then.
const PROVEN: usize = 24;
/// Times of the first pace that must be left for a faster one: it is to bring [`PROVEN`] probes, with time to spare.
const WORTH: u64 = 9;
/// Shortest time after which a probe counts as unanswered, and the longest.
const TIMEOUT: u64 = SECOND;
const MAX_TIMEOUT: u64 = 3 * SECOND;
/// Shortest time after which a packet of the search for the path MTU counts as lost.
const MTU_TIMEOUT: u64 = SECOND * 3 / 10;
/// Time for which a late answer is still taken.
const KEPT: u64 = 10 * SECOND;
/// Most probes that wait for an answer.
const MAX_WAITING: usize = 4_096;
/// Bytes of a quote that nobody guesses: the sequence number and the timestamp of a STAMP packet (RFC 8762 section 4.2).
const PROOF: usize = 24;
/// Most addresses that are kept of one hop.
const MAX_ADDRESSES: usize = 16;

/// Subject of a probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    /// The router that this TTL reaches.
    Router(u8),
    /// The far end.
    FarEnd,
    /// The path MTU, by a packet with this TTL.
    Mtu {
        /// Size of the packet.
        bytes: u32,
        /// Its TTL.
        ttl: u8,
    },
}

impl Target {
    /// Returns the TTL of the probe.
    pub(crate) fn ttl(self) -> u8 {
        match self {
            Self::Router(ttl) | Self::Mtu { ttl, .. } => ttl,
            Self::FarEnd => FAR_TTL,
        }
    }

    /// Returns the session that the reflector counts it in: it loses only packets of one that should arrive.
    pub(crate) fn session(self) -> u16 {
        match self {
            Self::FarEnd => 0,
            Self::Router(_) => 1,
            Self::Mtu { .. } => 2,
        }
    }
}

/// A probe that was sent.
#[derive(Debug, Clone)]
struct Waiting {
    sequence: u32,
    target: Target,
    sent_at: u64,
    /// Payload as it was sent, which routers quote.
    payload: Vec<u8>,
    /// It counts as unanswered; a late answer is still taken.
    is_missed: bool,
    in_window: bool,
    /// Number among the probes of the far end.
    number: u64,
}

/// An answer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Answer {
    /// Sender of the answer.
    pub(crate) from: IpAddr,
    /// Time of its arrival.
    pub(crate) at: u64,
    /// MPLS labels that it reports.
    pub(crate) labels: Vec<MplsLabel>,
    /// What the far end adds. `None` for routers.
    pub(crate) far_end: Option<FarEndAnswer>,
}

/// What the far end adds to an answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct FarEndAnswer {
    /// Differences of the clocks there and back, as in [`HopSample::one_way`].
    pub(crate) one_way: Option<[i64; 2]>,
    /// Packets of the same session that the reflector answered before this one. `None` if it does not count them.
    pub(crate) reflected_before: Option<u64>,
    /// TTL with which the probe arrived, if the reflector reports it.
    pub(crate) received_ttl: Option<u8>,
}

/// A probe that an answer belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Matched {
    sequence: u32,
    /// Subject of the probe.
    pub(crate) target: Target,
    /// Time of sending.
    pub(crate) sent_at: u64,
    /// Whether the answer quotes enough of the probe that nobody can have guessed it.
    pub(crate) has_proof: bool,
}

/// Measured window, nanoseconds. The opening lies beyond any clock while it is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Edges {
    pub(crate) open: u64,
    pub(crate) close: u64,
    /// Length of the window, known before its opening.
    pub(crate) measure: u64,
}

impl Edges {
    fn contains(self, at: u64) -> bool {
        (self.open..self.close).contains(&at)
    }
}

/// State of one hop.
#[derive(Debug, Clone, Default)]
struct HopState {
    hop: Hop,
    /// Sequence number of each sample.
    sequences: Vec<u32>,
    next_at: u64,
    /// Time between two probes in the window.
    pace: u64,
    tries: u32,
    /// Answers in a row.
    streak: u32,
    /// First sequence number of the present pace.
    paced_from: u32,
    /// First sequence number of any pace faster than the first. `None` if there was none, or the router did not keep up.
    fast_from: Option<u32>,
    /// Fate of the last probes of this pace, oldest first.
    recent: VecDeque<bool>,
    /// Whether the router has quoted the payload of a probe.
    quotes_payload: bool,
}

/// Survey of one way.
#[derive(Debug)]
pub(crate) struct Survey {
    max_hops: u8,
    /// Least time between two probes, by the rate.
    spacing: u64,
    start: u64,
    routers: Vec<HopState>,
    far_end: HopState,
    /// TTL that reaches the far end.
    far_ttl: Option<u8>,
    waiting: VecDeque<Waiting>,
    next_sequence: u32,
    last_sent: u64,
    /// Probes of the far end so far.
    far_number: u64,
    /// Losses on the way there by the reflector's count: so far, and at the opening of the window.
    lost_there: Option<u64>,
    lost_before: Option<u64>,
    has_opened: bool,
    far_delay: u64,
}

impl Survey {
    /// Creates a survey that begins at `start` and sends a probe each `spacing` at the most.
    pub(crate) fn new(start: u64, spacing: u64, max_hops: u8) -> Self {
        Self {
            max_hops,
            spacing: spacing.max(1),
            start,
            routers: Vec::new(),
            far_end: HopState { next_at: start, ..HopState::default() },
            far_ttl: None,
            waiting: VecDeque::new(),
            next_sequence: 0,
            last_sent: start.saturating_sub(spacing),
            far_number: 0,
            lost_there: None,
            lost_before: None,
            has_opened: false,
            far_delay: 0,
        }
    }

    /// Returns the next probe, and the time when it is due.
    pub(crate) fn due(&self, edges: Edges) -> (u64, Target) {
        let earliest = self.last_sent + self.spacing;
        let mut next = (self.far_end.next_at.max(earliest), Target::FarEnd);
        for state in self.routers.iter().filter(|state| self.is_probed(state, edges)) {
            let at = state.next_at.max(earliest);
            if at < next.0 || (at == next.0 && state.next_at < self.far_end.next_at) {
                next = (at, Target::Router(state.hop.ttl));
            }
        }
        if let Some(ttl) = self.frontier()
            && earliest <= next.0
        {
            next = (earliest, Target::Router(ttl));
        }
        next
    }

    /// Returns the next TTL that was never probed, if it is worth it.
    fn frontier(&self) -> Option<u8> {
        let next = u8::try_from(self.routers.len() + 1).ok()?;
        let last =
            self.routers.iter().rev().find(|state| !state.hop.addresses.is_empty()).map_or(0, |state| state.hop.ttl);
        let within = match self.far_ttl {
            Some(far) => next < far,
            None => next <= last.saturating_add(MAX_SILENT),
        };
        (within && next <= self.max_hops).then_some(next)
    }

    /// Returns whether a router is probed now: to find it out, or within the window.
    fn is_probed(&self, state: &HopState, edges: Edges) -> bool {
        if self.far_ttl.is_some_and(|far| state.hop.ttl >= far) {
            return false;
        }
        let is_unknown = state.hop.addresses.is_empty();
        (is_unknown && state.tries < TRIES) || edges.contains(state.next_at)
    }

    /// Returns the number of the next probe.
    pub(crate) fn sequence(&self) -> u32 {
        self.next_sequence
    }

    /// Notes that the probe of [`Survey::sequence`] was sent with this payload.
    pub(crate) fn sent(&mut self, target: Target, payload: &[u8], at: u64, edges: Edges) {
        let sequence = self.next_sequence;
        self.next_sequence = self.next_sequence.wrapping_add(1);
        let in_window = edges.contains(at);
        let mut number = 0;
        if !matches!(target, Target::Mtu { .. }) {
            self.last_sent = at;
        }
        match target {
            Target::FarEnd => {
                number = self.far_number;
                self.far_number += 1;
                self.far_end.next_at = at + jittered(self.far_pace(), sequence);
                note_sent(&mut self.far_end, sequence, at, edges);
            }
            Target::Router(ttl) => {
                if usize::from(ttl) > self.routers.len() {
                    let hop = Hop { ttl, ..Hop::default() };
                    self.routers.push(HopState { hop, next_at: at, ..HopState::default() });
                }
                let least = self.spacing * 2 * self.routers.len() as u64;
                let state = &mut self.routers[usize::from(ttl) - 1];
                state.tries += 1;
                if state.pace == 0 {
                    state.pace = first_pace(edges.measure);
                }
                let pace = state.pace.max(least);
                // Before the window, a router is only found out.
                state.next_at = if edges.open > at && (state.hop.addresses.is_empty() && state.tries < TRIES) {
                    at + RETRY
                } else if edges.open > at {
                    // The first probes of a window are spread over its first interval.
                    edges.open.saturating_add(pace * u64::from(ttl) / (u64::from(self.max_hops) + 1))
                } else {
                    at + jittered(pace, sequence)
                };
                note_sent(state, sequence, at, edges);
            }
            Target::Mtu { .. } => {}
        }
        if self.waiting.len() >= MAX_WAITING {
            self.waiting.pop_front();
        }
        let payload = payload.to_vec();
        self.waiting.push_back(Waiting { sequence, target, sent_at: at, payload, is_missed: false, in_window, number });
    }

    /// Tells the survey that the window is open, once its opening is known: routers that were found out wait for it.
    pub(crate) fn opens(&mut self, edges: Edges) {
        if self.has_opened {
            return;
        }
        self.has_opened = true;
        self.lost_before = self.lost_there;
        let count = self.routers.len().max(1) as u64;
        let least = self.spacing * 2 * count;
        for (index, state) in self.routers.iter_mut().enumerate() {
            let pace = state.pace.max(least);
            state.next_at = edges.open + pace * index as u64 / count;
        }
    }

    /// Half of the rate is the far end's, which answers everything.
    fn far_pace(&self) -> u64 {
        (2 * self.spacing).max(SECOND / 20)
    }

    /// Finds the probe that a router quotes. `quoted` is what the router quotes after the transport header; `is_padded` is whether it fills
    /// the quote with zeroes, as before extensions (RFC 4884 section 5.1).
    ///
    /// A quote of [`PROOF`] bytes must be the beginning of what was sent with its sequence number. A shorter one can be guessed. It is taken
    /// if only one TTL can be meant, of a router that never quoted more.
    pub(crate) fn quoted(&self, quoted: &[u8], is_padded: bool, now: u64) -> Option<Matched> {
        if let Some(number) = quoted.first_chunk::<4>() {
            let sequence = u32::from_be_bytes(*number);
            let waiting = self.waiting.iter().rev().find(|waiting| waiting.sequence == sequence);
            let length = waiting.and_then(|waiting| quoted_length(&waiting.payload, quoted, is_padded));
            if let (Some(waiting), Some(PROOF..)) = (waiting, length) {
                return Some(matched(waiting, true));
            }
        }
        if !is_padded && quoted.len() >= PROOF {
            return None;
        }
        let timeout = self.timeout();
        let mut candidates = self.waiting.iter().filter(|waiting| {
            let is_open = now.saturating_sub(waiting.sent_at) < timeout && !waiting.is_missed;
            let state = match waiting.target {
                Target::Router(ttl) => self.routers.get(usize::from(ttl) - 1),
                Target::FarEnd | Target::Mtu { .. } => None,
            };
            is_open
                && quoted_length(&waiting.payload, quoted, is_padded).is_some()
                && state.is_some_and(|state| !state.quotes_payload)
        });
        let first = candidates.next()?;
        candidates.all(|other| other.target == first.target).then(|| matched(first, false))
    }

    /// Returns whether this address has answered with the payload of a probe.
    pub(crate) fn quotes_payload(&self, from: IpAddr) -> bool {
        let mut states = self.routers.iter().chain([&self.far_end]).filter(|state| state.quotes_payload);
        states.any(|state| state.hop.addresses.iter().any(|known| known.address == from))
    }

    /// Finds a probe by its number.
    pub(crate) fn numbered(&self, sequence: u32) -> Option<Matched> {
        self.waiting.iter().rev().find(|waiting| waiting.sequence == sequence).map(|waiting| matched(waiting, true))
    }

    /// Returns the payload of a probe that is kept, by its number.
    pub(crate) fn payload(&self, sequence: u32) -> Option<&[u8]> {
        self.waiting.iter().rev().find(|waiting| waiting.sequence == sequence).map(|waiting| &*waiting.payload)
    }

    /// Takes the answer to a probe. `quotes_payload` is whether it quoted the probe's payload. Returns whether it is the first answer.
    pub(crate) fn answered(&mut self, probe: Matched, answer: Answer, quotes_payload: bool, edges: Edges) -> bool {
        let Some(index) = self.waiting.iter().position(|waiting| waiting.sequence == probe.sequence) else {
            return false;
        };
        let Some(waiting) = self.waiting.remove(index) else { return false };
        let delay = answer.at.saturating_sub(waiting.sent_at);
        if let Some(far_end) = &answer.far_end {
            let ttl = match (waiting.target, far_end.received_ttl) {
                (Target::Router(ttl), _) => Some(ttl),
                (Target::FarEnd, Some(received)) => {
                    FAR_TTL.checked_sub(received).map(|routers| routers.saturating_add(1))
                }
                _ => None,
            };
            if let Some(ttl) = ttl {
                self.far_ttl = Some(self.far_ttl.map_or(ttl, |known| known.min(ttl)));
            }
        }
        let since_start = Nanos::new(answer.at.saturating_sub(self.start));
        let state = match (waiting.target, &answer.far_end) {
            (Target::FarEnd, Some(far_end)) => {
                self.far_delay = delay;
                let lost = far_end.reflected_before.and_then(|before| waiting.number.checked_sub(before));
                self.lost_there = lost.or(self.lost_there).max(self.lost_there);
                &mut self.far_end
            }
            // A router on the way answered for the far end: it is unreachable.
            (Target::FarEnd, None) | (Target::Mtu { .. }, _) => return true,
            (Target::Router(ttl), _) => match self.routers.get_mut(usize::from(ttl) - 1) {
                Some(state) => state,
                None => return true,
            },
        };
        state.quotes_payload |= quotes_payload;
        note_address(&mut state.hop, &answer, since_start);
        if waiting.in_window {
            state.hop.answered += 1;
            if let Ok(sample) = state.sequences.binary_search(&waiting.sequence) {
                let sample = &mut state.hop.samples[sample];
                sample.delay = Some(Nanos::new(delay));
                sample.one_way = answer.far_end.and_then(|far_end| far_end.one_way);
            }
        }
        if matches!(waiting.target, Target::Router(_)) && edges.contains(answer.at) {
            note_fate(state, true, waiting.sequence);
            let is_worth = state.fast_from.is_some() || edges.close.saturating_sub(answer.at) >= WORTH * state.pace;
            if state.streak >= SPEED_UP && !state.hop.rate_limited && is_worth {
                state.pace = (state.pace / 2).max(self.spacing);
                state.streak = 0;
                state.paced_from = self.next_sequence;
                state.fast_from.get_or_insert(self.next_sequence);
                state.recent.clear();
            }
        }
        true
    }

    /// Counts probes that waited too long as unanswered, and returns those of the path MTU.
    pub(crate) fn expire(&mut self, now: u64) -> Vec<Target> {
        let timeout = self.timeout();
        // The search for the path MTU sends one packet at a time, and repeats what is lost.
        let mtu_timeout = (4 * self.far_delay).clamp(MTU_TIMEOUT, MAX_TIMEOUT);
        let mut lost = Vec::new();
        let mut missed = Vec::new();
        for waiting in self.waiting.iter_mut().filter(|waiting| !waiting.is_missed) {
            let is_mtu = matches!(waiting.target, Target::Mtu { .. });
            if now.saturating_sub(waiting.sent_at) < if is_mtu { mtu_timeout } else { timeout } {
                continue;
            }
            waiting.is_missed = true;
            match waiting.target {
                Target::Mtu { .. } => lost.push(waiting.target),
                Target::Router(ttl) => missed.push((ttl, waiting.sequence)),
                Target::FarEnd => {}
            }
        }
        for (ttl, sequence) in missed {
            let reaches_further = self.reaches_beyond(ttl);
            if let Some(state) = self.routers.get_mut(usize::from(ttl) - 1) {
                note_fate(state, false, sequence);
                let unanswered = state.recent.iter().filter(|answered| !**answered).count();
                let is_fast = state.paced_from > 0 && state.recent.len() <= JUDGED;
                if is_fast && unanswered >= MISSED && reaches_further {
                    limit(state);
                    // It has spent its answers.
                    state.next_at = now + 2 * PATIENT;
                }
            }
        }
        while self.waiting.front().is_some_and(|waiting| now.saturating_sub(waiting.sent_at) >= KEPT) {
            self.waiting.pop_front();
        }
        lost
    }

    /// Returns whether hops after `ttl` answer most of their probes, so that this router leaves some unanswered by itself.
    fn reaches_beyond(&self, ttl: u8) -> bool {
        let beyond = self.routers.iter().skip(usize::from(ttl)).chain([&self.far_end]).map(|state| &state.hop);
        beyond.into_iter().any(|hop| hop.answered >= 3 && hop.answered * 4 >= hop.sent * 3)
    }

    /// Returns the time after which a probe counts as unanswered: a path with a long queue answers late.
    fn timeout(&self) -> u64 {
        (2 * self.far_delay).clamp(TIMEOUT, MAX_TIMEOUT)
    }

    /// Returns whether an answer may still come.
    pub(crate) fn is_waiting(&self) -> bool {
        self.waiting.iter().any(|waiting| !waiting.is_missed)
    }

    /// Returns the number of routers before the far end, or 0 if the far end is not known.
    pub(crate) fn routers_before_far_end(&self) -> u8 {
        self.far_ttl.map_or(0, |ttl| ttl - 1)
    }

    /// Returns whether a router or the far end has answered.
    pub(crate) fn has_answers(&self) -> bool {
        self.far_ttl.is_some()
            || !self.far_end.hop.addresses.is_empty()
            || self.routers.iter().any(|state| !state.hop.addresses.is_empty())
    }

    /// Returns the hops: the routers without those that lie beyond the last answer, and the far end if it answered.
    pub(crate) fn hops(self) -> Vec<Hop> {
        let far_ttl = self.far_ttl;
        let mut hops: Vec<Hop> = self.routers.into_iter().map(without_unproven).collect();
        hops.retain(|hop| far_ttl.is_none_or(|far| hop.ttl < far));
        if far_ttl.is_none() {
            let last = hops.iter().rposition(|hop| !hop.addresses.is_empty()).map_or(0, |index| index + 1);
            hops.truncate(last);
        }
        if !self.far_end.hop.addresses.is_empty() {
            let routers = u8::try_from(hops.len()).unwrap_or(u8::MAX);
            let mut hop = self.far_end.hop;
            let lost = self.lost_there.map(|lost| lost.saturating_sub(self.lost_before.unwrap_or_default()));
            hop.reflected = lost.map(|lost| hop.sent.saturating_sub(lost).max(hop.answered));
            hop.ttl = far_ttl.unwrap_or(routers.saturating_add(1));
            hop.is_far_end = true;
            // Hops that were not reached yet have no entry of their own.
            while hops.len() + 1 < usize::from(hop.ttl) && hops.len() < 64 {
                hops.push(Hop { ttl: hops.len() as u8 + 1, ..Hop::default() });
            }
            hops.push(hop);
        }
        for hop in &mut hops {
            hop.addresses.sort_by_key(|address| std::cmp::Reverse(address.answers));
        }
        hops
    }
}

/// Returns how many bytes of `payload` a router quotes. Returns `None` if it quotes something else.
fn quoted_length(payload: &[u8], quoted: &[u8], is_padded: bool) -> Option<usize> {
    // What follows the payload are extensions of the message.
    let quoted = &quoted[..quoted.len().min(payload.len())];
    let length = payload.iter().zip(quoted).take_while(|(sent, quoted)| sent == quoted).count();
    let rest = &quoted[length..];
    (rest.is_empty() || (is_padded && rest.iter().all(|byte| *byte == 0))).then_some(length)
}

fn matched(waiting: &Waiting, has_proof: bool) -> Matched {
    Matched { sequence: waiting.sequence, target: waiting.target, sent_at: waiting.sent_at, has_proof }
}

/// Returns the first pace of a router: as many probes as Linux answers by default, evenly spread over the window.
fn first_pace(measure: u64) -> u64 {
    let answers = (BURST + RATE * measure as f64 / SECOND as f64).floor().max(1.0);
    (measure as f64 / answers) as u64
}

/// Returns `pace` with up to a tenth more or less, so that probes do not keep step with a periodic load.
fn jittered(pace: u64, sequence: u32) -> u64 {
    let share = u64::from(sequence.wrapping_mul(2_654_435_761) >> 16) % 201;
    pace * (900 + share) / 1_000
}

fn note_sent(state: &mut HopState, sequence: u32, at: u64, edges: Edges) {
    if !edges.contains(at) {
        return;
    }
    state.hop.sent += 1;
    if state.hop.samples.len() >= Hop::MAX_SAMPLES {
        let mut keep = true;
        state.hop.samples.retain(|_| {
            keep = !keep;
            !keep
        });
        keep = true;
        state.sequences.retain(|_| {
            keep = !keep;
            !keep
        });
    }
    state.sequences.push(sequence);
    state.hop.samples.push(HopSample { at: Nanos::new(at - edges.open), delay: None, one_way: None });
}

fn note_fate(state: &mut HopState, answered: bool, sequence: u32) {
    state.streak = if answered { state.streak + 1 } else { 0 };
    if sequence >= state.paced_from {
        if state.recent.len() >= JUDGED {
            state.recent.pop_front();
        }
        state.recent.push_back(answered);
    }
}

/// Goes back to a pace that the router keeps up with. Probes of the faster pace without an answer say nothing about the path.
fn limit(state: &mut HopState) {
    state.hop.rate_limited = true;
    state.pace = PATIENT;
    let from = state.sequences.partition_point(|sequence| *sequence < state.paced_from);
    state.hop.sent = state.hop.sent.saturating_sub(drop_unanswered(state, from));
    state.paced_from = 0;
    state.fast_from = None;
    state.recent.clear();
    state.streak = 0;
}

/// Drops the samples without an answer from index `from` on. Returns their number.
fn drop_unanswered(state: &mut HopState, from: usize) -> u64 {
    let before = state.sequences.len();
    let sequences = &mut state.sequences;
    let samples = &mut state.hop.samples;
    let all = sequences.drain(..).zip(samples.drain(..)).enumerate();
    let remaining: Vec<_> = all.filter(|(index, (_, sample))| *index < from || sample.delay.is_some()).collect();
    for (_, (sequence, sample)) in remaining {
        sequences.push(sequence);
        samples.push(sample);
    }
    (before - sequences.len()) as u64
}

/// Returns the hop without the probes of faster paces if these were few. A router with some answers in reserve answers them at first and then
/// not: that is its own limit, and no loss of the path. Delays of those that were answered stay.
fn without_unproven(mut state: HopState) -> Hop {
    let Some(fast_from) = state.fast_from else { return state.hop };
    let from = state.sequences.partition_point(|sequence| *sequence < fast_from);
    let sent = state.hop.samples.len() - from;
    if sent < PROVEN {
        let unanswered = drop_unanswered(&mut state, from);
        state.hop.sent = state.hop.sent.saturating_sub(sent as u64);
        state.hop.answered = state.hop.answered.saturating_sub(sent as u64 - unanswered);
    }
    state.hop
}

fn note_address(hop: &mut Hop, answer: &Answer, at: Nanos) {
    let known = hop.addresses.iter_mut().find(|known| known.address == answer.from);
    if let Some(known) = known {
        known.answers += 1;
        known.last = at;
        known.labels.clone_from(&answer.labels);
    } else if hop.addresses.len() < MAX_ADDRESSES {
        hop.addresses.push(HopAddress {
            address: answer.from,
            answers: 1,
            first: at,
            last: at,
            labels: answer.labels.clone(),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::net::Ipv4Addr;

    const MS: u64 = 1_000_000;

    /// A path of routers with Linux's limit of answers or none, and a far end that answers everything.
    struct SimulatedPath {
        /// Tokens of each router, and whether it limits its answers. `None` never answers.
        routers: Vec<Option<Bucket>>,
        delay: u64,
        /// The hop from which on every `n`th packet is lost.
        loses: Option<(u8, u64)>,
        passed: BTreeMap<u8, u64>,
    }

    struct Bucket {
        limited: bool,
        tokens: f64,
        at: u64,
    }

    impl Bucket {
        fn allows(&mut self, now: u64) -> bool {
            self.tokens = (self.tokens + (now - self.at) as f64 / 1e9).min(6.0);
            self.at = now;
            if !self.limited {
                return true;
            }
            let has_token = self.tokens >= 1.0;
            self.tokens -= f64::from(u8::from(has_token));
            has_token
        }
    }

    fn router(limited: bool) -> Option<Bucket> {
        Some(Bucket { limited, tokens: 6.0, at: 0 })
    }

    impl SimulatedPath {
        fn new(routers: Vec<Option<Bucket>>) -> Self {
            Self { routers, delay: 10 * MS, loses: None, passed: BTreeMap::new() }
        }

        fn answer(&mut self, target: Target, sequence: u32, at: u64) -> Option<Answer> {
            let hops = self.routers.len() as u8;
            let reached = target.ttl().min(hops + 1);
            if let Some((from, each)) = self.loses.filter(|(from, _)| reached >= *from) {
                let count = self.passed.entry(reached).or_default();
                *count += 1;
                let _ = from;
                if count.is_multiple_of(each) {
                    return None;
                }
            }
            let arrives = at + self.delay;
            let address = IpAddr::V4(Ipv4Addr::new(198, 18, reached, 2));
            if reached == hops + 1 {
                let received_ttl = Some(target.ttl() - hops);
                let far_end = FarEndAnswer { received_ttl, ..FarEndAnswer::default() };
                return Some(Answer { from: address, at: arrives, labels: Vec::new(), far_end: Some(far_end) });
            }
            let bucket = self.routers[usize::from(reached) - 1].as_mut()?;
            let _ = sequence;
            bucket.allows(at).then(|| Answer { from: address, at: arrives, labels: Vec::new(), far_end: None })
        }

        /// Runs a survey with a warm-up of 1 s and a window of `seconds`.
        fn survey(&mut self, seconds: u64, spacing: u64) -> Vec<Hop> {
            let edges = Edges { open: SECOND, close: SECOND * (1 + seconds), measure: SECOND * seconds };
            let mut survey = Survey::new(0, spacing, 30);
            let mut answers: Vec<(u64, Matched, Answer)> = Vec::new();
            let mut last = 0;
            loop {
                let (at, target) = survey.due(edges);
                if at >= edges.close {
                    break;
                }
                assert!(at >= last + spacing || last == 0, "the rate is kept: {at} after {last}");
                last = at;
                if at >= edges.open {
                    survey.opens(edges);
                }
                while let Some(index) = answers.iter().position(|(time, ..)| *time <= at) {
                    let (_, probe, answer) = answers.remove(index);
                    survey.answered(probe, answer, true, edges);
                }
                survey.expire(at);
                let (at, target) = match survey.due(edges) {
                    (due, target) if due <= at => (at, target),
                    _ => {
                        last = at - spacing;
                        let _ = target;
                        continue;
                    }
                };
                let sequence = survey.sequence();
                survey.sent(target, &sequence.to_be_bytes(), at, edges);
                if let Some(answer) = self.answer(target, sequence, at) {
                    answers.push((answer.at, survey.numbered(sequence).expect("it waits"), answer));
                }
            }
            for (_, probe, answer) in answers {
                survey.answered(probe, answer, true, edges);
            }
            survey.expire(edges.close + 2 * SECOND);
            survey.hops()
        }
    }

    #[test]
    fn routers_and_the_far_end_are_found() {
        let hops = SimulatedPath::new(vec![router(true), None, router(false)]).survey(5, 20 * MS);
        let shape: Vec<(u8, bool, bool)> =
            hops.iter().map(|hop| (hop.ttl, hop.is_far_end, !hop.addresses.is_empty())).collect();
        assert_eq!(shape, [(1, false, true), (2, false, false), (3, false, true), (4, true, true)]);
        assert!(
            hops.iter()
                .flat_map(|hop| &hop.samples)
                .all(|sample| sample.delay.is_none_or(|delay| delay.get() == 10 * MS))
        );
    }

    /// The ordinary Linux router is no fault: it answers all probes that count.
    #[test]
    fn routers_of_linux_lose_nothing() {
        for seconds in [3, 5, 10, 30] {
            let hops = SimulatedPath::new(vec![router(true), router(true), router(true)]).survey(seconds, 57 * MS);
            for hop in &hops {
                assert!(hop.answered >= 5, "{seconds} s: {} of hop {}", hop.answered, hop.ttl);
                let unanswered = hop.sent - hop.answered;
                assert!(unanswered * 5 <= hop.sent, "{seconds} s, hop {}: {unanswered} of {}", hop.ttl, hop.sent);
            }
        }
    }

    /// An earlier trial may have spent some of a router's answers.
    #[test]
    fn answers_that_a_router_has_spent_are_no_loss() {
        for tokens in [2.5, 3.0, 3.5, 4.0, 5.0] {
            for seconds in [5, 7, 10, 15] {
                let spent = || Some(Bucket { limited: true, tokens, at: 0 });
                let hops = SimulatedPath::new(vec![spent(), spent(), spent()]).survey(seconds, 57 * MS);
                for hop in &hops {
                    let unanswered = hop.sent - hop.answered;
                    let which = format!("{tokens} in reserve, {seconds} s, hop {}", hop.ttl);
                    assert!(hop.answered >= 3 && unanswered <= 2, "{which}: {unanswered} of {}", hop.sent);
                }
            }
        }
    }

    #[test]
    fn routers_without_a_limit_are_probed_faster() {
        let hops = SimulatedPath::new(vec![router(false), router(true)]).survey(20, 10 * MS);
        assert!(hops[0].sent > 4 * hops[1].sent, "{} and {}", hops[0].sent, hops[1].sent);
        assert_eq!((hops[0].rate_limited, hops[0].sent - hops[0].answered), (false, 0));
        assert!(hops[1].rate_limited);
    }

    #[test]
    fn loss_of_the_path_is_no_rate_limit() {
        let mut path = SimulatedPath::new(vec![router(false), router(false), router(false)]);
        path.loses = Some((2, 3));
        let hops = path.survey(10, 10 * MS);
        let losses: Vec<f64> = hops.iter().map(|hop| 1.0 - hop.answered as f64 / hop.sent as f64).collect();
        assert!(losses[0] < 0.01, "{losses:?}");
        assert!(losses[1..].iter().all(|loss| (0.25..0.4).contains(loss)), "{losses:?}");
        assert!(hops.iter().all(|hop| !hop.rate_limited));
    }

    /// Returns a payload of the length of an authenticated STAMP packet.
    fn payload(sequence: u32) -> Vec<u8> {
        let timestamp = [7; 8];
        [&sequence.to_be_bytes()[..], &[0; 12], &timestamp, &[0; 72], &[9; 16]].concat()
    }

    #[test]
    fn forged_quotes_match_nothing() {
        let edges = Edges { open: 0, close: SECOND, measure: SECOND };
        let mut survey = Survey::new(0, MS, 30);
        for ttl in [1, 2] {
            survey.sent(Target::Router(ttl), &payload(u32::from(ttl) - 1), 0, edges);
        }
        let whole = payload(1);
        for length in PROOF..whole.len() {
            let quoted = survey.quoted(&whole[..length], false, MS).expect("its beginning");
            assert_eq!((quoted.target, quoted.has_proof), (Target::Router(2), true));
        }
        // Extensions may follow the payload.
        assert!(survey.quoted(&[&whole[..], &[1, 2, 3]].concat(), false, MS).is_some());
        for at in 0..PROOF {
            let mut forged = whole[..PROOF].to_vec();
            forged[at] ^= 0x10;
            assert_eq!(survey.quoted(&forged, false, MS), None, "byte {at}");
        }
        assert_eq!(survey.quoted(&payload(9), false, MS), None);
    }

    #[test]
    fn short_quotes_are_taken_where_one_router_can_be_meant() {
        let edges = Edges { open: 0, close: 9 * SECOND, measure: 9 * SECOND };
        // Without payload, with 4 bytes of it, and with zeroes up to the extensions.
        for (first, second, is_padded) in
            [(&[][..], &[][..], false), (&[0, 0, 0, 0], &[0, 0, 0, 1], false), (&[0; 100], &[0; 100], true)]
        {
            let mut survey = Survey::new(0, MS, 30);
            survey.sent(Target::Router(1), &payload(0), 0, edges);
            let only = survey.quoted(first, is_padded, MS).expect("one router was asked");
            assert!(!only.has_proof);
            survey.sent(Target::Router(2), &payload(1), MS, edges);
            if first == second {
                assert_eq!(survey.quoted(second, is_padded, 2 * MS), None, "two were asked");
            }
            let answer = Answer { from: Ipv4Addr::LOCALHOST.into(), at: 2 * MS, labels: Vec::new(), far_end: None };
            assert!(!survey.quotes_payload(answer.from));
            assert!(survey.answered(only, answer.clone(), true, edges));
            assert!(survey.quotes_payload(answer.from));
            let second_router = survey.quoted(second, is_padded, 2 * MS).map(|probe| probe.target);
            assert_eq!(second_router, Some(Target::Router(2)));
            // The first router quotes payloads, so that a short quote is not its own.
            survey.sent(Target::Router(1), &payload(2), 3 * MS, edges);
            assert_eq!(survey.quoted(second, is_padded, 4 * MS).map(|probe| probe.target), Some(Target::Router(2)));
            assert_eq!(survey.quoted(&[0, 0, 0, 2], false, 4 * MS), None);
            assert!(!survey.answered(only, answer, true, edges), "a probe has one answer");
        }
    }

    #[test]
    fn padded_quote_with_a_timestamp_is_proof() {
        let edges = Edges { open: 0, close: SECOND, measure: SECOND };
        let mut survey = Survey::new(0, MS, 30);
        survey.sent(Target::Router(1), &payload(0), 0, edges);
        let padded = [&payload(0)[..28], &[0; 72]].concat();
        assert!(survey.quoted(&padded, true, MS).is_some_and(|probe| probe.has_proof));
        let longer = [&payload(0)[..100], &[0; 4]].concat();
        assert_eq!(survey.quoted(&longer, false, MS), None, "zeroes that were not sent");
    }

    #[test]
    fn samples_are_bounded() {
        let hops = SimulatedPath::new(vec![router(false)]).survey(300, 10 * MS);
        let far_end = hops.last().expect("the far end");
        assert!(far_end.sent > 2 * Hop::MAX_SAMPLES as u64 && far_end.samples.len() <= Hop::MAX_SAMPLES);
        assert_eq!(far_end.sent, far_end.answered);
    }
}
