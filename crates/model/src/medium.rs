//! The media that carry packets, each with the bytes it puts around one.

use crate::header_field::{HeaderField, Layer};
use linerate_units::{BitRate, FrameSize, ParseError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Destination, source and type: IEEE 802.3 clause 3.1.1.
pub(crate) const ETHERNET_HEADER: u32 = 14;
/// Preamble and start of frame delimiter: IEEE 802.3 clauses 3.2.1 and 3.2.2.
const ETHERNET_PREAMBLE: u32 = 8;
/// The smallest AAL5 payload of LAN emulation for Ethernet: the LECID and a minimum frame without FCS.
const LANE_MINIMUM: u32 = 62;
/// What a cell carries, and its header: ITU-T I.361 section 2.
const CELL_PAYLOAD: u32 = 48;
const CELL_HEADER: u32 = 5;

/// A medium: what a frame of it looks like, and how fast bits pass. Serialised as its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub enum Medium {
    /// Ethernet of this rate, one direction of a full-duplex link. The physical layer does not matter: all of one rate
    /// carry the same frames with the same gap.
    Ethernet(BitRate),
    /// FDDI, a ring of 100 Mbit/s. Counted without the time that the token takes to come round.
    Fddi,
    /// ATM in SONET or SDH frames.
    Atm(Sonet, AtmService),
}

/// A concatenated SONET signal. Of its 270 columns (OC-3c; OC-12c has four times as many) 260 carry cells; the rest is section,
/// line and path overhead (ANSI T1.105, ITU-T G.707; ITU-T I.432.2 for the cells in it).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Sonet {
    /// 155.52 Mbit/s, of which 149.76 carry cells; also called STM-1.
    Oc3c,
    /// 622.08 Mbit/s, of which 599.04 carry cells; also called STM-4c.
    Oc12c,
}

/// How packets travel over ATM.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AtmService {
    /// LAN emulation version 1 of the ATM Forum (af-lane-0021): Ethernet frames without FCS behind the client's number.
    LanEmulation,
    /// Classical IP with LLC/SNAP: RFC 2225 over RFC 2684, which replaced RFC 1577 and RFC 1483.
    ClassicalIp,
}

/// What stands above a medium or an encapsulation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Offers {
    /// Room for an IP packet.
    Ip,
    /// Room for a packet of any protocol.
    Packets,
    /// An Ethernet frame, which may be tagged.
    Frames,
}

impl Offers {
    pub(crate) const fn in_words(self) -> &'static str {
        match self {
            Self::Ip => "IP packets only",
            Self::Packets => "packets, not Ethernet frames",
            Self::Frames => "Ethernet frames",
        }
    }
}

/// Rates of Ethernet that have a name, and the name; the first that fits is shown.
const ETHERNETS: [(u64, &str); 13] = [
    (10_000_000, "10BASE-T"),
    (100_000_000, "100BASE-TX"),
    (1_000_000_000, "1000BASE-T"),
    (2_500_000_000, "2.5GBASE-T"),
    (5_000_000_000, "5GBASE-T"),
    (10_000_000_000, "10GBASE-T"),
    (25_000_000_000, "25GBASE-R"),
    (40_000_000_000, "40GBASE-R"),
    (50_000_000_000, "50GBASE-R"),
    (100_000_000_000, "100GBASE-R"),
    (200_000_000_000, "200GBASE-R"),
    (400_000_000_000, "400GBASE-R"),
    (800_000_000_000, "800GBASE-R"),
];

/// The other media, and their names.
const OTHERS: [(Medium, &str); 5] = [
    (Medium::Fddi, "FDDI"),
    (Medium::Atm(Sonet::Oc3c, AtmService::LanEmulation), "ATM-OC3-LANE"),
    (Medium::Atm(Sonet::Oc3c, AtmService::ClassicalIp), "ATM-OC3-CIP"),
    (Medium::Atm(Sonet::Oc12c, AtmService::LanEmulation), "ATM-OC12-LANE"),
    (Medium::Atm(Sonet::Oc12c, AtmService::ClassicalIp), "ATM-OC12-CIP"),
];

impl Medium {
    /// Every medium that has a name: Ethernet from 10 Mbit/s to 800 Gbit/s, then the others.
    pub fn named() -> impl Iterator<Item = Self> {
        let ethernets = ETHERNETS.iter().map(|(rate, _)| Self::Ethernet(BitRate::per_second(*rate)));
        ethernets.chain(OTHERS.iter().map(|(medium, _)| *medium))
    }

    /// The rate the medium is called by: bits on the line each second.
    pub const fn line(self) -> BitRate {
        match self {
            Self::Ethernet(line) => line,
            Self::Fddi => BitRate::per_second(100_000_000),
            Self::Atm(Sonet::Oc3c, _) => BitRate::per_second(155_520_000),
            Self::Atm(Sonet::Oc12c, _) => BitRate::per_second(622_080_000),
        }
    }

