//! Links, addresses, queueing disciplines and routes of one network namespace, by a blocking netlink socket.
//!
//! The socket keeps the namespace it was opened in, so it may be used from any thread afterwards. Only the attributes
//! that linerate needs are read: an attribute that this program does not know can never spoil a whole answer.
//! rtnetlink(7); the numbers are those of linux/rtnetlink.h, linux/if_link.h and linux/pkt_sched.h.

use crate::Error;
use crate::interface::{Address, Link, LinkCounters, Qdisc};
use rtnetlink::packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_DUMP, NLM_F_DUMP_INTR, NLM_F_EXCL, NLM_F_REQUEST, NLMSG_DONE, NLMSG_ERROR,
    NetlinkBuffer, NlasIterator,
};
use rtnetlink::sys::{Socket, protocols::NETLINK_ROUTE};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A socket to the routing part of the kernel.
pub struct Route {
    socket: Socket,
    sequence: u32,
    buffer: Vec<u8>,
}

const RTM_NEWLINK: u16 = 16;
const RTM_GETLINK: u16 = 18;
const RTM_GETADDR: u16 = 22;
const RTM_GETROUTE: u16 = 26;
const RTM_NEWQDISC: u16 = 36;
const RTM_GETQDISC: u16 = 38;
/// A dump that was cut by a change is asked for again this often; then it is taken as it is.
const DUMP_TRIES: u32 = 3;
/// The kernel answers in pieces of at most 32 KiB.
const ANSWER_MAXIMUM: usize = 64 << 10;

impl Route {
    /// Opens a socket in the calling thread's network namespace.
    pub fn open() -> Result<Self, Error> {
        let socket = Socket::new(NETLINK_ROUTE).map_err(|error| Error::new("socket", "NETLINK_ROUTE", error))?;
        Ok(Self { socket, sequence: 0, buffer: Vec::with_capacity(ANSWER_MAXIMUM) })
    }

    /// All interfaces with their counters.
    pub fn links(&mut self) -> Result<Vec<Link>, Error> {
        self.dump("RTM_GETLINK", RTM_GETLINK, &[0; 16], link)
    }

    /// All addresses.
    pub fn addresses(&mut self) -> Result<Vec<Address>, Error> {
        self.dump("RTM_GETADDR", RTM_GETADDR, &[0; 8], address)
    }

    /// All queueing disciplines with their counters.
    pub fn qdiscs(&mut self) -> Result<Vec<Qdisc>, Error> {
        self.dump("RTM_GETQDISC", RTM_GETQDISC, &[0; 20], qdisc)
    }

    /// The number of the interface by which packets leave for `destination`; loopback's for this host's own addresses.
    pub fn outgoing(&mut self, destination: IpAddr) -> Result<Option<u32>, Error> {
        const RTA_DST: u16 = 1;
        const RTA_OIF: u16 = 4;
        let (family, octets) = match destination {
            IpAddr::V4(v4) => (libc::AF_INET, v4.octets().to_vec()),
            IpAddr::V6(v6) => (libc::AF_INET6, v6.octets().to_vec()),
        };
        let mut body = vec![0; 12];
        body[0] = family as u8;
        body[1] = (octets.len() * 8) as u8;
        append(&mut body, RTA_DST, &octets);
        let mut found = None;
        self.ask("RTM_GETROUTE", destination.to_string(), RTM_GETROUTE, NLM_F_ACK, &body, |answer| {
            found = attributes(answer.get(12..)?)
                .find(|(kind, _)| *kind == RTA_OIF)
                .and_then(|(_, value)| u32_at(value, 0));
            Some(())
        })?;
        Ok(found)
    }

    /// Makes an interface of a kind that needs no settings, as in `bridge` or `veth`.
    pub fn add_link(&mut self, kind: &str, name: &str) -> Result<(), Error> {
        const IFLA_IFNAME: u16 = 3;
        const IFLA_LINKINFO: u16 = 18;
        const IFLA_INFO_KIND: u16 = 1;
        let mut body = vec![0; 16];
        append(&mut body, IFLA_IFNAME, &zero_ended(name));
        let mut info = Vec::new();
        append(&mut info, IFLA_INFO_KIND, kind.as_bytes());
        append(&mut body, IFLA_LINKINFO, &info);
        let flags = NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL;
        self.ask("RTM_NEWLINK", format!("{kind} {name}"), RTM_NEWLINK, flags, &body, |_| Some(()))
    }

