//! A stack of layers from a medium up to TCP or UDP, and what it carries of messages of a size.

use crate::carried::{Carried, Packet};
use crate::header_field::{HeaderField, LayerBytes};
use crate::ip_packet::{IpPackets, tcp_header};
use crate::{Encapsulation, IpVersion, Medium, Transport};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The layers between a medium and TCP or UDP.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Stack {
    /// What the bits travel on.
    pub medium: Medium,
    /// Tags and tunnels, outermost first, as they follow each other on the wire.
    #[serde(default)]
    pub over: Vec<Encapsulation>,
    /// Of the packets that carry the messages.
    #[serde(default)]
    pub ip: IpVersion,
    /// Of the packets around tunnels.
    #[serde(default)]
    pub outer_ip: IpVersion,
    /// The medium's MTU: the most that follows its own header. Tags of an Ethernet frame come on top. None is the medium's usual.
    #[serde(default)]
    pub mtu: Option<u32>,
    /// The MTU that hosts use inside all encapsulations. By default, what the encapsulations leave.
    #[serde(default)]
    pub inner_mtu: Option<u32>,
    /// Whether TCP sends timestamps (RFC 7323), as nearly all systems do.
    #[serde(default = "yes")]
    pub tcp_timestamps: bool,
    /// Both directions share the medium, as on a hub, so that TCP's acknowledgements take their part of it. Collisions are not
    /// counted.
    #[serde(default)]
    pub half_duplex: bool,
}

const fn yes() -> bool {
    true
}

/// Layers that do not fit on each other.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadStack {
    /// A tag, label or session where no frame is.
    #[error("{over} does not go over {below}, which carries {carries}; the outermost is named first")]
    Misplaced {
        /// What was to be carried.
        over: Encapsulation,
        /// What was to carry it.
        below: String,
        /// What that can carry.
        carries: &'static str,
    },
    /// The medium cannot have this MTU.
    #[error("an MTU of {mtu} is more than {medium} can have; give at most {most}")]
    MtuTooLarge {
        /// As given.
        mtu: u32,
        /// What was to have it.
        medium: Medium,
        /// The largest it can have.
        most: u32,
    },
    /// Too little is left for packets.
    #[error("{left} bytes are left for {packets} packets, which need an MTU of at least {least}; give a larger MTU")]
    MtuTooSmall {
        /// Bytes left.
        left: u32,
        /// Whose packets they are.
        packets: &'static str,
        /// The smallest MTU they may have.
        least: u32,
    },
    /// No such medium is shared by both directions.
    #[error("{medium} has no half duplex; it is of Ethernet up to 1 Gbit/s (IEEE 802.3 clause 4)")]
    NotHalfDuplex {
        /// The medium.
        medium: Medium,
    },
    /// The MTU inside is said to be larger than what fits.
    #[error("an inner MTU of {asked} does not fit: {left} bytes are left inside the encapsulations")]
    InnerMtuTooLarge {
        /// As given.
        asked: u32,
        /// Bytes left.
        left: u32,
    },
    /// No datagram is so large.
    #[error("a UDP message of {bytes} bytes is more than a datagram can hold; give at most {most}")]
    MessageTooLarge {
        /// As given.
        bytes: u64,
        /// The largest.
        most: u64,
    },
}

impl Stack {
    /// Plain IPv4 on a medium with its usual MTU.
    pub const fn on(medium: Medium) -> Self {
        Self {
            medium,
            over: Vec::new(),
            ip: IpVersion::V4,
            outer_ip: IpVersion::V4,
            mtu: None,
            inner_mtu: None,
            tcp_timestamps: true,
            half_duplex: false,
        }
    }

    /// The same with these encapsulations, outermost first.
    pub fn over(self, over: &[Encapsulation]) -> Self {
        Self { over: over.to_vec(), ..self }
    }

    /// The same with this MTU of the medium.
    pub fn mtu(self, mtu: u32) -> Self {
        Self { mtu: Some(mtu), ..self }
    }

