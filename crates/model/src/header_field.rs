//! The parts of a packet on a medium, each of which counts from a layer downwards.

use crate::named;
use serde::Serialize;
use std::ops::AddAssign;

named! {
    /// Where bytes are counted. Each layer counts all that the one before it does, and more.
    pub enum Layer as "layer" {
        /// What an application hands over.
        Payload = "payload", "payload";
        /// IP packets as the application's hosts see them, inside any tunnel.
        Ip = "ip", "IP";
        /// Frames of the medium as a host's interface sees them: with all headers of tunnels, without check sequence. On ATM the
        /// payload of AAL5.
        Layer2 = "layer2", "layer 2";
        /// Frames with their check sequence, as RFC 2544 counts them. On ATM the AAL5 PDU with padding and trailer.
        Layer2Fcs = "layer2-fcs", "layer 2 with FCS";
        /// All that a frame keeps the medium busy with: on Ethernet also preamble and gap, on ATM the cells.
        Wire = "wire", "wire";
    }
}

/// A header, a trailer, padding or the payload itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HeaderField {
    /// What it is.
    pub name: &'static str,
    /// How long it is.
    pub bytes: u32,
    /// The first layer that counts it.
    pub layer: Layer,
    /// What says so; empty for the payload.
    pub source: &'static str,
}

impl HeaderField {
    pub(crate) const fn new(name: &'static str, bytes: u32, layer: Layer, source: &'static str) -> Self {
        Self { name, bytes, layer, source }
    }
}

/// Bytes as each layer counts them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LayerBytes([u64; Layer::ALL.len()]);

impl LayerBytes {
    /// The bytes of these parts, `times` over.
    pub(crate) fn of(parts: &[HeaderField], times: u64) -> Self {
        Self(Layer::ALL.map(|layer| {
            let counted = parts.iter().filter(|part| part.layer <= layer);
            counted.map(|part| u64::from(part.bytes)).sum::<u64>() * times
        }))
    }

    /// The bytes that this layer counts.
    pub const fn at(self, layer: Layer) -> u64 {
        self.0[layer as usize]
    }
}

impl AddAssign for LayerBytes {
    fn add_assign(&mut self, other: Self) {
        self.0.iter_mut().zip(other.0).for_each(|(sum, bytes)| *sum += bytes);
    }
}