    /// The rate at which bytes of the wire layer pass: the line's, less what SONET keeps for itself.
    pub fn capacity(self) -> BitRate {
        match self {
            Self::Ethernet(_) | Self::Fddi => self.line(),
            Self::Atm(..) => self.line().scaled(260, 270),
        }
    }

    /// The MTU that holds unless another is set: RFC 894, RFC 1390, af-lane-0021, RFC 2225 section 7.
    pub const fn mtu(self) -> u32 {
        match self {
            Self::Ethernet(_) | Self::Atm(_, AtmService::LanEmulation) => 1_500,
            Self::Fddi => 4_352,
            Self::Atm(_, AtmService::ClassicalIp) => 9_180,
        }
    }

    /// The largest MTU that can be set. Ethernet's own standard ends at 1,500; jumbo frames have no standard, so only the
    /// length field of IP (RFC 791 section 3.1) ends them. FDDI's is fixed (RFC 1390); LAN emulation's largest AAL5 payload is
    /// 18,190 bytes, AAL5's own 65,535.
    pub const fn largest_mtu(self) -> u32 {
        match self {
            Self::Ethernet(_) => 65_535,
            Self::Fddi => 4_352,
            Self::Atm(_, AtmService::LanEmulation) => 18_190 - 16,
            Self::Atm(_, AtmService::ClassicalIp) => 65_535 - 8,
        }
    }

    /// Whether it carries cells of 53 bytes.
    pub const fn has_cells(self) -> bool {
        matches!(self, Self::Atm(..))
    }

    /// Whether both directions may share it: Ethernet up to 1 Gbit/s, whose hosts then wait for a silent medium (CSMA/CD, IEEE
    /// 802.3 clause 4). Faster Ethernet has full duplex only.
    pub const fn may_be_half_duplex(self) -> bool {
        matches!(self, Self::Ethernet(line) if line.get() <= 1_000_000_000)
    }

    pub(crate) const fn offers(self) -> Offers {
        match self {
            Self::Ethernet(_) | Self::Atm(_, AtmService::LanEmulation) => Offers::Frames,
            Self::Fddi | Self::Atm(_, AtmService::ClassicalIp) => Offers::Packets,
        }
    }

    /// Whether tags lengthen the frame and leave the MTU as it is: an Ethernet frame may be up to 482 bytes longer for them
    /// (envelope frames, IEEE 802.3 clause 3.2.7), a frame of LAN emulation may not.
    pub(crate) const fn lengthens_for_tags(self) -> bool {
        matches!(self, Self::Ethernet(_))
    }

    /// Puts the medium's bytes around `body`: what follows its own header, tags counted as body.
    pub(crate) fn frame(self, body: Vec<HeaderField>) -> Vec<HeaderField> {
        let bytes: u32 = body.iter().map(|part| part.bytes).sum();
        match self {
            Self::Ethernet(_) => {
                let frame = FrameSize::carrying(bytes, ETHERNET_HEADER);
                let wire = |name, bytes, source| HeaderField::new(name, bytes, Layer::Wire, source);
                let mut parts = vec![
                    wire("preamble and start delimiter", ETHERNET_PREAMBLE, "IEEE 802.3 clause 3.2.1"),
                    ethernet_header(),
                ];
                parts.extend(body);
                parts.extend([
                    padding(
                        frame.without_fcs() - ETHERNET_HEADER - bytes,
                        "IEEE 802.3 clause 4.4.2: a frame is at least 64",
                    ),
                    HeaderField::new(
                        "FCS",
                        frame.get() - frame.without_fcs(),
                        Layer::Layer2Fcs,
                        "IEEE 802.3 clause 3.2.9",
                    ),
                    wire("gap", frame.on_the_wire() - frame.get() - ETHERNET_PREAMBLE, "IEEE 802.3 clause 4.4.2"),
                ]);
                parts
            }
            Self::Fddi => {
                let wire = |name, bytes| HeaderField::new(name, bytes, Layer::Wire, FDDI_MAC);
                let mut parts = vec![
                    // 16 symbols of four bits.
                    wire("preamble", 8),
                    wire("starting delimiter", 1),
                    HeaderField::new("frame control and addresses", 13, Layer::Layer2, FDDI_MAC),
                    HeaderField::new("LLC and SNAP", 8, Layer::Layer2, "RFC 1390, RFC 1042"),
                ];
                parts.extend(body);
                // One symbol of ending delimiter and the three indicators of the status.
                parts.extend([
                    HeaderField::new("FCS", 4, Layer::Layer2Fcs, FDDI_MAC),
                    wire("ending delimiter and status", 2),
                ]);
                parts
            }
            Self::Atm(_, AtmService::LanEmulation) => {
                let lane = "af-lane-0021: LAN emulation data frame";
                let mut sdu = vec![HeaderField::new("LECID", 2, Layer::Layer2, lane), ethernet_header()];
                sdu.extend(body);
                sdu.push(padding(LANE_MINIMUM.saturating_sub(2 + ETHERNET_HEADER + bytes), lane));
                cells(sdu)
            }
            Self::Atm(_, AtmService::ClassicalIp) => {
                let mut sdu = vec![HeaderField::new(
                    "LLC and SNAP",
                    8,
                    Layer::Layer2,
                    "RFC 2684 section 5.1, RFC 2225 section 6",
                )];
                sdu.extend(body);
                cells(sdu)
            }
        }
    }
}

