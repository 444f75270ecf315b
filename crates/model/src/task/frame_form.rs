//! What makes the frames of a stream other than plain: bytes of their own, fields that vary, sizes that mix.

use crate::Mac;
use crate::checked::{OutOfRange, check_when_read, within};
use linerate_units::FrameSize;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Fields that may vary at once in a stream.
pub const MOST_VARIED: usize = 4;
/// Frames after which a mix must begin anew: the sum of its weights in lowest terms.
pub const MIX_PERIOD: u32 = 64;
/// The largest raw frame, FCS not counted.
pub(crate) const RAW_BYTES: usize = 9_018;

/// How the frames of a stream differ from plain ones, and from each other.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", default)]
pub struct FrameForm {
    /// The frame, byte by byte; the stream's headers then only say whose addresses switches are to learn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw: Option<RawFrame>,
    /// Fields that change from frame to frame.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub vary: Vec<Vary>,
    /// Sizes in turn; the stream's size is then the largest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mix: Option<FrameMix>,
    /// Number of frames that leave without a pause before the next gap (RFC 2889 appendix A). 0 and 1 space all frames
    /// evenly.
    #[serde(skip_serializing_if = "is_zero")]
    pub burst: u32,
    /// Whether the frames carry a wrong FCS. Few drivers can send them.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub bad_fcs: bool,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl FrameForm {
    /// Longest burst of RFC 2889 section 4.
    const MAX_BURST: u32 = 930;

    fn check(&self) -> Result<(), OutOfRange> {
        within("fields that vary", self.vary.len(), 0..=MOST_VARIED)?;
        within("frames of a burst", self.burst, 0..=Self::MAX_BURST)
    }

    /// Every frame is as the headers say.
    pub fn is_plain(&self) -> bool {
        *self == Self::default()
    }

    /// Whether the frames carry a signature, so that each is counted by itself.
    pub fn signed(&self) -> bool {
        self.raw.as_ref().is_none_or(|raw| raw.signed)
    }

    /// Bytes of the first `count` frames of a stream of frames of `size`, FCS counted.
    pub fn bytes(&self, size: FrameSize, count: u64) -> u64 {
        match (&self.raw, &self.mix) {
            (Some(raw), _) => u64::from(raw.line_bytes()) * count,
            (None, None) => u64::from(size.get()) * count,
            (None, Some(mix)) => mix.bytes(count),
        }
    }
}

/// A frame given byte by byte.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RawFrame {
    /// From the destination address on, FCS left out.
    pub bytes: FrameBytes,
    /// Its payload makes room for a signature; without one only the ports' counters count it.
    pub signed: bool,
}

impl RawFrame {
    /// IEEE 802 local experimental EtherType 1.
    pub const EXPERIMENTAL: u16 = 0x88b5;
    /// Smallest frame of Ethernet, FCS not counted.
    const MINIMUM: usize = 60;

    /// Returns whether the frame is to leave shorter than Ethernet permits, for tests that a device drops it. Such a
    /// frame is of the experimental EtherType, with a signature right after it.
    pub fn is_undersize(&self) -> bool {
        self.signed && self.bytes.0.len() < Self::MINIMUM && self.bytes.ether_type() == Some(Self::EXPERIMENTAL)
    }

    /// Returns the bytes of the frame on the line, with its FCS. Other short frames than undersize ones are filled up.
    pub fn line_bytes(&self) -> u32 {
        if self.is_undersize() { self.bytes.0.len() as u32 + 4 } else { self.bytes.size().get() }
    }

    /// Where the frame says it comes from.
    pub fn source_mac(&self) -> Mac {
        let [.., a, b, c, d, e, f] = *self.bytes.0.first_chunk::<12>().expect("a frame has both addresses");
        Mac([a, b, c, d, e, f])
    }
}

/// Bytes of a frame, written in hexadecimal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrameBytes(Vec<u8>);

/// Bytes that are no frame.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadFrame {
    /// Not hexadecimal.
    #[error(
        "`{0}` is not a frame in hexadecimal: pairs of digits from the destination address on, as in 0200000000020200..."
    )]
    NotHex(String),
    /// No frame is so short or so long.
    #[error("a raw frame of {0} bytes: give 14 to {RAW_BYTES}, from the destination address on, without the FCS")]
    Length(usize),
}

