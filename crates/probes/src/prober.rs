//! Prober of one end of a path: sends probes with small TTLs, reads the routers' answers, and reflects the probes of the other end.
//!
//! Probes are STAMP packets (RFC 8762) in authenticated mode with a key of the session for each way, so that nobody else's packets are
//! reflected and no forged quote matches. Between agents their timestamps are nanoseconds of each host's monotonic clock. Both ways use
//! the same pair of ports, which a NAT on the path has opened.

use crate::error::ProbeError;
use crate::fall_back::FallBack;
use crate::icmp_extension;
use crate::packets::{Arrived, Event, Packets, ProbeId, RouterProbes};
use crate::path_mtu::{MtuAnswer, MtuProbe, MtuSearch};
use crate::replay_window::ReplayWindow;
use crate::stamp::{ErrorEstimate, Mode, ReflectedPacket, TestPacket, Timestamp, TimestampFormat, Tlv};
use crate::survey::{Answer, Edges, FAR_TTL, FarEndAnswer, Matched, Survey, Target};
use linerate_engine::{Stop, Stopped, Timeline};
use linerate_model::{HopsEnd, ProbedWay};
use linerate_sys::clock;
use linerate_sys::error_queue::{ErrorOrigin, QueuedError};
use rand::random;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Time after the window in which late answers are still taken.
const DRAIN: u64 = 1_000_000_000;
/// Time after the window in which the other end's last probes are still answered.
const REPLIES: u64 = 300_000_000;
/// Longest wait, so that a stop and the opening of the window are seen.
const LOOK: u64 = 20_000_000;
/// Most packets, and most ICMP messages, that are read before the next look at the clock and the stop: a flood does not end.
const BATCH: usize = 256;
/// Time between two probes of the path MTU.
const MTU_SPACING: u64 = 50_000_000;
/// Errors of sending in a row, without any answer, after which the far end counts as out of reach.
const MAX_SEND_ERRORS: u32 = 5;
/// Smallest packet that every path of IPv6 carries (RFC 8200 section 5), and one that paths of IPv4 do.
const BASE_V6: u32 = 1_280;
const BASE_V4: u32 = 1_200;
/// TTL of a probe that arrived at a port that sessions share, which reports none. No packet arrives with it. A reflector of others has 255
/// there (RFC 8762 section 4.3.1), as probes of the first link do.
const UNKNOWN_TTL: u8 = 0;
/// Bytes of a TLV header (RFC 8972 section 4).
const TLV_HEADER: u32 = 4;

/// Keys of the two ways of a path, and clocks of their timestamps.
pub(crate) struct Ways {
    /// Mode of this end's probes.
    pub(crate) own: Mode,
    /// Mode of the other end's probes. `None` if this end reflects none.
    pub(crate) peer: Option<Mode>,
    /// Clock of the timestamps.
    pub(crate) clock: StampClock,
}

/// Clock of the timestamps in probes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StampClock {
    /// Monotonic clocks of two agents, whose offset their runner estimates.
    Monotonic,
    /// UTC, as reflectors of others have it.
    Utc,
}

/// Settings of the probes of one end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Settings {
    /// Least time between two probes, nanoseconds.
    pub(crate) spacing: u64,
    pub(crate) max_hops: u8,
    pub(crate) path_mtu: bool,
    /// Whether this end probes; otherwise it only reflects.
    pub(crate) probes: bool,
}

/// Progress that the agent reads.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) sent: AtomicU64,
    pub(crate) sent_bytes: AtomicU64,
    pub(crate) answered: AtomicU64,
}

/// Counts of one end.
pub(crate) struct ProbedEnd {
    pub(crate) end: HopsEnd,
    /// Packets that probed the routers. `None` if this end did not probe.
    pub(crate) router_probes: Option<RouterProbes>,
}

/// One end at work.
pub(crate) struct Prober {
    packets: Box<dyn Packets>,
    fall_back: FallBack,
    ways: Ways,
    settings: Settings,
    timeline: Timeline,
    counters: Arc<Counters>,
    survey: Option<Survey>,
    mtu: Option<MtuSearch>,
    /// Probe of the path MTU in flight.
    mtu_probe: Option<MtuProbe>,
    mtu_due: u64,
    reflected: u64,
    /// Probes of the other end that were reflected.
    replays: ReplayWindow,
    /// Probes reflected of each session of the other end.
    reflected_by_session: [u32; 4],
    rejected: u64,
    send_errors: u32,
    sent: u64,
    sent_bytes: u64,
}

