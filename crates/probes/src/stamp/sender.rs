//! The Session-Sender (RFC 8762, section 4.2) as a function of packets and times. It opens no socket and reads no clock.

use super::packet::{Mode, PacketError, ReflectedPacket, TestPacket};
use super::timestamp::{ErrorEstimate, Timestamp, TimestampFormat};
use super::tlv::Tlv;
use std::collections::BTreeMap;

/// Packets that can wait for a reply. The oldest one counts as lost when there are more.
const MAX_OUTSTANDING: usize = 65_536;

/// Sender of one test session. It numbers packets, and matches replies with them.
#[derive(Debug)]
pub struct Sender {
    mode: Mode,
    ssid: u16,
    next_sequence: u32,
    /// Packets without a reply, by sequence number.
    outstanding: BTreeMap<u32, SentPacket>,
    sent: u64,
    answered: u64,
    latest: Option<LatestReply>,
}

#[derive(Debug, Clone, Copy)]
struct SentPacket {
    timestamp: Timestamp,
    sent_ns: i64,
}

/// Counts up to the reply with the highest reflector sequence number.
#[derive(Debug, Clone, Copy)]
struct LatestReply {
    /// Sequence number of the reflector.
    reflector: u32,
    /// Sequence number of the sender.
    sender: u32,
}

/// Reply that belongs to a packet. All differences leave out the time that the packet spent in the reflector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// Sequence number of the packet.
    pub sequence: u32,
    /// The reflector's packet.
    pub reflected: ReflectedPacket,
    /// TLVs of the reply.
    pub tlvs: Vec<Tlv>,
    /// Round-trip time in nanoseconds.
    pub round_trip_ns: i64,
    /// Time of reception by the reflector less time of transmission, in nanoseconds. It contains the offset between both clocks.
    pub forward_ns: i64,
    /// Time of reception by the sender less time of transmission by the reflector, in nanoseconds. It contains the offset too.
    pub backward_ns: i64,
}

/// Losses of a session, in packets. `forward` and `backward` hold for a stateful reflector; a stateless one makes all losses look
/// like backward ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Losses {
    /// Packets sent.
    pub sent: u64,
    /// Replies received, without duplicates.
    pub answered: u64,
    /// Packets that did not reach the reflector, up to the latest reply.
    pub forward: u64,
    /// Replies that did not come back, up to the latest reply.
    pub backward: u64,
}

/// Reason why a datagram is not taken as a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unmatched {
    /// Not a packet of the mode.
    #[error(transparent)]
    Packet(#[from] PacketError),
    /// A duplicate, a late or a forged reply: no packet with this number, timestamp and SSID waits.
    #[error("the reply belongs to no packet that waits for one")]
    Unknown,
}

impl Sender {
    /// Makes a sender. `ssid` identifies the session at the reflector, together with address and port; 0 is none.
    pub fn new(mode: Mode, ssid: u16) -> Self {
        Self { mode, ssid, next_sequence: 0, outstanding: BTreeMap::new(), sent: 0, answered: 0, latest: None }
    }

    /// Appends the next packet to `into`, sent at `sent_ns` (nanoseconds since 1970) by a clock with this error. Returns its number.
    pub fn next(&mut self, sent_ns: i64, error: ErrorEstimate, tlvs: &[Tlv], into: &mut Vec<u8>) -> u32 {
        let sequence = self.next_sequence;
        let timestamp = Timestamp::from_unix_ns(sent_ns, error.format());
        TestPacket { sequence, sent: timestamp, error, ssid: self.ssid }.write(&self.mode, tlvs, into);
        self.outstanding.insert(sequence, SentPacket { timestamp, sent_ns });
        if self.outstanding.len() > MAX_OUTSTANDING {
            self.outstanding.pop_first();
        }
        self.next_sequence = sequence.wrapping_add(1);
        self.sent += 1;
        sequence
    }

    /// Reads a datagram that arrived at `arrived_ns`, by the clock of [`Sender::next`].
    ///
    /// # Errors
    /// It is not a reply to a packet of this sender.
    pub fn read(&mut self, datagram: &[u8], arrived_ns: i64) -> Result<Answer, Unmatched> {
        let (reflected, tlvs) = ReflectedPacket::read(datagram, &self.mode)?;
        let sequence = reflected.sender.sequence;
        let packet = self.outstanding.get(&sequence).copied().ok_or(Unmatched::Unknown)?;
        // A reflector without RFC 8972 returns zero as SSID.
        let is_same_session = reflected.ssid == self.ssid || reflected.ssid == 0;
        if reflected.sender.sent != packet.timestamp || !is_same_session {
            return Err(Unmatched::Unknown);
        }
        self.outstanding.remove(&sequence);
        self.answered += 1;
        if self.latest.is_none_or(|latest| reflected.sequence > latest.reflector) {
            self.latest = Some(LatestReply { reflector: reflected.sequence, sender: sequence });
        }
        let format: TimestampFormat = reflected.error.format();
        let forward_ns = reflected.received.unix_ns(format).saturating_sub(packet.sent_ns);
        let backward_ns = arrived_ns.saturating_sub(reflected.sent.unix_ns(format));
        let round_trip_ns = forward_ns.saturating_add(backward_ns);
        Ok(Answer { sequence, reflected, tlvs, round_trip_ns, forward_ns, backward_ns })
    }