impl FrameBytes {
    /// The bytes of a frame, from the destination address on, FCS left out.
    pub fn new(bytes: Vec<u8>) -> Result<Self, BadFrame> {
        if (14..=RAW_BYTES).contains(&bytes.len()) { Ok(Self(bytes)) } else { Err(BadFrame::Length(bytes.len())) }
    }

    /// The bytes.
    pub fn get(&self) -> &[u8] {
        &self.0
    }

    /// Returns the EtherType after the VLAN tags.
    fn ether_type(&self) -> Option<u16> {
        let mut at = 12;
        loop {
            match u16::from_be_bytes([*self.0.get(at)?, *self.0.get(at + 1)?]) {
                0x8100 | 0x88a8 => at += 4,
                kind => return Some(kind),
            }
        }
    }

    /// The frame's size on a line: with FCS, and filled up to Ethernet's minimum.
    pub fn size(&self) -> FrameSize {
        FrameSize::carrying(self.0.len() as u32 - 14, 14)
    }
}

impl fmt::Display for FrameBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl FromStr for FrameBytes {
    type Err = BadFrame;

    /// Reads pairs of digits; spaces and colons between them are left out.
    fn from_str(text: &str) -> Result<Self, BadFrame> {
        let digits: Option<Vec<u8>> = text
            .chars()
            .filter(|c| !c.is_whitespace() && *c != ':')
            .map(|c| c.to_digit(16).map(|digit| digit as u8))
            .collect();
        let shown: String = text.chars().take(40).collect();
        let digits = digits.filter(|digits| digits.len() % 2 == 0).ok_or(BadFrame::NotHex(shown))?;
        Self::new(digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect())
    }
}

/// A field of a frame's headers that may vary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum VaryField {
    /// Ethernet source address, its last four bytes.
    SourceMac,
    /// Ethernet destination address, its last four bytes.
    DestinationMac,
    /// Identifier of the outermost VLAN.
    Vlan,
    /// IP source address, the last four bytes of an IPv6 one.
    SourceIp,
    /// IP destination address, likewise.
    DestinationIp,
    /// UDP or TCP source port.
    SourcePort,
    /// UDP or TCP destination port.
    DestinationPort,
}

impl VaryField {
    const NAMES: [(&'static str, Self); 7] = [
        ("src-mac", Self::SourceMac),
        ("dst-mac", Self::DestinationMac),
        ("vlan", Self::Vlan),
        ("src-ip", Self::SourceIp),
        ("dst-ip", Self::DestinationIp),
        ("src-port", Self::SourcePort),
        ("dst-port", Self::DestinationPort),
    ];
}

impl fmt::Display for VaryField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Self::NAMES.iter().find(|(_, field)| field == self).map_or("", |(name, _)| name);
        f.pad(name)
    }
}

/// In which order a field takes its values.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum VaryOrder {
    /// One after the other, and from the first again.
    #[default]
    Counting,
    /// Each frame's by chance, the same in every trial.
    Random,
}

/// A field that changes from frame to frame: `count` values from the one in the headers up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self")]
pub struct Vary {
    /// Which field.
    pub field: VaryField,
    /// How many values it takes.
    pub count: u32,
    /// In which order.
    pub order: VaryOrder,
}

impl Vary {
    fn check(&self) -> Result<(), OutOfRange> {
        within("values of a field that varies", self.count, 1..=u32::MAX)
    }
}

check_when_read!(FrameForm, Vary, FrameMix);

/// Text that says nothing to vary.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` does not say what varies: write FIELD:COUNT or FIELD:COUNT:random, as in src-ip:1000; fields are src-mac, dst-mac, \
     vlan, src-ip, dst-ip, src-port, dst-port"
)]
pub struct BadVary(pub String);

impl FromStr for Vary {
    type Err = BadVary;

    fn from_str(text: &str) -> Result<Self, BadVary> {
        let bad = || BadVary(text.to_owned());
        let mut parts = text.split(':');
        let name = parts.next().unwrap_or_default();
        let (_, field) = *VaryField::NAMES.iter().find(|(known, _)| *known == name).ok_or_else(bad)?;
        let count = parts.next().and_then(|count| count.parse().ok()).filter(|count| *count > 0).ok_or_else(bad)?;
        let order = match parts.next() {
            None => VaryOrder::Counting,
            Some("random") => VaryOrder::Random,
            Some(_) => return Err(bad()),
        };
        if parts.next().is_some() { Err(bad()) } else { Ok(Self { field, count, order }) }
    }
}

