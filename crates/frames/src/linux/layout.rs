//! Positions of the fields of a frame: one parser for signatures, checksums and varying fields. bpf/receive.bpf.c finds
//! the signature in the same way.

use crate::linux::signature::{BYTES, sum};
use linerate_model::{RawFrame, VaryField};

pub(crate) const IPV4: u16 = 0x0800;
pub(crate) const IPV6: u16 = 0x86dd;
/// Type of a VLAN tag (IEEE 802.1Q).
pub(crate) const VLAN: u16 = 0x8100;
/// Type of the outer one of two tags (IEEE 802.1ad).
pub(crate) const OUTER_VLAN: u16 = 0x88a8;
pub(crate) const ICMP: u8 = 1;
pub(crate) const TCP: u8 = 6;
pub(crate) const UDP: u8 = 17;
pub(crate) const ICMPV6: u8 = 58;

/// Offsets of a frame's fields. Each field lies completely within the frame.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Control word of the outermost VLAN tag.
    pub(crate) vlan: Option<usize>,
    pub(crate) ip: Option<Ip>,
    /// End of the header of a frame of the experimental EtherType, which has nothing before its signature.
    experimental: Option<usize>,
    pub(crate) transport: Option<Transport>,
}

/// Position of an IP header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ip {
    at: usize,
    four: bool,
    /// Whether it may precede a signature: IPv4 without options, or IPv6.
    plain: bool,
}

/// Position of a UDP, TCP or ICMP header, not in a later fragment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Transport {
    at: usize,
    protocol: u8,
}

impl Layout {
    pub(crate) fn of(frame: &[u8]) -> Self {
        let mut layout = Self::default();
        let mut at = 14;
        while at < 22 && matches!(u16_at(frame, at - 2), Some(VLAN | OUTER_VLAN)) && frame.len() >= at + 4 {
            layout.vlan = layout.vlan.or(Some(at));
            at += 4;
        }
        let (protocol, transport_at) = match u16_at(frame, at - 2) {
            Some(IPV4) if frame.len() >= at + 20 && frame[at] >> 4 == 4 && frame[at] & 15 >= 5 => {
                layout.ip = Some(Ip { at, four: true, plain: frame[at] == 0x45 });
                // Only the first fragment has the transport's header.
                let later = u16_at(frame, at + 6).is_none_or(|fragment| fragment & 0x1fff != 0);
                (Some(frame[at + 9]).filter(|_| !later), at + 4 * usize::from(frame[at] & 15))
            }
            Some(IPV6) if frame.len() >= at + 40 && frame[at] >> 4 == 6 => {
                layout.ip = Some(Ip { at, four: false, plain: true });
                (Some(frame[at + 6]), at + 40)
            }
            Some(RawFrame::EXPERIMENTAL) => {
                layout.experimental = Some(at);
                (None, at)
            }
            _ => (None, at),
        };
        let four = layout.ip.is_some_and(|ip| ip.four);
        layout.transport = protocol
            .filter(|protocol| match *protocol {
                UDP => frame.len() >= transport_at + 8,
                TCP => frame.len() >= transport_at + 20,
                ICMP => four && frame.len() >= transport_at + 8,
                ICMPV6 => !four && frame.len() >= transport_at + 8,
                _ => false,
            })
            .map(|protocol| Transport { at: transport_at, protocol });
        layout
    }

    /// Returns the offset of the signature, if the frame may carry one.
    pub(crate) fn signature_at(&self, frame: &[u8]) -> Option<usize> {
        let at = self.experimental.or_else(|| self.payload_at(frame))?;
        (frame.len() >= at + BYTES).then_some(at)
    }

    /// Returns the offset of the payload after plain headers.
    fn payload_at(&self, frame: &[u8]) -> Option<usize> {
        let transport = self.transport.filter(|_| self.ip.is_some_and(|ip| ip.plain))?;
        match transport.protocol {
            TCP if frame[transport.at + 12] >> 4 == 5 => Some(transport.at + 20),
            TCP => None,
            _ => Some(transport.at + 8),
        }
    }

    /// Returns the offset of `field` and its number of bytes, at most its last four.
    pub(crate) fn field(&self, field: VaryField) -> Option<(usize, usize)> {
        match field {
            VaryField::DestinationMac => Some((2, 4)),
            VaryField::SourceMac => Some((8, 4)),
            VaryField::Vlan => self.vlan.map(|at| (at, 2)),
            VaryField::SourceIp => self.address(12, 8),
            VaryField::DestinationIp => self.address(16, 24),
            VaryField::SourcePort => Some((self.ports()?, 2)),
            VaryField::DestinationPort => Some((self.ports()? + 2, 2)),
        }
    }

    /// Returns the offset of the source port.
    fn ports(&self) -> Option<usize> {
        self.transport.filter(|transport| matches!(transport.protocol, UDP | TCP)).map(|transport| transport.at)
    }

    /// Returns the offset and length of the last four bytes of an address, from its offsets in headers of IPv4 and
    /// IPv6.
    fn address(&self, in_v4: usize, in_v6: usize) -> Option<(usize, usize)> {
        let ip = self.ip?;
        Some((ip.at + if ip.four { in_v4 } else { in_v6 + 12 }, 4))
    }

    /// Returns the offset of the IPv4 header's checksum.
    pub(crate) fn ip_checksum(&self) -> Option<usize> {
        self.ip.filter(|ip| ip.four).map(|ip| ip.at + 10)
    }

    /// Returns the offset of the transport's checksum. Returns `None` for UDP over IPv4 without one (RFC 768).
    pub(crate) fn transport_checksum(&self, frame: &[u8]) -> Option<usize> {
        let Transport { at, protocol } = self.transport?;
        let at = at
            + match protocol {
                UDP => 6,
                TCP => 16,
                _ => 2,
            };
        let unused = protocol == UDP && frame[at..at + 2] == [0, 0];
        (!unused).then_some(at)
    }

    pub(crate) fn is_udp(&self) -> bool {
        self.transport.is_some_and(|transport| transport.protocol == UDP)
    }

    /// Returns whether the transport's checksum covers the IP addresses, as all do except ICMP for IPv4 (RFC 792).
    pub(crate) fn has_pseudo_header(&self) -> bool {
        self.transport.is_some_and(|transport| transport.protocol != ICMP)
    }

    /// Updates the transport's checksum after a change from `old` to `new` in the bytes that it covers.
    pub(crate) fn mend_transport(&self, frame: &mut [u8], old: &[u8], new: &[u8]) {
        if let Some(at) = self.transport_checksum(frame) {
            mend(frame, at, u64::from(!sum(old)) + u64::from(sum(new)), self.is_udp());
        }
    }
}

/// Reads a big-endian number.
fn u16_at(frame: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*frame.get(at)?, *frame.get(at + 1)?]))
}

/// Updates the checksum at `at` by RFC 1624, equation 3: HC' = ~(~HC + ~m + m'). `change` is the sum of ~m + m' over
/// the changed 16-bit words. A UDP checksum of zero would mean no checksum (RFC 768).
pub(crate) fn mend(frame: &mut [u8], at: usize, change: u64, udp: bool) {
    let old = u16::from_be_bytes([frame[at], frame[at + 1]]);
    let mut sum = u64::from(!old) + change;
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    let new = match !(sum as u16) {
        0 if udp => 0xffff,
        new => new,
    };
    frame[at..at + 2].copy_from_slice(&new.to_be_bytes());
}
