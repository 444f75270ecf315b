//! The size of an Ethernet frame, which half of the field's tools count differently (60, 64 or 84 for the same frame).

use crate::{BitRate, FrameRate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The FCS at the end of a frame; kernel interfaces do not carry it.
const FCS: u32 = 4;
/// Preamble and start delimiter (8 bytes) and the gap between frames (12): IEEE 802.3 clauses 3.1.1 and 4.4.2.
const PREAMBLE_AND_GAP: u32 = 20;
/// The smallest frame, FCS counted: IEEE 802.3 clause 4.4.2.
const MINIMUM: u32 = 64;

/// The bytes of an Ethernet frame from destination address to FCS, as RFC 2544 section 9.1 counts them: at least 64.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "u32", into = "u32")]
pub struct FrameSize(u32);

/// A frame below Ethernet's minimum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a frame of {0} bytes is below Ethernet's minimum of 64 (FCS counted)")]
pub struct FrameTooSmall(pub u32);

impl FrameSize {
    /// A frame of `bytes` with its FCS.
    pub const fn with_fcs(bytes: u32) -> Result<Self, FrameTooSmall> {
        if bytes < MINIMUM { Err(FrameTooSmall(bytes)) } else { Ok(Self(bytes)) }
    }

    /// The frame that carries `bytes` of packet behind a header of `header` bytes, padded to the minimum.
    pub fn carrying(bytes: u32, header: u32) -> Self {
        Self((bytes + header + FCS).max(MINIMUM))
    }

    /// Bytes with the FCS.
    pub const fn get(self) -> u32 {
        self.0
    }

    /// Bytes as a kernel interface, a packet socket or a capture sees them.
    pub const fn without_fcs(self) -> u32 {
        self.0 - FCS
    }

    /// Bytes the frame occupies on the line: with preamble and gap.
    pub const fn on_the_wire(self) -> u32 {
        self.0 + PREAMBLE_AND_GAP
    }

    /// The highest frame rate of a line (RFC 2544 appendix B): line rate / (8 x bytes on the wire), rounded to nearest.
    pub const fn line_rate(self, line: BitRate) -> FrameRate {
        let bits = self.on_the_wire() as u64 * 8;
        FrameRate::per_second((line.get() + bits / 2) / bits)
    }
}

impl TryFrom<u32> for FrameSize {
    type Error = FrameTooSmall;

    fn try_from(bytes: u32) -> Result<Self, FrameTooSmall> {
        Self::with_fcs(bytes)
    }
}

impl From<FrameSize> for u32 {
    fn from(size: FrameSize) -> Self {
        size.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table of RFC 2544 appendix B, at 1 Gbit/s.
    #[test]
    fn line_rates_are_those_of_the_rfc() {
        let gigabit = BitRate::per_second(1_000_000_000);
        for (size, rate) in [
            (64, 1_488_095),
            (128, 844_595),
            (256, 452_899),
            (512, 234_962),
            (1024, 119_732),
            (1280, 96_154),
            (1518, 81_274),
        ] {
            assert_eq!(FrameSize::with_fcs(size).map(|s| s.line_rate(gigabit).get()), Ok(rate));
        }
    }

    #[test]
    fn sixty_and_sixty_four_are_not_confused() {
        let smallest = FrameSize::carrying(1, 14);
        assert_eq!((smallest.get(), smallest.without_fcs(), smallest.on_the_wire()), (64, 60, 84));
        assert_eq!(FrameSize::carrying(1500, 14).get(), 1518);
        assert_eq!(FrameSize::with_fcs(60), Err(FrameTooSmall(60)));
    }
}
