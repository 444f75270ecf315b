//! What a stack carries: the bytes of a message's packets by layer, and the rates that follow.

use crate::Medium;
use crate::header_field::{HeaderField, Layer, LayerBytes};
use linerate_units::BitRate;
use serde::Serialize;

/// A packet of a message as it travels on the medium, and how many of them there are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Packet {
    /// So many of the message's packets are of this form.
    pub count: u64,
    /// All its bytes, in the order in which they are sent; on ATM the headers of cells are summed up at the end.
    pub parts: Vec<HeaderField>,
}

/// What a stack carries: the bytes of one message (TCP: of one full segment) at each layer, and how fast they can follow each
/// other. One direction, nothing else on the medium, no losses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Carried {
    /// The medium.
    pub medium: Medium,
    /// The MTU inside all encapsulations.
    pub inner_mtu: u32,
    /// The message's packets, in order.
    pub packets: Vec<Packet>,
    /// The message's bytes at each layer.
    pub bytes: LayerBytes,
    /// What answers every second segment over the same medium; none where it takes nothing from this direction.
    pub acknowledgement: Option<Packet>,
}

/// A receiver acknowledges at least every second full segment: RFC 9293 section 3.8.6.3, RFC 1122 section 4.2.3.2.
pub(crate) const SEGMENTS_ACKNOWLEDGED: u64 = 2;

impl Carried {
    /// The most bits a second that this layer counts.
    pub fn rate(&self, layer: Layer) -> BitRate {
        let (messages, wire) = self.turn();
        self.medium.capacity().scaled(self.bytes.at(layer) * messages, wire)
    }

    /// How many messages follow each other until all begins again, and the bytes of the medium that this takes: one message, or
    /// the segments with the acknowledgement of both.
    pub fn turn(&self) -> (u64, u64) {
        let wire = self.bytes.at(Layer::Wire);
        match &self.acknowledgement {
            None => (1, wire),
            Some(packet) => {
                let answer = LayerBytes::of(&packet.parts, packet.count).at(Layer::Wire);
                (SEGMENTS_ACKNOWLEDGED, SEGMENTS_ACKNOWLEDGED * wire + answer)
            }
        }
    }

    /// The payload as a share of the medium's line.
    pub fn share_of_line(&self) -> f64 {
        let (messages, wire) = self.turn();
        let of_capacity = (self.bytes.at(Layer::Payload) * messages) as f64 / wire as f64;
        of_capacity * (self.medium.capacity().get() as f64 / self.medium.line().get() as f64)
    }

    /// Packets of one message; each is a frame of the medium.
    pub fn packet_count(&self) -> u64 {
        self.packets.iter().map(|packet| packet.count).sum()
    }

    /// Messages (TCP: full segments) a second.
    pub fn messages_per_s(&self) -> f64 {
        let (messages, wire) = self.turn();
        self.medium.capacity().get() as f64 * messages as f64 / (wire as f64 * 8.0)
    }

    /// Packets a second; each is a frame of the medium.
    pub fn packets_per_s(&self) -> f64 {
        self.messages_per_s() * self.packet_count() as f64
    }

    /// Cells of one message, on a medium that has them.
    pub fn cells(&self) -> Option<u64> {
        const CELL: u64 = 53;
        self.medium.has_cells().then(|| self.bytes.at(Layer::Wire) / CELL)
    }

    /// Whether `claim`, counted at this layer, is possible. A claim may be rounded up and a line run faster than its name
    /// (IEEE 802.3 allows clocks 0.01 % off), so one in a thousand more passes.
    pub fn allows(&self, layer: Layer, claim: BitRate) -> bool {
        u128::from(claim.get()) * 1_000 <= u128::from(self.rate(layer).get()) * 1_001
    }

    /// The highest layer at which `claim` is possible; none where no layer is so fast.
    pub fn possible_at(&self, claim: BitRate) -> Option<Layer> {
        Layer::ALL.into_iter().find(|layer| self.allows(*layer, claim))
    }
}