    /// The MTU that is left inside all encapsulations.
    pub fn inner_mtu(&self) -> Result<u32, BadStack> {
        let rooms = self.rooms()?;
        Ok(rooms[rooms.len() - 1])
    }

    /// What it carries in messages of `message_bytes`. TCP fills its segments, whatever the message.
    pub fn carried(&self, transport: Transport, message_bytes: u64) -> Result<Carried, BadStack> {
        let most = self.ip.largest_datagram();
        if transport == Transport::Udp && message_bytes > most {
            return Err(BadStack::MessageTooLarge { bytes: message_bytes, most });
        }
        if self.half_duplex && !self.medium.may_be_half_duplex() {
            return Err(BadStack::NotHalfDuplex { medium: self.medium });
        }
        let rooms = self.rooms()?;
        let inner_mtu = rooms[rooms.len() - 1];
        let cut = IpPackets::of(transport, self.tcp_timestamps, self.ip, message_bytes, inner_mtu);
        let packets: Vec<Packet> = cut
            .into_iter()
            .map(|packets| Packet { count: packets.count, parts: self.around(packets.parts(), &rooms) })
            .collect();
        let mut bytes = LayerBytes::default();
        for packet in &packets {
            bytes += LayerBytes::of(&packet.parts, packet.count);
        }
        let answered = self.half_duplex && transport == Transport::Tcp;
        let acknowledgement = answered.then(|| {
            let packet = IpPackets::acknowledgement(self.tcp_timestamps, self.ip);
            Packet { count: packet.count, parts: self.around(packet.parts(), &rooms) }
        });
        Ok(Carried { medium: self.medium, inner_mtu, packets, bytes, acknowledgement })
    }

    /// Puts all encapsulations and the medium around a packet; parts of no bytes are left out.
    fn around(&self, packet: Vec<HeaderField>, rooms: &[u32]) -> Vec<HeaderField> {
        let around = self.over.iter().zip(&rooms[1..]).rev();
        let body = around.fold(packet, |body, (over, room)| over.wrap(body, *room, self.outer_ip));
        let mut parts = self.medium.frame(body);
        parts.retain(|part| part.bytes > 0);
        parts
    }

    /// The largest packet that fits on the medium, then inside each encapsulation in turn.
    fn rooms(&self) -> Result<Vec<u32>, BadStack> {
        let (mut below, mut offers) = (self.medium.to_string(), self.medium.offers());
        for over in &self.over {
            if over.needs() > offers {
                return Err(BadStack::Misplaced { over: *over, below, carries: offers.in_words() });
            }
            (below, offers) = (over.to_string(), over.offers());
        }

        let (mtu, most) = (self.mtu.unwrap_or(self.medium.mtu()), self.medium.largest_mtu());
        if mtu > most {
            return Err(BadStack::MtuTooLarge { mtu, medium: self.medium, most });
        }
        let small = |left| BadStack::MtuTooSmall { left, packets: self.ip.name(), least: self.ip.smallest_mtu() };
        let mut rooms = vec![mtu];
        let mut lengthens = self.medium.lengthens_for_tags();
        for over in &self.over {
            lengthens &= over.is_tag();
            let room = rooms[rooms.len() - 1];
            rooms.push(if lengthens { room } else { over.room(room, self.outer_ip).ok_or_else(|| small(0))? });
        }
        let left = rooms.len() - 1;
        if let Some(asked) = self.inner_mtu {
            if asked > rooms[left] {
                return Err(BadStack::InnerMtuTooLarge { asked, left: rooms[left] });
            }
            rooms[left] = asked;
        }
        if rooms[left] < self.ip.smallest_mtu() { Err(small(rooms[left])) } else { Ok(rooms) }
    }

    /// TCP's payload in a full segment.
    pub fn segment(&self) -> Result<u32, BadStack> {
        Ok(self.inner_mtu()? - self.ip.header() - tcp_header(self.tcp_timestamps))
    }
}