    /// Puts a queueing discipline without settings at the root of an interface. A kind that cannot be without settings
    /// answers `InvalidInput`, an unknown kind `NotFound`.
    pub fn add_qdisc(&mut self, kind: &str, link: u32) -> Result<(), Error> {
        const TCA_KIND: u16 = 1;
        let mut body = vec![0; 20];
        body[4..8].copy_from_slice(&link.to_ne_bytes());
        body[12..16].copy_from_slice(&u32::MAX.to_ne_bytes());
        append(&mut body, TCA_KIND, &zero_ended(kind));
        let flags = NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL;
        self.ask("RTM_NEWQDISC", kind.to_owned(), RTM_NEWQDISC, flags, &body, |_| Some(()))
    }

    /// Asks for all of a kind; `read` makes an entry of each answer.
    fn dump<T>(
        &mut self,
        call: &'static str,
        kind: u16,
        body: &[u8],
        read: impl Fn(&[u8]) -> Option<T>,
    ) -> Result<Vec<T>, Error> {
        let mut tries = 0;
        loop {
            let mut entries = Vec::new();
            let asked = self.ask(call, String::from("all"), kind, NLM_F_DUMP, body, |answer| {
                entries.push(read(answer)?);
                Some(())
            });
            tries += 1;
            match asked {
                Err(error) if error.source.kind() == io::ErrorKind::Interrupted && tries < DUMP_TRIES => {}
                Err(error) if error.source.kind() == io::ErrorKind::Interrupted => return Ok(entries),
                Err(error) => return Err(error),
                Ok(()) => return Ok(entries),
            }
        }
    }

    /// Sends one request and hands each answer to `each`, which returns none for one it cannot read. A dump that changed
    /// under way is `Interrupted`.
    pub(crate) fn ask(
        &mut self,
        call: &'static str,
        object: String,
        kind: u16,
        flags: u16,
        body: &[u8],
        mut each: impl FnMut(&[u8]) -> Option<()>,
    ) -> Result<(), Error> {
        let failed = |source: io::Error| Error::new(call, object.clone(), source);
        let malformed = || failed(io::Error::new(io::ErrorKind::InvalidData, "the kernel's answer cannot be read"));
        self.sequence = self.sequence.wrapping_add(1);
        let mut request = vec![0; 16];
        request.extend_from_slice(body);
        let mut header = NetlinkBuffer::new(&mut request);
        header.set_length(16 + body.len() as u32);
        header.set_message_type(kind);
        header.set_flags(NLM_F_REQUEST | flags);
        header.set_sequence_number(self.sequence);
        self.socket.send(&request, 0).map_err(failed)?;

        let mut interrupted = false;
        loop {
            self.buffer.clear();
            let length = self.socket.recv(&mut self.buffer, libc::MSG_TRUNC).map_err(failed)?;
            if length > self.buffer.len() {
                return Err(malformed());
            }
            let mut rest = self.buffer.as_slice();
            while !rest.is_empty() {
                let message = NetlinkBuffer::new_checked(rest).map_err(|_| malformed())?;
                let (length, payload) = (message.length() as usize, message.payload());
                // What is left of an earlier answer that was given up half-way.
                let ours = message.sequence_number() == self.sequence;
                interrupted |= ours && message.flags() & NLM_F_DUMP_INTR != 0;
                match message.message_type() {
                    _ if !ours => {}
                    NLMSG_DONE | NLMSG_ERROR => {
                        return match u32_at(payload, 0).map(|number| number as i32) {
                            Some(0) if interrupted => Err(failed(io::ErrorKind::Interrupted.into())),
                            Some(0) => Ok(()),
                            Some(number) => Err(failed(io::Error::from_raw_os_error(-number))),
                            None => Err(malformed()),
                        };
                    }
                    _ => each(payload).ok_or_else(malformed)?,
                }
                rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
            }
        }
    }
}