impl Prober {
    pub(crate) fn new(
        packets: Box<dyn Packets>,
        fall_back: FallBack,
        ways: Ways,
        settings: Settings,
        timeline: Timeline,
        counters: Arc<Counters>,
    ) -> Self {
        Self {
            packets,
            fall_back,
            ways,
            settings,
            timeline,
            counters,
            survey: None,
            mtu: None,
            mtu_probe: None,
            mtu_due: 0,
            reflected: 0,
            replays: ReplayWindow::default(),
            reflected_by_session: [0; 4],
            rejected: 0,
            send_errors: 0,
            sent: 0,
            sent_bytes: 0,
        }
    }

    /// Probes until the window has closed and late answers have arrived. Returns the counts of the end.
    ///
    /// # Errors
    /// The work was stopped, or no packet leaves the host.
    pub(crate) fn run(mut self, path: u16, stop: &Stop) -> Result<ProbedEnd, ProbeError> {
        let mut buffer = vec![0; 1 << 16];
        loop {
            if stop.is_set() {
                return Err(Stopped.into());
            }
            let now = clock::now();
            let edges = self.edges();
            let drained = !self.survey.as_ref().is_some_and(Survey::is_waiting);
            if now >= edges.close.saturating_add(if drained { REPLIES } else { DRAIN }) {
                break;
            }
            if now < edges.close {
                self.send_due(now, edges)?;
            }
            // Nothing is sent after the window.
            let due = if now < edges.close { self.next_due(edges).clamp(now, now + LOOK) } else { now + LOOK };
            self.packets.wait(due.saturating_sub(clock::now()).max(1))?;
            for _ in 0..BATCH {
                let Some(event) = self.packets.event(&mut buffer)? else { break };
                self.take_event(&event, &buffer, edges);
            }
            let now = clock::now();
            self.expire(now);
            self.try_next_packet(now, edges);
        }
        Ok(self.counts(path))
    }

    fn take_event(&mut self, event: &Event, buffer: &[u8], edges: Edges) {
        match event {
            Event::Error { error, probe } => self.take_error(error, probe, buffer, edges),
            Event::Packet(arrived) => {
                let length = arrived.length.min(buffer.len());
                self.take_packet(arrived, &buffer[..length], edges);
            }
            Event::Reply { arrived, probe } => self.take_far_end(arrived, probe, buffer, edges),
        }
    }

    /// Changes to the next kind of packets if nobody has answered the present kind in time.
    fn try_next_packet(&mut self, now: u64, edges: Edges) {
        if now >= edges.close || self.fall_back.is_settled() {
            return;
        }
        let Some(survey) = &self.survey else { return };
        if survey.has_answers() {
            self.fall_back.settle();
        } else if let Some(within) = self.fall_back.unanswered_within(now) {
            self.change_packet(format!("no router and no host answered within {within}"));
        }
    }

    /// Changes to the next kind of packets that can be opened, and starts a new survey. Returns false if there is none.
    fn change_packet(&mut self, reason: String) -> bool {
        let Some(packets) = self.fall_back.next(reason) else { return false };
        self.packets = packets;
        self.survey = None;
        self.mtu = None;
        self.mtu_probe = None;
        self.send_errors = 0;
        true
    }

    /// Finds the probe that an answer refers to.
    fn find(&self, probe: &ProbeId, buffer: &[u8], is_padded: bool, now: u64) -> Option<Matched> {
        let survey = self.survey.as_ref()?;
        match probe {
            ProbeId::Payload(range) => survey.quoted(&buffer[range.clone()], is_padded, now),
            ProbeId::Sequence(sequence) => survey.numbered(*sequence),
        }
    }

    /// Returns whether this address has quoted the payload of a probe.
    fn quotes_payload(&self, from: IpAddr) -> bool {
        self.survey.as_ref().is_some_and(|survey| survey.quotes_payload(from))
    }

    fn edges(&self) -> Edges {
        let timeline = &self.timeline;
        Edges { open: timeline.open(), close: timeline.close(), measure: timeline.measure().get() }
    }

    /// Returns the time of the next probe; beyond any clock if there is none.
    fn next_due(&self, edges: Edges) -> u64 {
        let Some(survey) = &self.survey else { return u64::MAX };
        let probe = survey.due(edges).0;
        let searches = self.mtu.as_ref().is_some_and(|search| !search.is_done()) && self.mtu_probe.is_none();
        if searches { probe.min(self.mtu_due) } else { probe }
    }

