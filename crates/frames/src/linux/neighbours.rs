//! Answers of a host to others on its link: ARP (RFC 826), neighbour discovery (RFC 4861), echo (RFC 792, RFC 4443).
//!
//! Pure: a frame in, a frame out. An invalid frame gets no answer. An answer is never longer than its request, and goes
//! to the asking host only, except in the defence of an address (RFC 4862 section 5.4.3).

use crate::linux::headers::{link_header, octets};
use crate::linux::signature::sum;
use linerate_model::{Mac, MacRule, SimulatedHosts};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const ARP: u16 = 0x0806;
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const ICMP: u8 = 1;
const ICMPV6: u8 = 58;
const ETHERNET: usize = 14;
/// Hop limit of neighbour discovery, which is lower after a router (RFC 4861 section 7.1.1).
const FROM_THE_LINK: u8 = 255;
const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);

/// Hosts with consecutive addresses behind one port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hosts {
    pub(crate) first: IpAddr,
    pub(crate) count: u32,
    /// Rule for the Ethernet addresses.
    pub(crate) mac: Macs,
}

/// Ethernet addresses of hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Macs {
    /// The same address for all hosts.
    One(Mac),
    /// Consecutive addresses from this one.
    From(Mac),
}

impl Hosts {
    /// Returns the simulated hosts of a trial, behind a port with the address `port`.
    pub(crate) fn of(hosts: &SimulatedHosts, port: Mac) -> Self {
        let mac = match hosts.mac {
            MacRule::Port => Macs::One(port),
            MacRule::Counting { first } => Macs::From(first),
        };
        Self { first: hosts.first, count: hosts.count, mac }
    }

    /// Returns a single host.
    pub(crate) fn one(address: IpAddr, mac: Mac) -> Self {
        Self { first: address, count: 1, mac: Macs::One(mac) }
    }

    /// Returns the Ethernet address of the host with this IP address, if there is one.
    fn mac_of(&self, address: IpAddr) -> Option<Mac> {
        let index = match (self.first, address) {
            (IpAddr::V4(first), IpAddr::V4(address)) => u128::from(address.to_bits().checked_sub(first.to_bits())?),
            (IpAddr::V6(first), IpAddr::V6(address)) => address.to_bits().checked_sub(first.to_bits())?,
            _ => return None,
        };
        let index = u32::try_from(index).ok().filter(|index| *index < self.count)?;
        Some(match self.mac {
            Macs::One(mac) => mac,
            Macs::From(first) => first.plus(index),
        })
    }
}

/// Hosts behind one port.
#[derive(Debug, Clone, Default)]
pub(crate) struct Link(pub(crate) Vec<Hosts>);

impl Link {
    /// Returns the answer to `frame`. Returns `None` if it is not a request, or not for these hosts.
    pub(crate) fn answer(&self, frame: &[u8]) -> Option<Vec<u8>> {
        match u16::from_be_bytes(frame.get(12..ETHERNET)?.try_into().ok()?) {
            ARP => self.answer_arp(frame),
            IPV4 => self.answer_echo(frame),
            IPV6 => self.answer_icmpv6(frame),
            _ => None,
        }
    }

    fn mac_of(&self, address: impl Into<IpAddr>) -> Option<Mac> {
        let address = address.into();
        self.0.iter().find_map(|hosts| hosts.mac_of(address))
    }

    fn answer_arp(&self, frame: &[u8]) -> Option<Vec<u8>> {
        let request = frame.get(ETHERNET..ETHERNET + 28)?;
        // Ethernet, IPv4, 6 and 4 bytes of address, request.
        if request[..8] != [0, 1, 8, 0, 6, 4, 0, 1] {
            return None;
        }
        let sender_mac: [u8; 6] = request[8..14].try_into().ok()?;
        let sender: [u8; 4] = request[14..18].try_into().ok()?;
        let target: [u8; 4] = request[24..28].try_into().ok()?;
        // A request for the sender's own address announces or defends it, and gets no answer.
        if sender == target || sender_mac[0] & 1 != 0 {
            return None;
        }
        let mac = self.mac_of(Ipv4Addr::from(target))?;
        let mut reply = link_header(sender_mac, mac.0, &[], ARP);
        reply.extend([0, 1, 8, 0, 6, 4, 0, 2]);
        reply.extend(mac.0);
        reply.extend(target);
        reply.extend(sender_mac);
        reply.extend(sender);
        reply.resize(60, 0);
        Some(reply)
    }

    fn answer_echo(&self, frame: &[u8]) -> Option<Vec<u8>> {
        let packet = frame.get(ETHERNET..)?;
        let header = packet.get(..20)?;
        let length = usize::from(u16::from_be_bytes([header[2], header[3]]));
        let fragment = u16::from_be_bytes([header[6], header[7]]) & 0x3fff;
        if header[0] != 0x45 || header[9] != ICMP || fragment != 0 || sum(header) != 0xffff {
            return None;
        }
        let message = packet.get(20..length)?;
        let source = Ipv4Addr::from(<[u8; 4]>::try_from(&header[12..16]).ok()?);
        let destination = Ipv4Addr::from(<[u8; 4]>::try_from(&header[16..20]).ok()?);
        let mac = self.mac_of(destination)?;
        // Requests to a group, or from an address that is no host's, get no answer (RFC 1122 section 3.2.2.6).
        if frame[..6] != mac.0 || !is_host(source.into()) || message.get(..2)? != [8, 0] || sum(message) != 0xffff {
            return None;
        }
        let mut reply = link_header(frame[6..12].try_into().ok()?, mac.0, &[], IPV4);
        reply.extend(&header[..8]);
        reply.extend([64, ICMP, 0, 0]);
        reply.extend(destination.octets());
        reply.extend(source.octets());
        let checksum = !sum(&reply[ETHERNET..]);
        reply[ETHERNET + 10..ETHERNET + 12].copy_from_slice(&checksum.to_be_bytes());
        let begin = reply.len();
        reply.extend([0, 0, 0, 0]);
        reply.extend(message.get(4..)?);
        let checksum = !sum(&reply[begin..]);
        reply[begin + 2..begin + 4].copy_from_slice(&checksum.to_be_bytes());
        reply.resize(reply.len().max(60), 0);
        Some(reply)
    }