/// Reads struct ifinfomsg and its attributes.
fn link(message: &[u8]) -> Option<Link> {
    let flags = u32_at(message, 8)?;
    let has = |flag: libc::c_int| flags & flag as u32 != 0;
    let mut link = Link {
        index: u32_at(message, 4)?,
        // IFF_LOWER_UP (1 << 16) is the carrier.
        up: has(libc::IFF_UP) && has(1 << 16),
        running: has(libc::IFF_RUNNING),
        loopback: has(libc::IFF_LOOPBACK),
        ..Link::default()
    };
    let (mut elsewhere, mut state) = (false, None);
    for (kind, value) in attributes(message.get(16..)?) {
        match kind {
            1 => link.mac = value.to_vec(),
            3 => link.name = text(value),
            4 => link.mtu = u32_at(value, 0)?,
            5 => link.lower = u32_at(value, 0),
            6 => link.qdisc = text(value),
            10 => link.master = u32_at(value, 0),
            16 => state = value.first().copied(),
            18 => {
                link.kind =
                    attributes(value).find(|(kind, _)| *kind == 1).map(|(_, kind)| text(kind)).unwrap_or_default()
            }
            23 => link.counters = link_counters(value)?,
            35 => link.carrier_changes = u32_at(value, 0)?,
            37 => elsewhere = true,
            _ => {}
        }
    }
    // A veth that the kernel has not looked at since it was set up is in the state "unknown" (RFC 2863), which passes for running, and
    // drops what is sent.
    link.running &= link.kind != "veth" || state != Some(0);
    link.lower = link.lower.filter(|lower| !elsewhere && *lower != 0 && *lower != link.index);
    Some(link)
}

/// Reads struct rtnl_link_stats64; newer kernels append to it.
fn link_counters(value: &[u8]) -> Option<LinkCounters> {
    let field = |index: usize| u64_at(value, index * 8);
    Some(LinkCounters {
        rx_packets: field(0)?,
        tx_packets: field(1)?,
        rx_bytes: field(2)?,
        tx_bytes: field(3)?,
        rx_errors: field(4)?,
        tx_errors: field(5)?,
        rx_dropped: field(6)?,
        tx_dropped: field(7)?,
        rx_length_errors: field(10)?,
        rx_over_errors: field(11)?,
        rx_crc_errors: field(12)?,
        rx_frame_errors: field(13)?,
        rx_fifo_errors: field(14)?,
        rx_missed_errors: field(15)?,
    })
}

/// Reads struct ifaddrmsg and its attributes.
fn address(message: &[u8]) -> Option<Address> {
    const IFA_ADDRESS: u16 = 1;
    const IFA_LOCAL: u16 = 2;
    let (mut own, mut peer) = (None, None);
    for (kind, value) in attributes(message.get(8..)?) {
        match kind {
            // On a point-to-point link the address is the peer's, and the local one is given besides.
            IFA_ADDRESS => peer = ip(value),
            IFA_LOCAL => own = ip(value),
            _ => {}
        }
    }
    // RT_SCOPE_UNIVERSE is 0 and RT_SCOPE_SITE 200; from RT_SCOPE_LINK (253) up an address is not for others.
    Some(Address {
        link: u32_at(message, 4)?,
        address: own.or(peer)?,
        prefix: message[1],
        local_scope: message[3] >= 253,
    })
}