    fn send_due(&mut self, now: u64, edges: Edges) -> Result<(), ProbeError> {
        self.begin(now);
        let Some(survey) = &mut self.survey else { return Ok(()) };
        if now >= edges.open {
            survey.opens(edges);
        }
        let (at, target) = survey.due(edges);
        if at <= now {
            self.send(target, edges)?;
        }
        if self.mtu_probe.is_none() && self.mtu_due <= now {
            self.send_mtu(now, edges)?;
        }
        Ok(())
    }

    /// Begins the survey, once the peer is known and the load has started.
    fn begin(&mut self, now: u64) {
        if self.survey.is_some()
            || !self.settings.probes
            || now < self.timeline.start()
            || self.packets.peer().is_none()
        {
            return;
        }
        let probes_routers = self.packets.router_probes() != RouterProbes::None;
        let max_hops = if probes_routers { self.settings.max_hops } else { 0 };
        self.survey = Some(Survey::new(now, self.settings.spacing, max_hops));
        self.fall_back.begin(now, self.timeline.open().saturating_sub(self.timeline.start()));
        if self.settings.path_mtu {
            let base = if self.packets.is_v6() { BASE_V6 } else { BASE_V4 };
            self.mtu = self.packets.link_mtu().map(|mtu| MtuSearch::new(mtu, base));
        }
    }

    fn send_mtu(&mut self, now: u64, edges: Edges) -> Result<(), ProbeError> {
        let routers = self.survey.as_ref().map_or(0, Survey::routers_before_far_end);
        let Some(search) = &mut self.mtu else { return Ok(()) };
        search.set_hops(routers);
        let Some(probe) = search.next() else { return Ok(()) };
        self.mtu_due = now + MTU_SPACING;
        self.mtu_probe = Some(probe);
        self.send(Target::Mtu { bytes: probe.bytes, ttl: probe.ttl }, edges)
    }

    fn send(&mut self, target: Target, edges: Edges) -> Result<(), ProbeError> {
        let Some(survey) = &mut self.survey else { return Ok(()) };
        let headers = self.packets.headers();
        let mut payload = Vec::new();
        let sequence = survey.sequence();
        let packet = TestPacket {
            sequence,
            sent: self.ways.clock.timestamp(clock::now()),
            error: ErrorEstimate::unsynchronised(),
            ssid: target.session(),
        };
        packet.write(&self.ways.own, &padding(target, headers, self.ways.own.packet_bytes()), &mut payload);
        let sent_at = clock::now();
        let result = self.packets.send(sequence, &payload, target.ttl());
        survey.sent(target, &payload, sent_at, edges);
        match result {
            Ok(bytes) => {
                self.send_errors = 0;
                self.sent += 1;
                self.sent_bytes += u64::from(bytes);
                self.counters.sent.store(self.sent, Ordering::Relaxed);
                self.counters.sent_bytes.store(self.sent_bytes, Ordering::Relaxed);
            }
            Err(error) if is_too_big(&error) => {
                // This host reports it: the first link, or what the kernel knows of the path.
                if let Target::Mtu { .. } = target {
                    self.mtu_answer(MtuAnswer::TooBig {
                        from: self.packets.local(),
                        mtu: self.packets.link_mtu().unwrap_or(0),
                    });
                }
            }
            Err(reason) => {
                self.send_errors += 1;
                let is_lost = self.send_errors >= MAX_SEND_ERRORS && !survey.has_answers();
                if let (true, Some(peer)) = (is_lost, self.packets.peer())
                    && !self.change_packet(format!("no packet leaves: {reason}"))
                {
                    return Err(ProbeError::NoRoute { address: peer.ip(), reason });
                }
            }
        }
        Ok(())
    }

