//! The Session-Reflector (RFC 8762, section 4.3) as a function of packets and times. It opens no socket and reads no clock.
//!
//! Anyone may send a packet, with any source address. A reply is never longer than its packet, and replies have a rate in total and for
//! each source. Sessions and sources are bounded in number.

use super::packet::{Mode, PacketError, ReflectedPacket, TestPacket, is_reflected};
use super::rate::TokenBucket;
use super::timestamp::{ErrorEstimate, Timestamp, TimestampFormat};
use super::tlv::{Tlv, TlvFlags, TlvValue};
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use linerate_engine::AllowedPeers;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Policy of a reflector.
#[derive(Debug, Clone)]
pub struct ReflectorOptions {
    /// Mode of all sessions. In authenticated mode packets without a valid HMAC get no reply.
    pub mode: Mode,
    /// Sources that get replies.
    pub allowed: AllowedPeers,
    /// Whether the reflector counts the packets of each session in its sequence numbers, so that senders can place losses on one of the
    /// two ways (RFC 8762, section 4.3). Otherwise it copies the sender's numbers.
    pub is_stateful: bool,
    /// Replies per second in total. One source gets a tenth of them.
    pub max_rate: u32,
    /// Sessions in memory, and sources with a rate of their own. The session that was idle the longest gives way to a new one.
    pub max_sessions: usize,
}

impl Default for ReflectorOptions {
    /// Unauthenticated and stateful, 10,000 replies per second, for the networks of [`local_networks`].
    fn default() -> Self {
        Self {
            mode: Mode::Unauthenticated,
            allowed: AllowedPeers::only(local_networks()),
            is_stateful: true,
            max_rate: 10_000,
            max_sessions: 4_096,
        }
    }
}

/// Networks that are not part of the public Internet: loopback, link-local, private (RFC 1918) and unique local (RFC 4193) addresses.
pub fn local_networks() -> Vec<IpNet> {
    let v4 = [
        ([127, 0, 0, 0], 8),
        ([10, 0, 0, 0], 8),
        ([172, 16, 0, 0], 12),
        ([192, 168, 0, 0], 16),
        ([169, 254, 0, 0], 16),
    ];
    let v6 = [
        (Ipv6Addr::LOCALHOST, 128),
        (Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0), 10),
        (Ipv6Addr::new(0xfc00, 0, 0, 0, 0, 0, 0, 0), 7),
    ];
    let v4 = v4.into_iter().map(|(address, bits)| IpNet::V4(Ipv4Net::new_assert(Ipv4Addr::from(address), bits)));
    let v6 = v6.into_iter().map(|(address, bits)| IpNet::V6(Ipv6Net::new_assert(address, bits)));
    v4.chain(v6).collect()
}

/// Circumstances of a packet's arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// Address and port of the sender.
    pub from: SocketAddr,
    /// Time of arrival, in nanoseconds since 1970.
    pub at_unix_ns: i64,
    /// TTL or hop limit. `None` if the socket does not report it.
    pub ttl: Option<u8>,
    /// Type of service or traffic class.
    pub traffic_class: Option<u8>,
}

/// Time of a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplyTime {
    /// Nanoseconds of a monotonic clock, for rates and idle times.
    pub monotonic_ns: u64,
    /// Nanoseconds since 1970, for the timestamp.
    pub unix_ns: i64,
    /// Error of the clock of `unix_ns`.
    pub error: ErrorEstimate,
}

/// Reply to a packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// Bytes of the datagram, never more than the packet had.
    pub bytes: Vec<u8>,
    /// Type of service or traffic class to send it with: the DSCP of the packet, or the one that its Class of Service TLV asks for; ECN is
    /// 0.
    pub traffic_class: u8,
}