    fn answer_icmpv6(&self, frame: &[u8]) -> Option<Vec<u8>> {
        let packet = frame.get(ETHERNET..)?;
        let header = packet.get(..40)?;
        let length = usize::from(u16::from_be_bytes([header[4], header[5]]));
        if header[0] >> 4 != 6 || header[6] != ICMPV6 {
            return None;
        }
        let message = packet.get(40..40 + length)?;
        let source = Ipv6Addr::from(<[u8; 16]>::try_from(&header[8..24]).ok()?);
        let destination = Ipv6Addr::from(<[u8; 16]>::try_from(&header[24..40]).ok()?);
        if sum(&covered(source, destination, message)) != 0xffff {
            return None;
        }
        match message.get(..2)? {
            [135, 0] if header[7] == FROM_THE_LINK => self.answer_solicitation(frame, message, source, destination),
            [128, 0] => {
                let mac = self.mac_of(destination)?;
                if frame[..6] != mac.0 || !is_host(source.into()) {
                    return None;
                }
                let mut reply = vec![129, 0, 0, 0];
                reply.extend(message.get(4..)?);
                Some(icmpv6(mac, frame[6..12].try_into().ok()?, (destination, source), 64, reply))
            }
            _ => None,
        }
    }

    /// Answers a neighbour solicitation (RFC 4861 sections 7.1.1 and 7.2.4).
    fn answer_solicitation(
        &self,
        frame: &[u8],
        message: &[u8],
        source: Ipv6Addr,
        destination: Ipv6Addr,
    ) -> Option<Vec<u8>> {
        let target = Ipv6Addr::from(<[u8; 16]>::try_from(message.get(8..24)?).ok()?);
        let mac = self.mac_of(target)?;
        let asker = source_mac_option(message.get(24..)?)?;
        // Duplicate address detection: the answer goes to all nodes.
        if source.is_unspecified() {
            if asker.is_some() || !destination.is_multicast() {
                return None;
            }
            return Some(advertisement(mac, target, ALL_NODES, [0x33, 0x33, 0, 0, 0, 1], 0x20));
        }
        let asker = asker.unwrap_or(frame[6..12].try_into().ok()?);
        // Flags: solicited, override.
        (is_host(source.into()) && asker[0] & 1 == 0).then(|| advertisement(mac, target, source, asker, 0x60))
    }
}

/// Returns the source link-layer address among the options of a solicitation. The outer `None` means invalid options.
#[allow(clippy::option_option)]
fn source_mac_option(mut options: &[u8]) -> Option<Option<[u8; 6]>> {
    let mut source = None;
    while let [kind, eights, ..] = *options {
        let length = usize::from(eights) * 8;
        // A length of zero makes the whole message void (RFC 4861 section 4.6).
        if length == 0 {
            return None;
        }
        let option = options.get(..length)?;
        if (kind, eights) == (1, 1) {
            source = option[2..8].try_into().ok();
        }
        options = &options[length..];
    }
    options.is_empty().then_some(source)
}

fn advertisement(own: Mac, target: Ipv6Addr, to: Ipv6Addr, to_mac: [u8; 6], flags: u8) -> Vec<u8> {
    let mut message = vec![136, 0, 0, 0, flags, 0, 0, 0];
    message.extend(target.octets());
    // Option: target link-layer address, 8 bytes.
    message.extend([2, 1]);
    message.extend(own.0);
    icmpv6(own, to_mac, (target, to), FROM_THE_LINK, message)
}

/// Builds a frame with an ICMPv6 message, and sets its checksum.
fn icmpv6(own: Mac, to_mac: [u8; 6], (from, to): (Ipv6Addr, Ipv6Addr), hops: u8, mut message: Vec<u8>) -> Vec<u8> {
    let checksum = !sum(&covered(from, to, &message));
    message[2..4].copy_from_slice(&checksum.to_be_bytes());
    let mut frame = link_header(to_mac, own.0, &[], IPV6);
    frame.extend([0x60, 0, 0, 0]);
    frame.extend((message.len() as u16).to_be_bytes());
    frame.extend([ICMPV6, hops]);
    frame.extend(from.octets());
    frame.extend(to.octets());
    frame.extend(message);
    frame
}

/// Returns the bytes that the checksum of ICMPv6 covers (RFC 8200 section 8.1).
fn covered(from: Ipv6Addr, to: Ipv6Addr, message: &[u8]) -> Vec<u8> {
    let mut covered = octets(from.into());
    covered.extend(to.octets());
    covered.extend((message.len() as u32).to_be_bytes());
    covered.extend([0, 0, 0, ICMPV6]);
    covered.extend(message);
    covered
}

fn is_host(address: IpAddr) -> bool {
    let broadcast = matches!(address, IpAddr::V4(v4) if v4.is_broadcast());
    !(address.is_multicast() || address.is_unspecified() || address.is_loopback() || broadcast)
}

#[cfg(test)]
mod tests;