/// Sizes of frames in turn, each as often as its weight says, evenly spread.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", transparent)]
pub struct FrameMix(Vec<MixPart>);

/// One size of a mix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MixPart {
    /// The frames, FCS counted.
    pub size: FrameSize,
    /// How many of them come in a round.
    pub weight: u32,
}

/// Text that is no mix.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a mix of frame sizes: write imix, or SIZE:WEIGHT of 2 to 16 sizes with FCS, as in 64:7,594:4,1518:1; in \
     lowest terms the weights add up to {MIX_PERIOD} at the most"
)]
pub struct BadMix(pub String);

impl FrameMix {
    /// The field's simple IMIX: IP packets of 40, 576 and 1500 bytes, 7 to 4 to 1. In Ethernet, FCS counted, they are frames
    /// of 64 (filled up), 594 and 1518 bytes. (Some testers send 570 for the middle one: its packet has 552 bytes.) RFC 6985
    /// names sizes of its own and leaves others to be said: these are said in every result.
    pub fn imix() -> Self {
        let part = |size, weight| FrameSize::with_fcs(size).ok().map(|size| MixPart { size, weight });
        Self([part(64, 7), part(594, 4), part(1518, 1)].into_iter().flatten().collect())
    }

    /// A mix of these sizes; none if the weights do not fit.
    pub fn new(parts: Vec<MixPart>) -> Option<Self> {
        let mix = Self(parts);
        mix.check().is_ok().then_some(mix)
    }

    /// A round has a step for each frame, so that weights without a bound would make it endless.
    fn check(&self) -> Result<(), BadMix> {
        let sum = self.lowest().try_fold(0u32, |sum, weight| sum.checked_add(weight));
        let fits = (2..=16).contains(&self.0.len())
            && self.0.iter().all(|part| part.weight > 0)
            && sum.is_some_and(|sum| sum <= MIX_PERIOD);
        if fits { Ok(()) } else { Err(BadMix(self.to_string())) }
    }

    /// Its sizes and weights.
    pub fn parts(&self) -> &[MixPart] {
        &self.0
    }

    /// The largest size.
    pub fn largest(&self) -> Option<FrameSize> {
        self.0.iter().map(|part| part.size).max()
    }

    /// One round: the index of each frame's size. Each time the size that is furthest behind its share comes next.
    pub fn round(&self) -> Vec<u8> {
        let weights: Vec<i64> = self.lowest().map(i64::from).collect();
        let sum: i64 = weights.iter().sum();
        let mut owed = vec![0i64; weights.len()];
        let mut next = || {
            owed.iter_mut().zip(&weights).for_each(|(owed, weight)| *owed += weight);
            // Of equals the first.
            let furthest = (0..owed.len()).max_by_key(|index| (owed[*index], std::cmp::Reverse(*index)))?;
            owed[furthest] -= sum;
            Some(furthest as u8)
        };
        (0..sum).filter_map(|_| next()).collect()
    }

    /// Bytes of the first `count` frames, FCS counted.
    pub fn bytes(&self, count: u64) -> u64 {
        self.total(count, |size| size.get())
    }

    /// Bytes that a round occupies on the line, and its frames.
    pub fn round_on_the_wire(&self) -> (u64, u64) {
        let frames = self.lowest().map(u64::from).sum();
        (self.total(frames, |size| size.on_the_wire()), frames)
    }

    fn total(&self, count: u64, bytes: impl Fn(FrameSize) -> u32) -> u64 {
        let round: Vec<u64> =
            self.round().iter().map(|index| u64::from(bytes(self.0[usize::from(*index)].size))).collect();
        let frames = round.len().max(1) as u64;
        let rest: u64 = round.iter().take((count % frames) as usize).sum();
        count / frames * round.iter().sum::<u64>() + rest
    }

    /// The weights in lowest terms.
    fn lowest(&self) -> impl Iterator<Item = u32> {
        fn common(a: u32, b: u32) -> u32 {
            if b == 0 { a } else { common(b, a % b) }
        }
        let divisor = self.0.iter().fold(0, |divisor, part| common(divisor, part.weight)).max(1);
        self.0.iter().map(move |part| part.weight / divisor)
    }
}

