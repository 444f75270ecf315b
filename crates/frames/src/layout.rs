//! Where the fields of a frame are: one reading for signatures, checksums and what varies. bpf/receive.bpf.c finds the
//! signature in the same way.

use crate::signature::{BYTES, sum};
use linerate_model::VaryField;

pub(crate) const IPV4: u16 = 0x0800;
pub(crate) const IPV6: u16 = 0x86dd;
/// IEEE 802.1Q.
pub(crate) const VLAN: u16 = 0x8100;
/// IEEE 802.1ad: the outer one of two.
pub(crate) const OUTER_VLAN: u16 = 0x88a8;
pub(crate) const ICMP: u8 = 1;
pub(crate) const TCP: u8 = 6;
pub(crate) const UDP: u8 = 17;
pub(crate) const ICMPV6: u8 = 58;

/// A frame's fields, by their distance from its beginning. Each lies wholly within the frame.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Layout {
    /// The outermost VLAN tag's control word.
    pub(crate) vlan: Option<usize>,
    pub(crate) ip: Option<Ip>,
    pub(crate) transport: Option<Transport>,
}

/// An IP header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ip {
    at: usize,
    four: bool,
    /// It is of the one form in which a signature is looked for: IPv4 without options, or IPv6.
    plain: bool,
}

/// A UDP, TCP or ICMP header that is not a later fragment's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Transport {
    at: usize,
    protocol: u8,
}

impl Layout {
    pub(crate) fn of(frame: &[u8]) -> Self {
        let mut layout = Self::default();
        let short = |at: usize| Some(u16::from_be_bytes([*frame.get(at)?, *frame.get(at + 1)?]));
        let mut at = 14;
        while at < 22 && matches!(short(at - 2), Some(VLAN | OUTER_VLAN)) && frame.len() >= at + 4 {
            layout.vlan = layout.vlan.or(Some(at));
            at += 4;
        }
        let has = |until: usize| frame.len() >= until;
        let (protocol, behind) = match short(at - 2) {
            Some(IPV4) if has(at + 20) && frame[at] >> 4 == 4 && frame[at] & 15 >= 5 => {
                layout.ip = Some(Ip { at, four: true, plain: frame[at] == 0x45 });
                // Only the first fragment has the transport's header.
                let later = short(at + 6).is_none_or(|fragment| fragment & 0x1fff != 0);
                (Some(frame[at + 9]).filter(|_| !later), at + 4 * usize::from(frame[at] & 15))
            }
            Some(IPV6) if has(at + 40) && frame[at] >> 4 == 6 => {
                layout.ip = Some(Ip { at, four: false, plain: true });
                (Some(frame[at + 6]), at + 40)
            }
            _ => (None, at),
        };
        let four = layout.ip.is_some_and(|ip| ip.four);
        layout.transport = protocol
            .filter(|protocol| match *protocol {
                UDP => has(behind + 8),
                TCP => has(behind + 20),
                ICMP => four && has(behind + 8),
                ICMPV6 => !four && has(behind + 8),
                _ => false,
            })
            .map(|protocol| Transport { at: behind, protocol });
        layout
    }

    /// Where a signature stands, if this is a frame that may carry one.
    pub(crate) fn signature_at(&self, frame: &[u8]) -> Option<usize> {
        let transport = self.transport.filter(|_| self.ip.is_some_and(|ip| ip.plain))?;
        let at = match transport.protocol {
            TCP if frame[transport.at + 12] >> 4 == 5 => transport.at + 20,
            TCP => return None,
            _ => transport.at + 8,
        };
        (frame.len() >= at + BYTES).then_some(at)
    }

    /// Where `field` begins and its bytes, at most the last four of it.
    pub(crate) fn field(&self, field: VaryField) -> Option<(usize, usize)> {
        let ports = || self.transport.filter(|transport| matches!(transport.protocol, UDP | TCP));
        // From an address' beginning to its last four bytes.
        let address = |four: usize, six: usize| self.ip.map(|ip| ip.at + if ip.four { four } else { six + 12 });
        match field {
            VaryField::DestinationMac => Some((2, 4)),
            VaryField::SourceMac => Some((8, 4)),
            VaryField::Vlan => self.vlan.map(|at| (at, 2)),
            VaryField::SourceIp => address(12, 8).map(|at| (at, 4)),
            VaryField::DestinationIp => address(16, 24).map(|at| (at, 4)),
            VaryField::SourcePort => ports().map(|transport| (transport.at, 2)),
            VaryField::DestinationPort => ports().map(|transport| (transport.at + 2, 2)),
        }
    }

    /// The IPv4 header's checksum.
    pub(crate) fn ip_checksum(&self) -> Option<usize> {
        self.ip.filter(|ip| ip.four).map(|ip| ip.at + 10)
    }

    /// The transport's checksum; none where UDP over IPv4 does without (RFC 768).
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

    /// Whether the IP addresses are part of the transport's checksum: of all but ICMP for IPv4 (RFC 792).
    pub(crate) fn has_pseudo_header(&self) -> bool {
        self.transport.is_some_and(|transport| transport.protocol != ICMP)
    }

    /// Makes up for `old` having become `new` in what the transport's checksum covers.
    pub(crate) fn mend_transport(&self, frame: &mut [u8], old: &[u8], new: &[u8]) {
        if let Some(at) = self.transport_checksum(frame) {
            mend(frame, at, u64::from(!sum(old)) + u64::from(sum(new)), self.is_udp());
        }
    }
}

/// Brings the checksum at `at` up to date by RFC 1624, equation 3: HC' = ~(~HC + ~m + m'). `change` is the sum of ~m + m'
/// over the 16-bit words that changed. A UDP checksum of zero would say that there is none (RFC 768).
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
