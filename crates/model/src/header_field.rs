//! The parts of a packet on a medium, each of which counts from a layer downwards.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::AddAssign;

/// Where bytes are counted. Each layer counts all that the one before it does, and more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Layer {
    /// What an application hands over.
    Payload,
    /// IP packets as the application's hosts see them, inside any tunnel.
    Ip,
    /// Frames of the medium as a host's interface sees them: with all headers of tunnels, without check sequence. On ATM the
    /// payload of AAL5.
    Layer2,
    /// Frames with their check sequence, as RFC 2544 counts them. On ATM the AAL5 PDU with padding and trailer.
    Layer2Fcs,
    /// All that a frame keeps the medium busy with: on Ethernet also preamble and gap, on ATM the cells.
    Wire,
}

impl Layer {
    /// All layers, from the payload down.
    pub const ALL: [Self; 5] = [Self::Payload, Self::Ip, Self::Layer2, Self::Layer2Fcs, Self::Wire];
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Payload => "payload",
            Self::Ip => "IP",
            Self::Layer2 => "layer 2",
            Self::Layer2Fcs => "layer 2 with FCS",
            Self::Wire => "wire",
        })
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