impl fmt::Display for FrameMix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, part) in self.0.iter().enumerate() {
            write!(f, "{}{}:{}", if index == 0 { "" } else { "," }, part.size.get(), part.weight)?;
        }
        Ok(())
    }
}

impl FromStr for FrameMix {
    type Err = BadMix;

    fn from_str(text: &str) -> Result<Self, BadMix> {
        if text == "imix" {
            return Ok(Self::imix());
        }
        let part = |part: &str| {
            let (size, weight) = part.split_once(':')?;
            Some(MixPart { size: FrameSize::with_fcs(size.parse().ok()?).ok()?, weight: weight.parse().ok()? })
        };
        let parts: Option<Vec<MixPart>> = text.split(',').map(part).collect();
        parts.and_then(Self::new).ok_or_else(|| BadMix(text.to_owned()))
    }
}

impl Serialize for FrameBytes {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for FrameBytes {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for FrameBytes {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "FrameBytes".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"type": "string", "pattern": "^([0-9a-f]{2}){14,}$"})
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn imix_is_evenly_spread_and_counted() {
        let mix = FrameMix::imix();
        assert_eq!(mix.to_string(), "64:7,594:4,1518:1");
        assert_eq!("64:14,594:8,1518:2".parse::<FrameMix>().unwrap().round(), mix.round());
        let round = mix.round();
        let times = |index| round.iter().filter(|other| **other == index).count();
        assert_eq!((round.len(), times(0), times(1), times(2)), (12, 7, 4, 1));
        assert!(round.windows(2).all(|pair| pair != [1, 1]), "spread: {round:?}");
        assert_eq!(mix.bytes(24), 2 * (7 * 64 + 4 * 594 + 1518));
        assert_eq!(mix.round_on_the_wire(), (7 * 84 + 4 * 614 + 1538, 12));
    }

    #[test]
    fn what_is_no_mix_is_refused() {
        for text in ["", "64", "64:1", "63:1,64:1", "64:0,128:1", "64:64,128:1", "64:1,128", "64:4294967295,128:1"] {
            assert!(text.parse::<FrameMix>().is_err(), "{text}");
        }
    }

    #[test]
    fn fields_to_vary_are_read() {
        let vary = |text: &str| text.parse::<Vary>();
        let random = Vary { field: VaryField::DestinationPort, count: 7, order: VaryOrder::Random };
        assert_eq!(vary("dst-port:7:random"), Ok(random));
        assert_eq!(vary("src-ip:1000").map(|vary| (vary.count, vary.order)), Ok((1000, VaryOrder::Counting)));
        for text in ["", "ip:5", "src-ip", "src-ip:0", "src-ip:-1", "src-ip:5:often", "src-ip:5:random:"] {
            assert!(vary(text).unwrap_err().to_string().contains("src-ip:1000"), "{text}");
        }
    }

    #[test]
    fn frames_are_hexadecimal() {
        let frame: FrameBytes = "02:00:00:00:00:02 020000000001 88b5 FF".parse().unwrap();
        assert_eq!((frame.get().len(), frame.to_string().as_str()), (15, "02000000000202000000000188b5ff"));
        assert_eq!(frame.size().get(), 64);
        for text in ["", "02", "0200000000020200000000018", "zz"] {
            assert!(text.parse::<FrameBytes>().is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in ".{0,40}") {
            let _ = text.parse::<FrameBytes>();
            let _ = text.parse::<Vary>();
            let _ = text.parse::<FrameMix>();
        }

        #[test]
        fn a_round_has_each_size_by_its_weight(weights in prop::collection::vec(1u32..8, 2..8)) {
            let size = |index: usize| FrameSize::with_fcs(64 + index as u32).unwrap();
            let parts = weights.iter().enumerate().map(|(index, &weight)| MixPart { size: size(index), weight });
            let mix = FrameMix::new(parts.collect()).unwrap();
            let round = mix.round();
            for (index, weight) in weights.iter().enumerate() {
                let times = round.iter().filter(|other| usize::from(**other) == index).count() as u32;
                prop_assert_eq!(u64::from(times) * weights.iter().map(|w| u64::from(*w)).sum::<u64>(),
                    u64::from(*weight) * round.len() as u64);
            }
            prop_assert_eq!(mix.to_string().parse::<FrameMix>(), Ok(mix));
        }
    }
}