    /// Returns the losses so far. Packets sent after the latest reply are on neither way.
    pub fn losses(&self) -> Losses {
        let Self { sent, answered, .. } = *self;
        let Some(LatestReply { reflector, sender }) = self.latest else {
            return Losses { sent, answered, forward: 0, backward: 0 };
        };
        let transmitted = u64::from(sender) + 1;
        let reflected = u64::from(reflector) + 1;
        Losses {
            sent,
            answered,
            forward: transmitted.saturating_sub(reflected),
            backward: reflected.saturating_sub(answered),
        }
    }

    /// Number of packets that wait for a reply.
    pub fn outstanding(&self) -> usize {
        self.outstanding.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stamp::{Arrival, Reflector, ReflectorOptions, ReplyTime};

    const START_NS: i64 = 1_795_910_400_000_000_000;

    struct Session {
        sender: Sender,
        reflector: Reflector,
        /// Offset of the reflector's clock.
        offset_ns: i64,
        now_ns: i64,
    }

    impl Session {
        fn new(offset_ns: i64) -> Self {
            let reflector = Reflector::new(ReflectorOptions::default());
            Self { sender: Sender::new(Mode::Unauthenticated, 5), reflector, offset_ns, now_ns: START_NS }
        }

        fn packet(&mut self) -> Vec<u8> {
            let mut packet = Vec::new();
            self.sender.next(self.now_ns, ErrorEstimate::unsynchronised(), &[], &mut packet);
            self.now_ns += 10_000_000;
            packet
        }

        /// Reflects a packet that takes 1 ms there, 5 ms in the reflector and 2 ms back. Returns the reply and its time.
        fn reflect(&mut self, packet: &[u8]) -> (Vec<u8>, i64) {
            let sent_ns = self.now_ns - 10_000_000;
            let from = "127.0.0.1:5000".parse().expect("an address");
            let at_unix_ns = sent_ns + 1_000_000 + self.offset_ns;
            let arrival = Arrival { from, at_unix_ns, ttl: None, traffic_class: None };
            let unix_ns = at_unix_ns + 5_000_000;
            let monotonic_ns = unix_ns.cast_unsigned();
            let now = ReplyTime { monotonic_ns, unix_ns, error: ErrorEstimate::unsynchronised() };
            (self.reflector.answer(packet, &arrival, now).expect("answers").bytes, sent_ns + 8_000_000)
        }
    }

    #[test]
    fn delays_leave_out_the_reflector() {
        let mut session = Session::new(300_000_000);
        let packet = session.packet();
        let (reply, arrived_ns) = session.reflect(&packet);
        let answer = session.sender.read(&reply, arrived_ns).expect("its reply");
        assert_eq!(answer.round_trip_ns, 3_000_000);
        assert_eq!((answer.forward_ns, answer.backward_ns), (301_000_000, -298_000_000));
    }

    #[test]
    fn losses_have_a_direction() {
        let mut session = Session::new(0);
        for number in 0..10 {
            let packet = session.packet();
            // 2 and 3 do not arrive; the replies to 5, 6 and 7 do not come back.
            if matches!(number, 2 | 3) {
                continue;
            }
            let (reply, arrived_ns) = session.reflect(&packet);
            if !matches!(number, 5..=7) {
                session.sender.read(&reply, arrived_ns).expect("its reply");
            }
        }
        assert_eq!(session.sender.losses(), Losses { sent: 10, answered: 5, forward: 2, backward: 3 });
        assert_eq!(session.sender.outstanding(), 5);
    }

    #[test]
    fn duplicates_and_forged_replies_are_not_taken() {
        let mut session = Session::new(0);
        let packet = session.packet();
        let (reply, arrived_ns) = session.reflect(&packet);
        // Sequence number, SSID, the sender's number and the sender's timestamp.
        for at in [15, 27, 30, 35] {
            let mut forged = reply.clone();
            forged[at] ^= 1;
            assert_eq!(session.sender.read(&forged, arrived_ns), Err(Unmatched::Unknown), "byte {at}");
        }
        let short = session.sender.read(&reply[..40], arrived_ns);
        assert_eq!(short, Err(Unmatched::Packet(PacketError::Short { length: 40, needed: 41 })));
        session.sender.read(&reply, arrived_ns).expect("its reply");
        assert_eq!(session.sender.read(&reply, arrived_ns), Err(Unmatched::Unknown));
        assert_eq!(session.sender.losses().answered, 1);
    }
}