/// Reads struct tcmsg and its attributes.
fn qdisc(message: &[u8]) -> Option<Qdisc> {
    const TCA_KIND: u16 = 1;
    const TCA_STATS2: u16 = 7;
    const TCA_STATS_BASIC: u16 = 1;
    const TCA_STATS_QUEUE: u16 = 3;
    const TCA_STATS_PKT64: u16 = 8;
    let mut qdisc = Qdisc {
        link: u32_at(message, 4)?,
        handle: u32_at(message, 8)?,
        parent: u32_at(message, 12)?,
        ..Qdisc::default()
    };
    for (kind, value) in attributes(message.get(20..)?) {
        match kind {
            TCA_KIND => qdisc.kind = text(value),
            TCA_STATS2 => {
                for (kind, value) in attributes(value) {
                    match kind {
                        TCA_STATS_BASIC => {
                            qdisc.bytes = u64_at(value, 0)?;
                            qdisc.packets = qdisc.packets.max(u64::from(u32_at(value, 8)?));
                        }
                        TCA_STATS_QUEUE => {
                            qdisc.backlog_packets = u64::from(u32_at(value, 0)?);
                            qdisc.backlog_bytes = u64::from(u32_at(value, 4)?);
                            qdisc.drops = u64::from(u32_at(value, 8)?);
                            qdisc.overlimits = u64::from(u32_at(value, 16)?);
                        }
                        // Given besides the basic count once that has run over its 32 bits.
                        TCA_STATS_PKT64 => qdisc.packets = u64_at(value, 0)?,
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    Some(qdisc)
}

/// The attributes in `bytes` as kind and value, up to the first that is malformed.
fn attributes(bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    NlasIterator::new(bytes).map_while(Result::ok).map(|attribute| {
        let length = usize::from(attribute.length());
        let kind = attribute.kind();
        (kind, &attribute.into_inner()[4..length])
    })
}

/// Adds an attribute, padded to four bytes.
pub(crate) fn append(message: &mut Vec<u8>, kind: u16, value: &[u8]) {
    message.extend_from_slice(&(4 + value.len() as u16).to_ne_bytes());
    message.extend_from_slice(&kind.to_ne_bytes());
    message.extend_from_slice(value);
    message.resize(message.len().next_multiple_of(4), 0);
}

pub(crate) fn zero_ended(text: &str) -> Vec<u8> {
    [text.as_bytes(), &[0]].concat()
}

fn text(value: &[u8]) -> String {
    String::from_utf8_lossy(value.split(|byte| *byte == 0).next().unwrap_or_default()).into_owned()
}

fn ip(value: &[u8]) -> Option<IpAddr> {
    match value.len() {
        4 => <[u8; 4]>::try_from(value).ok().map(|octets| Ipv4Addr::from(octets).into()),
        16 => <[u8; 16]>::try_from(value).ok().map(|octets| Ipv6Addr::from(octets).into()),
        _ => None,
    }
}

fn u32_at(bytes: &[u8], offset: usize) -> Option<u32> {
    bytes.get(offset..offset + 4)?.try_into().ok().map(u32::from_ne_bytes)
}

fn u64_at(bytes: &[u8], offset: usize) -> Option<u64> {
    bytes.get(offset..offset + 8)?.try_into().ok().map(u64::from_ne_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_namespace_has_loopback_with_its_address() {
        let mut route = Route::open().expect("a netlink socket needs no privilege");
        let links = route.links().expect("links");
        let lo = links.iter().find(|link| link.name == "lo").expect("lo");
        assert!(lo.loopback && lo.index == 1 && lo.mac == [0; 6] && lo.kind.is_empty(), "{lo:?}");
        let addresses = route.addresses().expect("addresses");
        let home = IpAddr::from(Ipv4Addr::LOCALHOST);
        assert!(addresses.iter().any(|own| own.link == 1 && own.address == home && own.local_scope), "{addresses:?}");
        assert_eq!(route.outgoing(home).expect("route"), Some(1));
        assert!(route.qdiscs().expect("qdiscs").iter().all(|qdisc| !qdisc.kind.is_empty()));
    }

    #[test]
    fn loopback_counts_what_is_sent() {
        let mut route = Route::open().expect("netlink");
        let mut count = || route.links().expect("links").iter().find(|link| link.loopback).expect("lo").counters;
        let before = count();
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").expect("bind");
        for _ in 0..100 {
            socket.send_to(&[0; 1000], socket.local_addr().expect("address")).expect("send");
        }
        let after = count();
        // Others may use loopback meanwhile, so at least.
        assert!(after.rx_packets - before.rx_packets >= 100, "{before:?} {after:?}");
        assert!(after.tx_bytes - before.tx_bytes >= 100 * 1028, "{before:?} {after:?}");
    }

    #[test]
    fn an_error_names_the_call_and_the_object() {
        let error = Route::open().expect("netlink").add_qdisc("nonesuch", u32::MAX).expect_err("no such interface");
        assert!(error.to_string().starts_with("RTM_NEWQDISC on nonesuch: "), "{error}");
    }

    #[test]
    fn a_cut_message_is_no_link() {
        assert_eq!(link(&[0; 15]), None);
        assert_eq!(address(&[0; 7]), None);
        assert_eq!(qdisc(&[0; 19]), None);
    }

    #[test]
    fn packets_beyond_32_bits_come_from_the_wide_counter() {
        let mut message = vec![0; 20];
        let mut stats = Vec::new();
        let mut basic = 7u64.to_ne_bytes().to_vec();
        basic.extend_from_slice(&[0xff; 4]);
        append(&mut stats, 1, &basic);
        append(&mut stats, 8, &(1u64 << 33).to_ne_bytes());
        append(&mut message, 1, b"tbf\0");
        append(&mut message, 7, &stats);
        let read = qdisc(&message).expect("well formed");
        assert_eq!((read.kind.as_str(), read.bytes, read.packets), ("tbf", 7, 1 << 33));
    }
}