const FDDI_MAC: &str = "ISO 9314-2 (FDDI MAC)";

pub(crate) fn ethernet_header() -> HeaderField {
    HeaderField::new("Ethernet header", ETHERNET_HEADER, Layer::Layer2, "IEEE 802.3 clause 3.1.1")
}

fn padding(bytes: u32, source: &'static str) -> HeaderField {
    HeaderField::new("padding", bytes, Layer::Layer2, source)
}

/// An AAL5 PDU (ITU-T I.363.5) in cells: padded so that with its trailer of 8 bytes it fills them.
fn cells(mut sdu: Vec<HeaderField>) -> Vec<HeaderField> {
    const TRAILER: u32 = 8;
    let bytes: u32 = sdu.iter().map(|part| part.bytes).sum();
    let cells = (bytes + TRAILER).div_ceil(CELL_PAYLOAD);
    sdu.extend([
        HeaderField::new(
            "AAL5 padding",
            cells * CELL_PAYLOAD - bytes - TRAILER,
            Layer::Layer2Fcs,
            "ITU-T I.363.5: whole cells",
        ),
        HeaderField::new("AAL5 trailer", TRAILER, Layer::Layer2Fcs, "ITU-T I.363.5: its last 4 bytes are the CRC"),
        HeaderField::new("cell headers", cells * CELL_HEADER, Layer::Wire, "ITU-T I.361: 5 for each 48"),
    ]);
    sdu
}

impl fmt::Display for Medium {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::Ethernet(line) => ETHERNETS.iter().find(|(rate, _)| *rate == line.get()).map(|(_, name)| *name),
            other => OTHERS.iter().find(|(medium, _)| medium == other).map(|(_, name)| *name),
        };
        match name {
            Some(name) => f.pad(name),
            None => f.pad(&format!("{}bit/s", self.line().get())),
        }
    }
}

/// A text that names no medium.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no medium; name an Ethernet (10base-t to 800gbase-r, or its rate, as in 1Gbit/s), fddi, atm-oc3-lane, \
     atm-oc3-cip, atm-oc12-lane or atm-oc12-cip"
)]
pub struct UnknownMedium(pub String);

impl FromStr for Medium {
    type Err = UnknownMedium;

    /// Reads a name in any case; the letters after `BASE` choose no other rate, so `1000base-sx` is read too. A plain rate is
    /// an Ethernet of that rate.
    fn from_str(text: &str) -> Result<Self, UnknownMedium> {
        let unknown = || UnknownMedium(text.to_owned());
        let name = text.trim().to_ascii_lowercase();
        if let Some((medium, _)) = OTHERS.iter().find(|(_, known)| known.eq_ignore_ascii_case(&name)) {
            return Ok(*medium);
        }
        if let Some((rate, physical)) = name.split_once("base") {
            let letters = physical.strip_prefix('-').unwrap_or(physical);
            // 10GBASE-W is the one family that is slower than its name (IEEE 802.3 clause 50).
            let sound = letters.bytes().all(|byte| byte.is_ascii_alphanumeric()) && !letters.ends_with('w');
            let mut known = ETHERNETS.iter().filter(|(_, known)| {
                known.split_once("BASE").is_some_and(|(known, _)| known.eq_ignore_ascii_case(rate))
            });
            let (rate, _) = known.next().filter(|_| sound).ok_or_else(unknown)?;
            return Ok(Self::Ethernet(BitRate::per_second(*rate)));
        }
        let line: BitRate = text.parse().map_err(|_: ParseError| unknown())?;
        if line.get() == 0 { Err(unknown()) } else { Ok(Self::Ethernet(line)) }
    }
}

impl TryFrom<String> for Medium {
    type Error = UnknownMedium;

    fn try_from(text: String) -> Result<Self, UnknownMedium> {
        text.parse()
    }
}

impl From<Medium> for String {
    fn from(medium: Medium) -> Self {
        medium.to_string().to_ascii_lowercase()
    }
}
