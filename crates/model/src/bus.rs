//! The bus that connects an interface's card with memory, and what it can carry.

use linerate_units::BitRate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A bus: parallel PCI, or lanes of PCI Express. Serialised as its name, as in `pci-32-33` or `pcie-3-x4`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub enum Bus {
    /// PCI. Both directions and all cards of the bus take turns.
    Pci {
        /// Data lines.
        bits: u16,
        /// Clock, MHz, as it is called: 33 is 33.33.
        mhz: u16,
    },
    /// PCI Express. Each direction has lanes of its own.
    Pcie {
        /// Generation.
        generation: u8,
        /// Lanes.
        lanes: u8,
    },
}

/// The slot of a card.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Slot {
    /// The bus as it runs.
    pub bus: Bus,
    /// What the card can use in a better slot.
    pub card: Option<Bus>,
    /// The node of a machine with several memories (NUMA) that it is connected to.
    pub numa_node: Option<u32>,
}

/// A text that names no bus.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no bus; write pci-32-33, pci-32-66, pci-64-33 or pci-64-66, or pcie-1-x1 to pcie-5-x32, as in pcie-3-x4"
)]
pub struct UnknownBus(String);

/// Transfers per second of a lane in units of 100 million, generation by generation.
const TRANSFERS: [u64; 5] = [25, 50, 80, 160, 320];
const LANES: [u8; 7] = [1, 2, 4, 8, 12, 16, 32];
/// From this generation on 128 bits travel as 130, before that 8 as 10 (PCI Express Base Specification 3.0, section 4.2).
const LONG_BLOCKS: u8 = 3;
/// Most data of one packet to memory (maximum payload size) as systems usually set it.
const PAYLOAD: u64 = 256;
/// What a packet to memory has around its data at the least: framing and sequence number 4, a header of three doublewords 12, LCRC 4.
/// Intel's application note AN 708 gives 5 to 7 doublewords.
const PACKET: u64 = 20;
/// Clocks of a PCI burst beside those of its data: the address phase, and the turn-around to the next (PCI Local Bus Specification
/// 3.0, section 3.3).
const BURST: u64 = 2;
/// The card checks a frame's FCS and keeps it.
const FCS: u64 = 4;

impl Bus {
    /// The rate of one direction once it is encoded; of PCI that of the bus.
    pub fn capacity(self) -> BitRate {
        match self {
            Self::Pci { bits, .. } => BitRate::per_second(self.clock() * u64::from(bits)),
            Self::Pcie { generation, lanes } => {
                let transfers = TRANSFERS[usize::from(generation - 1)] * 100_000_000 * u64::from(lanes);
                let encoding = if generation >= LONG_BLOCKS { (128, 130) } else { (8, 10) };
                BitRate::per_second(transfers).scaled(encoding.0, encoding.1)
            }
        }
    }

    /// The most frames per second of a size with FCS, in one direction. A card reaches less: descriptors, doorbells, flow control and
    /// acknowledgements come on top.
    pub fn frames_per_s(self, frame_bytes: u64) -> f64 {
        let data = frame_bytes.saturating_sub(FCS).max(1);
        match self {
            Self::Pci { bits, .. } => self.clock() as f64 / ((data * 8).div_ceil(u64::from(bits)) + BURST) as f64,
            Self::Pcie { .. } => {
                let bytes = data + data.div_ceil(PAYLOAD) * PACKET;
                self.capacity().get() as f64 / (bytes * 8) as f64
            }
        }
    }

    /// Whether both directions take turns on it.
    pub const fn is_shared(self) -> bool {
        matches!(self, Self::Pci { .. })
    }

    /// Clocks per second of PCI.
    fn clock(self) -> u64 {
        match self {
            Self::Pci { mhz, .. } => u64::from(mhz) / 33 * 100_000_000 / 3,
            Self::Pcie { .. } => 0,
        }
    }

    /// PCI Express at so many transfers per second of a lane, in units of 100 million; none if there is no such thing.
    pub fn pcie(transfers: u64, lanes: u8) -> Option<Self> {
        let at = TRANSFERS.iter().position(|known| *known == transfers)?;
        LANES.contains(&lanes).then_some(Self::Pcie { generation: at as u8 + 1, lanes })
    }
}

impl fmt::Display for Bus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pci { bits, mhz } => write!(f, "pci-{bits}-{mhz}"),
            Self::Pcie { generation, lanes } => write!(f, "pcie-{generation}-x{lanes}"),
        }
    }
}

impl FromStr for Bus {
    type Err = UnknownBus;

    fn from_str(text: &str) -> Result<Self, UnknownBus> {
        let known = || {
            let (kind, rest) = text.split_once('-')?;
            let (one, other) = rest.split_once('-')?;
            match kind {
                "pci" => {
                    let (bits, mhz) = (one.parse().ok()?, other.parse().ok()?);
                    (matches!(bits, 32 | 64) && matches!(mhz, 33 | 66)).then_some(Self::Pci { bits, mhz })
                }
                "pcie" => {
                    let generation: usize = one.parse().ok()?;
                    Self::pcie(*TRANSFERS.get(generation.checked_sub(1)?)?, other.strip_prefix('x')?.parse().ok()?)
                }
                _ => None,
            }
        };
        known().ok_or_else(|| UnknownBus(text.to_owned()))
    }
}

impl TryFrom<String> for Bus {
    type Error = UnknownBus;

    fn try_from(text: String) -> Result<Self, UnknownBus> {
        text.parse()
    }
}

impl From<Bus> for String {
    fn from(bus: Bus) -> Self {
        bus.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bus(name: &str) -> Bus {
        name.parse().expect(name)
    }

    #[test]
    fn names_are_read_and_written() {
        for name in ["pci-32-33", "pci-64-66", "pcie-1-x1", "pcie-3-x4", "pcie-5-x16"] {
            assert_eq!(bus(name).to_string(), name);
        }
        for wrong in ["", "pci", "pci-32", "pci-16-33", "pci-32-100", "pcie-0-x4", "pcie-6-x4", "pcie-3-x3", "pcie-3-4"]
        {
            let error = wrong.parse::<Bus>().expect_err(wrong).to_string();
            assert!(error.contains("pcie-3-x4"), "{error}");
        }
    }

    #[test]
    fn capacities_are_those_of_the_specifications() {
        for (name, bps) in [
            ("pci-32-33", 1_066_666_656),
            ("pci-64-66", 4_266_666_624),
            ("pcie-1-x1", 2_000_000_000),
            ("pcie-2-x4", 16_000_000_000),
            ("pcie-3-x4", 31_507_692_307),
            ("pcie-3-x8", 63_015_384_615),
        ] {
            assert_eq!(bus(name).capacity(), BitRate::per_second(bps), "{name}");
        }
    }

    /// By hand: 1,514 bytes are 379 words of 32 bits, and six packets of at most 256 bytes.
    #[test]
    fn frames_pay_for_what_is_around_them() {
        let near =
            |found: f64, wanted: f64| assert!((found / wanted - 1.0).abs() < 1e-6, "{found} instead of {wanted}");
        near(bus("pci-32-33").frames_per_s(1_518), 33_333_333.0 / 381.0);
        near(bus("pci-32-33").frames_per_s(64), 33_333_333.0 / 17.0);
        near(bus("pcie-1-x1").frames_per_s(1_518), 2e9 / 8.0 / (1_514.0 + 6.0 * 20.0));
        near(bus("pcie-1-x1").frames_per_s(64), 2e9 / 8.0 / 80.0);
    }
}