/// Reason why a packet gets no reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// A source that is not allowed, or that cannot be a sender's.
    Source,
    /// Fewer than 24 bytes in unauthenticated mode, or 112 in authenticated mode.
    Short,
    /// A wrong HMAC.
    Hmac,
    /// A reply of another reflector: two reflectors would answer each other for ever.
    Reflected,
    /// The rate of the source or of all replies is used up.
    Rate,
}

/// Time after which an idle session begins anew: the default of REFWAIT, 900 s (RFC 5357, section 4.2).
const IDLE_NS: u64 = 900_000_000_000;
/// DSCPs from CS6 on carry control traffic of the network. No sender gets them by asking.
const NETWORK_CONTROL: u8 = 48;
/// Sender TTL of a reflector that cannot read it (RFC 8762, section 4.3.1).
const UNKNOWN_TTL: u8 = 255;

/// Key of a session (RFC 8972, section 3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct SessionKey {
    address: IpAddr,
    port: u16,
    ssid: u16,
}

#[derive(Debug, Clone, Copy)]
struct Session {
    received: u32,
    transmitted: u32,
    last_ns: u64,
}

/// A Session-Reflector.
#[derive(Debug)]
pub struct Reflector {
    options: ReflectorOptions,
    sessions: HashMap<SessionKey, Session>,
    total: TokenBucket,
    sources: HashMap<IpAddr, TokenBucket>,
}

impl Reflector {
    /// Makes a reflector without sessions.
    pub fn new(options: ReflectorOptions) -> Self {
        let total = TokenBucket::new(options.max_rate);
        Self { options, sessions: HashMap::new(), total, sources: HashMap::new() }
    }

    /// Number of sessions in memory.
    pub fn sessions(&self) -> usize {
        self.sessions.len()
    }

    /// Answers a datagram.
    ///
    /// # Errors
    /// The packet gets no reply, for the reason returned.
    pub fn answer(&mut self, datagram: &[u8], arrival: &Arrival, now: ReplyTime) -> Result<Reply, Refusal> {
        let address = arrival.from.ip().to_canonical();
        if arrival.from.port() == 0 || !is_unicast(address) || !self.options.allowed.allow(address) {
            return Err(Refusal::Source);
        }
        let (packet, tlvs) = TestPacket::read(datagram, &self.options.mode).map_err(|error| match error {
            PacketError::Short { .. } => Refusal::Short,
            PacketError::Hmac => Refusal::Hmac,
        })?;
        match is_reflected(datagram, &self.options.mode) {
            Some(true) => return Err(Refusal::Reflected),
            Some(false) => {}
            // Two reflectors would not recognise each other's replies of this length.
            None => return Err(Refusal::Short),
        }
        self.take_token(address, now.monotonic_ns)?;
        let key = SessionKey { address, port: arrival.from.port(), ssid: packet.ssid };
        let session = if self.options.is_stateful { Some(self.count(key, now.monotonic_ns)) } else { None };
        let received_class = arrival.traffic_class.unwrap_or_default();
        let requested_dscp = tlvs.iter().find_map(|tlv| match &tlv.value {
            TlvValue::ClassOfService(class) if !tlv.flags.integrity_failed => Some(class.requested_dscp),
            _ => None,
        });
        let reply_dscp = requested_dscp.filter(|dscp| *dscp < NETWORK_CONTROL).unwrap_or(received_class >> 2);
        let tlvs: Vec<Tlv> = tlvs.into_iter().map(|tlv| process(tlv, received_class, session)).collect();
        let reflected = ReflectedPacket {
            sequence: session.map_or(packet.sequence, |session| session.transmitted.wrapping_sub(1)),
            sent: Timestamp::from_unix_ns(now.unix_ns, TimestampFormat::Ntp),
            error: now.error,
            ssid: packet.ssid,
            received: Timestamp::from_unix_ns(arrival.at_unix_ns, TimestampFormat::Ntp),
            sender: packet,
            sender_ttl: arrival.ttl.unwrap_or(UNKNOWN_TTL),
        };
        let mut bytes = Vec::with_capacity(datagram.len().max(self.options.mode.packet_bytes()));
        reflected.write(&self.options.mode, &tlvs, &mut bytes);
        // The fragment of a TLV header at the end is copied, so that both packets have the same length.
        bytes.extend(datagram.get(bytes.len()..).unwrap_or_default());
        // A packet of a TWAMP Light sender may be shorter than the reply (RFC 8762, section 4.6).
        bytes.truncate(datagram.len());
        Ok(Reply { bytes, traffic_class: reply_dscp << 2 })
    }