    /// Takes an ICMP message that the kernel matched to the socket.
    fn take_error(&mut self, error: &QueuedError, probe: &ProbeId, buffer: &[u8], edges: Edges) {
        let Some(from) = error.from.filter(|_| error.origin != ErrorOrigin::Local) else { return };
        let now = clock::now();
        if self.survey.is_none() {
            return;
        }
        let found = self.find(probe, buffer, error.extension.is_some(), now);
        // A sender of ICMP errors quotes as much each time.
        let Some(probe) = found.filter(|probe| probe.has_proof || !self.quotes_payload(from)) else {
            self.rejected += 1;
            return;
        };
        let kind = IcmpKind::of(error);
        let is_far_end = self.packets.peer().is_some_and(|peer| peer.ip().to_canonical() == from);
        if let Target::Mtu { .. } = probe.target {
            let answer = match kind {
                IcmpKind::TooBig => MtuAnswer::TooBig { from, mtu: error.mtu },
                IcmpKind::TimeExceeded => MtuAnswer::TimeExceeded { from },
                IcmpKind::Unreachable if is_far_end => MtuAnswer::FarEnd,
                IcmpKind::Unreachable => return,
            };
            self.take_mtu_answer(probe, from, now, answer, edges);
            return;
        }
        if kind == IcmpKind::TooBig {
            return;
        }
        let quoted = &buffer[..error.quoted.min(buffer.len())];
        let extensions = error.extension.and_then(|offset| quoted.get(offset..)).map(icmp_extension::parse);
        let far_end = (is_far_end && kind == IcmpKind::Unreachable).then(FarEndAnswer::default);
        let at = error.arrived_unix_ns.map_or(now, monotonic);
        let answer = Answer { from, at, labels: extensions.unwrap_or_default().labels, far_end };
        let Some(survey) = &mut self.survey else { return };
        if survey.answered(probe, answer, probe.has_proof, edges) {
            self.counters.answered.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Takes a packet of the peer: a reply to a probe, or a probe to reflect.
    fn take_packet(&mut self, arrived: &Arrived, bytes: &[u8], edges: Edges) {
        let at = arrived.arrived_unix_ns.map_or_else(clock::now, monotonic);
        if let Ok((reply, _)) = ReflectedPacket::read(bytes, &self.ways.own)
            && self.take_reply(&reply, arrived, at, edges)
        {
            return;
        }
        if let Some(mode) = &self.ways.peer
            && let Ok((packet, _)) = TestPacket::read(bytes, mode)
        {
            self.reflect(packet, arrived, at);
        }
    }

    /// Takes a reply of a reflector. Returns false if it answers no probe.
    fn take_reply(&mut self, reply: &ReflectedPacket, arrived: &Arrived, at: u64, edges: Edges) -> bool {
        let Some(survey) = &mut self.survey else { return false };
        let Some(probe) = survey.numbered(reply.sender.sequence) else { return false };
        if !repeats(reply, survey.payload(reply.sender.sequence), &self.ways.own) {
            return false;
        }
        let clock = self.ways.clock;
        let sent = clock.nanos(clock.timestamp(probe.sent_at), TimestampFormat::Ntp);
        let format = reply.error.format();
        let received = clock.nanos(reply.received, format);
        let arrived_at = clock.nanos(clock.timestamp(at), TimestampFormat::Ntp);
        let there = received.wrapping_sub(sent);
        let one_way = Some([there, arrived_at.wrapping_sub(clock.nanos(reply.sent, format))]);
        // A stateless reflector copies the number.
        let is_stateful = reply.sequence != reply.sender.sequence || reply.sequence == 0;
        let far_end = FarEndAnswer {
            one_way,
            reflected_before: is_stateful.then_some(u64::from(reply.sequence)),
            received_ttl: clock.received_ttl(reply.sender_ttl),
        };
        if let Target::Mtu { .. } = probe.target {
            self.take_mtu_answer(probe, arrived.from.ip(), at, MtuAnswer::FarEnd, edges);
            return true;
        }
        let answer = Answer { from: arrived.from.ip().to_canonical(), at, labels: Vec::new(), far_end: Some(far_end) };
        if survey.answered(probe, answer, true, edges) {
            self.counters.answered.fetch_add(1, Ordering::Relaxed);
        }
        true
    }

    /// Takes an answer of the far end's operating system: an ICMP echo reply, SYN-ACK or RST.
    fn take_far_end(&mut self, arrived: &Arrived, probe: &ProbeId, buffer: &[u8], edges: Edges) {
        let now = clock::now();
        let at = arrived.arrived_unix_ns.map_or(now, monotonic);
        // An echo reply has all data of the request (RFC 792).
        let Some(probe) = self.find(probe, buffer, false, now).filter(|probe| probe.has_proof) else {
            self.rejected += 1;
            return;
        };
        if let Target::Mtu { .. } = probe.target {
            self.take_mtu_answer(probe, arrived.from.ip(), at, MtuAnswer::FarEnd, edges);
            return;
        }
        let far_end = Some(FarEndAnswer::default());
        let answer = Answer { from: arrived.from.ip().to_canonical(), at, labels: Vec::new(), far_end };
        let Some(survey) = &mut self.survey else { return };
        if survey.answered(probe, answer, true, edges) {
            self.counters.answered.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn take_mtu_answer(&mut self, probe: Matched, from: IpAddr, at: u64, answer: MtuAnswer, edges: Edges) {
        let Target::Mtu { bytes, ttl } = probe.target else { return };
        let far_end = matches!(answer, MtuAnswer::FarEnd).then(FarEndAnswer::default);
        let taken = Answer { from, at, labels: Vec::new(), far_end };
        let is_first = self.survey.as_mut().is_some_and(|survey| survey.answered(probe, taken, true, edges));
        if is_first && self.mtu_probe == Some(MtuProbe { bytes, ttl }) {
            self.mtu_answer(answer);
        }
    }

    fn mtu_answer(&mut self, answer: MtuAnswer) {
        if let (Some(search), Some(probe)) = (&mut self.mtu, self.mtu_probe.take()) {
            search.answered(probe, answer);
        }
    }

    fn expire(&mut self, now: u64) {
        let Some(survey) = &mut self.survey else { return };
        for target in survey.expire(now) {
            let Target::Mtu { bytes, ttl } = target else { continue };
            let probe = MtuProbe { bytes, ttl };
            if self.mtu_probe == Some(probe)
                && let Some(search) = &mut self.mtu
            {
                self.mtu_probe = None;
                search.lost(probe);
            }
        }
    }

    /// Answers a probe of the other end with a packet of the base length, never longer than the probe.
    fn reflect(&mut self, packet: TestPacket, arrived: &Arrived, at: u64) {
        let Some(mode) = &self.ways.peer else { return };
        // The rate of replies is that of the probes, however often a probe is repeated on the way.
        if !self.packets.accept(arrived.from) || !self.replays.accept(packet.sequence) {
            return;
        }
        let count = &mut self.reflected_by_session[usize::from(packet.ssid & 3)];
        let reply = ReflectedPacket {
            sequence: *count,
            sent: self.ways.clock.timestamp(clock::now()),
            error: ErrorEstimate::unsynchronised(),
            ssid: packet.ssid,
            received: self.ways.clock.timestamp(at),
            sender: packet,
            sender_ttl: arrived.ttl.unwrap_or(UNKNOWN_TTL),
        };
        *count = count.wrapping_add(1);
        let mut bytes = Vec::new();
        reply.write(mode, &[], &mut bytes);
        // A reply that cannot be sent is lost: the other end counts it.
        if self.packets.send(0, &bytes, FAR_TTL).is_ok() {
            self.reflected += 1;
        }
    }

    fn counts(self, path: u16) -> ProbedEnd {
        let router_probes = self.survey.as_ref().map(|_| self.packets.router_probes());
        let reflected = self.reflected;
        let destination = self.packets.peer().map(|peer| peer.ip().to_canonical());
        let source = self.packets.local();
        let path_mtu = self.mtu.as_ref().map(MtuSearch::result);
        let (packet, given_up) = self.fall_back.into_packet();
        let way = self.survey.zip(destination).map(|(survey, destination)| ProbedWay {
            packet,
            given_up,
            source,
            destination,
            hops: survey.hops(),
            path_mtu,
            sent: self.sent,
            sent_bytes: self.sent_bytes,
            rejected: self.rejected,
        });
        ProbedEnd { end: HopsEnd { path, way, reflected }, router_probes }
    }
}

impl StampClock {
    /// Returns the timestamp of a time of [`clock::now`].
    fn timestamp(self, at: u64) -> Timestamp {
        match self {
            Self::Monotonic => Timestamp(at),
            Self::Utc => {
                let unix = i64::try_from(clock::unix_at(at)).unwrap_or(i64::MAX);
                Timestamp::from_unix_ns(unix, TimestampFormat::Ntp)
            }
        }
    }

    /// Returns the TTL with which a probe arrived, from the reply of a reflector with this clock. Returns `None` if it does not know.
    fn received_ttl(self, sender_ttl: u8) -> Option<u8> {
        let is_known = match self {
            Self::Monotonic => sender_ttl != UNKNOWN_TTL,
            Self::Utc => sender_ttl < FAR_TTL,
        };
        is_known.then_some(sender_ttl)
    }

    /// Returns the nanoseconds of a timestamp, which has the format if it is of UTC.
    fn nanos(self, timestamp: Timestamp, format: TimestampFormat) -> i64 {
        match self {
            Self::Monotonic => timestamp.0.cast_signed(),
            Self::Utc => timestamp.unix_ns(format),
        }
    }
}

/// Returns whether a reply repeats the timestamp of the probe that it names. A host that sends probes back as they came does not, and nobody
/// guesses it where packets are unauthenticated.
fn repeats(reply: &ReflectedPacket, payload: Option<&[u8]>, mode: &Mode) -> bool {
    let probe = payload.and_then(|payload| TestPacket::read(payload, mode).ok());
    probe.is_some_and(|(probe, _)| probe.sent == reply.sender.sent)
}

/// Meaning of an ICMP message for a probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum IcmpKind {
    TimeExceeded,
    TooBig,
    Unreachable,
}

impl IcmpKind {
    /// RFC 792; RFC 1191 section 4; RFC 4443 sections 3.1 to 3.3.
    fn of(error: &QueuedError) -> Self {
        match (error.origin, error.icmp) {
            (ErrorOrigin::Icmp, [11, _]) | (ErrorOrigin::Icmp6, [3, _]) => Self::TimeExceeded,
            (ErrorOrigin::Icmp, [3, 4]) | (ErrorOrigin::Icmp6, [2, _]) => Self::TooBig,
            _ => Self::Unreachable,
        }
    }
}

/// Returns the padding that makes a probe of the path MTU as large as it is to be.
fn padding(target: Target, headers: u32, packet_bytes: usize) -> Vec<Tlv> {
    let Target::Mtu { bytes, .. } = target else { return Vec::new() };
    let base = headers + u32::try_from(packet_bytes).unwrap_or(u32::MAX);
    let rest = bytes.saturating_sub(base.saturating_add(TLV_HEADER));
    vec![Tlv::padding(u16::try_from(rest).unwrap_or(u16::MAX))]
}

fn is_too_big(error: &io::Error) -> bool {
    error.raw_os_error() == Some(linerate_sys::socket::EMSGSIZE)
}

/// Returns a time of the kernel's clock of arrivals on the monotonic clock, by its age.
///
/// The monotonic clock is read last. A thread that is descheduled in between then sees an arrival late and never early: the bounds of the
/// clocks' offset rest on delays that are never too short.
fn monotonic(unix_ns: u64) -> u64 {
    const MAX_AGE: u64 = 1_000_000_000;
    let age = clock::unix_now().saturating_sub(unix_ns).min(MAX_AGE);
    clock::now().saturating_sub(age)
}

/// Returns a key that nobody knows, for probes to hosts that reflect none.
pub(crate) fn random_key() -> [u8; 32] {
    random()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stamp::Key;

    #[test]
    fn reply_repeats_the_timestamp_of_its_probe() {
        let probe = TestPacket { sequence: 0, sent: Timestamp(9), error: ErrorEstimate(1), ssid: 0 };
        for mode in [Mode::Unauthenticated, Mode::Authenticated(Key::new(b"a key of tests"))] {
            let mut payload = Vec::new();
            probe.write(&mode, &[], &mut payload);
            // A host that echoes the probe.
            let (echo, _) = ReflectedPacket::read(&payload, &mode).expect("it has the HMAC of the probe");
            assert!(!repeats(&echo, Some(&payload), &mode));
            let reply = ReflectedPacket { sender: probe, ..echo };
            assert!(repeats(&reply, Some(&payload), &mode));
            let guess = TestPacket { sent: Timestamp(8), ..probe };
            assert!(!repeats(&ReflectedPacket { sender: guess, ..reply }, Some(&payload), &mode));
            assert!(!repeats(&reply, None, &mode));
        }
    }

    #[test]
    fn timestamps_of_reflectors_are_read_in_their_format() {
        let unix_ns = 1_795_910_400_123_456_789;
        for format in [TimestampFormat::Ntp, TimestampFormat::Ptp] {
            assert_eq!(StampClock::Utc.nanos(Timestamp::from_unix_ns(unix_ns, format), format), unix_ns);
        }
        assert_eq!(StampClock::Monotonic.nanos(Timestamp(7), TimestampFormat::Ptp), 7);
    }

    /// A far end that is taken to be on the first link has no routers before it.
    #[test]
    fn unknown_ttl_is_not_that_of_the_first_link() {
        for (clock, expected) in [
            (StampClock::Monotonic, [None, Some(252), Some(255)]),
            (StampClock::Utc, [Some(UNKNOWN_TTL), Some(252), None]),
        ] {
            assert_eq!([UNKNOWN_TTL, 252, 255].map(|ttl| clock.received_ttl(ttl)), expected, "{clock:?}");
        }
    }
}
