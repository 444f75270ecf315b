//! Fields that change from frame to frame. The value depends on the frame's number alone, so that packet sockets and
//! bpf/transmit.bpf.c, which does the same as [`Change::apply`], send the same frames.

use crate::linux::layout::{Layout, mend};
use linerate_model::{Vary, VaryField, VaryOrder};
use linerate_sys::xdp::FieldChange;

/// Varying field of one stream's frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Change(FieldChange);

impl Change {
    /// Creates the change of `vary` in frames like `frame`. The error names its fault.
    pub(crate) fn new(vary: &Vary, layout: &Layout, frame: &[u8]) -> Result<Self, String> {
        let Vary { field, count, order } = *vary;
        let (at, bytes) = layout.field(field).ok_or_else(|| format!("its frames have no {field} that could vary"))?;
        let word = frame[at..at + bytes].iter().fold(0u32, |word, byte| word << 8 | u32::from(*byte));
        let (first, highest) = match (field, bytes) {
            // Identifiers 0 and 4095 are reserved (IEEE 802.1Q, table 9-2).
            (VaryField::Vlan, _) => (word & 0xfff, 0xffe),
            (_, 2) => (word, 0xffff),
            _ => (word, u32::MAX),
        };
        if u64::from(first) + u64::from(count) > u64::from(highest) + 1 {
            let room = u64::from(highest) + 1 - u64::from(first);
            return Err(format!("{field} has room for {room} values from its own up, not {count}"));
        }
        let is_ip = matches!(field, VaryField::SourceIp | VaryField::DestinationIp);
        let is_port = matches!(field, VaryField::SourcePort | VaryField::DestinationPort);
        let in_transport = is_port || (is_ip && layout.has_pseudo_header());
        Ok(Self(FieldChange {
            at: at as u32,
            wide: bytes == 4,
            base: word,
            count,
            random: order == VaryOrder::Random,
            ip_checksum: layout.ip_checksum().filter(|_| is_ip).unwrap_or(0) as u32,
            transport_checksum: layout.transport_checksum(frame).filter(|_| in_transport).unwrap_or(0) as u32,
            udp: layout.is_udp(),
        }))
    }

    /// Returns the change in the form of the sending program.
    pub(crate) fn for_xdp(&self) -> FieldChange {
        self.0
    }

    /// Sets the field in `frame` to its value in frame `number`.
    pub(crate) fn apply(&self, frame: &mut [u8], number: u32) {
        let change = &self.0;
        let value = change.base.wrapping_add(self.index(number)).to_be_bytes();
        let at = change.at as usize;
        let new = if change.wide { &value[..] } else { &value[2..] };
        let mut difference = 0;
        for (old, new) in frame[at..].chunks_exact(2).zip(new.chunks_exact(2)) {
            difference += u64::from(!u16::from_be_bytes([old[0], old[1]]));
            difference += u64::from(u16::from_be_bytes([new[0], new[1]]));
        }
        frame[at..at + new.len()].copy_from_slice(new);
        if change.ip_checksum > 0 {
            mend(frame, change.ip_checksum as usize, difference, false);
        }
        if change.transport_checksum > 0 {
            mend(frame, change.transport_checksum as usize, difference, change.udp);
        }
    }

    /// Returns the index of the field's value in frame `number`.
    fn index(&self, number: u32) -> u32 {
        let change = &self.0;
        if !change.random {
            return number % change.count;
        }
        // Two rounds of multiply and fold. Fields at other offsets draw other numbers.
        let mut draw = (u64::from(number) + 1 + (u64::from(change.at) << 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        draw ^= draw >> 32;
        draw = draw.wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (((draw >> 32) * u64::from(change.count)) >> 32) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linux::headers::frame;
    use crate::linux::signature::Signature;
    use linerate_model::{FrameHeaders, FramePayload, Mac};

    /// Returns a frame in two VLANs.
    fn tagged() -> Vec<u8> {
        let headers = FrameHeaders {
            source_mac: Mac([2, 0, 0, 0, 0, 1]),
            destination_mac: Mac([2, 0, 0, 0, 0xff, 0xff]),
            vlans: vec![100, 7],
            priority: 0,
            dscp: 0,
            source: "198.18.0.1".parse().unwrap(),
            destination: "198.18.0.2".parse().unwrap(),
            payload: FramePayload::Udp { source_port: 65_000, destination_port: 7 },
        };
        frame(&headers, 68, Signature { tag: 1, stream: 0, number: 0, time: 0 })
    }

    fn change(text: &str, frame: &[u8]) -> Result<Change, String> {
        Change::new(&text.parse().unwrap(), &Layout::of(frame), frame)
    }

    #[test]
    fn outer_tag_varies_and_keeps_its_priority() {
        let mut frame = tagged();
        frame[14] |= 0xa0;
        let change = change("vlan:3", &frame).unwrap();
        let mut tags = Vec::new();
        for number in 0..4 {
            change.apply(&mut frame, number);
            tags.push([frame[14], frame[15]]);
            assert_eq!(frame[16..20], [0x81, 0, 0, 7]);
        }
        assert_eq!(tags, [[0xa0, 100], [0xa0, 101], [0xa0, 102], [0xa0, 100]]);
    }

    #[test]
    fn carry_reaches_the_upper_bytes() {
        let mut frame = tagged();
        change("dst-mac:2", &frame).unwrap().apply(&mut frame, 1);
        assert_eq!(frame[..6], [2, 0, 0, 1, 0, 0]);
    }

    #[test]
    fn range_ends_with_its_field() {
        let frame = tagged();
        for (fits, too_many) in [("src-port:536", "src-port:537"), ("vlan:3995", "vlan:3996")] {
            assert!(change(fits, &frame).is_ok(), "{fits}");
            assert!(change(too_many, &frame).unwrap_err().contains("room"), "{too_many}");
        }
    }

    #[test]
    fn absent_checksum_stays_absent() {
        let mut frame = tagged();
        frame[48..50].fill(0);
        change("src-ip:9", &frame).unwrap().apply(&mut frame, 5);
        assert_eq!((frame[48], frame[49], frame[37]), (0, 0, 6));
    }
}