    /// Takes a token of the source and one of the total.
    fn take_token(&mut self, address: IpAddr, now: u64) -> Result<(), Refusal> {
        let source = source_of(address);
        if self.sources.len() >= self.options.max_sessions && !self.sources.contains_key(&source) {
            self.sources.retain(|_, bucket| !bucket.is_full(now));
            if self.sources.len() >= self.options.max_sessions {
                return Err(Refusal::Rate);
            }
        }
        let each = (self.options.max_rate / 10).max(1);
        let bucket = self.sources.entry(source).or_insert_with(|| TokenBucket::new(each));
        if !self.total.has_token(now) || !bucket.has_token(now) {
            return Err(Refusal::Rate);
        }
        self.total.take(now);
        bucket.take(now);
        Ok(())
    }

    /// Counts a packet and its reply. Returns the counts of its session, which begins anew after [`IDLE_NS`].
    fn count(&mut self, key: SessionKey, now: u64) -> Session {
        if self.sessions.len() >= self.options.max_sessions && !self.sessions.contains_key(&key) {
            // Sessions of a single packet go first: forged sources make many of them.
            let oldest = self.sessions.iter().min_by_key(|(_, session)| (session.received > 1, session.last_ns));
            if let Some(key) = oldest.map(|(key, _)| *key) {
                self.sessions.remove(&key);
            }
        }
        let new = Session { received: 0, transmitted: 0, last_ns: now };
        let session = self.sessions.entry(key).or_insert(new);
        if now.saturating_sub(session.last_ns) > IDLE_NS {
            *session = new;
        }
        session.received = session.received.wrapping_add(1);
        session.transmitted = session.transmitted.wrapping_add(1);
        session.last_ns = now;
        *session
    }
}

/// Returns the TLV as the reflector transmits it (RFC 8972, section 4).
fn process(tlv: Tlv, received_class: u8, session: Option<Session>) -> Tlv {
    let Tlv { flags, mut value } = tlv;
    if flags.integrity_failed {
        return Tlv { flags, value };
    }
    let mut unrecognised = false;
    match &mut value {
        TlvValue::ClassOfService(class) => {
            class.received_dscp = received_class >> 2;
            class.received_ecn = received_class & 0b11;
            class.reverse_path = u8::from(class.requested_dscp >= NETWORK_CONTROL);
        }
        TlvValue::DirectMeasurement(counts) => match session {
            Some(session) => {
                counts.reflector_received = session.received;
                counts.reflector_transmitted = session.transmitted;
            }
            // A stateless reflector does not count.
            None => unrecognised = true,
        },
        TlvValue::Unknown { .. } => unrecognised = true,
        TlvValue::ExtraPadding(_) | TlvValue::AccessReport(_) | TlvValue::Hmac(_) | TlvValue::Malformed { .. } => {}
    }
    let malformed = matches!(value, TlvValue::Malformed { .. });
    Tlv { flags: TlvFlags { unrecognised, malformed, integrity_failed: false }, value }
}

/// Whether a host can have this address and send from it.
fn is_unicast(address: IpAddr) -> bool {
    let is_broadcast = matches!(address, IpAddr::V4(address) if address.is_broadcast());
    !(address.is_unspecified() || address.is_multicast() || is_broadcast)
}

/// Address that a rate belongs to: an IPv4 address, or the /64 of an IPv6 address, in which one host may choose any.
fn source_of(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX))),
    }
}

#[cfg(test)]
mod tests;
